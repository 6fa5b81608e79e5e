//! Addresses of ELOG: what a path names, and the parameters behind it.
//!
//! ```text
//! /                              the books
//! /<book>/                       the list; also page3, page (all), last20, past7, past-12 (hours)
//! /<book>/12                     an entry
//! /<book>/080910_002050/a.png    an attachment; also /<book>/080910_002050_a.png and /<book>/12/080910_002050_a.png
//! /<book>/elog.rdf, cal.html     the newest as RSS; a month
//! /<book>/elog.css, /elog.css    how pages look
//! ```
//! `page-1` is the last page, `page-2` the one before it; ELOG does not know these.

use std::fmt::Write;

use super::super::decode;

/// Bytes of a path with its parameters.
pub const MAX_ADDRESS: usize = 16 * 1024;
/// Parameters that are read; further ones are not.
const MAX_PARAMETERS: usize = 512;

/// Which entries of a list are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What the book shows first.
    Default,
    /// This page, from 1; from the end if it is negative, where -1 is the last.
    Page(i64),
    /// All of them, as far as one answer can hold them.
    All,
    /// So many, the newest.
    Last(u64),
    /// Those of so many days; of hours if it is negative.
    Past(i64),
}

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The page of all books.
    Books,
    /// A book, without the slash that belongs behind it.
    Bare,
    /// A list of a book's entries.
    List(Part),
    /// An entry.
    Entry(u32),
    /// An attachment, by the name ELOG gave it; where the path says so, of this entry.
    Attachment(Option<u32>, String),
    /// The newest entries as RSS.
    Rss,
    /// A month.
    Calendar,
    /// A file of styles.
    Style(String),
    /// None of these.
    Unknown(String),
}

/// Reads a path, without the prefix: the book it names, if any, and what of it.
pub fn path(path: &str) -> (Option<String>, Place) {
    let mut parts = path.trim_start_matches('/').splitn(2, '/');
    let (first, rest) = (parts.next().unwrap_or_default(), parts.next());
    match (first, rest) {
        ("", _) => (None, Place::Books),
        (style, None) if is_style(style) => (None, Place::Style(style.to_owned())),
        (book, None) => (Some(unescape(book)), Place::Bare),
        (book, Some(rest)) => (Some(unescape(book)), in_book(rest)),
    }
}

fn in_book(rest: &str) -> Place {
    let parts: Vec<String> = rest.split('/').map(unescape).collect();
    match parts.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [""] => Place::List(Part::Default),
        ["elog.rdf"] => Place::Rss,
        ["cal.html"] => Place::Calendar,
        [style] if is_style(style) => Place::Style((*style).to_owned()),
        [one] if is_stamped(one) => Place::Attachment(None, (*one).to_owned()),
        [one] => match (number(one), part(one)) {
            (Some(id), _) => Place::Entry(id),
            (None, Some(part)) => Place::List(part),
            (None, None) => Place::Unknown((*one).to_owned()),
        },
        [id, ""] if number(id).is_some() => Place::Entry(number(id).unwrap_or_default()),
        [id, name] if number(id).is_some() => Place::Attachment(number(id), (*name).to_owned()),
        [id, stamp, name] if number(id).is_some() && is_stamp(stamp) => Place::Attachment(number(id), format!("{stamp}_{name}")),
        [stamp, name] if is_stamp(stamp) => Place::Attachment(None, format!("{stamp}_{name}")),
        _ => Place::Unknown(parts.join("/")),
    }
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|id| *id > 0 && !text.starts_with('+'))
}

fn part(text: &str) -> Option<Part> {
    if let Some(number) = text.strip_prefix("page") {
        return match number {
            "" => Some(Part::All),
            number => number.parse().ok().filter(|page| *page != 0).map(Part::Page),
        };
    }
    if let Some(count) = text.strip_prefix("last") {
        return count.parse().ok().map(Part::Last);
    }
    text.strip_prefix("past").and_then(|days| days.parse().ok()).map(Part::Past)
}

/// `080910_002050`
fn is_stamp(text: &str) -> bool {
    let digits = |(at, byte): (usize, u8)| if at == 6 { byte == b'_' } else { byte.is_ascii_digit() };
    text.len() == 13 && text.bytes().enumerate().all(digits)
}

/// `080910_002050_a.png`
fn is_stamped(text: &str) -> bool {
    text.get(..13).is_some_and(is_stamp) && text[13..].starts_with('_') && text.len() > 14
}

/// A file name that leads nowhere else and ends in `.css`.
fn is_style(name: &str) -> bool {
    name.ends_with(".css")
        && !name.starts_with('.')
        && name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// The names and values behind a `?`, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parameters(pub Vec<(String, String)>);

impl Parameters {
    /// Reads `a=b&c=d`.
    pub fn read(query: &str) -> Parameters {
        let pair = |part: &str| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (unescape(name), unescape(value))
        };
        Parameters(query.split('&').filter(|part| !part.is_empty()).take(MAX_PARAMETERS).map(pair).collect())
    }

    /// The first value of a name, which is compared as it stands; an empty one is none.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Whether it is there and not `0`.
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value != "0")
    }

    /// As a number; what is none is not there.
    pub fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        self.get(name)?.trim().parse().ok()
    }

    /// The same with this name once, with this value; without it if the value is empty.
    pub fn with(&self, name: &str, value: &str) -> Parameters {
        let mut changed = self.without(&[name]);
        if !value.is_empty() {
            changed.0.push((name.to_owned(), value.to_owned()));
        }
        changed
    }

    /// The same without these names.
    pub fn without(&self, names: &[&str]) -> Parameters {
        Parameters(self.0.iter().filter(|(name, _)| !names.contains(&name.as_str())).cloned().collect())
    }

    /// As they stand in an address, with the `?`; nothing if there are none.
    pub fn written(&self) -> String {
        let mut out = String::new();
        for (at, (name, value)) in self.0.iter().enumerate() {
            out.push(if at == 0 { '?' } else { '&' });
            out.push_str(&escape(name));
            if !value.is_empty() {
                out.push('=');
                out.push_str(&escape(value));
            }
        }
        out
    }
}

/// Writes a name or value for an address, a blank as `+`, as ELOG does.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' ' => out.push('+'),
            byte if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') => out.push(char::from(byte)),
            byte => {
                // Writing into a text cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// Reads a name or value of an address; bytes that are no UTF-8 are read as ELOG's old clients meant them.
pub fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
        match (bytes[at], hex(bytes.get(at + 1)), hex(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            (b'+', ..) => {
                out.push(b' ');
                at += 1;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    decode(&out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_name_what_elog_means() {
        let book = || Some("LHCb shift".to_owned());
        for (text, expected) in [
            ("/", (None, Place::Books)),
            ("/elog.css", (None, Place::Style("elog.css".to_owned()))),
            ("/LHCb+shift", (book(), Place::Bare)),
            ("/LHCb%20shift/", (book(), Place::List(Part::Default))),
            ("/LHCb+shift/page3", (book(), Place::List(Part::Page(3)))),
            ("/LHCb+shift/page-1", (book(), Place::List(Part::Page(-1)))),
            ("/LHCb+shift/page", (book(), Place::List(Part::All))),
            ("/LHCb+shift/page0", (book(), Place::Unknown("page0".to_owned()))),
            ("/LHCb+shift/last20", (book(), Place::List(Part::Last(20)))),
            ("/LHCb+shift/past-12", (book(), Place::List(Part::Past(-12)))),
            ("/LHCb+shift/12", (book(), Place::Entry(12))),
            ("/LHCb+shift/12/", (book(), Place::Entry(12))),
            ("/LHCb+shift/0", (book(), Place::Unknown("0".to_owned()))),
            ("/LHCb+shift/elog.rdf", (book(), Place::Rss)),
            ("/LHCb+shift/cal.html", (book(), Place::Calendar)),
            ("/LHCb+shift/080910_002050/a%20b.png", (book(), Place::Attachment(None, "080910_002050_a b.png".to_owned()))),
            ("/LHCb+shift/080910_002050_a.png", (book(), Place::Attachment(None, "080910_002050_a.png".to_owned()))),
            ("/LHCb+shift/7/080910_002050/a.png", (book(), Place::Attachment(Some(7), "080910_002050_a.png".to_owned()))),
            ("/LHCb+shift/7/080910_002050_a.png", (book(), Place::Attachment(Some(7), "080910_002050_a.png".to_owned()))),
            ("/LHCb+shift/../../etc/passwd", (book(), Place::Unknown("../../etc/passwd".to_owned()))),
            ("/LHCb+shift/..%2fx.css", (book(), Place::Unknown("../x.css".to_owned()))),
        ] {
            assert_eq!(path(text), expected, "{text}");
        }
    }

    #[test]
    fn parameters_are_read_and_written() {
        let read = Parameters::read("Run+number=8%26&mode=full&&empty=&Author=M%FCller&x");
        assert_eq!((read.get("Run number"), read.get("empty"), read.get("Author")), (Some("8&"), None, Some("Müller")));
        assert_eq!(read.written(), "?Run+number=8%26&mode=full&empty&Author=M%C3%BCller&x");
        assert_eq!(read.with("mode", "").without(&["empty", "x"]).written(), "?Run+number=8%26&Author=M%C3%BCller");
    }

    proptest! {
        #[test]
        fn any_address_is_read(text in "[/%a-f0-9._+=&?-]{0,80}|\\PC{0,40}") {
            let _ = (path(&text), Parameters::read(&text));
            prop_assert_eq!(unescape(&escape(&text)), text.as_str());
        }
    }
}
