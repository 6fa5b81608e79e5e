//! Imports that meet an odd source, or a store in which something has happened since the last one.

mod support;

use std::{fs, os::unix::fs::symlink, path::Path};

use support::ids;
use tampu_elog::import::{BookReport, ImportSource, import_elog};
use tampu_logbook::{
    book::{AttributeDef, AttributeKind, Book},
    entry::{Content, EntryRef},
    store::{Drafts, Entries, Maintenance, PagePart, sqlite::SqliteStore},
};
use tampu_types::Time;

const LINE: &str = "========================================";

fn entry(id: u32, links: &str, attachment: &str, text: &str) -> String {
    let (hour, minute) = (id / 60 % 24, id % 60);
    format!(
        "$@MID@$: {id}\nDate: Wed, 10 Sep 2008 {hour:02}:{minute:02}:00 +0200\n{links}Author: Zoe\nSubject: number {id}\n\
         Attachment: {attachment}\nEncoding: plain\n{LINE}\n{text}\n"
    )
}

/// A folder with one book, `Shift`, and a store.
struct Site {
    dir: tempfile::TempDir,
    _data: tempfile::TempDir,
    store: SqliteStore,
    source: ImportSource,
}

impl Site {
    fn new() -> Site {
        let (dir, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(dir.path().join("Shift/2008")).unwrap();
        let source = ImportSource { logbooks: dir.path().to_owned(), ..ImportSource::default() };
        Site { store: SqliteStore::open(data.path()).unwrap(), dir, _data: data, source }
    }

    fn day(&self, text: &str) {
        fs::write(self.dir.path().join("Shift/2008/080910a.log"), text).unwrap();
    }

    fn import(&self) -> BookReport {
        let report = import_elog(&self.store, &self.source, &mut |_, _| true).unwrap();
        assert_eq!(self.store.check(&mut |_, _| true).unwrap(), [""; 0]);
        report.books.into_iter().next().unwrap()
    }

    fn edit(&self, id: u32, text: &str) {
        let at = EntryRef::new("Shift", id);
        let content = Content { text: text.to_owned(), ..self.store.entry(&at).unwrap().content };
        self.store.edit(&at, content, vec![], "zoe", None).unwrap();
    }
}

fn told(report: &BookReport, what: &str) -> bool {
    report.faults.iter().any(|fault| fault.to_string().contains(what))
}

#[test]
fn an_entry_with_a_number_beyond_elogs_gets_another_one() {
    let site = Site::new();
    let huge = entry(1, "", "", "huge").replace("$: 1\n", "$: 4294967294\n");
    site.day(&(huge.clone() + &huge.replace("4294967294", "2147483648") + &entry(2, "", "", "sound")));
    let report = site.import();
    assert!(told(&report, "no valid number (1 to 2147483647): it is entry 1001 here"), "{:?}", report.faults);
    assert_eq!((report.new, report.faults.len()), (3, 2));
    assert_eq!((ids(&site.store, "sound"), ids(&site.store, "huge")), (vec![2], vec![1002, 1001]));
    // Far from the end of all numbers.
    assert_eq!(site.store.post(support::entry("Shift", "Zoe", "s", "next"), vec![], "zoe").unwrap().id, 1003);
}

#[test]
fn years_on_another_disk_are_read_and_a_folder_that_cannot_be_costs_itself_alone() {
    let site = Site::new();
    site.day(&entry(1, "", "", "here"));
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("090101a.log"), entry(2, "", "", "there")).unwrap();
    symlink(other.path(), site.dir.path().join("Shift/2009")).unwrap();
    symlink("missing", site.dir.path().join("Shift/2010")).unwrap();
    let report = site.import();
    assert_eq!((report.new, ids(&site.store, "there")), (2, vec![2]));
    assert!(told(&report, "2010") && report.faults.len() == 1, "{:?}", report.faults);
}

#[test]
fn one_attachment_of_two_entries_is_taken_though_the_first_is_not() {
    let site = Site::new();
    for name in ["080910_000100_a.txt", "080910_000200_b.txt"] {
        fs::write(site.dir.path().join("Shift/2008").join(name), "the same bytes").unwrap();
    }
    site.day(&entry(1, "", "", "first"));
    site.import();
    site.edit(1, "edited here");
    site.day(&(entry(1, "", "080910_000100_a.txt", "changed there") + &entry(2, "", "080910_000200_b.txt", "new")));
    let report = site.import();
    assert_eq!((report.new, report.conflicts, report.conflicting.as_slice()), (1, 1, &[1][..]));
    assert_eq!(site.store.entry(&EntryRef::new("Shift", 2)).unwrap().content.attachments[0].size, 14);
}

#[test]
fn an_answer_to_what_was_deleted_here_begins_a_thread() {
    let site = Site::new();
    let first = entry(1, "Reply to: 2\n", "", "root") + &entry(2, "In reply to: 1\n", "", "middle");
    site.day(&first);
    site.import();
    site.store.delete(&EntryRef::new("Shift", 1), "zoe", true).unwrap();
    site.day(&(first + &entry(3, "In reply to: 2\n", "", "answer") + &entry(4, "In reply to: 3\n", "", "on it")));
    let report = site.import();
    assert_eq!((report.new, report.gone), (2, 2));
    let read = |id: u32| site.store.entry(&EntryRef::new("Shift", id)).unwrap();
    assert_eq!((read(3).parent, read(3).thread, read(4).parent, read(4).thread), (None, 3, Some(3), 3));
    assert_eq!(ids(&site.store, "thread:3"), [4, 3]);
    // A new parent of an entry in the source moves all its replies, too.
    let other = entry(3, "", "", "answer") + &entry(4, "In reply to: 3\n", "", "on it") + &entry(5, "", "", "another");
    site.day(&other);
    site.import();
    site.day(&other.replace(
        "$: 3\nDate: Wed, 10 Sep 2008 00:03:00 +0200\n",
        "$: 3\nDate: Wed, 10 Sep 2008 00:03:00 +0200\nIn reply to: 5\n",
    ));
    let report = site.import();
    assert_eq!((report.changed, read(3).parent, read(3).thread, read(4).thread), (1, Some(5), 5, 5));
}

#[test]
fn without_a_configuration_the_book_stays_what_it_is() {
    let site = Site::new();
    let mut book = Book::new("shift", vec![AttributeDef::with_options("Author", AttributeKind::Options, &["Zoe", "Max"])]);
    book.comment = "kept".to_owned();
    site.store.put_book(&book).unwrap();
    site.day(&entry(1, "", "", "text"));
    assert_eq!(site.import().new, 1);
    let after = site.store.book("Shift").unwrap();
    assert_eq!((after.attributes[0].kind, after.attributes[0].options.len()), (AttributeKind::Options, 2));
    assert_eq!((after.comment.as_str(), after.attributes[1].name.as_str(), after.attributes.len()), ("kept", "Subject", 2));
}

#[test]
fn a_book_with_a_name_that_is_none_costs_itself_alone() {
    let site = Site::new();
    site.day(&entry(1, "", "", "text"));
    let config = site.dir.path().join("elogd.cfg");
    fs::write(&config, "[a/b]\nSubdir = other\n[Shift]\n").unwrap();
    let source = ImportSource { config: Some(config), ..site.source.clone() };
    let report = import_elog(&site.store, &source, &mut |_, _| true).unwrap();
    assert!(told(&report.books[0], "the logbook is left out"));
    assert_eq!(report.books[1].new, 1);
}

#[test]
fn an_answer_in_elog_is_no_change_of_what_it_answers() {
    let site = Site::new();
    site.day(&entry(1, "", "", "root"));
    site.import();
    site.edit(1, "edited here");
    let answered = entry(1, "Reply to: 2\n", "", "root").replace("Encoding", "Locked by: Max on pc7\nEncoding");
    site.day(&(answered + &entry(2, "In reply to: 1\n", "", "answer")));
    let report = site.import();
    assert_eq!((report.new, report.same, report.conflicts), (1, 1, 0));
    assert_eq!(site.store.history_page(&EntryRef::new("Shift", 1), PagePart::default()).unwrap().revisions.len(), 2);
    // An entry that has become equal on both sides is no conflict, either, and follows the source again.
    site.day(&entry(1, "", "", "edited here"));
    assert_eq!((site.import().same, site.store.entry(&EntryRef::new("Shift", 1)).unwrap().revision), (1, 1));
    site.day(&entry(1, "", "", "changed there"));
    assert_eq!(site.import().changed, 1);
}

#[test]
fn drafts_follow_the_source_until_somebody_has_them_in_hand() {
    let site = Site::new();
    let draft = |id: u32, text: &str| entry(id, "", "", text).replace("Encoding", "Draft: zoe\nEncoding");
    site.day(&(draft(1, "begun") + &draft(2, "other")));
    assert_eq!((site.import().drafts, site.import().drafts), (2, 0));
    site.day(&(draft(1, "begun, saved again") + &draft(2, "other")));
    assert_eq!(site.import().drafts, 1);
    let mut drafts = site.store.drafts("zoe").unwrap();
    drafts.sort_by_key(|draft| draft.number);
    assert_eq!((drafts.len(), drafts[0].content.text.as_str()), (2, "begun, saved again"));
    // A draft that was deleted here does not return; a draft that its owner continued here is left to the owner.
    site.store.drop_draft("zoe", drafts[1].number).unwrap();
    let mine = tampu_logbook::entry::Draft { saved: Time(7), ..drafts[0].clone() };
    site.store.save_draft(&mine).unwrap();
    site.day(&(draft(1, "third time") + &draft(2, "third time")));
    let report = site.import();
    assert_eq!((report.drafts, report.conflicting.as_slice(), report.gone), (0, &[1][..], 1));
    assert_eq!(site.store.drafts("zoe").unwrap(), [mine]);
    // A draft that was submitted in the source becomes an entry, and its unchanged draft here is deleted.
    site.day(&(entry(1, "", "", "submitted") + &draft(3, "kept")));
    site.import();
    site.day(&(entry(1, "", "", "submitted") + &entry(3, "", "", "submitted too")));
    site.import();
    assert_eq!((ids(&site.store, "submitted"), site.store.drafts("zoe").unwrap().len()), (vec![3, 1], 1));
}

#[test]
fn more_drafts_than_there_can_be_end_no_import() {
    let site = Site::new();
    let draft = |id: u32| entry(id, "", "", "begun").replace("Encoding", "Draft: zoe\nEncoding");
    site.day(&((1..=1003).map(draft).collect::<String>() + &entry(2000, "", "", "whole")));
    let report = site.import();
    assert_eq!((report.drafts, report.new), (1000, 1));
    assert_eq!(report.faults.iter().filter(|fault| fault.what.contains("too many drafts")).count(), 3);
}

#[test]
fn what_the_source_took_away_can_come_back_in_it() {
    let site = Site::new();
    site.day(&entry(1, "", "", "first"));
    site.import();
    site.store.delete(&EntryRef::new("Shift", 1), "import-elog", false).unwrap();
    site.day(&entry(1, "", "", "its number given again"));
    assert_eq!(site.import().new, 1);
    let history = site.store.history_page(&EntryRef::new("Shift", 1), PagePart::default()).unwrap().revisions;
    let said: Vec<&str> = history.iter().map(|revision| revision.content.text.as_str()).collect();
    assert_eq!(said, ["first", "", "its number given again"]);
    // The entry follows the source as before; an entry that a person deletes stays deleted.
    site.day(&entry(1, "", "", "changed"));
    assert_eq!(site.import().changed, 1);
    site.store.delete(&EntryRef::new("Shift", 1), "zoe", false).unwrap();
    assert_eq!((site.import().gone, ids(&site.store, "changed")), (1, vec![]));
}

#[test]
fn a_file_that_goes_away_between_the_two_readings_costs_itself_alone() {
    let site = Site::new();
    site.day(&entry(1, "", "", "goes"));
    fs::write(site.dir.path().join("Shift/2008/080911a.log"), entry(2, "", "", "stays")).unwrap();
    let goes: &Path = &site.dir.path().join("Shift/2008/080910a.log");
    let mut asked = 0;
    let report = import_elog(&site.store, &site.source, &mut |_, _| {
        asked += 1;
        if asked == 2 {
            fs::remove_file(goes).unwrap();
        }
        true
    });
    let book = &report.unwrap().books[0];
    assert!(told(book, "entry 1: the file cannot be read"), "{:?}", book.faults);
    assert_eq!((book.new, ids(&site.store, "stays")), (1, vec![2]));
}

#[test]
fn an_export_writes_nothing_that_elog_reads_as_something_else() {
    let data = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(data.path()).unwrap();
    let mut book = support::shift_book("Shift [1]");
    book.comment = "two\nlines\n[Forged]\nAttributes = none".to_owned();
    book.group = Some("All\n[Also forged]".to_owned());
    book.attributes[0].comment = "who\r\n[Third]".to_owned();
    book.attributes[1].options.push("x\n[Fourth]".to_owned());
    book.elog = vec![("Theme\n[Fifth]".to_owned(), "default".to_owned()), ("[Sixth]".to_owned(), "x".to_owned())];
    store.put_book(&book).unwrap();
    store.put_book(&support::shift_book("global")).unwrap();
    let said = ["$@MID@$: 99", &"=".repeat(40), &"=".repeat(95), &format!("{} x", "=".repeat(40))].map(str::to_owned);
    for value in &said {
        let new = support::entry("Shift [1]", value, "s", "$@MID@$: 98\nDate: Wed, 10 Sep 2008 00:20:50 +0200");
        store.post(new, vec![], "zoe").unwrap();
    }
    let mut odd = support::entry("Shift [1]", "Zoe", "s", "odd name");
    odd.content.attributes.push(tampu_logbook::book::EntryAttribute::new("$@MID@$", "97"));
    store.post(odd, vec![], "zoe").unwrap();

    let back = tempfile::tempdir().unwrap();
    let exported = tampu_elog::export::export_elog(&store, &[], back.path(), &mut |_, _| true).unwrap();
    let config = fs::read_to_string(back.path().join("elogd.cfg")).unwrap();
    let sections: Vec<&str> = config.lines().filter(|line| line.starts_with('[')).collect();
    assert_eq!(sections, ["[global]", "[Logbook global]", "[Shift _1_]"], "{config}");
    let source = ImportSource {
        config: Some(back.path().join("elogd.cfg")),
        logbooks: back.path().join("logbooks"),
        ..ImportSource::default()
    };
    let data = tempfile::tempdir().unwrap();
    let copy = SqliteStore::open(data.path()).unwrap();
    let report = import_elog(&copy, &source, &mut |_, _| true).unwrap();
    assert_eq!((report.books[1].entries, report.books[1].faults.len()), (5, 0), "{:?}", report.books[1].faults);
    for (id, value) in (1..).zip(&said) {
        let entry = copy.entry(&EntryRef::new("Shift _1_", id)).unwrap();
        let read = entry.content.attribute("Author").unwrap().joined();
        assert_eq!(read.replace("MID @", "MID@").trim_end(), value, "of entry {id}");
        assert_eq!(entry.content.text.lines().count(), 2);
    }
    // The loss that all entries in Markdown share is one line for the book.
    let markdown: Vec<&String> = exported.notes.iter().filter(|note| note.contains("Markdown")).collect();
    assert_eq!(markdown, ["logbook 'Shift [1]': 5 entries: ELOG does not know Markdown: written as plain"]);
    for what in [
        "the mark of an entry",
        "ends with the line that ends an entry's head",
        "the name is invalid in ELOG's configuration",
        "characters that its line cannot hold",
    ] {
        assert!(exported.notes.iter().any(|note| note.contains(what)), "{what}: {:?}", exported.notes);
    }
}

#[test]
fn groups_icons_and_names_of_files_go_back_as_they_came() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("logbooks")).unwrap();
    let cfg = "[global]\nGroup inner = y, x\nTop group West = z, inner\nTop group East = b, a\n[a]\nAttributes = Author\n[b]\nAttributes = Author, Mood\n\
        IOptions Mood = good.gif, bad.gif\nWelcome page = hello.html\n[x]\nAttributes = Author\n[y]\nAttributes = Author\n[z]\nAttributes = Author\n";
    fs::write(dir.path().join("elogd.cfg"), cfg).unwrap();
    let import = |root: &std::path::Path| {
        let source =
            ImportSource { config: Some(root.join("elogd.cfg")), logbooks: root.join("logbooks"), ..ImportSource::default() };
        let data = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(data.path()).unwrap();
        import_elog(&store, &source, &mut |_, _| true).unwrap();
        (data, store)
    };
    let (_data, store) = import(dir.path());
    let back = tempfile::tempdir().unwrap();
    let exported = tampu_elog::export::export_elog(&store, &[], back.path(), &mut |_, _| true).unwrap();
    assert!(exported.notes.iter().any(|note| note.contains("names files such as 'good.gif'")), "{:?}", exported.notes);
    let config = fs::read_to_string(back.path().join("elogd.cfg")).unwrap();
    assert!(config.contains("IOptions Mood = good.gif, bad.gif\n") && !config.contains("ROptions"), "{config}");
    assert!(config.contains("Welcome page = hello.html\n"));
    let (_copied, copy) = import(back.path());
    let [before, after] = [&store, &copy].map(|store| tampu_elog::site_record::stored(store).unwrap());
    assert_eq!((&before.books, &before.groups), (&after.books, &after.groups));
    assert_eq!(before.books, ["z", "y", "x", "b", "a"]);
    assert_eq!(copy.book("y").unwrap().group.as_deref(), Some("West"));
}
