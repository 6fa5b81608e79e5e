//! Attached readers: who wants to see, for as long as it looks, what the loggers' own levels keep in their processes.
//!
//! Decision: an attachment is a sample on the topic [`ATTACH`], in the name of who attaches, and lasts as long as that process
//! does (or until it takes it back). Every process that logs reads the topic, the past included, so also one that starts later
//! attaches itself; and who has died, hangs or is cut off is told by the bus like every writer, within 100 ms or 2 s: nobody has
//! to renew or to clean up. Where several are attached to a logger the lowest level wins.
//!
//! Rejected: that a mere subscription to `log/debug` turns levels down. The collector subscribes to all levels, and who only looks
//! must not make an instrument work more without having said so. Rejected too: setting levels by `log/levels` and setting them back
//! afterwards, which nobody does who was killed.
//!
//! What is published for attached readers alone goes to topics of its own, `log-attached/<level>`, so that the archive is not
//! filled with what its site did not want in it: a collector takes them in only where its settings say so (`keep_attached`).
//!
//! A process takes no attachments where its settings (`attach = false`) or its rules say so; they ask whether who is let in on the
//! bus may *change* the service `log/levels`, which is what an attachment amounts to.

use std::{collections::HashMap, time::Duration};

use serde::{Deserialize, Serialize};
use tampu_bus::{
    BusError, Event, History, Participant, Qos, Reader, ReaderQos, SourceState, TypeTag, WriteError, Writer,
    access::{Resource, Verb},
};
use tampu_types::{Incarnation, Level, Partition, PartitionFilter, TopicFilter, TopicName, name::BadTopic};

use crate::{
    logger::control::{Controlled, LEVELS},
    query::is_named,
};

/// The topic of attachments.
pub const ATTACH: &str = "log-attach";

/// What its samples are: JSON.
pub const LOG_ATTACHMENT: TypeTag = TypeTag { id: 3, version: 1 };

/// The topic of a level's records that are published for attached readers alone: `log-attached/debug`.
pub fn attached_topic_of(level: Level) -> Result<TopicName, BadTopic> {
    TopicName::new(format!("log-attached/{}", level.name().to_lowercase()))
}

/// What somebody wants to see. In patterns `*` and `?` stand for any characters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wanted {
    /// Records from this level on; none takes the attachment back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// Of processes whose stable name matches one of these; of all, where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Of their named loggers that match one of these; of all, where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loggers: Vec<String>,
}

/// The longest list of patterns that is looked at; they are matched against every logger's name.
const PATTERNS: usize = 64;

impl Wanted {
    /// Whether it is about this logger of this process.
    pub fn concerns(&self, source: &str, logger: &str) -> bool {
        let any = |patterns: &[String], name: &str| patterns.is_empty() || patterns.iter().any(|pattern| is_named(pattern, name));
        any(&self.sources, source) && any(&self.loggers, logger)
    }
}

/// An attachment of this process; taken back when dropped.
pub struct Attachment {
    writer: Writer,
}

/// Why there is no attachment.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The bus says no.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// It was not taken.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The topic is none.
    #[error(transparent)]
    Topic(#[from] BadTopic),
    /// It cannot be written down.
    #[error("an attachment as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Attachment {
    /// Attaches this process to the loggers that are concerned, now and while it lasts.
    pub fn begin(participant: &Participant, wanted: &Wanted) -> Result<Attachment, AttachError> {
        let topic = TopicName::new(ATTACH)?;
        let qos = participant.qos_over(Qos { linger: Duration::ZERO, ..Qos::default() }, &topic);
        let writer = participant.writer(&topic, &Partition::everybody(), LOG_ATTACHMENT, qos)?;
        writer.write_urgent(&serde_json::to_vec(wanted)?)?;
        Ok(Attachment { writer })
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        // Who does not hear of it hears that the process has left.
        let _ = self.writer.write_urgent(b"{}");
        self.writer.flush(Duration::from_millis(100));
    }
}

/// Everybody who is attached to a process's loggers.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    /// By life and stream: a process may have attached itself twice.
    by: HashMap<(Incarnation, u32), Wanted>,
    /// Whose attachments do not count just now, because nothing is heard of them.
    silent: Vec<Incarnation>,
}

impl Attached {
    /// From which level on records of this logger are wanted by somebody.
    pub fn level(&self, source: &str, logger: &str) -> Option<Level> {
        let heard = self.by.iter().filter(|((from, _), _)| !self.silent.contains(from));
        heard.filter(|(_, wanted)| wanted.concerns(source, logger)).filter_map(|(_, wanted)| wanted.level).min()
    }

    /// Takes what somebody wants, or takes it back.
    pub fn put(&mut self, from: Incarnation, stream: u32, wanted: Wanted) {
        if wanted.level.is_some() {
            self.by.insert((from, stream), wanted);
        } else {
            self.by.remove(&(from, stream));
        }
    }

    /// How a process is that may be attached.
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

/// A process's ear for attachments.
pub(crate) struct Ear {
    reader: Reader,
}

impl Ear {
    /// Hears of those that are there and of those that come.
    pub fn open(participant: &Participant) -> Result<Ear, AttachError> {
        let qos = ReaderQos { history: History::All, ..ReaderQos::default() };
        let reader = participant.reader(&TopicFilter::new(ATTACH)?, &PartitionFilter::All, qos)?;
        Ok(Ear { reader })
    }

    /// Tells the loggers what has come since. Does not wait.
    pub fn hear(&mut self, loggers: &dyn Controlled) {
        while let Some(event) = self.reader.next(Duration::ZERO) {
            match event {
                Event::Sample(sample) => {
                    let stream = sample.stream;
                    let parse = |bytes: &[u8]| serde_json::from_slice::<Wanted>(bytes).ok();
                    // What cannot be read is of a later release, which will know that older ones do not follow.
                    let Ok(Some(wanted)) = sample.payload.with(parse) else { continue };
                    let allowed = loggers.access().ask(Verb::Change, &Resource::Service(LEVELS.to_owned())).is_ok();
                    let bounded = wanted.sources.len() + wanted.loggers.len() <= PATTERNS;
                    if allowed && bounded {
                        loggers.attach(&|attached| attached.put(stream.incarnation, stream.stream, wanted.clone()));
                    }
                }
                Event::Source(change) => loggers.attach(&|attached| attached.changed(change.incarnation, change.state)),
                Event::Gap(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(level: Option<Level>, sources: &[&str], loggers: &[&str]) -> Wanted {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Wanted { level, sources: owned(sources), loggers: owned(loggers) }
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
        attached.put(life(2), 1, Wanted::default());
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
        assert_eq!(serde_json::from_str::<Wanted>("{\"of_tomorrow\":1}").unwrap(), Wanted::default());
    }
}
