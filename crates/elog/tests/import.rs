//! A site's ELOG taken over and taken back: real files, all odd cases, twice, cut off and gone on with.

mod support;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use support::ids;
use tampu_elog::{
    export::{ExportError, export_elog},
    import::{ImportError, ImportReport, ImportSource, import_elog},
    options::OptionVerdict,
    site_zone::SourceZone,
};
use tampu_logbook::{
    book::AttributeKind,
    entry::{Content, Encoding, EntryRef},
    store::{Drafts, Entries, Maintenance, PagePart, Store, StoreError, sqlite::SqliteStore},
};

const LINE: &str = "========================================";

fn entry(id: u32, date: &str, links: &str, author: &str, attachment: &str, text: &str) -> String {
    format!(
        "$@MID@$: {id}\nDate: {date}\n{links}Author: {author}\nType: Routine\nSystem: A | B\nSubject: number {id}\nAttachment: {attachment}\n\
         Encoding: plain\n{LINE}\n{text}\n"
    )
}

/// A sound site: two books, replies over days, attachments, both line ends.
fn sound(dir: &Path) -> ImportSource {
    let shift = dir.join("logbooks/Shift");
    fs::create_dir_all(shift.join("2008")).unwrap();
    fs::create_dir_all(shift.join("2009")).unwrap();
    fs::create_dir_all(dir.join("logbooks/other")).unwrap();
    let first = entry(1, "Wed, 10 Sep 2008 00:20:50 +0200", "Reply to: 2, 3\n", "Zoe", "", "the HV tripped")
        + &entry(2, "Wed, 10 Sep 2008 08:20:50 +0200", "In reply to: 1\n", "Max", "080910_082051_a_plot.png", "see the plot\n\n");
    fs::write(shift.join("2008/080910a.log"), first).unwrap();
    fs::write(shift.join("2008/080910_082051_a_plot.png"), "not really a picture").unwrap();
    let second = entry(3, "Thu, 01 Jan 2009 00:00:01 +0100", "In reply to: 1\n", "Zoë Müller", "", "$5 = all good");
    fs::write(shift.join("2009/090101a.log"), second).unwrap();
    fs::write(
        dir.join("elogd.cfg"),
        "[global]\nport = 8080\nTop group All = Shift, Other\nSMTP host = mail\n[Shift]\nAttributes = Author, Type, System, Subject\n\
         Options Type = Routine, Problem\nMOptions System = A, B, C\nPreset Author = $long_name\nCoffee = 1\n\
         [Other]\nSubdir = other\nComment = an empty one\n",
    )
    .unwrap();
    ImportSource { config: Some(dir.join("elogd.cfg")), logbooks: dir.join("logbooks"), ..ImportSource::default() }
}

fn run(store: &dyn Store, source: &ImportSource) -> ImportReport {
    import_elog(store, source, &mut |_, _| true).unwrap()
}

fn counts(report: &ImportReport) -> (u64, u64, u64, u64) {
    let book = report.books.iter().max_by_key(|book| book.entries).unwrap();
    (book.new, book.changed, book.same, book.conflicts + book.gone)
}

/// All files of a folder and what is in them.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut folders, mut found) = (vec![dir.to_owned()], BTreeMap::new());
    while let Some(folder) = folders.pop() {
        for item in fs::read_dir(folder).unwrap() {
            let path = item.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(dir).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn a_site_is_taken_over_and_back() {
    let dir = tempfile::tempdir().unwrap();
    let source = sound(dir.path());
    let before = files(dir.path());
    let data = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(data.path()).unwrap();
    let report = run(&store, &source);
    assert_eq!(files(dir.path()), before, "the source is never written to");
    assert_eq!(counts(&report), (3, 0, 0, 0));
    assert_eq!((report.books.len(), report.books[0].attachments, &report.books[0].faults), (2, 1, &vec![]));
    let options = report.options.as_ref().unwrap();
    let of =
        |verdict| options.options.iter().filter(|one| one.verdict == verdict).map(|one| one.option.as_str()).collect::<Vec<_>>();
    assert_eq!((of(OptionVerdict::Replaced), of(OptionVerdict::Unknown)), (vec!["port", "SMTP host"], vec!["Coffee"]));

    let book = store.book("Shift").unwrap();
    assert_eq!((book.group.as_deref(), book.attributes[2].kind), (Some("All"), AttributeKind::Multiple));
    let second = store.entry(&EntryRef::new("Shift", 2)).unwrap();
    assert_eq!(
        (second.parent, second.thread, second.zone, second.date.to_acs().as_str()),
        (Some(1), 1, 120, "2008-09-10T06:20:50.000")
    );
    assert_eq!(second.content.attribute("system").unwrap().values, ["A", "B"]);
    assert_eq!((second.content.attachments[0].name.as_str(), second.content.encoding), ("a_plot.png", Encoding::Plain));
    assert_eq!(
        (ids(&store, "thread:1"), ids(&store, "author:muller"), ids(&store, "tripped")),
        (vec![3, 2, 1], vec![3], vec![1])
    );
    assert_eq!(store.post(support::entry("Shift", "Zoe", "s", "next"), vec![], "zoe").unwrap().id, 4);
    store.delete(&EntryRef::new("Shift", 4), "zoe", false).unwrap();

    // The export equals elogd's files, byte by byte.
    let back = tempfile::tempdir().unwrap();
    let exported = export_elog(&store, &[], back.path(), &mut |_, _| true).unwrap();
    assert_eq!((exported.entries, exported.attachments, &exported.notes), (3, 1, &vec![]));
    let (mut old, mut new) = (before, files(back.path()));
    let (_, config) = (old.remove(Path::new("elogd.cfg")), new.remove(Path::new("elogd.cfg")).unwrap());
    assert_eq!(new, old);
    let config = String::from_utf8(config).unwrap();
    assert!(config.contains("MOptions System = A, B, C\n") && config.contains("Preset Author = $long_name\n"), "{config}");
    assert!(matches!(export_elog(&store, &[], back.path(), &mut |_, _| true), Err(ExportError::NotEmpty(_))));

    // An import of the export into another store has the same result.
    let again = ImportSource {
        config: Some(back.path().join("elogd.cfg")),
        logbooks: back.path().join("logbooks"),
        ..ImportSource::default()
    };
    let data = tempfile::tempdir().unwrap();
    let copy = SqliteStore::open(data.path()).unwrap();
    assert_eq!(counts(&run(&copy, &again)), (3, 0, 0, 0));
    for id in 1..=3 {
        let at = EntryRef::new("Shift", id);
        assert_eq!(copy.entry(&at).unwrap().content, store.entry(&at).unwrap().content);
    }
}

#[test]
fn importing_again_takes_only_what_changed() {
    let dir = tempfile::tempdir().unwrap();
    let source = sound(dir.path());
    let data = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(data.path()).unwrap();
    // An import that was stopped early can be continued.
    let mut asked = 0;
    let report = import_elog(&store, &source, &mut |_, _| {
        asked += 1;
        asked < 4
    });
    assert!(report.unwrap().interrupted);
    let report = run(&store, &source);
    assert_eq!(report.books[0].new + report.books[0].same, 3);
    assert!(report.books[0].same > 0, "what was there is not taken twice");
    assert_eq!(counts(&run(&store, &source)), (0, 0, 3, 0));

    let file = dir.path().join("logbooks/Shift/2008/080910a.log");
    let text = fs::read_to_string(&file).unwrap().replace("tripped", "came back").replace("see the plot", "look");
    fs::write(&file, text + &entry(5, "Wed, 10 Sep 2008 09:00:00 +0200", "", "New", "", "fresh")).unwrap();
    let two = EntryRef::new("Shift", 2);
    let content = Content { text: "edited here".to_owned(), ..store.entry(&two).unwrap().content };
    store.edit(&two, content, vec![], "zoe", None).unwrap();
    assert_eq!(counts(&run(&store, &source)), (1, 1, 1, 1));
    assert_eq!((ids(&store, "\"came back\""), ids(&store, "tripped"), ids(&store, "fresh")), (vec![1], vec![], vec![5]));
    assert_eq!(store.entry(&two).unwrap().content.text, "edited here");
    assert_eq!(store.history_page(&EntryRef::new("Shift", 1), PagePart::default()).unwrap().revisions.len(), 2);
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
}

#[test]
fn every_odd_case_is_told_and_costs_only_itself() {
    let dir = tempfile::tempdir().unwrap();
    let book = dir.path().join("odd");
    fs::create_dir_all(book.join("2001")).unwrap();
    fs::create_dir_all(book.join("archive")).unwrap();
    let mut file: Vec<u8> = b"some junk before\n".to_vec();
    let mut add = |text: String| file.extend_from_slice(text.as_bytes());
    add(entry(1, "Thu Nov 08 18:37:57 2001", "", "old date form", "", "ctime"));
    add(entry(2, "no date at all, whatever it says", "", "dateless", "", "dateless"));
    add(entry(3, "Thu, 08 Nov 2001 10:00:00 +0100", "In reply to: 77\n", "orphan", "", "orphan"));
    add(entry(4, "Thu, 08 Nov 2001 11:00:00 +0100", "In reply to: 5\n", "circle", "", "circle one"));
    add(entry(5, "Thu, 08 Nov 2001 12:00:00 +0100", "In reply to: 4\n", "circle", "", "circle two"));
    add(entry(6, "Thu, 08 Nov 2001 13:00:00 +0100", "", "missing", "011108_130000_gone.txt,../../etc/passwd", "missing file"));
    add(entry(6, "Thu, 08 Nov 2001 13:00:00 +0100", "", "twice", "", "twice"));
    add(entry(7, "Thu, 08 Nov 2001 14:00:00 +0100", "", "forger", "", "$@MID@$: 99\nAuthor: forged\nnot an entry"));
    add(entry(7, "Thu, 08 Nov 2001 14:00:00 +0100", "", "forger", "", "$@MID@$: 99\nAuthor: forged\nnot an entry"));
    add(entry(6, "Thu, 08 Nov 2001 13:00:00 +0100", "In reply to: 1\n", "bad number", "", "bad number").replace("$: 6", "$: 0"));
    add(entry(14, "Thu, 08 Nov 2001 21:00:00 +0100", "", "stray", "", "x").replace("Encoding", "a stray line\nEncoding"));
    add(entry(8, "Thu, 08 Nov 2001 15:00:00 +0100", "", "locked", "", "locked")
        .replace("Encoding", "Locked by: Max on pc7\nEncoding"));
    add(entry(9, "Thu, 08 Nov 2001 16:00:00 +0100", "", "drafter", "", "draft text").replace("Encoding", "Draft: zoe\nEncoding"));
    add(entry(10, "Thu, 08 Nov 2001 17:00:00 +0100", "", "windows", "", "line ends").replace('\n', "\r\n"));
    add(entry(11, "Thu, 08 Nov 2001 18:00:00 +0100", "", "odd encoding", "", "x").replace("plain", "rot13"));
    add(entry(12, "Thu, 08 Nov 2001 19:00:00 +0100", "", "headless", "", "x").replace(LINE, "===="));
    add(entry(13, "Thu, 08 Nov 2001 20:00:00 +0100", "", "Latin M?ller", "", "mixed"));
    let place = file.windows(7).position(|window| window == b"M?ller\n").unwrap();
    file[place + 1] = 0xfc;
    fs::write(book.join("2001/011108a.log"), &file).unwrap();
    // The flat layout of older ELOG, and files that elogd ignores.
    fs::write(book.join("020101a.log"), entry(20, "Tue, 01 Jan 2002 00:00:00 +0100", "", "flat", "020101_000000_f.txt", "flat"))
        .unwrap();
    fs::write(book.join("020101_000000_f.txt"), "flat file").unwrap();
    fs::write(book.join("archive/020102a.log"), entry(21, "Wed, 02 Jan 2002 00:00:00 +0100", "", "unseen", "", "unseen"))
        .unwrap();
    fs::write(book.join("notes.log"), "no entries").unwrap();

    let data = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(data.path()).unwrap();
    let source =
        ImportSource { logbooks: dir.path().to_owned(), zone: SourceZone::chosen("+01:00").unwrap(), ..ImportSource::default() };
    let report = run(&store, &source);
    let book = &report.books[0];
    let told: Vec<String> = book.faults.iter().map(ToString::to_string).collect();
    for expected in [
        "bytes before the first entry",
        "entry 2: invalid date 'no date at all, whatever it says': the day of the file is used",
        "entry 3: it replies to 77, which is missing",
        "its replies lead back to it",
        "entry 6: attachment '011108_130000_gone.txt' is missing",
        "entry 6: attachment '../../etc/passwd' is missing",
        "entry 6 occurs a second time: it is entry 1001 here",
        "entry 7 occurs a second time, as it is: read once",
        "entry '0' has no valid number (1 to 2147483647): it is entry 1002 here",
        "entry 14: a line of the head without ':': 'a stray line' kept as 'Lines without a name'",
        "the mark of an entry without a number and a date",
        "entry 8: it was locked by Max on pc7",
        "entry 9: imported as a draft of zoe",
        "entry 11: unknown encoding 'rot13'",
        "entry 12: no line of 40 '='",
    ] {
        assert!(told.iter().any(|fault| fault.contains(expected)), "{expected} is not in {told:#?}");
    }
    assert_eq!((book.entries, book.new, book.drafts), (17, 16, 1));
    assert_eq!(book.renumbered, [1001, 1002]);
    let lines: Vec<&str> = told.iter().filter(|fault| fault.contains("is entry 100")).map(String::as_str).collect();
    assert!(lines.iter().all(|line| line.contains("011108a.log") && line.contains("line ")), "{lines:?}");
    let read = |id: u32| store.entry(&EntryRef::new("odd", id)).unwrap();
    assert_eq!(read(1).date.to_acs(), "2001-11-08T17:37:57.000");
    assert_eq!((read(3).parent, read(3).thread), (None, 3));
    assert_eq!(read(4).thread, read(5).thread);
    assert!(read(6).content.attachments.iter().all(|attachment| attachment.sha.is_none()));
    assert_eq!(read(6).content.attachments[1].name, "passwd");
    assert!(read(7).content.text.ends_with("not an entry"));
    assert_eq!((read(6).content.text.trim(), read(1001).content.text.trim()), ("missing file", "twice"));
    assert_eq!((read(1002).content.text.trim(), read(1002).parent), ("bad number", Some(1)));
    assert_eq!(read(14).content.attribute("Lines without a name").unwrap().values, ["a stray line"]);
    assert_eq!(read(10).content.attribute("Author").unwrap().values, ["windows"]);
    assert_eq!(read(13).content.attribute("Author").unwrap().values, ["Latin Müller"]);
    assert_eq!(read(20).content.attachments[0].size, 9);
    assert!(matches!(store.entry(&EntryRef::new("odd", 21)), Err(StoreError::NoEntry(_))));
    assert_eq!(store.drafts("zoe").unwrap()[0].content.text, "draft text");
    // A second import adds nothing, and no second draft.
    let report = run(&store, &source);
    assert_eq!((report.books[0].new, report.books[0].drafts, report.books[0].same), (0, 0, 16));
    assert_eq!(report.books[0].renumbered, [1001, 1002], "the numbers stay");
    assert_eq!(store.check(&mut |_, _| true).unwrap(), Vec::<String>::new());
    // An export reports the values that it cannot hold, and a forged entry does not become an entry.
    let back = tempfile::tempdir().unwrap();
    let exported = export_elog(&store, &["odd".to_owned()], back.path(), &mut |_, _| true).unwrap();
    assert!(exported.notes.iter().any(|note| note.contains("the mark of an entry")), "{:?}", exported.notes);
    let unknown = ImportSource { only: vec!["no such".to_owned()], ..source };
    assert!(matches!(import_elog(&store, &unknown, &mut |_, _| true), Err(ImportError::NoBook(_))));
}

#[test]
fn an_odd_name_of_an_attachment_costs_neither_the_entry_nor_its_replies() {
    let dir = tempfile::tempdir().unwrap();
    let shift = dir.path().join("logbooks/Shift");
    fs::create_dir_all(&shift).unwrap();
    let date = "Wed, 10 Sep 2008 00:20:50 +0200";
    let mut day = String::new();
    let names = ["080910_002050_a\tb.txt", "080910_002050_a\0b.txt", "\u{1b}[2J", "\u{7f}"];
    for (id, name) in (1..).zip(names) {
        day += &entry(id * 2 - 1, date, "", "Zoe", name, "the text");
        day += &entry(id * 2, date, &format!("In reply to: {}\n", id * 2 - 1), "Max", "", "a reply");
    }
    fs::write(shift.join("080910a.log"), &day).unwrap();
    fs::write(shift.join(names[0]), "its bytes").unwrap();
    let store = SqliteStore::open(&dir.path().join("store")).unwrap();
    let source = ImportSource { logbooks: dir.path().join("logbooks"), ..ImportSource::default() };
    let report = run(&store, &source);
    assert_eq!(counts(&report), (8, 0, 0, 0));
    assert!(report.books[0].faults.iter().any(|fault| fault.what.contains("a\\tb.txt': its name is kept without")));
    let first = store.entry(&EntryRef::new("Shift", 1)).unwrap();
    let file = &first.content.attachments[0];
    assert_eq!((file.name.as_str(), file.elog.as_deref(), file.size), ("ab.txt", Some("080910_002050_ab.txt"), 9));
    assert_eq!(store.entry(&EntryRef::new("Shift", 2)).unwrap().parent, Some(1));
    assert_eq!(store.check(&mut |_, _| true).unwrap(), Vec::<String>::new());
    assert_eq!(counts(&run(&store, &source)), (0, 0, 8, 0));
}

#[test]
fn a_reply_to_an_entry_that_cannot_be_stored_begins_a_thread() {
    let dir = tempfile::tempdir().unwrap();
    let shift = dir.path().join("logbooks/Shift");
    fs::create_dir_all(&shift).unwrap();
    let date = "Wed, 10 Sep 2008 00:20:50 +0200";
    // More attachments than an entry can have.
    let many = (0..1001).map(|n| format!("080910_002050_{n}.txt")).collect::<Vec<_>>().join(",");
    let day = entry(1, date, "", "Zoe", &many, "the text") + &entry(2, date, "In reply to: 1\n", "Max", "", "a reply");
    fs::write(shift.join("080910a.log"), day).unwrap();
    let store = SqliteStore::open(&dir.path().join("store")).unwrap();
    let source = ImportSource { logbooks: dir.path().join("logbooks"), ..ImportSource::default() };
    let report = run(&store, &source);
    assert_eq!(counts(&report), (1, 0, 0, 0));
    let whats: Vec<&str> = report.books[0].faults.iter().map(|fault| fault.what.as_str()).collect();
    assert!(whats.iter().any(|what| what.contains("entry 1: 1001 attachments")), "{whats:?}");
    assert!(whats.iter().any(|what| what.contains("entry 2: it replies to 1, which is missing")), "{whats:?}");
    let reply = store.entry(&EntryRef::new("Shift", 2)).unwrap();
    assert_eq!((reply.parent, reply.thread), (None, 2));
    assert_eq!(store.check(&mut |_, _| true).unwrap(), Vec::<String>::new());
}

#[test]
fn an_import_reports_who_may_read_and_write() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("logbooks")).unwrap();
    fs::write(
        dir.path().join("elogd.cfg"),
        "[Open]\nAttributes = A\n[Shift]\nPassword file = passwd\n[Old]\nRead password = c2VjcmV0\n\
         [Few]\nLogin user = zoe, max\nHosts deny = ALL\n[Menu]\nPassword file = passwd\nGuest menu commands = List\nRestrict edit = 1\n",
    )
    .unwrap();
    let store = SqliteStore::open(&dir.path().join("store")).unwrap();
    let config = Some(dir.path().join("elogd.cfg"));
    let source = ImportSource { config, logbooks: dir.path().join("logbooks"), ..ImportSource::default() };
    let by_default = "guests: what [book] guests of the hub says, 'read' by default; users: read write edit-own edit-any";
    for (book, expected) in run(&store, &source).books.iter().zip([
        "guests: read write edit-any, without a login as in elogd; users: read write edit-own edit-any".to_owned(),
        "guests: no rights, because of 'Password file'; users: read write edit-own edit-any".to_owned(),
        "guests: no rights, because of 'Read password'; users: read write edit-own edit-any".to_owned(),
        "guests: no rights, because of 'Login user'; users: read write edit-own edit-any, only zoe, max; 'Hosts deny' limits the addresses of clients"
            .to_owned(),
        // `Restrict edit` leaves each entry to its author.
        by_default.replace(" edit-any", ""),
    ]) {
        assert_eq!(book.access.as_ref().unwrap().to_string(), expected, "{}", book.book);
    }
}
