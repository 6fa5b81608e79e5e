//! Settings of flows in a configuration file, and of a program from all its places.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{
    applied::{BadCombination, FlowValues},
    environment::{self, BadVariable},
    table::{BadFlow, Bulk, Direction, FlowPatch},
};

/// Errors of the settings of flows.
#[derive(Debug, thiserror::Error)]
pub enum BadFlowSettings {
    /// The file cannot be read.
    #[error(
        "the configuration {path}: {why}; name a file that this process may read in TAMPU_CONFIG, or unset it to have no settings of a site"
    )]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The system's reason.
        why: io::Error,
    },
    /// The text is invalid.
    #[error("the configuration {path}, line {line}: {why}")]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// Reason of the reader of TOML.
        why: String,
    },
    /// An entry is invalid.
    #[error("the configuration {path}, [[bulk.flow]] {why}")]
    Flow {
        /// Path of the file.
        path: PathBuf,
        /// The reason why it is invalid.
        why: BadFlow,
    },
    /// A variable is invalid.
    #[error(transparent)]
    Variable(#[from] BadVariable),
    /// Settings contradict each other.
    #[error("the flow {flow}: {why}")]
    Combination {
        /// The flow, as `stream#flow`.
        flow: String,
        /// The settings that contradict each other.
        why: BadCombination,
    },
}

/// The part of a hub's configuration that is about flows. The hub checks the other parts.
#[derive(Deserialize)]
struct OfFlows {
    #[serde(default)]
    bulk: Bulk,
}

impl Bulk {
    /// Reads the entries in a configuration file and checks them.
    pub fn from_file(path: &Path) -> Result<Bulk, BadFlowSettings> {
        let text = fs::read_to_string(path).map_err(|why| BadFlowSettings::File { path: path.to_owned(), why })?;
        let file: OfFlows = toml::from_str(&text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start).min(text.len());
            let line = text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1;
            BadFlowSettings::Line { path: path.to_owned(), line, why: error.message().trim().replace('\n', "; ") }
        })?;
        file.bulk.checked(path)
    }

    /// Returns the entries of this file if they are valid.
    pub fn checked(self, path: &Path) -> Result<Bulk, BadFlowSettings> {
        match self.check() {
            Ok(()) => Ok(self),
            Err(why) => Err(BadFlowSettings::Flow { path: path.to_owned(), why }),
        }
    }
}

/// Returns the settings of one side of the flow that `said` names: those of the file that `TAMPU_CONFIG` names, overridden
/// by the environment, overridden by `said`.
pub fn of_program(direction: Direction, said: &FlowPatch) -> Result<FlowValues, BadFlowSettings> {
    of(direction, said, &|name| std::env::var(name).ok())
}

fn of(direction: Direction, said: &FlowPatch, variable: &dyn Fn(&str) -> Option<String>) -> Result<FlowValues, BadFlowSettings> {
    let file = match variable("TAMPU_CONFIG").filter(|path| !path.is_empty()) {
        Some(path) => Bulk::from_file(Path::new(&path))?,
        None => Bulk::default(),
    };
    let environment = environment::read(FlowPatch::new(said.stream.clone(), said.flow.clone()), direction, variable)?;
    let file = file.of(&said.stream, &said.flow, direction);
    FlowValues::new(file, &[&environment, said])
        .map_err(|why| BadFlowSettings::Combination { flow: format!("{}#{}", said.stream, said.flow), why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Name, sender::SendFlow};

    #[test]
    fn the_call_beats_the_environment_which_beats_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hub.toml");
        let text = "domain = \"d\"\n[[bulk.flow]]\nstream = \"s\"\nreceivers = 2\nthrottle_mb = 3\nchecksum = true\n\
                    [[bulk.flow]]\nstream = \"s\"\ndirection = \"recv\"\nchecksum = false\n";
        fs::write(&path, text).unwrap();
        let name = Name::new("data").unwrap();
        let said = FlowPatch { throttle_mb: Some(9.0), ..FlowPatch::new(Name::new("s").unwrap(), name.clone()) };
        let variable = |name: &str| match name {
            "TAMPU_CONFIG" => path.to_str().map(str::to_owned),
            "TAMPU_BULK_RECEIVERS" => Some("5".to_owned()),
            "TAMPU_BULK_THROTTLE" => Some("7MB".to_owned()),
            _ => None,
        };
        let flow = of(Direction::Send, &said, &variable).unwrap().to_sent(SendFlow::new(name)).unwrap();
        assert_eq!((flow.receivers, flow.throttle, flow.checked), (5, Some(9e6), true));
    }

    #[test]
    fn errors_name_the_file_the_place_and_the_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hub.toml");
        let said = FlowPatch::new(Name::new("s").unwrap(), Name::new("data").unwrap());
        let why = |text: Option<&str>, more: Option<(&str, &str)>| {
            if let Some(text) = text {
                fs::write(&path, text).unwrap();
            }
            let variable = |name: &str| match more {
                Some((known, value)) if known == name => Some(value.to_owned()),
                _ => (name == "TAMPU_CONFIG").then(|| path.display().to_string()),
            };
            of(Direction::Send, &said, &variable).unwrap_err().to_string()
        };
        let missing = why(None, None);
        assert!(missing.contains("hub.toml: No such file") && missing.contains("in TAMPU_CONFIG, or unset it"), "{missing}");
        let line = why(Some("[log]\n[[bulk.flow]]\nstream = \"s\"\nprotokol = \"tcp\"\n"), None);
        assert!(line.contains("hub.toml, line 4: unknown field `protokol`"), "{line}");
        let table = why(Some("[bulk]\nflows = 1\n"), None);
        assert!(table.contains("hub.toml, line 2: unknown field `flows`"), "{table}");
        let side = why(Some("[[bulk.flow]]\nstream = \"t\"\ndirection = \"recv\"\nreceivers = 1\n"), None);
        assert!(side.contains("hub.toml, [[bulk.flow]] of t#data: receivers: this setting belongs to the other side"), "{side}");
        let group = why(Some(""), Some(("TAMPU_BULK_TTL", "2")));
        assert_eq!(group, "the flow s#data: an interface and a ttl are those of a multicast group; set a group too");
        let odd = why(Some(""), Some(("TAMPU_BULK_SLOW", "wait")));
        assert_eq!(odd, "TAMPU_BULK_SLOW: invalid value 'wait': give one of cut, skip");
    }
}
