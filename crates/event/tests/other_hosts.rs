//! Subscribers on another host than the server: its stream for that host has what they want, and nothing else.

use std::{mem::ManuallyDrop, sync::Arc, time::Duration};

use tampu_bus::{
    Event, Participant, QosTable, Reader, ReaderQos,
    access::{Access, Members, Principal},
    service::call_json,
};
use tampu_event::{
    ask::Refresh,
    client::Filter,
    server::{Server, ServerSettings, Workers},
    topics,
};
use tampu_types::{
    Domain, Incarnation, PartitionFilter, SourceName, TopicFilter,
    event::{AttributeConfig, DataType, Format, Kinds, Missed, Quality, Reason, Thresholds, Value, view::Routing},
};

mod support;
use support::*;

const SECOND: Duration = Duration::from_secs(1);

/// Reads all streams for host `b`, as its interface would see them.
fn wire(scene: &Scene) -> Reader {
    let (spy, _) = scene.join("b", "spy", Vec::new());
    let reader = spy.reader(&TopicFilter::new("event/*/*").unwrap(), &PartitionFilter::All, ReaderQos::default()).unwrap();
    // Held to the end of the test: nobody turns the others while it leaves.
    std::mem::forget(spy);
    reader
}

/// Returns the attribute and number of each event that came since.
fn carried(wire: &mut Reader) -> Vec<(u32, u64)> {
    let mut all = Vec::new();
    while let Some(event) = wire.next(Duration::ZERO) {
        if let Event::Sample(sample) = event {
            let routing = sample.payload.with(Routing::of).unwrap().unwrap();
            all.push((routing.attribute, routing.number));
        }
    }
    all
}

/// A process without a client, which asks servers itself. It does not leave in order either.
fn asker(scene: &Scene, host: &str, name: &str) -> ManuallyDrop<Participant> {
    ManuallyDrop::new(scene.join(host, name, Vec::new()).0)
}

/// Asks a server in the name of a reader.
fn ask(asker: &Participant, server: &Publisher, reader: Incarnation, question: Refresh) {
    let service = topics::refresh(server.server.participant().incarnation()).unwrap();
    // The simulation passes the question on when time passes; the answer comes through the stream.
    let _ = call_json(asker, service.as_str(), &Refresh { reader: Some(reader), ..question }, SECOND).unwrap();
}

fn wants(token: u64) -> Refresh {
    Refresh { token, attributes: vec![0], ..Refresh::default() }
}

fn releases(token: u64) -> Refresh {
    Refresh { token, released: vec![0], ..Refresh::default() }
}

fn moved(abs: &str) -> Filter {
    Filter { moved: Some(Thresholds { abs: Some(abs.parse().unwrap()), rel: None }), ..Filter::default() }
}

#[test]
fn a_host_is_sent_what_its_processes_want_once_and_no_longer_than_they_want_it() {
    let scene = Scene::new();
    let server = scene.publisher("a", "vacuum");
    let (one, other) = (scene.subscriber("b", "one"), scene.subscriber("b", "other"));
    let mut wire = wire(&scene);
    let declare = |name: &str| server.server.declare(scalar(name)).unwrap();
    let (fast, slow, third) = (declare("sr/vacuum/1/fast"), declare("sr/vacuum/1/slow"), declare("sr/vacuum/1/third"));
    let all = [&one, &other];
    let (log, others) = (Log::default(), Log::default());
    let subscription = one.client.subscribe(wish(&["sr/vacuum/1/slow"]), log.call());
    let of_other = other.client.subscribe(wish(&["sr/*/1/slow", "sr/vacuum/1/third"]), others.call());
    scene.pass(SECOND, &[&server], &all);
    assert_eq!((log.reasons().len(), others.reasons().len()), (1, 2), "a first value each");
    carried(&mut wire);
    let push = |round: u32| {
        for attribute in [&fast, &slow, &third] {
            attribute.push(Value::scalar(&f64::from(round))).unwrap();
        }
    };
    push(1);
    scene.pass(100 * MS, &[&server], &all);
    assert_eq!(carried(&mut wire), [(1, 1), (2, 1)], "each once, in the order of the pushes");
    assert_eq!(log.told(), [(Reason::Update, 1, Some(1.0), Missed::Nothing)]);
    assert_eq!(others.told().len(), 2);

    drop(of_other);
    scene.pass(SECOND, &[&server], &all);
    push(2);
    scene.pass(100 * MS, &[&server], &all);
    assert_eq!(carried(&mut wire), [(1, 2)]);
    // Wanted again by the same process: the value of now, and what follows.
    let _again = other.client.subscribe(wish(&["sr/vacuum/1/third"]), others.call());
    scene.pass(SECOND, &[&server], &all);
    push(3);
    scene.pass(100 * MS, &[&server], &all);
    let told = others.told();
    assert_eq!(told, [(Reason::First, 2, Some(2.0), Missed::Nothing), (Reason::Update, 3, Some(3.0), Missed::Nothing)]);

    // The end of a process that was killed.
    scene.net.kill(&other.engine);
    // Without a node nobody knows that it has died, and not been cut off.
    scene.pass(200 * SECOND, &[&server], &[&one]);
    carried(&mut wire);
    push(4);
    scene.pass(100 * MS, &[&server], &[&one]);
    assert_eq!(carried(&mut wire), [(1, 4)]);
    assert_eq!(log.told().iter().map(|told| told.1).collect::<Vec<_>>(), [2, 3, 4]);
    drop(subscription);
    scene.pass(SECOND, &[&server], &[&one]);
    push(5);
    scene.pass(100 * MS, &[&server], &[&one]);
    assert_eq!(carried(&mut wire), []);
}

#[test]
fn the_server_s_own_stream_is_not_read_by_other_hosts() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "vacuum"), scene.subscriber("b", "panel"));
    let pressure = server.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
    let log = Log::default();
    let _subscription = client.client.subscribe(wish(&["sr/*"]), log.call());
    scene.pass(SECOND, &[&server], &[&client]);
    assert_eq!(pressure.readers(), 1);
    assert_eq!(pressure.push(Value::scalar(&1.0)).unwrap().readers, 1);
    let before = scene.net.counts();
    println!("{before:?}");
    scene.pass(100 * MS, &[&server], &[&client]);
    assert_eq!(log.told().len(), 2);
}

#[test]
fn what_no_reader_of_a_host_would_take_is_left_out_and_not_missing() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "vacuum"), scene.subscriber("b", "panel"));
    let here = scene.subscriber("a", "here");
    let mut wire = wire(&scene);
    let pressure = server.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
    pressure.push(Value::scalar(&0.0)).unwrap();
    let all = [&client, &here];
    let (log, here_log) = (Log::default(), Log::default());
    let options = wish(&["sr/*"]).filter(moved("1"));
    let _there = client.client.subscribe(options.clone(), log.call());
    let _here = here.client.subscribe(options, here_log.call());
    scene.pass(SECOND, &[&server], &all);
    carried(&mut wire);
    for step in 1..=40 {
        pressure.push(Value::scalar(&(f64::from(step) * 0.25))).unwrap();
        if step % 7 == 0 {
            pressure.data_ready(step).unwrap();
        }
    }
    scene.pass(100 * MS, &[&server], &all);
    let expected = here_log.told();
    assert_eq!(expected.len(), 11, "the first value, and ten that have moved: {expected:?}");
    assert!(expected.iter().all(|told| told.3 == Missed::Nothing));
    assert_eq!(log.told(), expected, "the same as a subscriber on the server's host");
    assert_eq!(carried(&mut wire).len(), 10);

    // Another reader of the host wants all qualities and kinds; the first one still judges by its own filter.
    let more = Log::default();
    let wider = client.client.subscribe(wish(&["sr/*"]).kinds(Kinds::CHANGE | Kinds::DATA_READY), more.call());
    scene.pass(SECOND, &[&server], &all);
    assert_eq!((log.told(), more.reasons()), (Vec::new(), vec![Reason::First]));
    pressure.push(Value::scalar(&10.5)).unwrap();
    pressure.data_ready(0).unwrap();
    pressure.push(Value::scalar(&11.0)).unwrap();
    scene.pass(100 * MS, &[&server], &all);
    assert_eq!((log.told().len(), more.told().len()), (1, 3));
    assert_eq!(carried(&mut wire).len(), 4, "the current value, and three events");
    drop(wider);
}

#[test]
fn filters_of_long_values_are_judged_at_the_source() {
    const ELEMENTS: usize = 8192;
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "camera"), scene.subscriber("b", "panel"));
    let mut wire = wire(&scene);
    let mut config = AttributeConfig::new("sr/camera/1/image".parse().unwrap(), DataType::Double, Format::Spectrum);
    (config.max_x, config.criteria) = (ELEMENTS as u32, scalar("sr/camera/1/value").criteria);
    let image = server.server.declare(config).unwrap();
    let push = |value: f64| image.push(Value::spectrum(&[value; ELEMENTS])).unwrap();
    push(0.0);
    let log = Log::default();
    let filtered = client.client.subscribe(wish(&["sr/*"]).filter(moved("1")), log.call());
    scene.pass(SECOND, &[&server], &[&client]);
    assert_eq!(log.told().iter().map(|told| (told.0, told.1)).collect::<Vec<_>>(), [(Reason::First, 1)]);
    carried(&mut wire);
    let before = image.readers();
    (1..=40).for_each(|step| _ = push(f64::from(step) * 0.25));
    scene.pass(SECOND, &[&server], &[&client]);
    let told = log.told();
    let numbers: Vec<u64> = told.iter().map(|told| told.1).collect();
    assert_eq!(numbers, (1..=10).map(|step| 1 + 4 * step).collect::<Vec<_>>(), "{told:?}");
    assert!(told.iter().all(|told| (told.0, told.3) == (Reason::Update, Missed::Nothing)), "{told:?}");
    assert_eq!(carried(&mut wire).len(), 10, "what the filter rejects stays at its host");
    assert_eq!(before, 1, "nobody reads the attribute's own stream");

    // Without a filter it reads that stream, and the host's stream has nothing more.
    let all = Log::default();
    let _all = client.client.subscribe(wish(&["sr/*"]), all.call());
    drop(filtered);
    scene.pass(5 * SECOND, &[&server], &[&client]);
    carried(&mut wire);
    [0.0, 0.25].into_iter().for_each(|value| _ = push(value));
    scene.pass(SECOND, &[&server], &[&client]);
    assert_eq!(all.told().iter().map(|told| told.1).collect::<Vec<_>>(), [41, 42, 43]);
    assert_eq!(carried(&mut wire), []);
}

#[test]
fn equal_filters_of_one_process_count_as_one() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "vacuum"), scene.subscriber("b", "panel"));
    let mut wire = wire(&scene);
    let pressure = server.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
    let push = |value: f64| _ = pressure.push(Value::scalar(&value)).unwrap();
    push(0.0);
    let (one, other) = (Log::default(), Log::default());
    let _one = client.client.subscribe(wish(&["sr/*"]).filter(moved("1")), one.call());
    scene.pass(SECOND, &[&server], &[&client]);
    [0.25, 0.5].into_iter().for_each(push);
    let _other = client.client.subscribe(wish(&["sr/*"]).filter(moved("1")), other.call());
    scene.pass(SECOND, &[&server], &[&client]);
    carried(&mut wire);
    // Both compare with 0.5 now: the second one began with it, and the first one was given it too.
    assert_eq!(one.told().last().map(|told| told.2), Some(Some(0.5)));
    assert_eq!(other.told(), [(Reason::First, 3, Some(0.5), Missed::Nothing)]);
    [1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5].into_iter().for_each(push);
    scene.pass(SECOND, &[&server], &[&client]);
    for log in [one, other] {
        let told = log.told();
        assert_eq!(told.iter().map(|told| told.2).collect::<Vec<_>>(), [Some(1.5), Some(2.5)], "{told:?}");
        assert!(told.iter().all(|told| told.3 == Missed::Nothing), "{told:?}");
    }
    assert_eq!(carried(&mut wire).len(), 2, "no more than they take");
}

#[test]
fn qualities_and_kinds_are_judged_at_the_source() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "vacuum"), scene.subscriber("b", "panel"));
    let mut wire = wire(&scene);
    let mut config = scalar("sr/vacuum/1/pressure");
    config.limits.alarm_high = Some(10.0);
    let pressure = server.server.declare(config).unwrap();
    let log = Log::default();
    let alarms = Filter { qualities: vec![Quality::Alarm], ..Filter::default() };
    let _subscription = client.client.subscribe(wish(&["sr/*"]).kinds(Kinds::CHANGE).filter(alarms), log.call());
    scene.pass(SECOND, &[&server], &[&client]);
    log.take();
    carried(&mut wire);
    for value in [1.0, 2.0, 11.0, 3.0, 12.0] {
        pressure.push(Value::scalar(&value)).unwrap();
    }
    pressure.data_ready(1).unwrap();
    scene.pass(100 * MS, &[&server], &[&client]);
    assert_eq!(carried(&mut wire), [(0, 3), (0, 5)]);
    assert_eq!(
        log.told(),
        [3, 5].map(|number| (Reason::Update, number, Some(if number == 3 { 11.0 } else { 12.0 }), Missed::Nothing))
    );
}

#[test]
fn a_new_life_is_given_from_its_first_event_also_elsewhere() {
    let scene = Scene::new();
    let client = scene.subscriber("b", "panel");
    let first = scene.publisher("a", "vacuum");
    let pressure = first.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
    pressure.push(Value::scalar(&1.0)).unwrap();
    let log = Log::default();
    let _subscription = client.client.subscribe(wish(&["sr/*"]), log.call());
    scene.pass(SECOND, &[&first], &[&client]);
    scene.net.kill(&first.engine);
    std::mem::forget(pressure);
    let second = scene.publisher("a", "vacuum");
    let pressure = second.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
    for number in 1..=500 {
        pressure.push(Value::scalar(&f64::from(number))).unwrap();
    }
    scene.pass(3 * SECOND, &[&second], &[&client]);
    let told = log.told();
    let numbers: Vec<u64> = told.iter().filter(|told| told.2.is_some()).map(|told| told.1).collect();
    assert_eq!(numbers, std::iter::once(1).chain(1..=500).collect::<Vec<_>>(), "{told:?}");
    assert!(told.iter().any(|told| (told.0, told.1) == (Reason::Resumed, 1)));
}

#[test]
fn what_cannot_be_sent_to_another_host_is_reported_there_in_its_place() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "server"), scene.subscriber("b", "panel"));
    let config = AttributeConfig::new("a/b/c/text".parse().unwrap(), DataType::String, Format::Scalar);
    let text = server.server.declare(config).unwrap();
    let log = Log::default();
    let _subscription = client.client.subscribe(wish(&["a/b/c/text"]), log.call());
    scene.pass(SECOND, &[&server], &[&client]);
    log.take();
    // Lent to readers on this host, and longer than the engine's longest message.
    for value in ["short".to_owned(), "x".repeat(17 << 20), "last".to_owned()] {
        text.push(Value::scalar(&value)).unwrap();
    }
    scene.pass(SECOND, &[&server], &[&client]);
    let updates = log.take();
    let all: Vec<_> = updates.iter().map(|update| (update.reason, update.number)).collect();
    assert_eq!(all, [(Reason::Update, 1), (Reason::Update, 2), (Reason::Update, 3)]);
    let errors = |at: usize| updates[at].reading().unwrap().errors.first().map(|failure| failure.reason.clone());
    assert_eq!([errors(0), errors(1), errors(2)], [None, Some("Tampu_NotSent".to_owned()), None]);
}

#[test]
fn losses_of_a_filtered_stream_are_told_and_nothing_else_is() {
    use tampu_bus::{QosPatch, engine::memory::Faults};
    for seed in 0..8 {
        let scene = Scene::seeded(seed);
        // A small cache, so that a part of what is lost stays lost.
        let patch = QosPatch {
            topics: "event/**".into(),
            cache: Some(6_000),
            keep: Some(3_000),
            max_wait_ms: Some(0),
            ..QosPatch::default()
        };
        let server = scene.publisher_with("a", "vacuum", vec![patch]);
        let (client, wide) = (scene.subscriber("b", "panel"), scene.subscriber("b", "wide"));
        let pressure = server.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
        pressure.push(Value::scalar(&0.0)).unwrap();
        let (log, others) = (Log::default(), Log::default());
        let _one = client.client.subscribe(wish(&["sr/*"]).filter(moved("1")), log.call());
        let _other = wide.client.subscribe(wish(&["sr/*"]).filter(moved("2.5")), others.call());
        let all = [&client, &wide];
        scene.pass(SECOND, &[&server], &all);
        scene.net.set_faults(Faults { loss: 0.2, ..Faults::default() });
        for step in 1..=2000 {
            pressure.push(Value::scalar(&(f64::from(step) * 0.25))).unwrap();
            if step % 10 == 0 {
                scene.pass(MS, &[&server], &all);
            }
        }
        scene.net.set_faults(Faults::default());
        scene.pass(5 * SECOND, &[&server], &all);
        for step in 2001..=2100 {
            pressure.push(Value::scalar(&(f64::from(step) * 0.25))).unwrap();
        }
        scene.pass(SECOND, &[&server], &all);
        for (name, log, abs) in [("one", log, 1.0), ("other", others, 2.5)] {
            let (mut last, mut told_last, mut gap) = (0.0, 0, false);
            for (reason, number, value, missed) in log.told() {
                // What was lost may have been the value that the server judges by, until the current one comes. It has come
                // before the last hundred readings.
                gap = (gap || missed != Missed::Nothing) && number <= 2002;
                match reason {
                    Reason::Gap | Reason::SourceHung | Reason::SourceReturned => continue,
                    Reason::First | Reason::Resumed => gap = false,
                    Reason::Update => {
                        let step = value.unwrap() - last;
                        assert!(number > told_last, "seed {seed}, {name}: {number} after {told_last}");
                        assert!(step >= abs, "seed {seed}, {name}: {number} is {step} after {told_last}");
                        // Without a gap it is the first one that has moved enough.
                        assert!(
                            gap || step < abs + 0.25,
                            "seed {seed}, {name}: {number} is {step} after {told_last}, and no gap"
                        );
                    }
                    other => panic!("seed {seed}, {name}: {other:?}"),
                }
                (last, told_last) = (value.unwrap_or(last), number);
            }
            assert!(told_last > 2090, "seed {seed}, {name}: the last value told is that of {told_last}");
        }
    }
}

#[test]
fn a_subscriber_that_wants_few_readings_gets_the_newest_on_both_hosts() {
    let scene = Scene::new();
    let server = scene.publisher("a", "vacuum");
    let (there, here) = (scene.subscriber("b", "there"), scene.subscriber("a", "here"));
    let mut wire = wire(&scene);
    let pressure = server.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
    pressure.push(Value::scalar(&0.0)).unwrap();
    let seldom = wish(&["sr/*"]).filter(Filter { every_ms: Some(100), ..Filter::default() });
    let (log, here_log) = (Log::default(), Log::default());
    let _there = there.client.subscribe(seldom.clone(), log.call());
    let _here = here.client.subscribe(seldom, here_log.call());
    let all = [&there, &here];
    scene.pass(SECOND, &[&server], &all);
    assert_eq!((log.told().len(), here_log.told().len()), (1, 1));
    carried(&mut wire);
    // A thousand a second, and then no more.
    for step in 1..=1000 {
        pressure.push(Value::scalar(&f64::from(step))).unwrap();
        scene.pass(MS, &[&server], &all);
    }
    scene.pass(SECOND, &[&server], &all);
    for (name, log) in [("there", log), ("here", here_log)] {
        let told = log.told();
        assert!((9..=12).contains(&told.len()), "{name}: {told:?}");
        assert!(told.iter().all(|told| told.0 == Reason::Update && told.3 == Missed::Nothing), "{name}: {told:?}");
        assert!(told.windows(2).all(|pair| pair[1].1 - pair[0].1 >= 90), "{name}: {told:?}");
        assert_eq!(told.last().map(|told| (told.1, told.2)), Some((1001, Some(1000.0))), "{name}: the newest comes");
    }
    let carried = carried(&mut wire);
    assert!(carried.len() <= 12, "{carried:?}");
}

#[test]
fn a_condition_with_an_interval_gives_the_same_on_both_hosts() {
    let condition = || Some("value > 10".parse().unwrap());
    let filters = [
        Filter { condition: condition(), every_ms: Some(1000), ..Filter::default() },
        Filter { every_ms: Some(1000), ..moved("5") },
        Filter { condition: condition(), every_ms: Some(1000), ..moved("5") },
    ];
    for filter in filters {
        let scene = Scene::new();
        let server = scene.publisher("a", "vacuum");
        let (there, here) = (scene.subscriber("b", "there"), scene.subscriber("a", "here"));
        let all = [&there, &here];
        let pressure = server.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
        let say = |value: f64| {
            pressure.push(Value::scalar(&value)).unwrap();
            scene.pass(50 * MS, &[&server], &all);
        };
        say(1.0);
        let (log, here_log) = (Log::default(), Log::default());
        let _there = there.client.subscribe(wish(&["sr/*"]).filter(filter.clone()), log.call());
        let _here = here.client.subscribe(wish(&["sr/*"]).filter(filter.clone()), here_log.call());
        scene.pass(4 * SECOND, &[&server], &all);
        for round in 0..5 {
            [1.1, 100.0 + f64::from(round), 1.2].into_iter().for_each(say);
            scene.pass(3 * SECOND, &[&server], &all);
        }
        let told = log.told();
        assert_eq!(told, here_log.told(), "{filter:?}");
        let high = told.iter().filter(|told| told.2.is_some_and(|value| value >= 100.0)).count();
        assert_eq!(high, 5, "{filter:?}: {told:?}");
    }
}

#[test]
fn a_condition_on_the_value_is_judged_at_the_source() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "vacuum"), scene.subscriber("b", "panel"));
    let mut wire = wire(&scene);
    let pressure = server.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
    pressure.push(Value::scalar(&1.0)).unwrap();
    let log = Log::default();
    let high = Filter { condition: Some("value > 10 and value < 20".parse().unwrap()), ..Filter::default() };
    let _subscription = client.client.subscribe(wish(&["sr/*"]).filter(high), log.call());
    scene.pass(SECOND, &[&server], &[&client]);
    assert_eq!(log.reasons(), [Reason::First]);
    carried(&mut wire);
    for value in [2.0, 11.0, 12.0, 25.0, 26.0, 9.0, 15.0] {
        pressure.push(Value::scalar(&value)).unwrap();
    }
    scene.pass(100 * MS, &[&server], &[&client]);
    let values: Vec<f64> = log.told().iter().map(|told| told.2.unwrap()).collect();
    assert_eq!(values, [11.0, 12.0, 25.0, 15.0], "25 says that it has ended");
    assert_eq!(carried(&mut wire).len(), 4);
}

#[test]
fn a_host_does_not_end_the_wishes_of_another_host_s_process() {
    let scene = Scene::new();
    scene.net.prove_hosts();
    let (participant, engine) = scene.join("a", "vacuum", Vec::new());
    let members = Members { open_to: Some(Domain::new("test").unwrap()) };
    let access = Access::new(Arc::new(members), Principal::this_user);
    let settings = ServerSettings { workers: Workers::Caller, access, ..ServerSettings::default() };
    let server = Publisher { server: ManuallyDrop::new(Server::start(participant, settings).unwrap()), engine };
    let (reader, other) = (asker(&scene, "b", "reader"), asker(&scene, "c", "other"));
    let mut wire = wire(&scene);
    let pressure = server.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
    scene.pass(SECOND, &[&server], &[]);
    ask(&reader, &server, reader.incarnation(), wants(7));
    scene.pass(SECOND, &[&server], &[]);
    carried(&mut wire);
    // The other host has guessed the token.
    ask(&other, &server, reader.incarnation(), releases(7));
    scene.pass(SECOND, &[&server], &[]);
    pressure.push(Value::scalar(&1.0)).unwrap();
    scene.pass(100 * MS, &[&server], &[]);
    assert_eq!(carried(&mut wire), [(0, 1)]);
    ask(&reader, &server, reader.incarnation(), releases(7));
    scene.pass(SECOND, &[&server], &[]);
    pressure.push(Value::scalar(&2.0)).unwrap();
    scene.pass(100 * MS, &[&server], &[]);
    assert_eq!(carried(&mut wire), []);
}

#[test]
fn a_process_has_a_limited_number_of_wishes_for_an_attribute() {
    let scene = Scene::new();
    let server = scene.publisher("a", "vacuum");
    let (one, other) = (asker(&scene, "b", "one"), asker(&scene, "b", "other"));
    let mut wire = wire(&scene);
    let _pressure = server.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
    scene.pass(SECOND, &[&server], &[]);
    // A reader that is answered gets the current value.
    let mut answers = |asker: &Participant, questions: Vec<Refresh>| {
        questions.into_iter().for_each(|question| ask(asker, &server, asker.incarnation(), question));
        scene.pass(SECOND, &[&server], &[]);
        carried(&mut wire).len()
    };
    answers(&one, vec![wants(1)]);
    assert_eq!(answers(&one, (2..=130).map(wants).collect()), 127);
    assert_eq!(answers(&one, vec![wants(128)]), 1, "it replaces its own wish");
    assert_eq!(answers(&other, vec![wants(1)]), 1);
    assert_eq!(answers(&one, vec![wants(129)]), 0);
    answers(&one, vec![releases(1)]);
    assert_eq!(answers(&one, vec![wants(129)]), 1);
}

#[test]
fn a_source_is_given_again_after_a_cut_of_any_length() {
    // Shorter than the time after which an absent process is dead, about as long, and longer.
    for cut in [20, 179, 181, 183, 300] {
        let scene = Scene::new();
        let (server, client) = (scene.publisher("a", "vacuum"), scene.subscriber("b", "panel"));
        let pressure = server.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
        let log = Log::default();
        let _subscription = client.client.subscribe(wish(&["sr/vacuum/1/pressure"]), log.call());
        pressure.push(Value::scalar(&1.0)).unwrap();
        scene.pass(SECOND, &[&server], &[&client]);
        assert_eq!(log.told().last().map(|told| told.2), Some(Some(1.0)), "{cut} s");
        scene.net.cut("a", "b");
        scene.pass(SECOND * cut, &[&server], &[&client]);
        [2.0, 2.25, 2.5].into_iter().for_each(|value| _ = pressure.push(Value::scalar(&value)).unwrap());
        scene.net.heal("a", "b");
        scene.pass(SECOND * 20, &[&server], &[&client]);
        pressure.push(Value::scalar(&3.0)).unwrap();
        scene.pass(SECOND, &[&server], &[&client]);
        let told = log.told();
        assert_eq!(told.last().map(|told| told.2), Some(Some(3.0)), "after {cut} s: {told:?}");
        let mut numbers = std::collections::BTreeSet::new();
        for (_, number, value, missed) in &told {
            numbers.extend(value.map(|_| *number));
            match missed {
                Missed::Exactly(from, to) => numbers.extend(*from..*to),
                Missed::Nothing => {}
                Missed::Unknown => panic!("after {cut} s: {told:?}"),
            }
        }
        assert!(numbers.into_iter().eq(2..=5), "after {cut} s: {told:?}");
    }
}

/// Returns the numbers that a subscriber is given after a cut of a minute with 100 events a second, and those that it is told as
/// missed. `cache` is that of the server's streams.
fn after_a_cut_of_a_minute(cache: Option<usize>) -> (Vec<u64>, Vec<u64>) {
    use tampu_bus::QosPatch;
    let scene = Scene::new();
    let patch = QosPatch { topics: "event/**".into(), cache, ..QosPatch::default() };
    let server = scene.publisher_with("a", "vacuum", vec![patch]);
    let client = scene.subscriber("b", "panel");
    let pressure = server.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
    let log = Log::default();
    let _subscription = client.client.subscribe(wish(&["sr/vacuum/1/pressure"]), log.call());
    let mut number = 0_u32;
    let mut publish = |seconds: u32| {
        for _ in 0..10 * seconds {
            for _ in 0..10 {
                number += 1;
                pressure.push(Value::scalar(&f64::from(number))).unwrap();
            }
            scene.pass(100 * MS, &[&server], &[&client]);
        }
    };
    publish(1);
    log.take();
    scene.net.cut("a", "b");
    publish(60);
    scene.net.heal("a", "b");
    publish(5);
    let told = log.told();
    let given = told.iter().filter(|told| told.2.is_some()).map(|told| told.1).collect();
    let missed = told.iter().flat_map(|told| match told.3 {
        Missed::Exactly(from, to) => from..to,
        Missed::Nothing => 0..0,
        Missed::Unknown => panic!("{told:?}"),
    });
    (given, missed.collect())
}

#[test]
fn the_events_of_a_minute_without_a_link_come_when_it_is_back() {
    let (given, missed) = after_a_cut_of_a_minute(None);
    assert!(missed.is_empty(), "{missed:?}");
    assert!(given.iter().copied().eq(101..=6600), "{} from {:?} to {:?}", given.len(), given.first(), given.last());
}

#[test]
fn beyond_the_cache_the_missed_events_are_told_exactly() {
    let (given, missed) = after_a_cut_of_a_minute(Some(100_000));
    assert!((1000..6000).contains(&missed.len()), "{} missed", missed.len());
    let mut all: Vec<u64> = given.iter().chain(&missed).copied().collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(101..=6600), "each came or was told, once: {} came, {} missed", given.len(), missed.len());
}

#[test]
fn clocks_of_hosts_do_not_tell_whether_a_subscription_is_older_than_an_attribute() {
    const HOUR: i64 = 3_600_000_000_000;
    for step in [-HOUR, HOUR] {
        let scene = Scene::new();
        let client = scene.subscriber("b", "panel");
        let (participant, engine) = scene.join("a", "early", Vec::new());
        scene.net.step_utc(&engine, step);
        let settings = ServerSettings { workers: Workers::Caller, ..ServerSettings::default() };
        let server = Publisher { server: ManuallyDrop::new(Server::start(participant, settings).unwrap()), engine };
        let log = Log::default();
        let _older = client.client.subscribe(wish(&["sr/*"]), log.call());
        scene.pass(SECOND, &[&server], &[&client]);
        let pressure = server.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
        for number in 1..=5 {
            pressure.push(Value::scalar(&f64::from(number))).unwrap();
        }
        scene.pass(SECOND, &[&server], &[&client]);
        let numbers: Vec<(Reason, u64)> = log.told().iter().map(|told| (told.0, told.1)).collect();
        let all: Vec<(Reason, u64)> =
            (1..=5).map(|number| (if number == 1 { Reason::First } else { Reason::Update }, number)).collect();
        assert_eq!(numbers, all, "{step} ns");
        scene.pass(10 * SECOND, &[&server], &[&client]);
        pressure.push(Value::scalar(&6.0)).unwrap();
        // In another process as well as in this one.
        let other = scene.subscriber("b", "other");
        let (here_log, other_log) = (Log::default(), Log::default());
        let _here = client.client.subscribe(wish(&["sr/*"]), here_log.call());
        let _other = other.client.subscribe(wish(&["sr/*"]), other_log.call());
        scene.pass(SECOND, &[&server], &[&client, &other]);
        for log in [here_log, other_log] {
            assert_eq!(log.told(), [(Reason::First, 6, Some(6.0), Missed::Nothing)], "{step} ns");
        }
    }
}

#[test]
fn a_heard_life_goes_before_a_silent_one_whose_clock_was_ahead() {
    let scene = Scene::new();
    let client = scene.subscriber("b", "panel");
    let publisher = |host: &str, step: i64| {
        let engine = scene.net.engine(host);
        scene.net.step_utc(&engine, step);
        let (domain, source) = (Domain::new("test").unwrap(), SourceName::new("vacuum").unwrap());
        let participant = Participant::on(engine.clone(), domain, source, QosTable::default()).unwrap();
        let settings = ServerSettings { workers: Workers::Caller, ..ServerSettings::default() };
        Publisher { server: ManuallyDrop::new(Server::start(participant, settings).unwrap()), engine }
    };
    let log = Log::default();
    let _subscription = client.client.subscribe(wish(&["sr/vacuum/1/pressure"]), log.call());
    let first = publisher("a", 3_600_000_000_000);
    let pressure = first.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
    pressure.push(Value::scalar(&1.0)).unwrap();
    scene.pass(SECOND, &[&first], &[&client]);
    assert_eq!(log.told().last().map(|told| told.2), Some(Some(1.0)));
    scene.net.cut("a", "b");
    scene.net.cut("a", "c");
    scene.pass(5 * SECOND, &[&first], &[&client]);
    // It starts anew, with another boot and an earlier clock.
    let second = publisher("c", 0);
    let pressure = second.server.declare(scalar("sr/vacuum/1/pressure")).unwrap();
    pressure.push(Value::scalar(&2.0)).unwrap();
    scene.pass(2 * SECOND, &[&first, &second], &[&client]);
    let told = log.told();
    assert!(told.iter().any(|told| told.2 == Some(2.0)), "{told:?}");
}
