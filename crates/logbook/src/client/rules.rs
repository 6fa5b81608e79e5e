//! The access rules of a hub.

use serde_json::Value;

use super::{Client, Result, address::encoded};

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

    /// Explains a decision about an action, as `GET /access/explain` returns it.
    pub fn explain(&self, who: &str, verb: &str, what: &str) -> Result<Value> {
        self.get(&format!("/access/explain?who={}&verb={}&what={}", encoded(who), encoded(verb), encoded(what)))
    }
}
