//! The rules by which users are mailed new entries.

use serde_json::Value;

use super::{Client, Result, address::encoded, to_json};
use crate::notify::{NotifyRule, NotifySettings, QuietHours};

impl Client {
    /// Returns the login of the caller.
    pub fn own_login(&self) -> Result<String> {
        let who: Value = self.get("/whoami")?;
        Ok(who["login"].as_str().unwrap_or_default().to_owned())
    }

    /// Returns the rules and quiet hours of a user.
    pub fn notify_rules(&self, login: &str) -> Result<NotifySettings> {
        self.get(&format!("/users/{}/rules", encoded(login)))
    }

    /// Adds a rule, and returns it with its name.
    pub fn add_notify_rule(&self, login: &str, rule: &NotifyRule) -> Result<NotifyRule> {
        let mut body = to_json(rule)?;
        // The logbook sets both.
        if let Some(fields) = body.as_object_mut() {
            fields.remove("id");
            fields.remove("since");
        }
        self.parse(self.call("POST", &format!("/users/{}/rules", encoded(login)), Some(&body), &[])?)
    }

    /// Removes a rule.
    pub fn remove_notify_rule(&self, login: &str, id: &str) -> Result<()> {
        self.call("DELETE", &format!("/users/{}/rules/{}", encoded(login), encoded(id)), None, &[]).map(drop)
    }

    /// Puts a mail for a test of a rule into the queue.
    pub fn test_notify_rule(&self, login: &str, id: &str) -> Result<Value> {
        self.call("POST", &format!("/users/{}/rules/{}/test", encoded(login), encoded(id)), None, &[])
    }

    /// Sets or removes the quiet hours of a user.
    pub fn set_quiet_hours(&self, login: &str, quiet: Option<&QuietHours>) -> Result<()> {
        let path = format!("/users/{}/quiet", encoded(login));
        match quiet {
            Some(quiet) => self.call("PUT", &path, Some(&to_json(quiet)?), &[]).map(drop),
            None => self.call("DELETE", &path, None, &[]).map(drop),
        }
    }
}
