//! `tampu site` and `tampu doctor --site`: what hosts and processes say of themselves.

use std::{
    fs,
    time::{Instant, SystemTime},
};

use rustix::process::Signal;
use serde_json::Value;
use tampu_tls::Authority;

use crate::{
    encrypted::{Lab, host_files},
    site::{Following, PATIENCE, Said, Site},
};

/// Repeats a command until its JSON lines satisfy the test.
#[track_caller]
fn until(mut run: impl FnMut() -> Said, satisfied: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let end = Instant::now() + PATIENCE;
    loop {
        let said = run().ok();
        let rows = said.json();
        if satisfied(&rows) {
            return rows;
        }
        assert!(Instant::now() < end, "{said:?}");
    }
}

#[test]
fn hosts_processes_topics_and_links_of_two_hosts_are_listed() {
    let lab = Lab::with_certificates();
    let own = lab.certificate_dir();
    let mast = host_files(&own, &Authority::open(&own).unwrap(), SystemTime::now());
    fs::copy(own.authority(), mast.authority()).unwrap();
    let (_hub, port) = lab.open();
    let far = |arguments: &[&str]| lab.far_arguments(port, Some(mast.path()), arguments);
    let publish = far(&["event", "pub", "lab/mast/wind/speed", "1.5", "--user", "--stay", "10m", "--process", "vane"]);
    let _vane = Following::start(&lab.elsewhere, &publish.iter().map(String::as_str).collect::<Vec<_>>());
    let site = |arguments: &[&str]| lab.far(port, Some(mast.path()), &[&["site"], arguments].concat());

    let processes = until(|| site(&["processes", "--json"]), |rows| rows.iter().any(|row| row["source"] == "vane"));
    let vane = processes.iter().find(|row| row["source"] == "vane").unwrap();
    assert_eq!(vane["host"], "mast", "{vane}");
    assert!(vane["writes"].as_u64() > Some(0), "{vane}");

    let hosts = site(&["--json"]).ok().json();
    assert_eq!(hosts.len(), 1, "{hosts:?}");
    assert_eq!(hosts[0]["version"], env!("CARGO_PKG_VERSION"));
    // Both ends are one computer, whose clock cannot be far from itself: the offset is within what the way explains.
    let (offset, error) = (hosts[0]["offset_ns"].as_i64().unwrap(), hosts[0]["offset_error_ns"].as_i64().unwrap());
    assert!(offset.abs() <= error, "{hosts:?}");

    let links = site(&["links", "--json", "--interval", "50ms"]).ok().json();
    let to_mast = links.iter().find(|link| link["host"] == "mast" || link["host"] == hosts[0]["proved"]).unwrap();
    assert!(to_mast["sent"].as_u64() > Some(100) && to_mast["received"].as_u64() > Some(100), "{to_mast}");

    let topics = site(&["topics", "--json", "--interval", "50ms"]).ok().json();
    assert!(topics.iter().any(|row| row["writers"].as_u64() > Some(0)), "{topics:?}");
    let table = site(&[]).ok();
    assert!(table.out.starts_with("host") && table.out.lines().count() == 2, "{table:?}");
    let doctor = lab.far(port, Some(mast.path()), &["doctor", "--site"]).ok();
    for check in ["hosts", "versions", "clocks", "processes", "readers"] {
        assert!(doctor.out.lines().any(|line| line.contains(check)), "{doctor:?}");
    }
}

#[test]
fn a_process_that_stands_still_is_told_and_its_reader_is_behind() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let tail = Following::start(&site, &["log", "tail", "--json"]);
    let is_tail = |row: &Value| row["reader"].as_str().is_some_and(|name| name.contains("tail"));
    let _demo = Following::start(&site, &["demo", "--for", "10m"]);
    until(|| site.tampu(&["site", "readers", "--json"]), |rows| rows.iter().any(is_tail));
    tail.signal(Signal::STOP);
    let rows = until(
        || site.tampu(&["site", "readers", "--json"]),
        |rows| rows.iter().any(|row| is_tail(row) && row["behind"].as_u64() > Some(0)),
    );
    assert!(rows.iter().all(|row| row["lost"] == 0), "{rows:?}");
    let said = site.tampu(&["site", "processes"]).ok();
    assert!(said.err.contains("did not say what it writes and reads"), "{said:?}");
    let doctor = site.tampu(&["doctor", "--site"]);
    assert!(doctor.out.contains("did not answer"), "{doctor:?}");
    tail.signal(Signal::CONT);
}

#[test]
fn without_a_hub_nothing_is_listed_and_the_way_out_is_named() {
    let site = Site::new();
    let said = site.tampu(&["site"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("tampu up"), "{said:?}");
}
