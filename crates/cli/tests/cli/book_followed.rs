//! `[book.follow]` of a hub's configuration: a living ELOG that the hub's logbook follows.

use std::{fs, time::Instant};

use rustix::process::Signal;

use crate::site::{PATIENCE, Site};

fn entry(id: u32, text: &str) -> String {
    format!(
        "$@MID@$: {id}\nDate: Wed, 10 Sep 2008 00:20:50 +0200\nAuthor: Zoe\nAttachment: \nEncoding: plain\n\
         ========================================\n{text}\n"
    )
}

/// Asks the hub until it finds so many.
#[track_caller]
fn finds(site: &Site, query: &str, count: usize) {
    let until = Instant::now() + PATIENCE;
    loop {
        // Before the first import there is no logbook at all.
        let said = site.tampu_without("TAMPU_DATA_DIR", b"", &["book", "search", query, "--count"]);
        if said.code == 0 && said.out.trim() == count.to_string() {
            return;
        }
        assert!(Instant::now() < until, "{query}: {said:?}");
    }
}

#[test]
fn a_hub_follows_a_living_elog() {
    let site = Site::new();
    fs::create_dir_all(site.path("elog/Shift/2008")).unwrap();
    fs::create_dir_all(site.path("elog/Private/2008")).unwrap();
    let day = site.file("elog/Shift/2008/080910a.log", entry(7, "first"));
    site.file("elog/Private/2008/080910a.log", entry(1, "hidden"));
    let elogd = site.file("elogd.cfg", "[Shift]\nAttributes = Author\n[Private]\nAttributes = Author\n");
    let before = fs::read(&day).unwrap();
    let logbooks = site.path("elog").to_string_lossy().into_owned();
    let text = format!("[book.follow]\nconfig = \"{elogd}\"\nlogbooks = \"{logbooks}\"\nbooks = [\"Shift\"]\npoll = true\n");
    let config = site.file("hub.toml", text);
    let hub = site.hub(&["--config", &config]);
    finds(&site, "first", 1);
    assert_eq!(fs::read(&day).unwrap(), before, "the source is only read");
    fs::write(&day, entry(7, "first") + &entry(8, "second")).unwrap();
    finds(&site, "second", 1);
    fs::write(&day, entry(7, "first, corrected") + &entry(8, "second")).unwrap();
    finds(&site, "corrected", 1);
    fs::write(&day, entry(7, "first, corrected")).unwrap();
    finds(&site, "second", 0);
    finds(&site, "hidden", 0);
    assert_eq!(hub.end(Signal::TERM).0, Some(0));

    // Entries written without a running hub are imported by the next one.
    fs::write(&day, entry(7, "first, corrected") + &entry(9, "third")).unwrap();
    let hub = site.hub(&["--config", &config]);
    finds(&site, "third", 1);
    drop(hub);
    let wrong = site.file("wrong.toml", "[book.follow]\nbooks = [\"Shift\"]\n");
    let said = site.tampu(&["up", "--config", &wrong]);
    assert!(said.code != 0 && said.err.contains("follow.logbooks"), "{said:?}");
}
