//! The attached readers of a process, and the levels that they requested.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use tampu_bus::SourceState;
use tampu_types::{Incarnation, Level, glob};

/// Selection of an attached reader. In patterns `*` and `?` are wildcards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttachRequest {
    /// Lowest level of the requested records; `None` withdraws the attachment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// Patterns of the stable names of processes; all processes if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Patterns of the names of loggers; all named loggers if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loggers: Vec<String>,
}

impl AttachRequest {
    /// Returns whether it selects this logger of this process.
    pub fn concerns(&self, source: &str, logger: &str) -> bool {
        let any = |patterns: &[String], name: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| glob::matches_ignoring_case(pattern, name))
        };
        any(&self.sources, source) && any(&self.loggers, logger)
    }
}

/// All readers that are attached to a process's loggers.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    /// Requests by incarnation and stream: a process may have attached itself twice.
    by: HashMap<(Incarnation, u32), AttachRequest>,
    /// Silent processes, whose attachments do not count until they return.
    silent: Vec<Incarnation>,
}

impl Attached {
    /// Returns the lowest level that a reader requests of this logger.
    pub fn level(&self, source: &str, logger: &str) -> Option<Level> {
        let heard = self.by.iter().filter(|((from, _), _)| !self.silent.contains(from));
        heard.filter(|(_, wanted)| wanted.concerns(source, logger)).filter_map(|(_, wanted)| wanted.level).min()
    }

    /// Stores or withdraws the request of one reader.
    pub fn put(&mut self, from: Incarnation, stream: u32, wanted: AttachRequest) {
        if wanted.level.is_some() {
            self.by.insert((from, stream), wanted);
        } else {
            self.by.remove(&(from, stream));
        }
    }

    /// Takes note of the state of a process that may be attached.
    pub fn changed(&mut self, from: Incarnation, state: SourceState) {
        match state {
            SourceState::Silent => self.silent.push(from),
            SourceState::Appeared | SourceState::Returned => self.silent.retain(|other| *other != from),
            SourceState::Left | SourceState::Died => {
                self.by.retain(|(other, _), _| *other != from);
                self.silent.retain(|other| *other != from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(level: Option<Level>, sources: &[&str], loggers: &[&str]) -> AttachRequest {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        AttachRequest { level, sources: owned(sources), loggers: owned(loggers) }
    }

    #[test]
    fn the_lowest_level_wins_and_goes_with_who_wanted_it() {
        let life = |pid| Incarnation { boot: 1, pid, start: 1 };
        let mut attached = Attached::default();
        let level = |attached: &Attached| attached.level("CONTROL/DV01", "mount");
        assert_eq!(level(&attached), None);
        attached.put(life(1), 1, wanted(Some(Level::Debug), &[], &[]));
        attached.put(life(2), 1, wanted(Some(Level::Trace), &["control/*"], &["cryo", "m*"]));
        attached.put(life(2), 2, wanted(Some(Level::Trace), &["CORR/*"], &[]));
        assert_eq!(level(&attached), Some(Level::Trace));
        assert_eq!(attached.level("CONTROL/DV01", "other"), Some(Level::Debug));
        attached.changed(life(2), SourceState::Silent);
        assert_eq!(level(&attached), Some(Level::Debug));
        attached.changed(life(2), SourceState::Returned);
        assert_eq!(level(&attached), Some(Level::Trace));
        attached.put(life(2), 1, AttachRequest::default());
        assert_eq!(level(&attached), Some(Level::Debug));
        assert_eq!(attached.level("CORR/x", "y"), Some(Level::Trace));
        attached.changed(life(2), SourceState::Died);
        assert_eq!(attached.level("CORR/x", "y"), Some(Level::Debug));
        attached.changed(life(1), SourceState::Left);
        assert_eq!(level(&attached), None);
        assert!(attached.by.is_empty() && attached.silent.is_empty());
    }

    #[test]
    fn what_travels_is_what_the_contract_shows() {
        let page = include_str!("../../../../spec/log-services.md");
        let shown = serde_json::to_string(&wanted(Some(Level::Debug), &["CONTROL/*"], &["mount*"])).unwrap();
        assert!(page.contains(&shown), "spec/log-services.md does not show {shown}");
        assert_eq!(serde_json::from_str::<AttachRequest>("{\"of_tomorrow\":1}").unwrap(), AttachRequest::default());
    }
}
