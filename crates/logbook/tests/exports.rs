//! Exports of search results as files.

mod support;

use std::sync::Arc;

use support::{entry, shift_book};
use tampu_logbook::{
    book::{AttributeDef, AttributeKind, EntryAttribute},
    entry::{Content, Encoding, Entry, EntryRef, NewEntry},
    export::{
        BadFormat, Format, export, export_with,
        feed::FeedSettings,
        html::{FolderError, export_html},
    },
    search::{Search, Stop},
    store::{Attachments, Entries, Store, StoreError, sqlite::SqliteStore},
};
use tampu_types::Time;

const ENTRIES: i64 = 450;

/// A book whose entries are more than two pages, of which the last has everything.
fn store() -> (tempfile::TempDir, Arc<dyn Store>) {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    store.put_book(&shift_book("Shift")).unwrap();
    for second in 1..ENTRIES {
        let date = Some(Time::from_unix(1_221_000_000 + second, 0));
        store.post(NewEntry { date, ..entry("Shift", "Zoe", "HV \"trip\", again", "text") }, vec![], "zoe").unwrap();
    }
    let upload = store.upload(&mut &b"bytes"[..], 100).unwrap();
    let content = Content {
        attributes: vec![
            EntryAttribute::new("Author", "Max"),
            EntryAttribute { name: "System".to_owned(), values: vec!["RICH1".to_owned(), "HLT".to_owned()] },
            EntryAttribute::new("Coffee", "a | b"),
            EntryAttribute::new("Subject", "a|b *c*\t[d]"),
        ],
        encoding: Encoding::Html,
        text: "<p>one ```</p>\n<script>x</script>two &amp; ".to_owned(),
        attachments: vec![upload.attachment("plot.png", Time(0))],
        links: vec!["run:80123".parse().unwrap()],
    };
    let date = Some(Time::from_unix(1_221_000_000 + ENTRIES, 0));
    let last = NewEntry { book: "Shift".to_owned(), content, date, parent: Some(1), zone: 120 };
    store.post(last, vec![upload], "max").unwrap();
    (dir, Arc::new(store))
}

fn exported(store: &Arc<dyn Store>, search: Search, format: Format) -> String {
    let pieces: Result<Vec<Vec<u8>>, _> = export(store.clone(), search, format, Stop::default()).unwrap().collect();
    String::from_utf8(pieces.unwrap().concat()).unwrap()
}

#[test]
fn all_that_is_found_is_exported() {
    let (_dir, store) = store();
    let up = Search { descending: false, limit: 3, ..Search::default() };
    let json = exported(&store, up.clone(), Format::Json);
    let entries: Vec<Entry> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(entries.iter().map(|entry| i64::from(entry.at.id)).collect::<Vec<_>>(), (1..=ENTRIES).collect::<Vec<_>>());
    assert_eq!(entries.last(), Some(&store.entry(&EntryRef::new("Shift", 450)).unwrap()));

    let csv = exported(&store, up.clone(), Format::Csv);
    let lines: Vec<&str> = csv.split("\r\n").collect();
    assert_eq!(lines.len() as i64, ENTRIES + 2);
    assert_eq!(
        lines[0],
        "Book,ID,Date,Zone,By,Revision,Changed,Reply to,Thread,Author,Type,System,Energy,Subject,Other,Encoding,Attachments,Links,Text"
    );
    assert!(
        lines[1].starts_with(
            "Shift,1,2008-09-09T22:40:01.000,0,zoe,0,2008-09-09T22:40:01.000,,1,Zoe,,,,\"HV \"\"trip\"\", again\",,"
        ),
        "{}",
        lines[1]
    );
    assert!(csv.contains(",1,1,Max,,RICH1 | HLT,,a|b *c*\t[d],Coffee=a | b,HTML,plot.png,run:80123,\"<p>one ```</p>\n"), "{csv}");

    let last = Search { query: "author:max".to_owned(), ..up };
    let markdown = exported(&store, last.clone(), Format::Markdown);
    assert!(
        markdown.starts_with(
            "## Shift/450: a\\|b \\*c\\* \\[d\\]\n\n| | |\n|-|-|\n| Date | 2008-09-09 22:47:30 UTC |\n| Reply to | 1 |\n"
        ),
        "{markdown}"
    );
    assert!(markdown.contains("| System | RICH1 \\| HLT |\n") && markdown.contains("\n````text\n"), "{markdown}");
    assert!(markdown.contains("two &") && !markdown.contains("script"), "{markdown}");
    assert_eq!(exported(&store, last, Format::Json).lines().count(), 1);
}

#[test]
fn what_cannot_be_is_told() {
    let (_dir, store) = store();
    let bad = |search: Search| export(store.clone(), search, Format::Csv, Stop::default()).err().unwrap();
    assert!(matches!(bad(Search { query: "/(/".to_owned(), ..Search::default() }), StoreError::Query(_)));
    assert!(matches!(bad(Search { books: vec!["None".to_owned()], ..Search::default() }), StoreError::NoBook(_)));
    assert_eq!("pdf".parse::<Format>(), Err(BadFormat("pdf".to_owned())));
    // An abandoned export ends with an error, and not as if it were complete.
    let stop = Stop::default();
    let mut pieces = export(store.clone(), Search::default(), Format::Json, stop.clone()).unwrap();
    assert!(pieces.next().unwrap().is_ok());
    stop.stop();
    assert!(pieces.next().unwrap().is_err() && pieces.next().is_none());
}

/// All links of the pages of a folder, as (page, target).
fn links_of(folder: &std::path::Path) -> Vec<(std::path::PathBuf, String)> {
    let (mut found, mut waiting) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(std::fs::read_dir(&path).unwrap().map(|file| file.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "html") && !path.to_string_lossy().contains("/files/") {
            let text = std::fs::read_to_string(&path).unwrap();
            for mark in ["href=\"", "src=\""] {
                found.extend(text.split(mark).skip(1).map(|rest| (path.clone(), rest.split('"').next().unwrap().to_owned())));
            }
        }
    }
    found
}

#[test]
fn pages_work_from_a_disk() {
    let (_dir, store) = store();
    let upload = store.upload(&mut &b"<script>alert(1)</script>"[..], 100).unwrap();
    let picture = store.upload(&mut &b"picture"[..], 100).unwrap();
    let mut files = vec![upload.attachment("a*b.html", Time(0)), picture.attachment("trend plot.png", Time(0))];
    files.push(tampu_logbook::attachment::Attachment { sha: None, ..files[0].clone() });
    let content = Content {
        attributes: vec![EntryAttribute::new("Author", "Zoe"), EntryAttribute::new("Subject", "\"><script>x</script>")],
        encoding: Encoding::Markdown,
        text: "![p](attachment:trend%20plot.png) see href=\"x\" <https://example.org/> [up](../../../etc/passwd)\n\n<script>y</script>".to_owned(),
        attachments: files,
        links: vec![],
    };
    let date = Some(Time::from_unix(1_224_000_000, 0));
    let new = NewEntry { book: "Shift".to_owned(), content, date, parent: Some(450), zone: 0 };
    store.post(new, vec![upload, picture], "max").unwrap();
    store.put_book(&shift_book("..Two: <b>")).unwrap();
    let to = tempfile::tempdir().unwrap();
    let logbook: Arc<dyn tampu_logbook::store::Logbook> = store.clone();
    let mut seen = 0;
    let done = export_html(&logbook, &[], to.path(), &Stop::default(), &mut |done, total| {
        seen = done;
        done <= total
    });
    let done = done.unwrap();
    assert_eq!((done.books, done.entries, done.attachments, done.interrupted), (2, 451, 3, false));
    assert!(done.notes.len() == 1 && done.notes[0].contains("Shift/451: the file"), "{:?}", done.notes);
    assert_eq!(seen, 451);

    let page = std::fs::read_to_string(to.path().join("Shift/entries/451.html")).unwrap();
    assert!(page.contains("<img src=\"../files/451/trend%20plot.png\" alt=\"p\">"), "{page}");
    assert!(page.contains("href=\"https://example.org/\"") && page.contains("href=\"#\""), "{page}");
    assert!(!page.to_lowercase().contains("<script") && page.contains("see href=\"x\""), "{page}");
    assert_eq!(std::fs::read(to.path().join("Shift/files/451/a_b.html")).unwrap(), b"<script>alert(1)</script>");
    let threads = std::fs::read_to_string(to.path().join("Shift/threads/0.html")).unwrap();
    let of_first = threads.split("<h2 id=\"t1\">").nth(1).unwrap().split("<h2").next().unwrap();
    assert_eq!(of_first.matches("<tr").count(), 4, "{of_first}");
    assert!(std::fs::read_to_string(to.path().join("Shift/months/2008-10.html")).unwrap().contains("entries/451.html"));

    // Every link leads to a file of the archive, and out of it only to the web.
    let links = links_of(to.path());
    assert!(links.len() > 2000);
    for (page, link) in links {
        let target = link.split('#').next().unwrap();
        // The last one is text and no link.
        if target.is_empty() || link.starts_with("https://") || link == "x" {
            continue;
        }
        let decoded = percent_encoding::percent_decode_str(target).decode_utf8().unwrap().into_owned();
        let path = page.parent().unwrap().join(decoded).canonicalize();
        assert!(path.as_ref().is_ok_and(|path| path.starts_with(to.path().canonicalize().unwrap())), "{page:?}: {link}");
    }
    assert!(matches!(export_html(&logbook, &[], to.path(), &Stop::default(), &mut |_, _| true), Err(FolderError::NotEmpty(_))));
    let other = tempfile::tempdir().unwrap();
    let nope = export_html(&logbook, &["Nope".to_owned()], other.path(), &Stop::default(), &mut |_, _| true);
    assert!(matches!(nope, Err(FolderError::Store(StoreError::NoBook(_)))));
}

#[test]
fn feeds_hold_every_text_as_text() {
    let (_dir, store) = store();
    let mut book = shift_book("Plans");
    book.attributes.push(AttributeDef::new("Day", AttributeKind::Date));
    book.attributes.push(AttributeDef::new("At", AttributeKind::DateTime));
    store.put_book(&book).unwrap();
    // Half past midnight of 9 September in a zone two hours east of UTC.
    let said = [("Author", "Zoe"), ("Subject", "Access; a, <b>"), ("Day", "1220913000"), ("At", "1221000001")];
    let content = Content {
        attributes: said.iter().map(|(name, value)| EntryAttribute::new(name, value)).collect(),
        encoding: Encoding::Plain,
        text: "]]> & \u{1}\n2nd line".to_owned(),
        ..Content::default()
    };
    let date = Some(Time::from_unix(1_221_000_000, 0));
    store.post(NewEntry { book: "Plans".into(), content, date, zone: 120, parent: None }, vec![], "a<b").unwrap();
    let plans = Search { books: vec!["Plans".to_owned()], ..Search::default() };
    let imported = NewEntry {
        book: "Old".into(),
        content: Content { attributes: vec![EntryAttribute::new("Author", "Max")], ..Content::default() },
        ..NewEntry::default()
    };
    store.put_book(&shift_book("Old")).unwrap();
    store.post(imported, vec![], "import-elog").unwrap();
    let old = exported(&store, Search { books: vec!["Old".to_owned()], ..Search::default() }, Format::Atom);
    assert!(old.contains("<author><name>Max</name></author>"), "an import knows no login: {old}");

    let atom = exported(&store, plans.clone(), Format::Atom);
    for part in [
        "<feed xmlns=\"http://www.w3.org/2005/Atom\">\n<title>Plans</title>",
        "<id>urn:x-tampu:entry:Plans/1</id><title>Plans/1: Access; a, &lt;b&gt;</title>",
        "<published>2008-09-09T22:40:00.000000000Z</published><author><name>a&lt;b</name></author>",
        "<category term=\"Zoe\" label=\"Author: Zoe\"/>",
        "<content type=\"html\">&lt;pre&gt;]]&amp;gt; &amp;amp; \u{fffd}\n2nd line&lt;/pre&gt;</content></entry>\n</feed>\n",
    ] {
        assert!(atom.contains(part), "{part} is not in\n{atom}");
    }
    let calendar = exported(&store, plans.clone(), Format::Calendar);
    let unfolded = calendar.replace("\r\n ", "");
    for part in [
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n",
        "UID:urn:x-tampu:entry:Plans/1?Day\r\n",
        "DTSTART;VALUE=DATE:20080909\r\nSUMMARY:Plans/1: Access\\; a\\, <b> (Day)\r\n",
        "DTSTART:20080909T224001Z\r\n",
        "]]> & \\n2nd line",
        "END:VEVENT\r\nEND:VCALENDAR\r\n",
    ] {
        assert!(unfolded.contains(part), "{part} is not in\n{unfolded}");
    }
    assert!(unfolded.matches("BEGIN:VEVENT").count() == 2 && calendar.lines().all(|line| line.len() <= 75), "{calendar}");
    // An entry without a date attribute is an event at its own date.
    let shift = Search { books: vec!["Shift".to_owned()], ..Search::default() };
    assert_eq!(exported(&store, shift.clone(), Format::Calendar).matches("DTSTART:200809").count(), 450);

    let settings = FeedSettings { pages: "https://elog.example.org/".to_owned(), limit: Some(3) };
    let pieces = export_with(store.clone(), shift, Format::Atom, settings, Stop::default()).unwrap();
    let text = String::from_utf8(pieces.collect::<Result<Vec<_>, _>>().unwrap().concat()).unwrap();
    assert!(text.contains("href=\"https://elog.example.org/Shift/450\"") && text.matches("<entry>").count() == 3, "{text}");
    assert!(text.ends_with("</feed>\n"));
}
