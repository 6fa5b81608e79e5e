//! Settings of the routes.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};
use tampu_archive::query::{Field, Query};
use tampu_types::Level;

/// One rule, `[[route]]`. Different settings are combined with AND; several values of one setting with OR.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RouteSettings {
    /// Selects records of this level and more severe ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_level: Option<Level>,
    /// Selects records of these levels; with `min_level`, these as well.
    pub levels: Vec<Level>,
    /// Selects records for one of these audiences, and those without an audience.
    pub audiences: Vec<String>,
    /// Selects records about these components; `*` and `?` stand for any characters.
    pub source: Vec<String>,
    /// Names of processes.
    pub process: Vec<String>,
    /// Names of loggers.
    pub logger: Vec<String>,
    /// Names of hosts.
    pub host: Vec<String>,
    /// A text in the message or in one of its values, without case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// A regular expression for the message or one of its values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// The targets of these records.
    pub to: Vec<String>,
    /// If true, the records are stored in the archive, too.
    pub archive: bool,
    /// If true, later rules are skipped for these records.
    pub stop: bool,
}

impl Default for RouteSettings {
    fn default() -> RouteSettings {
        RouteSettings {
            min_level: None,
            levels: Vec::new(),
            audiences: Vec::new(),
            source: Vec::new(),
            process: Vec::new(),
            logger: Vec::new(),
            host: Vec::new(),
            contains: None,
            regex: None,
            to: Vec::new(),
            archive: true,
            stop: false,
        }
    }
}

impl RouteSettings {
    /// Returns the rule as a query.
    pub(crate) fn query(&self) -> Query {
        let named = [
            (Field::SourceObject, &self.source),
            (Field::Process, &self.process),
            (Field::Logger, &self.logger),
            (Field::Host, &self.host),
        ];
        Query {
            min_level: self.min_level,
            levels: self.levels.clone(),
            audiences: self.audiences.clone(),
            fields: named
                .into_iter()
                .filter(|(_, names)| !names.is_empty())
                .map(|(field, names)| (field, names.clone()))
                .collect::<BTreeMap<_, _>>(),
            text: self.contains.clone(),
            regex: self.regex.clone(),
            ..Query::default()
        }
    }
}

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// One line for people.
    #[default]
    Plain,
    /// JSON, one object on each line.
    Json,
    /// The XML of ACS's log files.
    Acs,
}

/// A target of records, `[target.NAME]`: a file, unless `syslog` is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TargetSettings {
    /// The file; the default is `routes/NAME.log` beside the archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The file's format.
    pub format: Format,
    /// Size in MiB after which the file becomes `FILE.1`, that `FILE.2`, and so on.
    pub size_mb: u64,
    /// Number of files, the current one included.
    pub files: u32,
    /// Another host that receives syslog: `udp HOST:PORT` or `tcp HOST:PORT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syslog: Option<String>,
    /// The syslog facility.
    pub facility: String,
}

impl Default for TargetSettings {
    fn default() -> TargetSettings {
        TargetSettings {
            file: None,
            format: Format::default(),
            size_mb: 100,
            files: 10,
            syslog: None,
            facility: "local0".to_owned(),
        }
    }
}
