//! The history of events: kept by a hub while it runs, found wherever it lies, never pretending to be whole.

use std::time::Instant;

use rustix::process::Signal;
use serde_json::Value;

use crate::{
    events::Publisher,
    site::{PATIENCE, Site},
};

const NAME: &str = "lab/vacuum/1/pressure";

/// Repeats a question until it has this many answers.
#[track_caller]
fn history(site: &Site, count: usize, arguments: &[&str]) -> Vec<Value> {
    let mut all = vec!["event", "history", "--json"];
    all.extend(arguments);
    let until = Instant::now() + PATIENCE;
    loop {
        let found = site.tampu(&all).ok().json();
        if found.len() >= count {
            return found;
        }
        assert!(Instant::now() < until, "only {} of {count}: {found:?}", found.len());
    }
}

/// Values of the rows that have one.
fn values(rows: &[Value]) -> Vec<f64> {
    rows.iter().filter_map(|row| row["value"].as_f64()).collect()
}

fn reasons(rows: &[Value]) -> Vec<&str> {
    rows.iter().filter_map(|row| row["reason"].as_str()).collect()
}

#[test]
fn events_are_kept_once_and_found_as_before_after_compaction_restart_and_backup() {
    let site = Site::new();
    let config = site.file("hub.toml", "[events]\nkeep = [\"*/vacuum/*/pressure\"]\n");
    let hub = site.hub(&["--config", &config]);
    let mut publisher = Publisher::start(&site, &[NAME, "--unit", "mbar", "--user", "--process", "pump"]);
    let mut other = Publisher::start(&site, &["lab/vacuum/1/other", "--user"]);
    for value in ["1", "2", "3"] {
        publisher.say(value);
        other.say(value);
    }
    let rows = history(&site, 3, &[NAME]);
    assert_eq!(
        (values(&rows), rows[0]["unit"].as_str(), rows[0]["source"].as_str()),
        (vec![1.0, 2.0, 3.0], Some("mbar"), Some("pump"))
    );
    assert_eq!(history(&site, 0, &["lab/vacuum/1/other"]), [Value::Null; 0], "of others only what is of kind archive");
    assert_eq!(values(&history(&site, 2, &["-n", "2", "*/vacuum/*"])), [2.0, 3.0], "the last ones, the oldest of them first");
    assert_eq!(site.tampu(&["event", "history", "--count", NAME]).ok().out.trim(), "3");
    assert_eq!(history(&site, 0, &[NAME, "--until", "2026-01-01"]).len(), 0);
    let csv = site.tampu(&["event", "history", "--csv", NAME]).ok().out;
    assert!(csv.starts_with("time,received,name,") && csv.lines().count() == 4 && csv.contains("\"2\",\"mbar\",pump"), "{csv}");

    let compacted = site.tampu(&["event", "archive", "compact", "--json"]).ok().json();
    assert_eq!(compacted[0]["records"], 3);
    assert_eq!(history(&site, 3, &[NAME]), rows, "in Parquet as in segments");
    publisher.say("4");
    let rows = history(&site, 4, &[NAME]);
    assert_eq!(values(&rows), [1.0, 2.0, 3.0, 4.0]);
    let checked = site.tampu(&["event", "archive", "check", "--json"]).ok().json();
    assert_eq!((&checked[0]["records"], &checked[0]["complete"]), (&4.into(), &true.into()));
    let copy = site.path("copy");
    site.tampu(&["event", "archive", "backup", "-o", &copy.to_string_lossy()]).ok();
    let elsewhere = site.tampu(&["event", "archive", "check", "--json", "--data", &copy.to_string_lossy()]).ok().json();
    assert_eq!(elsewhere[0]["records"], 4);
    let status = site.tampu(&["event", "archive", "status"]).ok().out;
    assert!(status.contains("records        4"), "{status}");

    // The hub ends. Later events of its source are reported as missing by number, and earlier events are there once.
    drop(hub);
    let _hub = site.hub(&["--config", &config]);
    publisher.say("5");
    let rows = history(&site, 5, &[NAME]);
    assert_eq!(values(&rows)[..4], [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(values(&rows).last(), Some(&5.0));
    let mut next = 1;
    for row in rows.iter().filter(|row| row["from"] != 0) {
        assert_eq!(row["from"], next, "every number is stood for once: {rows:?}");
        next = row["number"].as_u64().unwrap() + 1;
    }
}

#[test]
fn death_and_what_a_hub_was_not_there_for_are_told() {
    let site = Site::new();
    let config = site.file("hub.toml", "[events]\nkeep = [\"lab/*\"]\nleave_out = [\"lab/secret/*\"]\nlongest_kb = 1\n");
    let hub = site.hub(&["--config", &config]);
    let mut publisher = Publisher::start(&site, &[NAME, "--user", "--process", "pump"]);
    let mut secret = Publisher::start(&site, &["lab/secret/1/key", "--user"]);
    let mut long = Publisher::start(&site, &["lab/vacuum/1/spectrum", "--user", "--spectrum"]);
    publisher.say("1");
    secret.say("2");
    long.say(&["7"; 200].join(","));
    history(&site, 1, &[NAME]);
    let refused = history(&site, 1, &["lab/vacuum/1/spectrum"]);
    assert_eq!(reasons(&refused), ["gap"]);
    assert!(refused[0]["note"].as_str().is_some_and(|note| note.contains("too long to be kept")), "{refused:?}");
    assert_eq!(history(&site, 0, &["lab/secret/*"]).len(), 0);
    drop(publisher);
    let rows = history(&site, 2, &[NAME]);
    assert_eq!(reasons(&rows)[1..], ["source_died"], "{rows:?}");
    // A filter by kind does not hide reports of missing events.
    assert_eq!(reasons(&history(&site, 1, &[NAME, "--kind", "alarm"])), ["source_died"]);
    let (code, _) = hub.end(Signal::TERM);
    assert_eq!(code, Some(0));
    let nobody = site.tampu(&["event", "history", NAME]);
    assert_eq!(nobody.code, 3, "{nobody:?}");
    assert_eq!(site.tampu(&["event", "history", "a//b"]).code, 2);
    assert_eq!(site.tampu(&["event", "history", NAME, "--since", "1h", "--until", "2h"]).code, 2);
}
