//! Bounds of logins, registrations and tokens.

use crate::bounds::bound::{Bound, Limit::Constant, bound};

pub(super) const BOUNDS: &[Bound] = &[
    bound(
        "wrong passwords of a login from one address",
        Constant("logbook/src/people/attempts.rs", "LOGIN_FREE", "5", "5"),
        "further tries from this address wait, at most a minute",
    ),
    bound(
        "wrong passwords of all logins from one address",
        Constant("logbook/src/people/attempts.rs", "ADDRESS_FREE", "30", "30"),
        "further tries from this address wait, at most 15 minutes",
    ),
    bound(
        "changes of a logbook's configuration that are kept",
        Constant("logbook/src/book/change.rs", "MAX_CHANGES", "200", "200"),
        "the oldest one is dropped",
    ),
    bound(
        "registrations that wait for an administrator",
        Constant("logbook/src/people/registration.rs", "MAX_WAITING", "500", "500"),
        "a further one is refused, and says so",
    ),
    bound(
        "registrations of one address in an hour",
        Constant("logbook/src/people/registration.rs", "OF_ONE_ADDRESS", "5", "5"),
        "429 with the time to wait",
    ),
    bound(
        "requests for a new password of one address in an hour",
        Constant("logbook/src/people/reset.rs", "OF_ONE_ADDRESS", "5", "5"),
        "429 with the time to wait",
    ),
    bound(
        "time between two mails with a new password to one user",
        Constant("logbook/src/people/reset.rs", "PAUSE", "Duration::from_secs(120)", "120 s"),
        "a request in between sends nothing",
    ),
    bound(
        "life of a link for a new password",
        Constant("logbook/src/people/reset.rs", "LIFE", "Duration::from_secs(30 * 60)", "30 min"),
        "the link has expired",
    ),
    bound(
        "requests for a new password at a time",
        Constant("logbook/src/people/reset.rs", "MAX_WORKING", "4", "4"),
        "503 with Retry-After",
    ),
    bound(
        "life of a token without an end",
        Constant("logbook/src/people/token.rs", "LIFE", "365 * 86_400 * 1_000_000_000", "a year"),
        "the token is no longer accepted",
    ),
];
