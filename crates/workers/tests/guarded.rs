//! A panic in a worker is reported, counted, and has the consequence that was chosen. One test, because the reporter
//! and the counts belong to the process.

use std::{
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use tampu_workers::{Consequence, OnPanic, Panicked, WorkerThread, counts, guard, set_reporter};

const CHILD: &str = "TAMPU_WORKERS_TEST_CHILD";

fn count(worker: &str) -> (u64, u64) {
    let all = counts();
    let found = all.iter().find(|count| count.worker == worker).unwrap();
    (found.running, found.panics)
}

#[test]
fn panics_are_reported_and_counted() {
    if std::env::var_os(CHILD).is_some() {
        let worker = WorkerThread::named("critical").spawn(OnPanic::EndProcess, || panic!("the state is broken"));
        let _ = worker.unwrap().join();
        unreachable!("the process has ended");
    }

    let reports = Arc::new(Mutex::new(Vec::new()));
    let kept = reports.clone();
    set_reporter(move |report| {
        kept.lock().unwrap().push((report.worker.to_owned(), report.to_string(), report.consequence));
        assert!(report.worker != "reporter fails", "a reporter that panics");
    });

    let mut starts = 0;
    let restarting = WorkerThread::named("loop").spawn_restarting(Duration::from_millis(1), move || {
        starts += 1;
        assert!(starts > 2, "start {starts}");
    });
    restarting.unwrap().join().unwrap();
    assert_eq!(count("loop"), (0, 2));

    let ended = WorkerThread::named("peer 7").counted_as("peer").stack_size(64 << 10);
    let ended = ended.spawn(OnPanic::ReportOnly, || {
        assert_eq!(std::thread::current().name(), Some("peer 7"));
        assert_eq!(count("peer"), (1, 0));
        std::panic::panic_any(7_u8)
    });
    assert!(ended.unwrap().join().is_err());
    assert_eq!(count("peer"), (0, 1));

    let borrowed = [1, 2, 3];
    let sum = std::thread::scope(|scope| {
        WorkerThread::named("scoped").spawn_scoped(scope, OnPanic::ReportOnly, || borrowed.iter().sum::<i32>()).unwrap().join()
    });
    assert_eq!(sum.unwrap(), 6);

    assert_eq!(guard("tasks", || 5), Ok(5));
    assert_eq!(guard("tasks", || -> u8 { panic!("a task") }), Err(Panicked));
    assert_eq!(guard("reporter fails", || panic!("twice")), Err(Panicked));

    let reports = reports.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let texts: Vec<&str> = reports.iter().map(|(_, text, _)| text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "worker 'loop' panicked: start 1; it restarts in 1 ms",
            "worker 'loop' panicked: start 2; it restarts in 1 ms",
            "worker 'peer' panicked: no message; the worker has ended",
            "worker 'tasks' panicked: a task; this task failed, the worker continues",
            "worker 'reporter fails' panicked: twice; this task failed, the worker continues",
        ]
    );
    assert_eq!(reports[2].2, Consequence::WorkerEnded);

    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "panics_are_reported_and_counted", "--nocapture"])
        .env(CHILD, "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&child.stderr);
    assert!(!child.status.success(), "the child ends by a signal: {told}");
    assert!(told.contains("tampu: worker 'critical' panicked: the state is broken; the process ends"), "{told}");
}
