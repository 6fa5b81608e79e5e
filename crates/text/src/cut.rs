//! Texts that are too long for a record: their beginning is kept, and the record says how much is missing.
//!
//! A text's full length is written, and at most [`TEXT_MAX`] of its bytes. So a long text needs no special handling at
//! the call, where a branch would cost every other text. The reader detects a length above the largest that can have
//! been kept.

use std::borrow::Cow;

/// Most bytes that are kept of one text.
pub const TEXT_MAX: usize = 64 * 1024;

/// Number of bytes kept of a text of this length.
#[inline(always)]
pub(crate) fn kept(length: usize) -> usize {
    length.min(TEXT_MAX)
}

/// Returns the text of these bytes, which were `length` before the cut. A note behind it gives the number of missing
/// bytes, and bytes that are not UTF-8 become U+FFFD.
pub(crate) fn shown(bytes: &[u8], length: usize) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(whole_characters(bytes, length));
    if length <= bytes.len() {
        return text;
    }
    Cow::Owned(format!("{text} [... {} bytes cut]", length - text.len()))
}

/// Removes the beginning of a character whose end was cut off.
fn whole_characters(bytes: &[u8], length: usize) -> &[u8] {
    if length <= bytes.len() {
        return bytes;
    }
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_fits_is_shown_as_it_is() {
        assert_eq!(shown("é".as_bytes(), 2), "é");
        assert_eq!(shown(b"a\xff", 2), "a\u{fffd}");
    }

    #[test]
    fn a_character_is_shown_whole_or_counted_as_missing() {
        assert_eq!(shown("aé".as_bytes(), 9), "aé [... 6 bytes cut]");
        assert_eq!(shown(&"aé".as_bytes()[..2], 9), "a [... 8 bytes cut]");
    }
}
