//! Attributes published by one process, listed, read, followed and set by others.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Instant,
};

use serde_json::Value;

use crate::site::{PATIENCE, Site};

/// A process that publishes each line it is told. Killed when dropped.
struct Publisher {
    child: Child,
    told: ChildStdin,
}

impl Publisher {
    fn start(site: &Site, arguments: &[&str]) -> Publisher {
        let mut all = vec!["event", "pub"];
        all.extend(arguments);
        let mut child = site.command(&all).stdin(Stdio::piped()).spawn().unwrap();
        let told = child.stdin.take().unwrap();
        let publisher = Publisher { child, told };
        let until = Instant::now() + PATIENCE;
        while site.tampu(&["event", "list", arguments[0]]).out.is_empty() {
            assert!(Instant::now() < until, "{arguments:?} is not listed");
        }
        publisher
    }

    fn say(&mut self, line: &str) {
        writeln!(self.told, "{line}").unwrap();
    }
}

/// A process that follows, as JSON lines. Killed when dropped.
struct Follower {
    child: Child,
    lines: Receiver<String>,
}

impl Follower {
    fn start(site: &Site, arguments: &[&str]) -> Follower {
        let mut all = vec!["event", "sub", "--json"];
        all.extend(arguments);
        let mut child = site.command(&all).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let (tell, told) = channel();
        // Ends with the process.
        std::thread::spawn(move || lines.for_each(|line| drop(tell.send(line))));
        Follower { child, lines: told }
    }

    #[track_caller]
    fn next(&self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(PATIENCE).expect("an event")).unwrap()
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn attributes_are_published_listed_read_followed_and_set() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let mut publisher = Publisher::start(&site, &["Lab/Script/1/Level", "--unit", "mbar", "--abs", "1", "--source", "script"]);
    publisher.say("1.5");
    let follower = Follower::start(&site, &["*/script/*"]);
    let mut first = follower.next();
    if first["value"].is_null() {
        // It was followed before the value came.
        first = follower.next();
    }
    assert_eq!(
        (&first["name"], &first["value"], &first["source"]),
        (&"Lab/Script/1/Level".into(), &1.5.into(), &"script".into())
    );
    publisher.say("1.6");
    publisher.say("3.5");
    let update = follower.next();
    assert_eq!((&update["reason"], &update["value"], &update["number"]), (&"update".into(), &3.5.into(), &2.into()));
    assert_eq!(update["quality"], "valid");

    let got = site.tampu(&["event", "get", "--json", "lab/script/1/level"]).ok().json();
    assert_eq!(got[0]["value"], 3.5);
    let missing = site.tampu(&["event", "get", "lab/script/1/nothing"]);
    assert!(missing.code == 1 && missing.err.contains("no server has lab/script/1/nothing"), "{missing:?}");

    let conf = site.tampu(&["event", "conf", "lab/*", "--abs", "none"]).ok();
    assert!(conf.out.contains("change: abs none"), "{conf:?}");
    assert_eq!(follower.next()["reason"], "config_changed");
    let doctor = site.tampu(&["event", "doctor", "lab/script/1/level"]);
    assert!(doctor.code == 1 && doctor.out.contains("no threshold is set"), "{doctor:?}");
    let nobody = site.tampu(&["event", "doctor", "lab/script/1/levle"]);
    assert!(
        nobody.code == 1 && nobody.out.contains("no such attribute: the device lab/script/1 has Lab/Script/1/Level"),
        "{nobody:?}"
    );

    drop(publisher);
    let died = follower.next();
    assert_eq!((&died["reason"], &died["source"]), (&"source_died".into(), &"script".into()));
    let mut again = Publisher::start(&site, &["Lab/Script/1/Level", "--source", "script", "--user"]);
    again.say("7");
    assert_eq!(follower.next()["reason"], "source_returned");
    let mut resumed = follower.next();
    assert_eq!((&resumed["reason"], &resumed["missed"]), (&"resumed".into(), &"unknown".into()));
    if resumed["value"].is_null() {
        resumed = follower.next();
    }
    assert_eq!(resumed["value"], 7.0);
}

#[test]
fn events_are_measured_with_nothing_lost_and_every_element_right() {
    let site = Site::new();
    for (size, delivery) in [("4", "streamed"), ("65536", "streamed"), ("4", "acknowledged")] {
        let arguments = ["perf", "event", "--clients", "2", "--seconds", "0.3", "--size", size, "--delivery", delivery, "--json"];
        let report = site.tampu(&arguments).ok().json().remove(0);
        assert_eq!((&report["lost"], &report["wrong"]), (&0.0.into(), &0.0.into()), "{report}");
        assert!(report["events_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{report}");
    }
}
