//! Bounds of requests that wait, and of hashes of passwords.

use crate::bounds::bound::{Bound, Limit::Constant, bound};

pub(super) const BOUNDS: &[Bound] = &[
    bound("changes at a time", Constant("hub/src/http/admission.rs", "CHANGES", "8", "8"), "further ones wait"),
    bound("large bodies at a time", Constant("hub/src/http/admission.rs", "UPLOADS", "8", "8"), "further ones wait"),
    bound(
        "large bodies of one address at a time",
        Constant("hub/src/http/admission.rs", "UPLOADS_OF_ONE", "4", "4"),
        "further ones wait",
    ),
    bound(
        "requests that wait",
        Constant("hub/src/http/admission.rs", "WAITING", "512", "512, for 10 s"),
        "503 with `Retry-After`",
    ),
    bound(
        "requests of one kind that wait",
        Constant("hub/src/http/admission.rs", "WAITING_OF_A_KIND", "128", "128, for 10 s"),
        "503 with `Retry-After`",
    ),
    bound(
        "passwords hashed at a time, with 19 MiB each",
        Constant("logbook/src/people/hash_memory.rs", "KEPT", "2", "2"),
        "further ones wait",
    ),
    bound(
        "requests that wait for a hash",
        Constant("logbook/src/people/hashing.rs", "WAITING", "6", "6"),
        "503 with `Retry-After`",
    ),
    bound(
        "requests of one address that are hashed or wait for it",
        Constant("logbook/src/people/hashing.rs", "OF_ONE", "4", "4"),
        "503 with `Retry-After`",
    ),
    bound(
        "passwords that login methods check at a time",
        Constant("logbook/src/people/outside.rs", "MAX_ASKING", "6", "6"),
        "503 with `Retry-After`",
    ),
    bound(
        "of them, requests that wait for providers of identities",
        Constant("logbook/src/people/outside.rs", "MAX_ASKING_PROVIDERS", "3", "3"),
        "503 with `Retry-After`",
    ),
    bound(
        "stored groups of a user from outside",
        Constant("logbook/src/people/outside.rs", "MAX_GROUPS", "256", "256"),
        "those without a rule are left out",
    ),
    bound(
        "slowest reader of a response, in bytes a second",
        Constant(
            "hub/src/http/socket.rs",
            "SLOWEST_READER",
            "8 << 10",
            "8 KiB, after 30 s; a third of the kernel's buffer at least",
        ),
        "the connection is closed",
    ),
    bound(
        "time for a connection to the database",
        Constant("logbook/src/store/error.rs", "WAIT", "Duration::from_secs(10)", "10 s"),
        "503 with `Retry-After`",
    ),
];
