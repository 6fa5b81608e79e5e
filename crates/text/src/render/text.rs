//! Texts and characters.

use std::fmt::Write;

use crate::{
    render::{is_debug, pad},
    site::Dialect,
    spec::{Align, Spec},
};

/// Appends a text.
pub fn text(out: &mut String, text: &str, spec: &Spec, dialect: Dialect) {
    if !is_debug(spec.kind) {
        return pad::text(out, text, spec);
    }
    let start = out.len();
    // A String takes everything.
    let _ = write!(out, "{text:?}");
    widen(out, start, spec, dialect);
}

/// Appends a character.
pub fn character(out: &mut String, character: char, spec: &Spec, dialect: Dialect) {
    if !is_debug(spec.kind) {
        return pad::text(out, character.encode_utf8(&mut [0; 4]), spec);
    }
    let start = out.len();
    let _ = write!(out, "{character:?}");
    widen(out, start, spec, dialect);
}

/// Rust's Debug of texts takes no notice of the width, fmt's does.
fn widen(out: &mut String, start: usize, spec: &Spec, dialect: Dialect) {
    if dialect == Dialect::Fmt {
        pad::fill(out, start, spec, Align::Left);
    }
}
