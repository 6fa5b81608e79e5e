//! ELOG's files: a site's logbooks are taken over as they are, and can be taken back.
//!
//! | part | module |
//! |-|-|
//! | `elogd.cfg` | [`config`] |
//! | which of its options mean something here | [`options`] |
//! | a day's file of entries | [`entries`] |
//! | dates | [`date`] |
//! | where the files are | [`files`] |
//! | from an entry of a file to one of a store; threads | `taking`, `lineage` |
//! | from ELOG to a store | [`import`] |
//! | the same, going on while ELOG does | [`follow`] |
//! | from a store to ELOG | [`export`] |
//! | the passwords of its users | [`password`] |
//! | an entry as its files have it | [`written`] |
//! | its HTTP, for the browsers and programs of a site | [`web`] |
//!
//! The source of an import is never written to. What cannot be read is told with file and place and the rest is taken: these files
//! have been written by many programs, for decades.

use std::{fmt, path::PathBuf};

use serde::Serialize;

pub mod config;
pub mod date;
pub mod entries;
pub mod export;
pub mod files;
pub mod follow;
pub mod import;
mod lineage;
pub mod options;
pub mod password;
mod taking;
pub mod web;
pub mod written;

/// What could not be read, or not as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// In which file.
    pub file: PathBuf,
    /// Bytes before the place.
    pub at: u64,
    /// What is there, and what was done about it.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, byte {}: {}", self.file.display(), self.at, self.what)
    }
}

/// Reads bytes of which nobody knows for certain what they are: UTF-8 where they are that, else ISO-8859-1, with the characters that
/// Windows has in its gaps. A line at a time, because programs have posted either into the same book.
pub fn decode(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(bytes.len() * 9 / 8);
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        match std::str::from_utf8(line) {
            Ok(text) => out.push_str(text),
            Err(_) => out.extend(line.iter().map(|&byte| match byte {
                0x80..=0x9f => WINDOWS[usize::from(byte - 0x80)],
                byte => char::from(byte),
            })),
        }
    }
    out
}

/// What windows-1252 has from 0x80 on.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’', '“', '”',
    '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_either_kind_are_read() {
        assert_eq!(decode("Müller".as_bytes()), "Müller");
        assert_eq!(decode(b"M\xfcller\nM\xc3\xbcller \x80\n"), "Müller\nMÃ¼ller €\n");
        assert_eq!(decode(b"M\xfcller\nM\xc3\xbcller\n"), "Müller\nMüller\n");
    }
}
