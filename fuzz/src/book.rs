//! The demands on the readers of queries and of entries' texts: they return, and the positions that they report are
//! right.

use tampu_logbook::{
    book::check_said,
    elcode,
    entry::{Content, Encoding, Entry, EntryRef},
    exchange::{
        ForeignEntry, date, elabftw,
        eln::{metadata::Crate, read},
        olog, scilog,
    },
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
    let entry = Entry {
        at,
        date: Time(0),
        zone: 0,
        by: "zoe".into(),
        revision: 0,
        changed: Time(0),
        parent: None,
        thread: 1,
        content,
        signatures: vec![],
    };
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

/// The graph of an archive; its entries have attributes that a logbook can hold.
pub fn eln_metadata(bytes: &[u8]) {
    let Ok(graph) = Crate::parse(bytes) else { return };
    let mut keys = std::collections::HashSet::new();
    let done: Result<(), std::convert::Infallible> = read::entries(&graph, &mut |_, entry| {
        is_sound(&entry);
        assert!(keys.insert(entry.key.clone()), "{}", entry.key);
        Ok(true)
    });
    let _ = done;
}

/// An entry of Olog, SciLog or eLabFTW.
pub fn foreign(bytes: &[u8]) {
    let _ = date::parse(&String::from_utf8_lossy(bytes));
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(bytes) else { return };
    olog::entry(String::new(), &value).iter().for_each(is_sound);
    scilog::entry(String::new(), &value, None).iter().flatten().for_each(is_sound);
    elabftw::entries("", &value).iter().flatten().for_each(is_sound);
}

fn is_sound(entry: &ForeignEntry) {
    assert!(check_said(&entry.attributes).is_ok(), "{:?}", entry.attributes);
    assert!(!entry.by.chars().any(char::is_control), "{:?}", entry.by);
}
