//! Waits of a writer: their length, the readers it waits for, and the fate of those it does not wait for.

use std::time::Duration;

use tampu_bus::{QosPatch, ReaderState};

use crate::conformance::{
    arena::{Arena, Scene},
    command::{Pace, Wish},
};

const KB: usize = 1 << 10;
const BOUND: Duration = Duration::from_millis(100);
/// The bound refills over the period: an hour, so next to nothing.
const REFILL: Duration = Duration::from_millis(1);

/// A small credit, and a bound that is spent once in a test.
fn tight(cache: usize) -> QosPatch {
    QosPatch {
        credit: Some(64 * KB),
        cache: Some(cache),
        max_wait_ms: Some(BOUND.as_millis() as u64),
        wait_period_ms: Some(3_600_000),
        ..QosPatch::default()
    }
}

/// A reader whose application takes nothing, and which itself holds little.
fn idle(topics: &str) -> Wish {
    Wish { pace: Pace::Idle, queue: Some(64 * KB), ..Wish::of(topics) }
}

fn idle_applications<A: Arena>(count: usize) {
    let scene = Scene::<A>::new();
    let mut one = scene.join("one");
    let mut keen = scene.join("keen");
    let log = keen.reader("t");
    let _idle: Vec<_> = (0..count)
        .map(|number| {
            let mut idler = scene.join(&format!("idle{number}"));
            idler.reader_with(idle("t"));
            idler
        })
        .collect();
    let writer = one.writer_with("t", &[], tight(64 << 20));
    scene.matched(&mut one, writer, 1 + count);
    let wrote = one.write(writer, 2000, 1000);
    let look = one.look(writer);
    let allowed = scene.arena.allowed(BOUND + REFILL).as_nanos() as u64;
    assert!(look.waited_ns >= BOUND.as_nanos() as u64, "there was somebody to wait for: {look:?}");
    assert!(look.waited_ns <= allowed, "waited {} ns in total", look.waited_ns);
    assert!(wrote.longest_ns <= allowed, "one write took {} ns", wrote.longest_ns);
    let account = scene.settled(&mut keen, log, "t", 2000);
    assert_eq!(account.got, 2000, "the others get everything");
    for number in 0..count {
        assert!(one.status(writer, &format!("idle{number}")).is(ReaderState::Lagging));
    }
    let before = one.look(writer).waited_ns;
    one.write(writer, 2000, 1000);
    assert_eq!(scene.settled(&mut keen, log, "t", 4000).got, 4000);
    let more = one.look(writer).waited_ns - before;
    assert!(more <= scene.arena.allowed(Duration::from_millis(20)).as_nanos() as u64, "a laggard holds nobody: {more} ns");
}

pub fn an_idle_application_costs_its_writer_the_bound_and_the_others_nothing<A: Arena>() {
    idle_applications::<A>(1);
}

pub fn two_idle_applications_cost_no_more_than_one<A: Arena>() {
    idle_applications::<A>(2);
}

pub fn a_slow_application_gets_everything_and_holds_nobody_back<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut keen, mut slow) = (scene.join("one"), scene.join("keen"), scene.join("slow"));
    let fast_log = keen.reader("t");
    let slow_log = slow.reader_with(Wish { pace: Pace::Slow(20, 10), queue: Some(64 * KB), ..Wish::of("t") });
    let writer = one.writer_with("t", &[], tight(64 << 20));
    scene.matched(&mut one, writer, 2);
    one.write(writer, 2000, 1000);
    assert_eq!(scene.settled(&mut keen, fast_log, "t", 2000).got, 2000);
    let so_far = slow.log(slow_log).topic("t").got;
    assert!(so_far < 1500, "the keen one is done while the slow one has {so_far}");
    assert_eq!(scene.settled(&mut slow, slow_log, "t", 2000).got, 2000);
}

pub fn laggards_are_served_from_the_cache<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join("one"), scene.join("other"));
    let log = other.reader_with(idle("t"));
    let writer = one.writer_with("t", &[], tight(64 << 20));
    scene.matched(&mut one, writer, 1);
    one.write(writer, 2000, 1000);
    assert!(one.status(writer, "other").is(ReaderState::Lagging));
    other.pace(log, Pace::Keen);
    let account = scene.settled(&mut other, log, "t", 2000);
    assert_eq!((account.from, account.got), (0, 2000));
    scene.until("it is live again", || one.status(writer, "other").is(ReaderState::Live));
    assert_eq!(one.status(writer, "other").lost, 0);
}

pub fn beyond_the_cache_the_loss_is_exact<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join("one"), scene.join("other"));
    let log = other.reader_with(idle("t"));
    let writer = one.writer_with("t", &[], tight(512 * KB));
    scene.matched(&mut one, writer, 1);
    one.write(writer, 4000, 1000);
    other.pace(log, Pace::Keen);
    let account = scene.settled(&mut other, log, "t", 4000);
    assert_eq!((account.from, account.got + account.lost_total()), (0, 4000), "{account:?}");
    assert!((3000..3900).contains(&account.lost_total()), "about half a megabyte was kept of four: {account:?}");
    assert!(account.why.iter().all(|why| why == "Evicted"), "{account:?}");
    scene.until("the writer counts the same", || one.status(writer, "other").lost >= account.lost_total());
    one.write(writer, 10, 1000);
    let after = scene.settled(&mut other, log, "t", 4010);
    assert_eq!(after.lost, account.lost, "then it has caught up");
}

pub fn a_writer_that_may_wait_loses_nothing_whatever_its_cache<A: Arena>() {
    let scene = Scene::<A>::new();
    let mut one = scene.join("one");
    let mut keeper = scene.join("keeper");
    let wish = Wish { full: true, pace: Pace::Slow(200, 1), queue: Some(8 * KB), ..Wish::of("*") };
    let log = keeper.reader_with(wish);
    // Less than two batches of the default size, a quarter of the credit, and just larger than it.
    for (topic, credit, cache) in [("a", 32, 64), ("b", 256, 64), ("c", 32, 33)] {
        let small = QosPatch {
            credit: Some(credit * KB),
            cache: Some(cache * KB),
            keep: Some(cache * KB),
            max_wait_ms: Some(10_000),
            wait_period_ms: Some(10_000),
            ..QosPatch::default()
        };
        let writer = one.writer_with(topic, &[], small);
        scene.matched(&mut one, writer, 1);
        // Batches of every size: sealed when full, when their time is over, and at once.
        (0..40).for_each(|_| {
            one.write(writer, 50, 1000);
        });
        let account = scene.settled(&mut keeper, log, topic, 2000);
        assert_eq!((account.got, account.lost_total()), (2000, 0), "{topic}: {account:?}");
    }
}

pub fn a_reader_of_full_hold_slows_its_writer_and_loses_nothing<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut keeper) = (scene.join("one"), scene.join("keeper"));
    let slow = Pace::Slow(100, 20);
    let log = keeper.reader_with(Wish { full: true, pace: slow, queue: Some(256 * KB), ..Wish::of("t") });
    let writer = one.writer_with("t", &[], tight(512 * KB));
    scene.matched(&mut one, writer, 1);
    let wrote = one.write(writer, 3000, 1000);
    assert!(wrote.total_ns > 3 * BOUND.as_nanos() as u64, "it was waited for, again and again: {wrote:?}");
    assert!(wrote.longest_ns <= scene.arena.allowed(BOUND).as_nanos() as u64, "but never longer than the bound: {wrote:?}");
    let account = scene.settled(&mut keeper, log, "t", 3000);
    assert_eq!((account.got, one.look(writer).lost), (3000, 0));
}

pub fn the_cache_keeps_within_its_bound<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join("one"), scene.join("other"));
    other.reader_with(idle("t"));
    let bound = 300 * KB;
    let writer = one.writer_with("t", &[], QosPatch { keep: Some(100 * KB), ..tight(bound) });
    scene.matched(&mut one, writer, 1);
    for size in [10, 1000, 50_000] {
        one.write(writer, 200, size);
        let cache = one.look(writer).cache;
        assert!(cache <= bound, "{cache} bytes are kept");
    }
}
