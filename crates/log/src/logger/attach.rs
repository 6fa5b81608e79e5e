//! Attached readers: each sees, while it is attached, records that the loggers' own levels would keep in their
//! processes.
//!
//! Decision: an attachment is a sample on the topic [`ATTACH`], published by the attached process. It lasts until that
//! process withdraws it or ends. Every process that logs reads the topic, the past included, so a process that starts
//! later attaches itself too. The bus reports a process that has died, hangs or is cut off, as for every writer, within
//! 100 ms or 2 s. So nothing has to be renewed or cleaned up. Where several readers are attached to a logger, the
//! lowest level wins.
//!
//! Rejected: a mere subscription to `log/debug` lowers levels. The collector subscribes to all levels, and a passive
//! reader must not cause work in an instrument without a request. Rejected: setting levels by `log/levels` and
//! resetting them afterwards, because a killed process resets nothing.
//!
//! Records published for attached readers alone go to topics of their own, `log-attached/<level>`. They do not fill the
//! archive with unwanted records: a collector keeps them only where its settings say so (`keep_attached`).
//!
//! A process ignores attachments where its settings (`attach = false`) or its rules forbid them. The rules check
//! whether the reader may *set* the service `log/levels` on the bus, because an attachment has the same effect.

use std::time::Duration;

use bytes::Bytes;
use tampu_bus::{
    BusError, Event, History, Participant, Qos, Reader, ReaderQos, Subject, TypeTag, WriteError, Writer,
    access::{Access, Resource, Verb},
};
use tampu_types::{Level, Partition, PartitionFilter, TopicFilter, TopicName, name::BadTopic};

use crate::logger::control::{Controlled, LEVELS};

pub use crate::logger::attached::AttachRequest;

/// The topic of attachments.
pub const ATTACH: &str = "log-attach";

/// Type of the topic's samples: JSON.
pub const LOG_ATTACHMENT: TypeTag = TypeTag { id: 3, version: 1 };

/// The topic of a level's records that are published for attached readers alone: `log-attached/debug`.
pub fn attached_topic_of(level: Level) -> Result<TopicName, BadTopic> {
    TopicName::new(format!("log-attached/{}", level.name().to_lowercase()))
}

/// The longest list of patterns that is accepted; every logger's name is matched against them.
const PATTERNS: usize = 64;

/// An attachment of this process; taken back when dropped.
pub struct Attachment {
    writer: Writer,
}

/// Reason why a reader could not attach.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Error of the bus.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// Failure of the write.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Invalid topic name.
    #[error(transparent)]
    Topic(#[from] BadTopic),
    /// Failure of the encoding.
    #[error("an attachment as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Attachment {
    /// Attaches this process to the loggers that are concerned, now and while it lasts.
    pub fn begin(participant: &Participant, wanted: &AttachRequest) -> Result<Attachment, AttachError> {
        let topic = TopicName::new(ATTACH)?;
        let everybody = Partition::everybody();
        let subject = Subject::new(&topic, &everybody);
        let default = Qos { linger: Duration::ZERO, ..Qos::default() };
        let writer = participant.writer_for(&subject, LOG_ATTACHMENT, default)?;
        // The proof lets the local user attach on a bus that the network reaches.
        writer.write_urgent(&participant.sealed(ATTACH, serde_json::to_vec(wanted)?.into()))?;
        Ok(Attachment { writer })
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        // A process that misses this message learns from presence that the viewer has left.
        let _ = self.writer.write_urgent(b"{}");
        self.writer.flush(Duration::from_millis(100));
    }
}

/// A process's ear for attachments.
pub(crate) struct AttachmentReader {
    reader: Reader,
    access: Access,
}

impl AttachmentReader {
    /// Opens a reader of present and future attachments.
    pub fn open(participant: &Participant, access: &Access) -> Result<AttachmentReader, AttachError> {
        let qos = ReaderQos { history: History::All, ..ReaderQos::default() };
        let reader = participant.reader(&TopicFilter::new(ATTACH)?, &PartitionFilter::All, qos)?;
        Ok(AttachmentReader { reader, access: access.bound_to(participant) })
    }

    /// Passes the attachments received since the last call to the loggers. Does not block.
    pub fn hear(&mut self, loggers: &dyn Controlled) {
        while let Some(event) = self.reader.next(Duration::ZERO) {
            match event {
                Event::Sample(sample) => {
                    let stream = sample.stream;
                    let Ok(bytes) = sample.payload.with(|bytes: &[u8]| Bytes::copy_from_slice(bytes)) else { continue };
                    let (principal, content) = self.access.unseal(ATTACH, &bytes, stream.host.as_deref());
                    // Unreadable requests are from a later release, which accounts for older ones that ignore them.
                    let Ok(wanted) = serde_json::from_slice::<AttachRequest>(&content) else { continue };
                    let levels = Resource::Service(LEVELS.to_owned());
                    // The end of an attachment changes nothing.
                    let allowed = || content[..] == *b"{}" || self.access.ask_for(&principal, Verb::Set, &levels).is_ok();
                    let bounded = wanted.sources.len() + wanted.loggers.len() <= PATTERNS;
                    if bounded && allowed() {
                        loggers.attach(&|attached| attached.put(stream.incarnation, stream.stream, wanted.clone()));
                    }
                }
                Event::Source(change) => loggers.attach(&|attached| attached.changed(change.incarnation, change.state)),
                Event::Gap(_) => {}
            }
        }
    }
}
