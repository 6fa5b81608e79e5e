//! Addresses of ELOG: the target of a path, and the parameters after it.
//!
//! ```text
//! /                              the books
//! /<book>/                       the list; also page3, page (all), last20, past7, past-12 (hours)
//! /<book>/12                     an entry
//! /<book>/080910_002050/a.png    an attachment; also /<book>/080910_002050_a.png and /<book>/12/080910_002050_a.png
//! /<book>/elog.rdf, cal.html     the newest entries as RSS; a month
//! /<book>/elog.css, /elog.css    styles
//! /<book>/icons/a.gif, /a.gif    images that the configuration names
//! ```
//! `page-1` is the last page, `page-2` the one before it; ELOG does not have these.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::{decode, pages::script, site_files};

/// Bytes of a path with its parameters.
pub const MAX_ADDRESS: usize = 16 * 1024;
/// Number of parameters that are read; further ones are ignored.
const MAX_PARAMETERS: usize = 512;

/// The part of a list that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListPart {
    /// The default part of the book.
    Default,
    /// This page, from 1; from the end if it is negative, where -1 is the last.
    Page(i64),
    /// All entries, up to the limit of a response.
    All,
    /// The newest entries, in this number.
    Last(u64),
    /// The entries of this number of days, or of hours if it is negative.
    Past(i64),
}

/// The target of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddressTarget {
    /// The page of all books.
    Books,
    /// A book, without the slash at the end.
    Bare,
    /// A list of a book's entries.
    List(ListPart),
    Entry(u32),
    /// The newest entry, which `elog -w last` requests as `-1`.
    Newest,
    /// An attachment, by the name ELOG gave it, and the entry if the path names one.
    Attachment(Option<u32>, String),
    /// The newest entries as RSS.
    Rss,
    Calendar,
    /// A file of styles.
    Style(String),
    /// An image that the configuration names.
    Image(String),
    /// The script of forms.
    Script,
    /// A path with no meaning here.
    Unknown(String),
}

/// Parses a path without the prefix. Returns the book that it names, if any, and the target within the book.
pub fn path(path: &str) -> (Option<String>, AddressTarget) {
    let mut parts = path.trim_start_matches('/').splitn(2, '/');
    let (first, rest) = (parts.next().unwrap_or_default(), parts.next());
    match (first, rest) {
        ("", _) => (None, AddressTarget::Books),
        (script, None) if script == *script::NAME => (None, AddressTarget::Script),
        (image, None) if site_files::is_image(image) => (None, AddressTarget::Image(image.to_owned())),
        (style, None) if is_style(style) => (None, AddressTarget::Style(style.to_owned())),
        (book, None) => (Some(unescape(book)), AddressTarget::Bare),
        (book, Some(rest)) => (Some(unescape(book)), in_book(rest)),
    }
}

fn in_book(rest: &str) -> AddressTarget {
    let parts: Vec<String> = rest.split('/').map(unescape).collect();
    match parts.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [""] => AddressTarget::List(ListPart::Default),
        ["elog.rdf"] => AddressTarget::Rss,
        ["cal.html"] => AddressTarget::Calendar,
        ["-1"] => AddressTarget::Newest,
        [image] | ["icons", image] if site_files::is_image(image) && !is_stamped(image) => {
            AddressTarget::Image((*image).to_owned())
        }
        [style] if is_style(style) => AddressTarget::Style((*style).to_owned()),
        [one] if is_stamped(one) => AddressTarget::Attachment(None, (*one).to_owned()),
        [one] => match (number(one), part(one)) {
            (Some(id), _) => AddressTarget::Entry(id),
            (None, Some(part)) => AddressTarget::List(part),
            (None, None) => AddressTarget::Unknown((*one).to_owned()),
        },
        [id, ""] if number(id).is_some() => AddressTarget::Entry(number(id).unwrap_or_default()),
        [id, name] if number(id).is_some() => AddressTarget::Attachment(number(id), (*name).to_owned()),
        [id, stamp, name] if number(id).is_some() && is_stamp(stamp) => {
            AddressTarget::Attachment(number(id), format!("{stamp}_{name}"))
        }
        [stamp, name] if is_stamp(stamp) => AddressTarget::Attachment(None, format!("{stamp}_{name}")),
        _ => AddressTarget::Unknown(parts.join("/")),
    }
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|id| *id > 0 && !text.starts_with('+'))
}

fn part(text: &str) -> Option<ListPart> {
    if let Some(number) = text.strip_prefix("page") {
        return match number {
            "" => Some(ListPart::All),
            number => number.parse().ok().filter(|page| *page != 0).map(ListPart::Page),
        };
    }
    if let Some(count) = text.strip_prefix("last") {
        return count.parse().ok().map(ListPart::Last);
    }
    text.strip_prefix("past").and_then(|days| days.parse().ok()).map(ListPart::Past)
}

/// Returns true for a stamp such as `080910_002050`.
fn is_stamp(text: &str) -> bool {
    let digits = |(at, byte): (usize, u8)| if at == 6 { byte == b'_' } else { byte.is_ascii_digit() };
    text.len() == 13 && text.bytes().enumerate().all(digits)
}

/// Returns true for a name such as `080910_002050_a.png`.
fn is_stamped(text: &str) -> bool {
    text.get(..13).is_some_and(is_stamp) && text[13..].starts_with('_') && text.len() > 14
}

/// Returns whether a name ends in `.css` and stays in its directory.
fn is_style(name: &str) -> bool {
    name.ends_with(".css")
        && !name.starts_with('.')
        && name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// The names and values after a `?`, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parameters(pub Vec<(String, String)>);

impl Parameters {
    /// Reads parameters such as `a=b&c=d`.
    pub fn read(query: &str) -> Parameters {
        let pair = |part: &str| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (unescape(name), unescape(value))
        };
        Parameters(query.split('&').filter(|part| !part.is_empty()).take(MAX_PARAMETERS).map(pair).collect())
    }

    /// Returns the first value of a name, which is compared with case; `None` if it is empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Returns true if the parameter is given and not `0`.
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value != "0")
    }

    /// Returns a parameter as a number; `None` if it is not one.
    pub fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        self.get(name)?.trim().parse().ok()
    }

    /// Returns the parameters with this name once, with this value. An empty value removes it.
    pub fn with(&self, name: &str, value: &str) -> Parameters {
        let mut changed = self.without(&[name]);
        if !value.is_empty() {
            changed.0.push((name.to_owned(), value.to_owned()));
        }
        changed
    }

    /// Returns the parameters without these names.
    pub fn without(&self, names: &[&str]) -> Parameters {
        Parameters(self.0.iter().filter(|(name, _)| !names.contains(&name.as_str())).cloned().collect())
    }

    /// Writes the parameters of an address, with the `?`. The result is empty if there are no parameters.
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

/// Bytes that stay unchanged in an address; a blank becomes `+`.
const KEPT: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b' ');

/// Writes a name or value for an address, a blank as `+`, as ELOG does.
pub fn escape(text: &str) -> String {
    utf8_percent_encode(text, &KEPT).to_string().replace(' ', "+")
}

/// Reads a name or value of an address; bytes that are not UTF-8 are read in the character set of ELOG's old clients.
pub fn unescape(text: &str) -> String {
    let text = text.replace('+', " ");
    decode(&Cow::from(percent_decode_str(&text)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_name_what_elog_means() {
        let book = || Some("LHCb shift".to_owned());
        for (text, expected) in [
            ("/", (None, AddressTarget::Books)),
            ("/elog.css", (None, AddressTarget::Style("elog.css".to_owned()))),
            ("/LHCb+shift", (book(), AddressTarget::Bare)),
            ("/LHCb%20shift/", (book(), AddressTarget::List(ListPart::Default))),
            ("/LHCb+shift/page3", (book(), AddressTarget::List(ListPart::Page(3)))),
            ("/LHCb+shift/page-1", (book(), AddressTarget::List(ListPart::Page(-1)))),
            ("/LHCb+shift/page", (book(), AddressTarget::List(ListPart::All))),
            ("/LHCb+shift/page0", (book(), AddressTarget::Unknown("page0".to_owned()))),
            ("/LHCb+shift/last20", (book(), AddressTarget::List(ListPart::Last(20)))),
            ("/LHCb+shift/past-12", (book(), AddressTarget::List(ListPart::Past(-12)))),
            ("/LHCb+shift/12", (book(), AddressTarget::Entry(12))),
            ("/LHCb+shift/12/", (book(), AddressTarget::Entry(12))),
            ("/LHCb+shift/-1", (book(), AddressTarget::Newest)),
            ("/LHCb+shift/0", (book(), AddressTarget::Unknown("0".to_owned()))),
            ("/LHCb+shift/elog.rdf", (book(), AddressTarget::Rss)),
            ("/LHCb+shift/cal.html", (book(), AddressTarget::Calendar)),
            (
                "/LHCb+shift/080910_002050/a%20b.png",
                (book(), AddressTarget::Attachment(None, "080910_002050_a b.png".to_owned())),
            ),
            ("/LHCb+shift/080910_002050_a.png", (book(), AddressTarget::Attachment(None, "080910_002050_a.png".to_owned()))),
            ("/LHCb+shift/7/080910_002050/a.png", (book(), AddressTarget::Attachment(Some(7), "080910_002050_a.png".to_owned()))),
            ("/LHCb+shift/7/080910_002050_a.png", (book(), AddressTarget::Attachment(Some(7), "080910_002050_a.png".to_owned()))),
            ("/LHCb+shift/../../etc/passwd", (book(), AddressTarget::Unknown("../../etc/passwd".to_owned()))),
            ("/LHCb+shift/..%2fx.css", (book(), AddressTarget::Unknown("../x.css".to_owned()))),
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
