//! ELOG: import and export of a site's logbooks, and pages under the same addresses for its browsers and programs.
//!
//! | subject | module |
//! |-|-|
//! | `elogd.cfg` | [`config`] |
//! | the effect of its options | [`options`] |
//! | a day's file of entries | [`entries`] |
//! | dates | [`date`] |
//! | the files of a logbook | [`files`] |
//! | conversion of an entry of a file to one of a store; threads | `convert`, `thread_links` |
//! | import from ELOG to a store | [`import`] |
//! | import of changes while ELOG runs | [`follow`] |
//! | export from a store to ELOG | [`export`] |
//! | users of its password file | [`users`] |
//! | an entry as text of its files | [`file_text`] |
//! | its HTTP pages, for the browsers and programs of a site | [`pages`] |
//!
//! The source of an import is never written to. An entry that cannot be read is reported with file and position, and
//! the rest is imported: many programs have written these files, for decades.
//!
//! The logbook does not need this crate. A site without ELOG can drop it. The options in
//! [`tampu_logbook::book::elog_options`] that restrict access remain with the logbook, so every book stays as closed as
//! it was.
//!
//! ```
//! use tampu_elog::import::{ImportSource, import_elog};
//! use tampu_logbook::store::sqlite::SqliteStore;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let logbooks = dir.path().join("logbooks");
//! # std::fs::create_dir_all(logbooks.join("Shift"))?;
//! # let entry = "$@MID@$: 1\nDate: Wed, 10 Sep 2008 00:20:50 +0200\nSubject: HV trip\nEncoding: plain\n";
//! # std::fs::write(logbooks.join("Shift/080910a.log"), format!("{entry}{}\ntext\n", "=".repeat(40)))?;
//! let store = SqliteStore::open(&dir.path().join("book"))?;
//! let report = import_elog(&store, &ImportSource { logbooks, ..ImportSource::default() }, &mut |_done, _total| true)?;
//! assert_eq!((report.books[0].book.as_str(), report.books[0].new), ("Shift", 1));
//! # Ok(())
//! # }
//! ```

use std::{fmt, path::PathBuf};

use serde::Serialize;

pub mod access_report;
pub mod book_config;
pub mod config;
mod convert;
pub mod date;
pub mod entries;
mod entry_reader;
pub mod export;
mod fault_lines;
pub mod file_text;
pub mod files;
pub mod follow;
pub mod import;
pub mod login_methods;
mod option_values;
pub mod options;
pub mod pages;
mod renumber;
pub mod site_files;
pub mod site_record;
pub mod site_zone;
mod thread_links;
pub mod users;

/// A fault of a file: unreadable, or not in ELOG's format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileFault {
    /// The path of the file.
    pub file: PathBuf,
    /// The position, in bytes.
    pub at: u64,
    /// The line of that position, from 1; 0 if it is not known.
    pub line: u64,
    /// The fault, and how it was handled.
    pub what: String,
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            // A fault of the configuration has its line in the text.
            0 if self.at == 0 => write!(f, "{}: {}", self.file.display(), self.what),
            0 => write!(f, "{}, byte {}: {}", self.file.display(), self.at, self.what),
            line => write!(f, "{}, line {line}, byte {}: {}", self.file.display(), self.at, self.what),
        }
    }
}

/// Decodes bytes of unknown encoding: UTF-8 if they are valid UTF-8, else ISO-8859-1 with the characters of Windows in
/// its gaps. It decodes line by line, because programs have posted both encodings into the same book.
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

/// The characters of windows-1252 from 0x80 on.
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
