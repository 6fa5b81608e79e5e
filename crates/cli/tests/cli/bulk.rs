//! Files and data sent by one process and received by another, and what becomes of them when one of both fails.

use std::{fs, io::Write, os::unix::fs::symlink, path::Path, process::Stdio};

use rustix::process::Signal;

use crate::site::Site;
use beside::{Beside, content, files, history, last, send};

pub mod beside;
mod configured;
mod control;
mod kept;
mod multicast;
mod relay;

#[test]
fn a_file_and_a_directory_arrive_as_they_are_to_all_receivers() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let big = content(5_000_001, 1);
    let file = site.file("big", &big);
    fs::create_dir_all(site.path("night/inner")).unwrap();
    site.file("night/empty", "");
    site.file("night/inner/x", "inner");
    symlink("/etc/passwd", site.path("night/link")).unwrap();
    let receiver = Beside::receiver(&site, &[]);
    let other = Beside::receiver_into(&site, "other", &["--limit", "3"]);

    let said = send(&site, &[&file, "night", "--receivers", "2", "--parameter", "uid://A002/X1"]);
    assert_eq!(said.code, 1, "a link in a directory is not sent: {said:?}");
    assert!(said.err.contains("night/link: a symbolic link is not followed"), "{said:?}");
    let summary = last(&said.json(), "summary").clone();
    assert_eq!((&summary["files"], &summary["failed"], &summary["bytes"]), (&3.into(), &1.into(), &5_000_006.into()));
    let ended = receiver.await_event("ended");
    assert_eq!((&ended["name"], &ended["parameter"], &ended["complete"]), (&"big".into(), &"uid://A002/X1".into(), &true.into()));
    for out in ["out", "other"] {
        assert!(fs::read(site.path(out).join("big")).unwrap() == big, "{out}");
        assert_eq!(fs::read_to_string(site.path(out).join("night/inner/x")).unwrap(), "inner");
        assert_eq!(files(&site.path(out)), ["big", "night/empty", "night/inner/x"]);
    }
    let (code, err) = other.end();
    assert_eq!(code, 0, "it ends after three transfers: {err}");

    // With --continue nothing is sent, because the receiver has everything.
    let said = send(&site, &[&file, "night/empty", "--continue"]).ok();
    let summary = last(&said.json(), "summary").clone();
    assert_eq!((&summary["bytes"], &summary["had"]), (&0.into(), &5_000_001.into()));

    let state = site.tampu(&["bulk", "stat", "--json"]).ok().json();
    assert_eq!(state.len(), 1, "{state:?}");
    assert_eq!(state[0]["receiver"]["flows"][0]["bytes"], 5_000_006);
    symlink(site.path("night/inner"), site.path("night/again")).unwrap();
    fs::remove_file(site.path("night/link")).unwrap();
    send(&site, &["night", "--follow-links", "--continue"]).ok();
    assert_eq!(fs::read_to_string(site.path("out/night/again/x")).unwrap(), "inner");
    receiver.signal(Signal::TERM);
    assert_eq!(receiver.end().0, 0);
}

#[test]
fn standard_input_arrives_under_the_name_of_its_parameter_and_replaces_nothing() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let _receiver = Beside::receiver(&site, &["--flow", "spectra"]);
    for (input, parameter) in [("one", "uid://A/X1"), ("two", "uid://A/X1"), ("", "../../../tmp/x")] {
        let arguments = ["bulk", "send", "-", "--stream", "s", "--flow", "spectra", "--parameter", parameter];
        site.tampu_reading(input.as_bytes(), &arguments).ok();
    }
    assert_eq!(files(&site.path("out")), ["_.._.._tmp_x", "uid___A_X1", "uid___A_X1.1"]);
    assert_eq!(fs::read_to_string(site.path("out/uid___A_X1")).unwrap(), "one");
}

#[test]
fn a_name_that_leads_out_of_the_directory_is_refused_and_the_sender_is_told() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let receiver = Beside::receiver(&site, &[]);
    for name in ["../stolen", "/tmp/stolen", "a/../../stolen", ""] {
        let parameter = serde_json::json!({ "file": name }).to_string();
        let said = site.tampu_reading(b"bytes", &["bulk", "send", "-", "--stream", "s", "--parameter", &parameter]);
        assert!(said.code == 1 && said.err.contains("for a received file"), "{said:?}");
        let ended = receiver.await_event("ended");
        assert_eq!(ended["complete"], false, "{ended}");
    }
    // A link in the directory is not followed either.
    symlink(site.path("."), site.path("out/link")).unwrap();
    let said = site.tampu_reading(b"bytes", &["bulk", "send", "-", "--stream", "s", "--parameter", "{\"file\":\"link/stolen\"}"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(files(&site.path("out")), ["link"]);
    assert!(!site.path("stolen").exists() && !Path::new("/tmp/stolen").exists());
}

#[test]
fn a_receiver_killed_half_way_has_nothing_under_the_name_and_the_next_goes_on() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let big = content(6_000_000, 2);
    let file = site.file("big", &big);
    let receiver = Beside::receiver(&site, &[]);
    let arguments = ["bulk", "send", &file, "--stream", "s", "--throttle", "3MB", "--patience", "2s", "--json"];
    let sender = Beside::start(&site, &arguments);
    while receiver.await_event("progress")["bytes"].as_u64().unwrap() < 1_000_000 {}
    receiver.signal(Signal::KILL);
    let (code, err) = sender.end();
    assert!(code == 1 && err.contains("it has left"), "{code} {err}");
    let left = files(&site.path("out"));
    assert!(left.len() == 1 && left[0].starts_with(".big.") && left[0].ends_with(".part"), "{left:?}");

    let receiver = Beside::receiver(&site, &[]);
    let said = send(&site, &[&file, "--continue"]).ok();
    let ended = last(&said.json(), "ended").clone();
    assert!(ended["had"].as_u64().unwrap() >= 1_000_000, "{ended}");
    assert!(fs::read(site.path("out/big")).unwrap() == big);
    assert_eq!(files(&site.path("out")), ["big"]);
    assert_eq!(receiver.await_event("ended")["had"], ended["had"]);
}

#[test]
fn a_sender_killed_half_way_leaves_what_came_and_the_next_goes_on() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let big = content(6_000_000, 3);
    let file = site.file("big", &big);
    let receiver = Beside::receiver(&site, &[]);
    let sender = Beside::start(&site, &["bulk", "send", &file, "--stream", "s", "--throttle", "3MB"]);
    while receiver.await_event("progress")["bytes"].as_u64().unwrap() < 1_000_000 {}
    sender.signal(Signal::KILL);
    let ended = receiver.await_event("ended");
    assert_eq!((&ended["complete"], &ended["why"]), (&false.into(), &"the sender aborted it, or is gone".into()), "{ended}");
    assert!(!site.path("out/big").exists());
    let said = send(&site, &[&file, "--continue"]).ok();
    assert!(last(&said.json(), "ended")["had"].as_u64().unwrap() >= 1_000_000, "{said:?}");
    assert!(fs::read(site.path("out/big")).unwrap() == big);
}

#[test]
fn a_stopped_receiver_is_named_while_it_is_waited_for_and_goes_on() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    // More than the sockets and the window hold.
    let big = content(64 << 20, 4);
    let receiver = Beside::receiver(&site, &[]);
    let mut sender = Beside::start(&site, &["bulk", "send", "-", "--stream", "s", "--json", "--interval", "50ms"]);
    sender.give(&big[..1000]);
    receiver.await_event("began");
    // Most bytes are sent after the stop, on however slow a host.
    receiver.signal(Signal::STOP);
    sender.give_rest(big[1000..].to_vec());
    let waiting = sender.await_such("progress", |progress| progress["waits_s"].as_f64().is_some_and(|waits| waits > 0.5));
    assert!(waiting["waits_for"][0].as_str().unwrap().contains("tampu-bulk-recv"), "{waiting}");
    let state = site.tampu(&["bulk", "stat"]).ok();
    assert!(state.out.contains("waits for tampu-bulk-recv"), "{state:?}");
    receiver.signal(Signal::CONT);
    assert_eq!(sender.await_event("ended")["complete"], true);
    let [name] = <[String; 1]>::try_from(files(&site.path("out"))).unwrap();
    assert!(fs::read(site.path("out").join(name)).unwrap() == big);
}

#[test]
fn nobody_there_is_said_with_where_to_look() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let file = site.file("a", "a");
    let _receiver = Beside::receiver(&site, &["--flow", "other"]);
    let said = site.tampu(&["bulk", "send", &file, "--stream", "s", "--wait", "1500ms"]);
    assert_eq!(said.code, 3, "{said:?}");
    for text in ["waiting for receiver, 1 s of 1 s", "only the receiver has flow 'other'", "does not have flow 'data'"] {
        assert!(said.err.contains(text), "{text}: {said:?}");
    }
    let nobody = Site::new().tampu(&["bulk", "send", &file, "--stream", "s"]);
    assert_eq!(nobody.code, 3, "{nobody:?}");
    let missing = send(&site, &["nothing", "--wait", "0s"]);
    assert!(missing.err.contains("nothing: No such file"), "{missing:?}");
}

#[test]
fn a_flow_has_one_sender_at_a_time_and_a_port_one_receiver() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let receiver = Beside::receiver(&site, &[]);
    // A sender without data yet, which keeps the flow.
    let mut first = site.command(&["bulk", "send", "-", "--stream", "s"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = first.stdin.take().unwrap();
    input.write_all(b"slow").unwrap();
    receiver.await_event("began");
    let file = site.file("a", "a");
    let second = site.tampu(&["bulk", "send", &file, "--stream", "s", "--wait", "1500ms"]);
    assert!(second.code == 3 && second.err.contains("another sender"), "{second:?}");
    drop(input);
    assert!(first.wait().unwrap().success());
    send(&site, &[&file]).ok();
    assert_eq!(files(&site.path("out")).len(), 2);

    let state = site.tampu(&["bulk", "stat", "--json"]).ok().json();
    let address = state[0]["receiver"]["address"].as_str().unwrap().to_owned();
    let taken = site.tampu(&["bulk", "recv", "--stream", "s", "-o", "out", "--listen", &address]);
    assert!(taken.code == 1 && taken.err.contains("cannot listen at") && taken.err.contains("another port"), "{taken:?}");
}

#[test]
fn blocks_are_measured_with_nothing_lost_and_every_byte_right() {
    let site = Site::new();
    for (size, receivers, checksum, handshake, more) in [
        ("4096", "1", "off", "off", vec![]),
        ("65536", "2", "on", "off", vec!["--protocol", "udp"]),
        ("1048576", "3", "off", "on", vec!["--protocol", "multicast"]),
        ("1048576", "2", "on", "off", vec!["--bytes", "8MiB"]),
        ("65536", "1", "on", "on", vec![]),
        ("65536", "3", "on", "off", vec!["--relay"]),
        ("65536", "2", "off", "on", vec!["--relay"]),
    ] {
        let way = more.iter().position(|flag| *flag == "--protocol").map_or("tcp", |at| more[at + 1]);
        let arguments =
            ["perf", "bulk", "--size", size, "--receivers", receivers, "--checksum", checksum, "--handshake", handshake];
        let more = if way == "tcp" { [&["--protocol", "tcp"], &more[..]].concat() } else { more };
        let report = site.tampu(&[&arguments[..], &["--for", "0.3s", "--json"], &more].concat()).ok().json().remove(0);
        assert_eq!(report["protocol"], way);
        assert_eq!(
            (&report["lost"], &report["wrong"], &report["complete"]),
            (&0.0.into(), &0.0.into(), &true.into()),
            "{report}"
        );
        assert_eq!(report["cpu_s"]["relay"].is_f64(), more.contains(&"--relay"), "{report}");
        assert!(report["bytes_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{report}");
        assert!(report["rss"]["sender"].as_u64().is_some_and(|rss| rss > 0), "{report}");
    }
}

#[test]
fn a_measurement_takes_a_time_above_nothing() {
    let site = Site::new();
    for what in ["bulk", "event", "bus", "log"] {
        for seconds in ["-1s", "0s", "nan", "inf", "1e300s"] {
            let said = site.tampu(&["perf", what, &format!("--for={seconds}")]);
            assert!(said.code == 2 && said.err.contains("is not"), "{said:?}");
        }
    }
}

#[test]
fn a_name_from_outside_cannot_drive_the_terminal() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let receiver = Beside::start(&site, &["bulk", "recv", "--stream", "s", "-o", "out", "--limit", "1"]);
    let watching = Beside::receiver_into(&site, "other", &[]);
    let arguments = ["bulk", "send", "-", "--stream", "s", "--receivers", "2", "--parameter", "a\u{1b}[2Jb"];
    let mut sender = Beside::start(&site, &arguments);
    watching.await_event("began");
    // An unfinished transfer is reported under the name that its sender gave it.
    sender.give(b"bytes");
    sender.signal(Signal::KILL);
    let (code, err) = receiver.end();
    assert_eq!(code, 1, "{err}");
    assert!(!err.contains('\u{1b}') && err.contains("a\\x1b[2Jb is not complete"), "{err:?}");
}

#[test]
fn a_transfer_that_is_given_up_is_over_for_the_hub_too() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let receiver = Beside::receiver(&site, &[]);
    let file = site.file("big", content(6_000_000, 6));
    let sender = Beside::start(&site, &["bulk", "send", &file, "--stream", "s", "--throttle", "2MB", "--parameter", "first"]);
    receiver.await_event("progress");
    sender.signal(Signal::INT);
    assert_eq!(sender.end().0, 1);
    let told = history(&site, "s", 1).remove(0);
    assert_eq!((&told["outcome"], &told["parameter"]), (&"incomplete".into(), &"first".into()), "{told}");
    assert!(told["why"][0].as_str().unwrap().ends_with("its sender aborted it: interrupted"), "{told}");
    site.find(1, &["bulk", "transfer", "aborted", "interrupted"]);
}

#[test]
fn a_parameter_may_be_longer_than_a_datagram() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let receiver = Beside::receiver(&site, &["--protocol", "udp"]);
    let parameter = "p".repeat(15_000);
    let file = site.file("a", content(100_000, 7));
    send(&site, &[&file, "--protocol", "udp", "--parameter", &parameter]).ok();
    assert_eq!(receiver.await_event("ended")["parameter"], parameter.as_str());
}

#[test]
fn a_distributor_gives_a_file_to_all_behind_it_and_the_hub_knows_of_each_transfer() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let big = content(3_000_000, 5);
    let file = site.file("big", &big);
    let mut all = Vec::new();
    for out in ["out", "other"] {
        let arguments = ["bulk", "recv", "--stream", "far", "-o", out, "--json"];
        let receiver = Beside::start(&site, &arguments);
        receiver.await_event("listening");
        all.push(receiver);
    }
    let _relay = Beside::start(&site, &["bulk", "relay", "--from", "s", "--to", "far", "--receivers", "2"]);
    let said = send(&site, &[&file, "--parameter", "uid://A/X2"]).ok();
    assert_eq!(last(&said.json(), "ended")["deliveries"].as_array().map(Vec::len), Some(1), "the sender has one receiver");
    for (receiver, out) in all.iter().zip(["out", "other"]) {
        assert_eq!(receiver.await_event("ended")["complete"], true);
        assert!(fs::read(site.path(out).join("big")).unwrap() == big, "{out}");
    }
    let told = history(&site, "s", 1).remove(0);
    assert_eq!(
        (&told["outcome"], &told["bytes"], &told["parameter"]),
        (&"complete".into(), &3_000_000.into(), &"uid://A/X2".into())
    );
    assert_eq!((&told["file"], &told["size"]), (&"big".into(), &3_000_000.into()), "{told}");
    let shown = site.tampu(&["bulk", "stat", "--past"]).ok().out;
    assert!(
        shown.starts_with("20") && shown.contains("s#data  1  complete") && shown.contains("far#data  1  complete"),
        "{shown}"
    );
    let records = site.find(2, &["bulk", "transfer", "complete"]);
    assert!(records[0].to_string().contains("3000000 bytes to"), "{records:?}");
    // A forwarded transfer is one of its own.
    let behind = history(&site, "far", 1).remove(0);
    let told = (&behind["outcome"], &behind["receivers"], &behind["parameter"], &behind["source"]);
    assert_eq!(told, (&"complete".into(), &2.into(), &"uid://A/X2".into(), &"tampu-bulk-relay".into()), "{behind}");
    assert_eq!((&behind["file"], &behind["size"]), (&"big".into(), &3_000_000.into()), "{behind}");
    let found = site.tampu(&["bulk", "history", "--parameter", "BI", "--json"]).ok().json();
    assert_eq!(found.iter().filter(|one| one["file"] == "big").count(), 2, "{found:?}");
}
