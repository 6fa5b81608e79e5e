//! Bounds of mail that is sent.

use crate::bounds::bound::{
    Bound,
    Limit::{Constant, Setting},
    bound,
};

pub(super) const BOUNDS: &[Bound] = &[
    bound(
        "mails that wait",
        Setting("mail.queue", |config| config.mail.queue.to_string()),
        "further mails are refused, with a line in the log",
    ),
    bound(
        "MiB of waiting and failed mails",
        Setting("mail.queue_mb", |config| format!("{} MiB", config.mail.queue_mb)),
        "the same",
    ),
    bound(
        "hours until a mail that was not sent counts as failed",
        Setting("mail.give_up_h", |config| format!("{} h", config.mail.give_up_h)),
        "it stays listed until somebody retries or drops it",
    ),
    bound("failed mails that are kept", Constant("logbook/src/mail/queue.rs", "FAILED", "1000", "1000"), "the oldest is dropped"),
    bound("recipients of a mail", Constant("logbook/src/mail/message.rs", "RECIPIENTS", "1000", "1000"), "the mail is refused"),
];
