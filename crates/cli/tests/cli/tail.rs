//! `tampu log tail` as a person uses it: filters, modes, the archive first, and keys on a real terminal.

use rustix::process::Signal;
use serde_json::Value;

use crate::{
    site::{Following, Site},
    terminal::Terminal,
};

/// Sends a record of this level for these audiences.
fn send(site: &Site, message: &str, level: &str, audience: &str, further: &[&str]) {
    let mut arguments = vec!["log", "send", message, "--level", level];
    if !audience.is_empty() {
        arguments.extend(["--audience", audience]);
    }
    arguments.extend(further);
    site.tampu(&arguments).ok();
}

fn message(record: &Value) -> &str {
    record["message"].as_str().unwrap()
}

/// Records that tell the modes and exclusions apart.
fn variety(site: &Site) {
    for (message, level, audience, further) in [
        ("plain info", "Info", "", &["-p", "one"][..]),
        ("for operators", "Debug", "Operator", &["-p", "one"]),
        ("for the sci log", "Notice", "SciLog", &["-p", "two", "-s", "CONTROL/DV01"]),
        ("sci log too grave", "Error", "SciLog", &["-p", "two"]),
        ("a warning", "Warning", "", &["-p", "two", "--value", "axis=azimuth"]),
        ("an error for developers", "Error", "Developer", &["-p", "one", "-s", "CONTROL/DV02"]),
    ] {
        send(site, message, level, audience, further);
    }
    site.find(6, &["-p", "one,two"]);
}

#[test]
fn modes_and_exclusions_are_the_same_live_and_in_the_archive() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let ours = ["-p", "one,two,probe"];
    let cases: [(&[&str], &[&str]); 7] = [
        (&["--mode", "operator"], &["for operators", "for the sci log", "sci log too grave", "a warning"]),
        (&["--mode", "scilog"], &["for the sci log"]),
        (&["--exclude", "SCI", "--exclude", "operators"], &["plain info", "a warning", "an error for developers"]),
        (&["--exclude", "azimuth", "--exclude-regex", "^(for|an) "], &["plain info", "sci log too grave"]),
        (&["--not", "source=control/*", "--not", "level=Error"], &["plain info", "for operators", "a warning"]),
        (&["--not", "audience=Developer", "--not", "process=two"], &["plain info", "for operators"]),
        (
            &["--mode", "engineer"],
            &["plain info", "for operators", "for the sci log", "sci log too grave", "a warning", "an error for developers"],
        ),
    ];
    // A probe record that every filter accepts shows when each tail is ready.
    let mut tails: Vec<Following> = cases
        .iter()
        .map(|(filter, _)| {
            let mut tail = Following::start(&site, &[&["log", "tail", "--json"][..], &ours, filter].concat());
            let there = std::sync::atomic::AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !there.load(std::sync::atomic::Ordering::Acquire) {
                        send(&site, "probe", "Notice", "SciLog", &["-p", "probe"]);
                    }
                });
                let line = tail.lines.next().unwrap().unwrap();
                there.store(true, std::sync::atomic::Ordering::Release);
                assert!(line.contains("probe"), "{line}");
            });
            tail
        })
        .collect();
    variety(&site);
    for ((filter, expected), tail) in cases.iter().zip(&mut tails) {
        let mut live: Vec<String> = Vec::new();
        while live.len() < expected.len() {
            let record: Value = serde_json::from_str(&tail.lines.next().unwrap().unwrap()).unwrap();
            if message(&record) != "probe" {
                live.push(message(&record).to_owned());
            }
        }
        live.sort();
        let mut expected: Vec<String> = expected.iter().map(|text| (*text).to_owned()).collect();
        expected.sort();
        assert_eq!(live, expected, "live {filter:?}");
        let kept = site.tampu(&[&["log", "query", "--json", "-p", "one,two"][..], filter].concat()).ok().json();
        let mut kept: Vec<String> = kept.iter().map(|record| message(record).to_owned()).collect();
        kept.sort();
        assert_eq!(kept, expected, "kept {filter:?}");
        let counted = site.tampu(&[&["log", "query", "--count", "-p", "one,two"][..], filter].concat()).ok();
        assert_eq!(counted.out, format!("{}\n", expected.len()), "{filter:?}");
    }
}

#[test]
fn a_replay_goes_over_into_the_live_log_without_a_hole_and_nothing_twice() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let lines = |from: u32, to: u32| (from..to).map(|number| format!("line {number}\n")).collect::<String>();
    site.tampu_reading(lines(0, 3000).as_bytes(), &["log", "send", "-p", "pipe"]).ok();
    site.find(3000, &["-p", "pipe", "-n", "0"]);
    // The tail begins while records are under way: some are committed, some not, and some arrive while the archive is read.
    let mut heard = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            for batch in 0..10 {
                site.tampu_reading(lines(3000 + batch * 100, 3100 + batch * 100).as_bytes(), &["log", "send", "-p", "pipe"]).ok();
            }
        });
        let mut tail = Following::start(&site, &["log", "tail", "--json", "-p", "pipe", "--since", "1h"]);
        let mut heard = Vec::new();
        while heard.len() < 4000 {
            let record: Value = serde_json::from_str(&tail.lines.next().unwrap().unwrap()).unwrap();
            heard.push(message(&record).strip_prefix("line ").unwrap().parse::<u32>().unwrap());
        }
        sender.join().unwrap();
        // A repeated record would come before this one.
        send(&site, "line 4000", "Info", "", &["-p", "pipe"]);
        let record: Value = serde_json::from_str(&tail.lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(message(&record), "line 4000");
        heard
    });
    assert_eq!(heard[..3000], (0..3000).collect::<Vec<_>>(), "the archive in its order");
    heard.sort_unstable();
    assert_eq!(heard, (0..4000).collect::<Vec<_>>());
    let said = site.tampu(&["--domain", "nowhere", "log", "tail", "--since", "1h"]);
    assert_eq!(said.code, 3, "{said:?}");
}

#[test]
fn on_a_terminal_space_pauses_and_counts_and_words_stand_out() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    send(&site, "antenna DV01 has no lock", "Error", "", &["-p", "pipe"]);
    site.find(1, &["-p", "pipe"]);
    let arguments = ["log", "tail", "-p", "pipe", "--last", "1", "--pause-keep", "3", "--highlight", "dv[0-9]+"];
    let mut terminal = Terminal::run(&site, (24, 120), &arguments);
    let text = terminal.until_shows("has no lock");
    assert!(text.contains("TIME (UTC)"), "{text}");
    assert!(terminal.is_coloured("Error") && terminal.is_coloured("DV01") && !terminal.is_coloured("has no"), "{text}");
    terminal.press(" ");
    terminal.until_shows("paused, 0 waiting");
    site.tampu_reading(b"one\ntwo\nthree\nfour\nfive\n", &["log", "send", "-p", "pipe"]).ok();
    let text = terminal.until_shows("paused, 3 waiting, 2 older ones dropped beyond 3");
    assert!(!text.contains("three"), "{text}");
    terminal.press(" ");
    let text = terminal.until_shows("five");
    assert!(text.contains("2 records had no room while paused") && !text.contains("paused, "), "{text}");
    assert!(text.contains("three") && text.contains("four") && !text.contains("  two"), "{text}");
    terminal.press("q");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn a_tail_without_colour_is_without_colour() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    send(&site, "antenna DV01", "Error", "", &["-p", "pipe"]);
    site.find(1, &["-p", "pipe"]);
    let said = site.tampu(&["log", "tail", "-p", "pipe", "--last", "1", "--limit", "1", "--highlight", "DV01"]).ok();
    assert!(said.out.contains("antenna DV01") && !said.out.contains('\x1b'), "{said:?}");
    let said = site
        .tampu(&["--color", "always", "log", "tail", "-p", "pipe", "--last", "1", "--limit", "1", "--highlight", "DV01"])
        .ok();
    assert!(said.out.contains("\x1b[30;43mDV01\x1b[39;49m"), "{said:?}");
    let said = site.tampu(&["log", "query", "-p", "pipe", "--columns", "level,message", "--csv"]).ok();
    assert_eq!(said.out, "level,message\r\nError,antenna DV01\r\n");
    let said = site.tampu(&["log", "query", "-p", "pipe", "--columns", "level,source", "--json"]).ok();
    assert_eq!(said.json(), [serde_json::json!({"level": "Error"})]);
}

#[test]
fn sorting_is_by_the_column_asked_for() {
    let site = Site::new();
    let mut hub = Some(site.hub(&[]));
    variety(&site);
    let said = site.tampu(&["log", "query", "-p", "one,two", "--sort=-level", "--columns", "level", "--csv", "-n", "0"]).ok();
    let levels: Vec<&str> = said.out.lines().skip(1).collect();
    assert_eq!(levels, ["Error", "Error", "Warning", "Notice", "Info", "Debug"]);
    let said = site.tampu(&["log", "query", "-p", "one,two", "--sort", "time", "--columns", "message", "--csv"]).ok();
    assert_eq!(said.out.lines().nth(1), Some("plain info"));
    let (code, _) = hub.take().unwrap().end(Signal::TERM);
    assert_eq!(code, Some(0));
}

#[test]
fn what_is_not_committed_yet_comes_from_its_writer() {
    let site = Site::new();
    // A collector that commits late; but what comes first, it commits at once.
    let config = site.file("tampu.toml", "[collector]\ncommit_ms = 300000\n");
    let _hub = site.hub(&["--config", &config]);
    site.find(1, &[]);
    // It ends when its record is committed; until then it holds the record.
    let _sender = Following::start(&site, &["log", "send", "held", "-p", "pipe", "--timeout", "300s"]);
    let witness = site.tampu(&["log", "tail", "--held", "-p", "pipe", "--limit", "1", "--for", "60s", "--json"]).ok();
    assert_eq!(message(&witness.json()[0]), "held");
    let tail = ["log", "tail", "--since", "1h", "-p", "pipe", "--limit", "1", "--for", "30s", "--json"];
    let said = site.tampu(&tail).ok().json();
    assert_eq!(said.first().map(message), Some("held"), "the search cannot find it, and it was written before the tail came");
}

#[test]
fn what_a_process_has_left_uncommitted_is_not_missed() {
    let site = Site::new();
    let config = site.file("tampu.toml", "[collector]\ncommit_ms = 300000\n");
    let _hub = site.hub(&["--config", &config]);
    site.find(1, &[]);
    site.tampu(&["log", "send", "left", "-p", "pipe", "--acknowledged", "received"]).ok();
    let found = site.tampu(&["log", "query", "-p", "pipe", "--json"]).ok().json();
    assert!(found.is_empty(), "committed too early for this test: {found:?}");
    let said = site.tampu(&["log", "tail", "--since", "1h", "-p", "pipe", "--limit", "1", "--for", "30s", "--json"]).ok().json();
    assert_eq!(said.first().map(message), Some("left"));
}

#[test]
fn what_is_committed_while_a_tail_begins_comes_once() {
    let site = Site::new();
    let config = site.file("tampu.toml", "[collector]\ncommit_ms = 60\n");
    let _hub = site.hub(&["--config", &config, "--demo", "--no-tail", "--speed", "50"]);
    site.find(100, &["-p", "CONTROL/*"]);
    for _ in 0..5 {
        let said = site.tampu(&["log", "tail", "--since", "1s", "--json", "-p", "CONTROL/*", "--for", "1s"]).ok().json();
        let ids: Vec<String> = said.iter().map(|record| record["id"].to_string()).collect();
        let different: std::collections::HashSet<&String> = ids.iter().collect();
        assert!(ids.len() > 100, "{}", ids.len());
        assert_eq!(different.len(), ids.len());
    }
}

#[test]
fn a_tail_without_a_hub_says_so_and_ends_with_3() {
    let site = Site::new();
    let said = site.tampu(&["log", "tail", "--for", "500ms"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.out.is_empty() && said.err.contains("no hub") && said.err.contains("waiting"), "{said:?}");
}
