//! Stopped, killed, cut off, restarted: what is told, how soon, and what others feel.

use std::time::Duration;

use tampu_bus::{QosPatch, ReaderState};

use crate::conformance::{
    arena::{Arena, Faulty, PATIENCE, Scene},
    command::{Command, How, Wish},
};

const KB: usize = 1 << 10;
const BOUND: Duration = Duration::from_millis(100);
/// The bound refills over the period: an hour, so next to nothing.
const REFILL: Duration = Duration::from_millis(1);
const DEATH: Duration = Duration::from_millis(100);
const HANG: Duration = Duration::from_secs(2);

fn bounded(cache: usize) -> QosPatch {
    QosPatch {
        credit: Some(64 * KB),
        cache: Some(cache),
        max_wait_ms: Some(BOUND.as_millis() as u64),
        wait_period_ms: Some(3_600_000),
        ..QosPatch::default()
    }
}

fn stopped_reader<A: Arena>(cache: usize) -> (u64, u64) {
    let scene = Scene::<A>::new();
    let (mut one, mut keen, mut other) = (scene.join("one"), scene.join("keen"), scene.join("other"));
    let keen_log = keen.reader("t");
    let log = other.reader_with(Wish { queue: Some(64 * KB), ..Wish::of("t") });
    let writer = one.writer_with("t", &[], bounded(cache));
    scene.matched(&mut one, writer, 2);
    one.write(writer, 100, 1000);
    scene.settled(&mut other, log, "t", 100);
    other.stop();
    // At a rate that the others can follow, and beyond the credit of the stopped reader.
    for _ in 0..400 {
        one.write(writer, 25, 1000);
        scene.pass(Duration::from_millis(3));
    }
    let look = one.look(writer);
    assert!(look.waited_ns <= scene.arena.allowed(BOUND + REFILL).as_nanos() as u64, "{look:?}");
    assert_eq!(scene.settled(&mut keen, keen_log, "t", 10_100).got, 10_100, "the others get everything");
    assert!(one.status(writer, "other").is(ReaderState::Lagging));
    other.resume();
    let account = scene.settled(&mut other, log, "t", 10_100);
    assert_eq!((account.from, account.got + account.lost_total()), (0, 10_100), "{account:?}");
    scene.until("it is live again", || one.status(writer, "other").is(ReaderState::Live));
    (account.lost_total(), one.status(writer, "other").lost)
}

pub fn a_stopped_reader_costs_the_bound_and_is_served_afterwards<A: Arena>() {
    assert_eq!(stopped_reader::<A>(64 << 20), (0, 0));
}

pub fn a_stopped_reader_loses_exactly_what_the_cache_could_not_keep<A: Arena>() {
    let (lost, counted) = stopped_reader::<A>(1 << 20);
    assert!((1000..10_000).contains(&lost), "of ten megabytes one was kept: {lost} were lost");
    assert!(counted >= lost, "the writer counts {counted}, {lost} were told");
}

pub fn a_killed_reader_is_let_go<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join("one"), scene.join("other"));
    other.reader("t");
    let patience = PATIENCE.as_millis() as u64;
    let patch =
        QosPatch { credit: Some(64 * KB), max_wait_ms: Some(patience), wait_period_ms: Some(patience), ..QosPatch::default() };
    let writer = one.writer_with("t", &[], patch);
    scene.matched(&mut one, writer, 1);
    one.write(writer, 100, 100);
    other.kill();
    let wrote = one.write(writer, 2000, 1000);
    assert!(wrote.longest_ns <= scene.arena.allowed(2 * DEATH).as_nanos() as u64, "the dead hold nobody: {wrote:?}");
    scene.within("it is known to be gone", scene.arena.allowed(2 * DEATH), || one.status(writer, "other").is(ReaderState::Gone));
    assert_eq!(one.write(writer, 1, 10).matched, 0);
}

pub fn the_death_of_a_writer_is_told_at_once<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join("one"), scene.join("other"));
    let log = other.reader("t");
    let writer = one.writer("t");
    scene.matched(&mut one, writer, 1);
    one.write(writer, 50, 100);
    scene.settled(&mut other, log, "t", 50);
    let killed_at = scene.arena.utc();
    one.kill();
    scene.until("its death is told", || other.log(log).told_at("one", "Died").is_some());
    let told = other.log(log);
    let after = told.told_at("one", "Died").unwrap_or_default() - killed_at;
    assert!(after <= scene.arena.allowed(DEATH).as_nanos() as i64, "told after {after} ns");
    let account = told.topic("t");
    assert_eq!((account.got, account.open_end), (50, true), "what it wrote last is not known: {account:?}");
    assert_eq!(told.states("one").iter().filter(|(state, _)| state == "Died").count(), 1, "told once");
}

pub fn a_hang_is_told_and_so_is_the_return<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join("one"), scene.join("other"));
    let log = other.reader("t");
    let writer = one.writer("t");
    scene.matched(&mut one, writer, 1);
    one.write(writer, 50, 100);
    scene.settled(&mut other, log, "t", 50);
    scene.pass(Duration::from_secs(3));
    assert!(other.log(log).told_at("one", "Silent").is_none(), "an idle writer does not hang");
    let stopped_at = scene.arena.utc();
    one.stop();
    scene.until("the hang is told", || other.log(log).told_at("one", "Silent").is_some());
    let after = other.log(log).told_at("one", "Silent").unwrap_or_default() - stopped_at;
    assert!(after <= scene.arena.allowed(HANG).as_nanos() as i64, "told after {after} ns");
    one.resume();
    scene.within("the return is told", scene.arena.allowed(HANG), || other.log(log).told_at("one", "Returned").is_some());
    one.write(writer, 50, 100);
    let account = scene.settled(&mut other, log, "t", 100);
    assert_eq!((account.got, account.open_end), (100, false));
    let states: Vec<String> = other.log(log).states("one").into_iter().map(|(state, _)| state).collect();
    assert_eq!(states[..3], ["Appeared", "Silent", "Returned"]);
    // An engine may detect its cut late and connect anew. That is another silence, but no death.
    assert!(states.iter().all(|state| state != "Died" && state != "Left"), "{states:?}");
}

pub fn a_cut_is_told_and_healed_without_loss<A: Faulty>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join_at("a", "one"), scene.join_at("b", "other"));
    let log = other.reader("t");
    let writer = one.writer("t");
    scene.matched(&mut one, writer, 1);
    one.write(writer, 50, 100);
    scene.settled(&mut other, log, "t", 50);
    for round in 1..=2 {
        // The first cut is shorter than the engine's lease, the second longer.
        let length = if round == 1 { Duration::from_secs(5) } else { Duration::from_secs(30) };
        let cut_at = scene.arena.utc();
        scene.arena.cut("a", "b");
        for _ in 0..50 {
            one.write(writer, 1, 100);
            scene.pass(length / 50);
        }
        let silent = other.log(log).told_at("one", "Silent").unwrap_or_default();
        assert!((cut_at..=cut_at + HANG.as_nanos() as i64).contains(&silent), "told after {} ns", silent - cut_at);
        scene.arena.heal("a", "b");
        scene.within("the return is told", HANG, || other.log(log).told_at("one", "Returned").is_some_and(|at| at > cut_at));
        let account = scene.settled(&mut other, log, "t", 50 + 50 * round);
        assert_eq!((account.got, account.open_end), (50 + 50 * round, false));
    }
}

pub fn a_reader_that_lacks_nothing_is_live_again_after_a_cut<A: Faulty>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join_at("a", "one"), scene.join_at("b", "other"));
    let log = other.reader("t");
    let writer = one.writer("t");
    scene.matched(&mut one, writer, 1);
    one.write(writer, 50, 100);
    scene.settled(&mut other, log, "t", 50);
    scene.until("it has acknowledged all", || one.status(writer, "other").acked == 50);
    scene.arena.cut("a", "b");
    scene.until("it is doubted", || one.status(writer, "other").is(ReaderState::Lagging));
    scene.arena.heal("a", "b");
    // Nothing is written meanwhile, so there is nothing that it could acknowledge.
    scene.until("it is live again", || one.status(writer, "other").is(ReaderState::Live));
}

pub fn a_death_on_another_host_is_told_by_its_node<A: Faulty>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join_at("a", "one"), scene.join_at("b", "other"));
    scene.arena.serve("a");
    scene.arena.serve("b");
    let log = other.reader("t");
    let writer = one.writer("t");
    scene.matched(&mut one, writer, 1);
    one.write(writer, 50, 100);
    scene.settled(&mut other, log, "t", 50);
    // A cut removes the node as well, so it is no death at any length.
    scene.arena.cut("a", "b");
    scene.pass(Duration::from_secs(30));
    scene.arena.heal("a", "b");
    scene.within("the return is told", HANG, || other.log(log).told_at("one", "Returned").is_some());
    assert!(other.log(log).told_at("one", "Died").is_none());
    one.write(writer, 50, 100);
    assert_eq!(scene.settled(&mut other, log, "t", 100).got, 100);

    let killed_at = scene.arena.utc();
    one.kill();
    scene.until("its death is told", || other.log(log).told_at("one", "Died").is_some());
    let after = other.log(log).told_at("one", "Died").unwrap_or_default() - killed_at;
    assert!(after <= DEATH.as_nanos() as i64, "told after {after} ns");
    assert!(other.log(log).topic("t").open_end);
}

pub fn samples_that_died_with_their_writer_are_told_lost<A: Faulty>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join_at("writing", "one"), scene.join("other"));
    let mut node = scene.join_at("writing", "neighbour");
    let log = other.reader("t");
    let writer = one.writer("t");
    scene.matched(&mut one, writer, 1);
    one.write(writer, 3, 100);
    scene.settled(&mut other, log, "t", 3);
    scene.arena.lose_data_from(Some("writing"));
    one.write_how(writer, 2, 100, How::Urgent);
    scene.arena.lose_data_from(None);
    one.write_how(writer, 1, 100, How::Urgent);
    // The last batch arrives; the ones before it are lost.
    scene.pass(Duration::from_micros(300));
    one.kill();
    scene.pass(Duration::from_secs(3));
    let told = other.log(log);
    assert!(told.told_at("one", "Silent").is_some() || told.told_at("one", "Died").is_some(), "{told:?}");
    // Its host is unreachable. After three minutes of silence the member is declared dead.
    scene.pass(Duration::from_secs(190));
    let account = other.log(log).topic("t");
    assert_eq!((account.got, account.lost, account.open_end), (4, vec![(3, 5)], true));
    node.done(Command::Leave);
}

pub fn a_restarted_writer_is_no_gap<A: Arena>() {
    let scene = Scene::<A>::new();
    let mut other = scene.join("other");
    let log = other.reader("t");
    for life in 1..=3 {
        let mut one = scene.join("one");
        let writer = one.writer("t");
        scene.matched(&mut one, writer, 1);
        one.write(writer, 20 * life, 100);
        scene.until("this life is complete", || {
            let accounts = other.log(log).accounts();
            let complete = |account: &&_| **account == crate::conformance::log::Account { open_end: false, ..whole(20 * life) };
            accounts.len() as u64 == life && accounts.values().any(|account| complete(&account))
        });
        one.kill();
        scene.until("its end is told", || {
            let died = other.log(log).states("one").into_iter().filter(|(state, _)| state == "Died").count();
            died as u64 == life
        });
    }
    let accounts = other.log(log).accounts();
    assert!(accounts.values().all(|account| account.from == 0 && account.lost.is_empty()), "{accounts:?}");
}

fn whole(count: u64) -> crate::conformance::log::Account {
    crate::conformance::log::Account { to: count, got: count, ..Default::default() }
}

pub fn who_leaves_says_so<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join("one"), scene.join("other"));
    let log = other.reader("t");
    let closed = other.reader("t");
    let writer = one.writer("t");
    scene.matched(&mut one, writer, 2);
    other.done(Command::CloseReader { reader: closed });
    scene.within("the writer knows that a reader was closed", scene.arena.allowed(DEATH), || {
        one.look(writer).readers.iter().filter(|reader| reader.is(ReaderState::Gone)).count() == 1
    });
    one.write(writer, 100, 100);
    one.done(Command::Leave);
    scene.until("the reader knows that the writer left", || other.log(log).told_at("one", "Left").is_some());
    let account = other.log(log).topic("t");
    assert_eq!((account.got, account.open_end), (100, false), "it left nothing behind: {account:?}");
}
