//! A site as bytes, for the dictionary: `spec/log-call.md`.
//!
//! ```text
//! version u8 | level u8 | dialect u8 | 0 u8 | line u32 | file | module | routine | arguments u16
//! | pieces: count u32, then each: 0 u8, text   or   1 u8, index u16, spec
//! | names: count u16, then texts | what a later release appends
//!
//! text: length u32, UTF-8
//! spec: fill u32 | align u8 | sign u8 | flags u8 | kind u8 | width u16 | precision u16
//! ```

use std::borrow::Cow;

use crate::{
    site::{Dialect, Piece, Site},
    spec::{Align, Kind, Sign, Spec},
    tag::ARGUMENTS_MAX,
};

/// The layout described here.
const VERSION: u8 = 1;

const ALTERNATE: u8 = 1;
const ZERO: u8 = 2;
const WIDTH: u8 = 4;
const PRECISION: u8 = 8;

/// Error of bytes that are not a site.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum BadSite {
    /// Bytes that end too early.
    #[error("the description of a log statement ends at byte {at}, in the middle of its {field}")]
    Truncated { at: usize, field: &'static str },
    /// A later release changed the layout.
    #[error("the description of a log statement has version {0}; this release reads version 1")]
    Version(u8),
    /// A number with no meaning.
    #[error("the description of a log statement has {value} as its {field}, at byte {at}")]
    Meaningless { at: usize, field: &'static str, value: u32 },
    /// A text is no UTF-8.
    #[error("the description of a log statement is not UTF-8 in its {field}, at byte {at}")]
    NotText { at: usize, field: &'static str },
}

impl Site {
    /// Appends the site's bytes.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend([VERSION, self.level, self.dialect as u8, 0]);
        bytes.extend(self.line.to_le_bytes());
        for text in [&self.file, &self.module, &self.routine] {
            put_text(bytes, text);
        }
        bytes.extend(self.arguments.to_le_bytes());
        bytes.extend((self.pieces.len() as u32).to_le_bytes());
        for piece in self.pieces.iter() {
            match piece {
                Piece::Text(text) => {
                    bytes.push(0);
                    put_text(bytes, text);
                }
                Piece::Argument { index, spec } => {
                    bytes.push(1);
                    bytes.extend(index.to_le_bytes());
                    put_spec(bytes, spec);
                }
            }
        }
        bytes.extend((self.names.len() as u16).to_le_bytes());
        for name in self.names.iter() {
            put_text(bytes, name);
        }
    }

    /// Reads a site. Bytes behind it belong to a later release and are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Site, BadSite> {
        let mut read = Reader { bytes, at: 0 };
        let version = read.u8("version")?;
        if version != VERSION {
            return Err(BadSite::Version(version));
        }
        let level = read.u8("level")?;
        let dialect = match read.u8("dialect")? {
            0 => Dialect::Rust,
            1 => Dialect::Fmt,
            other => return Err(read.meaningless("dialect", other.into())),
        };
        read.u8("reserved byte")?;
        let line = read.u32("line")?;
        let file = read.text("file")?;
        let module = read.text("module")?;
        let routine = read.text("routine")?;
        let arguments = read.u16("number of arguments")?;
        if usize::from(arguments) > ARGUMENTS_MAX {
            return Err(read.meaningless("number of arguments", arguments.into()));
        }
        let count = read.u32("number of pieces")?;
        // The count comes from the bytes, so no memory is reserved for it.
        let mut pieces = Vec::new();
        for _ in 0..count {
            pieces.push(read.piece(arguments)?);
        }
        let count = read.u16("number of names")?;
        if count > arguments {
            return Err(read.meaningless("number of names", count.into()));
        }
        let names: Vec<Cow<'static, str>> = (0..count).map(|_| read.text("names")).collect::<Result<_, _>>()?;
        Ok(Site { level, dialect, file, line, module, routine, pieces: pieces.into(), arguments, names: names.into() })
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
}

fn put_spec(bytes: &mut Vec<u8>, spec: &Spec) {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let flags = flag(spec.alternate, ALTERNATE)
        | flag(spec.zero, ZERO)
        | flag(spec.width.is_some(), WIDTH)
        | flag(spec.precision.is_some(), PRECISION);
    bytes.extend(u32::from(spec.fill).to_le_bytes());
    bytes.extend([spec.align.map_or(0, |align| align as u8), spec.sign as u8, flags, spec.kind as u8]);
    bytes.extend(spec.width.unwrap_or(0).to_le_bytes());
    bytes.extend(spec.precision.unwrap_or(0).to_le_bytes());
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self, length: usize, field: &'static str) -> Result<&[u8], BadSite> {
        let left = &self.bytes[self.at..];
        let taken = left.get(..length).ok_or(BadSite::Truncated { at: self.bytes.len(), field })?;
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], BadSite> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, field)?);
        Ok(array)
    }

    fn u8(&mut self, field: &'static str) -> Result<u8, BadSite> {
        self.array(field).map(u8::from_le_bytes)
    }

    fn u16(&mut self, field: &'static str) -> Result<u16, BadSite> {
        self.array(field).map(u16::from_le_bytes)
    }

    fn u32(&mut self, field: &'static str) -> Result<u32, BadSite> {
        self.array(field).map(u32::from_le_bytes)
    }

    fn text(&mut self, field: &'static str) -> Result<Cow<'static, str>, BadSite> {
        let length = self.u32(field)?;
        let at = self.at;
        let text = std::str::from_utf8(self.take(length as usize, field)?);
        text.map(|text| Cow::Owned(text.to_owned())).map_err(|_| BadSite::NotText { at, field })
    }

    fn piece(&mut self, arguments: u16) -> Result<Piece, BadSite> {
        match self.u8("piece")? {
            0 => Ok(Piece::Text(self.text("text")?)),
            1 => {
                let index = self.u16("argument's number")?;
                if index >= arguments {
                    return Err(self.meaningless("argument's number", index.into()));
                }
                Ok(Piece::Argument { index, spec: self.spec()? })
            }
            other => Err(self.meaningless("piece", other.into())),
        }
    }

    fn spec(&mut self) -> Result<Spec, BadSite> {
        let fill = self.u32("fill")?;
        let fill = char::from_u32(fill).ok_or_else(|| self.meaningless("fill", fill))?;
        let align = match self.u8("alignment")? {
            0 => None,
            1 => Some(Align::Left),
            2 => Some(Align::Center),
            3 => Some(Align::Right),
            other => return Err(self.meaningless("alignment", other.into())),
        };
        let sign = match self.u8("sign")? {
            0 => Sign::None,
            1 => Sign::Plus,
            2 => Sign::Space,
            other => return Err(self.meaningless("sign", other.into())),
        };
        let flags = self.u8("flags")?;
        let kind = self.u8("kind")?;
        let kind = Kind::from_number(kind).ok_or_else(|| self.meaningless("kind", kind.into()))?;
        let (width, precision) = (self.u16("width")?, self.u16("precision")?);
        Ok(Spec {
            fill,
            align,
            sign,
            alternate: flags & ALTERNATE != 0,
            zero: flags & ZERO != 0,
            width: (flags & WIDTH != 0).then_some(width),
            precision: (flags & PRECISION != 0).then_some(precision),
            kind,
        })
    }

    /// The error for a number that was just read.
    fn meaningless(&self, field: &'static str, value: u32) -> BadSite {
        BadSite::Meaningless { at: self.at, field, value }
    }
}
