//! Order within a stream, and exact losses.

use std::time::Duration;

use tampu_bus::QosPatch;

use crate::conformance::{
    arena::{Arena, Faulty, Scene},
    command::{How, Wish},
};

/// Two heartbeats of a writer that has unacknowledged samples, and the way there and back.
const TWO_HEARTBEATS: Duration = Duration::from_millis(250);

pub fn every_stream_arrives_whole_and_in_order<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join("one"), scene.join_at("there", "other"));
    let mut readers = [scene.join("near"), scene.join_at("there", "far")];
    let logs = readers.each_mut().map(|reader| reader.reader("t/*"));
    let writers = [one.writer("t/a"), one.writer("t/b")];
    let third = other.writer("t/c");
    for writer in writers {
        scene.matched(&mut one, writer, 2);
    }
    scene.matched(&mut other, third, 2);
    for _ in 0..10 {
        one.write(writers[0], 100, 100);
        one.write(writers[1], 30, 1000);
        other.write(third, 50, 10);
    }
    for (reader, &log) in readers.iter_mut().zip(&logs) {
        for (topic, count) in [("t/a", 1000), ("t/b", 300), ("t/c", 500)] {
            let account = scene.settled(reader, log, topic, count);
            assert_eq!((account.from, account.to, account.got), (0, count, count), "{topic}");
        }
    }
}

pub fn samples_of_any_size_arrive<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join("one"), scene.join_at("there", "other"));
    let log = other.reader("t");
    let writer = one.writer("t");
    scene.matched(&mut one, writer, 1);
    for (index, size) in [8, 100, 60_000, 56 << 10, 1 << 20, 9, 10 << 20, 8].into_iter().enumerate() {
        one.write(writer, 1, size);
        let account = scene.settled(&mut other, log, "t", index as u64 + 1);
        assert_eq!(account.got, index as u64 + 1, "{size} bytes");
    }
}

pub fn urgent_samples_do_not_wait_and_keep_their_place<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join("one"), scene.join_at("there", "other"));
    let log = other.reader("t");
    // A sample that is not urgent would wait for an hour.
    let writer = one.writer_with("t", &[], QosPatch { linger_us: Some(3_600_000_000), ..QosPatch::default() });
    scene.matched(&mut one, writer, 1);
    one.write(writer, 1, 100);
    scene.settled(&mut other, log, "t", 1);
    one.write(writer, 3, 100);
    one.write_how(writer, 1, 100, How::Urgent);
    let account = scene.settled(&mut other, log, "t", 5);
    assert_eq!(account.got, 5);
}

pub fn losses_repetitions_and_reorderings_are_healed<A: Faulty>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join("one"), scene.join_at("there", "other"));
    let log = other.reader("t");
    let writer = one.writer("t");
    scene.matched(&mut one, writer, 1);
    scene.arena.disturb();
    for _ in 0..400 {
        one.write_how(writer, 5, 100, How::Urgent);
        scene.pass(Duration::from_millis(1));
    }
    let account = scene.settled(&mut other, log, "t", 2000);
    assert_eq!((account.got, account.lost_total()), (2000, 0));
}

pub fn a_lost_tail_is_healed_within_two_heartbeats<A: Faulty>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join_at("writing", "one"), scene.join_at("there", "other"));
    let log = other.reader("t");
    let writer = one.writer("t");
    scene.matched(&mut one, writer, 1);
    one.write(writer, 3, 100);
    scene.settled(&mut other, log, "t", 3);
    scene.arena.lose_data_from(Some("writing"));
    one.write_how(writer, 4, 100, How::Urgent);
    scene.within("the tail", TWO_HEARTBEATS, || other.log(log).topic("t").got == 7);
}

pub fn a_gap_is_exact_and_its_tail_told_within_two_heartbeats<A: Faulty>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join_at("writing", "one"), scene.join_at("there", "other"));
    let log = other.reader("t");
    let writer = one.writer_with("t", &[], QosPatch { cache: Some(0), ..QosPatch::default() });
    scene.matched(&mut one, writer, 1);
    one.write(writer, 3, 100);
    scene.settled(&mut other, log, "t", 3);
    scene.arena.lose_data_from(Some("writing"));
    one.write_how(writer, 4, 100, How::Urgent);
    scene.within("the tail's loss", TWO_HEARTBEATS, || other.log(log).topic("t").lost == [(3, 7)]);
    one.write_how(writer, 2, 100, How::Urgent);
    scene.arena.lose_data_from(None);
    one.write_how(writer, 1, 100, How::Urgent);
    let account = scene.settled(&mut other, log, "t", 10);
    assert_eq!((account.got, account.lost_total()), (4, 6), "{account:?}");
    assert_eq!(account.why.first().map(String::as_str), Some("Evicted"));
    // The writer counts samples that left its cache unacknowledged. Some of those were under way and arrived.
    assert!(one.status(writer, "other").lost >= 6);
}

pub fn a_reader_that_does_not_heal_is_told_its_losses_tail_included<A: Faulty>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join_at("writing", "one"), scene.join_at("there", "other"));
    let log = other.reader_with(Wish { reliable: false, ..Wish::of("t") });
    let writer = one.writer("t");
    scene.matched(&mut one, writer, 1);
    one.write(writer, 3, 100);
    scene.settled(&mut other, log, "t", 3);
    scene.arena.lose_data_from(Some("writing"));
    one.write_how(writer, 4, 100, How::Urgent);
    scene.arena.lose_data_from(None);
    one.write_how(writer, 1, 100, How::Urgent);
    let account = scene.settled(&mut other, log, "t", 8);
    assert_eq!((account.got, account.lost.clone()), (4, vec![(3, 7)]), "{account:?}");
    assert_eq!(account.why, ["Dropped"]);
    scene.arena.lose_data_from(Some("writing"));
    one.write_how(writer, 2, 100, How::Urgent);
    // Its writer has no reader to wait for, so it beats as an idle one: every half second.
    scene.within("the tail's loss", Duration::from_millis(1100), || other.log(log).topic("t").lost == [(3, 7), (8, 10)]);
}

pub fn a_clock_that_jumps_changes_no_order<A: Faulty>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join("one"), scene.join_at("there", "other"));
    let log = other.reader("t");
    let writer = one.writer("t");
    scene.matched(&mut one, writer, 1);
    const HOUR: i64 = 3_600_000_000_000;
    for step in [-HOUR, HOUR, -24 * HOUR, 48 * HOUR] {
        one.write(writer, 20, 100);
        scene.arena.step_clock(&one.0, step);
        one.write_how(writer, 5, 100, How::Urgent);
        scene.arena.step_clock(&other.0, -step);
        scene.pass(Duration::from_secs(3));
    }
    let account = scene.settled(&mut other, log, "t", 100);
    assert_eq!(account.got, 100);
    let states: Vec<String> = other.log(log).states("one").into_iter().map(|(state, _)| state).collect();
    assert_eq!(states, ["Appeared"], "nobody hangs because a clock was set");
}
