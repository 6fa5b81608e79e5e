//! Samples lent instead of sent.

use std::time::Duration;

use tampu_bus::QosPatch;

use crate::conformance::{
    arena::{Arena, Faulty, Scene},
    command::{How, Pace, Wish},
};

const KB: usize = 1 << 10;

pub fn loans_are_read_where_they_were_written<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut first, mut second) = (scene.join("one"), scene.join("first"), scene.join("second"));
    let (first_log, second_log) = (first.reader("t"), second.reader("t"));
    // The pool holds all loans of this test, so that no memory is reused before it is read, even on a busy machine.
    let writer = one.writer_with("t", &[], QosPatch { pool: Some(32 << 20), ..QosPatch::default() });
    scene.matched(&mut one, writer, 2);
    // The writer knows if all readers can map the memory once each has sent a message.
    one.write(writer, 1, 100);
    one.flush(writer, Duration::from_secs(10));
    for _ in 0..40 {
        one.write_how(writer, 5, 50 * KB, How::Loan);
        scene.pass(Duration::from_millis(5));
    }
    for (reader, log) in [(&mut first, first_log), (&mut second, second_log)] {
        let account = scene.settled(reader, log, "t", 201);
        assert_eq!((account.got, account.lent, account.torn), (201, 200, 0), "{account:?}");
    }
    assert_eq!(one.look(writer).copied_loans, 0);
}

pub fn loans_used_again_are_told_torn_never_damaged<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join("one"), scene.join("other"));
    let log = other.reader("t");
    let patch = QosPatch { pool: Some(1 << 20), max_wait_ms: Some(50), wait_period_ms: Some(3_600_000), ..QosPatch::default() };
    let writer = one.writer_with("t", &[], patch);
    scene.matched(&mut one, writer, 1);
    one.write(writer, 1, 100);
    scene.settled(&mut other, log, "t", 1);
    one.flush(writer, Duration::from_secs(10));
    other.pace(log, Pace::Idle);
    scene.pass(Duration::from_millis(20));
    // Ten times the pool, and the reader takes none of the samples.
    one.write_how(writer, 200, 50 * KB, How::Loan);
    assert_eq!(one.look(writer).copied_loans, 0, "the pool is used again, not given up");
    other.pace(log, Pace::Keen);
    let account = scene.settled(&mut other, log, "t", 201);
    assert_eq!(account.got + account.lost_total(), 201, "{account:?}");
    let gone = account.torn + account.lost_total();
    assert!((100..200).contains(&gone), "what was used again is told, what was not is there: {account:?}");
}

pub fn loans_for_another_host_are_copied_and_counted<A: Faulty>() {
    let scene = Scene::<A>::new();
    let (mut one, mut near, mut far) = (scene.join("one"), scene.join("near"), scene.join_at("there", "far"));
    let (near_log, far_log) = (near.reader("t"), far.reader_with(Wish { pace: Pace::Keen, ..Wish::of("t") }));
    let writer = one.writer("t");
    scene.matched(&mut one, writer, 2);
    one.write_how(writer, 20, 50 * KB, How::Loan);
    for (reader, log) in [(&mut near, near_log), (&mut far, far_log)] {
        let account = scene.settled(reader, log, "t", 20);
        assert_eq!((account.got, account.lent), (20, 0), "{account:?}");
    }
    assert_eq!(one.look(writer).copied_loans, 20);
}
