//! Notifications: rules by which a user is told of new entries, and what waits for a later mail.
//!
//! | subject | module |
//! |-|-|
//! | the rules of a user, quiet hours, and their checks | [`rule`] |
//! | which entries a rule means | [`matching`] |
//! | what waits for a digest or for the end of quiet hours | [`pending`] |
//! | the token of a link that ends a rule | [`unsubscribe`] |
//! | what an address of the web gets, and which addresses may be named | [`webhook`] |
//!
//! Nobody is told of their own entries. Rights are asked when the notification is made, and again when it is sent.

pub mod matching;
pub mod pending;
pub mod rule;
pub mod unsubscribe;
pub mod webhook;

pub use rule::{Digest, NotifyError, NotifyRule, NotifySettings, QuietHours, RuleAbout};
