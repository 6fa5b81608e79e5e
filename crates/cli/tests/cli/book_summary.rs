//! `tampu book summary` where a hub has all its parts: entries, logs, states and transfers.

use std::{fs, time::Instant};

use serde_json::Value;

use crate::{
    events::Publisher,
    site::{Following, PATIENCE, Site},
};

/// Asks again until the answer has as many lines.
#[track_caller]
fn lines(site: &Site, count: usize, arguments: &[&str]) {
    let until = Instant::now() + PATIENCE;
    while site.tampu(arguments).ok().out.lines().count() < count {
        assert!(Instant::now() < until, "{arguments:?} does not have {count}");
    }
}

#[test]
fn a_summary_has_entries_logs_states_and_transfers() {
    let site = Site::new();
    let config = site.file("hub.toml", "[events]\nkeep = [\"lab/*\"]\n");
    let _hub = site.hub(&["--config", &config]);
    let book = |arguments: &[&str]| site.tampu_without("TAMPU_DATA_DIR", b"", &[&["book"], arguments].concat()).ok().out;
    book(&["make", "Shift", "-a", "Author", "-a", "Type=Routine,Problem", "-a", "Subject"]);
    book(&["post", "Shift", "-a", "Author=Zoe", "-a", "Type=Problem", "-a", "Subject=HV trip", "-t", "x"]);

    site.tampu(&["log", "send", "all quiet", "--level", "Info"]).ok();
    for channel in ["7", "8"] {
        site.tampu(&["log", "send", &format!("channel {channel} *tripped*"), "--level", "Error"]).ok();
    }
    lines(&site, 2, &["log", "query", "--json", "tripped"]);
    let mut publisher = Publisher::start(&site, &["lab/vacuum/1/state", "--type", "DevState", "--user"]);
    publisher.say("ON");
    publisher.say("FAULT");
    lines(&site, 2, &["event", "history", "--json", "lab/vacuum/1/state"]);

    let arguments = ["bulk", "recv", "--stream", "raw", "-o", "out", "--json", "--limit", "1"];
    let mut receiving = Following::start(&site, &arguments);
    let is_event = |line: &str, event: &str| serde_json::from_str::<Value>(line).unwrap()["event"] == event;
    assert!(receiving.lines.any(|line| is_event(&line.unwrap(), "listening")));
    let dump = site.file("dump", "some bytes");
    site.tampu(&["bulk", "send", &dump, "--stream", "raw"]).ok();
    let until = Instant::now() + PATIENCE;
    loop {
        let known = site.tampu(&["bulk", "stat", "--past", "--json", "--stream", "raw"]).ok().json();
        if known.iter().any(|one| one["outcome"] != "under_way") {
            break;
        }
        assert!(Instant::now() < until, "{known:?}");
    }

    let whole = ["## Entries: 1", "**Problem** (1)", "Shift/1: HV trip", "## Logs", "2 x Error, as: channel "];
    let of_hub =
        ["2 changes of state of 1 attribute", "lab/vacuum/1/state: 2, the last at", "1 transfer: 1 complete", "raw\\#data: 10 B"];
    let draft = book(&["summary", "--since", "1h"]);
    for part in whole.iter().chain(&of_hub) {
        assert!(draft.contains(part), "{part} is not in\n{draft}");
    }
    assert!(!draft.contains("Not known"), "{draft}");
    let posted = book(&["summary", "--since", "1h", "--book", "Shift", "--post", "-a", "Author=Zoe", "--author", "zoe"]);
    assert_eq!(posted, "Shift/2\n");
    let shown = site.tampu_without("TAMPU_DATA_DIR", b"", &["book", "show", "Shift/2", "--json"]).ok().json();
    assert!(shown[0]["by"] == "zoe" && shown[0]["text"].as_str().unwrap().contains(of_hub[0]), "{shown:?}");

    // By the hub's address: on this host, and from elsewhere, where the bus needs an address of its own.
    let place: Value = serde_json::from_str(&fs::read_to_string(site.path("run/local/book.json")).unwrap()).unwrap();
    let (url, token) = (place["url"].as_str().unwrap(), place["token"].as_str().unwrap());
    let there = ["book", "summary", "--since", "1h", "--hub", url, "--token", token];
    assert!(site.tampu(&there).ok().out.contains(of_hub[0]));
    let elsewhere = Site::new();
    let draft = elsewhere.tampu(&there).ok().out;
    assert!(draft.contains(whole[2]) && draft.contains("Not known") && draft.contains("--bus"), "{draft}");
    let socket = site.path("run/local").read_dir().unwrap().map(|one| one.unwrap().path());
    let socket = socket.into_iter().find(|path| path.to_string_lossy().ends_with("hub.sock"));
    let bus = socket.map(|path| path.to_string_lossy().into_owned());
    if let Some(bus) = bus {
        let draft = elsewhere.tampu(&[&there[..], &["--bus", &bus]].concat()).ok().out;
        assert!(draft.contains(of_hub[0]), "{draft}");
    }
}
