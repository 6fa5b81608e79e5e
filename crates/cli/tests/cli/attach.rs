//! Attached readers: processes publish for them what their levels keep, while they look.

use std::{
    io::Write,
    process::{Child, ChildStdin, Stdio},
    time::Instant,
};

use serde_json::Value;

use crate::site::{Following, PATIENCE, Site};

/// A process that logs at the levels it is told. Killed when dropped.
struct Speaker {
    child: Child,
    told: ChildStdin,
}

impl Speaker {
    /// Starts it, with its logger publishing from Info on.
    fn start(site: &Site, process: &str) -> Speaker {
        let mut child = site.command(&["log", "send", "--from-json", "-p", process]).stdin(Stdio::piped()).spawn().unwrap();
        let told = child.stdin.take().unwrap();
        let until = Instant::now() + PATIENCE;
        while site.tampu(&["log", "levels", "set", process, "Info"]).code != 0 {
            assert!(Instant::now() < until, "{process} does not answer");
        }
        Speaker { child, told }
    }

    fn say(&mut self, level: &str, message: &str) {
        writeln!(self.told, "{{\"level\":\"{level}\",\"message\":\"{message}\"}}").unwrap();
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tail(site: &Site, arguments: &[&str]) -> Following {
    Following::start(site, &[&["log", "tail"], arguments].concat())
}

/// For which level the process publishes because somebody is attached, once that is so.
fn wait_for(site: &Site, process: &str, attached: Option<&str>) {
    let until = Instant::now() + PATIENCE;
    loop {
        let rows = site.tampu(&["log", "levels", "--json", "--process", process]).json();
        let there = rows.first().map(|row| row["attached"].as_str().map(str::to_owned));
        if there == Some(attached.map(str::to_owned)) {
            return;
        }
        assert!(Instant::now() < until, "{process} is not at {attached:?}: {rows:?}");
    }
}

/// The messages that a follower shows, until all of these were among them. Levels have topics of their own, so there is no order
/// between them.
fn messages_until(following: &mut Following, wanted: &[&str]) -> Vec<String> {
    let mut messages = Vec::new();
    while let Some(Ok(line)) = following.lines.next() {
        let record: Value = serde_json::from_str(&line).unwrap();
        messages.push(record["message"].as_str().unwrap_or_default().to_owned());
        if wanted.iter().all(|wanted| messages.iter().any(|message| message == wanted)) {
            return messages;
        }
    }
    panic!("of {wanted:?} only {messages:?} are shown");
}

#[test]
fn levels_go_down_while_a_reader_is_attached_and_up_again_when_it_is_killed() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let mut pipe = Speaker::start(&site, "pipe");
    let other = Speaker::start(&site, "other");
    pipe.say("Debug", "before");

    let mut debug = tail(&site, &["-l", "Debug", "-p", "pip*", "--attach", "--json"]);
    wait_for(&site, "pipe", Some("Debug"));
    let mut trace = tail(&site, &["-l", "Trace", "-p", "PI*", "--attach", "--json"]);
    wait_for(&site, "pipe", Some("Trace"));
    wait_for(&site, "other", None);
    pipe.say("Trace", "for one");
    pipe.say("Debug", "for both");
    pipe.say("Info", "for everybody");
    assert_eq!(messages_until(&mut trace, &["for one", "for both", "for everybody"]).len(), 3);
    assert_eq!(messages_until(&mut debug, &["for both", "for everybody"]).len(), 2);

    // Dropping kills with a signal that cannot be caught.
    drop(trace);
    wait_for(&site, "pipe", Some("Debug"));
    // A process that starts later is attached to as well.
    let late = Speaker::start(&site, "pipe2");
    wait_for(&site, "pipe2", Some("Debug"));
    drop(late);
    drop(debug);
    wait_for(&site, "pipe", None);
    pipe.say("Debug", "after");
    pipe.say("Info", "the end");
    // Only the records for everybody are kept, unless the collector's settings say otherwise.
    let kept = site.find(2, &["-p", "pipe", "--oldest-first"]);
    let kept: Vec<&str> = kept.iter().map(|record| record["message"].as_str().unwrap()).collect();
    assert_eq!(kept, ["for everybody", "the end"]);
    drop((pipe, other));
}

#[test]
fn a_collector_keeps_what_attached_readers_see_where_its_settings_say_so() {
    let site = Site::new();
    let config = site.file("tampu.toml", "[collector]\nkeep_attached = true\n");
    let _hub = site.hub(&["--config", &config]);
    let mut pipe = Speaker::start(&site, "pipe");
    let following = tail(&site, &["-l", "Debug", "--attach", "--json"]);
    wait_for(&site, "pipe", Some("Debug"));
    pipe.say("Debug", "kept");
    let kept = site.find(1, &["-p", "pipe"]);
    assert_eq!(kept[0]["message"], "kept");
    drop(following);
}

#[test]
fn settings_and_rules_may_keep_attached_readers_out_and_they_are_told() {
    let site = Site::new();
    let config = site.file("tampu.toml", "[log]\nattach = false\nlevel = \"Info\"\n");
    let _hub = site.hub(&["--config", &config]);
    let pipe = Speaker::start(&site, "pipe");
    let following = tail(&site, &["-l", "Debug", "--attach", "--json"]);
    wait_for(&site, "pipe", Some("Debug"));
    let rows = site.tampu(&["log", "levels", "--json", "--process", "hub@*"]).ok().json();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["attached"].is_null()), "{rows:?}");
    drop(following);
    let said = site.tampu(&["log", "tail", "-l", "Debug", "--attach", "--for", "2s"]).ok();
    assert!(said.err.contains("attached: ") && said.err.contains(" take no attachment"), "{said:?}");
    let said = site.tampu(&["log", "tail", "--attach"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("--attach needs --min-level or --level"), "{said:?}");
    drop(pipe);
}
