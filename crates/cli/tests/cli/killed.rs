//! A process that dies while it logs, and the hub that finds what it had said.

use std::collections::HashSet;

use serde_json::Value;

use crate::site::{Following, Site};

#[test]
fn what_the_rings_of_a_dead_process_hold_is_found_by_the_hub() {
    let site = Site::new();
    let _hub = site.hub(&["--domain", "dead"]);
    let mut demo = site.command(&["--domain", "dead", "demo", "--seed", "7", "--speed", "20"]).spawn().unwrap();
    site.find(20, &["--domain", "dead", "--process", "CONTROL/*"]);
    demo.kill().unwrap();
    demo.wait().unwrap();
    // Three processes in one: the observatory's containers.
    let told = site.find(3, &["--domain", "dead", "--contains", "were still in its log rings"]);
    assert!(told.iter().all(|record| record["level"] == "Warning"), "{told:?}");
    let lives = || std::fs::read_dir(site.path("run/dead/rings")).map_or(0, |lives| lives.count());
    let begun = std::time::Instant::now();
    // Only the hub's own run remains.
    while lives() > 1 {
        assert!(begun.elapsed() < crate::site::PATIENCE, "{} lives are left", lives());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(site.tampu(&["--domain", "dead", "log", "recover"]).ok().out, "", "nothing is left to do by hand");
    let said = site.tampu(&["--domain", "dead", "log", "recover", "/nowhere/at/all"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("/nowhere/at/all"), "{said:?}");
}

#[test]
fn a_viewer_is_not_shown_again_what_it_saw_just_before_a_death() {
    let site = Site::new();
    let _hub = site.hub(&["--domain", "seen"]);
    let mut tail = Following::start(&site, &["--domain", "seen", "log", "tail", "--json", "--min-level", "Trace"]);
    let mut shown: Vec<Value> = Vec::new();
    for seed in ["1", "2", "3"] {
        let mut demo = site.command(&["--domain", "seen", "demo", "--seed", seed, "--speed", "50"]).spawn().unwrap();
        let is_of_the_demo = |record: &Value| record["process"].as_str().is_some_and(|process| process.starts_with("CONTROL/"));
        let mut of_the_demo = 0;
        while of_the_demo < 100 {
            shown.push(serde_json::from_str(&tail.lines.next().unwrap().unwrap()).unwrap());
            of_the_demo += usize::from(is_of_the_demo(&shown[shown.len() - 1]));
        }
        demo.kill().unwrap();
        demo.wait().unwrap();
        // Three processes in one: their remaining records come before the reports of their death.
        let mut deaths = 0;
        while deaths < 3 {
            shown.push(serde_json::from_str(&tail.lines.next().unwrap().unwrap()).unwrap());
            let text = shown[shown.len() - 1]["message"].as_str().unwrap();
            deaths += usize::from(text.contains("were still in its log rings"));
        }
    }
    let ids: HashSet<String> = shown.iter().map(|record| record["id"].to_string()).collect();
    assert_eq!(ids.len(), shown.len());
}
