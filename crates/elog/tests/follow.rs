//! A living ELOG that is followed: its files as elogd writes them, piece by piece.

mod support;

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use support::ids;
use tampu_elog::{
    follow::{FollowEvent, Follower},
    import::{BookReport, ImportSource},
};
use tampu_logbook::{
    entry::{Change, Content, EntryRef},
    store::{Entries, Maintenance, PagePart, sqlite::SqliteStore},
};

const LINE: &str = "========================================";

fn entry(id: u32, links: &str, attachment: &str, text: &str) -> String {
    let (hour, minute) = (id / 60 % 24, id % 60);
    format!(
        "$@MID@$: {id}\nDate: Wed, 10 Sep 2008 {hour:02}:{minute:02}:00 +0200\n{links}Author: Zoe\nSubject: number {id}\n\
         Attachment: {attachment}\nEncoding: plain\n{LINE}\n{text}\n"
    )
}

/// A site with one book, and what follows it.
struct Site {
    dir: tempfile::TempDir,
    _data: tempfile::TempDir,
    store: &'static SqliteStore,
    follower: Follower<'static>,
    told: Vec<BookReport>,
    again: usize,
}

impl Site {
    fn new(first: &str) -> Site {
        Site::by(first, false)
    }

    fn by(first: &str, poll: bool) -> Site {
        let (dir, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(dir.path().join("logbooks/Shift/2008")).unwrap();
        fs::write(dir.path().join("logbooks/Shift/2008/080910a.log"), first).unwrap();
        fs::write(dir.path().join("elogd.cfg"), "[Shift]\nAttributes = Author, Subject\n").unwrap();
        let store: &'static SqliteStore = Box::leak(Box::new(SqliteStore::open(data.path()).unwrap()));
        let source = ImportSource {
            config: Some(dir.path().join("elogd.cfg")),
            logbooks: dir.path().join("logbooks"),
            poll,
            ..ImportSource::default()
        };
        let (follower, _) = Follower::begin(store, source, &mut |_, _| true).unwrap();
        assert_eq!(follower.polls().is_some(), poll);
        Site { dir, _data: data, store, follower, told: Vec::new(), again: 0 }
    }

    fn day(&self) -> PathBuf {
        self.dir.path().join("logbooks/Shift/2008/080910a.log")
    }

    fn append(&self, text: &str) {
        fs::File::options().append(true).open(self.day()).unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn look(&mut self) {
        let (told, again) = (&mut self.told, &mut self.again);
        self.follower.look(&mut |what| match what {
            FollowEvent::Book(report) => told.push(*report),
            FollowEvent::Reimported(_) => *again += 1,
            FollowEvent::Failed(what) => panic!("{what}"),
        });
    }

    /// Looks until it is so.
    fn until(&mut self, what: &str, is_so: impl Fn(&Site) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{what}: never; told was {:?}", self.told);
            self.look();
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn sum(&self, of: impl Fn(&BookReport) -> u64) -> u64 {
        self.told.iter().map(of).sum()
    }

    fn history(&self, id: u32) -> Vec<Change> {
        let history = self.store.history_page(&EntryRef::new("Shift", id), PagePart::default()).unwrap().revisions;
        history.into_iter().map(|revision| revision.what).collect()
    }
}

fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut folders, mut found) = (vec![dir.to_owned()], BTreeMap::new());
    while let Some(folder) = folders.pop() {
        for item in fs::read_dir(folder).unwrap() {
            let path = item.unwrap().path();
            if path.is_dir() { folders.push(path) } else { drop(found.insert(path.clone(), fs::read(path).unwrap())) }
        }
    }
    found
}

#[test]
fn what_elogd_writes_changes_and_deletes_is_so_here() {
    writes_changes_and_deletes(false);
}

/// As on NFS.
#[test]
fn so_it_is_where_nobody_tells_of_changes() {
    writes_changes_and_deletes(true);
}

fn writes_changes_and_deletes(poll: bool) {
    let mut site = Site::by(&entry(1, "", "", "first"), poll);
    assert_eq!(ids(site.store, "first"), [1]);
    site.append(&entry(2, "In reply to: 1\n", "", "second"));
    site.until("a new entry", |site| ids(site.store, "second") == [2]);
    assert_eq!(site.store.entry(&EntryRef::new("Shift", 2)).unwrap().thread, 1);

    // In ELOG's file, a reply changes the head of its parent; here the parent stays unchanged.
    let changed = entry(1, "Reply to: 2\n", "", "first") + &entry(2, "In reply to: 1\n", "", "second, corrected");
    fs::write(site.day(), &changed).unwrap();
    site.until("a change", |site| ids(site.store, "corrected") == [2]);
    assert_eq!((site.history(1), site.history(2)), (vec![Change::Imported], vec![Change::Imported, Change::Imported]));

    fs::write(site.day(), entry(1, "", "", "first")).unwrap();
    site.until("a deletion", |site| ids(site.store, "corrected").is_empty());
    assert_eq!((site.sum(|told| told.deleted), site.history(2).last()), (1, Some(&Change::Deleted)));
    // ELOG reuses the number of the last entry.
    site.append(&entry(2, "", "", "another one"));
    site.until("the number again", |site| ids(site.store, "another") == [2]);
    assert_eq!(site.store.check(&mut |_, _| true).unwrap(), [""; 0]);

    // The day of another year, in a new folder.
    let before = files(site.dir.path());
    let other = site.dir.path().join("logbooks/Shift/2009");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("090101a.log"), entry(3, "", "", "new year")).unwrap();
    site.until("another year", |site| ids(site.store, "year") == [3]);
    fs::write(other.join("090101a.log"), entry(3, "", "", "new year") + &entry(4, "", "", "its second day")).unwrap();
    site.until("another entry there", |site| ids(site.store, "\"second day\"") == [4]);
    fs::remove_dir_all(other).unwrap();
    site.until("the file of a day gone", |site| ids(site.store, "year OR day").is_empty());
    assert_eq!(files(site.dir.path()), before, "the source is never written to");
}

#[test]
fn what_is_half_written_is_waited_for() {
    let first = entry(1, "", "", "first") + &entry(2, "", "", "second");
    let mut site = Site::new(&first);
    let new = entry(3, "", "", "whole text");
    for piece in [&new[..30], &new[30..new.len() - 5], &new[new.len() - 5..]] {
        site.append(piece);
        // An incomplete entry that was seen once is not imported yet.
        site.look();
    }
    site.until("the whole entry", |site| ids(site.store, "\"whole text\"") == [3]);
    assert_eq!(site.history(3), [Change::Imported]);
    // elogd changes an entry by cutting the file there, and writing its end again.
    fs::write(site.day(), "").unwrap();
    site.look();
    fs::write(site.day(), first.replace("first", "erste") + &new).unwrap();
    site.until("the change", |site| ids(site.store, "erste") == [1]);
    for _ in 0..40 {
        site.look();
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(
        (site.sum(|told| told.deleted), site.history(2), site.history(3)),
        (0, vec![Change::Imported], vec![Change::Imported])
    );
}

#[test]
fn attachments_that_come_late_are_taken_late() {
    let mut site = Site::new("");
    site.append(&entry(1, "", "080910_000100_a.txt", "see the file"));
    site.until("the entry", |site| ids(site.store, "file") == [1]);
    assert!(site.store.entry(&EntryRef::new("Shift", 1)).unwrap().content.attachments[0].sha.is_none());
    fs::write(site.dir.path().join("logbooks/Shift/2008/080910_000100_a.txt"), "bytes").unwrap();
    site.until("its file", |site| {
        site.store.entry(&EntryRef::new("Shift", 1)).unwrap().content.attachments.first().is_some_and(|file| file.size == 5)
    });
}

#[test]
fn what_was_changed_here_stays_and_is_told() {
    let mut site = Site::new(&(entry(1, "", "", "first") + &entry(2, "", "", "second")));
    for id in [1, 2] {
        let at = EntryRef::new("Shift", id);
        let content = Content { text: "mine".to_owned(), ..site.store.entry(&at).unwrap().content };
        site.store.edit(&at, content, vec![], "zoe", None).unwrap();
    }
    fs::write(site.day(), entry(2, "", "", "changed there")).unwrap();
    site.until("both conflicts", |site| site.sum(|told| told.conflicts) == 2);
    assert_eq!((ids(site.store, "mine"), site.sum(|told| told.deleted)), (vec![2, 1], 0));
}

#[test]
fn an_entry_that_becomes_too_long_keeps_what_an_entry_can_have() {
    let mut site = Site::new(&(entry(1, "", "", "short") + &entry(2, "", "", "second")));
    // The first text is too long for the store. The second is also too long for the reader.
    for megabytes in [17, 25] {
        let long = "long text, ".repeat((megabytes << 20) / 11);
        fs::write(site.day(), entry(1, "", "", &long) + &entry(2, "", "", &format!("changed {megabytes}"))).unwrap();
        site.until("the change", |site| ids(site.store, &format!("changed {megabytes}")) == [2]);
        let text = |site: &Site| site.store.entry(&EntryRef::new("Shift", 1)).unwrap().content.text;
        site.until("the long text", |site| text(site).len() == 16 << 20);
        assert!(long.starts_with(&text(&site)) && site.sum(|told| told.deleted) == 0, "{megabytes} MiB");
    }
    // An entry that is surely missing is deleted.
    fs::write(site.day(), entry(2, "", "", "alone")).unwrap();
    site.until("the deletion", |site| site.sum(|told| told.deleted) == 1);
}

#[test]
fn a_disk_that_is_taken_away_deletes_nothing() {
    let all: String = (1..=20).map(|id| entry(id, "", "", "kept")).collect();
    let mut site = Site::new(&all);
    fs::rename(site.dir.path().join("logbooks/Shift"), site.dir.path().join("away")).unwrap();
    site.until("word of it", |site| {
        site.told.iter().flat_map(|told| &told.faults).any(|fault| fault.what.contains("nothing is deleted"))
    });
    for _ in 0..40 {
        site.look();
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!((ids(site.store, "kept").len(), site.sum(|told| told.deleted)), (20, 0));
    // The folder returns, with one more entry.
    fs::rename(site.dir.path().join("away"), site.dir.path().join("logbooks/Shift")).unwrap();
    site.append(&entry(21, "", "", "after it came back"));
    site.until("what came after", |site| ids(site.store, "after") == [21]);
}

#[test]
fn a_changed_configuration_makes_books_and_attributes() {
    let mut site = Site::new(&entry(1, "", "", "first"));
    fs::create_dir_all(site.dir.path().join("logbooks/Other/2008")).unwrap();
    fs::write(site.dir.path().join("logbooks/Other/2008/080910a.log"), entry(7, "", "", "elsewhere")).unwrap();
    let config = "[Shift]\nAttributes = Author, Subject, Run\n[Other]\nAttributes = Author\n";
    fs::write(site.dir.path().join("elogd.cfg"), config).unwrap();
    site.until("another configuration", |site| site.again == 1);
    assert_eq!((ids(site.store, "elsewhere"), site.store.book("Shift").unwrap().attributes.len()), (vec![7], 3));
    site.append(&entry(2, "", "", "still followed"));
    site.until("a new entry", |site| ids(site.store, "followed") == [2]);
}

#[test]
fn a_changed_configuration_changes_the_order_of_tabs_and_the_files_that_it_names() {
    use tampu_elog::{site_files, site_record};

    let mut site = Site::new(&entry(1, "", "", "first"));
    fs::create_dir_all(site.dir.path().join("logbooks/Other")).unwrap();
    fs::write(site.dir.path().join("hello.html"), "<h1>Hello</h1>").unwrap();
    assert_eq!(site_record::stored(site.store).unwrap().books, ["Shift"]);
    let config = "[global]\nWelcome title = ours\n[Other]\nAttributes = Author\n[Shift]\nAttributes = Author, Subject\nWelcome page = hello.html\n";
    fs::write(site.dir.path().join("elogd.cfg"), config).unwrap();
    site.until("another configuration", |site| site.again == 1);
    let record = site_record::stored(site.store).unwrap();
    assert_eq!(
        (record.books.join(" "), record.global),
        ("Other Shift".to_owned(), vec![("Welcome title".to_owned(), "ours".to_owned())])
    );
    assert_eq!(site_files::stored(site.store, "hello.html").unwrap().unwrap(), b"<h1>Hello</h1>");
    site.append(&entry(2, "", "", "still followed"));
    site.until("a new entry", |site| ids(site.store, "followed") == [2]);
}
