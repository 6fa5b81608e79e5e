//! References, moments and texts of entries as the command line writes them.

use tampu_logbook::entry::{BadEntryRef, EntryRef};
use tampu_types::{Time, terminal::is_harmful};

use crate::time_text;

/// Parses a reference to an entry, `Shift/12`.
pub fn entry_ref(text: &str) -> Result<EntryRef, String> {
    text.parse().map_err(|error: BadEntryRef| error.to_string())
}

/// A moment to the minute, with its zone.
pub fn minute(at: Time) -> String {
    time_text::minute_with_zone(at)
}

/// Returns a text that is safe on a terminal: characters that drive it, or turn or hide text, are shown; line ends and tabs stay if
/// `lines` is set.
pub fn shown(text: &str, lines: bool) -> String {
    let tell = |c: char| match c {
        '\n' | '\t' if lines => c.to_string(),
        '\n' | '\t' | '\r' => " ".to_owned(),
        c if is_harmful(c) => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(tell).collect()
}
