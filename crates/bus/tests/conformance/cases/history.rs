//! History for a late reader.

use std::time::Duration;

use tampu_bus::{History, QosPatch};

use crate::conformance::{
    arena::{Arena, Faulty, Scene},
    command::{Command, Wish},
    log::Account,
};

/// Writes 100 samples, lets a reader come, writes 10 more; what the reader was given.
fn late<A: Arena>(history: History, patch: QosPatch) -> Account {
    let scene = Scene::<A>::new();
    let mut one = scene.join("one");
    let writer = one.writer_with("t", &[], patch);
    for _ in 0..10 {
        one.write(writer, 10, 1000);
        scene.pass(Duration::from_millis(1));
    }
    let mut other = scene.join("other");
    let log = other.reader_with(Wish { history, ..Wish::of("t") });
    scene.matched(&mut one, writer, 1);
    one.write(writer, 10, 1000);
    let account = scene.settled(&mut other, log, "t", 110);
    assert_eq!(account.to, 110);
    assert_eq!(account.got + account.lost_total(), 110 - account.from);
    account
}

pub fn a_late_reader_gets_no_history_unless_it_asks<A: Arena>() {
    let account = late::<A>(History::None, QosPatch::default());
    assert_eq!((account.from, account.got), (100, 10));
}

pub fn a_late_reader_gets_the_last_samples<A: Arena>() {
    let account = late::<A>(History::Last(25), QosPatch::default());
    assert_eq!((account.from, account.got), (75, 35));
    let more_than_there_are = late::<A>(History::Last(1000), QosPatch::default());
    assert_eq!((more_than_there_are.from, more_than_there_are.got), (0, 110));
}

pub fn a_late_reader_gets_all_that_is_kept<A: Arena>() {
    let account = late::<A>(History::All, QosPatch::default());
    assert_eq!((account.from, account.got), (0, 110));
    // Half of it is kept, for every batch size.
    let bounded = late::<A>(History::All, QosPatch { keep: Some(60_000), batch: Some(5000), ..QosPatch::default() });
    assert!((40..80).contains(&bounded.from), "{bounded:?}");
    // Samples written during the fetch evict the oldest ones, and that loss is reported.
    assert!(bounded.lost_total() <= 10 && bounded.lost.iter().all(|&(from, _)| from == bounded.from), "{bounded:?}");
}

pub fn history_is_whole_under_losses<A: Faulty>() {
    let scene = Scene::<A>::new();
    let mut one = scene.join("one");
    let writer = one.writer("t");
    one.write(writer, 1000, 200);
    scene.arena.disturb();
    let mut other = scene.join_at("there", "other");
    let log = other.reader_with(Wish { history: History::All, ..Wish::of("t") });
    for _ in 0..100 {
        one.write(writer, 10, 200);
        scene.pass(Duration::from_millis(2));
    }
    let account = scene.settled(&mut other, log, "t", 2000);
    assert_eq!((account.from, account.got), (0, 2000));
}

pub fn a_process_that_writes_and_leaves_at_once_is_read_by_all_that_were_there<A: Arena>() {
    let scene = Scene::<A>::new();
    // One reader keeps its writers until it has everything, and the others come after it.
    let mut keeper = scene.join("keeper");
    let kept = keeper.reader_with(Wish { full: true, history: History::All, ..Wish::of("**") });
    let mut viewers: Vec<_> = (0..3).map(|number| scene.join(&format!("viewer{number}"))).collect();
    let logs: Vec<usize> = viewers.iter_mut().map(|viewer| viewer.reader("t")).collect();
    // Every process knows of all readers, so a process that joins later comes after them.
    let mut first = scene.join("first");
    let writer = first.writer("t");
    scene.matched(&mut first, writer, 4);
    for life in 0..10 {
        let mut sender = scene.join(&format!("sender{life}"));
        let writers: Vec<usize> = (0..2).map(|_| sender.writer("t")).collect();
        for &writer in &writers {
            sender.write(writer, 1 + life, 100);
        }
        // A stream that has ended before the readers are known is read as well.
        sender.done(Command::CloseWriter { writer: writers[0] });
        sender.done(Command::Leave);
    }
    let whole = |log: crate::conformance::log::Log| {
        let accounts = log.accounts();
        let of = |life: u64| {
            accounts.iter().filter(move |(stream, account)| {
                stream.source == format!("sender{life}")
                    && account.from == 0
                    && account.got == 1 + life
                    && account.lost.is_empty()
            })
        };
        (0..10).all(|life| of(life).count() == 2)
    };
    scene.until("the keeper has all", || whole(keeper.log(kept)));
    for (viewer, log) in viewers.iter_mut().zip(logs) {
        scene.until("a viewer has all", || whole(viewer.log(log)));
    }
}
