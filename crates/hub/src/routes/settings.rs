//! What a site says of its routes.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};
use tampu_log::query::{Field, Query};
use tampu_types::Level;

/// One rule, `[[route]]`. All that is given must hold; of several values of one setting any may.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RouteSettings {
    /// This level and graver ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_level: Option<Level>,
    /// These levels; with `min_level`, these as well.
    pub levels: Vec<Level>,
    /// Records for one of these audiences, and those for everybody.
    pub audiences: Vec<String>,
    /// Components the records are about; `*` and `?` stand for any characters.
    pub source: Vec<String>,
    /// Processes.
    pub process: Vec<String>,
    /// Named loggers.
    pub logger: Vec<String>,
    /// Hosts.
    pub host: Vec<String>,
    /// A text in the message or a value beside it, without case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// A regular expression that one of them matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// The targets these records go to.
    pub to: Vec<String>,
    /// Whether they are kept in the archive, too.
    pub archive: bool,
    /// Whether later rules are not asked about them.
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
    /// Its records as a query.
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

/// How records look in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A line for people.
    #[default]
    Plain,
    /// JSON, one object a line.
    Json,
    /// ACS XML.
    Acs,
}

/// Where records go, `[target.NAME]`: a file, unless `syslog` is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TargetSettings {
    /// The file; without it `routes/NAME.log` beside the archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// How records look in it.
    pub format: Format,
    /// MiB after which it becomes `FILE.1`, that `FILE.2`, and so on.
    pub size_mb: u64,
    /// How many there are, the one that is written included.
    pub files: u32,
    /// Another host that takes syslog: `udp HOST:PORT` or `tcp HOST:PORT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syslog: Option<String>,
    /// The facility there.
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
