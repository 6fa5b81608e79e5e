//! ACS's log files: XML with one element a record, named after its level.
//!
//! [`AcsXmlReader`] reads the files found in practice: ISO-8859-1 or UTF-8, with or without a root, a header or a
//! namespace prefix. Messages are CDATA, plain text or nested XML; attributes are escaped or not. A bad record is
//! reported with file, line and reason, and the next is read. [`AcsXmlWriter`] writes files that ACS's tools read, and
//! that give the same records here. `spec/wire/acs-xml.md` has the mapping of the fields, and Tampu's additions to
//! ACS's attributes.
//!
//! The reader finds a record's bounds by itself (`scan`) and gives quick-xml one record at a time. Rejected: feeding
//! the whole stream to quick-xml. After a broken record an XML parser has lost its position in the tree, and every
//! record behind it.
//!
//! ```
//! use tampu_types::{Level, xml::AcsXmlReader};
//!
//! let file = br#"<?xml version="1.0" encoding="ISO-8859-1"?>
//! <Log>
//! <Info TimeStamp="2005-02-01T15:33:09.592" Routine="init"><![CDATA[Connecting...]]></Info>
//! <Info TimeStamp="yesterday"/>
//! <Error TimeStamp="2005-02-01T15:33:09.599" Host="te1">no answer</Error>
//! </Log>"#;
//! let mut records = AcsXmlReader::new(&file[..], "log.xml");
//! assert_eq!(records.next().unwrap()?.message, "Connecting...");
//! let bad = records.next().unwrap().unwrap_err();
//! assert!(bad.to_string().starts_with("log.xml:4: the TimeStamp 'yesterday' is not a time"));
//! assert_eq!(records.next().unwrap()?.level, Level::Error);
//! assert!(records.next().is_none());
//! # Ok::<(), tampu_types::bad_record::BadRecord>(())
//! ```

mod escape;
mod parse;
mod reader;
mod scan;
mod writer;

pub use reader::AcsXmlReader;
pub use writer::{AcsXmlOptions, AcsXmlWriter, file_frame, write_record};

/// The Data element that holds the record's logger.
const LOGGER: &str = "logName";

/// ACS's spelling of an empty Data value.
const EMPTY_VALUE: &str = "N/A";

/// A record's first attribute, which marks backslash escapes in its texts for characters that XML 1.0 forbids.
const ESCAPES: (&str, &str) = ("Escapes", "backslash");

/// A child element for an attribute whose name XML forbids, or that would be read as another.
const ATTRIBUTE: &str = "Attribute";

/// The attribute with an element's name, if Priority overrides its level.
const ELEMENT: &str = "Element";

#[cfg(test)]
mod tests;
