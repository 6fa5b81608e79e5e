//! The demands on the readers of ELOG's files, forms and addresses: they return, and the positions that they report are
//! right.

use std::io::Read;

use tampu_elog::{
    config, date, entries,
    pages::{
        address::{self, AddressTarget, ListPart, Parameters},
        ere,
        multipart::{FormLimits, Multipart, pairs},
        post::import,
    },
    users,
};
use tampu_logbook::{
    attachment::stored_name::stamp,
    query::{Node, parse},
};
use tampu_types::Time;

/// ELOG's password file.
pub fn elog_users(bytes: &[u8]) {
    let read = users::read(bytes);
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
        assert!((entry.id > 0) <= entry.number.is_empty() && entry.text.len() <= 3 * bytes.len());
        if let Some((time, zone)) = date::parse(&entry.date, &tampu_elog::pages::Zone::OfEntry) {
            let _ = (date::write(time, zone), stamp(time, zone));
        }
    }
}

/// The body of a form, in either way of writing it; however it comes, it is read the same.
pub fn multipart(bytes: &[u8]) {
    let read = |mut from: &mut dyn Read| {
        let (mut parts, mut found) = (Multipart::new(&mut from, b"B", FormLimits::default()), Vec::new());
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
    let values =
        |rows: &[import::ImportedRow]| rows.iter().flat_map(|row| &row.fields).map(|(_, value)| value.len()).sum::<usize>();
    let zone = tampu_elog::pages::Zone::OfEntry;
    for rows in [import::csv(&text, &zone, false), import::xml(&text, &zone)].into_iter().flatten() {
        assert!(values(&rows) <= text.len());
    }
}

/// Reads an ELOG configuration.
pub fn elog_config(bytes: &[u8]) {
    let read = config::parse(bytes);
    for book in read.logbooks() {
        let _ = (book.book(), book.options(), book.directory("/x".as_ref()));
    }
}

/// A regular expression of ELOG's searches: what becomes of it can stand between the slashes of a query, and means no
/// more than one.
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
        (_, AddressTarget::Style(name)) => assert!(!name.contains(['/', '\\']) && !name.starts_with('.'), "{name:?}"),
        (_, AddressTarget::Entry(id)) => assert!(id > 0),
        (_, AddressTarget::List(ListPart::Page(page))) => assert!(page != 0),
        (book, AddressTarget::Books) => assert_eq!(book, None),
        _ => {}
    }
    let mut read = Parameters::read(query);
    assert_eq!(address::unescape(&address::escape(&text)), text);
    // A parameter without name and value does not count.
    read.0.retain(|(name, value)| !name.is_empty() || !value.is_empty());
    let written = read.written();
    assert!(written.is_ascii() && !written.contains([' ', '"', '<', '>', '\r', '\n']), "{written:?}");
    assert_eq!(Parameters::read(written.trim_start_matches('?')), read);
}
