//! Widths: what is filled up, on which side, with what.

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

/// Fills up what was appended from `start` on.
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

/// Fills up what was appended from `start` on with zeros, which go in at `at`, behind sign and prefix.
pub fn fill_zeros(out: &mut String, start: usize, at: usize, spec: &Spec) {
    let missing = usize::from(spec.width.unwrap_or(0)).saturating_sub(out[start..].chars().count());
    insert(out, at, '0', missing);
}

fn insert(out: &mut String, at: usize, fill: char, count: usize) {
    if count > 0 {
        let fills: String = std::iter::repeat_n(fill, count).collect();
        out.insert_str(at, &fills);
    }
}
