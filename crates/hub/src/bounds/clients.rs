//! Bounds of the libraries for Java, Python and TypeScript, in the program that uses them.

use super::bound::{
    Bound,
    Limit::{Constant, Other},
    bound,
};

pub(super) const BOUNDS: &[Bound] = &[
    bound(
        "Java: bytes of a session that the hub has not acknowledged",
        Constant("../bindings/java/tampu/src/main/java/org/tampu/internal/gateway/Session.java", "WINDOW", "8 << 20", "8 MiB"),
        "publications and questions wait",
    ),
    bound(
        "Java: longest pause between two attempts to reach the hub",
        Constant("../bindings/java/tampu/src/main/java/org/tampu/internal/gateway/Session.java", "LONGEST_PAUSE", "5000", "5 s"),
        "it tries again until the program ends the session",
    ),
    bound(
        "Java: body of a frame of the hub",
        Constant("../bindings/java/tampu/src/main/java/org/tampu/internal/gateway/Frame.java", "LONGEST", "16 << 20", "16 MiB"),
        "the connection ends",
    ),
    bound(
        "Java: bytes of events under way to a subscription",
        Constant("../bindings/java/tampu/src/main/java/org/tampu/event/Subscription.java", "CREDIT", "4 << 20", "4 MiB"),
        "the hub holds the next ones, within the bounds of the gateway",
    ),
    bound(
        "Java: bytes of announcements of receivers under way to a sender of bulk data",
        Constant(
            "../bindings/java/tampu/src/main/java/org/tampu/internal/bulk/FollowedReceivers.java",
            "CREDIT",
            "1 << 20",
            "1 MiB",
        ),
        "the hub holds the next ones",
    ),
    bound(
        "Java: frames of a flow of bulk data that are sent and not acknowledged; their bytes are a setting",
        Constant("../bindings/java/tampu/src/main/java/org/tampu/internal/bulk/SendWindow.java", "FRAMES", "8192", "8192"),
        "`send` waits",
    ),
    bound(
        "Java: senders of a receiver of bulk data",
        Constant("../bindings/java/tampu/src/main/java/org/tampu/bulk/BulkReceiver.java", "CONNECTIONS", "64", "64"),
        "a further one is rejected",
    ),
    bound(
        "Java: payload of a frame of bulk data that a receiver accepts",
        Constant("../bindings/java/tampu/src/main/java/org/tampu/bulk/BulkReceiver.java", "FRAME", "1 << 20", "1 MiB"),
        "senders cut their blocks",
    ),
    bound(
        "Java: lost ranges of a transfer of bulk data that are told apart",
        Constant("../bindings/java/tampu/src/main/java/org/tampu/internal/bulk/ReceivedFlow.java", "RANGES", "1024", "1024"),
        "the last one covers all that follow",
    ),
    bound(
        "Java: levels of a JSON text",
        Constant("../bindings/java/tampu/src/main/java/org/tampu/internal/json/Json.java", "DEEPEST", "64", "64"),
        "the text is refused",
    ),
    bound(
        "Python: bytes of events that wait in a subscription",
        Constant("../bindings/python/src/event/inbox.rs", "MOST_BYTES", "256 << 20", "256 MiB"),
        "the oldest is dropped and counted, and its attribute's next event reports it; with `in_place` the servers wait",
    ),
    bound(
        "TypeScript: bytes of publications and questions that the hub has not acknowledged (`maxWaitingBytes`)",
        Constant("../bindings/typescript/src/link.ts", "MAX_WAITING_BYTES", "8 << 20", "8 MiB"),
        "further ones are refused and counted, until `drained()`",
    ),
    bound(
        "TypeScript: longest pause between two attempts to reach the hub",
        Other("2 s"),
        "it tries again until the program ends the session",
    ),
    bound(
        "TypeScript: bytes of a subscription that wait for the program",
        Constant("../bindings/typescript/src/subscription.ts", "BUFFER", "1 << 20", "1 MiB"),
        "the hub holds the next ones, within the bounds of the gateway",
    ),
];
