//! Bounds of the gateway.

use std::time::Duration;

/// Sessions, with and without a connection.
pub(crate) const SESSIONS: usize = 1024;
/// Sessions without a connection that wait to be resumed.
pub(crate) const DETACHED: usize = 256;
/// Connections whose HELLO has not come.
pub(crate) const UNGREETED: usize = 64;
/// Subscriptions of a session; each pattern of topics counts.
pub(crate) const SUBSCRIPTIONS: usize = 64;
/// Subscriptions of all sessions.
pub(crate) const ALL_SUBSCRIPTIONS: usize = 2048;
/// Publishers of a session.
pub(crate) const PUBLISHERS: usize = 1024;
/// Questions of a session that wait for their answer.
pub(crate) const QUESTIONS: usize = 16;
/// Connections of guests by WebSocket, and of one address.
pub(crate) const GUESTS: usize = 64;
pub(crate) const GUESTS_OF_ONE: usize = 8;
/// Sessions of guests, with and without a connection, and those without.
pub(crate) const GUEST_SESSIONS: usize = 128;
pub(crate) const GUESTS_DETACHED: usize = 32;
/// Subscriptions of a guest's session.
pub(crate) const GUEST_SUBSCRIPTIONS: usize = 16;
/// Publishers of a guest's session.
pub(crate) const GUEST_PUBLISHERS: usize = 4;
/// Questions of a guest's session that wait for their answer.
pub(crate) const GUEST_QUESTIONS: usize = 2;
/// Questions of all guests that wait, so that services have places for the others.
pub(crate) const ALL_GUEST_QUESTIONS: usize = 4;
/// Services that a session answers.
pub(crate) const SERVICES: usize = 64;
/// Read callbacks of a session: a poll and a callback for each of its publishers.
pub(crate) const READS: usize = 2048;
/// Questions of the bus that a service of a client answers at once.
pub(crate) const PASSED_QUESTIONS: usize = 16;
/// Questions of the bus that the clients of all sessions answer at once.
pub(crate) const ALL_PASSED: usize = 1024;
/// Longest question that is passed on to a client, in bytes.
pub(crate) const PASSED_QUESTION: usize = 64 << 10;
/// Longest answer of a client, in bytes.
pub(crate) const ANSWER: usize = 16 << 20;
/// Time for an answer if the client sets none, in ms.
pub(crate) const ANSWER_TIME: u32 = 10_000;
/// Longest body of a client's frame, in bytes.
pub(crate) const FRAME: u32 = 16 << 20;
/// Shortest limit for the hub's frames that a client may set, in bytes.
pub(crate) const LEAST_FRAME: u32 = 64 << 10;
/// Bytes of frames that are kept until the client acknowledges them.
pub(crate) const WINDOW: usize = 8 << 20;
/// Bytes of such frames of all sessions, beyond which each session has a small window.
pub(crate) const ALL_WINDOWS: usize = 256 << 20;
/// Window of a session while all of them keep too much, in bytes.
pub(crate) const SMALL_WINDOW: usize = 256 << 10;
/// Bytes of batches that wait in the reader of a subscription.
pub(crate) const READER_QUEUE: usize = 2 << 20;
/// Subscriptions of attributes with readers of their own, of all sessions.
pub(crate) const OWN_READERS: usize = 256;
/// Bytes of events that wait in a subscription of attributes.
pub(crate) const EVENT_QUEUE: usize = 1 << 20;

/// Longest time between two frames of a side. Each beat of an idle session wakes a thread of the hub.
pub(crate) const BEAT: Duration = Duration::from_secs(4);
/// Silence of three beats, after which a connection is closed.
pub(crate) const SILENCE: Duration = Duration::from_secs(12);
/// Time for HELLO.
pub(crate) const GREETING: Duration = Duration::from_secs(10);
/// Time for which a session without a connection lives.
pub(crate) const RESUME: Duration = Duration::from_secs(60);
/// Connections by WebSocket; the rest of the HTTP server's connections is left to the pages.
pub(crate) const WEB: usize = 256;
/// Connections by WebSocket of one address; for IPv6, of one network of 64 bits.
pub(crate) const WEB_OF_ONE: usize = 32;
