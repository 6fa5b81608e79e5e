//! Services `event/history` and `event/archive`.
//!
//! A part of an answer to `event/history` is `E` and events, each a length (u32, little endian) and a kept event. The
//! last part is an [`End`] as JSON. `event/archive` answers as `log/archive` does.

use std::{cell::RefCell, collections::HashMap, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use tampu_archive::{
    BackupPlaces, Find, Place, Stop, Swept, TableArchive,
    upkeep::{LONGEST, Told, Turn, Upkeep},
};
use tampu_bus::{
    BusError, Participant,
    access::{Access, Verb},
    engine::Guard,
    service::{Limits, PART_LENGTH, Permission, Request, serve},
};
use tampu_types::{
    Domain, Incarnation, Time, TopicName,
    event::{AttributeName, AttributePattern, EventKind, Kinds},
    name::escape,
};

use super::table::{self, WORD};

/// Directory of the events, below that of the domain.
pub const DIRECTORY: &str = "events";

/// Service that finds events. Its question is an [`HistoryQuery`].
pub(super) const HISTORY: &str = "event/history";
/// Service for the maintenance of the archive. Its question is an [`Upkeep`].
pub(super) const ARCHIVE: &str = "event/archive";

/// Bytes of events after which an answer ends; its asker continues from there. A slow reader holds no more memory than
/// this.
const PAGE_BYTES: usize = 16 << 20;
/// Most answers at once, and the longest time for one.
const ANSWERS: usize = 4;
const LONGEST_ANSWER: Duration = Duration::from_secs(60);
/// Most names whose match is remembered while one question is answered.
const REMEMBERED: usize = 100_000;

/// The question of `event/history`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HistoryQuery {
    /// Patterns of attributes; an empty list matches all.
    pub attributes: Vec<AttributePattern>,
    /// Start: readings of this time and later, ns UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// End: readings before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// Kinds of the events; an empty list matches all. Gaps and changes of sources are always returned.
    pub kinds: Vec<EventKind>,
    /// Order by time, then by incarnation, attribute and number, with the newest first if true.
    pub newest_first: bool,
    /// Most events of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Position after which to continue: the `cursor` of the previous answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Place>,
    /// True for only the number of events.
    pub count: bool,
    /// Incarnation of the asker. The answer ends when it leaves the bus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asker: Option<Incarnation>,
}

/// Last part of an answer to `event/history`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct End {
    pub swept: Swept,
}

/// Returns the directory of a domain's events in a data directory (`--data`).
pub fn archive_in(data: &std::path::Path, domain: &Domain) -> std::path::PathBuf {
    data.join(escape(domain.as_str())).join(DIRECTORY)
}

pub(super) struct Services {
    participant: Participant,
    archive: Arc<TableArchive>,
    turn: Turn,
    backups: BackupPlaces,
}

type Answer = fn(&Services, &Request);

impl Services {
    pub(super) fn declare(
        participant: &Participant,
        archive: &Arc<TableArchive>,
        access: &Access,
        backups: BackupPlaces,
    ) -> Result<Vec<Guard>, BusError> {
        let services =
            Arc::new(Services { participant: participant.clone(), archive: archive.clone(), turn: Turn::default(), backups });
        let searching = Limits { time: LONGEST_ANSWER, ..Limits::on_threads("event history answer", ANSWERS) };
        let maintaining = Limits { time: LONGEST, ..searching.clone() };
        let all = [
            (HISTORY, Permission::Verb(access.clone(), Verb::Query), searching, Services::history as Answer),
            // The verb depends on the question.
            (ARCHIVE, Permission::ByHandler(access.clone()), maintaining, Services::upkeep),
        ];
        let declare = |(name, permission, limits, answer): (&str, Permission, Limits, Answer)| {
            // Weak, because the participant holds the handler and this the participant.
            let services = Arc::downgrade(&services);
            let handler = move |request: Request| {
                if let Some(services) = services.upgrade() {
                    answer(&services, &request);
                }
            };
            serve(participant, &TopicName::new(name)?, permission, &limits, handler)
        };
        let mut guards = all.map(declare).into_iter().collect::<Result<Vec<Guard>, BusError>>()?;
        // They live as long as the services are declared.
        guards.push(Box::new(services));
        Ok(guards)
    }

    fn history(&self, request: &Request) {
        let asked = match request.json_or_default::<HistoryQuery>() {
            Ok(asked) => asked,
            Err(error) => return request.refuse(error),
        };
        let stop = Stop::after(request.time());
        let gone = stop.clone();
        let _watch = request.watch_asker(asked.asker, move || gone.stop());
        search(&self.archive, &asked, &stop, request);
    }

    fn upkeep(&self, request: &Request) {
        let asked = match request.json::<Upkeep>() {
            Ok(asked) => asked,
            Err(error) => return request.refuse(error),
        };
        let verb = if asked.only_reads() { Verb::Read } else { Verb::Backup };
        if let Err(denied) = request.require(verb) {
            return request.deny(denied);
        }
        let what = match asked.admitted(&self.backups, request.is_local(), |data| archive_in(data, self.participant.domain())) {
            Ok(what) => what,
            Err(why) => return request.refuse(why),
        };
        let tell = |told: Told| request.answer(&told);
        let done = self.archive.upkeep_in_turn(&self.turn, &what, &Stop::after(request.time()), &tell);
        request.conclude(verb, &what, done.map(Told::Done));
    }
}

/// Answers with the requested events, as many as one answer may have.
fn search(archive: &TableArchive, asked: &HistoryQuery, stop: &Stop, request: &Request) {
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
        request.answer(&End::default());
        return;
    }
    let mut parts = Parts { request, bytes: Vec::new(), sent: 0, gone: false };
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
        Ok(swept) => drop(request.answer(&End { swept })),
        Err(error) => request.refuse(error),
    }
}

/// Cache of matching names. There are few names compared with rows, so each is checked once.
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

/// Writer of an answer's events, one part at a time.
struct Parts<'a> {
    request: &'a Request,
    bytes: Vec<u8>,
    /// Bytes of events so far, sent or in `bytes`.
    sent: usize,
    gone: bool,
}

impl Parts<'_> {
    fn push(&mut self, kept: &tampu_types::event::KeptEvent<'_>) {
        let mut event = Vec::new();
        kept.encode(&mut event);
        if self.bytes.len() + event.len() > PART_LENGTH {
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
            self.gone |= !self.request.part(&self.bytes);
            self.bytes.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use bytes::Bytes;
    use tampu_archive::{Arrival, Options};
    use tampu_types::{
        BatchHeader, ClockState, SourceName,
        event::{EventSample, KeptEvent, Reason, Value},
    };

    use super::*;

    /// Returns the bytes of the events of an answer, and its end.
    fn answer(archive: &TableArchive, asked: &HistoryQuery) -> (usize, Swept) {
        let parts = Arc::new(Mutex::new(Vec::new()));
        let into = parts.clone();
        let request = Request::outside(Bytes::new(), move |part| into.lock().unwrap().push(part));
        search(archive, asked, &Stop::default(), &request);
        let mut parts = std::mem::take(&mut *parts.lock().unwrap());
        let end: End = serde_json::from_slice(&parts.pop().unwrap()[16..]).unwrap();
        (parts.iter().map(Bytes::len).sum(), end.swept)
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

    /// Makes an event of 256 KiB.
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
        let (nothing, swept) = answer(&archive, &HistoryQuery { limit: Some(0), ..HistoryQuery::default() });
        assert_eq!((nothing, swept), (0, Swept::default()));
        let (mut found, mut answers, mut asked) = (0, 0, HistoryQuery::default());
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

    #[test]
    fn backups_for_other_hosts_go_where_the_configuration_says() {
        let (net, dir) = (tampu_bus::engine::memory::MemoryNet::new(1), tempfile::tempdir().unwrap());
        let domain = Domain::new("lab").unwrap();
        let name = SourceName::new("events").unwrap();
        let participant = Participant::on(net.engine("host"), domain.clone(), name, tampu_bus::QosTable::default()).unwrap();
        let allowed = dir.path().join("backups");
        std::fs::create_dir(&allowed).unwrap();
        let archive = TableArchive::open(dir.path().join("events"), &super::super::SCHEMA, Options::new(domain)).unwrap();
        let services = Services {
            participant,
            archive: Arc::new(archive),
            turn: Turn::default(),
            backups: BackupPlaces::new([allowed.clone()]),
        };
        let ask = |target: &std::path::Path| {
            let parts: Arc<Mutex<Vec<u8>>> = Arc::default();
            let into = parts.clone();
            let question = serde_json::to_vec(&Upkeep::Backup(target.to_owned())).unwrap();
            let request = Request::outside(question.into(), move |part| into.lock().unwrap().extend_from_slice(&part[16..]));
            services.upkeep(&request);
            String::from_utf8_lossy(&parts.lock().unwrap()).into_owned()
        };
        let refused = ask(&dir.path().join("other"));
        assert!(refused.starts_with("{\"error\":") && refused.contains("[collector] backups"), "{refused}");
        assert!(!dir.path().join("other").exists());
        let done = ask(&allowed.join("today"));
        assert!(done.contains("\"done\"") && allowed.join("today/lab/events/manifest.jsonl").exists(), "{done}");
    }
}
