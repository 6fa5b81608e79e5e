//! The demands on the readers of queries and of entries' texts: they return, and the positions that they report are
//! right.

use tampu_logbook::{
    elcode,
    entry::{Content, Encoding, Entry, EntryRef},
    plain::plain,
    query::{eval::Subject, marks, parse},
    render,
};
use tampu_types::Time;

/// A query, held against an entry.
pub fn query(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (text, of) = text.split_once('\0').unwrap_or((&text, "RICH1 HV tripped: LHC:MAG-01/cur"));
    let node = match parse(text, &["Subject".to_owned()], Time(0)) {
        Ok(node) => node,
        Err(bad) => return assert!(bad.at <= text.chars().count()),
    };
    let content = Content { text: of.to_owned(), ..Content::default() };
    let at = EntryRef::new("A", 1);
    let entry =
        Entry { at, date: Time(0), zone: 0, by: "zoe".into(), revision: 0, changed: Time(0), parent: None, thread: 1, content };
    let _ = Subject::of(&entry).is_meant(&node);
    let mut last = 0;
    for mark in marks::marks(&node, of, None) {
        assert!(last <= mark.start && mark.start < mark.end && of.get(mark.clone()).is_some());
        last = mark.end;
    }
    let snippet = marks::snippet(&node, of);
    assert!(snippet.marks.iter().all(|mark| snippet.text.get(mark.clone()).is_some()));
}

/// A text of any encoding; what is shown has no scripts.
pub fn shown(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = elcode::without_tags(&text);
    for encoding in Encoding::ALL {
        let _ = plain(encoding, &text);
        let html = render::html(encoding, &text, &|target| format!("../{target}"));
        assert!(!html.to_ascii_lowercase().contains("<script"));
    }
}
