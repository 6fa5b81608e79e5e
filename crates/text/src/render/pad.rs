//! Padding to a width: the side, and the character.

use crate::spec::{Align, Spec};

/// Appends a text as `Formatter::pad` does: cut to the precision, filled up to the width, standing left.
pub fn text(out: &mut String, text: &str, spec: &Spec) {
    let start = out.len();
    let end = match spec.precision {
        Some(most) => text.char_indices().nth(most.into()).map_or(text.len(), |(at, _)| at),
        None => text.len(),
    };
    out.push_str(&text[..end]);
    fill(out, start, spec, Align::Left);
}

/// Pads the text appended from `start` on.
#[inline]
pub fn fill(out: &mut String, start: usize, spec: &Spec, usual: Align) {
    let Some(width) = spec.width else { return };
    let missing = usize::from(width).saturating_sub(out[start..].chars().count());
    if missing == 0 {
        return;
    }
    let before = match spec.align.unwrap_or(usual) {
        Align::Left => 0,
        Align::Center => missing / 2,
        Align::Right => missing,
    };
    insert(out, start, spec.fill, before);
    out.extend(std::iter::repeat_n(spec.fill, missing - before));
}

/// Pads the text appended from `start` on with zeros, which are inserted at `at`, behind sign and prefix.
pub fn fill_zeros(out: &mut String, start: usize, at: usize, spec: &Spec) {
    let missing = usize::from(spec.width.unwrap_or(0)).saturating_sub(out[start..].chars().count());
    insert(out, at, '0', missing);
}

/// Inserts a character so many times, several at once: one by one would move the rest of the text each time.
fn insert(out: &mut String, at: usize, fill: char, mut count: usize) {
    const HANDFUL: usize = 64;
    let mut bytes = [0; 4 * HANDFUL];
    let width = fill.len_utf8();
    for place in bytes.chunks_exact_mut(width).take(HANDFUL) {
        fill.encode_utf8(place);
    }
    let fills = std::str::from_utf8(&bytes[..width * HANDFUL]).unwrap_or_default();
    while count > 0 {
        let now = count.min(HANDFUL);
        out.insert_str(at, &fills[..now * width]);
        count -= now;
    }
}
