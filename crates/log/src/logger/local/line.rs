//! A record as a line for people: time, level, source, text, data.
//!
//! Parts that stay the same from record to record are not formatted again. The time text is kept and changed where it
//! differs. Level and source are a prepared text of the logger.

use tampu_text::append;
use tampu_types::{Level, Time, terminal::is_harmful};

use crate::logger::local::colour::{END_OF_COLOUR, colour_of};

const DIM: &str = "\x1b[2m";
/// Characters of a time.
const TIME_LEN: usize = 23;
/// Characters of a time up to its decimals.
const SECONDS_LEN: usize = 20;

/// Encoder of records as lines.
pub struct Lines {
    coloured: bool,
    /// The last record's time, in ms, and as text.
    ms: i64,
    time: [u8; TIME_LEN],
}

impl Lines {
    pub fn new(coloured: bool) -> Lines {
        let mut lines = Lines { coloured, ms: 0, time: [b'0'; TIME_LEN] };
        lines.begin_second(Time(0));
        lines
    }

    /// Makes the part between time and text.
    pub fn lead(&self, level: Level, source_object: &str, logger: &str) -> String {
        let source = if source_object.is_empty() { logger } else { source_object };
        let (colour, end) = if self.coloured { (colour_of(level), END_OF_COLOUR) } else { ("", "") };
        let mut lead = format!(" {colour}{:<9}{end} ", level.name());
        push_printable(&mut lead, source);
        lead.push_str(": ");
        lead
    }

    /// Appends a record.
    #[inline]
    pub fn put<'d>(
        &mut self,
        out: &mut String,
        time: Time,
        lead: &str,
        message: &str,
        data: impl ExactSizeIterator<Item = (&'d str, &'d str)>,
    ) {
        // One reservation for the whole line. Characters that need escapes take more room, and their own time.
        out.reserve(TIME_LEN + lead.len() + message.len() + 64);
        if self.coloured {
            out.push_str(DIM);
        }
        out.push_str(self.time_text(time));
        if self.coloured {
            out.push_str(END_OF_COLOUR);
        }
        append(out, lead);
        push_printable(out, message);
        if data.len() > 0 {
            self.put_data(out, data);
        }
        out.push('\n');
    }

    fn put_data<'d>(&self, out: &mut String, data: impl Iterator<Item = (&'d str, &'d str)>) {
        if self.coloured {
            out.push_str(DIM);
        }
        for (name, value) in data {
            out.push(' ');
            push_printable(out, name);
            out.push('=');
            push_printable(out, value);
        }
        if self.coloured {
            out.push_str(END_OF_COLOUR);
        }
    }

    /// Formats a time like [`Time::to_acs`].
    #[inline]
    fn time_text(&mut self, time: Time) -> &str {
        let ms = time.0.saturating_add(500_000).div_euclid(1_000_000);
        if ms != self.ms {
            self.change(ms);
        }
        // SAFETY: the bytes are copied from a `String` that is all ASCII, and only digits replace them.
        unsafe { std::str::from_utf8_unchecked(&self.time) }
    }

    fn change(&mut self, ms: i64) {
        let second = ms.div_euclid(1000);
        if second != self.ms.div_euclid(1000) {
            self.begin_second(Time(second.saturating_mul(1_000_000_000)));
        }
        self.ms = ms;
        let decimals = ms.rem_euclid(1000) as u32;
        for (place, digit) in self.time[SECONDS_LEN..].iter_mut().zip([decimals / 100, decimals / 10 % 10, decimals % 10]) {
            *place = b'0' + digit as u8;
        }
    }

    fn begin_second(&mut self, second: Time) {
        let mut text = String::with_capacity(TIME_LEN);
        second.write_to(&mut text, 3);
        // Years between 1678 and 2262 have four digits, so the length is always this.
        if let Some(text) = text.as_bytes().first_chunk() {
            self.time = *text;
        }
    }
}

/// Appends a text that must not be able to forge another line or drive the terminal: its control characters are shown.
#[inline]
pub fn push_printable(out: &mut String, text: &str) {
    if may_have_controls(text.as_bytes()) { push_escaped(out, text) } else { append(out, text) }
}

/// Returns whether there may be a harmful character. Controls are below a blank, or 0x7f, or begin with 0xc2; those that turn or
/// hide text begin with one of five other bytes. Some harmless ones begin so, too. By
/// sixteen bytes, which become vector instructions; the last sixteen overlap those before them.
#[inline]
fn may_have_controls(text: &[u8]) -> bool {
    let first = |byte: u8| matches!(byte, 0..0x20 | 0x7f | 0xc2 | 0xd8 | 0xe1 | 0xe2 | 0xef | 0xf3);
    let suspicious = |found: bool, byte: &u8| found | first(*byte);
    let (whole, _) = text.as_chunks::<16>();
    match text.last_chunk::<16>() {
        Some(last) => whole.iter().chain([last]).any(|sixteen| sixteen.iter().fold(false, suspicious)),
        None => text.iter().fold(false, suspicious),
    }
}

#[cold]
#[inline(never)]
fn push_escaped(out: &mut String, text: &str) {
    for character in text.chars() {
        if is_harmful(character) { out.extend(character.escape_default()) } else { out.push(character) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn controls_of_every_kind_are_shown() {
        let mut out = String::new();
        push_printable(&mut out, "a\nb\t\u{1b}[2J\u{7f}\u{9b}\u{202e}\u{61c}\u{feff}é\u{a0}ü");
        assert_eq!(out, r"a\nb\t\u{1b}[2J\u{7f}\u{9b}\u{202e}\u{61c}\u{feff}é".to_owned() + "\u{a0}ü");
    }

    proptest! {
        #[test]
        fn times_are_as_acs_writes_them(times in proptest::collection::vec(any::<i64>(), 1..5), near in -3_000_000_000i64..3_000_000_000) {
            let mut lines = Lines::new(false);
            for time in times {
                for time in [Time(time), Time(time.saturating_add(near)), Time(near)] {
                    prop_assert_eq!(lines.time_text(time), time.to_acs());
                }
            }
        }

        #[test]
        fn nothing_that_controls_gets_through_and_nothing_else_changes(text: String) {
            let mut out = String::new();
            push_printable(&mut out, &text);
            prop_assert!(!out.contains(is_harmful));
            if !text.contains(is_harmful) {
                prop_assert_eq!(out, text);
            }
        }
    }
}
