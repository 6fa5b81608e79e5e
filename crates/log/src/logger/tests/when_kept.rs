//! Answers of `when_kept`.

use std::time::Duration;

use super::logger;

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
