//! Paths of the logbook's API, for its clients and for the hub that serves it.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::entry::EntryRef;

/// The beginning of all paths of the API.
pub const BASE: &str = "/api/v1";

/// All bytes but those that RFC 3986 leaves unreserved.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encodes a text as one segment of a path, or as a parameter's value.
pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// The path of an entry, from the root.
pub fn entry_path(at: &EntryRef) -> String {
    format!("{BASE}/books/{}/entries/{}", encoded(&at.book), at.id)
}
