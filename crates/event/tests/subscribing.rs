//! Events as a subscriber gets them, on a simulated network whose clock the test moves.

use std::{cell::Cell, sync::Arc, sync::Mutex};

use tampu_event::{
    client::{ClientSettings, Subscription},
    criteria::Reading,
    server::PushError,
};
use tampu_types::event::{AttributeName, Failure, Kinds, Missed, Quality, Reason, Value};

mod support;
use support::*;

fn told_value(update: &tampu_event::client::Update) -> Option<f64> {
    told(update).2
}

#[test]
fn the_current_value_comes_first_then_every_update_once() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "vacuum"), scene.subscriber("b", "panel"));
    let pressure = server.server.declare(scalar("sr/Vacuum/1/pressure")).unwrap();
    scene.pass(20 * MS, &[&server], &[&client]);
    assert_eq!(pressure.push(Value::scalar(&1.0)).unwrap().number, 1);
    pressure.push(Value::scalar(&2.0)).unwrap();
    let log = Log::default();
    let _subscription = client.client.subscribe(wish(&["SR/vacuum/1/Pressure"]), log.call());
    scene.pass(50 * MS, &[&server], &[&client]);
    assert_eq!(log.told(), [(Reason::First, 2, Some(2.0), Missed::Nothing)]);
    for number in 3..6 {
        pressure.push(Value::scalar(&f64::from(number))).unwrap();
    }
    assert_eq!(pressure.push(Value::scalar(&5.0)).unwrap().kinds, Kinds::NONE, "no change");
    scene.pass(50 * MS, &[&server], &[&client]);
    let updates: Vec<_> = log.told().iter().map(|told| (told.0, told.1)).collect();
    assert_eq!(updates, [3, 4, 5].map(|number| (Reason::Update, number)));

    // The first value of another subscription is not an event for this one.
    let other = Log::default();
    let _other = client.client.subscribe(wish(&["*/pressure/*", "sr/*"]), other.call());
    scene.pass(50 * MS, &[&server], &[&client]);
    assert_eq!(other.told(), [(Reason::First, 5, Some(5.0), Missed::Nothing)]);
    assert_eq!(log.told(), []);
}

#[test]
fn what_has_no_value_yet_says_so_and_without_first_there_is_none() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "vacuum"), scene.subscriber("b", "panel"));
    let pressure = server.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
    let (first, none) = (Log::default(), Log::default());
    let _first = client.client.subscribe(wish(&["sr/vacuum/1/pressure"]), first.call());
    let _none = client.client.subscribe(wish(&["sr/vacuum/1/pressure"]).without_first(), none.call());
    scene.pass(50 * MS, &[&server], &[&client]);
    assert_eq!(first.told(), [(Reason::First, 0, None, Missed::Nothing)]);
    assert_eq!(none.told(), []);
    pressure.push(Value::scalar(&1.0)).unwrap();
    scene.pass(50 * MS, &[&server], &[&client]);
    assert_eq!(first.reasons(), [Reason::Update]);
    assert_eq!(none.told(), [(Reason::Update, 1, Some(1.0), Missed::Nothing)]);
}

#[test]
fn patterns_take_what_is_declared_later_and_lose_what_is_withdrawn() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "vacuum"), scene.subscriber("b", "panel"));
    let log = Log::default();
    let _subscription = client.client.subscribe(wish(&["*/vacuum/*/pressure"]), log.call());
    scene.pass(20 * MS, &[&server], &[&client]);
    let one = server.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
    let _other = server.server.declare(scalar("sr/vacuum/1/current")).unwrap();
    one.push(Value::scalar(&1.0)).unwrap();
    scene.pass(50 * MS, &[&server], &[&client]);
    let first = log.take();
    assert_eq!(first.iter().map(told).collect::<Vec<_>>(), [(Reason::First, 1, Some(1.0), Missed::Nothing)]);
    assert_eq!(first[0].attribute.config.name.as_str(), "sr/vacuum/1/pressure");
    drop(one);
    scene.pass(50 * MS, &[&server], &[&client]);
    assert_eq!(log.reasons(), [Reason::SourceLeft]);
    let again = server.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
    again.push(Value::scalar(&3.0)).unwrap();
    scene.pass(50 * MS, &[&server], &[&client]);
    assert_eq!(log.reasons(), [Reason::SourceReturned, Reason::Resumed]);
}

#[test]
fn what_a_server_sends_of_a_new_attribute_before_it_is_followed_is_told_as_missing() {
    let scene = Scene::new();
    let server = scene.publisher("a", "vacuum");
    scene.pass(20 * MS, &[&server], &[]);
    let client = scene.subscriber("b", "panel");
    let (log, without) = (Log::default(), Log::default());
    let _subscription = client.client.subscribe(wish(&["*/vacuum/*/pressure"]), log.call());
    let _without = client.client.subscribe(wish(&["*/vacuum/*/pressure"]).without_first(), without.call());
    let _here = server.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
    scene.pass(50 * MS, &[&server], &[&client]);
    log.take();
    without.take();
    // The client already reads the server's stream, but does not know this attribute.
    let late = server.server.declare(scalar("sr/vacuum/2/pressure")).unwrap();
    for number in 1..=5 {
        late.push(Value::scalar(&f64::from(number))).unwrap();
    }
    server.server.send_now();
    scene.pass(50 * MS, &[&server], &[&client]);
    let missing = |told: &[Told]| -> u64 {
        let of = |told: &Told| if let Missed::Exactly(from, to) = told.3 { to - from } else { 0 };
        told.iter().map(of).sum()
    };
    let (first, rest) = (log.told(), without.told());
    assert_eq!((first[0].0, missing(&first) + first.len() as u64), (Reason::First, 5), "{first:?}");
    let updates = rest.iter().filter(|told| told.0 == Reason::Update).count() as u64;
    assert_eq!(missing(&rest) + updates, 5, "{rest:?}");
    // A later subscription misses nothing.
    scene.pass(MS, &[&server], &[&client]);
    let later = Log::default();
    let _later = client.client.subscribe(wish(&["sr/vacuum/2/pressure"]), later.call());
    scene.pass(50 * MS, &[&server], &[&client]);
    assert_eq!(later.told(), [(Reason::First, 5, Some(5.0), Missed::Nothing)]);
}

#[test]
fn a_restart_is_told_and_nothing_of_the_new_life_is_missing() {
    let scene = Scene::new();
    let client = scene.subscriber("a", "panel");
    let first = scene.publisher("a", "vacuum");
    let pressure = first.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
    let log = Log::default();
    let _subscription = client.client.subscribe(wish(&["sr/vacuum/1/pressure"]), log.call());
    pressure.push(Value::scalar(&1.0)).unwrap();
    scene.pass(50 * MS, &[&first], &[&client]);
    assert_eq!(log.reasons(), [Reason::First]);

    scene.net.kill(&first.engine);
    scene.pass(100 * MS, &[], &[&client]);
    assert_eq!(log.reasons(), [Reason::SourceDied], "within 100 ms");

    let second = scene.publisher("a", "vacuum");
    let pressure = second.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
    // No client can know the new server yet.
    for number in 1..=100 {
        pressure.push(Value::scalar(&f64::from(number))).unwrap();
    }
    scene.pass(100 * MS, &[&second], &[&client]);
    let updates = log.take();
    assert_eq!(updates[0].reason, Reason::SourceReturned);
    assert_eq!(told(&updates[1]), (Reason::Resumed, 1, Some(1.0), Missed::Unknown));
    let numbers: Vec<u64> = updates[2..].iter().map(|update| update.number).collect();
    assert_eq!(numbers, (2..=100).collect::<Vec<_>>());
    assert!(updates[2..].iter().all(|update| update.reason == Reason::Update));
}

#[test]
fn a_hang_is_told_within_two_seconds_and_the_return_with_the_value() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "vacuum"), scene.subscriber("a", "panel"));
    let pressure = server.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
    let log = Log::default();
    let _subscription = client.client.subscribe(wish(&["sr/*"]), log.call());
    pressure.push(Value::scalar(&1.0)).unwrap();
    scene.pass(500 * MS, &[&server], &[&client]);
    assert_eq!(log.reasons(), [Reason::First]);
    scene.net.stop(&server.engine);
    scene.pass(1900 * MS, &[], &[&client]);
    assert_eq!(log.reasons(), [Reason::SourceHung]);
    scene.pass(3000 * MS, &[], &[&client]);
    scene.net.resume(&server.engine);
    scene.pass(300 * MS, &[&server], &[&client]);
    let updates = log.take();
    assert_eq!(updates.iter().map(|update| update.reason).collect::<Vec<_>>(), [Reason::SourceReturned, Reason::Resumed]);
    assert_eq!(told(&updates[1]), (Reason::Resumed, 1, Some(1.0), Missed::Nothing));
    pressure.push(Value::scalar(&2.0)).unwrap();
    scene.pass(50 * MS, &[&server], &[&client]);
    assert_eq!(log.told(), [(Reason::Update, 2, Some(2.0), Missed::Nothing)]);
}

#[test]
fn losses_on_the_way_are_healed() {
    use tampu_bus::engine::memory::Faults;
    for seed in 0..4 {
        let scene = Scene::seeded(seed);
        let (server, client) = (scene.publisher("a", "vacuum"), scene.subscriber("b", "panel"));
        let all: Vec<_> =
            (0..20).map(|number| server.server.declare(scalar(&format!("sr/vacuum/{number}/p"))).unwrap()).collect();
        scene.net.set_faults(Faults { loss: 0.1, duplicate: 0.05, reorder: 0.05, ..Faults::default() });
        let log = Log::default();
        let _subscription = client.client.subscribe(wish(&["*"]), log.call());
        scene.pass(600 * MS, &[&server], &[&client]);
        for number in 0..50 {
            for attribute in &all {
                attribute.push(Value::scalar(&f64::from(number))).unwrap();
            }
            scene.pass(2 * MS, &[&server], &[&client]);
        }
        scene.net.set_faults(Faults::default());
        // A lost question is repeated after 900 ms.
        scene.pass(5000 * MS, &[&server], &[&client]);
        let updates = log.take();
        for attribute in &all {
            let of_it = updates.iter().filter(|update| update.attribute.config.name == *attribute.name());
            let numbers: Vec<u64> = of_it.filter(|update| update.reason == Reason::Update).map(|update| update.number).collect();
            assert_eq!(numbers, (1..=50).collect::<Vec<_>>(), "seed {seed}, {}", attribute.name());
        }
        assert_eq!(updates.len(), 20 * 51, "seed {seed}: a first value each, and the updates");
    }
}

#[test]
fn what_the_cache_no_longer_has_is_told_exactly() {
    use tampu_bus::QosPatch;
    let scene = Scene::new();
    let patch = QosPatch {
        topics: "event/*".into(),
        cache: Some(20_000),
        keep: Some(10_000),
        max_wait_ms: Some(0),
        ..QosPatch::default()
    };
    let (server, client) = (scene.publisher_with("a", "vacuum", vec![patch]), scene.subscriber("b", "panel"));
    let (busy, quiet) =
        (server.server.declare(scalar("sr/vacuum/1/p")).unwrap(), server.server.declare(scalar("sr/vacuum/2/p")).unwrap());
    let log = Log::default();
    let _subscription = client.client.subscribe(wish(&["*"]), log.call());
    quiet.push(Value::scalar(&7.0)).unwrap();
    scene.pass(600 * MS, &[&server], &[&client]);
    assert_eq!(log.reasons(), [Reason::First, Reason::First]);
    scene.net.stop(&client.engine);
    for number in 0..20_000 {
        busy.push(Value::scalar(&f64::from(number))).unwrap();
        if number % 100 == 0 {
            scene.net.advance(MS);
        }
    }
    quiet.push(Value::scalar(&8.0)).unwrap();
    scene.net.resume(&client.engine);
    scene.pass(5000 * MS, &[&server], &[&client]);
    let updates = log.take();
    let mut next = 1;
    let mut lost = 0;
    for update in updates.iter().filter(|update| update.attribute.config.name == *busy.name()) {
        match (update.reason, update.missed) {
            (Reason::Gap, Missed::Exactly(from, to)) => {
                assert_eq!(from, next);
                lost += to - from;
                next = to;
            }
            (Reason::Resumed, Missed::Exactly(from, to)) => {
                assert_eq!((from, to), (next, update.number));
                lost += to - from;
                next = update.number + 1;
            }
            (Reason::Update, _) => {
                assert_eq!(update.number, next);
                next += 1;
            }
            // A repeated value, whose event was lost as an update.
            (Reason::Resumed, Missed::Nothing) => assert_eq!(update.number + 1, next),
            (Reason::SourceHung | Reason::SourceReturned, _) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(next, 20_001, "everything is accounted for");
    assert!(lost > 1000, "{lost}");
    let of_quiet: Vec<_> = updates.iter().filter(|update| update.attribute.config.name == *quiet.name()).map(told).collect();
    assert!(of_quiet.iter().any(|told| told.1 == 2 && told.2 == Some(8.0)), "{of_quiet:?}");
    assert!(of_quiet.iter().all(|told| told.3 == Missed::Nothing), "it lost nothing: {of_quiet:?}");
}

#[test]
fn callbacks_may_subscribe_and_unsubscribe() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "vacuum"), Arc::new(scene.subscriber("b", "panel")));
    let (one, two) = (server.server.declare(scalar("a/b/c/one")).unwrap(), server.server.declare(scalar("a/b/c/two")).unwrap());
    one.push(Value::scalar(&1.0)).unwrap();
    two.push(Value::scalar(&2.0)).unwrap();
    let (log, inner) = (Log::default(), Log::default());
    let kept: Arc<Mutex<Vec<Subscription>>> = Arc::default();
    let mine: Arc<Mutex<Option<Subscription>>> = Arc::default();
    let (weak, keep, drop_me, mut also, innermost) =
        (Arc::downgrade(&client), kept.clone(), mine.clone(), log.call(), inner.clone());
    let called = Cell::new(false);
    let subscription = client.client.subscribe(wish(&["a/b/c/one"]), move |event| {
        also(event);
        if !called.replace(true)
            && let Some(client) = weak.upgrade()
        {
            keep.lock().unwrap().push(client.client.subscribe(wish(&["a/b/c/two"]), innermost.call()));
            // The subscription ends itself.
            drop(drop_me.lock().unwrap().take());
        }
    });
    *mine.lock().unwrap() = Some(subscription);
    scene.pass(50 * MS, &[&server], &[&client]);
    one.push(Value::scalar(&5.0)).unwrap();
    two.push(Value::scalar(&6.0)).unwrap();
    scene.pass(50 * MS, &[&server], &[&client]);
    assert_eq!(log.reasons(), [Reason::First]);
    assert_eq!(inner.told().len(), 2);
    kept.lock().unwrap().clear();
    two.push(Value::scalar(&7.0)).unwrap();
    scene.pass(50 * MS, &[&server], &[&client]);
    assert_eq!(inner.told(), []);
}

#[test]
fn queues_are_bounded_and_the_latest_is_the_latest() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "vacuum"), scene.subscriber("a", "panel"));
    let all: Vec<_> = (0..3).map(|number| server.server.declare(scalar(&format!("a/b/c/{number}"))).unwrap()).collect();
    let stream = client.client.stream(wish(&["a/b/c/0"]), 10);
    let latest = client.client.latest(wish(&["a/*"]).unreliable());
    scene.pass(50 * MS, &[&server], &[&client]);
    assert_eq!(latest.changed().len(), 3);
    for number in 1..=30 {
        for attribute in &all {
            attribute.push(Value::scalar(&f64::from(number))).unwrap();
        }
    }
    scene.pass(50 * MS, &[&server], &[&client]);
    let numbers: Vec<u64> = std::iter::from_fn(|| stream.try_next()).map(|update| update.number).collect();
    assert_eq!(numbers, (21..=30).collect::<Vec<_>>());
    assert_eq!((stream.stats().dropped, stream.stats().delivered), (21, 31));
    let changed = latest.changed();
    assert_eq!(changed.iter().map(told).collect::<Vec<_>>(), [(Reason::Update, 30, Some(30.0), Missed::Nothing); 3]);
    assert_eq!(latest.stats().dropped, 3 * 29);
    assert!(latest.changed().is_empty());
    // After a report about the source, the last value stays visible.
    scene.net.kill(&server.engine);
    scene.pass(200 * MS, &[], &[&client]);
    let name: AttributeName = "a/b/c/1".parse().unwrap();
    assert_eq!(latest.get(&name).map(|update| told(&update)), Some((Reason::SourceDied, 30, Some(30.0), Missed::Nothing)));
    drop(all);
}

#[test]
fn a_remark_leaves_the_value_as_it_is() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "vacuum"), scene.subscriber("a", "panel"));
    let pressure = server.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
    pressure.push(Value::scalar(&1.0)).unwrap();
    let (log, latest) = (Log::default(), client.client.latest(wish(&["sr/*"])));
    let _subscription = client.client.subscribe(wish(&["sr/*"]), log.call());
    scene.pass(100 * MS, &[&server], &[&client]);
    log.take();
    let missed =
        Failure { reason: "Missed".to_owned(), description: "three".to_owned(), origin: "here".to_owned(), ..Failure::default() };
    pressure.remark(Kinds::CHANGE, &[missed]).unwrap();
    scene.pass(100 * MS, &[&server], &[&client]);
    let told = log.take();
    assert_eq!((told.len(), told[0].reason, told[0].reading().map(|reading| reading.errors.len())), (1, Reason::Update, Some(1)));
    assert_eq!(latest.get(pressure.name()).map(|update| told_value(&update)), Some(Some(1.0)));
}

#[test]
fn configurations_have_epochs_and_criteria_change_at_run_time() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "vacuum"), scene.subscriber("b", "panel"));
    let pressure = server.server.declare(scalar("a/b/c/d")).unwrap();
    let log = Log::default();
    let _subscription = client.client.subscribe(wish(&["a/b/c/d"]), log.call());
    scene.pass(50 * MS, &[&server], &[&client]);
    log.take();
    pressure.reconfigure(|config| {
        config.unit = "mbar".into();
        config.criteria.change.abs = Some("10".parse().unwrap());
        config.limits.alarm_high = Some(100.0);
    });
    pressure.push(Value::scalar(&1.0)).unwrap();
    assert_eq!(pressure.push(Value::scalar(&5.0)).unwrap().kinds, Kinds::NONE);
    let alarm = pressure.push(Value::scalar(&100.0)).unwrap().kinds;
    assert_eq!(alarm, Kinds::CHANGE | Kinds::ALARM | Kinds::ARCHIVE);
    scene.pass(50 * MS, &[&server], &[&client]);
    let updates = log.take();
    assert_eq!(
        updates.iter().map(|update| update.reason).collect::<Vec<_>>(),
        [Reason::ConfigChanged, Reason::Update, Reason::Update]
    );
    assert_eq!((updates[0].attribute.epoch, updates[0].attribute.config.unit.as_str()), (2, "mbar"));
    assert_eq!(updates[2].reading().map(|reading| (reading.epoch, reading.quality)), Some((2, Quality::Alarm)));
}

#[test]
fn errors_are_values_and_wrong_readings_are_refused() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "vacuum"), scene.subscriber("b", "panel"));
    let pressure = server.server.declare(scalar("a/b/c/d")).unwrap();
    let log = Log::default();
    let subscription = client.client.subscribe(wish(&["a/b/c/d"]).kinds(Kinds::CHANGE | Kinds::GENERIC), log.call());
    scene.pass(50 * MS, &[&server], &[&client]);
    log.take();
    assert!(matches!(pressure.push(Value::scalar(&1i32)), Err(PushError::Wrong(_))));
    assert!(matches!(pressure.push(Value::spectrum(&[1.0])), Err(PushError::Wrong(_))));
    pressure.push(Value::scalar(&f64::NAN)).unwrap();
    pressure.push(Value::scalar(&f64::INFINITY)).unwrap();
    let errors = [Failure::new("Gauge_Off", "the gauge is off"), Failure::new("Cell_NoReading", "cell 1")];
    pressure.fail(&errors).unwrap();
    assert_eq!(pressure.fail(&errors).unwrap().kinds, Kinds::NONE, "the same again");
    pressure.generic("shutter", Some(Value::scalar(&true))).unwrap();
    pressure.data_ready(4).unwrap();
    // An event kind of a later release.
    pressure.push_as(Kinds(1 << 20), &Reading::of(Value::scalar(&1.0)), None).unwrap();
    scene.pass(50 * MS, &[&server], &[&client]);
    let updates = log.take();
    assert_eq!(updates.len(), 4, "data ready was not asked for: {updates:?}");
    assert!(updates[0].reading().unwrap().value.unwrap().number(0).unwrap().is_nan());
    assert_eq!(updates[2].reading().unwrap().errors, errors);
    assert_eq!(updates[3].reading().unwrap().name, "shutter");
    assert_eq!(subscription.stats().unknown_kinds, 1);
}

#[test]
fn many_servers_share_the_last_feeds() {
    let scene = Scene::new();
    let client = scene.subscriber_with("c", "panel", ClientSettings { max_stream_workers: 2, ..ClientSettings::default() });
    let servers: Vec<_> = (0..6).map(|number| scene.publisher("a", &format!("server/{number}"))).collect();
    let all: Vec<_> = servers
        .iter()
        .enumerate()
        .map(|(number, server)| server.server.declare(scalar(&format!("a/b/c/{number}"))).unwrap())
        .collect();
    let log = Log::default();
    let _subscription = client.client.subscribe(wish(&["*"]), log.call());
    let turned: Vec<_> = servers.iter().collect();
    scene.pass(100 * MS, &turned, &[&client]);
    assert_eq!(log.reasons(), [Reason::First; 6]);
    for round in 1..4 {
        for attribute in &all {
            attribute.push(Value::scalar(&f64::from(round))).unwrap();
        }
    }
    scene.pass(100 * MS, &turned, &[&client]);
    assert_eq!(log.reasons(), [Reason::Update; 18]);
}

#[test]
fn a_callback_that_panics_ends_nothing() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "vacuum"), scene.subscriber("b", "panel"));
    let pressure = server.server.declare(scalar("a/b/c/d")).unwrap();
    let mut count = 0;
    let bad = client.client.subscribe(wish(&["a/b/c/d"]), move |_| {
        count += 1;
        if count == 2 {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
    });
    let log = Log::default();
    let _good = client.client.subscribe(wish(&["a/b/c/d"]), log.call());
    scene.pass(50 * MS, &[&server], &[&client]);
    for number in 1..4 {
        pressure.push(Value::scalar(&f64::from(number))).unwrap();
    }
    scene.pass(50 * MS, &[&server], &[&client]);
    assert_eq!(log.take().len(), 4);
    let stats = bad.stats();
    assert_eq!((stats.delivered, stats.panicked, stats.bound), (4, 1, 1));
}
