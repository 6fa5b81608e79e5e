//! `tampu bulk control`: real senders and receivers obey other processes, and answer with reasons.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use super::beside::{Beside, content, files};
use crate::site::{Said, Site};

fn control(site: &Site, arguments: &[&str]) -> Said {
    site.tampu(&[&["bulk", "control"], arguments].concat())
}

/// Returns the state after a command that must succeed.
#[track_caller]
fn state(site: &Site, arguments: &[&str]) -> Value {
    control(site, &[arguments, &["--json"]].concat()).ok().json().remove(0)
}

/// A sender that sends these files at each start under the name `corr`.
fn sender(site: &Site, more: &[&str]) -> Beside {
    let arguments = ["bulk", "send", "--stream", "s", "--json", "--interval", "20ms", "--control", "corr", "--on-start"];
    let sender = Beside::start(site, &[&arguments[..], more].concat());
    sender.await_event("offered");
    sender
}

#[test]
fn a_sender_is_started_paced_paused_and_stopped_by_other_processes() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let big = content(4_000_000, 3);
    fs::create_dir_all(site.path("night")).unwrap();
    site.file("night/big", &big);
    site.file("night/small", "small");
    let receiver = Beside::receiver(&site, &["--replace"]);
    let sender = sender(&site, &["night", "--parameter", "uid://A002/X1"]);

    let said = control(&site, &["list"]).ok();
    assert!(said.out.starts_with("corr: sender of stream 's' by tampu-bulk-send, sends nothing"), "{said:?}");
    let said = control(&site, &["stop", "corr"]);
    assert!(said.code == 1 && said.err.contains("'corr': no flow is sending; start it first"), "{said:?}");
    for name in ["night/none", "../night/big", "/etc/passwd"] {
        control(&site, &["start", "corr", name]).ok();
        let failure = || state(&site, &["state", "corr"])["failure"].clone();
        while failure() == Value::Null {}
        let wanted = format!("no file '{name}' is offered; there are 'night/big', 'night/small'");
        assert_eq!(failure(), wanted.as_str());
    }

    // One file, with a parameter of the caller.
    control(&site, &["start", "corr", "night/small", "--parameter", "uid://A002/X2"]).ok();
    let ended = receiver.await_event("ended");
    assert_eq!((&ended["name"], &ended["parameter"]), (&"night/small".into(), &"uid://A002/X2".into()));
    while state(&site, &["state", "corr"])["active"] == true {}

    // All files, as slowly as possible; the second rate ends the sleep of the first.
    control(&site, &["pace", "corr", "1KB"]).ok();
    let started = state(&site, &["start", "corr"]);
    assert_eq!((&started["active"], &started["kind"], &started["starts"]), (&true.into(), &"sender".into(), &5.into()));
    receiver.await_such("progress", |progress| progress["bytes"].as_u64() > Some(0));
    let said = control(&site, &["start", "corr"]);
    assert!(said.code == 1 && said.err.contains("flow 'data' is sending what an earlier start began"), "{said:?}");
    let paused = state(&site, &["pause", "corr"]);
    assert_eq!(paused["report"]["sender"]["flows"][0]["paused"], true);
    let paced = state(&site, &["pace", "corr", "none"]);
    assert_eq!(paced["report"]["sender"]["flows"][0]["throttle"], Value::Null);
    let at = |state: Value| state["report"]["sender"]["flows"][0]["bytes"].clone();
    assert_eq!(at(state(&site, &["state", "corr"])), at(paced), "it is paused");
    control(&site, &["resume", "corr"]).ok();
    assert_eq!(receiver.await_event("ended")["parameter"], "uid://A002/X1");
    receiver.await_such("ended", |ended| ended["name"] == "night/small");
    assert!(fs::read(site.path("out/night/big")).unwrap() == big);

    // A stop gives the file up and leaves out the next one.
    while state(&site, &["state", "corr"])["active"] == true {}
    control(&site, &["pace", "corr", "10KB", "--flow", "data"]).ok();
    control(&site, &["start", "corr"]).ok();
    receiver.await_such("progress", |progress| progress["bytes"].as_u64() > Some(0));
    let stopped = state(&site, &["stop", "corr"]);
    assert_eq!((&stopped["active"], &stopped["failure"]), (&false.into(), &"stopped by a command".into()));
    let ended = receiver.await_event("ended");
    assert_eq!((&ended["name"], &ended["complete"]), (&"night/big".into(), &false.into()));
    sender.signal(Signal::TERM);
    let (code, err) = sender.end();
    assert_eq!(code, 0, "{err}");
    let said = control(&site, &["start", "corr", "--timeout", "500ms"]);
    assert!(said.code == 3 && said.err.contains("no program offers the control 'corr'"), "{said:?}");
}

#[test]
fn a_transfer_that_runs_already_is_stopped_and_its_command_ends() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let file = site.file("big", content(4_000_000, 4));
    let receiver = Beside::receiver(&site, &[]);
    let arguments = ["bulk", "send", &file, "--stream", "s", "--control", "corr", "--throttle", "10KB"];
    let sender = Beside::start(&site, &arguments);
    receiver.await_event("began");
    let said = control(&site, &["start", "corr"]);
    assert!(said.code == 1 && said.err.contains("its program begins transfers itself"), "{said:?}");
    control(&site, &["stop", "corr"]).ok();
    let (code, err) = sender.end();
    assert!(code == 1 && err.contains("stopped by a command"), "{code} {err}");
    assert_eq!(receiver.await_event("ended")["complete"], false);
    assert!(!site.path("out/big").exists());
}

#[test]
fn a_start_names_the_files_that_cannot_be_sent() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    fs::create_dir_all(site.path("night")).unwrap();
    site.file("night/good", "good");
    std::os::unix::fs::symlink("nowhere", site.path("night/gone")).unwrap();
    let receiver = Beside::receiver(&site, &["--replace"]);
    let _sender = sender(&site, &["night", "absent", "--follow-links"]);
    let failed = |wanted: &[&str]| {
        let ended = loop {
            let state = state(&site, &["state", "corr"]);
            if state["active"] == false {
                break state;
            }
        };
        let why = ended["failure"].as_str().unwrap_or_default();
        assert!(wanted.iter().all(|part| why.contains(part)), "{ended}");
    };
    control(&site, &["start", "corr"]).ok();
    assert_eq!(receiver.await_event("ended")["name"], "night/good", "the others are sent");
    failed(&["2 of 3 were not sent, or not to all: night/gone: No such file", "; absent: No such file"]);
    control(&site, &["start", "corr", "night/gone"]).ok();
    failed(&["no file 'night/gone' is offered; there are 'night/good'; these cannot be sent: night/gone: No such file"]);
    control(&site, &["start", "corr", "night/good"]).ok();
    assert_eq!(receiver.await_event("ended")["name"], "night/good");
    loop {
        let state = state(&site, &["state", "corr"]);
        if state["active"] == false {
            assert_eq!(state["failure"], Value::Null, "only the wanted file counts");
            break;
        }
    }
}

#[test]
fn an_interrupt_ends_a_paused_sender_in_order() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let file = site.file("big", content(4_000_000, 4));
    let receiver = Beside::receiver(&site, &["--replace"]);
    for on_start in [false, true] {
        let arguments = ["bulk", "send", &file, "--stream", "s", "--control", "corr", "--throttle", "10KB", "--json"];
        let more: &[&str] = if on_start { &["--on-start"] } else { &[] };
        let sender = Beside::start(&site, &[&arguments[..], more].concat());
        if on_start {
            sender.await_event("offered");
            control(&site, &["start", "corr"]).ok();
        }
        receiver.await_such("progress", |progress| progress["bytes"].as_u64() > Some(0));
        assert_eq!(state(&site, &["pause", "corr"])["report"]["sender"]["flows"][0]["paused"], true);
        sender.signal(Signal::TERM);
        let (code, err) = sender.end();
        let wanted = if on_start { 0 } else { 1 };
        assert!(code == wanted && err.contains("interrupted"), "{code} {err}");
        assert_eq!(receiver.await_event("ended")["complete"], false);
    }
    // So it does while a pipe has no data.
    let sender = Beside::start(&site, &["bulk", "send", "-", "--stream", "s"]);
    receiver.await_event("began");
    sender.signal(Signal::INT);
    let (code, err) = sender.end();
    assert!(code == 1 && err.contains("interrupted"), "{code} {err}");
}

#[test]
fn a_stop_reaches_a_plain_sender_between_files_and_a_pipe_without_data() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let file = site.file("one", "one");
    // It waits for a receiver, and sends nothing yet.
    let arguments = ["bulk", "send", &file, "--stream", "s", "--control", "corr"];
    let sender = Beside::start(&site, &arguments);
    let until_offered = || while control(&site, &["list"]).ok().out.starts_with("no program") {};
    until_offered();
    control(&site, &["stop", "corr"]).ok();
    let (code, err) = sender.end();
    assert!(code == 1 && err.contains("stopped by a command"), "{code} {err}");

    let receiver = Beside::receiver(&site, &["--replace"]);
    // Many short files: a stop falls into one of them, or between two.
    let sender = Beside::start(&site, &[&arguments[..], &["--loops", "1000000", "--json"]].concat());
    sender.await_event("ended");
    control(&site, &["stop", "corr"]).ok();
    let (code, err) = sender.end();
    assert!(code == 1 && err.contains("stopped by a command"), "{code} {err}");

    drop(receiver);
    let receiver = Beside::receiver(&site, &["--replace"]);
    let sender = Beside::start(&site, &["bulk", "send", "-", "--stream", "s", "--control", "corr", "--json"]);
    receiver.await_event("began");
    control(&site, &["stop", "corr"]).ok();
    assert_eq!(sender.await_event("ended")["why"], "stopped by a command");
    let (code, err) = sender.end();
    assert!(code == 1 && err.contains("stopped by a command"), "{code} {err}");
    assert_eq!(receiver.await_event("ended")["complete"], true, "standard input ends in order");
}

#[test]
fn a_receiver_is_closed_and_opened_by_other_processes() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let receiver = Beside::receiver(&site, &["--flow", "a,b", "--control", "archive", "--protocol", "tcp"]);
    let said = control(&site, &["list"]).ok();
    assert!(said.out.starts_with("archive: receiver of stream 's' by tampu-bulk-recv, open"), "{said:?}");
    let said = control(&site, &["open", "archive"]);
    assert!(said.code == 1 && said.err.contains("'archive': it is open already; close it first"), "{said:?}");
    assert_eq!(state(&site, &["close", "archive"])["active"], false);
    let file = site.file("one", "one");
    let said = site.tampu(&["bulk", "send", &file, "--stream", "s", "--flow", "a", "--wait", "500ms"]);
    assert_eq!(said.code, 3, "nobody receives: {said:?}");
    let said = control(&site, &["open", "archive", "--flow", "c"]);
    assert!(said.code == 1 && said.err.contains("there is no flow 'c'; name one of 'a', 'b'"), "{said:?}");
    let said = control(&site, &["open", "archive", "--protocol", "shm"]);
    assert!(said.code == 1 && said.err.contains("flow 'a' accepts tcp only, and not shm"), "{said:?}");
    let opened = state(&site, &["open", "archive", "--flow", "b", "--checksum", "on"]);
    assert_eq!(opened["report"]["receiver"]["flows"].as_array().map(Vec::len), Some(1), "{opened}");
    site.tampu(&["bulk", "send", &file, "--stream", "s", "--flow", "b"]).ok();
    assert_eq!(files(&site.path("out")), ["one"]);
    control(&site, &["close", "archive"]).ok();
    receiver.signal(Signal::TERM);
    assert_eq!(receiver.end().0, 0, "also while it is closed");
}

#[test]
fn commands_need_the_right_to_set_and_the_rules_of_the_host_decide() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node,book"]);
    let _receiver = Beside::receiver(&site, &["--control", "archive"]);
    site.tampu(&["access", "deny", "local", "set", "bulk/control/archive", "--reason", "the shift decides"]).ok();
    let close = || control(&site, &["close", "archive"]);
    let said = loop {
        // Processes notice changed rules after a moment.
        let said = close();
        if said.code != 0 && said.err.contains("may not") {
            break said;
        }
        control(&site, &["open", "archive"]);
    };
    assert!(said.code == 1 && said.err.contains("the service bulk/control/archive") && said.err.contains("the shift decides"));
    assert_eq!(state(&site, &["state", "archive"])["kind"], "receiver", "reading is another right");
}

#[test]
fn wrong_commands_name_the_way_out() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    for (rate, why) in [("5", "a second, or none for no limit"), ("fast", "or write none for no limit")] {
        let said = control(&site, &["pace", "corr", rate]);
        assert!(said.code == 2 && said.err.contains(why), "{said:?}");
    }
    let said = control(&site, &["state", "corr", "--timeout", "500ms"]);
    assert!(said.code == 3 && said.err.contains("'tampu bulk send --control'"), "{said:?}");
    assert!(control(&site, &["list"]).ok().out.starts_with("no program offers its control"));
    for arguments in [&["state", "a#b"][..], &["list", "--hub", "http://127.0.0.1:1"]] {
        let said = control(&site, arguments);
        assert_eq!(said.code, 2, "{said:?}");
    }
    let said = control(&site, &["state", "a#b"]);
    assert!(said.err.contains("of a stream, a flow or a control"), "{said:?}");
    for arguments in [&["control", "list"][..], &["control", "state", "corr"], &["stat"], &["stat", "--past"]] {
        let said = site.tampu(&[&["bulk"], arguments, &["--hub", "127.0.0.1:1"]].concat());
        assert!(said.code == 3, "no hub is there: {said:?}");
    }
    let said = site.tampu(&["bulk", "stat", "--past"]);
    assert!(said.code == 3 && said.err.contains("no answer from 'bulk/transfers'"), "the hub has no such role: {said:?}");
    let said = site.tampu_reading(b"", &["bulk", "send", "-", "--stream", "s", "--control", "corr", "--on-start"]);
    assert!(said.code == 2 && said.err.contains("standard input cannot be sent at each start"), "{said:?}");
}
