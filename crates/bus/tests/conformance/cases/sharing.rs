//! Batches that lie in shared memory instead of travelling.

use std::time::Duration;

use tampu_bus::{QosPatch, ReaderState};

use crate::conformance::{
    arena::{Arena, Faulty, Scene},
    command::Wish,
};

pub fn long_batches_are_shared_on_one_host<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut first, mut second) = (scene.join("one"), scene.join("first"), scene.join("second"));
    let (first_log, second_log) = (first.reader("t"), second.reader("t"));
    let writer = one.writer("t");
    scene.matched(&mut one, writer, 2);
    // The writer knows if all readers can map the memory once each has sent a message.
    one.write(writer, 1, 100);
    one.flush(writer, Duration::from_secs(10));
    // Three rounds of the ring.
    one.write(writer, 6000, 1000);
    for (reader, log) in [(&mut first, first_log), (&mut second, second_log)] {
        let account = scene.settled(reader, log, "t", 6001);
        assert_eq!(account.got, 6001, "{account:?}");
    }
    assert!(one.look(writer).shared > 10, "{:?}", one.look(writer));
}

pub fn who_finds_shared_batches_overwritten_fetches_them<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut keen, mut stopped) = (scene.join("one"), scene.join("keen"), scene.join("stopped"));
    let (keen_log, stopped_log) = (keen.reader("t"), stopped.reader("t"));
    let patch = QosPatch { max_wait_ms: Some(50), wait_period_ms: Some(3_600_000), ..QosPatch::default() };
    let writer = one.writer_with("t", &[], patch);
    scene.matched(&mut one, writer, 2);
    one.write(writer, 1, 100);
    one.flush(writer, Duration::from_secs(10));
    stopped.stop();
    one.write(writer, 8000, 1000);
    assert_eq!(scene.settled(&mut keen, keen_log, "t", 8001).got, 8001);
    assert!(one.status(writer, "stopped").is(ReaderState::Lagging));
    stopped.resume();
    let account = scene.settled(&mut stopped, stopped_log, "t", 8001);
    assert_eq!((account.got, account.lost_total()), (8001, 0), "{account:?}");
    assert!(one.look(writer).shared > 0);
}

pub fn batches_for_another_host_are_sent<A: Faulty>() {
    let scene = Scene::<A>::new();
    let (mut one, mut near, mut far) = (scene.join("one"), scene.join("near"), scene.join_at("there", "far"));
    let (near_log, far_log) = (near.reader("t"), far.reader("t"));
    let writer = one.writer("t");
    scene.matched(&mut one, writer, 2);
    one.flush(writer, Duration::from_secs(10));
    one.write(writer, 1000, 1000);
    for (reader, log) in [(&mut near, near_log), (&mut far, far_log)] {
        assert_eq!(scene.settled(reader, log, "t", 1000).got, 1000);
    }
    assert_eq!(one.look(writer).shared, 0);
}

pub fn who_does_not_heal_takes_the_newest_from_the_board_and_is_not_waited_for<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut screen) = (scene.join("one"), scene.join("screen"));
    let log = screen.reader_with(Wish { reliable: false, ..Wish::of("t") });
    let writer = one.writer("t");
    scene.matched(&mut one, writer, 1);
    // Announcements begin some time after a minimum of bytes for a reader that has answered; the next heartbeats inform it.
    let mut written = 0;
    while one.look(writer).shared == 0 {
        assert!(written < 100_000, "{:?}", one.look(writer));
        one.write(writer, 200, 1000);
        written += 200;
        scene.pass(Duration::from_millis(100));
    }
    scene.pass(Duration::from_secs(2));
    one.write(writer, 1, 1000);
    written += 1;
    let before = scene.settled(&mut screen, log, "t", written);
    assert_eq!((before.got, before.lost_total()), (written, 0), "{before:?}");
    screen.stop();
    one.write(writer, 8000, 1000);
    let look = one.look(writer);
    assert_eq!(look.waited_ns, 0, "{look:?}");
    assert!(look.shared > 10, "{look:?}");
    screen.resume();
    let account = scene.settled(&mut screen, log, "t", written + 8000);
    assert_eq!((account.got + account.lost_total(), account.torn), (written + 8000, 0), "{account:?}");
    assert!(account.lost_total() > 0 && account.got > written, "some of the newest, and word of the others: {account:?}");
}
