//! The test of a user's rule: a message by the way that the rule's mails take.

use tampu_logbook::{
    mail::{Mail, MailError, Outbox},
    notify::{NotifyRule, webhook},
    people::user::User,
};

use super::recipients;

/// A message that tests a rule, in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestMessage {
    /// The address that it goes to.
    pub to: String,
    /// Its name in the queue.
    pub id: String,
}

/// Queues the test of a rule, which `by` has asked for. `None` stands for a user without a usable mail address.
pub fn send(outbox: &Outbox, user: &User, rule: &NotifyRule, by: &str) -> Result<Option<TestMessage>, MailError> {
    if let Some(url) = &rule.webhook {
        let id = outbox.send_hook(url, "test of a webhook", webhook::test_message(rule, &user.login))?;
        return Ok(Some(TestMessage { to: url.clone(), id }));
    }
    let Some(to) = recipients::address(user) else { return Ok(None) };
    let mail = Mail {
        to: vec![to.clone()],
        subject: "Test of a rule of the logbook".to_owned(),
        text: format!("This is a test of the rule {}: {}.\nIt was asked for by {by}.\n", rule.id, rule.described()),
        ..Mail::default()
    };
    let id = outbox.send(&mail)?;
    Ok(Some(TestMessage { to, id }))
}
