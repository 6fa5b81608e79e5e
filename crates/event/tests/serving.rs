//! Background work of a server: polls, and values that cannot be sent.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tampu_event::server::PushError;
use tampu_types::event::{AttributeConfig, DataType, Format, Kinds, Missed, Reason, Value};

mod support;
use support::*;

#[test]
fn polls_keep_their_period_and_a_slow_reader_of_one_is_nobody_else_s() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "vacuum"), scene.subscriber("b", "panel"));
    let mut config = scalar("a/b/c/d");
    config.criteria.period_ms = 100;
    let polled = server.server.declare(config).unwrap();
    let mut count = 0.0;
    polled.poll(100, move |attribute| {
        count += 1.0;
        attribute.push(Value::scalar(&count)).unwrap();
    });
    let log = Log::default();
    let _subscription = client.client.subscribe(wish(&["a/b/c/d"]).kinds(Kinds::PERIODIC), log.call());
    scene.pass(Duration::from_secs(2), &[&server], &[&client]);
    let updates = log.take();
    assert!((19..=22).contains(&updates.len()), "{}", updates.len());
    polled.reconfigure(|config| config.polled_ms = Some(500));
    scene.pass(Duration::from_secs(1), &[&server], &[&client]);
    log.take();
    scene.pass(Duration::from_secs(2), &[&server], &[&client]);
    assert!((3..=5).contains(&log.take().len()));
}

#[test]
fn a_poll_that_panics_fails_by_itself() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "vacuum"), scene.subscriber("b", "panel"));
    let (bad, good) = (server.server.declare(scalar("a/b/c/bad")).unwrap(), server.server.declare(scalar("a/b/c/good")).unwrap());
    let log = Log::default();
    let _subscription = client.client.subscribe(wish(&["a/b/c/bad"]), log.call());
    let reads = Arc::new(AtomicU32::new(0));
    let (of_bad, of_good) = (reads.clone(), reads.clone());
    let mut count = 0.0;
    bad.poll(100, move |attribute| {
        count += 1.0;
        if count == 2.0 {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
        of_bad.fetch_add(1, Ordering::Relaxed);
        attribute.push(Value::scalar(&count)).unwrap();
    });
    good.poll(100, move |_| {
        of_good.fetch_add(1000, Ordering::Relaxed);
    });
    scene.pass(Duration::from_millis(1050), &[&server], &[&client]);
    let reads = reads.load(Ordering::Relaxed);
    assert!(reads % 1000 >= 8 && reads / 1000 >= 9, "both are read on: {reads}");
    let updates = log.take();
    let panicked = updates.iter().position(|update| update.reading().is_some_and(|reading| !reading.errors.is_empty())).unwrap();
    let reading = updates[panicked].reading().unwrap();
    assert_eq!((reading.errors[0].reason.as_str(), reading.errors[0].description.as_str()), ("Tampu_PollPanicked", "on purpose"));
    assert_eq!(told(&updates[panicked + 1]), (Reason::Update, 3, Some(3.0), Missed::Nothing));
}

#[test]
fn what_could_not_be_sent_is_no_event_and_is_told_to_who_comes() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "server"), scene.subscriber("b", "panel"));
    let config = AttributeConfig::new("a/b/c/text".parse().unwrap(), DataType::String, Format::Scalar);
    let text = server.server.declare(config).unwrap();
    let log = Log::default();
    let _subscription = client.client.subscribe(wish(&["a/b/c/text"]), log.call());
    scene.pass(100 * MS, &[&server], &[&client]);
    let push = |value: &str| text.push(Value::scalar(&value.to_owned()));
    assert_eq!(push("short").unwrap().number, 1);
    // Longer than the engine's longest message and than the memory that can be lent.
    let long = "x".repeat(40 << 20);
    for _ in 0..2 {
        assert!(matches!(push(&long), Err(PushError::Write(_))), "the second is news as well");
    }
    let late = Log::default();
    let _late = client.client.subscribe(wish(&["a/b/c/text"]), late.call());
    scene.pass(100 * MS, &[&server], &[&client]);
    let first = late.take();
    let reading = first[0].reading().unwrap();
    assert_eq!((first.len(), first[0].reason, reading.errors[0].reason.as_str()), (1, Reason::First, "Tampu_NotSent"));
    let again = push("short").unwrap();
    assert_eq!((again.kinds.intersects(Kinds::CHANGE), again.number), (false, 1), "it is what was told last");
    assert_eq!(push("other").unwrap().number, 2);
    scene.pass(100 * MS, &[&server], &[&client]);
    let told: Vec<_> = log.take().iter().map(|update| (update.reason, update.number)).collect();
    assert_eq!(told, [(Reason::First, 0), (Reason::Update, 1), (Reason::Update, 2)]);
}
