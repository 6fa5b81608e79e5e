//! Files of other programs, shipped by real processes.

use std::{collections::BTreeSet, fs, io::Write, process::Child};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::site::Site;

fn append(site: &Site, name: &str, text: &str) {
    let mut file = fs::OpenOptions::new().create(true).append(true).open(site.path(name)).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn messages(found: &[Value]) -> Vec<String> {
    let mut messages: Vec<String> = found.iter().map(|record| record["message"].as_str().unwrap().to_owned()).collect();
    messages.sort();
    messages
}

fn lines(range: std::ops::Range<u32>) -> String {
    range.map(|number| format!("line {number:04}\n")).collect()
}

#[test]
fn a_file_is_shipped_once_whatever_becomes_of_the_shipper() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    append(&site, "a.log", &lines(0..1000));
    let path = site.path("a.log").display().to_string();
    let state = site.path("a.state").display().to_string();
    let arguments = ["log", "ship", "--once", &path, "--process", "SHIP", "--state", &state];
    let said = site.tampu(&arguments).ok();
    assert!(said.err.contains("1000 records committed"), "{said:?}");
    let old = fs::read(&state).unwrap();
    append(&site, "a.log", "2026-11-22T03:00:00Z ERROR no lock\n\nwithout its end");
    let said = site.tampu(&arguments).ok();
    assert!(said.err.contains("2 records committed"), "{said:?}");
    // As if the shipper had died between the commit and storing its state: with the same ids nothing is kept twice.
    fs::write(&state, old).unwrap();
    site.tampu(&arguments).ok();
    let found = site.find(1002, &["-p", "SHIP", "-n", "0"]);
    assert_eq!((found.len(), messages(&found).into_iter().collect::<BTreeSet<_>>().len()), (1002, 1002));
    let error = found.iter().find(|record| record["level"] == "Error").unwrap();
    assert_eq!(error["time"], "2026-11-22T03:00:00.000000000Z");

    let other = site.tampu(&["log", "ship", "--once", &path, "--process", "OTHER", "--state", &state]);
    assert_eq!(other.code, 1, "{other:?}");
    assert!(other.err.contains("it is of the source 'SHIP'"), "{other:?}");
    let missing = site.tampu(&["log", "ship", "--once", "nowhere", "--process", "X"]);
    assert!(missing.code == 1 && missing.err.contains("nowhere: there is no such file"), "{missing:?}");
}

/// A shipper that follows; killed when dropped.
struct Shipper(Child);

impl Drop for Shipper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_file_is_followed_through_rotation_truncation_and_death() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let path = site.path("b.log").display().to_string();
    let state = site.path("b.state").display().to_string();
    let start = || {
        let arguments = ["log", "ship", &path, "--process", "SHIP", "--state", &state, "--start", "^line"];
        Shipper(site.command(&arguments).spawn().unwrap())
    };
    append(&site, "b.log", "line 0000\n  its second line\n");
    let shipper = start();
    assert_eq!(messages(&site.find(1, &["-p", "SHIP"])), ["line 0000\n  its second line"]);
    append(&site, "b.log", &lines(1..10));
    fs::rename(site.path("b.log"), site.path("b.log.1")).unwrap();
    append(&site, "b.log.1", &lines(10..12));
    append(&site, "b.log", &lines(12..20));
    site.find(20, &["-p", "SHIP", "-n", "0"]);
    // Truncated, as logrotate's copytruncate does.
    fs::write(site.path("b.log"), "line 0020\n").unwrap();
    site.find(21, &["-p", "SHIP", "-n", "0"]);
    // Renamed while no shipper ran.
    kill_process(Pid::from_child(&shipper.0), Signal::KILL).unwrap();
    drop(shipper);
    append(&site, "b.log", &lines(21..30));
    fs::rename(site.path("b.log"), site.path("b.log.2")).unwrap();
    append(&site, "b.log", &lines(30..40));
    let _shipper = start();
    let found = messages(&site.find(40, &["-p", "SHIP", "-n", "0"]));
    assert_eq!(found.len(), 40);
    assert!(found.iter().enumerate().all(|(number, message)| message.starts_with(&format!("line {number:04}"))), "{found:?}");
}

#[test]
fn the_journal_goes_on_after_its_cursor() {
    use std::os::unix::fs::PermissionsExt;
    let site = Site::new();
    let _hub = site.hub(&[]);
    // Replaces journalctl: three entries, without those before the cursor.
    let entry = |number: u32| {
        format!(
            "{{\"__CURSOR\":\"c{number}\",\"__REALTIME_TIMESTAMP\":\"179524893012345{number}\",\"PRIORITY\":\"3\",\"SYSLOG_IDENTIFIER\":\"sshd\",\"MESSAGE\":\"entry {number}\"}}"
        )
    };
    let script = format!(
        "#!/bin/sh\nfor argument; do [ \"$argument\" = --after-cursor=c2 ] && seen=1; done\n\
         [ -n \"$seen\" ] || printf '%s\\n' '{}' '{}'\n[ -z \"$seen\" ] || printf '%s\\n' '{}'\n",
        entry(1),
        entry(2),
        entry(3)
    );
    let fake = site.file("journalctl", script);
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
    let ship = || {
        let mut command = site.command(&["log", "ship", "--once", "--journal", "--process", "journal", "--state", "j.state"]);
        let output = command.env("PATH", site.path("")).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    ship();
    let found = site.find(2, &["-p", "sshd"]);
    assert_eq!((messages(&found), found[0]["level"].as_str()), (vec!["entry 1".to_owned(), "entry 2".to_owned()], Some("Error")));
    ship();
    assert_eq!(messages(&site.find(3, &["-p", "sshd"])), ["entry 1", "entry 2", "entry 3"]);
}
