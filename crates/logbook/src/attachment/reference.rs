//! References from a text to a file of the same entry: `attachment:plot.png` in the place of an address.
//!
//! A writer does not know the address of a file before the entry is posted. So the store replaces each reference by the
//! address, relative to the book: `080910_002050/plot.png`, as ELOG writes it.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::{Attachment, stored_name::stored_name};

/// The scheme of a reference.
pub const SCHEME: &str = "attachment:";
/// Length of ELOG's time before a name, without the `_` behind it: `080910_002050`.
const STAMP: usize = 13;
/// Bytes that stay unchanged in an address.
const KEPT: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Returns a text with the addresses of these files in place of references to their names. A reference to another name
/// stays. Of several files of one name, the last counts.
pub fn resolved<'a>(text: &'a str, attachments: &[Attachment]) -> Cow<'a, str> {
    if attachments.is_empty() || !text.contains(SCHEME) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest) = (String::with_capacity(text.len() + 64), text);
    while let Some(at) = rest.find(SCHEME) {
        let (before, from) = rest.split_at(at);
        let name = &from[SCHEME.len()..];
        let end = name.find(is_end).unwrap_or(name.len());
        let wanted = percent_decode_str(&name[..end]).decode_utf8_lossy();
        out.push_str(before);
        match attachments.iter().rev().find(|file| file.name == wanted) {
            Some(file) => out.push_str(&address(file)),
            None => out.push_str(&from[..SCHEME.len() + end]),
        }
        rest = &from[SCHEME.len() + end..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Returns true for a character that ends a reference in some markup.
fn is_end(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, '"' | '\'' | '(' | ')' | '[' | ']' | '<' | '>' | '|' | '?' | '#')
}

/// Returns the address of a file, relative to the book.
pub(crate) fn address(file: &Attachment) -> String {
    let stored = stored_name(file);
    let (stamp, name) = stored.split_at_checked(STAMP).unwrap_or((&stored, ""));
    format!("{stamp}/{}", utf8_percent_encode(name.trim_start_matches('_'), &KEPT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tampu_types::Time;

    #[test]
    fn references_become_addresses() {
        let file = |name: &str, elog: &str| Attachment {
            name: name.to_owned(),
            sha: None,
            size: 0,
            added: Time(0),
            elog: Some(elog.to_owned()),
        };
        let files = [
            file("plot.png", "080910_002050_plot.png"),
            file("a b.png", "080910_002051_a_b.png"),
            file("plot.png", "080910_002052_plot_1.png"),
        ];
        for (text, expected) in [
            ("![p](attachment:plot.png \"x\")", "![p](080910_002052/plot_1.png \"x\")"),
            ("<img src=\"attachment:a%20b.png\">", "<img src=\"080910_002051/a_b.png\">"),
            ("[img]attachment:plot.png[/img] attachment:none.png.", "[img]080910_002052/plot_1.png[/img] attachment:none.png."),
            ("attachment:", "attachment:"),
            ("no reference", "no reference"),
        ] {
            assert_eq!(resolved(text, &files), expected);
            assert_eq!(resolved(text, &[]), text);
        }
    }
}
