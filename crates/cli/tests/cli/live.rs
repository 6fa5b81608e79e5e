//! Records from one process to another, while they are logged.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::Value;

use crate::site::{Following, Site};

#[test]
fn what_is_sent_is_kept_found_and_printed_in_every_format() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let arguments = [
        "log",
        "send",
        "no lock on DV01",
        "--level",
        "Error",
        "-s",
        "CONTROL/DV01",
        "--value",
        "power=3 uW",
        "--stack",
        "chain-1",
    ];
    site.tampu(&arguments).ok();
    let record = site.find(1, &["--source", "control/dv*", "lock"]).remove(0);
    assert_eq!(record["level"], "Error");
    assert_eq!(record["message"], "no lock on DV01");
    assert_eq!(record["data"][0]["value"], "3 uW");
    assert_eq!(record["stack_id"], "chain-1");
    assert!(record["time"].as_str().unwrap().len() == 30 && record["id"].is_object());

    let table = site.tampu(&["log", "query", "--source", "CONTROL/DV01"]).ok();
    assert!(table.out.contains("Error      CONTROL/DV01") && table.out.contains("power=\"3 uW\""), "{table:?}");
    assert!(!table.out.contains('\x1b'), "no colour where no terminal is");
    let colored = site.tampu(&["--color", "always", "log", "query", "--source", "CONTROL/DV01", "lock"]).ok();
    assert!(colored.out.contains("\x1b[31mError") && colored.out.contains("\x1b[7mlock\x1b[27m"), "{colored:?}");
    let csv = site.tampu(&["log", "query", "--source", "CONTROL/DV01", "--csv"]).ok();
    assert!(csv.out.starts_with("time,level,source_object,message,"), "{csv:?}");
    assert_eq!(csv.out.lines().count(), 2);
    let xml = site.tampu(&["log", "query", "--source", "CONTROL/DV01", "--xml"]).ok();
    assert!(xml.out.contains("<Error TimeStamp=") && xml.out.ends_with("</Log>\n"), "{xml:?}");
    assert_eq!(site.tampu(&["log", "query", "--source", "nobody", "--json"]).ok().out, "");
}

#[test]
fn a_tail_shows_what_it_asked_for_and_nothing_else() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let mut tail = Following::start(&site, &["log", "tail", "--json", "--min-level", "Warning", "--audience", "Operator"]);
    let mut next = || {
        let line = tail.lines.next().unwrap().unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["message"].as_str().unwrap().to_owned()
    };
    // The tail is ready once it shows the repeated message.
    let there = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !there.load(Ordering::Acquire) {
                site.tampu(&["log", "send", "probe", "--level", "Warning", "--audience", "Operator"]);
            }
        });
        assert_eq!(next(), "probe");
        there.store(true, Ordering::Release);
    });
    for (level, audience, message) in [
        ("Info", "Operator", "too harmless"),
        ("Warning", "Operator", "one"),
        ("Error", "Developer", "for others"),
        ("Error", "SciLog,Operator", "two"),
        ("Alert", "", "three"),
    ] {
        let mut arguments = vec!["log", "send", message, "--level", level];
        if !audience.is_empty() {
            arguments.extend(["--audience", audience]);
        }
        site.tampu(&arguments).ok();
    }
    let mut heard: Vec<String> = std::iter::repeat_with(&mut next).filter(|message| message != "probe").take(3).collect();
    heard.sort();
    assert_eq!(heard, ["one", "three", "two"]);
}

#[test]
fn a_tail_shows_every_record_of_senders_that_end_at_once() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let mut tail = Following::start(&site, &["log", "tail", "--json"]);
    let mut next = || {
        let line = tail.lines.next().unwrap().unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["message"].as_str().unwrap().to_owned()
    };
    // Every sender that joins after the tail is read: the first one shown is proof that the tail is there.
    let there = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !there.load(Ordering::Acquire) {
                site.tampu(&["log", "send", "probe"]);
            }
        });
        while next() != "probe" {}
        there.store(true, Ordering::Release);
    });
    // Several at once, so that they and the tail wait for a processor.
    std::thread::scope(|scope| {
        for sender in 0..6 {
            let site = &site;
            scope.spawn(move || {
                for number in 0..10 {
                    site.tampu(&["log", "send", &format!("sender {sender} record {number}"), "--timeout", "60s"]).ok();
                }
            });
        }
    });
    site.tampu(&["log", "send", "the end", "--timeout", "60s"]).ok();
    let mut shown: Vec<String> = std::iter::repeat_with(&mut next).take_while(|message| message != "the end").collect();
    shown.retain(|message| message.starts_with("sender "));
    let sent = (0..6).flat_map(|sender| (0..10).map(move |number| format!("sender {sender} record {number}")));
    let missed: Vec<String> = sent.filter(|message| !shown.contains(message)).collect();
    assert_eq!((missed, shown.len()), (Vec::<String>::new(), 60));
}

#[test]
fn a_tail_ends_when_it_is_told_to() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let said = site.tampu(&["log", "tail", "--min-level", "Emergency", "--for", "100ms"]).ok();
    assert_eq!(said.out, "");
    let demo = Following::start(&site, &["demo", "--speed", "20"]);
    let said = site.tampu(&["log", "tail", "--csv", "--limit", "5"]).ok();
    assert_eq!(said.out.lines().count(), 6, "{said:?}");
    drop(demo);
}

#[test]
fn a_tail_begins_with_the_last_records_and_goes_on_without_a_hole() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let lines = |from: u32, to: u32| (from..to).map(|number| format!("line {number}\n")).collect::<String>();
    site.tampu_reading(lines(0, 50).as_bytes(), &["log", "send", "-p", "pipe"]).ok();
    site.find(50, &["-p", "pipe", "-n", "0"]);

    let mut tail = Following::start(&site, &["log", "tail", "--json", "-p", "pipe", "--last", "10"]);
    let mut heard = Vec::new();
    let mut hear = |count: usize| {
        while heard.len() < count {
            let record: Value = serde_json::from_str(&tail.lines.next().unwrap().unwrap()).unwrap();
            heard.push(record["message"].as_str().unwrap().strip_prefix("line ").unwrap().parse::<u32>().unwrap());
        }
        heard.clone()
    };
    assert_eq!(hear(10), (40..50).collect::<Vec<_>>(), "the last ten, the oldest first");
    // At once: some records come live, some are fetched later, and each comes once.
    site.tampu_reading(lines(50, 150).as_bytes(), &["log", "send", "-p", "pipe"]).ok();
    site.tampu_reading(lines(150, 200).as_bytes(), &["log", "send", "-p", "pipe"]).ok();
    // Until the tail has surely asked the collector again; that answer holds the records that came live by then.
    let begun = Instant::now();
    let mut sent = 200;
    while begun.elapsed() < Duration::from_secs(2) {
        site.tampu_reading(lines(sent, sent + 1).as_bytes(), &["log", "send", "-p", "pipe"]).ok();
        sent += 1;
        hear(sent as usize - 40);
    }
    let mut all = hear(sent as usize - 40);
    all.sort_unstable();
    assert_eq!(all, (40..sent).collect::<Vec<_>>());
    let last = format!("line {}", sent - 1);

    let said = site.tampu(&["log", "tail", "--json", "-p", "pipe", "--last", "7", "--limit", "7"]).ok().json();
    assert_eq!((said.len(), said[6]["message"].as_str()), (7, Some(last.as_str())));
    let said = site.tampu(&["--domain", "nowhere", "log", "tail", "--last", "7"]);
    assert_eq!(said.code, 3, "{said:?}");
}

#[test]
fn stat_tells_who_sends_how_much() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let lines: String = (0..30).map(|number| format!("line {number}\n")).collect();
    site.tampu_reading(lines.as_bytes(), &["log", "send", "-p", "pipe"]).ok();
    site.find(30, &["-p", "pipe", "-n", "0"]);
    let sources = site.tampu(&["log", "stat", "--processes", "--json"]).ok().json();
    let pipe = sources.iter().find(|source| source["process"] == "pipe").unwrap();
    assert_eq!((pipe["records"].as_u64(), pipe["lost"].as_u64()), (Some(30), Some(0)), "{pipe}");
    assert!(pipe["last_seen"].as_str().unwrap().ends_with('Z') && pipe["per_s"].is_u64(), "{pipe}");
    let said = site.tampu(&["log", "stat"]).ok();
    let line = said.out.lines().find(|line| line.ends_with("  pipe")).unwrap_or_else(|| panic!("{said:?}"));
    assert!(line.trim_start().starts_with("30 "), "{said:?}");
    assert!(said.out.contains("records,") && said.out.contains("last seen"), "{said:?}");
    // A question about one process does not return everything.
    assert!(!site.tampu(&["log", "stat", "-p", "pipe"]).ok().out.contains("last seen"));
}

#[test]
fn the_demo_logs_and_everything_ends_with_one_interrupt() {
    let site = Site::new();
    let mut hub = site.hub_of_roles(&["--demo", "--speed", "20", "--min-level", "Trace"]);
    let mut lines = hub.lines();
    // On a busy machine the antennas have logged much before the first packet of the scheduler comes.
    let is_of_scheduler = |line: &String| line.contains("SCHEDULING/Array001") && line.contains("scheduling block");
    assert!(lines.by_ref().take(20_000).any(|line| is_of_scheduler(&line)), "the scheduler is not in the live log");
    assert!(lines.by_ref().take(20_000).any(|line| line.contains("CONTROL/DV0")), "no antenna is in the live log");
    // A closed reader ends the demo, so the test reads on.
    let reading = std::thread::spawn(move || lines.count());
    let found = site.find(3, &["--process", "CONTROL/*", "-n", "3"]);
    assert_eq!(found[0]["process"], "CONTROL/cppContainer");
    let (code, said) = hub.end(Signal::INT);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("try next, in another terminal"), "{said}");
    assert!(reading.join().unwrap() > 0);
}

#[test]
fn a_demo_of_its_own_reaches_the_hub() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    site.tampu(&["demo", "--speed", "20", "--for", "2s"]).ok();
    let counts = site.tampu(&["log", "stat", "--by", "process", "--json"]).ok().json();
    let of = |process: &str| counts.iter().find(|row| row["value"] == process).map_or(0, |row| row["count"].as_u64().unwrap());
    assert!(of("CORR/cppContainer") > 0 && of("CONTROL/cppContainer") > 100, "{counts:?}");
}

#[test]
fn lines_of_standard_input_are_records() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let lines: String = (0..500).map(|number| format!("line {number}\n")).collect();
    site.tampu_reading(lines.as_bytes(), &["log", "send", "-p", "pipe"]).ok();
    assert_eq!(site.find(500, &["-p", "pipe", "-n", "0"]).len(), 500);
    // The output of a query can be sent again.
    let json = site.tampu(&["log", "query", "--json", "-p", "pipe", "-n", "2"]).ok().out;
    site.tampu_reading(json.as_bytes(), &["log", "send", "--from-json"]).ok();
    assert_eq!(site.find(502, &["-p", "pipe", "-n", "0"]).len(), 502);
    let said = site.tampu_reading(b"{\"level\": 3}\n", &["log", "send", "--from-json"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("standard input, line 1"), "{said:?}");
}

#[test]
fn domains_do_not_meet() {
    let site = Site::new();
    let _one = site.hub(&["--domain", "one"]);
    let _two = site.hub(&["--domain", "two"]);
    site.tampu(&["--domain", "one", "log", "send", "only in one"]).ok();
    assert_eq!(site.find(1, &["--domain", "one", "only"]).len(), 1);
    assert_eq!(site.tampu(&["--domain", "two", "log", "query", "--json", "only"]).ok().out, "");
}

#[test]
fn the_log_line_is_measured_with_processes_of_its_own() {
    let site = Site::new();
    let data = site.path("perf");
    std::fs::create_dir(&data).unwrap();
    let arguments = ["perf", "log", "--clients", "2", "--for", "0.3s", "--json", "--scratch", &data.to_string_lossy()];
    let report = site.tampu(&arguments).ok().json().remove(0);
    assert!(report["records_per_s"].as_f64().unwrap() > 0.0, "{report}");
    assert_eq!((report["lost"].as_f64(), report["wrong"].as_f64()), (Some(0.0), Some(0.0)), "{report}");
    for costs in ["cpu_s", "cpu_us_per_record"] {
        for process in ["producer", "node", "collector"] {
            assert!(report[costs][process].is_number(), "{costs} {process}: {report}");
        }
        assert_eq!(report[costs]["clients"].as_array().map(Vec::len), Some(2), "{report}");
    }
    for process in ["producer", "node", "collector"] {
        assert!(report["rss_mb"][process].as_f64().unwrap() > 0.0, "{report}");
    }
    for way in ["bus", "disk"] {
        assert!((200.0..300.0).contains(&report["bytes_per_record"][way].as_f64().unwrap()), "{way}: {report}");
    }
    let backlog = |name: &str| report["backlog"][name].as_f64().unwrap();
    assert!(backlog("max") > 0.0 && backlog("max") <= backlog("bound"), "{report}");
    assert_eq!(std::fs::read_dir(&data).unwrap().count(), 0, "nothing is left");
    let live = site.tampu(&["perf", "log", "--live", "--for", "0.2s", "--json"]).ok().json().remove(0);
    assert!(live["cpu_s"]["collector"].is_null() && live["cpu_s"]["node"].is_number(), "{live}");
    assert_eq!((live["lost"].as_f64(), live["stored"].as_f64()), (Some(0.0), None), "{live}");
    let said = site.tampu(&["perf", "log", "--for", "0.2s", "--scratch", &data.to_string_lossy()]).ok();
    assert!(said.out.contains("CPU a record") && said.out.contains("collector "), "{said:?}");
    assert!(said.out.contains("waiting for the commit: at most "), "{said:?}");
}

#[test]
fn the_log_line_is_measured_at_a_rate_one_by_one_and_beside_a_stopped_client() {
    let site = Site::new();
    let data = site.path("perf");
    std::fs::create_dir(&data).unwrap();
    let data = data.to_string_lossy();
    let how = ["--clients", "2", "--stopped", "1", "--rate", "2000", "--immediate", "100", "--packet", "1", "--for", "1s"];
    let report =
        site.tampu(&[&["perf", "log", "--json", "--no-disk", "--scratch", &data][..], &how].concat()).ok().json().remove(0);
    assert_eq!((report["lost"].as_f64(), report["wrong"].as_f64()), (Some(0.0), Some(0.0)), "{report}");
    let records = report["records"].as_f64().unwrap();
    let urgent = report["immediate"]["count"].as_f64().unwrap();
    assert!((1.0..=200.0).contains(&urgent) && (urgent + 1.0..=2200.0).contains(&records), "{report}");
    assert!(report["immediate"]["p99_us"].as_f64() >= report["immediate"]["p50_us"].as_f64(), "{report}");
    assert_eq!(report["received"].as_array().unwrap().len(), 1, "the stopped one is told of apart: {report}");
    assert_eq!(report["stopped_clients"].as_array().unwrap().len(), 1, "{report}");
    assert!(report["rate_kept"].is_boolean() && report["disk_mb_per_s"].is_null(), "{report}");
    assert_eq!(site.tampu(&["perf", "log", "--clients", "1", "--stopped", "2"]).code, 2);
}

#[test]
fn the_bus_is_measured_with_processes_of_its_own() {
    let site = Site::new();
    let report = site
        .tampu(&["perf", "bus", "--readers", "2", "--for", "0.2s", "--size", "4096", "--loans", "--json"])
        .ok()
        .json()
        .remove(0);
    assert_eq!((report["lost"].as_f64(), report["wrong"].as_f64()), (Some(0.0), Some(0.0)), "{report}");
    let report = site.tampu(&["perf", "bus", "--members", "5", "--logs", "--for", "0.5s", "--json"]).ok().json().remove(0);
    assert_eq!(report["processes"], 5);
    assert!(report["all_know_all_s"].as_f64().unwrap() > 0.0, "{report}");
}
