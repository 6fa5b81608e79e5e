//! Tests of the samples that the intake puts into its queue, on a simulated network whose clock the test moves.

use std::{mem::ManuallyDrop, sync::Arc, time::Duration};

use parking_lot::RwLock;
use tampu_archive::{Options, TableArchive};
use tampu_bus::{
    Participant, QosTable,
    access::{Access, Authorise, Denied, Principal, Resource, Verb},
    engine::memory::MemoryNet,
};
use tampu_types::{
    Domain, SourceName,
    event::{AttributeConfig, AttributePattern, DataType, Format, Kinds, Reason, Value, kept::KeptEvent},
};

use super::{EventIntake, EventQueue};
use crate::{
    Client, Server,
    client::{ClientSettings, SubscribeOptions, Subscription},
    history::{HistorySettings, SCHEMA, queue::WAITING},
    server::{Attribute, AttributeOptions, ServerSettings, Workers},
};

const MS: Duration = Duration::from_millis(1);

/// Network with a history whose queue no thread empties.
struct Scene {
    net: MemoryNet,
    queue: Arc<EventQueue>,
    // Both are leaked: an orderly end would wait for other threads, which do not run in this test.
    client: ManuallyDrop<Client>,
    _subscription: ManuallyDrop<Subscription>,
    _dir: tempfile::TempDir,
}

/// Process that publishes events.
struct Source {
    server: ManuallyDrop<Server>,
}

/// Row of the history: reason, source, first and last number, note.
type Row = (Reason, String, u64, u64, String);

impl Scene {
    fn new() -> Scene {
        Scene::with(Access::same_user())
    }

    fn with(access: Access) -> Scene {
        let (net, dir) = (MemoryNet::new(1), tempfile::tempdir().unwrap());
        let archive = TableArchive::open(dir.path(), &SCHEMA, Options::new(Domain::new("test").unwrap())).unwrap();
        let all = || vec![AttributePattern::new("*").unwrap()];
        let settings = Arc::new(RwLock::new(HistorySettings { keep: all(), ..HistorySettings::default() }));
        let queue = Arc::new(EventQueue::default());
        let participant = join(&net, "hub");
        let mut intake = EventIntake::new(settings, Arc::new(archive), queue.clone(), access, participant.clone());
        let client = Client::start(participant, ClientSettings { workers: Workers::Caller, ..Default::default() }).unwrap();
        let subscription = client.subscribe(SubscribeOptions::of(all()).kinds(Kinds(u32::MAX)), move |event| intake.take(event));
        Scene { net, queue, client: ManuallyDrop::new(client), _subscription: ManuallyDrop::new(subscription), _dir: dir }
    }

    fn source(&self, name: &str) -> Source {
        let participant = join(&self.net, name);
        let settings = ServerSettings { workers: Workers::Caller, ..ServerSettings::default() };
        Source { server: ManuallyDrop::new(Server::start(participant, settings).unwrap()) }
    }

    fn pass(&self, milliseconds: u32, sources: &[&Source]) {
        for _ in 0..milliseconds {
            sources.iter().for_each(|source| source.server.turn());
            self.client.turn();
            self.net.advance(MS);
        }
        self.client.turn();
    }

    /// Takes the waiting rows out of the queue.
    fn rows(&self) -> Vec<Row> {
        let waiting = std::mem::take(&mut *self.queue.waiting());
        let row = |sample: &Vec<u8>| {
            let kept = KeptEvent::parse(sample).ok()?;
            Some((kept.reason, kept.source.to_owned(), kept.from, kept.number, kept.note.to_owned()))
        };
        waiting.samples.iter().filter_map(row).collect()
    }
}

fn join(net: &MemoryNet, name: &str) -> Participant {
    let (domain, source) = (Domain::new("test").unwrap(), SourceName::new(name).unwrap());
    Participant::on(net.engine("host"), domain, source, QosTable::new(Vec::new()).unwrap()).unwrap()
}

fn declare(source: &Source, redundant: bool) -> Attribute {
    let config = AttributeConfig::new("a/b/c/d".parse().unwrap(), DataType::Double, Format::Scalar);
    source.server.declare_with(config, AttributeOptions { redundant, ..AttributeOptions::default() }).unwrap()
}

fn push(attribute: &Attribute, value: f64) {
    attribute.push_as(Kinds::CHANGE, &crate::criteria::Reading::of(Value::scalar(&value)), None).unwrap();
}

#[test]
fn what_a_full_queue_has_no_room_for_is_told_with_the_word_of_its_source() {
    let scene = Scene::new();
    let pump = scene.source("pump");
    let pressure = declare(&pump, false);
    scene.pass(50, &[&pump]);
    push(&pressure, 1.0);
    scene.pass(50, &[&pump]);
    let row = |reason, from, number, note: &str| (reason, "pump".to_owned(), from, number, note.to_owned());
    let first = scene.rows();
    assert!(first.iter().any(|row| (row.2, row.3) == (1, 1)), "{first:?}");
    assert!(scene.queue.put(vec![vec![0; WAITING]]));
    push(&pressure, 2.0);
    push(&pressure, 3.0);
    scene.pass(50, &[&pump]);
    drop(pressure);
    scene.pass(50, &[&pump]);
    assert_eq!(scene.rows(), [row(Reason::Gap, 2, 3, "more events than the archive accepts"), row(Reason::SourceLeft, 0, 0, "")]);
}

/// Rules under which nobody writes events of the attribute `a/b/c/d`.
struct NoEvents;

impl Authorise for NoEvents {
    fn authorise(&self, principal: &Principal, verb: Verb, resource: &Resource) -> Result<(), Denied> {
        if verb != Verb::Write || *resource != Resource::Attribute("a/b/c/d".to_owned()) {
            return Ok(());
        }
        let why = "a rule denies it".to_owned();
        Err(Denied { principal: principal.clone(), verb, resource: resource.clone(), why })
    }
}

#[test]
fn an_event_that_the_rules_refuse_is_not_kept_and_is_reported() {
    let scene = Scene::with(Access::new(Arc::new(NoEvents), Principal::this_user));
    let pump = scene.source("pump");
    let pressure = declare(&pump, false);
    scene.pass(50, &[&pump]);
    push(&pressure, 1.0);
    push(&pressure, 2.0);
    scene.pass(50, &[&pump]);
    assert_eq!(scene.rows(), []);
    let (events, why) = scene.queue.take_refusals().unwrap();
    assert!(events >= 2 && why.contains("from pump: ") && why.ends_with("a rule denies it"), "{events} {why}");
    assert_eq!(scene.queue.refused.load(std::sync::atomic::Ordering::Relaxed), events);
    assert_eq!(scene.queue.take_refusals(), None);
}

#[test]
fn what_a_source_said_while_another_one_was_followed_is_a_gap() {
    let scene = Scene::new();
    // The first of two has the attribute, as long as it is there.
    let (one, two) = (scene.source("one"), scene.source("two"));
    let spare = declare(&two, true);
    push(&spare, 1.0);
    scene.pass(100, &[&one, &two]);
    let main = declare(&one, true);
    push(&main, 1.0);
    scene.pass(100, &[&one, &two]);
    for value in 2..6 {
        push(&spare, f64::from(value));
        push(&main, f64::from(value));
    }
    scene.pass(100, &[&one, &two]);
    drop(main);
    scene.pass(1000, &[&one, &two]);
    push(&spare, 6.0);
    scene.pass(100, &[&one, &two]);
    let rows = scene.rows();
    let of_spare = rows.iter().filter(|row| row.1 == "two" && row.3 > 0);
    let (mut told, mut gaps) = (0, Vec::new());
    for (reason, _, from, number, note) in of_spare {
        assert_eq!(*from, told + 1, "each number once: {rows:?}");
        assert!(*reason == Reason::Gap || from == number, "no reading stands for what was not heard: {rows:?}");
        if *reason == Reason::Gap {
            gaps.push((*from, *number, note.as_str()));
        }
        told = *number;
    }
    assert_eq!(told, 6, "{rows:?}");
    assert!(!gaps.is_empty(), "{rows:?}");
}
