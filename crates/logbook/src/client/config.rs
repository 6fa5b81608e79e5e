//! Configurations of a hub's logbooks, as text.

use serde_json::json;

use super::{Client, Result, address::encoded};
use crate::book::change::{ConfigChange, ConfigText};

impl Client {
    /// The configuration of a logbook.
    pub fn config(&self, book: &str) -> Result<ConfigText> {
        self.get(&format!("/books/{}/config", encoded(book)))
    }

    /// Changes the configuration of a logbook, if it is still at this version.
    pub fn set_config(&self, book: &str, text: &str, version: &str) -> Result<ConfigText> {
        let path = format!("/books/{}/config", encoded(book));
        let version = [("if-match", format!("\"{version}\""))];
        self.parse(self.call("PUT", &path, Some(&json!({ "text": text })), &version)?)
    }

    /// At most 50 changes of the configuration of a logbook before a number, the last one first.
    pub fn config_changes(&self, book: &str, before: Option<u32>) -> Result<Vec<ConfigChange>> {
        let before = before.map(|before| format!("?before={before}")).unwrap_or_default();
        self.get(&format!("/books/{}/config/history{before}", encoded(book)))
    }

    /// A change of the configuration of a logbook, with its texts.
    pub fn config_change(&self, book: &str, number: u32) -> Result<ConfigChange> {
        self.get(&format!("/books/{}/config/history/{number}", encoded(book)))
    }

    /// Restores the configuration after a change, or before it.
    pub fn restore_config(&self, book: &str, number: u32, before: bool) -> Result<ConfigText> {
        let path = format!("/books/{}/config/history/{number}/restore?before={before}", encoded(book));
        self.parse(self.call("POST", &path, None, &[])?)
    }
}
