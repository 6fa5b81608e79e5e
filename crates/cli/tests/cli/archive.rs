//! `tampu log archive`, and records as Parquet.

use serde_json::Value;

use crate::site::{Said, Site, acs_file};

fn archive(site: &Site, arguments: &[&str]) -> Said {
    site.tampu(&[&["log", "archive"], arguments].concat())
}

fn one(said: Said) -> Value {
    said.ok().json().remove(0)
}

/// A site with a hub that has so many records of `maci`.
fn with_records(count: usize) -> (Site, crate::site::Hub) {
    let site = Site::new();
    let hub = site.hub(&[]);
    let messages: Vec<String> = (0..count).map(|number| format!("message {number}")).collect();
    let file = site.file("in.xml", acs_file(&messages.iter().map(String::as_str).collect::<Vec<_>>()));
    site.tampu(&["log", "import", &file]).ok();
    (site, hub)
}

#[test]
fn an_archive_is_seen_compacted_checked_and_backed_up_while_it_runs() {
    let (site, hub) = with_records(50);
    let status = one(archive(&site, &["status", "--json"]));
    assert!(status["records"].as_u64().unwrap() >= 50 && status["files"] == 0, "{status}");
    let compacted = one(archive(&site, &["compact", "--json"]));
    assert!(compacted["files"].as_u64().unwrap() > 0 && compacted["records"].as_u64().unwrap() >= 50, "{compacted}");
    assert_eq!(site.find(50, &["-p", "maci"]).len(), 50);
    let seen = archive(&site, &["status"]).ok().out;
    assert!(seen.contains("Parquet files") && seen.contains("bytes a record"), "{seen}");

    let copy = site.path("copy");
    let copy = copy.to_str().unwrap();
    let made = one(archive(&site, &["backup", "-o", copy, "--json"]));
    assert!(made["records"].as_u64().unwrap() >= 50, "{made}");
    let checked = one(archive(&site, &["check", "--json"]));
    assert_eq!((&checked["complete"], checked["faults"].as_array().unwrap().len()), (&Value::Bool(true), 0), "{checked}");

    // The copy is an archive of its own: it can be checked in its place, and a hub can use it.
    assert!(archive(&site, &["check", "--data", copy]).ok().out.contains("everything is as it should be"));
    let in_use = archive(&site, &["check", "--data", site.path("data").to_str().unwrap()]);
    assert!(in_use.code == 1 && in_use.err.contains("in use by process"), "{in_use:?}");
    hub.end(rustix::process::Signal::TERM);
    let _restored = site.hub(&["--data", copy]);
    assert_eq!(site.find(50, &["-p", "maci"]).len(), 50);
}

#[test]
fn what_is_damaged_is_named_and_the_rest_is_served() {
    let (site, hub) = with_records(50);
    archive(&site, &["compact"]).ok();
    hub.end(rustix::process::Signal::TERM);
    let data = site.path("data");
    let parquet = data.join("local/log/parquet");
    let imported = std::fs::read_dir(parquet.join("far")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&imported).unwrap();
    let length = bytes.len();
    bytes[length / 2..length / 2 + 100].fill(0x55);
    std::fs::write(&imported, bytes).unwrap();
    let checked = archive(&site, &["check", "--data", data.to_str().unwrap()]);
    assert_eq!(checked.code, 1, "{checked:?}");
    assert!(checked.out.contains(imported.to_str().unwrap()) && checked.err.contains("1 fault found"), "{checked:?}");
    // The hub starts all the same, and its own records are there.
    let _hub = site.hub(&[]);
    site.find(1, &["-p", "*"]);
}

#[test]
fn without_an_archive_or_a_hub_it_is_said_what_to_do() {
    let site = Site::new();
    let nowhere = archive(&site, &["status", "--data", "nowhere"]);
    assert!(nowhere.code == 2 && nowhere.err.contains("nowhere: no archive is there"), "{nowhere:?}");
    assert_eq!(archive(&site, &["status"]).code, 3);
    std::fs::create_dir_all(site.path("data/alma/log")).unwrap();
    let other = archive(&site, &["status", "--data", "data"]);
    assert!(other.err.contains("but of alma; choose with --domain"), "{other:?}");
}

#[test]
fn records_are_exported_as_parquet() {
    let (site, _hub) = with_records(50);
    let file = site.path("out.parquet");
    let file = file.to_str().unwrap();
    site.tampu(&["log", "export", "-p", "maci", "-o", file]).ok();
    let bytes = std::fs::read(file).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{} bytes", bytes.len());
    let refused = site.tampu(&["log", "export", "-f", "parquet", "-o", "out.parquet.gz"]);
    assert!(refused.code == 2 && refused.err.contains("compressed already"), "{refused:?}");
    let refused = site.tampu(&["log", "export", "--columns", "time", "-o", file]);
    assert!(refused.code == 2 && refused.err.contains("Parquet have all"), "{refused:?}");
}
