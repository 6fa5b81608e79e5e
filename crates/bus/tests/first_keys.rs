//! A watch says when it has reported the keys that were announced at its beginning.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::channel,
    },
    time::Duration,
};

use tampu_bus::{
    clock::Gate,
    connect::{Node, NodeSettings, Settings},
    engine::{Engine, Guard, memory::MemoryNet},
};

/// Longest wait of a test; far longer than it takes, because machines are busy.
const PATIENCE: Duration = Duration::from_secs(30);
const KEYS: usize = 200;

/// Start of keys that the engine reports, and of such that a node passes on.
const PLACES: [&str; 2] = ["p", "tampu/local/p"];

fn announce_all(engine: &Arc<dyn Engine>, place: &str) -> Vec<Guard> {
    (0..KEYS).map(|number| engine.announce(&format!("{place}/{number}/x")).unwrap()).collect()
}

/// Watches all keys; returns the number of the keys that were reported before the end of the first ones.
fn first_keys(engine: &Arc<dyn Engine>, place: &str) -> (usize, Guard) {
    let count = Arc::new(AtomicUsize::new(0));
    let (counter, counted) = (count.clone(), count.clone());
    let (tell, told) = channel();
    let seen = Arc::new(move |_| _ = counter.fetch_add(1, Ordering::AcqRel));
    let caught_up = Box::new(move || tell.send(counted.load(Ordering::Acquire)).unwrap());
    let guard = engine.watch(&format!("{place}/**"), seen, Some(caught_up)).unwrap();
    (told.recv_timeout(PATIENCE).unwrap(), guard)
}

/// Waits until an engine knows all keys.
fn await_all(engine: &Arc<dyn Engine>, place: &str) {
    let count = Arc::new(AtomicUsize::new(0));
    let gate = Arc::new(Gate::default());
    let (counter, news) = (count.clone(), gate.clone());
    let seen = Arc::new(move |_| {
        counter.fetch_add(1, Ordering::AcqRel);
        news.open();
    });
    let _watch = engine.watch(&format!("{place}/**"), seen, None).unwrap();
    while count.load(Ordering::Acquire) < KEYS {
        let openings = gate.openings();
        if count.load(Ordering::Acquire) < KEYS {
            gate.wait_host(openings, PATIENCE);
            assert!(gate.openings() > openings, "{count:?} keys");
        }
    }
}

#[test]
fn every_process_of_a_node_learns_the_end_of_the_first_keys() {
    PLACES.into_iter().for_each(processes_of_a_node);
}

fn processes_of_a_node(place: &str) {
    let run = tempfile::tempdir().unwrap();
    let node = Node::start(NodeSettings::new(Settings::isolated(run.path()))).unwrap();
    let here = node.client_settings().open().unwrap();
    let _keys = announce_all(&here, place);
    await_all(&node.client_settings().open().unwrap(), place);
    for round in 0..10 {
        let engine = node.client_settings().open().unwrap();
        let (first, _watch) = first_keys(&engine, place);
        // The session knows the keys already.
        let (second, _other) = first_keys(&engine, place);
        assert_eq!((first, second), (KEYS, KEYS), "round {round}");
    }
    // Engines on the node share its session.
    let _watches: Vec<Guard> = (0..3)
        .map(|round| {
            let (first, guard) = first_keys(&node.engine().unwrap(), place);
            assert_eq!(first, KEYS, "engine {round} of the node");
            guard
        })
        .collect();
}

#[test]
fn peers_without_a_node_learn_the_end_of_the_first_keys() {
    let run = tempfile::tempdir().unwrap();
    let settings = || Settings::isolated(run.path());
    let here = settings().open().unwrap();
    let _keys = announce_all(&here, PLACES[0]);
    let first = settings().open().unwrap();
    await_all(&first, PLACES[0]);
    let second = settings().open().unwrap();
    assert_eq!(first_keys(&second, PLACES[0]).0, KEYS);
}

#[test]
fn the_first_keys_of_a_simulated_process_come_before_their_end() {
    let net = MemoryNet::new(1);
    let here: Arc<dyn Engine> = net.engine("here");
    let _keys = announce_all(&here, PLACES[0]);
    net.advance(Duration::from_millis(5));
    let count = Arc::new(AtomicUsize::new(0));
    let at_end = Arc::new(AtomicUsize::new(usize::MAX));
    let (counter, counted, end) = (count.clone(), count.clone(), at_end.clone());
    let seen = Arc::new(move |_| _ = counter.fetch_add(1, Ordering::AcqRel));
    let caught_up = Box::new(move || end.store(counted.load(Ordering::Acquire), Ordering::Release));
    let other: Arc<dyn Engine> = net.engine("there");
    let _watch = other.watch("p/**", seen, Some(caught_up)).unwrap();
    net.advance(Duration::from_millis(5));
    assert_eq!(at_end.load(Ordering::Acquire), KEYS);
}
