//! Subscribers that want only the newest value, of a server that waits for nobody and uses its memory again.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tampu_bus::{
    Participant, QosTable,
    clock::Gate,
    connect::{Node, NodeSettings, Settings},
};
use tampu_event::{
    client::{Client, ClientSettings, SubscribeOptions, Update},
    server::{Attribute, Server, ServerSettings},
};
use tampu_types::{
    Domain, SourceName,
    event::{AttributeConfig, DataType, Format, Kinds, Quality, Reason, Shape, ValueView},
};

mod support;
use support::wish;

/// Length of a value. Four fill the memory that a server lends to several readers at first.
const LENGTH: usize = 1 << 20;
const CLIENTS: usize = 5;
const ROUNDS: u64 = 3000;
const PATIENCE: Duration = Duration::from_secs(60);

/// Values that one subscriber was given.
#[derive(Debug, Default)]
struct Given {
    is_bound: bool,
    torn: Vec<(Reason, u64)>,
    /// Number of the last event of which it knows.
    last: u64,
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let (begun, pause) = (Instant::now(), Gate::default());
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        pause.wait_host(0, Duration::from_millis(1));
    }
}

/// A node, and a server with one attribute.
struct Scene {
    image: Attribute,
    _server: Server,
    config: Settings,
    _node: Node,
    _directory: tempfile::TempDir,
}

impl Scene {
    fn new() -> Scene {
        let directory = tempfile::tempdir().unwrap();
        let config = Settings::isolated(directory.path().join("run")).in_domain(Domain::new("test").unwrap());
        let node = Node::start(NodeSettings::new(config.clone())).unwrap();
        let server = Server::start(join(&config, "camera"), ServerSettings::default()).unwrap();
        let mut attribute = AttributeConfig::new("lab/camera/1/image".parse().unwrap(), DataType::UChar, Format::Spectrum);
        attribute.max_x = LENGTH as u32;
        let image = server.declare(attribute).unwrap();
        Scene { image, _server: server, config, _node: node, _directory: directory }
    }

    fn client(&self, number: usize) -> Client {
        Client::start(join(&self.config, &format!("panel {number}")), ClientSettings::default()).unwrap()
    }

    /// Publishes values whose bytes are their number: first as fast as they go, and then until some were given whole. Returns
    /// the number of the last one.
    fn publish(&self, whole: &AtomicU64) -> u64 {
        let (begun, pause) = (Instant::now(), Gate::default());
        for number in 1.. {
            if number > ROUNDS {
                if whole.load(Ordering::Acquire) > 0 {
                    return number - 1;
                }
                assert!(begun.elapsed() < PATIENCE, "no value was given whole");
                pause.wait_host(0, Duration::from_millis(5));
            }
            let mut lent = self.image.lend::<u8>(Shape::spectrum(LENGTH as u32)).unwrap();
            lent.fill(number as u8);
            assert_eq!(lent.publish(Kinds::USER, Quality::Valid).unwrap().number, number);
        }
        unreachable!("numbers do not end")
    }
}

fn join(config: &Settings, name: &str) -> Participant {
    let (engine, source) = (config.open().unwrap(), SourceName::new(name).unwrap());
    Participant::on(engine, config.domain.clone(), source, QosTable::default()).unwrap()
}

fn newest() -> SubscribeOptions {
    wish(&["lab/camera/1/image"]).kinds(Kinds::USER).unreliable()
}

#[test]
fn who_wants_the_newest_value_gets_it_whole() {
    let (scene, whole) = (Scene::new(), Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let client = scene.client(number);
            let given: Arc<Mutex<Given>> = Arc::default();
            let (into, whole) = (given.clone(), whole.clone());
            let subscription = client.subscribe(newest(), move |event| {
                let mut given = into.lock().unwrap();
                given.is_bound = true;
                given.last = given.last.max(event.number);
                let Some(ValueView::UChar(bytes)) = event.reading.and_then(|reading| reading.value) else { return };
                if bytes == vec![event.number as u8; LENGTH] {
                    whole.fetch_add(1, Ordering::AcqRel);
                } else {
                    given.torn.push((event.reason, event.number));
                }
            });
            (client, given, subscription)
        })
        .collect();
    let all = |is_so: &dyn Fn(&Given) -> bool| clients.iter().all(|(_, given, _)| is_so(&given.lock().unwrap()));
    until("all are bound", || all(&|given| given.is_bound) && scene.image.readers() == CLIENTS);
    let last = scene.publish(&whole);
    until("all know of the last event", || all(&|given| given.last == last));
    println!("whole {whole:?} of {last}");
    assert!(all(&|given| given.torn.is_empty()), "{:?}", clients.iter().map(|(_, given, _)| given).collect::<Vec<_>>());
}

/// Notes the value of an update.
fn note(given: &mut Given, whole: &AtomicU64, update: &Update) {
    let reading = update.reading();
    let Some(ValueView::UChar(bytes)) = reading.as_ref().and_then(|reading| reading.value) else { return };
    if bytes == vec![update.number as u8; LENGTH] {
        whole.fetch_add(1, Ordering::AcqRel);
    } else {
        given.torn.push((update.reason, update.number));
    }
}

#[test]
fn tables_and_streams_keep_whole_values_also_of_memory_that_callbacks_would_read_in_place() {
    let (scene, whole, over) = (Scene::new(), AtomicU64::new(0), AtomicBool::new(false));
    let given: Vec<Given> = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (client, over, whole) = (scene.client(number), &over, &whole);
                scope.spawn(move || {
                    let mut given = Given::default();
                    if number % 2 == 0 {
                        let table = client.latest(newest().in_place());
                        while !over.load(Ordering::Acquire) {
                            table.changed().iter().for_each(|update| note(&mut given, whole, update));
                        }
                    } else {
                        let stream = client.stream(newest().in_place(), 4);
                        while !over.load(Ordering::Acquire) {
                            if let Some(update) = stream.next(Duration::from_millis(10)) {
                                note(&mut given, whole, &update);
                            }
                        }
                    }
                    given
                })
            })
            .collect();
        until("all read", || scene.image.readers() == CLIENTS);
        scene.publish(&whole);
        over.store(true, Ordering::Release);
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    println!("whole {whole:?}");
    given.iter().for_each(|given| assert!(given.torn.is_empty(), "{given:?}"));
}
