//! Receipts: the outcome of written samples, and the readers of a stream.

use std::time::Duration;

use tampu_bus::{QosPatch, ReaderState};

use crate::conformance::{
    arena::{Arena, PATIENCE, Scene},
    command::{Command, Pace, Wish},
};

const KB: usize = 1 << 10;

fn impatient(cache: usize) -> QosPatch {
    QosPatch {
        credit: Some(64 * KB),
        cache: Some(cache),
        max_wait_ms: Some(10),
        wait_period_ms: Some(3_600_000),
        ..QosPatch::default()
    }
}

fn idle(topics: &str) -> Wish {
    Wish { pace: Pace::Idle, queue: Some(64 * KB), ..Wish::of(topics) }
}

pub fn deliveries_are_told_as_readers_acknowledge<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut first, mut second) = (scene.join("one"), scene.join("first"), scene.join("second"));
    first.reader("t");
    let slow = second.reader_with(Wish { pace: Pace::Idle, ..Wish::of("t") });
    let writer = one.writer("t");
    scene.matched(&mut one, writer, 2);
    for _ in 0..10 {
        one.write(writer, 10, 100);
        scene.pass(Duration::from_millis(30));
    }
    let early = one.look(writer).deliveries;
    assert_eq!(early.last().copied().unwrap_or(0), 0, "the second has taken nothing: {early:?}");
    second.pace(slow, Pace::Keen);
    scene.until("everything is told delivered", || one.look(writer).deliveries.last() == Some(&100));
    let told = one.look(writer).deliveries;
    assert!(told.is_sorted_by(|before, after| before < after), "{told:?}");
}

pub fn a_receipt_says_what_was_delivered<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut first, mut second) = (scene.join("one"), scene.join("first"), scene.join_at("there", "second"));
    first.reader("t");
    second.reader("t");
    let writer = one.writer("t");
    scene.matched(&mut one, writer, 2);
    one.write(writer, 500, 100);
    let receipt = one.flush(writer, PATIENCE);
    assert_eq!((receipt.delivered, receipt.cached, receipt.lost), (vec![(0, 500)], vec![], vec![]));
    one.write(writer, 3, 100);
    assert_eq!(one.flush(writer, PATIENCE).delivered, [(500, 503)], "the next receipt begins where the last ended");
}

pub fn a_receipt_says_what_is_cached_and_what_is_lost<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join("one"), scene.join("other"));
    let log = other.reader_with(idle("t"));
    let writer = one.writer_with("t", &[], impatient(512 * KB));
    scene.matched(&mut one, writer, 1);
    one.write(writer, 100, 1000);
    let behind = one.flush(writer, Duration::from_millis(200));
    assert_eq!((behind.delivered, behind.cached, behind.lost), (vec![], vec![(0, 100)], vec![]));
    one.write(writer, 2000, 1000);
    let receipt = one.flush(writer, Duration::from_millis(200));
    let [(100, lost_to)] = receipt.lost[..] else { panic!("{receipt:?}") };
    assert_eq!((receipt.delivered, receipt.cached), (vec![], vec![(lost_to, 2100)]), "each sample is in one place");
    other.pace(log, Pace::Keen);
    let account = scene.settled(&mut other, log, "t", 2100);
    assert!(account.lost.iter().all(|&(_, to)| to <= lost_to), "what was said to be cached arrives: {account:?}");
    one.write(writer, 1, 1000);
    assert_eq!(one.flush(writer, PATIENCE).delivered, [(2100, 2101)]);
}

pub fn a_write_nobody_can_receive_says_so<A: Arena>() {
    let scene = Scene::<A>::new();
    let mut one = scene.join("one");
    let writer = one.writer("t");
    assert_eq!(one.write(writer, 10, 100).matched, 0);
    let receipt = one.flush(writer, PATIENCE);
    assert_eq!((receipt.delivered, receipt.cached), (vec![], vec![(0, 10)]));
    let mut other = scene.join("other");
    let reader = other.reader("t");
    scene.matched(&mut one, writer, 1);
    assert_eq!(one.write(writer, 1, 100).matched, 1);
    other.done(Command::CloseReader { reader });
    scene.matched(&mut one, writer, 0);
    assert_eq!(one.write(writer, 1, 100).matched, 0);
}

pub fn a_writer_sees_its_readers_matched_lagging_and_lost<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join("one"), scene.join("Other"));
    let log = other.reader_with(idle("t"));
    let writer = one.writer_with("t", &[], impatient(256 * KB));
    scene.matched(&mut one, writer, 1);
    assert!(one.status(writer, "other").is(ReaderState::Live), "sources are known in lower case");
    one.write(writer, 3000, 1000);
    let lagging = one.status(writer, "other");
    assert!(lagging.is(ReaderState::Lagging), "{lagging:?}");
    assert!(lagging.lost > 2000, "{lagging:?}");
    other.pace(log, Pace::Keen);
    let account = scene.settled(&mut other, log, "t", 3000);
    scene.until("it has caught up", || one.status(writer, "other").acked == 3000);
    assert!(one.status(writer, "other").is(ReaderState::Live));
    assert!(account.lost_total() <= one.status(writer, "other").lost);
}

pub fn what_was_not_acknowledged_is_given_again_to_the_next_life<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join("one"), scene.join("keeper"));
    let wish = Wish { manual: true, full: true, ..Wish::of("t") };
    let log = other.reader_with(wish.clone());
    let writer = one.writer("t");
    scene.matched(&mut one, writer, 1);
    one.write(writer, 100, 100);
    scene.settled(&mut other, log, "t", 100);
    assert_eq!(one.flush(writer, Duration::from_millis(200)).delivered, [], "taken is not acknowledged");
    other.done(Command::Acknowledge { reader: log, topic: "t".to_owned(), next: 60 });
    scene.until("the writer hears it", || one.status(writer, "keeper").acked == 60);
    let stream = other.log(log).accounts().into_keys().next().map(|stream| (stream.incarnation, stream.stream));
    other.kill();
    scene.matched(&mut one, writer, 0);
    one.write(writer, 100, 100);
    let (incarnation, stream) = stream.unwrap_or_default();
    let mut again = scene.join("keeper");
    let log = again.reader_with(Wish { resume: vec![(incarnation, stream, 60)], ..wish });
    let account = scene.settled(&mut again, log, "t", 200);
    assert_eq!((account.from, account.got), (60, 140), "from where the one before had committed");
}
