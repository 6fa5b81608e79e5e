//! Processes that live and log and have nobody who drains their rings: the host's node does. They are this program.

#[path = "support/host.rs"]
#[allow(dead_code)]
mod host;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
    time::Duration,
};

use host::Host;
use tampu_log::{LogSettings, Logger, info, recovery::News};
use tampu_types::{Level, LogRecord, SourceName};

/// Tells a process what it is to be, and where it meets its test.
const ROLE: &str = "TAMPU_LOG_ORPHAN";
const PLACE: &str = "TAMPU_LOG_ORPHAN_PLACE";
const CALLS: u64 = 500;

/// Not a test: what the processes of the tests do.
#[test]
fn orphan() {
    let (Ok(role), Some(place)) = (std::env::var(ROLE), std::env::var_os(PLACE).map(PathBuf::from)) else { return };
    match &*role {
        "parent" => be_the_parent(&place),
        "broken" => be_broken(&place),
        other => panic!("{other}"),
    }
}

fn say(place: &Path, what: &str) {
    fs::write(place.join(what), "").unwrap();
}

fn wait_for(place: &Path, what: &str) {
    while !place.join(what).exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn logger() -> Logger {
    Logger::open(LogSettings::from_env(SourceName::new("orphan").unwrap()).unwrap()).unwrap()
}

fn log(logger: &Logger, from: u64) {
    for number in from..from + CALLS {
        match number % 10 {
            3 => logger.record(LogRecord::new(Level::Info, format!("call {number}"))),
            7 => info!(logger.in_stack("chain", 2), "call {number}"),
            _ => info!(logger, "call {number}"),
        }
    }
}

/// Logs, makes a child that logs with the same logger, and waits for its end.
fn be_the_parent(place: &Path) {
    let logger = logger();
    info!(logger, "the parent");
    assert!(logger.flush(host::PATIENCE));
    // SAFETY: the child only logs, which is the case under test, and exits without running the parent's code.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let work = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            log(&logger, 0);
            say(place, "first");
            wait_for(place, "go");
            log(&logger, CALLS);
            assert!(logger.flush(host::PATIENCE), "what a child waits for is told by the rings themselves");
            say(place, "second");
            drop(logger);
            wait_for(place, "end");
        }));
        // SAFETY: ends this process.
        unsafe { libc::_exit(i32::from(work.is_err())) };
    }
    fs::write(place.join("child.new"), child.to_string()).unwrap();
    fs::rename(place.join("child.new"), place.join("child")).unwrap();
    let mut status = 0;
    // SAFETY: waits for the child made above.
    unsafe { libc::waitpid(child, &mut status, 0) };
    info!(logger, "the child ended with {status}");
}

/// Logs with a backend that dies at once.
fn be_broken(place: &Path) {
    let settings = LogSettings::from_env(SourceName::new("orphan").unwrap()).unwrap();
    let logger = Logger::joining(|| panic!("this backend dies on purpose"), settings).unwrap();
    log(&logger, 0);
    say(place, "first");
    wait_for(place, "end");
    std::mem::forget(logger);
}

fn start(host: &Host, role: &str) -> (Child, PathBuf) {
    let place = host.dir.path().join("place");
    fs::create_dir(&place).unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "orphan", "--nocapture"]);
    let child = host.command(&program).env(ROLE, role).env(PLACE, &place).spawn().unwrap();
    (child, place)
}

fn calls_of(host: &Host, pid: u32) -> Vec<LogRecord> {
    let mut records = host.records();
    records.retain(|record| record.id.is_some_and(|id| id.incarnation.pid == pid) && record.message.starts_with("call "));
    records
}

/// Every call is there, once, under a name of its own.
fn once(records: &[LogRecord], calls: u64) {
    let said: BTreeSet<&str> = records.iter().map(|record| &*record.message).collect();
    let ids: BTreeSet<_> = records.iter().map(|record| record.id).collect();
    assert_eq!((records.len() as u64, said.len() as u64, ids.len() as u64), (calls, calls, calls));
}

#[test]
fn a_child_that_logs_and_lives_on_is_drained_by_the_node_and_nothing_comes_twice_when_it_ends() {
    let mut host = Host::start();
    let (mut parent, place) = start(&host, "parent");
    host.until("the child", || place.join("child").exists() && place.join("first").exists());
    let child: u32 = fs::read_to_string(place.join("child")).unwrap().parse().unwrap();
    host.until("the child's first calls, while it lives", || calls_of(&host, child).len() as u64 == CALLS);
    assert!(!place.join("second").exists());
    let adopted = |news: &News| matches!(news, News::Adopted { incarnation, is_expected: false, .. } if incarnation.pid == child);
    assert_eq!(host.news.lock().unwrap().iter().filter(|news| adopted(news)).count(), 1);
    say(&place, "go");
    host.until("the child's flush", || place.join("second").exists());
    once(&calls_of(&host, child), 2 * CALLS);
    say(&place, "end");
    assert!(parent.wait().unwrap().success());
    host.settle();
    once(&calls_of(&host, child), 2 * CALLS);
    assert!(host.records().iter().any(|record| record.message == "the child ended with 0"));
}

#[test]
fn what_a_process_left_that_died_while_it_began_is_removed() {
    let mut host = Host::start();
    let mut child = Command::new("true").spawn().unwrap();
    let dead = tampu_types::Incarnation { pid: child.id(), ..tampu_bus::host::incarnation() };
    child.wait().unwrap();
    let make = |life: tampu_types::Incarnation| {
        let directory = host.rings.join(life.to_string());
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("lease"), "").unwrap();
        fs::write(directory.join("dictionary.new"), "").unwrap();
        directory
    };
    let (beginning, left) = (make(tampu_types::Incarnation { start: dead.start + 1, ..dead }), make(dead));
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(60);
    fs::File::open(&left).unwrap().set_modified(long_ago).unwrap();
    host.until("its directory goes", || !left.exists());
    assert!(beginning.exists(), "what changed just now may be somebody's who lives elsewhere");
    fs::remove_dir_all(beginning).unwrap();
    host.settle();
}

#[test]
fn a_process_whose_backend_died_is_drained_by_the_node() {
    let mut host = Host::start();
    let (mut broken, place) = start(&host, "broken");
    host.until("its calls, while it lives", || calls_of(&host, broken.id()).len() as u64 == CALLS);
    assert!(broken.try_wait().unwrap().is_none());
    say(&place, "end");
    broken.wait().unwrap();
    host.settle();
    once(&calls_of(&host, broken.id()), CALLS);
}
