//! Makes the text of a call: the statement's pieces, with the arguments' values in between.
//!
//! A Rust statement reads as if `format!` had written it at the call, a C++ one as if fmt had. `core::fmt` accepts no
//! format at run time (its options are not stable), so integers, widths and texts are formatted here. Floats, whose
//! digits are hard, are left to `core::fmt`.

mod digits;
mod float;
mod fmt_float;
mod integer;
mod pad;
mod text;

use crate::{
    append::append,
    site::{Dialect, Piece, Site},
    spec::{Kind, Spec},
    tag::Tag,
    value::{BadPayload, Reader, Value},
};

/// Longest text, with its values, that is made of one call: a few bytes of a hostile description can ask for any width.
pub const RENDERED_MAX: usize = 16 << 20;

/// A call's texts, end to end in one buffer that is used again for the next.
#[derive(Debug, Clone, Default)]
pub struct Rendered {
    text: String,
    message_end: usize,
    /// Name of a value by its place in the buffer, and where the value ends.
    values: Vec<(std::ops::Range<usize>, usize)>,
}

impl Rendered {
    /// Makes the text of a call of this statement. After an error, the part before it is kept.
    pub fn render(&mut self, site: &Site, payload: &[u8]) -> Result<(), BadPayload> {
        self.text.clear();
        self.values.clear();
        let done = self.put(site, payload);
        if done.is_err() && self.values.is_empty() {
            self.message_end = self.text.len();
        }
        done
    }

    fn put(&mut self, site: &Site, payload: &[u8]) -> Result<(), BadPayload> {
        self.message_end = 0;
        let count = usize::from(site.arguments);
        let mut reader = Reader::new(payload, count)?;
        for piece in site.pieces.iter() {
            match piece {
                Piece::Text(text) => append(&mut self.text, text),
                Piece::Argument { index, spec } => {
                    reader.seek(usize::from(*index))?;
                    show(&mut self.text, &mut reader, spec, site.dialect)?;
                }
            }
            if self.text.len() > RENDERED_MAX {
                return Err(BadPayload::TooLong(RENDERED_MAX));
            }
        }
        self.message_end = self.text.len();
        if site.names.is_empty() {
            return Ok(());
        }
        let named = count.checked_sub(site.names.len()).ok_or(BadPayload::Count { expected: count })?;
        reader.seek(named)?;
        for name in site.names.iter() {
            let start = self.text.len();
            append(&mut self.text, name);
            let name_end = self.text.len();
            if let Err(error) = show(&mut self.text, &mut reader, &Spec::PLAIN, site.dialect) {
                self.text.truncate(start);
                return Err(error);
            }
            self.values.push((start..name_end, self.text.len()));
            if self.text.len() > RENDERED_MAX {
                return Err(BadPayload::TooLong(RENDERED_MAX));
            }
        }
        Ok(())
    }

    /// Adds a named value that the call did not have.
    pub fn add(&mut self, name: &str, value: u64) {
        let start = self.text.len();
        self.text.push_str(name);
        let name_end = self.text.len();
        digits::push(&mut self.text, value);
        self.values.push((start..name_end, self.text.len()));
    }

    /// Message of the statement, as text.
    pub fn message(&self) -> &str {
        &self.text[..self.message_end]
    }

    /// The named values.
    pub fn values(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, end)| (&self.text[name.clone()], &self.text[name.end..*end]))
    }
}

/// Appends the next argument. Plain integers and texts, which most calls have, take the short path: from the bytes
/// straight into the text, without a [`Value`].
#[inline(always)]
fn show(out: &mut String, reader: &mut Reader<'_>, spec: &Spec, dialect: Dialect) -> Result<(), BadPayload> {
    const U32: u8 = Tag::U32 as u8;
    const U64: u8 = Tag::U64 as u8;
    const I32: u8 = Tag::I32 as u8;
    const I64: u8 = Tag::I64 as u8;
    const STR: u8 = Tag::Str as u8;
    if !spec.is_plain() {
        return show_by_spec(out, reader, spec, dialect);
    }
    match reader.tag() {
        U32 => digits::push(out, u32::from_le_bytes(*reader.number()?).into()),
        U64 => digits::push(out, u64::from_le_bytes(*reader.number()?)),
        I32 => digits::push_signed(out, i32::from_le_bytes(*reader.number()?).into()),
        I64 => digits::push_signed(out, i64::from_le_bytes(*reader.number()?)),
        STR => {
            let text = reader.whole_text()?;
            match text.whole() {
                Some(text) => append(out, text),
                None => out.push_str(&text.shown()),
            }
        }
        _ => return show_by_spec(out, reader, spec, dialect),
    }
    Ok(())
}

#[inline(never)]
fn show_by_spec(out: &mut String, reader: &mut Reader<'_>, spec: &Spec, dialect: Dialect) -> Result<(), BadPayload> {
    let argument = reader.take()?;
    if argument.optional && dialect == Dialect::Rust && spec.kind.is_debug() {
        option(out, argument.value, spec);
    } else {
        present(out, argument.value, spec, dialect);
    }
    Ok(())
}

/// Renders an `Option` as `derive(Debug)` does: the spec applies to the value inside, not to the words around it.
fn option(out: &mut String, value: Value<'_>, spec: &Spec) {
    if value == Value::None {
        return out.push_str("None");
    }
    out.push_str(if spec.alternate { "Some(\n    " } else { "Some(" });
    let start = out.len();
    present(out, value, spec, Dialect::Rust);
    if spec.alternate {
        if out[start..].contains('\n') {
            let indented = out[start..].replace('\n', "\n    ");
            out.truncate(start);
            out.push_str(&indented);
        }
        out.push_str(",\n");
    }
    out.push(')');
}

fn present(out: &mut String, value: Value<'_>, spec: &Spec, dialect: Dialect) {
    match (dialect, value) {
        (_, Value::None) => out.push_str("None"),
        (_, Value::Text(text)) => out.push_str(&text.shown()),
        (_, Value::Str(text)) => text::text(out, &text.shown(), spec, dialect),
        (Dialect::Rust, Value::Bool(value)) => pad::text(out, if value { "true" } else { "false" }, spec),
        (Dialect::Rust, Value::Char(value)) => text::character(out, value, spec, dialect),
        (Dialect::Rust, Value::F32(value)) => float::show(out, value, spec),
        (Dialect::Rust, Value::F64(value)) => float::show(out, value, spec),
        (Dialect::Fmt, Value::F32(value)) => fmt_float::show(out, fmt_float::Number::from(value), spec),
        (Dialect::Fmt, Value::F64(value)) => fmt_float::show(out, fmt_float::Number::from(value), spec),
        (Dialect::Fmt, Value::Bool(value)) => match spec.kind {
            Kind::Display | Kind::Text | Kind::Debug => pad::text(out, if value { "true" } else { "false" }, spec),
            _ => integer::fmt(out, false, u128::from(value), spec),
        },
        (Dialect::Fmt, Value::Char(value)) => match spec.kind {
            Kind::Display | Kind::Character | Kind::Text | Kind::Debug => text::character(out, value, spec, dialect),
            _ => integer::fmt(out, false, u128::from(u32::from(value)), spec),
        },
        (_, Value::Unsigned(number)) => integer::show(out, false, number.into(), 128, spec, dialect),
        (_, Value::Unsigned128(bytes)) => integer::show(out, false, u128::from_le_bytes(bytes), 128, spec, dialect),
        (_, Value::Signed(number, bits)) => {
            integer::show(out, number < 0, number.unsigned_abs().into(), bits, spec, dialect);
        }
        (_, Value::Signed128(bytes)) => {
            let number = i128::from_le_bytes(bytes);
            integer::show(out, number < 0, number.unsigned_abs(), 128, spec, dialect);
        }
    }
}
