//! Answering `event/history` and `event/archive`.
//!
//! A part of an answer begins with the sixteen bytes of the answering hub's incarnation and an octet: `E`, events follow, each a length
//! (u32, little endian) and a kept event; else what follows, that octet included, is JSON: `{"swept": {...}}` or `{"error": "..."}` at
//! the end, for `event/archive` what `log/archive` answers.

use std::{
    cell::RefCell,
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tampu_bus::{
    Participant, SourceInfo,
    access::{Access, Denied, Resource, Verb},
    engine::{Guard, Question},
};
use tampu_log::{
    archive::{Find, Place, Stop, Swept, TableArchive},
    collector::upkeep::{LONGEST, Told, Turn, Upkeep},
};
use tampu_types::{
    Domain, Incarnation, Time, TopicName,
    event::{AttributeName, AttributePattern, EventKind, Kinds},
    name::escape,
};

use super::{
    DIRECTORY, HistoryError,
    table::{self, WORD},
};

/// The service that finds events: asked with an [`Asked`].
pub(super) const HISTORY: &str = "event/history";
/// The service that looks after the archive: asked with an [`Upkeep`].
pub(super) const ARCHIVE: &str = "event/archive";

/// Bytes of one part of an answer.
const PART: usize = 1_000_000;
/// Bytes of events after which an answer ends, for its asker to go on from there: whoever reads slowly holds no more than this.
const PAGE_BYTES: usize = 16 << 20;
/// How many answers are given at once, and how long one may take.
const ANSWERS: usize = 4;
const LONGEST_ANSWER: Duration = Duration::from_secs(60);
/// Names whose match is remembered while one question is answered.
const REMEMBERED: usize = 100_000;

/// What `event/history` is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Asked {
    /// Which attributes; all, where there is none.
    pub attributes: Vec<AttributePattern>,
    /// From this time of the reading on, ns UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// Of one of these kinds; of any, where there is none. Gaps and word of sources come in any case.
    pub kinds: Vec<EventKind>,
    /// The order: by time, then by life, attribute and number.
    pub newest_first: bool,
    /// At most so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Only what follows this place in the order: the `cursor` of the answer before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Place>,
    /// Only how many there are.
    pub count: bool,
    /// Who asks: when this life leaves the bus the answer ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asker: Option<Incarnation>,
}

/// How an answer ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct End {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied: Option<Denied>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swept: Option<Swept>,
}

/// Where in a directory that `--data` can name the events of a domain are kept.
pub fn archive_in(data: &std::path::Path, domain: &Domain) -> std::path::PathBuf {
    data.join(escape(domain.as_str())).join(DIRECTORY)
}

pub(super) struct Services {
    participant: Participant,
    archive: Arc<TableArchive>,
    running: AtomicUsize,
    turn: Turn,
}

type Answer = fn(&Services, &Reply);

impl Services {
    pub(super) fn declare(
        participant: &Participant,
        archive: &Arc<TableArchive>,
        access: &Access,
    ) -> Result<Vec<Guard>, HistoryError> {
        let services = Arc::new(Services {
            participant: participant.clone(),
            archive: archive.clone(),
            running: AtomicUsize::new(0),
            turn: Turn::default(),
        });
        let all = [(HISTORY, Verb::Query, Services::history as Answer), (ARCHIVE, Verb::Change, Services::upkeep)];
        let declare = |(name, verb, answer): (&str, Verb, Answer)| {
            // Weak, because the participant holds the answerer and this the participant.
            let (services, access) = (Arc::downgrade(&services), access.clone());
            let resource = Resource::Service(name.to_owned());
            let answerer = Arc::new(move |question: Box<dyn Question>| {
                let Some(services) = services.upgrade() else { return };
                let reply = Reply { from: services.participant.incarnation(), question };
                match access.ask(verb, &resource) {
                    Ok(()) => services.answer(reply, answer),
                    Err(denied) => {
                        reply.json(&End { error: Some(denied.to_string()), denied: Some(denied), ..End::default() });
                    }
                }
            });
            Ok(participant.answer(&TopicName::new(name)?, answerer)?)
        };
        let mut guards = all.map(declare).into_iter().collect::<Result<Vec<Guard>, HistoryError>>()?;
        // They live as long as the services are declared.
        guards.push(Box::new(services));
        Ok(guards)
    }

    /// Answers on a worker of its own: the engine's must not wait for a search.
    fn answer(self: Arc<Services>, reply: Reply, answer: Answer) {
        if self.running.fetch_add(1, Ordering::AcqRel) >= ANSWERS {
            self.running.fetch_sub(1, Ordering::AcqRel);
            reply.fail(format!("{ANSWERS} questions are being answered already; try again"));
            return;
        }
        let running = Running(self);
        let work = move || answer(&running.0, &reply);
        // Without a worker the question goes with it: its asker is told that nobody answers.
        let _ = std::thread::Builder::new().name("event history answer".to_owned()).spawn(work);
    }

    fn history(&self, reply: &Reply) {
        let asked = match reply.question.payload() {
            empty if empty.is_empty() => Ok(Asked::default()),
            json => serde_json::from_slice::<Asked>(json),
        };
        let asked = match asked {
            Ok(asked) => asked,
            Err(error) => return reply.fail(format!("no question can be read: {error}")),
        };
        let stop = Stop::after(LONGEST_ANSWER);
        let gone = (asked.asker, stop.clone());
        let _watch = self.participant.watch_sources(move |source: &SourceInfo, here: bool| {
            if !here && Some(source.incarnation) == gone.0 {
                gone.1.stop();
            }
        });
        search(&self.archive, &asked, &stop, reply);
    }

    fn upkeep(&self, reply: &Reply) {
        let what = match serde_json::from_slice::<Upkeep>(reply.question.payload()) {
            Ok(Upkeep::Backup(data)) if !data.is_absolute() => {
                return reply.fail(format!("{}: a backup needs a whole path, on the hub's host", data.display()));
            }
            Ok(Upkeep::Backup(data)) => Upkeep::Backup(archive_in(&data, self.participant.domain())),
            Ok(what) => what,
            Err(error) => return reply.fail(format!("no question can be read: {error}")),
        };
        let tell = |told: Told| reply.part(&serde_json::to_vec(&told).unwrap_or_default());
        match self.archive.upkeep_in_turn(&self.turn, &what, &Stop::after(LONGEST), &tell) {
            Ok(done) => reply.json(&Told::Done(done)),
            Err(error) => reply.fail(error),
        }
    }
}

/// An answer that is being given. However it ends, there is room for the next.
struct Running(Arc<Services>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Answers with the events asked for, as many as one answer may have.
fn search(archive: &TableArchive, asked: &Asked, stop: &Stop, reply: &Reply) {
    let matches = Matches { patterns: &asked.attributes, known: RefCell::default() };
    let kinds = asked.kinds.iter().copied().collect::<Kinds>();
    let find = Find {
        since: asked.since,
        until: asked.until,
        marks: if kinds.is_empty() { u16::MAX } else { kinds.known().0 as u16 | WORD },
        column: table::ATTRIBUTE,
        wants: &|name| matches.wants(name),
        after: asked.after,
        newest_first: asked.newest_first,
    };
    let limit = asked.limit.unwrap_or(u64::MAX);
    if limit == 0 {
        return reply.json(&End { swept: Some(Swept::default()), ..End::default() });
    }
    let mut parts = Parts { reply, bytes: Vec::new(), sent: 0, gone: false };
    let mut found = 0;
    let swept = archive.find(&find, stop, &mut |row| {
        found += 1;
        if !asked.count
            && let Some(kept) = table::kept(&row)
        {
            parts.push(&kept);
        }
        !parts.gone && found < limit && parts.sent < PAGE_BYTES
    });
    parts.send();
    match swept {
        Ok(swept) => reply.json(&End { swept: Some(swept), ..End::default() }),
        Err(error) => reply.fail(error.to_string()),
    }
}

/// Which names are wanted. There are few of them beside the rows, so each is looked at once.
struct Matches<'a> {
    patterns: &'a [AttributePattern],
    known: RefCell<HashMap<Vec<u8>, bool>>,
}

impl Matches<'_> {
    fn wants(&self, name: &[u8]) -> bool {
        if self.patterns.is_empty() {
            return true;
        }
        if let Some(&known) = self.known.borrow().get(name) {
            return known;
        }
        let parsed = std::str::from_utf8(name).ok().and_then(|name| AttributeName::new(name).ok());
        let wanted = parsed.is_some_and(|name| self.patterns.iter().any(|pattern| pattern.matches(&name)));
        let mut known = self.known.borrow_mut();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(name.to_vec(), wanted);
        wanted
    }
}

/// Where an answer goes.
struct Reply {
    from: Incarnation,
    question: Box<dyn Question>,
}

impl Reply {
    /// Sends one part; whether the asker may still be there.
    fn part(&self, bytes: &[u8]) -> bool {
        let mut part = Vec::with_capacity(16 + bytes.len());
        part.extend_from_slice(&self.from.to_bytes());
        part.extend_from_slice(bytes);
        self.question.reply(Bytes::from(part)).is_ok()
    }

    fn json(&self, value: &impl Serialize) {
        match serde_json::to_vec(value) {
            Ok(json) => drop(json.chunks(PART).all(|part| self.part(part))),
            Err(error) => self.fail(error.to_string()),
        }
    }

    fn fail(&self, error: String) {
        self.json(&End { error: Some(error), ..End::default() });
    }
}

/// Events on their way out, a part at a time.
struct Parts<'a> {
    reply: &'a Reply,
    bytes: Vec<u8>,
    /// Bytes of events so far, sent or in `bytes`.
    sent: usize,
    gone: bool,
}

impl Parts<'_> {
    fn push(&mut self, kept: &tampu_types::event::KeptEvent<'_>) {
        let mut event = Vec::new();
        kept.encode(&mut event);
        if self.bytes.len() + event.len() > PART {
            self.send();
        }
        if self.bytes.is_empty() {
            self.bytes.push(b'E');
        }
        self.bytes.extend_from_slice(&(event.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(&event);
        self.sent += event.len();
    }

    fn send(&mut self) {
        if !self.bytes.is_empty() {
            self.gone |= !self.reply.part(&self.bytes);
            self.bytes.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tampu_bus::engine::EngineError;
    use tampu_log::archive::{Arrival, Options};
    use tampu_types::{
        BatchHeader, ClockState, SourceName,
        event::{EventSample, KeptEvent, Reason, Value},
    };

    use super::*;

    /// Keeps what it is answered.
    struct Asker(Arc<Mutex<Vec<Bytes>>>, Bytes);

    impl Question for Asker {
        fn key(&self) -> &str {
            HISTORY
        }

        fn payload(&self) -> &Bytes {
            &self.1
        }

        fn reply(&self, part: Bytes) -> Result<(), EngineError> {
            self.0.lock().unwrap().push(part);
            Ok(())
        }
    }

    /// The bytes of the events of an answer, and its end.
    fn answer(archive: &TableArchive, asked: &Asked) -> (usize, Swept) {
        let parts = Arc::new(Mutex::new(Vec::new()));
        let reply = Reply { from: Incarnation::default(), question: Box::new(Asker(parts.clone(), Bytes::new())) };
        search(archive, asked, &Stop::default(), &reply);
        let mut parts = std::mem::take(&mut *parts.lock().unwrap());
        let end: End = serde_json::from_slice(&parts.pop().unwrap()[16..]).unwrap();
        (parts.iter().map(Bytes::len).sum(), end.swept.unwrap())
    }

    fn header(count: u32) -> BatchHeader {
        BatchHeader {
            domain: Domain::new("lab").unwrap(),
            source: SourceName::new("hub").unwrap(),
            incarnation: Incarnation { boot: 1, pid: 2, start: 3 },
            stream: 0,
            first: 0,
            count,
            type_id: table::KEPT_TYPE,
            type_version: 1,
            acquired: Time(0),
            sent: Time(0),
            clock: ClockState::Free,
            tai_offset: 0,
            flags: 0,
        }
    }

    /// An event of 256 KiB.
    fn long(number: u64) -> Vec<u8> {
        let value = vec![number as u8; 256 << 10];
        let (mut event, mut kept) = (Vec::new(), Vec::new());
        EventSample { number, ..EventSample::of(3, Value::spectrum(&value)) }.encode(&mut event).unwrap();
        KeptEvent {
            reason: Reason::Update,
            clock: ClockState::Free,
            attribute: 3,
            from: number,
            number,
            time: Time(number as i64),
            received: Time(number as i64),
            incarnation: Incarnation { boot: 4, pid: 5, start: 6 },
            source: "camera",
            name: "a/b/c/d",
            unit: "",
            note: "",
            event: &event,
        }
        .encode(&mut kept);
        kept
    }

    #[test]
    fn an_answer_of_long_events_ends_early_and_can_be_gone_on_from() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { linger: Duration::ZERO, ..Options::new(Domain::new("lab").unwrap()) };
        let archive = TableArchive::open(dir.path(), &super::super::SCHEMA, options).unwrap();
        for number in 1..=100 {
            let sample = long(number);
            archive.append(&Arrival { header: &header(1), samples: &[&sample], received: Time(0), advances: None }).unwrap();
        }
        assert!(archive.flush(Duration::from_secs(60)));
        let (nothing, swept) = answer(&archive, &Asked { limit: Some(0), ..Asked::default() });
        assert_eq!((nothing, swept), (0, Swept::default()));
        let (mut found, mut answers, mut asked) = (0, 0, Asked::default());
        loop {
            let (bytes, swept) = answer(&archive, &asked);
            assert!(bytes <= PAGE_BYTES + (1 << 20), "{bytes} bytes");
            (found, answers) = (found + swept.found, answers + 1);
            if swept.complete {
                break;
            }
            asked.after = swept.cursor;
        }
        assert_eq!((found, answers), (100, 2));
    }
}
