//! Texts and characters.

use std::fmt::Write;

use crate::{
    render::pad,
    site::Dialect,
    spec::{Align, Spec},
};

/// Appends a text.
pub fn text(out: &mut String, text: &str, spec: &Spec, dialect: Dialect) {
    if !spec.kind.is_debug() {
        return pad::text(out, text, spec);
    }
    let start = out.len();
    // Writing to a String does not fail.
    let _ = write!(out, "{text:?}");
    widen(out, start, spec, dialect);
}

/// Appends a character.
pub fn character(out: &mut String, character: char, spec: &Spec, dialect: Dialect) {
    if !spec.kind.is_debug() {
        return pad::text(out, character.encode_utf8(&mut [0; 4]), spec);
    }
    let start = out.len();
    let _ = write!(out, "{character:?}");
    widen(out, start, spec, dialect);
}

/// Pads a text to the width, which Rust's Debug of texts ignores and fmt's does not.
fn widen(out: &mut String, start: usize, spec: &Spec, dialect: Dialect) {
    if dialect == Dialect::Fmt {
        pad::fill(out, start, spec, Align::Left);
    }
}
