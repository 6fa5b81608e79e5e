//! Settings of named loggers.

use serde::{Deserialize, Serialize};

use crate::logger::{repeat::RepeatGuard, threshold::Threshold};

/// Settings of named loggers in a file: `[[logger]]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoggerPatch {
    /// Patterns of logger names; `*` and `?` are wildcards. Without it: all loggers that no other entry names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The processes it is for, by their stable names; all without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Lowest published level.
    pub level: Option<Threshold>,
    /// Lowest printed level.
    pub local: Option<Threshold>,
    /// Their guard against repetitions.
    pub repeat: Option<RepeatGuard>,
}
