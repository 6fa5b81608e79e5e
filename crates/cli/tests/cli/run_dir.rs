//! The run-time directory under a living hub: files that are shortened, and a directory that vanishes.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use crate::site::{Following, Hub, PATIENCE, Said, Site};

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

/// Repeats a command until it does what is wanted: a role may just be starting again.
#[track_caller]
fn until_done(site: &Site, hub: &Hub, arguments: &[&str], is_done: impl Fn(&Said) -> bool) {
    let until = Instant::now() + PATIENCE;
    loop {
        let said = site.tampu(arguments);
        if said.code == 0 && is_done(&said) {
            return;
        }
        assert!(Instant::now() < until && is_alive(hub.pid()), "{arguments:?}: {said:?}");
    }
}

/// Moves the run-time directory away, then removes it. Each time new programs and new records find the hub again.
fn vanishes_twice(site: &Site, hub: &Hub, told: impl Fn(usize)) {
    for round in 1..=2 {
        match round {
            1 => fs::rename(site.path("run"), site.path("moved")).unwrap(),
            _ => fs::remove_dir_all(site.path("run")).unwrap(),
        }
        let text = format!("round {round} arrives");
        until_done(site, hub, &["log", "send", &text], |_| true);
        until_done(site, hub, &["log", "query", &text], |said| said.out.contains(&text));
        told(round);
        until_done(site, hub, &["book", "list"], |_| true);
    }
    let second = site.tampu(&["up"]);
    assert!(second.code != 0 && second.err.contains("already has a node"), "{second:?}");
}

fn counts(words: &str, least: usize) -> impl Fn(&Said) -> bool {
    move |said: &Said| said.out.matches(words).count() >= least
}

#[test]
fn a_run_directory_that_vanishes_is_made_anew() {
    let site = Site::new();
    let hub = site.hub(&[]);
    vanishes_twice(&site, &hub, |round| {
        let words = "vanished, and was made anew";
        until_done(&site, &hub, &["log", "query", words], counts(words, round));
    });
    let told = site.tampu(&["doctor"]);
    assert!(told.out.contains("it vanished, and the node made it anew"), "{told:?}");
}

#[test]
fn roles_start_again_in_a_new_run_directory() {
    let site = Site::new();
    let hub = site.hub_of_roles(&[]);
    vanishes_twice(&site, &hub, |round| {
        // Both are on the bus again: their records come by it.
        for words in ["the role node works", "the role book works"] {
            until_done(&site, &hub, &["log", "query", words], counts(words, round + 1));
        }
    });
}
