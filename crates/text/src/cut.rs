//! Texts that are too long for a record: their beginning is kept, and the record says how much is missing.

use std::fmt::{self, Write};

/// Most bytes that are kept of one text.
pub const TEXT_MAX: usize = 64 * 1024;

/// Longest [`Mark`]: the words and twenty digits.
const MARK_MAX: usize = 40;

/// What stands at the end of a text that was cut.
pub(crate) struct Mark {
    bytes: [u8; MARK_MAX],
    length: usize,
}

impl Mark {
    pub fn of(left_out: usize) -> Mark {
        let mut mark = Mark { bytes: [0; MARK_MAX], length: 0 };
        // It cannot fail: the longest number fits.
        let _ = write!(mark, " [... {left_out} bytes cut]");
        mark
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Write for Mark {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// The part of a too long text that is kept, and what stands behind it.
#[cold]
#[inline(never)]
pub(crate) fn cut(text: &str) -> (&[u8], Mark) {
    let kept = text.floor_char_boundary(TEXT_MAX);
    (&text.as_bytes()[..kept], Mark::of(text.len() - kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_number_fits_its_mark() {
        assert_eq!(Mark::of(usize::MAX).as_bytes(), format!(" [... {} bytes cut]", usize::MAX).as_bytes());
    }

    #[test]
    fn a_character_is_kept_whole_or_left_out() {
        let text = "é".repeat(TEXT_MAX);
        let (kept, _) = cut(&text[..]);
        assert_eq!(kept.len(), TEXT_MAX);
        let text = format!("x{text}");
        let (kept, mark) = cut(&text);
        assert_eq!(kept.len(), TEXT_MAX - 1);
        assert_eq!(mark.as_bytes(), format!(" [... {} bytes cut]", TEXT_MAX + 2).as_bytes());
    }
}
