//! Bounds of the gateway.

use super::bound::{Bound, Limit::Constant, bound};

pub(super) const BOUNDS: &[Bound] = &[
    bound(
        "sessions of the gateway",
        Constant("hub/src/gateway/limits.rs", "SESSIONS", "1024", "1024"),
        "a further one is refused, and the reason is sent",
    ),
    bound(
        "sessions of the gateway without a connection",
        Constant("hub/src/gateway/limits.rs", "DETACHED", "256", "256"),
        "those that are without one for the longest end",
    ),
    bound(
        "connections of the gateway whose HELLO has not come",
        Constant("hub/src/gateway/limits.rs", "UNGREETED", "64", "64"),
        "a further one is refused, and the reason is sent",
    ),
    bound(
        "connections with the gateway by WebSocket",
        Constant("hub/src/gateway/limits.rs", "WEB", "256", "256"),
        "a further one is answered with status 503",
    ),
    bound(
        "connections with the gateway by WebSocket of one address; for IPv6, of one network of 64 bits",
        Constant("hub/src/gateway/limits.rs", "WEB_OF_ONE", "32", "32"),
        "a further one is answered with status 503",
    ),
    bound(
        "connections of guests with the gateway; of one address",
        Constant("hub/src/gateway/limits.rs", "GUESTS", "64", "64; 8"),
        "a further one ends with the reason",
    ),
    bound(
        "sessions of guests; of these without a connection",
        Constant("hub/src/gateway/limits.rs", "GUEST_SESSIONS", "128", "128; 32"),
        "a further one is refused; those that are without one for the longest end",
    ),
    bound(
        "subscriptions of a guest's session; publishers of it",
        Constant("hub/src/gateway/limits.rs", "GUEST_SUBSCRIPTIONS", "16", "16; 4"),
        "a further one is refused, and the reason is sent",
    ),
    bound(
        "questions of all guests that wait for their answer; of a guest's session",
        Constant("hub/src/gateway/limits.rs", "ALL_GUEST_QUESTIONS", "4", "4; 2"),
        "a further one is refused, and the reason is sent",
    ),
    bound(
        "subscriptions of a session; each pattern of topics counts",
        Constant("hub/src/gateway/limits.rs", "SUBSCRIPTIONS", "64", "64"),
        "a further one is refused, and the reason is sent",
    ),
    bound(
        "subscriptions of all sessions",
        Constant("hub/src/gateway/limits.rs", "ALL_SUBSCRIPTIONS", "2048", "2048"),
        "a further one is refused, and the reason is sent",
    ),
    bound(
        "publishers of a session",
        Constant("hub/src/gateway/limits.rs", "PUBLISHERS", "1024", "1024"),
        "a further one is refused, and the reason is sent",
    ),
    bound(
        "questions of a session that wait for their answer",
        Constant("hub/src/gateway/limits.rs", "QUESTIONS", "16", "16"),
        "a further one is refused, and the reason is sent",
    ),
    bound(
        "services that a session answers",
        Constant("hub/src/gateway/limits.rs", "SERVICES", "64", "64"),
        "a further one is refused, and the reason is sent",
    ),
    bound(
        "read callbacks and polls of a session",
        Constant("hub/src/gateway/limits.rs", "READS", "2048", "2048"),
        "a further one is refused, and the reason is sent",
    ),
    bound(
        "questions of the bus that a service of a session answers at once",
        Constant("hub/src/gateway/limits.rs", "PASSED_QUESTIONS", "16", "16"),
        "a further one is refused, and the asker gets the reason",
    ),
    bound(
        "questions of the bus that the sessions of a hub answer at once",
        Constant("hub/src/gateway/limits.rs", "ALL_PASSED", "1024", "1024"),
        "a further one is refused, and the asker gets the reason",
    ),
    bound(
        "question of the bus that is passed on to a session",
        Constant("hub/src/gateway/limits.rs", "PASSED_QUESTION", "64 << 10", "64 KiB"),
        "a longer one is refused, and the asker gets the reason",
    ),
    bound(
        "answer of a session to a question of the bus",
        Constant("hub/src/gateway/limits.rs", "ANSWER", "16 << 20", "16 MiB"),
        "the answer ends there, and asker and client get the reason",
    ),
    bound(
        "time for such an answer, in ms, if the client sets none",
        Constant("hub/src/gateway/limits.rs", "ANSWER_TIME", "10_000", "10 s"),
        "the question is refused, and the client is notified",
    ),
    bound(
        "body of a frame of a client",
        Constant("hub/src/gateway/limits.rs", "FRAME", "16 << 20", "16 MiB"),
        "the session ends, and the reason is sent",
    ),
    bound(
        "bytes that a session's client has not acknowledged",
        Constant("hub/src/gateway/limits.rs", "WINDOW", "8 << 20", "8 MiB"),
        "its subscriptions wait; beyond four times as much the session ends",
    ),
    bound(
        "such bytes of all sessions",
        Constant("hub/src/gateway/limits.rs", "ALL_WINDOWS", "256 << 20", "256 MiB"),
        "each session has a window of 256 KiB",
    ),
    bound(
        "bytes of batches that wait in the reader of a subscription",
        Constant("hub/src/gateway/limits.rs", "READER_QUEUE", "2 << 20", "2 MiB"),
        "batches stay in the writers' caches",
    ),
    bound(
        "bytes of events that wait in a subscription of attributes",
        Constant("hub/src/gateway/limits.rs", "EVENT_QUEUE", "1 << 20", "1 MiB"),
        "its readers wait, and so its servers; readers shared with other sessions drop the oldest, which the client is told as a gap",
    ),
    bound(
        "subscriptions of attributes with readers of their own, of all sessions",
        Constant("hub/src/gateway/limits.rs", "OWN_READERS", "256", "256"),
        "a further one shares its readers with other sessions",
    ),
    bound(
        "time for which a session without a connection lives",
        Constant("hub/src/gateway/limits.rs", "RESUME", "Duration::from_secs(60)", "60 s"),
        "it ends, and its source counts as dead",
    ),
];
