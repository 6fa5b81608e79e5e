//! The access rules and the changeable settings of a hub.

use serde_json::{Value, json};

use super::{Client, Result, address::encoded};

/// The address of a setting.
fn setting(name: &str, confirm: bool) -> String {
    format!("/settings/{}{}", encoded(name), if confirm { "?confirm=true" } else { "" })
}

impl Client {
    /// The rules in force, as `GET /access` returns them.
    pub fn rules(&self) -> Result<Value> {
        self.get("/access")
    }

    /// Adds a rule, and returns it with its file and line.
    pub fn add_rule(&self, rule: &Value) -> Result<Value> {
        self.call("POST", "/access/rules", Some(rule), &[])
    }

    /// Removes the rule that begins at a line of the policy file.
    pub fn drop_rule(&self, line: usize) -> Result<()> {
        self.call("DELETE", &format!("/access/rules/{line}"), None, &[]).map(drop)
    }

    /// Retention, quotas and routes, as `GET /settings` returns them.
    pub fn settings(&self) -> Result<Value> {
        self.get("/settings")
    }

    /// Changes a setting, and returns all. A change that removes records has to be confirmed.
    pub fn change_setting(&self, name: &str, value: &Value, confirm: bool) -> Result<Value> {
        self.call("PUT", &setting(name, confirm), Some(&json!({ "value": value })), &[])
    }

    /// Takes the change of a setting back, and returns all. One that removes records has to be confirmed.
    pub fn reset_setting(&self, name: &str, confirm: bool) -> Result<Value> {
        self.call("DELETE", &setting(name, confirm), None, &[])
    }

    /// Explains a decision about an action, as `GET /access/explain` returns it.
    pub fn explain(&self, who: &str, verb: &str, what: &str) -> Result<Value> {
        self.get(&format!("/access/explain?who={}&verb={}&what={}", encoded(who), encoded(verb), encoded(what)))
    }
}
