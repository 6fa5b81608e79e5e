//! Publishers of a session: writers of topics and attributes, and the receipts for their samples.
//!
//! A session with publishers is a participant of its own, so its source, its life and its numbers are those of any
//! process. A write waits for the topic's readers within its Qos, and meanwhile no further frame of the client is read.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use tampu_bus::{Participant, Qos, ReaderState, Subject, TypeTag, Writer};
use tampu_event::{
    Attribute, Server,
    criteria::Reading,
    server::{AttributeOptions, Delivery, PushError, ServerSettings},
};
use tampu_types::{
    Partition, SourceName, Time, TopicName,
    event::{AttributeConfig, EventView},
    gateway::{
        Kind,
        frame::samples,
        messages::{Big, Code, Declare, End, Opened, Receipt, Receipts},
    },
};
use tampu_workers::{OnPanic, WorkerThread};

use super::{outgoing::Outgoing, shared::Join};

/// Shortest time between two receipts of a publisher.
const EVERY: Duration = Duration::from_millis(20);
/// Time between two looks while readers do not acknowledge.
const SLOWLY: Duration = Duration::from_millis(200);
/// Refused readings that are kept for the next receipt.
const REFUSED: usize = 1000;

enum Target {
    Topic(Writer),
    Attribute { attribute: Attribute, refused: Mutex<Vec<(Big, String)>> },
}

/// A publisher of a session.
pub(super) struct Publisher {
    id: u32,
    target: Target,
    receipts: Receipts,
    written: AtomicU64,
    reported: Mutex<Reported>,
}

/// The last receipt of a publisher.
#[derive(Default)]
struct Reported {
    receipt: Receipt,
    /// True if a reader was there that was to confirm.
    had_readers: bool,
}

impl Reported {
    /// Settles a receipt for which no reader confirms any more: what was delivered stays so, and of the rest it is said that
    /// nobody will confirm it.
    fn settle(&mut self, receipt: &mut Receipt, has_readers: bool) {
        let before = &self.receipt;
        receipt.delivered = receipt.delivered.or(before.delivered);
        let ends = self.had_readers && !has_readers;
        let unconfirmed = if ends { Some(receipt.written) } else { before.unconfirmed };
        receipt.unconfirmed = unconfirmed.filter(|until| receipt.delivered.is_none_or(|delivered| delivered.0 < until.0));
        self.had_readers = has_readers;
    }
}

/// Reason for which samples were not published.
pub(super) enum PublishError {
    /// The body of the frame is malformed.
    Malformed,
    /// The publisher ends.
    Ended(End),
}

impl Publisher {
    /// Returns its attribute, unless it publishes a topic.
    pub fn attribute(&self) -> Option<&Attribute> {
        match &self.target {
            Target::Attribute { attribute, .. } => Some(attribute),
            Target::Topic(_) => None,
        }
    }

    fn publish(&self, body: &[u8], at_once: bool) -> Result<(), PublishError> {
        for sample in samples(body) {
            let sample = sample.map_err(|_| PublishError::Malformed)?;
            match &self.target {
                Target::Topic(writer) => {
                    writer.write(sample).map_err(|why| PublishError::Ended(End::because(Code::Bad, why)))?;
                }
                Target::Attribute { attribute, refused } => {
                    if let Err(why) = push(attribute, sample) {
                        let index = Big(self.written.load(Ordering::Relaxed));
                        let mut refused = refused.lock();
                        if refused.len() < REFUSED {
                            refused.push((index, why));
                        }
                    }
                }
            }
            self.written.fetch_add(1, Ordering::Relaxed);
        }
        if let (true, Target::Topic(writer)) = (at_once, &self.target) {
            writer.send_now();
        }
        Ok(())
    }

    /// Returns the present receipt, whether there are readers that are to confirm, and whether a later receipt may differ
    /// without further samples.
    fn receipt(&self) -> (Receipt, bool, bool) {
        let mut has_readers = false;
        let written = self.written.load(Ordering::Relaxed);
        let mut receipt = Receipt { written: Big(written), ..Receipt::default() };
        match &self.target {
            Target::Topic(writer) => {
                let position = |at: Option<u64>| at.map(|at| Big(at.min(written)));
                receipt.delivered = position(writer.delivered()).filter(|_| self.receipts != Receipts::None);
                receipt.kept = position(writer.kept()).filter(|_| self.receipts == Receipts::Kept);
                let mut live = writer.readers();
                live.retain(|reader| reader.state != ReaderState::Gone);
                has_readers = self.receipts != Receipts::None && live.iter().any(|reader| reader.reliable);
                receipt.readers = u32::try_from(live.len()).unwrap_or(u32::MAX);
            }
            Target::Attribute { attribute, refused } => {
                receipt.readers = u32::try_from(attribute.readers()).unwrap_or(u32::MAX);
                receipt.refused = std::mem::take(&mut *refused.lock());
            }
        }
        let lags = |at: Option<Big>| at.is_some_and(|at| at.0 < written);
        // A reader that has just come has confirmed nothing.
        let is_awaited = has_readers && written > 0 && receipt.delivered.is_none();
        let later = is_awaited || lags(receipt.delivered) || lags(receipt.kept);
        (receipt, has_readers, later)
    }
}

/// Publishes an event of a client as a reading.
fn push(attribute: &Attribute, event: &[u8]) -> Result<(), String> {
    let view = EventView::parse(event).map_err(|why| format!("the event cannot be read: {why}"))?;
    let event = view.to_event();
    let sample = event.as_sample();
    let reading = Reading { value: sample.value, set_point: sample.set_point, quality: sample.quality, errors: sample.errors };
    let time = (sample.time != Time(0)).then_some(sample.time);
    let pushed = match () {
        () if !sample.name.is_empty() => attribute.generic(sample.name, reading.value),
        () if sample.kinds.is_empty() => attribute.push_reading(&reading, time),
        () => attribute.push_as(sample.kinds, &reading, time),
    };
    pushed.map(drop).map_err(|why: PushError| why.to_string())
}

/// Publishers of a session. Its participant and its server of attributes start with the first one that needs them.
pub(super) struct Publishers {
    work: Arc<Work>,
    bus: Mutex<Option<OnBus>>,
}

/// Place on the bus of a session with publishers. The server ends first.
struct OnBus {
    server: Option<Server>,
    participant: Participant,
}

/// State that the worker of receipts shares.
struct Work {
    outgoing: Arc<Outgoing>,
    list: Mutex<Vec<Arc<Publisher>>>,
    is_dirty: Mutex<bool>,
    changed: Condvar,
    stopped: AtomicBool,
}

impl Publishers {
    pub fn new(outgoing: Arc<Outgoing>) -> Publishers {
        let work = Work {
            outgoing,
            list: Mutex::default(),
            is_dirty: Mutex::new(false),
            changed: Condvar::new(),
            stopped: AtomicBool::new(false),
        };
        Publishers { work: Arc::new(work), bus: Mutex::default() }
    }

    /// Returns the participant, if the session has published.
    pub fn participant(&self) -> Option<Participant> {
        self.bus.lock().as_ref().map(|bus| bus.participant.clone())
    }

    /// Joins the bus under the name of the session, unless it has done so.
    pub fn join(&self, source: &SourceName, join: &Join) -> Result<Participant, End> {
        Ok(self.on_bus(&mut self.bus.lock(), source, join)?.participant.clone())
    }

    fn on_bus<'a>(&self, bus: &'a mut Option<OnBus>, source: &SourceName, join: &Join) -> Result<&'a mut OnBus, End> {
        match bus {
            Some(on_bus) => Ok(on_bus),
            none => {
                let participant = join(source.clone()).map_err(|why| End::because(Code::Failed, why))?;
                let work = self.work.clone();
                WorkerThread::named("gateway receipts")
                    .stack_size(128 << 10)
                    .spawn(OnPanic::ReportOnly, move || work.run())
                    .map_err(|why| End::because(Code::Failed, why))?;
                Ok(none.insert(OnBus { server: None, participant }))
            }
        }
    }

    /// Opens a publisher.
    pub fn open(&self, id: u32, declare: &Declare, source: &SourceName, join: &Join) -> Result<(Arc<Publisher>, Opened), End> {
        let mut bus = self.bus.lock();
        let on_bus = self.on_bus(&mut bus, source, join)?;
        let incarnation = Some(on_bus.participant.incarnation());
        let (target, opened) = match (&declare.topic, &declare.attribute) {
            (Some(topic), None) => {
                let writer = open_writer(&on_bus.participant, topic, declare)?;
                let opened = Opened { incarnation, stream: Some(writer.stream()), ..Opened::default() };
                (Target::Topic(writer), opened)
            }
            (None, Some(config)) => {
                let attribute = open_attribute(on_bus, config, declare)?;
                (Target::Attribute { attribute, refused: Mutex::default() }, Opened { incarnation, ..Opened::default() })
            }
            _ => return Err(End::because(Code::Bad, "DECLARE has either a topic or an attribute")),
        };
        let publisher = Arc::new(Publisher {
            id,
            target,
            receipts: declare.receipts,
            written: AtomicU64::new(0),
            reported: Mutex::default(),
        });
        if let Target::Topic(writer) = &publisher.target {
            let work = Arc::downgrade(&self.work);
            writer.on_delivery(move |_| {
                if let Some(work) = work.upgrade() {
                    work.mark();
                }
            });
        }
        self.work.list.lock().push(publisher.clone());
        Ok((publisher, opened))
    }

    /// Publishes the samples in a frame's body.
    pub fn publish(&self, publisher: &Publisher, body: &[u8], at_once: bool) -> Result<(), PublishError> {
        let done = publisher.publish(body, at_once);
        self.work.mark();
        done
    }

    /// Ends a publisher, with a last receipt.
    pub fn close(&self, publisher: &Arc<Publisher>) {
        self.work.list.lock().retain(|other| !Arc::ptr_eq(other, publisher));
        self.work.report(publisher);
    }

    /// Tells the readers whether the client can be reached.
    pub fn set_absent(&self, is_absent: bool) {
        if let Some(bus) = &*self.bus.lock() {
            bus.participant.set_absent(is_absent);
        }
    }

    /// Makes the end of the publishers the death of the source, because the client has not said goodbye.
    pub fn die_at_end(&self) {
        if let Some(bus) = &*self.bus.lock() {
            bus.participant.die_at_end();
            bus.server.iter().for_each(Server::abandon);
        }
    }

    /// Ends all publishers. Readers see the end of the source.
    pub fn end(&self) {
        self.work.stopped.store(true, Ordering::Release);
        self.work.mark();
        self.work.list.lock().clear();
        drop(self.bus.lock().take());
    }
}

fn open_writer(participant: &Participant, topic: &str, declare: &Declare) -> Result<Writer, End> {
    let topic = TopicName::new(topic).map_err(|why| End::because(Code::Bad, why))?;
    let partition = match &declare.partition {
        None => Partition::everybody(),
        Some(names) => Partition::of(names.iter().map(String::as_str)),
    };
    let octets = TypeTag::OCTETS;
    let tag = TypeTag { id: declare.type_id.unwrap_or(octets.id), version: declare.version.unwrap_or(octets.version) };
    // A collector acknowledges logs after its commit, so they need more credit.
    let qos = match topic.as_str().starts_with("log/") {
        true => Qos { credit: 4 << 20, keep: 16 << 20, ..Qos::default() },
        false => Qos::default(),
    };
    participant.writer_for(&Subject::new(&topic, &partition), tag, qos).map_err(|why| End::because(Code::Failed, why))
}

fn open_attribute(on_bus: &mut OnBus, config: &AttributeConfig, declare: &Declare) -> Result<Attribute, End> {
    let server = match &on_bus.server {
        Some(server) => server,
        None => {
            let server = Server::start(on_bus.participant.clone(), ServerSettings::default())
                .map_err(|why| End::because(Code::Failed, why))?;
            on_bus.server.insert(server)
        }
    };
    let delivery = if declare.acknowledged { Delivery::Acknowledged } else { Delivery::Streamed };
    let options = AttributeOptions { delivery, redundant: declare.redundant, urgent: declare.urgent };
    server.declare_with(config.clone(), options).map_err(|why| End::because(Code::Bad, why))
}

impl Work {
    fn mark(&self) {
        let mut is_dirty = self.is_dirty.lock();
        if !*is_dirty {
            *is_dirty = true;
            self.changed.notify_one();
        }
    }

    /// Sends receipts that differ from the last ones, until the session ends.
    fn run(&self) {
        let mut pause = None;
        loop {
            {
                let mut is_dirty = self.is_dirty.lock();
                while !*is_dirty {
                    match pause {
                        None => self.changed.wait(&mut is_dirty),
                        Some(time) if self.changed.wait_for(&mut is_dirty, time).timed_out() => break,
                        Some(_) => {}
                    }
                }
                *is_dirty = false;
            }
            if self.stopped.load(Ordering::Acquire) {
                return;
            }
            let list = self.list.lock().clone();
            let mut later = false;
            for publisher in &list {
                later |= self.report(publisher);
            }
            // Positions on disks come without a notification.
            pause = later.then_some(SLOWLY);
            std::thread::sleep(EVERY);
        }
    }

    /// Sends the receipt of a publisher if it is new. Returns whether a later one may differ.
    fn report(&self, publisher: &Publisher) -> bool {
        let mut reported = publisher.reported.lock();
        if !self.outgoing.has_room() {
            return true;
        }
        let (mut receipt, has_readers, later) = publisher.receipt();
        reported.settle(&mut receipt, has_readers);
        if receipt != reported.receipt
            && let Ok(body) = serde_json::to_vec(&receipt)
        {
            // A closed session has nobody to hear it.
            let _ = self.outgoing.send(Kind::Receipt, 0, publisher.id, &body);
            reported.receipt = Receipt { refused: Vec::new(), ..receipt };
        }
        later
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_reader_confirms_any_more_is_settled() {
        let mut reported = Reported::default();
        let mut settled = |written, delivered: Option<u64>, has_readers| {
            let mut receipt = Receipt { written: Big(written), delivered: delivered.map(Big), ..Receipt::default() };
            reported.settle(&mut receipt, has_readers);
            reported.receipt = receipt.clone();
            (receipt.delivered.map(|at| at.0), receipt.unconfirmed.map(|at| at.0))
        };
        assert_eq!(settled(1, None, false), (None, None), "no reader has come");
        assert_eq!(settled(2, None, true), (None, None), "it has confirmed nothing yet");
        assert_eq!(settled(2, None, false), (None, Some(2)), "and it left");
        assert_eq!(settled(3, Some(2), true), (Some(2), None));
        assert_eq!(settled(5, None, false), (Some(2), Some(5)), "the last reader has left");
        assert_eq!(settled(9, None, false), (Some(2), Some(5)), "the next reader may confirm these");
        assert_eq!(settled(9, Some(9), true), (Some(9), None));
        assert_eq!(settled(9, None, false), (Some(9), None));
    }
}
