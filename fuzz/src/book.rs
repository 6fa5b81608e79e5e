//! What is demanded of what reads queries, ELCode and ELOG's files: it returns, and what it says of places holds.

use std::io::Read;

use tampu_logbook::{
    elcode,
    elog::{
        config, date, entries,
        web::{
            address::{self, Parameters, Part, Place},
            ere,
            multipart::{Limits, Multipart, pairs},
            post::import,
        },
    },
    entry::{Content, Encoding, Entry, EntryRef},
    plain::plain,
    query::{Node, eval::Subject, marks, parse},
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

/// ELOG's password file.
pub fn elog_users(bytes: &[u8]) {
    let read = tampu_logbook::people::elog::read(bytes);
    assert!(read.users.iter().all(|user| user.check().is_ok()));
}

/// A day's file of entries.
pub fn elog_entries(bytes: &[u8]) {
    let (ranges, faults) = entries::split(bytes);
    assert!(faults.iter().all(|(at, _)| *at <= bytes.len()));
    let mut last = 0;
    for range in ranges {
        assert!(last <= range.start && range.start < range.end && range.end <= bytes.len());
        last = range.end;
        let Some(entry) = entries::parse(&bytes[range], &["Run: number".to_owned()]) else { continue };
        assert!(entry.id > 0 && entry.text.len() <= 3 * bytes.len());
        if let Some((time, zone)) = date::parse(&entry.date, 60) {
            let _ = (date::write(time, zone), date::stamp(time, zone));
        }
    }
}

/// The body of a form, in either way of writing it; however it comes, it is read the same.
pub fn multipart(bytes: &[u8]) {
    let read = |mut from: &mut dyn Read| {
        let (mut parts, mut found) = (Multipart::new(&mut from, b"B", Limits::default()), Vec::new());
        loop {
            match parts.next_part() {
                Ok(Some(head)) => match parts.field(1 << 20) {
                    Ok(value) => found.push((head, value)),
                    Err(_) => return (found, false),
                },
                Ok(None) => return (found, true),
                Err(_) => return (found, false),
            }
        }
    };
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    let whole = read(&mut &*bytes);
    assert!(whole.0.iter().map(|(_, value)| value.len()).sum::<usize>() <= bytes.len());
    assert!(whole == read(&mut first.chain(rest)));
    assert!(pairs(bytes).map(|(name, value)| name.len() + value.len()).sum::<usize>() <= bytes.len());
}

/// A table or a list that is imported.
pub fn imported(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let values = |rows: &[import::Row]| rows.iter().flat_map(|row| &row.fields).map(|(_, value)| value.len()).sum::<usize>();
    for rows in [import::csv(&text, 60), import::xml(&text, 60)].into_iter().flatten() {
        assert!(values(&rows) <= text.len());
    }
}

/// A configuration.
pub fn elog_config(bytes: &[u8]) {
    let read = config::parse(bytes);
    for book in read.logbooks() {
        let _ = (book.book(), book.options(), book.directory("/x".as_ref()));
    }
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

/// A regular expression of ELOG's searches: what becomes of it can stand between the slashes of a query, and means no more than one.
pub fn elog_expression(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(translated) = ere::translate(&text) {
        assert!(!translated.contains(['/', '\n', '\r', '\0']), "{translated:?}");
        for query in [format!("/{translated}/"), format!("text:/{translated}/c")] {
            // Too large a one is refused; one that is taken is the whole query.
            let Ok(node) = parse(&query, &[], Time(0)) else { continue };
            assert!(matches!(node, Node::Matches { .. }), "{query:?}: {node:?}");
        }
    }
    for exact in [ere::exactly(&text), ere::part(&text)] {
        ere::translate(&exact).expect("a text can always be looked for");
    }
    if ere::is_plain(&text) && text.len() < 200 {
        parse(&format!("~\"{text}\""), &[], Time(0)).expect("a plain text is a query");
    }
}

/// An address of ELOG's: it names something harmless, and written again it is the same.
pub fn elog_address(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (path, query) = text.split_once('?').unwrap_or((&text, ""));
    match address::path(path) {
        (_, Place::Style(name)) => assert!(!name.contains(['/', '\\']) && !name.starts_with('.'), "{name:?}"),
        (_, Place::Entry(id)) => assert!(id > 0),
        (_, Place::List(Part::Page(page))) => assert!(page != 0),
        (book, Place::Books) => assert_eq!(book, None),
        _ => {}
    }
    let mut read = Parameters::read(query);
    assert_eq!(address::unescape(&address::escape(&text)), text);
    // A parameter without name and value is none.
    read.0.retain(|(name, value)| !name.is_empty() || !value.is_empty());
    let written = read.written();
    assert!(written.is_ascii() && !written.contains([' ', '"', '<', '>', '\r', '\n']), "{written:?}");
    assert_eq!(Parameters::read(written.trim_start_matches('?')), read);
}
