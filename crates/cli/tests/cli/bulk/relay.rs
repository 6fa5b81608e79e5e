//! Distributors that die, and receivers behind them that die, stop and are slow: nobody else is touched, and everybody is told.

use std::{fs, path::PathBuf};

use rustix::process::Signal;
use serde_json::Value;

use super::beside::{Beside, content, files, history, last};
use crate::site::Site;

/// A receiver of the stream behind a distributor.
fn leaf(site: &Site, stream: &str, out: &str) -> Beside {
    let receiver =
        Beside::start(site, &["bulk", "recv", "--stream", stream, "-o", out, "--json", "--interval", "20ms", "--process", out]);
    receiver.await_event("listening");
    receiver
}

fn relay(site: &Site, from: &str, to: &str, more: &[&str]) -> Beside {
    Beside::start(site, &[&["bulk", "relay", "--from", from, "--to", to], more].concat())
}

/// Sends a file to stream `s` beside the test.
fn sender(site: &Site, file: &str, more: &[&str]) -> Beside {
    let arguments = ["bulk", "send", file, "--stream", "s", "--json", "--interval", "50ms", "--protocol", "tcp"];
    Beside::start(site, &[&arguments, more].concat())
}

/// Until so many bytes have come.
fn await_bytes(receiver: &Beside, bytes: u64) {
    receiver.await_such("progress", |progress| progress["bytes"].as_u64().unwrap() >= bytes);
}

/// Returns the length of the part under a temporary name, which must be a beginning of the file.
fn beginning(out: PathBuf, of: &[u8]) -> usize {
    let left = files(&out);
    assert!(left.len() == 1 && left[0].ends_with(".part"), "{left:?}");
    let kept = fs::read(out.join(&left[0])).unwrap();
    assert!(of.starts_with(&kept), "{} bytes that are not the file's", kept.len());
    kept.len()
}

fn is_complete(event: &Value) -> bool {
    event["complete"] == true
}

#[test]
fn a_distributor_killed_half_way_is_told_at_both_sides_and_another_goes_on() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let big = content(8_000_000, 11);
    let file = site.file("big", &big);
    let leaves = ["out", "other"].map(|out| leaf(&site, "far", out));
    let first = relay(&site, "s", "far", &["--receivers", "2"]);
    let sending = sender(&site, &file, &["--throttle", "4MB", "--patience", "2s"]);
    await_bytes(&leaves[0], 1_000_000);
    first.signal(Signal::KILL);
    let told = sending.await_event("ended");
    assert!(!is_complete(&told) && told["why"].as_str().unwrap().contains("it has left"), "{told}");
    assert_eq!(sending.end().0, 1);
    for leaf in &leaves {
        let told = leaf.await_event("ended");
        assert_eq!((&told["complete"], &told["why"]), (&false.into(), &"the sender aborted it, or is gone".into()), "{told}");
    }
    let broken = history(&site, "far", 1).remove(0);
    assert_eq!((&broken["outcome"], &broken["why"][0]), (&"broken_off".into(), &"its sender is gone".into()), "{broken}");

    let _second = relay(&site, "s", "far", &["--receivers", "2"]);
    let again = site.tampu(&["bulk", "send", &file, "--stream", "s", "--json", "--continue"]).ok();
    let events = again.json();
    // The bytes that both have are left out, through the distributor too.
    assert!(last(&events, "ended")["had"].as_u64().unwrap() >= 500_000, "{events:?}");
    for (leaf, out) in leaves.iter().zip(["out", "other"]) {
        assert!(is_complete(&leaf.await_event("ended")));
        assert!(fs::read(site.path(out).join("big")).unwrap() == big, "{out}");
    }
}

#[test]
fn receivers_that_die_or_stop_behind_a_distributor_touch_nobody_else() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    // More than the sockets and the distributor's buffer hold.
    let big = content(40 << 20, 12);
    let file = site.file("big", &big);
    let (well, dying, stopped) = (leaf(&site, "far", "well"), leaf(&site, "far", "dying"), leaf(&site, "far", "stopped"));
    let _relay = relay(&site, "s", "far", &["--receivers", "3", "--buffer", "2MiB", "--patience", "500ms", "--protocol", "tcp"]);
    let sending = sender(&site, &file, &["--throttle", "10MB"]);
    await_bytes(&well, 1_000_000);
    stopped.signal(Signal::STOP);
    dying.signal(Signal::KILL);
    assert!(is_complete(&well.await_event("ended")));
    assert!(fs::read(site.path("well/big")).unwrap() == big);
    // Its own receiver, the distributor, has all of it, and names the receivers that do not.
    let told = sending.await_event("ended");
    let (code, err) = sending.end();
    assert!(is_complete(&told) && code == 0, "{told} {err}");
    assert!(err.contains("behind the distributor 2 of 3 receivers have not got all"), "{err}");
    let behind = history(&site, "far", 1).remove(0);
    let why = behind["why"].to_string();
    assert_eq!((&behind["outcome"], &behind["receivers"]), (&"incomplete".into(), &3.into()), "{behind}");
    assert!(why.contains("stopped: ") && why.contains("dying: ") && !why.contains("well: "), "{behind}");

    stopped.signal(Signal::CONT);
    assert!(!is_complete(&stopped.await_event("ended")), "it was cut");
    beginning(site.path("dying"), &big);
    // The next transfer finds the present receivers.
    let small = site.file("small", content(100_000, 13));
    let _third = leaf(&site, "far", "third");
    let said = site.tampu(&["bulk", "send", &small, "--stream", "s"]);
    assert_eq!(said.code, 0, "{said:?}");
    for receiver in [&well, &stopped] {
        assert_eq!(receiver.await_event("ended")["name"], "small");
    }
}

#[test]
fn a_slow_receiver_behind_a_distributor_is_skipped_and_told_which_bytes() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let big = content(40 << 20, 14);
    let file = site.file("big", &big);
    let (well, slow) = (leaf(&site, "far", "well"), leaf(&site, "far", "slow"));
    let more = ["--receivers", "2", "--buffer", "1MiB", "--patience", "300ms", "--slow", "skip"];
    let _relay = relay(&site, "s", "far", &more);
    let sending = sender(&site, &file, &["--throttle", "10MB"]);
    await_bytes(&slow, 500_000);
    slow.signal(Signal::STOP);
    await_bytes(&well, 36 << 20);
    slow.signal(Signal::CONT);
    assert!(is_complete(&well.await_event("ended")));
    assert!(fs::read(site.path("well/big")).unwrap() == big);
    let told = slow.await_event("ended");
    let (came, lost) = (told["bytes"].as_u64().unwrap(), told["lost_bytes"].as_u64().unwrap());
    assert_eq!((came + lost, lost > 0, &told["complete"]), (big.len() as u64, true, &false.into()), "{told}");
    let ranges = told["lost"].as_array().unwrap();
    let length = |range: &Value| range["to"].as_u64().unwrap() - range["from"].as_u64().unwrap();
    assert_eq!(ranges.iter().map(length).sum::<u64>(), lost, "{told}");
    beginning(site.path("slow"), &big);
    let (code, err) = sending.end();
    assert!(code == 0 && err.contains("behind the distributor 1 of 2 receivers have not got all"), "{code} {err}");
}

#[test]
fn distributors_stand_in_a_row() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let big = content(5_000_000, 15);
    let file = site.file("big", &big);
    let (near, far) = (leaf(&site, "near", "near"), leaf(&site, "far", "far"));
    let _second = relay(&site, "near", "far", &["--receivers", "1", "--process", "second"]);
    let first = relay(&site, "s", "near", &["--receivers", "2", "--process", "first"]);
    let said = site.tampu(&["bulk", "send", &file, "--stream", "s", "--parameter", "uid://A/X9"]);
    assert_eq!(said.code, 0, "{said:?}");
    for (receiver, out) in [(&near, "near"), (&far, "far")] {
        let ended = receiver.await_event("ended");
        assert_eq!((&ended["complete"], &ended["parameter"]), (&true.into(), &"uid://A/X9".into()), "{ended}");
        assert!(fs::read(site.path(out).join("big")).unwrap() == big, "{out}");
    }
    for (stream, source, receivers) in [("s", "tampu-bulk-send", 1), ("near", "first", 2), ("far", "second", 1)] {
        let one = history(&site, stream, 1).remove(0);
        assert_eq!((&one["outcome"], &one["source"], &one["receivers"]), (&"complete".into(), &source.into(), &receivers.into()));
    }
    // The first distributor dies: the report also covers the receivers behind the second.
    let other = content(8_000_000, 16);
    let sending = sender(&site, &site.file("other", &other), &["--throttle", "4MB", "--patience", "2s"]);
    await_bytes(&far, 1_000_000);
    first.signal(Signal::KILL);
    for receiver in [&near, &far] {
        let told = receiver.await_event("ended");
        assert!(!is_complete(&told) && told["name"] == "other", "{told}");
    }
    assert_eq!(sending.end().0, 1);
}

#[test]
fn a_sender_killed_inside_a_frame_leaves_a_beginning_of_the_file_and_nothing_else() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let big = content(64 << 20, 17);
    let file = site.file("big", &big);
    for through in [false, true] {
        let out = if through { "behind" } else { "direct" };
        let receiver = leaf(&site, if through { "far" } else { "s" }, out);
        let relay = through.then(|| relay(&site, "s", "far", &["--receivers", "1"]));
        let sending = sender(&site, &file, &["--throttle", "40MB"]);
        await_bytes(&receiver, 1_000_000);
        // The direct receiver of the sender stops: the socket fills up, somewhere inside a frame.
        let taker = relay.as_ref().unwrap_or(&receiver);
        taker.signal(Signal::STOP);
        sending.await_such("progress", |progress| progress["waits_s"].as_f64().is_some_and(|waits| waits > 0.3));
        sending.signal(Signal::KILL);
        drop(sending.end());
        taker.signal(Signal::CONT);
        let told = receiver.await_event("ended");
        assert!(!is_complete(&told) && told["lost_bytes"] == 0, "{told}");
        let kept = beginning(site.path(out), &big);
        assert_eq!(told["bytes"], kept as u64, "{told}");
        let again = site.tampu(&["bulk", "send", &file, "--stream", "s", "--continue", "--json"]).ok();
        assert_eq!(last(&again.json(), "ended")["had"], kept as u64);
        assert!(fs::read(site.path(out).join("big")).unwrap() == big);
        // The receiver saw the cut in its place, or the kernel dropped the rest, because an unread acknowledgement lay there.
        let taker = relay.unwrap_or(receiver);
        taker.signal(Signal::TERM);
        let (_, err) = taker.end();
        let seen = ["the connection ended inside a frame", "reset by peer"].iter().any(|text| err.contains(text));
        assert!(through || seen, "{err}");
    }
}
