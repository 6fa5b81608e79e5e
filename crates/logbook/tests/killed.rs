//! A process that is killed while it posts entries with attachments: each entry is whole or absent, and no file is without an entry.

mod support;

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
};

use support::{entry, shift_book};
use tampu_logbook::{
    entry::EntryRef,
    store::{Attachments, Entries, MAX_ATTACHMENT, Maintenance, sqlite::SqliteStore},
};
use tampu_types::Time;

/// The variable with the directory, set only in the other process.
const DIR: &str = "TAMPU_TEST_BOOK";

/// The bytes of the nth attachment; every third is one that was there before.
fn bytes(n: u32) -> Vec<u8> {
    let n = if n % 3 == 2 { n - 1 } else { n };
    (0..20_000 + n).map(|at| (at * 31 + n * 7) as u8).collect()
}

/// Not a test by itself: what the other process does.
#[test]
fn be_the_one_who_posts() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let store = SqliteStore::open(dir.as_ref()).unwrap();
    for n in 0.. {
        let upload = store.upload(&mut &bytes(n)[..], MAX_ATTACHMENT).unwrap();
        let mut new = entry("A", "Zoe", &format!("number {n}"), "posted until the end");
        new.content.attachments = vec![upload.attachment("data.bin", Time(1))];
        let at = store.post(new, vec![upload], "zoe").unwrap();
        println!("posted {}", at.id);
    }
}

#[test]
fn a_kill_leaves_entries_whole_and_no_file_without_one() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    store.put_book(&shift_book("A")).unwrap();
    drop(store);
    let mut last = 0;
    for round in 0..12 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "be_the_one_who_posts", "--nocapture"])
            .env(DIR, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut posted = out.lines().map_while(Result::ok).filter_map(|line| line.strip_prefix("posted ")?.parse::<u32>().ok());
        // Each round kills the process at another point of a post.
        for _ in 0..1 + round % 4 {
            last = posted.next().expect("it posts until it is killed");
        }
        std::thread::sleep(std::time::Duration::from_micros(700 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        last = posted.last().unwrap_or(last);

        let store = SqliteStore::open(dir.path()).unwrap();
        assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0], "after round {round}");
        let incoming = std::fs::read_dir(dir.path().join("attachments/incoming")).unwrap();
        assert_eq!(incoming.count(), 0, "after round {round}");
        // All acknowledged posts exist, and perhaps one more, whose response the kill cut off.
        let entries = store.books().unwrap()[0].entries;
        assert!((u64::from(last)..=u64::from(last) + 1).contains(&entries), "{last} answered, {entries} there");
        last = entries as u32;
        for id in 1..=last {
            let attachment = &store.entry(&EntryRef::new("A", id)).unwrap().content.attachments[0];
            let mut read = Vec::new();
            store.attachment(attachment.sha.as_ref().unwrap()).unwrap().read_to_end(&mut read).unwrap();
            assert_eq!(read.len() as u64, attachment.size);
        }
    }
}
