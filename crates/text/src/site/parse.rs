//! A site made at run time from a C++ format text, `"az {} el {:.3f}"`: fmt's replacement fields.
//!
//! ```text
//! field := '{' [number] [':' [[fill] align] ['+' | '-' | ' '] ['#'] ['0'] [width] ['.' precision] ['L'] [type]] '}'
//! align := '<' | '^' | '>'        type := one of s d b B o x X c f F e E g G ?
//! ```
//!
//! The front end must resolve names, and widths taken from arguments; here they are errors. `a` (hexadecimal floats)
//! and `p` are formatted at the call.

use std::borrow::Cow;

use crate::{
    site::{Dialect, Piece, Site},
    spec::{Align, Kind, Sign, Spec},
    tag::ARGUMENTS_MAX,
};

/// Error of a text that is not a format text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum BadText {
    /// A brace is neither doubled nor part of a field.
    #[error("a '}}' at byte {at} closes nothing; for a brace in the text write '}}}}'")]
    Unopened { at: usize },
    /// A field does not end.
    #[error("the '{{' at byte {at} is not closed; for a brace in the text write '{{{{'")]
    Unclosed { at: usize },
    /// The contents of a field mean nothing.
    #[error("'{{{field}}}' at byte {at}: {why}")]
    Field { at: usize, field: String, why: &'static str },
    /// Fields both with and without numbers.
    #[error("'{{{field}}}' at byte {at}: either all fields have numbers or none has")]
    Mixed { at: usize, field: String },
    /// Too many arguments for a call.
    #[error("a log statement takes at most 64 arguments")]
    TooMany,
}

impl Site {
    /// A site with this format text, in [`Dialect::Fmt`]; level, place and names are the caller's to fill in, and
    /// `arguments` is the number that the text asks for.
    pub fn parse(text: &str) -> Result<Site, BadText> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut numbering = Numbering { next: 0, most: 0, explicit: None };
        let mut at = 0;
        while let Some(brace) = text[at..].find(['{', '}']).map(|offset| at + offset) {
            literal.push_str(&text[at..brace]);
            let (open, rest) = (text.as_bytes()[brace] == b'{', &text[brace + 1..]);
            if rest.starts_with(if open { '{' } else { '}' }) {
                literal.push(if open { '{' } else { '}' });
                at = brace + 2;
                continue;
            }
            if !open {
                return Err(BadText::Unopened { at: brace });
            }
            // A brace can be the fill, and then stands before its alignment.
            let closing = rest.char_indices().find(|&(offset, character)| character == '}' && !is_fill(rest, offset));
            let (length, _) = closing.ok_or(BadText::Unclosed { at: brace })?;
            if !literal.is_empty() {
                pieces.push(Piece::Text(Cow::Owned(std::mem::take(&mut literal))));
            }
            pieces.push(numbering.field(&rest[..length], brace)?);
            at = brace + 1 + length + 1;
        }
        literal.push_str(&text[at..]);
        if !literal.is_empty() {
            pieces.push(Piece::Text(Cow::Owned(literal)));
        }
        Ok(Site { dialect: Dialect::Fmt, pieces: pieces.into(), arguments: numbering.most, ..Site::default() })
    }
}

/// Returns true if the character there is a field's fill: behind the colon and before an alignment.
fn is_fill(rest: &str, offset: usize) -> bool {
    rest[..offset].ends_with(':') && rest[offset + 1..].starts_with(['<', '^', '>'])
}

/// Assignment of arguments to fields.
struct Numbering {
    next: u16,
    most: u16,
    explicit: Option<bool>,
}

impl Numbering {
    fn field(&mut self, field: &str, at: usize) -> Result<Piece, BadText> {
        let bad = |why| BadText::Field { at, field: field.to_owned(), why };
        let (number, spec) = field.split_once(':').unwrap_or((field, ""));
        let explicit = !number.is_empty();
        if self.explicit.is_some_and(|before| before != explicit) {
            return Err(BadText::Mixed { at, field: field.to_owned() });
        }
        self.explicit = Some(explicit);
        let index = if explicit { number.parse().map_err(|_| bad("the argument is named by its number"))? } else { self.next };
        if usize::from(index) >= ARGUMENTS_MAX {
            return Err(BadText::TooMany);
        }
        self.next = index + 1;
        self.most = self.most.max(self.next);
        Ok(Piece::Argument { index, spec: parse_spec(spec).map_err(bad)? })
    }
}

fn parse_spec(text: &str) -> Result<Spec, &'static str> {
    let mut spec = Spec::PLAIN;
    let mut rest = text;
    let align = |character: char| match character {
        '<' => Some(Align::Left),
        '^' => Some(Align::Center),
        '>' => Some(Align::Right),
        _ => None,
    };
    let mut characters = rest.chars();
    if let (Some(fill), Some(side)) = (characters.next(), characters.next().and_then(align)) {
        (spec.fill, spec.align, rest) = (fill, Some(side), characters.as_str());
    } else if let Some(side) = rest.chars().next().and_then(align) {
        (spec.align, rest) = (Some(side), &rest[1..]);
    }
    for (character, sign) in [('+', Sign::Plus), ('-', Sign::None), (' ', Sign::Space)] {
        if let Some(behind) = rest.strip_prefix(character) {
            (spec.sign, rest) = (sign, behind);
            break;
        }
    }
    (spec.alternate, rest) = flag(rest, '#');
    (spec.zero, rest) = flag(rest, '0');
    (spec.width, rest) = number(rest)?;
    if let Some(behind) = rest.strip_prefix('.') {
        (spec.precision, rest) = number(behind)?;
        if spec.precision.is_none() {
            return Err("a number stands behind the point");
        }
    }
    rest = flag(rest, 'L').1;
    spec.kind = match rest {
        "" => Kind::Display,
        "?" => Kind::Debug,
        "s" => Kind::Text,
        "d" => Kind::Decimal,
        "b" => Kind::Binary,
        "B" => Kind::UpperBinary,
        "o" => Kind::Octal,
        "x" => Kind::LowerHex,
        "X" => Kind::UpperHex,
        "c" => Kind::Character,
        "f" => Kind::LowerFixed,
        "F" => Kind::UpperFixed,
        "e" => Kind::LowerExp,
        "E" => Kind::UpperExp,
        "g" => Kind::LowerGeneral,
        "G" => Kind::UpperGeneral,
        _ => return Err("known types are s d b B o x X c f F e E g G ?"),
    };
    Ok(spec)
}

fn flag(text: &str, character: char) -> (bool, &str) {
    text.strip_prefix(character).map_or((false, text), |rest| (true, rest))
}

fn number(text: &str) -> Result<(Option<u16>, &str), &'static str> {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() {
        return Ok((None, rest));
    }
    digits.parse().map(|number| (Some(number), rest)).map_err(|_| "widths and precisions go up to 65535")
}
