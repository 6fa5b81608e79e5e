//! Levels of running processes, seen and set by another.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Instant,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::site::{PATIENCE, Site};

/// A process that logs each line it is told, and prints what its levels let it print. Killed when dropped.
struct Talker {
    child: Child,
    told: Option<ChildStdin>,
    printed: Receiver<String>,
}

impl Talker {
    /// Starts it and waits until its loggers answer; it has logged nothing then.
    fn start(site: &Site, process: &str) -> Talker {
        let mut child = site.command(&["log", "send", "-p", process]).stdin(Stdio::piped()).spawn().unwrap();
        let told = child.stdin.take();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let (tell, printed) = channel();
        // The thread ends with the process.
        std::thread::spawn(move || lines.for_each(|line| drop(tell.send(line))));
        let talker = Talker { child, told, printed };
        let until = Instant::now() + PATIENCE;
        while levels(site, &["--process", process]).is_empty() {
            assert!(Instant::now() < until, "{process} does not answer");
        }
        talker
    }

    /// Tells it a line and waits until it has printed it.
    #[track_caller]
    fn say(&mut self, line: &str) {
        writeln!(self.told.as_mut().unwrap(), "{line}").unwrap();
        let printed = self.printed.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("'{line}' is not printed"));
        assert!(printed.ends_with(&format!(": {line}")), "{printed}");
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn end(mut self) {
        self.told = None;
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program. Killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the rows of `tampu log levels`; empty if no process answers yet.
fn levels(site: &Site, arguments: &[&str]) -> Vec<Value> {
    site.tampu(&[&["log", "levels", "--json"], arguments].concat()).json()
}

#[test]
fn levels_of_a_running_process_are_seen_and_set() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let mut pipe = Talker::start(&site, "pipe");
    let other = Talker::start(&site, "pipe2");
    let set = |arguments: &[&str]| site.tampu(&[&["log", "levels", "set"], arguments].concat()).ok().out;

    // With a local level, published records are printed too, then unpublished ones; then they are published again.
    assert_eq!(set(&["pipe", "Trace", "--local"]), "1 logger in 1 process: local Trace\n");
    pipe.say("one");
    assert_eq!(set(&["PI?E", "off"]), "1 logger in 1 process: central Off\n");
    pipe.say("two");
    let row = levels(&site, &["--process", "pipe"]).remove(0);
    assert_eq!((&row["logger"], &row["central"], &row["local"]), (&"pipe".into(), &"Off".into(), &"Trace".into()), "{row}");
    assert_eq!(set(&["pipe*", "info", "--central", "--local"]), "2 loggers in 2 processes: central and local Info\n");
    pipe.say("three");
    assert_eq!(set(&["*", "Error", "--process", "pipe2"]), "1 logger in 1 process: central Error\n");
    pipe.say("four");
    let table = site.tampu(&["log", "levels", "-p", "pipe*"]).ok().out;
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let expected =
        [["process", "central", "local", "logger"], ["pipe", "Info", "Info", "pipe"], ["pipe2", "Error", "Info", "pipe2"]];
    assert_eq!(rows, expected);

    pipe.end();
    other.end();
    let found = site.find(3, &["-p", "pipe", "--oldest-first"]);
    let messages: Vec<&str> = found.iter().map(|record| record["message"].as_str().unwrap()).collect();
    assert_eq!(messages, ["one", "three", "four"]);
}

#[test]
fn nothing_of_that_name_ends_with_1_and_the_names_there_are() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let pipe = Talker::start(&site, "pipe");
    let said = site.tampu(&["log", "levels", "set", "mount", "Debug", "--process", "pipe"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains("no logger 'mount' in a process 'pipe'; there are: pipe"), "{said:?}");
    let said = site.tampu(&["log", "levels", "set", "pipe", "Debug", "--process", "CONTROL/*"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("there are the processes: hub@") && said.err.contains("pipe"), "{said:?}");
    pipe.end();
}

#[test]
fn each_process_tells_what_its_loggers_have_done() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let mut pipe = Talker::start(&site, "pipe");
    site.tampu(&["log", "levels", "set", "pipe", "Trace", "--local"]).ok();
    pipe.say("one");
    pipe.say("two");
    // A printed record may not have been handed to the bus yet.
    let until = Instant::now() + PATIENCE;
    let stats = loop {
        let rows = site.tampu(&["log", "stat", "--loggers", "--json"]).ok().json();
        let pipe = rows.iter().find(|row| row["process"] == "pipe").unwrap();
        if pipe["stats"]["published"] == 2 {
            break pipe["stats"].clone();
        }
        assert!(Instant::now() < until, "{rows:?}");
    };
    assert_eq!((&stats["by_level"]["Info"], &stats["dropped"], &stats["waited"]), (&2.into(), &0.into(), &0.into()), "{stats}");
    assert!(stats["bytes"].as_u64().unwrap() > 0 && stats["high_water"].is_u64(), "{stats}");
    let said = site.tampu(&["log", "stat", "--loggers"]).ok();
    let line = said.out.lines().find(|line| line.contains("  pipe (Info 2")).unwrap_or_else(|| panic!("{said:?}"));
    assert!(line.trim_start().starts_with("2  "), "{said:?}");
    pipe.end();
}

#[test]
fn a_site_s_rules_say_who_may_set_the_hub_s_levels() {
    let site = Site::new();
    let config = site.file("tampu.toml", "[[allow]]\nmay = [\"read\", \"query\", \"write\"]\nwhat = \"**\"\n");
    let _hub = site.hub(&["--config", &config]);
    let hub = levels(&site, &["--process", "hub@*"]);
    assert!(!hub.is_empty());
    let said = site.tampu(&["log", "levels", "set", "hub@*", "off"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(!said.err.contains("no logger"), "{said:?}");
    assert!(said.err.contains("may not set the service log/levels: no [[allow]]"), "{said:?}");
    assert_eq!(levels(&site, &["--process", "hub@*"]), hub);
}

#[test]
fn a_stopped_process_is_told_and_the_others_are_set() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let (pipe, stopped) = (Talker::start(&site, "pipe"), Talker::start(&site, "stopped"));
    stopped.signal(Signal::STOP);
    let said = site.tampu(&["log", "levels", "set", "*", "Error"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("loggers in 2 processes: central Error"), "{said:?}");
    assert!(said.err.contains("not every process that logs has answered"), "{said:?}");
    stopped.signal(Signal::CONT);
    pipe.end();
    stopped.end();
}

#[test]
fn a_configuration_says_how_a_program_logs_and_is_read_once_more() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let config = site.file("log.toml", "[log]\nlevel = \"Notice\"\nlocal = \"Info\"\n");
    let mut command = site.command(&["demo", "--speed", "0.001"]);
    command.envs([("TAMPU_LOG_CONFIG", config.as_str()), ("ACS_LOG_CENTRAL", "2"), ("TAMPU_LOG_LOCAL", "Trace")]);
    let demo = Running(command.stderr(Stdio::null()).spawn().unwrap());
    let until = Instant::now() + PATIENCE;
    while levels(&site, &["--process", "CORR/*"]).is_empty() {
        assert!(Instant::now() < until, "the demo does not answer");
    }
    let thresholds = |row: &Value| [row["central"].clone(), row["local"].clone()].map(|it| it.as_str().unwrap().to_owned());
    let now = || thresholds(&levels(&site, &["--process", "CORR/*"])[0]);
    assert_eq!(now(), ["Notice", "Info"], "a configuration beats the environment");
    site.tampu(&["log", "levels", "set", "CORR/*", "off", "--local", "--central"]).ok();
    assert_eq!(now(), ["Off", "Off"]);
    site.file("log.toml", "[[logger]]\nname = \"CORR/*\"\nlocal = \"Error\"\n");
    let told = site.tampu(&["log", "levels", "refresh", "--process", "CORR/*", "--json"]).ok().json();
    assert_eq!(thresholds(&told[0]), ["Delouse", "Error"], "of ACS's variable, and of a name");
    site.file("log.toml", "[log]\nlevle = 1\n");
    let said = site.tampu(&["log", "levels", "refresh", "--process", "CORR/*"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("log.toml, line 2: unknown field `levle`"), "{said:?}");
    assert_eq!(now(), ["Delouse", "Error"]);
    drop(demo);
}

#[test]
fn a_program_prints_where_and_how_it_is_told() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let (plain, xml) = (site.path("plain.log"), site.path("xml.log"));
    for (file, format) in [(&plain, "plain"), (&xml, "xml")] {
        let mut command = site.command(&["log", "send", "-p", "pipe", "--level", "Warning", "cable wrap at limit"]);
        let variables = [("TAMPU_LOG_LOCAL", "Info"), ("TAMPU_LOG_FORMAT", format)];
        let sent = command.envs(variables).env("TAMPU_LOG_OUTPUT", file).output().unwrap();
        assert!(sent.status.success(), "{sent:?}");
        assert!(sent.stderr.is_empty(), "{sent:?}");
    }
    let plain = std::fs::read_to_string(plain).unwrap();
    assert!(plain.ends_with(" Warning   pipe: cable wrap at limit\n") && plain.lines().count() == 1, "{plain}");
    let xml = std::fs::read_to_string(xml).unwrap();
    assert!(xml.starts_with("<Warning TimeStamp=\"") && xml.lines().count() == 1, "{xml}");
    let mut command = site.command(&["log", "send", "-p", "pipe", "x"]);
    let refused = command.env("TAMPU_LOG_OUTPUT", "stdot").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("TAMPU_LOG_OUTPUT: invalid place for local output 'stdot'"),
        "{refused:?}"
    );
}
