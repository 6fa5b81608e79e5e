//! Readings on demand: a question for a current value reaches the callback of its attribute.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use tampu_bus::{Participant, QosTable, connect::Settings};
use tampu_event::{
    Attribute, ask,
    server::{PendingRead, Server, ServerSettings},
};
use tampu_types::{
    Domain, SourceName,
    event::{Failure, Value, Values},
};

mod support;
use support::scalar;

const PATIENCE: Duration = Duration::from_secs(60);

/// A server with one attribute, and a process that asks for its value.
struct Scene {
    _dir: tempfile::TempDir,
    server: Server,
    attribute: Attribute,
    asker: Participant,
}

impl Scene {
    fn new() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let config = Settings::isolated(dir.path().join("run")).in_domain(Domain::new("test").unwrap());
        let join = |name: &str| {
            let (domain, source) = (Domain::new("test").unwrap(), SourceName::new(name).unwrap());
            Participant::on(config.open().unwrap(), domain, source, QosTable::default()).unwrap()
        };
        let server = Server::start(join("mount"), ServerSettings::default()).unwrap();
        let attribute = server.declare(scalar("a/b/c/d")).unwrap();
        let asker = join("asker");
        let until = Instant::now() + PATIENCE;
        while ask::list(&asker, None, PATIENCE).unwrap().is_empty() {
            assert!(Instant::now() < until, "the server does not answer");
        }
        Scene { _dir: dir, server, attribute, asker }
    }

    /// The current value, or the reason of its error.
    fn current(&self) -> Result<f64, String> {
        let names = ["a/b/c/d".parse().unwrap(), "a/b/c/no".parse().unwrap()];
        let found = ask::get(&self.asker, &names, PATIENCE).unwrap();
        assert_eq!(found.len(), 1, "the other attribute is nobody's");
        let event = &found[0].2;
        match (event.errors.first(), &event.value) {
            (Some(failure), None) => Err(failure.reason.clone()),
            (None, Some(Values::Double(value))) => Ok(value[0]),
            other => panic!("{other:?}"),
        }
    }

    /// Has the attribute read on demand: each read pushes its number, and the second one panics.
    fn count_reads(&self, max_age: Duration) -> Arc<AtomicU32> {
        let reads = Arc::new(AtomicU32::new(0));
        let count = reads.clone();
        self.attribute.on_read(max_age, move |attribute| match count.fetch_add(1, Ordering::Relaxed) {
            1 => std::panic::resume_unwind(Box::new("on purpose")),
            number => drop(attribute.push(Value::scalar(&f64::from(number))).unwrap()),
        });
        reads
    }
}

#[test]
fn a_question_for_the_current_value_reaches_the_callback() {
    let scene = Scene::new();
    let reads = scene.count_reads(Duration::from_secs(3600));
    assert_eq!((scene.current(), scene.current()), (Ok(0.0), Ok(0.0)));
    assert_eq!(reads.load(Ordering::Relaxed), 1, "the reading is young enough");
    scene.count_reads(Duration::ZERO);
    assert_eq!(scene.current(), Ok(0.0));
    assert_eq!(scene.current(), Err("Tampu_ReadPanicked".to_owned()));
    assert_eq!(scene.current(), Ok(2.0));
    scene.attribute.end_reads();
    assert_eq!(scene.current(), Ok(2.0), "without a callback it is the last reading");
    assert!(scene.server.conflicts().is_empty());
}

#[test]
fn those_who_ask_share_a_read_and_wait_for_a_bounded_time() {
    let scene = Scene::new();
    let asked: Arc<Mutex<Vec<PendingRead>>> = Arc::default();
    let hand_on = asked.clone();
    scene.attribute.on_read_asked(Duration::ZERO, move |read| hand_on.lock().unwrap().push(read));
    let late = Err("Tampu_ReadTimedOut".to_owned());
    assert_eq!((scene.current(), scene.current()), (late.clone(), late), "nobody ends the read");
    let mut reads: Vec<PendingRead> = asked.lock().unwrap().drain(..).collect();
    assert_eq!(reads.len(), 1, "the second question has waited for the same read");
    reads.pop().unwrap().fail(Failure::new("Drive_Off", "the drive is off"));
    for (wanted, end) in [("Tampu_NotRead", None), ("Drive_Off", Some(Failure::new("Drive_Off", "the drive is off")))] {
        let ending = asked.clone();
        let ended = std::thread::spawn(move || {
            let taken = || ending.lock().unwrap().pop();
            let read = std::iter::repeat_with(taken).inspect(|_| std::thread::yield_now()).flatten().next().unwrap();
            // A dropped read has failed.
            match end {
                Some(failure) => read.fail(failure),
                None => drop(read),
            }
        });
        assert_eq!(scene.current(), Err(wanted.to_owned()));
        ended.join().unwrap();
    }
}
