//! Searches that nobody waits for any longer: after Ctrl-C, and behind a pipe that was closed.

use std::{
    fs,
    io::Read,
    process::{Child, ExitStatus},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::site::{PATIENCE, Site};

/// An expression that takes hours in the text below: only its end ends it.
const ENDLESS: &str = r"/\b(a?){3000}\bq/";

/// A logbook with a long text.
fn long_text(site: &Site, book: impl Fn(&[&str])) {
    let text = site.file("long", "aé ".repeat(1 << 20));
    book(&["make", "Shift"]);
    book(&["post", "Shift", "-e", "plain", "--file", &text]);
}

/// The time of a processor that a process has had.
fn spent(pid: i32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The 12th and 13th fields behind the name, which may have blanks, in hundredths of a second.
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let hundredths: u64 = fields.iter().skip(11).take(2).map(|one| one.parse::<u64>().unwrap_or(0)).sum();
    Duration::from_millis(hundredths * 10)
}

/// Waits until a process has worked for longer than it takes to begin.
#[track_caller]
fn busy(pid: i32) {
    let (begun, until) = (spent(pid), Instant::now() + PATIENCE);
    while spent(pid) < begun + Duration::from_secs(1) {
        assert!(Instant::now() < until, "it does nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until a process works no longer.
#[track_caller]
fn idle(pid: i32) {
    let until = Instant::now() + PATIENCE;
    loop {
        let before = spent(pid);
        std::thread::sleep(Duration::from_secs(1));
        if spent(pid) < before + Duration::from_millis(100) {
            return;
        }
        assert!(Instant::now() < until, "it goes on and on");
    }
}

#[track_caller]
fn ended(child: &mut Child) -> (ExitStatus, String) {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            return (status, said);
        }
        if Instant::now() > until {
            let _ = child.kill();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Searches and goes away, in both ways; `works` is the process that searches, if it is another one.
fn goes_away(site: &Site, works: Option<i32>) {
    for by_signal in [true, false] {
        let mut command = site.command(&["book", "search", ENDLESS, "--timeout", "10h"]);
        if works.is_some() {
            command.env_remove("TAMPU_DATA_DIR");
        }
        let mut child = command.spawn().unwrap();
        busy(works.unwrap_or(child.id() as i32));
        if by_signal {
            kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        } else {
            drop(child.stdout.take());
        }
        let (status, said) = ended(&mut child);
        let expected = if by_signal { (Some(1), "tampu: interrupted\n") } else { (Some(0), "") };
        assert_eq!((status.code(), said.as_str()), expected);
        if let Some(works) = works {
            idle(works);
        }
    }
}

#[test]
fn a_search_in_a_directory_ends() {
    let site = Site::new();
    long_text(&site, |arguments| drop(site.tampu(&[&["book"], arguments].concat()).ok()));
    goes_away(&site, None);
}

#[test]
fn a_search_of_a_hub_ends_there_too() {
    let site = Site::new();
    let config = site.file("hub.toml", "[book]\nsearch_ms = 600000\n");
    let hub = site.hub(&["--config", &config, "--roles", "node,book"]);
    long_text(&site, |arguments| drop(site.tampu_without("TAMPU_DATA_DIR", b"", &[&["book"], arguments].concat()).ok()));
    goes_away(&site, Some(hub.pid()));
}

/// `| head -1`: the rest of what was found is nobody's.
#[test]
fn a_reader_who_has_enough_is_no_error() {
    let site = Site::new();
    let book = |arguments: &[&str]| site.tampu(&[&["book"], arguments].concat()).ok();
    book(&["make", "Shift"]);
    // More than a pipe holds.
    let text = site.file("text", "something that was found ".repeat(8000));
    for _ in 0..3 {
        book(&["post", "Shift", "--file", &text]);
    }
    for arguments in [&["search", "found", "--json"][..], &["export", "--format", "csv"], &["export", "--format", "json"]] {
        let mut child = site.command(&[&["book"], arguments].concat()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        out.read_exact(&mut [0; 100]).unwrap();
        drop(out);
        let (status, said) = ended(&mut child);
        assert!(status.success() && said.is_empty(), "{arguments:?}: {status:?} {said}");
    }
}
