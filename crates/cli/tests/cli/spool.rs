//! A host without a collector, and a domain with two.

use std::{io::Write, process::Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::site::{Site, until};

#[test]
fn without_a_collector_the_node_keeps_what_is_said_and_doctor_tells() {
    let site = Site::new();
    let node = site.hub(&["--roles", "node"]);
    // As soon as the node has taken over, it confirms: the record is on its disk, and its process has ended.
    let send = || site.tampu(&["log", "send", "-p", "early", "--timeout", "2s", "said to nobody"]);
    until("somebody has it", || send().code == 0);
    let spool = || -> Option<Value> {
        let findings = site.tampu(&["doctor", "--json"]).json();
        findings.into_iter().find(|finding| finding["check"] == "spool" && finding["state"] == "warn")
    };
    until("doctor tells of the spool", || spool().is_some());
    let told = spool().unwrap();
    assert!(told["found"].as_str().unwrap().starts_with("spool@"), "{told}");
    // The node dies as well.
    node.end(Signal::KILL);
    let _hub = site.hub(&[]);
    assert_eq!(site.find(1, &["-p", "early", "-n", "0"])[0]["message"], "said to nobody");
    until("nothing waits any more", || spool().is_none());
    let sources = site.tampu(&["log", "stat", "--processes", "--json"]).ok().json();
    let spooled: u64 = sources.iter().filter_map(|source| source["spooled"].as_u64()).sum();
    assert!(spooled >= 1, "{sources:?}");
}

#[test]
fn of_two_collectors_each_has_everything_whatever_becomes_of_the_other() {
    let site = Site::new();
    let _node = site.hub(&["--roles", "node"]);
    let data = [site.path("one"), site.path("two")].map(|path| path.to_string_lossy().into_owned());
    let collector = |number: usize| site.hub(&["--roles", "collector", "--data", &data[number]]);
    let (one, two) = (collector(0), collector(1));
    let mut sender = site.command(&["log", "send", "-p", "talker"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = sender.stdin.take().unwrap();
    let mut say = |numbers: std::ops::Range<u32>| {
        numbers.for_each(|number| writeln!(input, "line {number}").unwrap());
        input.flush().unwrap();
    };
    say(0..100);
    site.find(100, &["-p", "talker", "-n", "0"]);
    // One collector hangs: the other continues.
    kill_process(Pid::from_raw(one.pid()).unwrap(), Signal::STOP).unwrap();
    say(100..200);
    site.find(200, &["-p", "talker", "-n", "0"]);
    kill_process(Pid::from_raw(one.pid()).unwrap(), Signal::CONT).unwrap();
    say(200..300);
    // The other is killed: the first has all records, including those sent while it hung.
    site.find(300, &["-p", "talker", "-n", "0"]);
    two.end(Signal::KILL);
    say(300..400);
    let mut found = site.find(400, &["-p", "talker", "-n", "0"]);
    assert_eq!(found.len(), 400);
    found.retain(|record| record["message"] == "line 150");
    assert_eq!(found.len(), 1);
    // The second catches up with the records that the writer still holds; then the first may end.
    let _two = collector(1);
    one.end(Signal::KILL);
    assert_eq!(site.find(400, &["-p", "talker", "-n", "0"]).len(), 400);
    drop(input);
    sender.kill().unwrap();
    sender.wait().unwrap();
}
