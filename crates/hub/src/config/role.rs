//! Roles of a hub, by their names in settings.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::ConfigError;

/// A role of a hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Serves one host: its processes connect to it.
    Node,
    /// Stores the logs and answers queries.
    Collector,
    /// Serves the logbook.
    Book,
    /// Serves the web console.
    Console,
}

impl Role {
    /// All roles, in order.
    pub const ALL: [Role; 4] = [Role::Node, Role::Collector, Role::Book, Role::Console];

    /// The default roles.
    pub const USUAL: [Role; 3] = [Role::Node, Role::Collector, Role::Book];

    /// Returns the name of the role in settings.
    pub fn name(self) -> &'static str {
        match self {
            Role::Node => "node",
            Role::Collector => "collector",
            Role::Book => "book",
            Role::Console => "console",
        }
    }

    /// Returns true if this release implements the role.
    pub fn is_here(self) -> bool {
        !matches!(self, Role::Console)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Role {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Role, ConfigError> {
        let known = Role::ALL.into_iter().find(|role| role.name().eq_ignore_ascii_case(text.trim()));
        known.ok_or_else(|| ConfigError::Value {
            setting: "roles".to_owned(),
            why: format!("unknown role '{text}'; this release has node, collector and book"),
        })
    }
}
