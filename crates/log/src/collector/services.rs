//! Answering `log/query`, `log/stat`, `log/status`, `log/offsets` and `log/archive`.
//!
//! Every part of an answer begins with the sixteen bytes of the collector's incarnation, so that an asker keeps the answers of
//! two collectors apart. What follows is, for `log/query`, a `LogBatch` of at most 1 MB (or one larger record) or, last, the
//! end as JSON; for the others JSON, cut where a part is full.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tampu_bus::{
    SourceInfo,
    access::{Denied, Resource, Verb},
    engine::{Guard, Question},
};
use tampu_types::{
    Incarnation, LogRecord, Time, TopicName,
    log_batch::{LogBatchBuilder, PushError},
};

use super::{
    CollectorError, Shared,
    upkeep::{self, Told, Turn, Upkeep, archive_in},
};
use crate::{
    archive::{Grouping, Scanned, Stop, StreamOffset},
    query::Query,
};

/// The service that finds records: asked with a [`Query`].
pub(super) const QUERY: &str = "log/query";
/// The service that counts records: asked with a [`StatQuestion`].
pub(super) const STAT: &str = "log/stat";
/// The service that tells how the collector is; the question is empty.
pub(super) const STATUS: &str = "log/status";
/// The service that tells how far the streams of those who are on the bus are committed; the question is empty.
pub(super) const OFFSETS: &str = "log/offsets";

/// The service that looks after the archive: asked with an [`Upkeep`].
pub(super) const ARCHIVE: &str = "log/archive";

/// The service that tells whether the collector can keep what comes; the question is empty.
pub(super) const KEEPS: &str = "log/keeps";

/// Bytes of one part of an answer.
const PART: usize = 1_000_000;

/// What `log/stat` is asked.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StatQuestion {
    /// Which records.
    pub query: Query,
    /// Counted how.
    pub by: Grouping,
}

/// How far streams are kept: where somebody goes on live who has had everything before from a search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kept {
    /// When the collector said so, by its clock, ns UTC.
    pub now: Time,
    /// For each stream of those who are on the bus: everything before `next` is committed and found by searches.
    pub streams: Vec<KeptStream>,
}

/// How far one stream is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptStream {
    /// The writer's life.
    pub incarnation: Incarnation,
    /// The stream of that life.
    pub stream: u32,
    /// The first sample that is not kept yet.
    pub next: u64,
}

/// Whether a collector can keep what comes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Keeps {
    /// Why it cannot.
    pub stuck: Option<String>,
}

/// How an answer ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct End {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) denied: Option<Denied>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) scanned: Option<Scanned>,
}

pub(super) struct Services {
    shared: Arc<Shared>,
    running: AtomicUsize,
    turn: Turn,
}

impl Services {
    pub(super) fn declare(shared: &Arc<Shared>) -> Result<Vec<Guard>, CollectorError> {
        let services = Arc::new(Services { shared: shared.clone(), running: AtomicUsize::new(0), turn: Turn::default() });
        let mut guards = Vec::new();
        for (name, verb, answer) in [
            (QUERY, Verb::Query, Services::query as fn(&Services, &Reply)),
            (STAT, Verb::Query, Services::stat),
            (STATUS, Verb::Read, Services::status),
            (OFFSETS, Verb::Read, Services::offsets),
            (ARCHIVE, Verb::Change, Services::archive),
            (KEEPS, Verb::Read, Services::keeps),
        ] {
            let services = services.clone();
            let resource = Resource::Service(name.to_owned());
            let answerer = Arc::new(move |question: Box<dyn Question>| {
                let reply = Reply { from: services.shared.participant.incarnation(), question };
                match services.shared.options.access.ask(verb, &resource) {
                    Ok(()) => services.clone().answer(reply, answer),
                    Err(denied) => reply.deny(denied),
                }
            });
            guards.push(shared.participant.answer(&TopicName::new(name)?, answerer)?);
        }
        Ok(guards)
    }

    /// Answers on a worker of its own: the engine's must not wait for a search.
    fn answer(self: Arc<Services>, reply: Reply, answer: fn(&Services, &Reply)) {
        let limit = self.shared.options.searches;
        if self.running.fetch_add(1, Ordering::AcqRel) >= limit {
            self.running.fetch_sub(1, Ordering::AcqRel);
            reply.fail(format!("{limit} searches are running already; try again"));
            return;
        }
        let running = self.clone();
        let worker = std::thread::Builder::new().name("collector answer".to_owned()).spawn(move || {
            answer(&self, &reply);
            self.running.fetch_sub(1, Ordering::AcqRel);
        });
        if worker.is_err() {
            // The question went with the worker: its asker is told that nobody answers.
            running.running.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn stop(&self) -> Stop {
        Stop::after(self.shared.options.search_time)
    }

    /// Ends a search when who asked for it leaves the bus, or dies; until the guard is dropped.
    fn end_with(&self, asker: Option<Incarnation>, stop: &Stop) -> Option<Guard> {
        let (asker, stop) = (asker?, stop.clone());
        let gone = move |source: &SourceInfo, here: bool| {
            if !here && source.incarnation == asker {
                stop.stop();
            }
        };
        Some(self.shared.participant.watch_sources(gone))
    }

    fn query(&self, reply: &Reply) {
        let stop = self.stop();
        let mut parts = Parts { reply, builder: LogBatchBuilder::with_limit(PART), gone: false };
        let searched = Query::from_json(reply.question.payload()).map_err(crate::archive::ArchiveError::from).and_then(|query| {
            let _watch = self.end_with(query.asker, &stop);
            self.shared.archive.search(&query, &stop, &mut |found| {
                parts.push(found.record);
                !parts.gone && !self.shared.stopping.load(Ordering::Relaxed)
            })
        });
        parts.send();
        match searched {
            Ok(scanned) => reply.end(&End { scanned: Some(scanned), ..End::default() }),
            Err(error) => reply.fail(error.to_string()),
        }
    }

    fn stat(&self, reply: &Reply) {
        let question = reply.question.payload();
        let parsed = if question.is_empty() { Ok(StatQuestion::default()) } else { serde_json::from_slice(question) };
        let counted = match parsed {
            Ok(StatQuestion { query, by }) => {
                let stop = self.stop();
                let _watch = self.end_with(query.asker, &stop);
                self.shared.archive.count(&query, &by, &stop).map_err(|error| error.to_string())
            }
            Err(error) => Err(format!("no question can be read: {error}")),
        };
        match counted {
            Ok(counts) => reply.json(&counts),
            Err(error) => reply.fail(error),
        }
    }

    fn archive(&self, reply: &Reply) {
        let what = match serde_json::from_slice::<Upkeep>(reply.question.payload()) {
            Ok(Upkeep::Backup(data)) if !data.is_absolute() => {
                return reply.fail(format!("{}: a backup needs a whole path, on the collector's host", data.display()));
            }
            Ok(Upkeep::Backup(data)) => Upkeep::Backup(archive_in(&data, self.shared.participant.domain())),
            Ok(what) => what,
            Err(error) => return reply.fail(format!("no question can be read: {error}")),
        };
        let shared = &self.shared;
        let tell = |told: Told| {
            let told = serde_json::to_vec(&told).unwrap_or_default();
            reply.part(&told) && !shared.stopping.load(Ordering::Relaxed)
        };
        match self.turn.take(&*shared.archive, &what, &Stop::after(upkeep::LONGEST), &tell) {
            Ok(done) => reply.json(&Told::Done(done)),
            Err(error) => reply.fail(error),
        }
    }

    fn status(&self, reply: &Reply) {
        reply.json(&self.shared.report());
    }

    fn keeps(&self, reply: &Reply) {
        reply.json(&Keeps { stuck: self.shared.archive.stuck() });
    }

    fn offsets(&self, reply: &Reply) {
        let participant = &self.shared.participant;
        let here: HashSet<Incarnation> = participant.sources().iter().map(|source| source.incarnation).collect();
        // Before the offsets are read: what arrives meanwhile is later than this.
        let now = participant.clock().utc();
        let offsets = self.shared.archive.offsets().into_iter().filter(|offset| here.contains(&offset.incarnation));
        let streams =
            offsets.map(|StreamOffset { incarnation, stream, next }| KeptStream { incarnation, stream, next }).collect();
        reply.json(&Kept { now, streams });
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
            Ok(json) => {
                json.chunks(PART).all(|part| self.part(part));
            }
            Err(error) => self.fail(error.to_string()),
        }
    }

    fn end(&self, end: &End) {
        self.json(end);
    }

    fn fail(&self, error: String) {
        self.end(&End { error: Some(error), ..End::default() });
    }

    fn deny(&self, denied: Denied) {
        self.end(&End { error: Some(denied.to_string()), denied: Some(denied), ..End::default() });
    }
}

/// Records on their way out, a part at a time.
struct Parts<'a> {
    reply: &'a Reply,
    builder: LogBatchBuilder,
    gone: bool,
}

impl Parts<'_> {
    fn push(&mut self, record: &LogRecord) {
        if let Err(PushError::Full { .. }) = self.builder.push_record(record) {
            self.send();
            if self.builder.push_record(record).is_err() {
                // Longer than a part may be: it goes alone.
                let mut alone = LogBatchBuilder::new();
                if alone.push_record(record).is_ok() {
                    self.gone |= !self.reply.part(alone.seal());
                }
            }
        }
    }

    fn send(&mut self) {
        if !self.builder.is_empty() {
            self.gone |= !self.reply.part(self.builder.seal());
            self.builder.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tampu_bus::{
        Participant, QosTable,
        access::{Access, Members, Principal},
        engine::memory::MemoryNet,
    };
    use tampu_types::{Domain, SourceName};

    use super::{super::CollectorOptions, *};
    use crate::{
        archive::{LocalArchive, Options},
        collector::ask::{self, AskFailed},
    };

    #[test]
    fn who_is_no_member_gets_no_answer_but_the_refusal() {
        let (net, dir) = (MemoryNet::new(1), tempfile::tempdir().unwrap());
        let domain = Domain::new("lab").unwrap();
        let join = |name: &str| {
            let name = SourceName::new(name).unwrap();
            Participant::on(net.engine("host"), domain.clone(), name, QosTable::default()).unwrap()
        };
        // A closed hub, and somebody who comes with a key all the same.
        let stranger = Principal::KeyHolder(Domain::new("elsewhere").unwrap());
        let who = stranger.clone();
        let access = Access::new(Arc::new(Members::default()), move || who.clone());
        let options = CollectorOptions { access, ..CollectorOptions::new(dir.path().join("rejected")) };
        let archive = Arc::new(LocalArchive::open(dir.path(), Options::new(domain.clone())).unwrap());
        // Its workers would run the simulated clock; a refusal needs none of them.
        let shared = Shared::new(join("collector"), archive, options);
        let _services = Services::declare(&shared).unwrap();
        let asker = join("asker");
        net.advance(Duration::from_millis(10));

        let wait = Duration::from_secs(60);
        let answers = [
            ask::query(&asker, &Query::default(), wait, &mut |_| panic!("a record came")).map(|_| ()),
            ask::stat(&asker, &Query::default(), &Grouping::default(), wait).map(|_| ()),
            ask::status(&asker, wait).map(|_| ()),
            ask::offsets(&asker, wait).map(|_| ()),
            ask::upkeep(&asker, &Upkeep::Health, wait, &mut |_| true).map(|_| ()),
        ];
        let expected =
            [(Verb::Query, QUERY), (Verb::Query, STAT), (Verb::Read, STATUS), (Verb::Read, OFFSETS), (Verb::Change, ARCHIVE)];
        for (answer, (verb, service)) in answers.into_iter().zip(expected) {
            match answer {
                Err(AskFailed::Denied(denied)) => {
                    assert_eq!((&denied.principal, denied.verb, denied.resource.name()), (&stranger, verb, service));
                }
                other => panic!("{service}: {other:?}"),
            }
        }
    }
}
