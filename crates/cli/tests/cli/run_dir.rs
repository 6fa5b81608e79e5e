//! The run-time directory under a living hub: files that are shortened, and a directory that vanishes.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use crate::site::{Following, Hub, PATIENCE, Site};

/// Files below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    let below = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    entries.flat_map(|entry| below(entry.path())).collect()
}

fn is_alive(pid: i32) -> bool {
    // A killed child is a zombie until its parent waits for it.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn shortened_files_of_the_run_directory_do_not_end_the_hub() {
    let site = Site::new();
    let hub = site.hub(&["--config", &site.file("tampu.toml", "[book]\nlisten = \"off\"\n")]);
    // A reader of live records, so that the hub writes as well as reads through shared memory.
    let mut tail = Following::start(&site, &["log", "tail", "--json", "--last", "1"]);
    assert!(tail.lines.next().is_some());
    let mut kinds = std::collections::BTreeSet::new();
    for path in files(&site.path("run")) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let kind = path.extension().map_or(name.clone(), |kind| kind.to_string_lossy().into_owned());
        let is_mapped = ["progress", "batches", "ring", "clock", "lease", "dictionary"].contains(&kind.as_str());
        if !is_mapped && !name.starts_with("ring-") {
            continue;
        }
        // Another file of the run directory may be gone meanwhile: a process that has ended removes its own.
        if let Ok(file) = fs::File::options().write(true).open(&path) {
            file.set_len(0).unwrap();
            kinds.insert(kind);
        }
    }
    assert!(kinds.contains("progress") && kinds.contains("clock"), "{kinds:?}");
    drop(tail);
    // New processes log as before.
    for number in 0..3 {
        site.tampu(&["log", "send", &format!("number {number} arrives")]).ok();
        site.find(1, &[&format!("number {number} arrives")]);
    }
    assert!(is_alive(hub.pid()));
}

#[test]
fn a_run_directory_that_vanishes_is_made_anew() {
    let site = Site::new();
    let hub = site.hub(&[]);
    vanishes_twice(&site, &hub);
}

#[test]
fn roles_start_again_in_a_run_directory_that_is_made_anew() {
    let site = Site::new();
    let hub = site.hub_of_roles(&[]);
    vanishes_twice(&site, &hub);
}

fn vanishes_twice(site: &Site, hub: &Hub) {
    let gone = |round: usize| match round {
        0 => fs::rename(site.path("run"), site.path("moved")).unwrap(),
        _ => fs::remove_dir_all(site.path("run")).unwrap(),
    };
    for round in 0..2 {
        gone(round);
        // As soon as the hub has seen it, new processes find it again.
        let text = format!("round {round} arrives");
        let until = Instant::now() + PATIENCE;
        loop {
            let sent = site.tampu(&["log", "send", &text]);
            if sent.code == 0 {
                break;
            }
            assert!(Instant::now() < until && is_alive(hub.pid()), "{sent:?}");
        }
        site.find(1, &[&text]);
        site.find(1, &["vanished, and was made anew"]);
    }
    let told = site.tampu(&["doctor"]);
    assert!(told.out.contains("it vanished, and the node made it anew"), "{told:?}");
    // The logbook is found again, and a second hub is not let in beside the first one.
    let until = Instant::now() + PATIENCE;
    while site.tampu(&["book", "list"]).code != 0 {
        assert!(Instant::now() < until, "{:?}", site.tampu(&["book", "list"]));
    }
    let second = site.tampu(&["up"]);
    assert!(second.code != 0 && second.err.contains("already has a node"), "{second:?}");
}
