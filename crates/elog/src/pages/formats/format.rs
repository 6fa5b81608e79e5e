//! The formats of a list that is not a page.

use tampu_logbook::{book::same_name, entry::Entry};

pub(in crate::pages) const PLAIN: &str = "text/plain; charset=utf-8";

/// The format of a list that is not a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListFormat {
    /// A table with commas.
    Csv1,
    /// A table with semicolons.
    Csv2,
    /// A table with semicolons, and with the texts.
    Csv3,
    Xml,
    /// The text of ELOG's files, with line ends of Windows.
    Raw,
}

impl ListFormat {
    /// Returns the format with this name in an address, without case.
    pub fn named(name: &str) -> Option<ListFormat> {
        let all = [
            ("CSV1", ListFormat::Csv1),
            ("CSV2", ListFormat::Csv2),
            ("CSV3", ListFormat::Csv3),
            ("XML", ListFormat::Xml),
            ("Raw", ListFormat::Raw),
        ];
        all.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, format)| format)
    }

    pub(super) fn file_name(self) -> &'static str {
        match self {
            ListFormat::Csv1 | ListFormat::Csv2 | ListFormat::Csv3 => "export.csv",
            ListFormat::Xml => "export.xml",
            ListFormat::Raw => "export.txt",
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            ListFormat::Csv1 | ListFormat::Csv2 | ListFormat::Csv3 => "text/csv; charset=utf-8",
            ListFormat::Xml => "application/xml; charset=utf-8",
            ListFormat::Raw => PLAIN,
        }
    }
}

/// Returns the value of an attribute; empty if the entry has none.
pub fn value_of(entry: &Entry, name: &str) -> String {
    let said = entry.content.attributes.iter().find(|said| same_name(&said.name, name));
    said.map(|said| said.joined()).unwrap_or_default()
}
