//! Exports of search results as files.

mod support;

use std::sync::Arc;

use support::{entry, shift_book};
use tampu_logbook::{
    book::EntryAttribute,
    entry::{Content, Encoding, Entry, EntryRef, NewEntry},
    export::{BadFormat, Format, export},
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
