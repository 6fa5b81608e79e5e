//! Streams for other hosts: the events that the processes of one host want, and no others.
//!
//! The stream of a server has all its small attributes, which costs a reader on the server's host next to nothing. On a
//! network it would cost the bytes. So a process on another host reads the stream `event/<server>/<host>` instead, and
//! tells the server what it wants with its requests for current values. The stream has what any process of that host
//! wants, once.
//!
//! Rejected: parts of the server's stream by a hash of the name. A slow attribute shares its part with fast ones unless
//! there are about as many parts as attributes. Rejected: a stream for each wanted attribute. It costs a heartbeat entry
//! and a batch for each, and loses the order between attributes.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tampu_bus::{BusError, Participant, Qos, ReaderState, Subject, Writer};
use tampu_types::{Incarnation, Partition, TopicName};

use crate::topics;

/// Time after which the wishes of an absent process may end, ns: it may not have opened its reader yet.
const ABSENT: u64 = 10_000_000_000;
/// Period of the look for absent processes and unused streams, ns.
const LOOK: u64 = 1_000_000_000;

/// Stream of a server for one other host.
pub(super) struct HostStream {
    pub boot: u32,
    pub writer: Writer,
    /// Number of attributes that are written to it.
    pub attributes: AtomicUsize,
}

/// All streams of a server for other hosts.
#[derive(Default)]
pub(super) struct HostStreams {
    streams: Mutex<HashMap<u32, Arc<HostStream>>>,
    /// Processes that want events, and the time since which each is absent.
    processes: Mutex<HashMap<Incarnation, Option<u64>>>,
    next_look: AtomicU64,
}

impl HostStreams {
    /// Returns the stream for the host of a process, which wants something from it.
    pub fn for_process(
        &self,
        participant: &Participant,
        reader: Incarnation,
        qos: &Qos,
        beside: &Writer,
    ) -> Result<Arc<HostStream>, BusError> {
        self.processes.lock().entry(reader).or_default();
        let mut streams = self.streams.lock();
        if let Some(stream) = streams.get(&reader.boot) {
            return Ok(stream.clone());
        }
        let topic = TopicName::new(topics::of_host(participant.source(), reader.boot))?;
        let (whole, everybody) = (TopicName::new(topics::shared(participant.source()))?, Partition::everybody());
        // What is configured for the server's stream holds for its parts as well.
        let subject = Subject { part_of: Some(&whole), ..Subject::new(&topic, &everybody) };
        let writer = participant.writer_for(&subject, topics::EVENT, qos.clone())?;
        // However many hosts there are, a push waits for all their readers together as long as for those of one stream.
        writer.share_waits_of(beside);
        let stream = Arc::new(HostStream { boot: reader.boot, writer, attributes: AtomicUsize::new(0) });
        streams.insert(reader.boot, stream.clone());
        Ok(stream)
    }

    /// Returns the processes that are gone, and forgets them; `None` if it is too early for a look. Closes unused streams.
    ///
    /// A process that is cut off has readers of its host's stream as long as the bus keeps samples for them. So its wishes
    /// last as long, and the stream's cache has what it missed when it returns.
    pub fn look(&self, participant: &Participant, now: u64) -> Option<Vec<Incarnation>> {
        if now < self.next_look.load(Ordering::Relaxed) {
            return None;
        }
        self.next_look.store(now + LOOK, Ordering::Relaxed);
        let mut processes = self.processes.lock();
        if processes.is_empty() && self.streams.lock().is_empty() {
            return Some(Vec::new());
        }
        let present: HashSet<Incarnation> = participant.sources().into_iter().map(|source| source.incarnation).collect();
        let mut streams = self.streams.lock();
        let is_kept = |process: Incarnation| {
            let readers = streams.get(&process.boot).map(|stream| stream.writer.readers()).unwrap_or_default();
            readers.iter().any(|reader| reader.incarnation == process && reader.state != ReaderState::Gone)
        };
        let mut gone = Vec::new();
        processes.retain(|&process, absent_since| {
            if present.contains(&process) {
                *absent_since = None;
                return true;
            }
            let is_gone = now >= *absent_since.get_or_insert(now) + ABSENT && !is_kept(process);
            if is_gone {
                gone.push(process);
            }
            !is_gone
        });
        // A process that is still here may want something again at once; its host's stream costs little meanwhile.
        let hosts: HashSet<u32> = processes.keys().map(|process| process.boot).collect();
        streams.retain(|boot, stream| hosts.contains(boot) || stream.is_used());
        Some(gone)
    }

    /// Sends the samples that wait for a batch.
    pub fn send_now(&self) {
        self.streams.lock().values().for_each(|stream| stream.writer.send_now());
    }
}

impl HostStream {
    fn is_used(&self) -> bool {
        self.attributes.load(Ordering::Relaxed) > 0
    }
}
