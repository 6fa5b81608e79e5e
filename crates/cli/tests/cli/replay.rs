//! Records of the archive on the bus again: for those who follow the replay, and for nobody else.

use rustix::process::Signal;
use serde_json::Value;

use crate::{
    site::{Following, PATIENCE, Site, acs_file},
    terminal::Terminal,
};

fn next(following: &mut Following) -> Value {
    serde_json::from_str(&following.lines.next().unwrap().unwrap()).unwrap()
}

#[test]
fn a_replay_is_what_was_for_its_followers_and_nothing_for_others() {
    let site = Site::new();
    let hub = site.hub(&[]);
    let messages: Vec<String> = (0..50).map(|number| format!("message {number}")).collect();
    // Levels and audiences differ: live they would travel on different topics, here they keep their order.
    let text = acs_file(&messages.iter().map(String::as_str).collect::<Vec<_>>());
    let text: String = text
        .lines()
        .enumerate()
        .map(|(number, line)| match number % 3 {
            0 => format!("{}\n", line.replace("<Info ", "<Error Audience=\"Operator\" ").replace("</Info>", "</Error>")),
            _ => format!("{line}\n"),
        })
        .collect();
    let file = site.file("log.xml", text);
    site.tampu(&["log", "import", &file]).ok();
    let kept = site.find(50, &["-p", "maci", "-n", "0", "--oldest-first"]);
    let total = || site.tampu(&["log", "query", "--count", "-p", "maci,probe"]).ok().out.trim().parse::<u64>().unwrap();
    assert_eq!(total(), 50);

    // An ordinary tail that is ready: it has shown a record.
    let mut ordinary = Following::start(&site, &["log", "tail", "--json", "-p", "maci,probe"]);
    let mut probes = 0;
    let there = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut sent = 0;
            while !there.load(std::sync::atomic::Ordering::Acquire) {
                site.tampu(&["log", "send", "probe", "-p", "probe"]).ok();
                sent += 1;
            }
            sent
        });
        assert_eq!(next(&mut ordinary)["message"], "probe");
        there.store(true, std::sync::atomic::Ordering::Release);
        probes += sender.join().unwrap();
    });

    let mut follower = Following::start(&site, &["log", "tail", "--json", "--replayed", "night"]);
    let arguments = ["log", "replay", "-p", "maci", "--as", "night", "--speed", "max", "--json"];
    let told = site.tampu(&arguments).ok().json().remove(0);
    assert_eq!((told["records"].as_u64(), told["lost"].as_u64()), (Some(50), Some(0)), "{told}");
    assert_eq!(told["first"], kept[0]["time"]);
    let same = |record: &Value| ["id", "time", "level", "message", "audiences", "received"].map(|field| record[field].clone());
    for record in &kept {
        assert_eq!(same(&next(&mut follower)), same(record));
    }
    drop(follower);
    // Followers filter as every tail does.
    let mut grave = Following::start(&site, &["log", "tail", "--json", "--replayed", "Grave", "--min-level", "Error"]);
    site.tampu(&["log", "replay", "-p", "maci", "--as", "grave", "--speed", "max"]).ok();
    for record in kept.iter().filter(|record| record["level"] == "Error") {
        assert_eq!(same(&next(&mut grave)), same(record));
    }
    drop(grave);

    // The ordinary tail got nothing of it, and nothing was kept.
    site.tampu(&["log", "send", "the end", "-p", "probe"]).ok();
    loop {
        let record = next(&mut ordinary);
        assert_eq!(record["process"], "probe", "{record}");
        if record["message"] == "the end" {
            break;
        }
    }
    assert_eq!(total(), 50 + probes + 1);
    let said = site.tampu(&["log", "replay", "-p", "nobody"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("nothing to replay"), "{said:?}");
    assert_eq!(hub.end(Signal::TERM).0, Some(0));
}

#[test]
fn a_replay_keeps_distances_waits_for_somebody_and_is_seen_in_the_viewer() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let file = site.file("log.xml", acs_file(&["one", "two", "three"]));
    site.tampu(&["log", "import", &file]).ok();
    let mut viewer = Terminal::run(&site, (24, 120), &["log", "view", "--replayed", "again"]);
    viewer.until_shows("replay 'again'");
    let told = site.tampu(&["log", "replay", "-p", "maci", "--as", "again", "--speed", "10", "--json"]).ok().json().remove(0);
    assert!(told["seconds"].is_f64() && told["followers"] == 1, "{told}");
    let text = viewer.until_shows("three");
    assert!(text.contains("2005-02-01T15:33:00.592") && text.contains("one"), "{text}");
    viewer.press("q");
    assert_eq!(viewer.end(), Some(0));
    // The replay can also begin without a follower.
    let told = site.tampu(&["log", "replay", "-p", "maci", "--speed", "max", "--now", "--json"]).ok().json().remove(0);
    assert_eq!((told["records"].as_u64(), told["followers"].as_u64()), (Some(3), Some(0)), "{told}");
}

#[test]
fn two_replays_of_one_name_do_not_mix() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let file = site.file("log.xml", acs_file(&["one"]));
    site.tampu(&["log", "import", &file]).ok();
    // The replay waits for a follower.
    let begin = || Following::start(&site, &["log", "replay", "-p", "maci", "--as", "night"]);
    let mut first = begin();
    let until = std::time::Instant::now() + PATIENCE;
    loop {
        // Until the first replay is on the bus, this one is the only one.
        let said = site.tampu(&["log", "replay", "-p", "maci", "--as", "night", "--now"]);
        if said.code == 1 {
            assert!(said.err.contains("a replay 'night' is running already"), "{said:?}");
            return;
        }
        assert!(std::time::Instant::now() < until, "{said:?}");
        // The other replay was there first, so this one was refused.
        if first.has_ended() {
            first = begin();
        }
    }
}
