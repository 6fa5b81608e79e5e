//! Attributes published by one process, listed, read, followed and set by others.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;
use tampu_event::{Server, server::ServerSettings};
use tampu_types::event::{AttributeConfig, DataType, DevState, Format, Value};

use crate::{
    site::{PATIENCE, Site},
    skewed,
};

/// A process that publishes each line it is told. Killed when dropped.
pub struct Publisher {
    child: Child,
    told: ChildStdin,
}

impl Publisher {
    pub fn start(site: &Site, arguments: &[&str]) -> Publisher {
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

    pub fn say(&mut self, line: &str) {
        writeln!(self.told, "{line}").unwrap();
    }
}

/// A process that follows, as JSON lines. Killed when dropped.
pub struct Follower {
    child: Child,
    lines: Receiver<String>,
}

impl Follower {
    pub fn start(site: &Site, arguments: &[&str]) -> Follower {
        let mut all = vec!["event", "sub", "--json"];
        all.extend(arguments);
        let mut child = site.command(&all).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let (tell, told) = channel();
        // The thread ends with the process.
        std::thread::spawn(move || lines.for_each(|line| drop(tell.send(line))));
        Follower { child, lines: told }
    }

    #[track_caller]
    pub fn next(&self) -> Json {
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
    let mut publisher = Publisher::start(&site, &["Lab/Script/1/Level", "--unit", "mbar", "--abs", "1", "--process", "script"]);
    publisher.say("1.5");
    let follower = Follower::start(&site, &["*/script/*"]);
    let mut first = follower.next();
    if first["value"].is_null() {
        // The subscription is older than the value.
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
    let mut again = Publisher::start(&site, &["Lab/Script/1/Level", "--process", "script", "--user"]);
    again.say("7");
    assert_eq!(follower.next()["reason"], "source_returned");
    let mut resumed = follower.next();
    assert_eq!((&resumed["reason"], &resumed["missed"]), (&"resumed".into(), &"unknown".into()));
    if resumed["value"].is_null() {
        resumed = follower.next();
    }
    assert_eq!(resumed["value"], 7.0);
}

/// Returns the doctor's report, which must name a fault.
#[track_caller]
fn wrong(site: &Site, name: &str) -> String {
    let said = site.tampu(&["event", "doctor", name]);
    assert_eq!(said.code, 1, "{said:?}");
    said.out
}

/// Repeats it until that is said.
#[track_caller]
fn says(site: &Site, name: &str, cause: &str) {
    let until = Instant::now() + PATIENCE;
    loop {
        let said = site.tampu(&["event", "doctor", name]).out;
        if said.contains(cause) {
            return;
        }
        assert!(Instant::now() < until, "{cause}: {said}");
    }
}

#[test]
fn a_hundred_megabytes_go_from_process_to_process_with_every_element_right() {
    let site = Site::new();
    let size = (100u64 << 20).to_string();
    let report =
        site.tampu(&["perf", "event", "--clients", "1", "--for", "0.2s", "--size", &size, "--json"]).ok().json().remove(0);
    assert_eq!((&report["lost"], &report["wrong"]), (&0.0.into(), &0.0.into()), "{report}");
    assert!(report["events_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{report}");
}

#[test]
fn the_doctor_tells_what_is_near_not_pushed_without_a_threshold_and_dead() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let said = wrong(&site, "lab/pump/1/pressure");
    assert!(said.contains("no such attribute: no server that has any is on the bus"), "{said}");
    let mut publisher = Publisher::start(&site, &["lab/pump/1/pressure", "--process", "pumps"]);
    says(&site, "lab/pump/1/pressure", "not polled, and its server has never pushed it");
    publisher.say("1");
    publisher.say("2");
    says(&site, "lab/pump/1/pressure", "no threshold is set");
    let said = wrong(&site, "lab/pmup/1/presure");
    assert!(said.contains("no such attribute; there is lab/pump/1/pressure"), "{said}");
    let said = wrong(&site, "lab/pump/1/temperature");
    assert!(said.contains("the device lab/pump/1 has lab/pump/1/pressure"), "{said}");
    let said = wrong(&site, "elsewhere/magnet/7/current");
    assert!(said.contains("none of the 1 on the bus is of the device elsewhere/magnet/7"), "{said}");
    drop(publisher);
    says(&site, "lab/pump/1/pressure", "its source is dead: pumps had it and died at");
}

#[test]
fn the_doctor_tells_a_source_that_hangs_and_a_subscriber_that_is_behind() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let arguments = ["lab/pump/1/spectrum", "--process", "pumps", "--abs", "0.1", "--spectrum"];
    let mut publisher = Publisher::start(&site, &arguments);
    let line = |value: u32| vec![value.to_string(); 1000].join(",");
    publisher.say(&line(0));
    let follower = Follower::start(&site, &["lab/pump/1/spectrum"]);
    while follower.next()["value"].is_null() {}
    let healthy = site.tampu(&["event", "doctor", "lab/pump/1/spectrum"]);
    assert!(healthy.code == 0 && healthy.out.contains("no fault found"), "{healthy:?}");

    let stop = |child: &Child, signal| kill_process(Pid::from_child(child), signal).unwrap();
    stop(&follower.child, Signal::STOP);
    for value in 1..400 {
        publisher.say(&line(value));
    }
    says(&site, "lab/pump/1/spectrum", "the subscriber tampu-event-sub");
    stop(&follower.child, Signal::CONT);

    stop(&publisher.child, Signal::STOP);
    says(&site, "lab/pump/1/spectrum", "its source hangs: pumps");
    stop(&publisher.child, Signal::CONT);
}

#[test]
fn the_doctor_tells_a_clock_that_is_off() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    // Far more than a question takes on a busy machine.
    let participant = skewed::join(&site, "pumps", Duration::from_secs(3600));
    let server = Server::start(participant, ServerSettings::default()).unwrap();
    let config = AttributeConfig::new("lab/pump/1/state".parse().unwrap(), DataType::State, Format::Scalar);
    let state = server.declare(config).unwrap();
    state.push(Value::scalar(&DevState::On)).unwrap();
    says(&site, "lab/pump/1/state", "the server's clock and this host's differ by 3");
    let said = wrong(&site, "lab/pump/1/state");
    assert_eq!(said.lines().filter(|line| line.starts_with("- ")).count(), 1, "nothing else is wrong: {said}");
}

#[test]
fn a_follower_is_told_what_its_filters_let_through() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let mut publisher = Publisher::start(&site, &["lab/script/1/level", "--user"]);
    publisher.say("1");
    let moved = Follower::start(&site, &["lab/script/1/level", "--min-delta", "2"]);
    let alarms = Follower::start(&site, &["lab/script/1/level", "--quality", "alarm"]);
    let seldom = Follower::start(&site, &["lab/script/1/level", "--every", "50ms"]);
    let between = Follower::start(&site, &["lab/script/1/level", "--where", "value > 2.7 and value < 4"]);
    let all = Follower::start(&site, &["lab/script/1/level"]);
    for follower in [&moved, &alarms, &seldom, &between, &all] {
        assert_eq!(follower.next()["value"], 1.0, "the first value always comes");
    }
    for value in ["2", "2.5", "3", "4", "5.5"] {
        publisher.say(value);
    }
    let values = |follower: &Follower, count: usize| -> Vec<f64> {
        (0..count).map(|_| follower.next()["value"].as_f64().unwrap()).collect()
    };
    assert_eq!(values(&all, 5), [2.0, 2.5, 3.0, 4.0, 5.5]);
    assert_eq!(values(&moved, 2), [3.0, 5.5], "each is two away from the one before");
    assert_eq!(values(&between, 2), [3.0, 4.0], "and the first that is not between");
    let mut newest = seldom.next();
    while newest["value"] != 5.5 {
        newest = seldom.next();
    }
    drop(publisher);
    // Reports about the source pass every filter; there were no alarms.
    assert_eq!(alarms.next()["reason"], "source_died");
    assert_eq!(moved.next()["reason"], "source_died");
}

#[test]
fn events_are_measured_with_nothing_lost_and_every_element_right() {
    let site = Site::new();
    for (size, delivery) in [("4", "streamed"), ("65536", "streamed"), ("4", "acknowledged")] {
        let arguments = ["perf", "event", "--clients", "2", "--for", "0.3s", "--size", size, "--delivery", delivery, "--json"];
        let report = site.tampu(&arguments).ok().json().remove(0);
        assert_eq!((&report["lost"], &report["wrong"]), (&0.0.into(), &0.0.into()), "{report}");
        assert!(report["events_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{report}");
    }
}

#[test]
fn many_attributes_are_measured_and_what_subscribing_takes() {
    let site = Site::new();
    let arguments = ["perf", "event", "--attributes", "200", "--rate", "5000", "--for", "0.5s", "--json"];
    let report = site.tampu(&arguments).ok().json().remove(0);
    let number = |name: &str| report[name].as_f64().unwrap_or(f64::NAN);
    assert_eq!((number("lost"), number("wrong"), number("twice")), (0.0, 0.0, 0.0), "{report}");
    // All are pushed in turn, so each more than once.
    assert!(number("pushed") > 400.0 && number("attributes") == 200.0, "{report}");
    let took = &report["subscribing"];
    assert!(took["first_values_s"].as_f64() >= took["calls_s"].as_f64() && took["calls_s"].as_f64() > Some(0.0), "{report}");
}
