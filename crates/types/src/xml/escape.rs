//! Escaping of texts in XML.

use std::borrow::Cow;

use memchr::{memchr, memchr3};

/// Returns true if XML 1.0 cannot write some character of this text.
pub fn has_forbidden(text: &str) -> bool {
    // 0xef begins the two that are not control characters.
    text.bytes().any(|byte| byte < 0x20 || byte == 0xef) && text.chars().any(is_forbidden)
}

fn is_forbidden(character: char) -> bool {
    matches!(character, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

/// Escapes forbidden characters and the backslash with backslashes: `\\`, `\x1b`, `\ufffe`.
pub fn to_backslash(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            character if is_forbidden(character) => push_escape(&mut out, character),
            character => out.push(character),
        }
    }
    out
}

/// One character as an escape.
pub fn push_escape(out: &mut String, character: char) {
    let number = u32::from(character);
    *out += &if number < 0x100 { format!("\\x{number:02x}") } else { format!("\\u{number:04x}") };
}

/// Inverts [`to_backslash`]. A backslash that begins no escape is kept.
pub fn from_backslash(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let digits = match rest.as_bytes().first() {
            Some(b'\\') => {
                out.push('\\');
                rest = &rest[1..];
                continue;
            }
            Some(b'x') => 2,
            Some(b'u') => 4,
            _ => 0,
        };
        let number = rest.get(1..1 + digits).filter(|digits| !digits.is_empty() && digits.bytes().all(|d| d.is_ascii_hexdigit()));
        let escaped = number.and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32);
        match escaped {
            Some(character) => {
                out.push(character);
                rest = &rest[1 + digits..];
            }
            None => out.push('\\'),
        }
    }
    out + rest
}

/// Appends a text as the value of an attribute between double quotes.
pub fn push_attribute(out: &mut String, text: &str) {
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let reference = match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            b'\t' => "&#9;",
            b'\n' => "&#10;",
            b'\r' => "&#13;",
            _ => continue,
        };
        out.push_str(&text[plain..at]);
        out.push_str(reference);
        plain = at + 1;
    }
    out.push_str(&text[plain..]);
}

/// Appends a text as CDATA. The end mark of CDATA in it is cut in two. So is the begin mark, which would look like an
/// unclosed record. A carriage return becomes a reference, as parsers read a bare one as the end of a line. With
/// `one_line`, a line end becomes a reference too.
pub fn push_cdata(out: &mut String, text: &str, one_line: bool) {
    out.push_str("<![CDATA[");
    let has_line_end = one_line && memchr(b'\n', text.as_bytes()).is_some();
    if !has_line_end && !text.contains(']') && !text.contains('\r') && !text.contains("<![") {
        out.push_str(text);
    } else {
        let mut rest = text;
        while let Some((at, what, instead)) = next_cut(rest, one_line) {
            out.push_str(&rest[..at]);
            out.push_str(instead);
            rest = &rest[at + what.len()..];
        }
        out.push_str(rest);
    }
    out.push_str("]]>");
}

/// Returns the first position at which CDATA must be cut, the character there, and its written form.
fn next_cut(text: &str, one_line: bool) -> Option<(usize, &'static str, &'static str)> {
    const CUTS: [(&str, &str); 4] = [
        ("]]>", "]]]]><![CDATA[>"),
        ("<![CDATA[", "<![CDA]]><![CDATA[TA["),
        ("\r", "]]>&#13;<![CDATA["),
        ("\n", "]]>&#10;<![CDATA["),
    ];
    let cuts = if one_line { &CUTS[..] } else { &CUTS[..3] };
    let mut from = 0;
    loop {
        let at = from + text[from..].find([']', '<', '\r', '\n'])?;
        if let Some((what, instead)) = cuts.iter().find(|(what, _)| text[at..].starts_with(what)) {
            return Some((at, what, instead));
        }
        from = at + 1;
    }
}

/// Returns the character of a general reference (`&...;`, without the ends).
pub fn reference(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let number = match number.strip_prefix('x') {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(number.ok()?)
        }
    }
}

/// Decodes a raw attribute value by XML's rules: line ends and tabs are blanks, references are resolved. An ampersand
/// that begins no known reference is kept, because ACS's writers do not escape.
pub fn attribute_value(raw: &str) -> Cow<'_, str> {
    if is_literal(raw) {
        return Cow::Borrowed(raw);
    }
    let blanks = raw.replace("\r\n", " ").replace(['\t', '\n', '\r'], " ");
    let mut out = String::with_capacity(blanks.len());
    let mut rest = blanks.as_str();
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let known = rest.find(';').and_then(|end| Some((reference(&rest[..end])?, end)));
        match known {
            Some((character, end)) => {
                out.push(character);
                rest = &rest[end + 1..];
            }
            None => out.push('&'),
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Returns true if values of attributes, or a whole tag of them, contain nothing to decode.
pub fn is_literal(raw: &str) -> bool {
    memchr3(b'&', b'\n', b'\r', raw.as_bytes()).is_none() && memchr(b'\t', raw.as_bytes()).is_none()
}

/// Line ends as XML means them.
pub fn line_ends(raw: &str) -> Cow<'_, str> {
    if raw.contains('\r') { Cow::Owned(raw.replace("\r\n", "\n").replace('\r', "\n")) } else { Cow::Borrowed(raw) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arbitrary;

    #[test]
    fn escapes_are_readable() {
        assert_eq!(to_backslash("a\0b\\c\u{1b}[1m\u{ffff}\n"), "a\\x00b\\\\c\\x1b[1m\\uffff\n");
        assert_eq!(from_backslash("C:\\temp \\x4 \\u12 \\xzz \\"), "C:\\temp \\x4 \\u12 \\xzz \\");
        assert_eq!(attribute_value("a&b &lt;&#65;&#x42; &unknown; &"), "a&b <AB &unknown; &");
    }

    #[test]
    fn cdata_is_cut_where_it_must_be() {
        let mut out = String::new();
        push_cdata(&mut out, "a]]>b\r<![CDATA[c\n", false);
        assert_eq!(out, "<![CDATA[a]]]]><![CDATA[>b]]>&#13;<![CDATA[<![CDA]]><![CDATA[TA[c\n]]>");
        out.clear();
        push_cdata(&mut out, "a\nb", true);
        assert_eq!(out, "<![CDATA[a]]>&#10;<![CDATA[b]]>");
    }

    proptest! {
        #[test]
        fn backslashes_lead_back(text in arbitrary::text()) {
            prop_assert!(!has_forbidden(&to_backslash(&text)));
            prop_assert_eq!(from_backslash(&to_backslash(&text)), text);
        }

        #[test]
        fn attributes_lead_back(text in arbitrary::text()) {
            let mut raw = String::new();
            push_attribute(&mut raw, &text);
            prop_assert_eq!(attribute_value(&raw), text);
        }
    }
}
