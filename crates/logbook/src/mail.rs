//! Mail that the logbook sends: a queue on disk, and a worker that gives it to the site's mail server.
//!
//! | subject | module |
//! |-|-|
//! | the section `[mail]` of the hub's configuration | [`settings`] |
//! | a mail, and its text for the wire | [`message`] |
//! | the queue on disk: mails that wait, mails that failed | [`queue`] |
//! | the conversation with the mail server | [`smtp`] |
//! | mails about accounts | [`accounts`] |
//! | the sender: queue and worker together | [`outbox`] |
//! | Message-IDs of mails about entries | [`thread`] |
//! | mails whose entries were purged | [`purged`] |
//!
//! A mail is durable once [`Outbox::send`] has returned. The worker offers it until the server has accepted it for each
//! recipient, has refused it for good, or the time limit has passed. What failed stays listed until somebody retries or
//! drops it. A server that dies after it accepted a mail and before it said so gets the mail again, with the same
//! Message-ID.

pub mod accounts;
pub mod message;
pub mod outbox;
pub mod purged;
pub mod queue;
pub mod settings;
pub mod smtp;
pub mod thread;

pub use message::{Mail, MailError, MailFile};
pub use outbox::Outbox;
pub use settings::{MailSettings, MailTls};
