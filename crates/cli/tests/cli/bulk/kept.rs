//! Transfers that a hub keeps: they outlive it, come once, and are found by what they are.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use super::{
    beside::{Beside, content, send},
    history,
};
use crate::site::{PATIENCE, Site};

fn found(site: &Site, more: &[&str]) -> Vec<Value> {
    let mut arguments = vec!["bulk", "history", "--json"];
    arguments.extend(more);
    site.tampu(&arguments).ok().json()
}

/// Asks until an answer is as wanted.
#[track_caller]
fn until(site: &Site, more: &[&str], wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let end = Instant::now() + PATIENCE;
    loop {
        let all = found(site, more);
        if wanted(&all) {
            return all;
        }
        assert!(Instant::now() < end, "{more:?}: {all:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn transfers_outlive_a_killed_hub_and_those_it_missed_are_learnt_from_their_senders() {
    let site = Site::new();
    let hub = site.hub(&[]);
    let _receiver = Beside::receiver(&site, &[]);
    let (small, other, big) = (site.file("small", "data"), site.file("other", "data"), site.file("big", content(6_000_000, 4)));
    send(&site, &[&small, "--parameter", "uid://A002/X1"]).ok();
    send(&site, &[&other, "--parameter", "uid://A002/X2"]).ok();
    let before = history(&site, "s", 2);
    assert_eq!(before.len(), 2, "{before:?}");
    let first = &before[0];
    assert_eq!((&first["outcome"], &first["bytes"], &first["receivers"]), (&"complete".into(), &4.into(), &1.into()), "{first}");
    let delivery = &first["deliveries"][0];
    assert_eq!(
        (&delivery["complete"], &delivery["acknowledged"], &delivery["lost_bytes"]),
        (&true.into(), &4.into(), &0.into()),
        "{first}"
    );
    let times = ["began", "ended"].map(|name| first[name].as_str().unwrap().to_owned());
    assert!(times[0] <= times[1], "{first}");

    // One is under way while the hub is killed; another one goes wrong while there is none.
    let lasting =
        Beside::start(&site, &["bulk", "send", &big, "--stream", "s", "--throttle", "1MB", "--json", "--process", "lasting"]);
    let begun = until(&site, &["--outcome", "under_way"], |all| all.len() == 1);
    hub.end(Signal::KILL);
    let _hub = site.hub(&[]);
    assert_eq!(found(&site, &["--stream", "S", "--outcome", "complete"]), before, "as before the restart");
    let still = until(&site, &["--outcome", "under_way"], |all| all.len() == 1);
    assert_eq!((&still[0]["id"], &still[0]["began"]), (&begun[0]["id"], &begun[0]["began"]), "the begin is kept too");
    assert_eq!(lasting.end().0, 0);
    let all = history(&site, "s", 3);
    assert_eq!(all.len(), 3, "each once: {all:?}");
    assert_eq!((&all[2]["id"], &all[2]["began"], &all[2]["bytes"]), (&begun[0]["id"], &begun[0]["began"], &6_000_000.into()));

    let one = |more: &[&str]| {
        let found = found(&site, more);
        assert_eq!(found.len(), 1, "{more:?}: {found:?}");
        found[0]["id"].clone()
    };
    assert_eq!(one(&["--parameter", "a002/x1"]), first["id"]);
    assert_eq!(one(&["--id", first["id"].as_str().unwrap()]), first["id"]);
    assert_eq!(one(&["--source", "last*"]), all[2]["id"]);
    assert_eq!(one(&["-n", "1"]), all[2]["id"], "the last one");
    let host = first["host"].as_str().unwrap();
    assert!(!host.is_empty(), "{first}");
    assert_eq!(found(&site, &["--host", host, "--receiver", "tampu-bulk-recv*", "--flow", "d*"]).len(), 3, "{all:?}");
    assert_eq!(found(&site, &["--host", "elsewhere"]), [Value::Null; 0]);
    assert_eq!(found(&site, &["--since", first["ended"].as_str().unwrap()]).len(), 3);
    assert_eq!(found(&site, &["--until", first["began"].as_str().unwrap()]).len(), 0);

    let rows = |what: &str| site.tampu(&["bulk", "archive", what, "--json"]).ok().json()[0]["records"].clone();
    assert_eq!(rows("compact"), 6, "a begin and an end each");
    assert_eq!((found(&site, &["-n", "0"]), rows("check")), (all, 6.into()), "in Parquet as in segments");
}

#[test]
fn a_sender_that_vanished_with_its_hub_is_broken_off() {
    let site = Site::new();
    let hub = site.hub(&[]);
    let _receiver = Beside::receiver(&site, &[]);
    let big = site.file("big", content(6_000_000, 4));
    let sender = Beside::start(&site, &["bulk", "send", &big, "--stream", "s", "--throttle", "1MB"]);
    let begun = until(&site, &["--outcome", "under_way"], |all| all.len() == 1);
    hub.end(Signal::KILL);
    sender.signal(Signal::KILL);
    sender.end();
    let _hub = site.hub(&[]);
    let ended = until(&site, &["--outcome", "broken_off"], |all| all.len() == 1);
    assert_eq!((&ended[0]["id"], &ended[0]["began"]), (&begun[0]["id"], &begun[0]["began"]));
    assert!(ended[0]["why"][0].as_str().unwrap().contains("while no hub"), "{ended:?}");
    assert_eq!(found(&site, &["--outcome", "under_way"]), [Value::Null; 0]);
}
