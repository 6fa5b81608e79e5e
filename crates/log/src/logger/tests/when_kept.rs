//! Answers of `when_kept`, `when` and `reporting`.

use std::{
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use tampu_bus::Grade;

use super::logger;
use crate::logger::Outcome;

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_call_is_told_later_whether_its_record_is_kept() {
    let (logger, far) = logger(|_| {});
    far.set(|state| state.unacknowledged = true);
    crate::info!(logger, "the first");
    let (tell, told) = std::sync::mpsc::channel();
    let late = tell.clone();
    logger.when_kept(Duration::from_secs(60), move |kept| tell.send(("patient", kept)).unwrap());
    logger.when_kept(Duration::from_millis(1), move |kept| late.send(("hasty", kept)).unwrap());
    // The packet is out at once, without a flush period, and the hasty one is told that it is not kept.
    far.packets(1);
    assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok(("hasty", false)));
    assert!(told.try_recv().is_err(), "nobody has acknowledged it");
    far.set(|state| state.unacknowledged = false);
    assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok(("patient", true)));
}

#[test]
fn a_panic_in_a_told_function_does_not_end_the_logging() {
    let (logger, far) = logger(|_| {});
    crate::info!(logger, "before");
    logger.when_kept(Duration::from_secs(20), |_| panic!("on purpose"));
    crate::info!(logger, "after");
    assert!(logger.flush(Duration::from_secs(20)));
    assert_eq!(far.records().len(), 2);
}

#[test]
fn at_the_end_of_the_logging_everybody_is_told() {
    let (logger, far) = logger(|settings| settings.close_wait = Duration::from_millis(10));
    far.set(|state| state.unacknowledged = true);
    crate::info!(logger, "the last");
    let (tell, told) = std::sync::mpsc::channel();
    logger.when_kept(Duration::from_secs(3600), move |kept| tell.send(kept).unwrap());
    drop(logger);
    assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok(false));
}

#[test]
fn records_that_cannot_be_sent_are_not_kept() {
    let (logger, far) = logger(|settings| settings.close_wait = Duration::from_millis(10));
    far.set(|state| state.unreachable = true);
    crate::info!(logger, "nowhere");
    let (tell, told) = std::sync::mpsc::channel();
    let last = tell.clone();
    logger.when_kept(Duration::from_millis(1), move |kept| tell.send(("hasty", kept)).unwrap());
    // In time, although the packet is still being tried.
    assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok(("hasty", false)));
    logger.when_kept(Duration::from_secs(3600), move |kept| last.send(("last", kept)).unwrap());
    drop(logger);
    assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok(("last", false)));
}

#[test]
fn a_told_function_may_hold_the_last_handle() {
    let (logger, far) = logger(|_| {});
    crate::info!(logger, "first");
    let (tell, told) = std::sync::mpsc::channel();
    let held = logger.clone();
    logger.when_kept(Duration::from_secs(20), move |kept| {
        crate::info!(held, "second");
        drop(held);
        tell.send(kept).unwrap();
    });
    drop(logger);
    assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok(true));
    far.packets(2);
}

#[test]
fn received_is_told_before_kept_and_says_no_more() {
    let (logger, far) = logger(|_| {});
    far.set(|state| (state.unacknowledged, state.received) = (true, true));
    crate::info!(logger, "in memory");
    let (tell, told) = mpsc::channel();
    let later = tell.clone();
    logger.when(Grade::Kept, Duration::from_secs(60), move |outcome| later.send(outcome).unwrap());
    logger.when(Grade::Received, Duration::from_secs(60), move |outcome| tell.send(outcome).unwrap());
    assert_eq!(told.recv_timeout(PATIENCE), Ok(Outcome::Received), "it does not wait behind the one before");
    assert!(told.try_recv().is_err(), "nothing is on a disk");
    assert_eq!(logger.wait_until(Grade::Kept, Duration::from_millis(1)), Outcome::Unconfirmed);
    far.set(|state| state.unacknowledged = false);
    assert_eq!(told.recv_timeout(PATIENCE), Ok(Outcome::Kept));
}

#[test]
fn what_the_bus_no_longer_has_is_lost_although_readers_have_gone_on() {
    let (logger, far) = logger(|_| {});
    far.set(|state| state.unacknowledged = true);
    crate::info!(logger, "evicted");
    let (tell, told) = mpsc::channel();
    logger.when(Grade::Kept, Duration::from_secs(60), move |outcome| tell.send(outcome).unwrap());
    far.packets(1);
    // After the promise was noted: a further one is answered.
    assert_eq!(logger.wait_until(Grade::Kept, Duration::from_millis(1)), Outcome::Unconfirmed);
    far.set(|state| (state.unacknowledged, state.lost) = (false, 3));
    assert_eq!(told.recv_timeout(PATIENCE), Ok(Outcome::Lost));
    crate::info!(logger, "the next");
    assert_eq!(logger.wait_until(Grade::Kept, PATIENCE), Outcome::Kept, "it is told once");
}

#[test]
fn every_reported_call_is_answered_once_and_not_by_the_thread_that_logs() {
    const CALLS: u64 = 1000;
    let (logger, far) = logger(|_| {});
    let told = Arc::new(Mutex::new(Vec::new()));
    let (log, here) = (told.clone(), std::thread::current().id());
    let reported = logger.reporting(Grade::Kept, PATIENCE, move |number, outcome| {
        log.lock().unwrap().push((number, outcome, std::thread::current().id() == here));
        assert_ne!(number, 7, "on purpose");
    });
    for number in 0..CALLS {
        crate::info!(reported, "step {number}");
    }
    crate::trace!(reported, "not published, so nobody is told");
    assert_eq!(logger.wait_until(Grade::Kept, PATIENCE), Outcome::Kept);
    let told = std::mem::take(&mut *told.lock().unwrap());
    assert_eq!(told, (0..CALLS).map(|number| (number, Outcome::Kept, false)).collect::<Vec<_>>());
    assert_eq!(far.records().len() as u64, CALLS);
    assert!(far.state.lock().unwrap().awaited.contains(&Some(Grade::Kept)), "the bus learns that somebody waits");
}

#[test]
fn a_call_without_room_is_refused() {
    let (logger, far) = logger(|settings| {
        settings.ring_bytes = 64 << 10;
        (settings.full_wait, settings.full_wait_grave) = (Duration::ZERO, Duration::ZERO);
    });
    let (tell, told) = mpsc::channel();
    let reported = logger.reporting(Grade::Received, PATIENCE, move |number, outcome| tell.send((number, outcome)).unwrap());
    crate::info!(reported, "before");
    assert_eq!(told.recv_timeout(PATIENCE), Ok((0, Outcome::Received)));
    far.set(|state| state.blocked = true);
    let mut dropped = 0;
    let mut calls = 0;
    while dropped == 0 {
        crate::info!(reported, "{}", "x".repeat(1000));
        calls += 1;
        dropped = logger.stats().dropped;
    }
    let sure = logger.acknowledged(PATIENCE);
    // Neither waits for an answer: there is nothing to wait for.
    crate::info!(sure, "{}", "x".repeat(1000));
    assert_eq!(sure.unconfirmed(), 1);
    far.set(|state| state.blocked = false);
    let answers: Vec<_> = (0..calls).map(|_| told.recv_timeout(PATIENCE).unwrap()).collect();
    let refused: Vec<_> = answers.iter().filter(|(_, outcome)| *outcome == Outcome::Refused).map(|(number, _)| *number).collect();
    assert_eq!(refused, [calls], "the last of them, of {answers:?}");
}

#[test]
fn many_threads_share_the_answers() {
    let (logger, far) = logger(|_| {});
    let sure = logger.acknowledged(PATIENCE);
    far.set(|state| state.unacknowledged = true);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let sure = &sure;
            scope.spawn(move || crate::info!(sure, "thread {number}"));
        }
        // All of them are sent while nobody has acknowledged anything.
        let mut packets = 1;
        while far.records().len() < 8 {
            packets = far.packets(packets).len() + 1;
        }
        far.set(|state| state.unacknowledged = false);
    });
    assert!(sure.is_confirmed());
}
