//! Tests of requests about loggers on the memory engine: replies, changes and refusals.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU8, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use proptest::prelude::*;
use tampu_bus::{
    QosTable,
    access::{Access, Authorise, Denied, Members, Principal, Resource, Verb},
    engine::{
        Guard,
        memory::{MemoryEngine, MemoryNet},
    },
};
use tampu_types::{Domain, SourceName};

use super::*;
use crate::logger::{LogSettings, Logger, shared::LoggerShared};

const WAIT: Duration = Duration::from_secs(1);

fn settings(source: &str) -> LogSettings {
    LogSettings::isolated(Domain::new("lab").unwrap(), SourceName::new(source).unwrap())
}

/// A process that logs, without the backend's thread: nothing happens here without a call of the test.
struct Process {
    loggers: Arc<LoggerShared>,
    engine: Arc<MemoryEngine>,
    _served: Guard,
    _participant: Participant,
}

struct Net(MemoryNet);

impl Net {
    fn new() -> Net {
        Net(MemoryNet::new(1))
    }

    fn join(&self, name: &str) -> (Arc<MemoryEngine>, Participant) {
        let engine = self.0.engine("host");
        let (domain, name) = (Domain::new("lab").unwrap(), SourceName::new(name).unwrap());
        let participant = Participant::on(engine.clone(), domain, name, QosTable::default()).unwrap();
        (engine, participant)
    }

    fn process(&self, settings: LogSettings, names: &[&str]) -> Process {
        let (engine, participant) = self.join(settings.source.as_str());
        let loggers = Arc::new(LoggerShared::new(settings).unwrap());
        names.iter().for_each(|name| drop(loggers.levels(name)));
        let served = serve(&participant, loggers.clone()).unwrap();
        Process { loggers, engine, _served: served, _participant: participant }
    }

    /// Sends a request as a newly joined process.
    fn ask(&self, question: &Question) -> Heard {
        let (_, asker) = self.join("asker");
        self.0.advance(Duration::from_millis(10));
        ask(&asker, question, WAIT).unwrap()
    }

    /// Asks with these bytes and returns the answer of one process.
    fn ask_raw(&self, question: &[u8]) -> Result<ProcessLoggers, CallError> {
        let (_, asker) = self.join("asker");
        self.0.advance(Duration::from_millis(10));
        tampu_bus::service::call(&asker, LEVELS, question.to_vec(), WAIT).unwrap().first().json()
    }
}

fn set(source: Option<&str>, name: &str, change: Change) -> Question {
    Question { source: source.map(Into::into), name: Some(name.into()), set: Some(change), ..Question::default() }
}

fn central(level: Level) -> Change {
    Change { central: Some(Threshold::From(level)), local: None }
}

/// (source, logger, central, local) of all that was answered.
fn rows(heard: &Heard) -> Vec<(&str, &str, Threshold, Threshold)> {
    let mut rows: Vec<_> = heard
        .processes
        .values()
        .flat_map(|process| process.loggers.iter().map(|it| (&*process.source, &*it.name, it.central, it.local)))
        .collect();
    rows.sort_by_key(|row| (row.0, row.1));
    rows
}

#[test]
fn every_process_tells_its_named_loggers() {
    let net = Net::new();
    let quiet = LogSettings { central: Threshold::Off, local: Threshold::From(Level::Alert), ..settings("CORR") };
    let _processes = [net.process(settings("CONTROL/DV01"), &["mount", "cryostat"]), net.process(quiet, &["quadrant"])];
    let heard = net.ask(&Question::default());
    let delouse = Threshold::From(Level::Delouse);
    assert_eq!(
        rows(&heard),
        [
            ("CONTROL/DV01", "cryostat", delouse, Threshold::Off),
            ("CONTROL/DV01", "mount", delouse, Threshold::Off),
            ("CORR", "quadrant", Threshold::Off, Threshold::From(Level::Alert)),
        ]
    );
    assert!(heard.complete && heard.unheeded.is_empty(), "{heard:?}");
    // A process without matching loggers still answers: the asker does not wait for it, and counts it as present.
    let heard = net.ask(&Question { source: Some("control/*".into()), name: Some("m*".into()), ..Question::default() });
    assert_eq!(rows(&heard), [("CONTROL/DV01", "mount", delouse, Threshold::Off)]);
    assert_eq!(heard.processes.len(), 2);
}

#[test]
fn a_change_holds_for_what_matches_and_for_nothing_else() {
    let net = Net::new();
    let control = net.process(settings("CONTROL/DV01"), &["mount", "mount.servo", "cryostat"]);
    let corr = net.process(settings("CORR"), &["mount"]);
    let any = |process: &Process, name: &str| process.loggers.levels(name).any.load(Ordering::Relaxed);

    let heard = net.ask(&set(Some("CONTROL/*"), "mount*", central(Level::Error)));
    let error = Threshold::From(Level::Error);
    assert_eq!(
        rows(&heard),
        [("CONTROL/DV01", "mount", error, Threshold::Off), ("CONTROL/DV01", "mount.servo", error, Threshold::Off)]
    );
    assert_eq!([any(&control, "mount"), any(&control, "cryostat"), any(&corr, "mount")], [8, 2, 2]);

    // Printing alone, at a level below the published ones: a call that is only printed is enabled.
    let local = Change { central: None, local: Some(Threshold::From(Level::Trace)) };
    net.ask(&set(None, "MOUNT", local));
    assert_eq!([any(&control, "mount"), any(&control, "mount.servo"), any(&corr, "mount")], [1, 8, 1]);
    let off = Change { central: Some(Threshold::Off), local: Some(Threshold::Off) };
    net.ask(&set(None, "*", off));
    assert_eq!([any(&control, "mount"), any(&control, "cryostat"), any(&corr, "mount")], [99, 99, 99]);
    assert!(rows(&net.ask(&set(None, "weather", off))).is_empty());
}

#[test]
fn seeing_and_changing_are_asked_of_the_hook_each_for_itself() {
    /// Allows everybody to read, and nobody to change; records the checks.
    struct LookOnly(Mutex<Vec<(Verb, Resource)>>);
    impl Authorise for LookOnly {
        fn authorise(&self, principal: &Principal, verb: Verb, resource: &Resource) -> Result<(), Denied> {
            self.0.lock().unwrap().push((verb, resource.clone()));
            let denied = || Denied { principal: principal.clone(), verb, resource: resource.clone(), why: "look only".into() };
            if verb == Verb::Read { Ok(()) } else { Err(denied()) }
        }
    }
    let net = Net::new();
    let hook = Arc::new(LookOnly(Mutex::default()));
    let access = Access::new(hook.clone(), Principal::this_user);
    let strict = net.process(LogSettings { access, ..settings("CONTROL/DV01") }, &["mount"]);
    let _free = net.process(settings("CORR"), &["mount"]);

    assert_eq!(net.ask(&Question::default()).processes.len(), 2);
    let heard = net.ask(&set(None, "mount", central(Level::Error)));
    assert_eq!(rows(&heard), [("CORR", "mount", Threshold::From(Level::Error), Threshold::Off)]);
    let refusal = heard.unheeded.values().next().unwrap();
    assert!(matches!(refusal, CallError::Denied(denied) if denied.verb == Verb::Set), "{refusal:?}");
    assert_eq!(strict.loggers.loggers()[0].central, Threshold::From(Level::Delouse), "nothing was set");
    let levels = Resource::Service(LEVELS.into());
    assert_eq!(*hook.0.lock().unwrap(), [(Verb::Read, levels.clone()), (Verb::Set, levels)]);

    // A caller without access gets no information either.
    let stranger = Principal::KeyHolder(Domain::new("elsewhere").unwrap());
    let access = Access::new(Arc::new(Members::default()), move || stranger.clone());
    let _closed = net.process(LogSettings { access, ..settings("SCHEDULING") }, &[]);
    let heard = net.ask(&Question::default());
    assert!(heard.unheeded.values().any(|why| matches!(why, CallError::Denied(denied) if denied.verb == Verb::Read)));
}

#[test]
fn a_process_that_does_not_answer_is_told() {
    let net = Net::new();
    let stopped = net.process(settings("CONTROL/DV01"), &["mount"]);
    let _runs = net.process(settings("CORR"), &["mount"]);
    let (_, asker) = net.join("asker");
    net.0.advance(Duration::from_millis(10));
    net.0.stop(&stopped.engine);
    let heard = ask(&asker, &Question::default(), WAIT).unwrap();
    assert_eq!((heard.complete, heard.processes.len()), (false, 1));
    net.0.resume(&stopped.engine);
    assert!(ask(&asker, &Question::default(), WAIT).unwrap().complete);
}

#[test]
fn nobody_there_is_no_complete_answer() {
    let heard = Net::new().ask(&Question::default());
    assert_eq!((heard.complete, heard.processes.len()), (false, 0));
}

#[test]
fn a_long_answer_comes_in_parts_and_whole() {
    let net = Net::new();
    let process = net.process(settings("CONTROL/DV01"), &[]);
    let names: Vec<String> = (0..12_000).map(|number| format!("{number:0100}")).collect();
    names.iter().for_each(|name| drop(process.loggers.levels(name)));
    let _other = net.process(settings("CORR"), &["mount"]);
    let heard = net.ask(&Question::default());
    let told: Vec<&str> = rows(&heard).into_iter().filter(|row| row.0 == "CONTROL/DV01").map(|row| row.1).collect();
    assert_eq!((told.len(), heard.processes.len()), (12_000, 2));
    assert!(told.into_iter().eq(names.iter().map(String::as_str)));
}

#[test]
fn what_cannot_be_read_changes_nothing_and_is_named() {
    let net = Net::new();
    let process = net.process(settings("CONTROL/DV01"), &["mount"]);
    for (question, named) in [
        (&b"{"[..], "the question cannot be read"),
        (br#"{"name": "mount", "levels": {}}"#, "unknown field `levels`"),
        (br#"{"set": {"central": "Loud"}}"#, "'Loud' is not a level"),
        (br#"{"set": {"remote": "Off"}}"#, "unknown field `remote`"),
        (br#"{"set": "Off"}"#, "the question cannot be read"),
        (&[b' '; 5000], "5000 bytes, the longest allowed is 4096"),
    ] {
        match net.ask_raw(question) {
            Err(CallError::Refused { why, .. }) => assert!(why.contains(named), "{why}"),
            other => panic!("{}: {other:?}", String::from_utf8_lossy(question)),
        }
    }
    assert_eq!(process.loggers.loggers()[0].central, Threshold::From(Level::Delouse));
    // An empty question, and one of blanks only, asks for everything.
    assert_eq!(net.ask_raw(b"").unwrap(), net.ask_raw(b" \n").unwrap());
}

#[test]
fn the_page_of_the_contract_shows_what_travels() {
    let page = include_str!("../../../../../spec/log-services.md");
    let shown = |json: String| assert!(page.contains(&json), "spec/log-services.md does not show {json}");
    let change = Change { central: Some(Threshold::From(Level::Debug)), local: Some(Threshold::Off) };
    shown(serde_json::to_string(&set(Some("CONTROL/*"), "mount*", change)).unwrap());
    let counted = Counted {
        published: 7,
        by_level: [(Level::Debug, 4), (Level::Info, 3)].into(),
        dropped: 1,
        waited: 2,
        bytes: 900,
        high_water: None,
        unprinted: 0,
        suppressed: 0,
    };
    let mount =
        LoggerState { name: "mount".into(), central: Threshold::From(Level::Debug), local: Threshold::Off, attached: None };
    let answer = ProcessLoggers { source: "CONTROL/DV01".into(), loggers: vec![mount], stats: counted };
    shown(serde_json::to_string(&answer).unwrap());
}

/// Releases two threads at once, as close as the machine allows: the test must hit a window of a few instructions.
struct Start(AtomicU32);

impl Start {
    fn together(&self, batch: u32) {
        self.0.fetch_add(1, Ordering::SeqCst);
        let mut looks = 0;
        while self.0.load(Ordering::SeqCst) < 2 * batch {
            looks += 1;
            // The other thread may be waiting for this processor.
            if looks % 1000 == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}

#[test]
fn two_who_change_one_logger_at_once_leave_nothing_disabled() {
    let loggers = LoggerShared::new(settings("CONTROL/DV01")).unwrap();
    let levels = loggers.levels("mount");
    let (begin, end) = (Start(AtomicU32::new(0)), Start(AtomicU32::new(0)));
    let change = |central: bool, batch: u32| {
        let threshold = Some(Threshold::From(Level::ALL[batch as usize % 10]));
        if central { Change { central: threshold, local: None } } else { Change { central: None, local: threshold } }
    };
    let wrong = std::thread::scope(|scope| {
        let run = |central: bool| {
            let (levels, begin, end) = (&levels, &begin, &end);
            move || {
                let mut wrong = 0;
                for batch in 0..20_000 {
                    let change = change(central, if central { batch } else { batch * 7 });
                    begin.together(2 * batch + 1);
                    levels.set(change.central, change.local);
                    end.together(2 * batch + 1);
                    let read = |cell: &AtomicU8| cell.load(Ordering::SeqCst);
                    wrong += u32::from(read(&levels.any) != read(&levels.central).min(read(&levels.local)));
                    begin.together(2 * batch + 2);
                    end.together(2 * batch + 2);
                }
                wrong
            }
        };
        let other = scope.spawn(run(false));
        run(true)() + other.join().unwrap()
    });
    assert_eq!(wrong, 0, "of 20000 times");
}

#[test]
fn a_process_that_has_not_logged_yet_can_be_turned_up_in_all_its_threads() {
    let net = Net::new();
    let (_, participant) = net.join("CONTROL/DV01");
    let logger = Logger::on(participant, LogSettings { central: Threshold::Off, ..settings("CONTROL/DV01") }).unwrap();
    let mount = logger.named("mount");
    assert!(!mount.enabled(Level::Emergency));
    // The backend's thread joins by itself when it is scheduled.
    let patience = Instant::now() + Duration::from_secs(60);
    let question = set(None, "mount", central(Level::Debug));
    while rows(&net.ask(&question)).is_empty() {
        assert!(Instant::now() < patience, "nobody answers for the loggers");
        std::thread::yield_now();
    }
    let enabled = std::thread::scope(|scope| scope.spawn(|| mount.enabled(Level::Debug)).join().unwrap());
    assert!(enabled && !logger.enabled(Level::Emergency), "the one and not the other");
}

proptest! {
    #[test]
    fn no_question_breaks_the_one_who_answers(question in proptest::collection::vec(any::<u8>(), 0..200)) {
        let net = Net::new();
        let _process = net.process(settings("CONTROL/DV01"), &["mount"]);
        match net.ask_raw(&question) {
            Ok(process) => prop_assert_eq!(process.source, "CONTROL/DV01"),
            Err(why) => prop_assert!(matches!(why, CallError::Refused { .. }), "{why}"),
        }
    }

    #[test]
    fn no_answer_breaks_the_one_who_asked(answer in "[{}\\[\\]\":,a-z0-9]{0,60}") {
        prop_assert!(!matches!(read(answer.as_bytes()), Err(CallError::Denied(_))));
    }

    #[test]
    fn thresholds_are_those_that_were_set_last(
        changes in proptest::collection::vec((0..3_usize, threshold(), threshold()), 0..20),
    ) {
        let names = ["mount", "mount.servo", "cryostat"];
        let loggers = LoggerShared::new(settings("CONTROL/DV01")).unwrap();
        let mut model = names.map(|name| {
            let _ = loggers.levels(name);
            (Threshold::From(Level::Delouse), Threshold::Off)
        });
        for (which, central, local) in changes {
            let changed = loggers.set(&|name| name == names[which], Change { central, local });
            prop_assert_eq!(changed, [names[which]]);
            model[which] = (central.unwrap_or(model[which].0), local.unwrap_or(model[which].1));
        }
        for (name, (central, local)) in names.into_iter().zip(model) {
            let state = loggers.loggers().into_iter().find(|state| state.name == name).unwrap();
            prop_assert_eq!((state.central, state.local), (central, local));
            let levels = loggers.levels(name);
            for level in Level::ALL {
                let enabled = level.number() >= levels.any.load(Ordering::Relaxed);
                prop_assert_eq!(enabled, central.passes(level) || local.passes(level), "{} {}", name, level);
                prop_assert_eq!(loggers.prints(name, level), Some(local.passes(level)));
            }
        }
    }
}

fn threshold() -> impl Strategy<Value = Option<Threshold>> {
    proptest::option::of(prop_oneof![
        Just(Threshold::Off),
        (0..10_usize).prop_map(|ordinal| Threshold::From(Level::ALL[ordinal])),
    ])
}
