//! Pages of a book whose configuration has `charset = ISO-8859-1`: ELOG's programs, and py_elog without regard to the header,
//! read them in that character set.
//!
//! Entries are stored as UTF-8, and a page is converted when it is sent. Browsers read ISO-8859-1 as windows-1252, so that is
//! what is sent. A character that it does not have becomes a numeric reference such as `&#937;`, as browsers write it in a form
//! of such a page. Forms themselves are sent as UTF-8.

use std::io;

use http::header::{CONTENT_TYPE, HeaderValue};

use crate::pages::{
    formats::format::PLAIN,
    response::{Body, Response},
};

const HTML: &str = "text/html; charset=utf-8";
/// The characters of windows-1252 from 0x80 to 0x9F; a NUL where it has none.
const HIGH: [char; 32] = [
    '€', '\0', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\0', 'Ž', '\0', '\0', '‘', '’', '“', '”', '•', '–', '—',
    '˜', '™', 'š', '›', 'œ', '\0', 'ž', 'Ÿ',
];

/// Returns true for the names of ISO-8859-1 in a configuration.
pub fn is_latin1(name: &str) -> bool {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    ["iso88591", "latin1", "iso885915", "windows1252", "cp1252"].contains(&name.to_ascii_lowercase().as_str())
}

/// Converts a response with a page or a text; others stay as they are.
pub fn in_latin1(mut answer: Response) -> Response {
    let is_html = answer.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == HTML);
    if !is_html && answer.headers().get(CONTENT_TYPE).is_none_or(|kind| kind != PLAIN) {
        return answer;
    }
    let kind = if is_html { "text/html; charset=ISO-8859-1" } else { "text/plain; charset=ISO-8859-1" };
    let convert = move |bytes: Vec<u8>| converted(&bytes, is_html);
    let body = match std::mem::replace(answer.body_mut(), Body::Bytes(Vec::new())) {
        Body::Bytes(bytes) => Body::Bytes(convert(bytes)),
        Body::Pieces(pieces) => Body::Pieces(Box::new(pieces.map(move |piece: io::Result<Vec<u8>>| piece.map(convert)))),
        read @ Body::Read(..) => {
            *answer.body_mut() = read;
            return answer;
        }
    };
    *answer.body_mut() = body;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

fn converted(bytes: &[u8], is_html: bool) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let text = match is_html {
        true => text
            .replacen("<meta charset=\"utf-8\">", "<meta charset=\"ISO-8859-1\">", 1)
            // A text of an entry has no element of this name.
            .replace("<form ", "<form accept-charset=\"utf-8\" "),
        false => text.into_owned(),
    };
    let mut out = Vec::with_capacity(text.len());
    for c in text.chars() {
        match u8::try_from(u32::from(c)) {
            Ok(byte) => out.push(byte),
            Err(_) => match HIGH.iter().position(|high| *high == c) {
                Some(at) => out.push(0x80 + at as u8),
                None => out.extend_from_slice(format!("&#{};", u32::from(c)).as_bytes()),
            },
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_those_of_windows_1252_or_references() {
        assert_eq!(converted("aäöü€ Ω".as_bytes(), false), b"a\xe4\xf6\xfc\x80 &#937;");
        assert_eq!(converted(b"<form class=\"x\">", true), b"<form accept-charset=\"utf-8\" class=\"x\">");
        assert!(is_latin1("iso-8859-1") && is_latin1("ISO_8859-1") && !is_latin1("UTF-8"));
    }
}
