//! Server of `log/query`, `log/stat`, `log/status`, `log/offsets` and `log/archive`.
//!
//! The reply of `log/query` has parts with a `LogBatch` of at most 1 MB each (or one larger record), or with messages of
//! Arrow if the question names columns. Its last part is the [`End`](super::messages::End) as JSON. The other services
//! reply with JSON.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tampu_bus::{
    access::{Access, Verb},
    engine::Guard,
    service::{Limits, PART_LENGTH, Permission, Request, serve},
};
use tampu_types::{
    Incarnation, LogRecord, TopicName,
    log_batch::{LogBatchBuilder, PushError},
};

use super::{
    error::CollectorError,
    messages::{
        ARCHIVE, End, KEEPS, Keeps, Kept, KeptStream, OFFSETS, OffsetsQuestion, QUERY, RecordsQuestion, STAT, STATUS,
        StatQuestion,
    },
    state::CollectorShared,
};
use tampu_archive::{
    ArchiveError, Scanned, Stop, StreamOffset,
    columns::{ColumnWriter, log_columns},
    query::Query,
    upkeep::{self, Told, Turn, Upkeep, archive_in},
};

/// Questions about the collector's state that are answered at once, and requests of maintenance, of which one works.
const STATUSES: usize = 32;
const UPKEEPS: usize = 4;

/// Longest wait for a commit before the offsets are told.
const COMMIT: Duration = Duration::from_secs(2);

/// Length of an answer in columns after which it ends before its time, in bytes: far below what one answer may have.
const COLUMNS_BYTES: usize = 256 << 20;

pub(super) struct Services {
    shared: Arc<CollectorShared>,
    turn: Turn,
}

/// The function that answers the questions of one service.
type Answer = fn(&Services, &Request);

impl Services {
    pub(super) fn declare(shared: &Arc<CollectorShared>) -> Result<Vec<Guard>, CollectorError> {
        let services = Arc::new(Services { shared: shared.clone(), turn: Turn::default() });
        let options = &shared.options;
        let searching = Limits { time: options.search_time, ..Limits::on_threads("collector answer", options.searches) };
        let maintaining = Limits { time: upkeep::LONGEST, ..Limits::on_threads("collector upkeep", UPKEEPS) };
        // Slow searches must not keep a spool from asking if the collector keeps records.
        let telling = Limits { time: options.search_time, ..Limits::on_threads("collector status", STATUSES) };
        let all = [
            (QUERY, Some(Verb::Query), &searching, Services::query as Answer),
            (STAT, Some(Verb::Query), &searching, Services::stat),
            (STATUS, Some(Verb::Read), &telling, Services::status),
            (OFFSETS, Some(Verb::Read), &telling, Services::offsets),
            // The verb depends on the question.
            (ARCHIVE, None, &maintaining, Services::archive),
            (KEEPS, Some(Verb::Read), &telling, Services::keeps),
        ];
        let declare = |(name, verb, limits, answer): (&str, Option<Verb>, &Limits, Answer)| {
            let services = services.clone();
            let permission = permission(&options.access, verb);
            let handler = move |request: Request| answer(&services, &request);
            Ok(serve(&shared.participant, &TopicName::new(name)?, permission, limits, handler)?)
        };
        all.into_iter().map(declare).collect()
    }

    /// A search's end: its time is up, or the process that asked leaves the bus or dies before the guard is dropped.
    fn stop(request: &Request, asker: Option<Incarnation>) -> (Stop, Option<Guard>) {
        let stop = Stop::after(request.time());
        let gone = stop.clone();
        (stop, request.watch_asker(asker, move || gone.stop()))
    }

    fn query(&self, request: &Request) {
        let searched =
            RecordsQuestion::from_json(request.question()).map_err(ArchiveError::from).and_then(|asked| match asked.columns {
                None => self.records(request, &asked.query),
                Some(columns) => self.columns(request, &asked.query, &columns),
            });
        match searched {
            Ok(scanned) => drop(request.answer(&End { scanned })),
            Err(error) => request.refuse(error),
        }
    }

    fn records(&self, request: &Request, query: &Query) -> Result<Scanned, ArchiveError> {
        let mut parts = Parts { request, builder: LogBatchBuilder::with_limit(PART_LENGTH), gone: false };
        let (stop, _watch) = Services::stop(request, query.asker);
        let searched = self.shared.archive.search(query, &stop, &mut |found| {
            parts.push(found.record);
            !parts.gone && !self.shared.stopping.load(Ordering::Relaxed)
        });
        parts.send();
        searched
    }

    fn columns(&self, request: &Request, query: &Query, columns: &[String]) -> Result<Scanned, ArchiveError> {
        let schema = log_columns(columns)?;
        let (stop, _watch) = Services::stop(request, query.asker);
        let mut writer = ColumnWriter::new(schema.clone(), PART_LENGTH);
        let (mut gone, mut sent) = (!request.part(&writer.begin()), 0);
        let scanned = self.shared.archive.columns(query, &schema, &stop, &mut |batch| {
            gone |= !writer.batch(&batch, &mut |message| {
                sent += message.len();
                request.part(&message)
            });
            // The asker goes on behind the last row.
            sent < COLUMNS_BYTES && !gone && !self.shared.stopping.load(Ordering::Relaxed)
        })?;
        request.part(&ColumnWriter::end());
        Ok(scanned)
    }

    fn stat(&self, request: &Request) {
        let counted = request.json_or_default().and_then(|StatQuestion { query, by, patterns }| {
            let (stop, _watch) = Services::stop(request, query.asker);
            let archive = &self.shared.archive;
            match patterns {
                Some(wanted) => archive.patterns(&query, &wanted, &stop).map(|patterns| request.answer(&patterns)),
                None => archive.count(&query, &by, &stop).map(|counts| request.answer(&counts)),
            }
            .map_err(|error| error.to_string())
        });
        if let Err(error) = counted {
            request.refuse(error);
        }
    }

    fn archive(&self, request: &Request) {
        let asked = match request.json::<Upkeep>() {
            Ok(asked) => asked,
            Err(error) => return request.refuse(error),
        };
        let verb = if asked.only_reads() { Verb::Read } else { Verb::Backup };
        if let Err(denied) = request.require(verb) {
            return request.deny(denied);
        }
        let what = match asked
            .admitted(&self.shared.options.backups, request.is_local(), |data| archive_in(data, self.shared.participant.domain()))
        {
            Ok(what) => what,
            Err(why) => return request.refuse(why),
        };
        let shared = &self.shared;
        let tell = |told: Told| request.answer(&told) && !shared.stopping.load(Ordering::Relaxed);
        let done = self.turn.take(&*shared.archive, &what, &Stop::after(request.time()), &tell);
        request.conclude(verb, &what, done.map(Told::Done));
    }

    fn status(&self, request: &Request) {
        request.answer(&self.shared.report());
    }

    fn keeps(&self, request: &Request) {
        request.answer(&Keeps { stuck: self.shared.archive.stuck() });
    }

    fn offsets(&self, request: &Request) {
        let asked: OffsetsQuestion = match request.json_or_default() {
            Ok(asked) => asked,
            Err(error) => return request.refuse(error),
        };
        if asked.commit {
            // A disk that is too slow for it makes the answer late, not wrong: the offsets say what is committed.
            self.shared.archive.flush(request.time().min(COMMIT));
        }
        let participant = &self.shared.participant;
        let mut here: HashSet<Incarnation> = participant.sources().iter().map(|source| source.incarnation).collect();
        here.extend(asked.of);
        // Before the offsets are read: samples that arrive meanwhile are later than this.
        let now = participant.clock().utc();
        let offsets = self.shared.archive.offsets().into_iter().filter(|offset| here.contains(&offset.incarnation));
        let streams =
            offsets.map(|StreamOffset { incarnation, stream, next }| KeptStream { incarnation, stream, next }).collect();
        request.answer(&Kept { now, streams });
    }
}

/// Returns the permission for a service; without a verb its handler asks the hook.
fn permission(access: &Access, verb: Option<Verb>) -> Permission {
    match verb {
        Some(verb) => Permission::Verb(access.clone(), verb),
        None => Permission::ByHandler(access.clone()),
    }
}

/// Records on their way out, a part at a time.
struct Parts<'a> {
    request: &'a Request,
    builder: LogBatchBuilder,
    gone: bool,
}

impl Parts<'_> {
    fn push(&mut self, record: &LogRecord) {
        if let Err(PushError::Full { .. }) = self.builder.push_record(record) {
            self.send();
            if self.builder.push_record(record).is_err() {
                // Longer than a part may be: the record is sent alone.
                let mut alone = LogBatchBuilder::new();
                if alone.push_record(record).is_ok() {
                    self.gone |= !self.request.part(alone.seal());
                }
            }
        }
    }

    fn send(&mut self) {
        if !self.builder.is_empty() {
            self.gone |= !self.request.part(self.builder.seal());
            self.builder.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tampu_bus::{
        Participant, QosTable,
        access::{Members, Principal},
        engine::memory::MemoryNet,
        service::CallError,
    };
    use tampu_types::{Domain, SourceName};

    use super::{super::CollectorOptions, *};
    use crate::collector::ask;
    use tampu_archive::{Grouping, LocalArchive, Options};

    #[test]
    fn who_is_no_member_gets_no_answer_but_the_refusal() {
        let (net, dir) = (MemoryNet::new(1), tempfile::tempdir().unwrap());
        let domain = Domain::new("lab").unwrap();
        let join = |name: &str| {
            let name = SourceName::new(name).unwrap();
            Participant::on(net.engine("host"), domain.clone(), name, QosTable::default()).unwrap()
        };
        // A closed hub, and a caller with the key of another domain.
        let stranger = Principal::KeyHolder(Domain::new("elsewhere").unwrap());
        let who = stranger.clone();
        let access = Access::new(Arc::new(Members::default()), move || who.clone());
        let options = CollectorOptions { access, ..CollectorOptions::new(dir.path().join("rejected")) };
        let archive = Arc::new(LocalArchive::open(dir.path(), Options::new(domain.clone())).unwrap());
        // Its workers would advance the simulated clock; a refusal needs none of them.
        let shared = CollectorShared::new(join("collector"), archive, options);
        let _services = Services::declare(&shared).unwrap();
        let asker = join("asker");
        net.advance(Duration::from_millis(10));

        let wait = Duration::from_secs(60);
        let answers = [
            ask::query(&asker, &Query::default(), wait, &mut |_| panic!("a record came")).map(|_| ()),
            ask::stat(&asker, &Query::default(), &Grouping::default(), wait).map(|_| ()),
            ask::status(&asker, wait).map(|_| ()),
            ask::offsets(&asker, wait).map(|_| ()),
        ];
        // The worker that reads the question refuses upkeep, and it would advance the clock.
        let expected = [(Verb::Query, QUERY), (Verb::Query, STAT), (Verb::Read, STATUS), (Verb::Read, OFFSETS)];
        for (answer, (verb, service)) in answers.into_iter().zip(expected) {
            match answer {
                Err(CallError::Denied(denied)) => {
                    assert_eq!((&denied.principal, denied.verb, denied.resource.name()), (&stranger, verb, service.to_owned()));
                }
                other => panic!("{service}: {other:?}"),
            }
        }
    }

    #[test]
    fn on_an_open_network_backups_go_where_the_configuration_says() {
        let (net, dir) = (MemoryNet::new(1), tempfile::tempdir().unwrap());
        let domain = Domain::new("lab").unwrap();
        let join = |name: &str| {
            let name = SourceName::new(name).unwrap();
            Participant::on(net.engine("host"), domain.clone(), name, QosTable::default()).unwrap()
        };
        let open = Members { open_to: Some(domain.clone()) };
        let who = Principal::KeyHolder(domain.clone());
        let (allowed, other) = (dir.path().join("backups"), dir.path().join("other"));
        std::fs::create_dir(&allowed).unwrap();
        let options = CollectorOptions {
            access: Access::new(Arc::new(open), move || who.clone()),
            backups: tampu_archive::BackupPlaces::new([allowed.clone()]),
            ..CollectorOptions::new(dir.path().join("rejected"))
        };
        let archive = Arc::new(LocalArchive::open(dir.path().join("log"), Options::new(domain.clone())).unwrap());
        let services = Services { shared: CollectorShared::new(join("collector"), archive, options), turn: Turn::default() };
        let ask = |target: &std::path::Path| {
            let parts: Arc<parking_lot::Mutex<Vec<String>>> = Arc::default();
            let into = parts.clone();
            let question = serde_json::to_vec(&Upkeep::Backup(target.to_owned())).unwrap();
            let request = Request::outside(question.into(), move |part| {
                into.lock().push(String::from_utf8_lossy(&part[16..]).into_owned());
            });
            services.archive(&request);
            parts.lock().concat()
        };
        let refused = ask(&other);
        assert!(refused.starts_with("{\"error\":") && refused.contains("[collector] backups"), "{refused}");
        assert!(!other.exists());
        let done = ask(&allowed.join("today"));
        assert!(done.contains("\"done\"") && allowed.join("today/lab/log/manifest.jsonl").exists(), "{done}");
    }

    #[test]
    fn while_all_searches_run_the_state_is_still_told() {
        let (net, dir) = (MemoryNet::new(1), tempfile::tempdir().unwrap());
        let domain = Domain::new("lab").unwrap();
        let join = |name: &str| {
            let name = SourceName::new(name).unwrap();
            Participant::on(net.engine("host"), domain.clone(), name, QosTable::default()).unwrap()
        };
        let archive = Arc::new(LocalArchive::open(dir.path().join("log"), Options::new(domain.clone())).unwrap());
        // No search has a place, as while all places are taken.
        let options = CollectorOptions { searches: 0, ..CollectorOptions::new(dir.path().join("rejected")) };
        let shared = CollectorShared::new(join("collector"), archive, options);
        let _services = Services::declare(&shared).unwrap();
        let asker = join("asker");
        net.advance(Duration::from_millis(10));
        let wait = Duration::from_secs(60);
        let refused = ask::query(&asker, &Query::default(), wait, &mut |_| true);
        assert!(matches!(refused, Err(CallError::Refused { .. })), "{refused:?}");
        // Simulated time may be up before a real thread has answered: then the question is put again.
        fn told<T>(ask: impl Fn() -> Result<T, CallError>) -> T {
            loop {
                match ask() {
                    Ok(answer) => return answer,
                    Err(CallError::Refused { why, .. }) => panic!("refused: {why}"),
                    Err(_) => std::thread::yield_now(),
                }
            }
        }
        assert_eq!(told(|| ask::keeps(&asker, wait)), None);
        told(|| ask::offsets(&asker, wait));
        told(|| ask::status(&asker, wait));
    }
}
