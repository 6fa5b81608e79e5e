//! The values of a payload, read back. Any bytes are accepted: they come from memory that another program wrote.

use std::borrow::Cow;

use crate::{
    cut::{kept, shown},
    tag::{ARGUMENTS_MAX, OPTIONAL, Tag},
};

/// One argument's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// An absent value.
    None,
    /// A truth value.
    Bool(bool),
    /// A character; bytes that are not one are U+FFFD here.
    Char(char),
    /// An unsigned integer.
    Unsigned(u64),
    /// An unsigned integer of 128 bits, as bytes: its alignment would make every value larger.
    Unsigned128([u8; 16]),
    /// A signed integer, and how many bits its type has: hexadecimal needs that.
    Signed(i64, u8),
    /// A signed integer of 128 bits, as bytes.
    Signed128([u8; 16]),
    /// A float of 32 bits.
    F32(f32),
    /// A float of 64 bits.
    F64(f64),
    /// A text to be formatted.
    Str(Text<'a>),
    /// A text that was formatted at the call.
    Text(Text<'a>),
}

/// A text: its bytes, which are perhaps no UTF-8, and how many it had before it was cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Text<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) length: u32,
}

impl<'a> Text<'a> {
    /// The text as it is shown: with a note about the missing part, and U+FFFD for invalid UTF-8.
    #[inline]
    pub fn shown(&self) -> Cow<'a, str> {
        match self.whole() {
            Some(text) => Cow::Borrowed(text),
            None => shown(self.bytes, self.length as usize),
        }
    }

    /// Returns the text, if it is complete and valid.
    #[inline]
    pub(crate) fn whole(&self) -> Option<&'a str> {
        let whole = self.length as usize == self.bytes.len();
        // Most texts are short and ASCII; for those a closer check would cost more than all the rest.
        let ascii = self.bytes.len() <= 64 && self.bytes.iter().fold(0, |all, &byte| all | byte) < 0x80;
        if whole && ascii {
            // SAFETY: ASCII is UTF-8.
            return Some(unsafe { std::str::from_utf8_unchecked(self.bytes) });
        }
        std::str::from_utf8(self.bytes).ok().filter(|_| whole)
    }
}

/// An argument: its value, and whether its type is an `Option`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Argument<'a> {
    /// Value of the argument.
    pub value: Value<'a>,
    /// True if the argument is an `Option`.
    pub optional: bool,
}

/// Error of a payload that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum BadPayload {
    /// Bytes that end too early.
    #[error("the arguments of a log call end at byte {at}, in the middle of argument {argument}")]
    Truncated { at: usize, argument: usize },
    /// A kind that this release does not know.
    #[error("argument {argument} of a log call has the unknown kind {tag}")]
    UnknownTag { argument: usize, tag: u8 },
    /// The payload has other arguments than the statement.
    #[error("a log statement of {expected} arguments has a call with another number")]
    Count { expected: usize },
    /// The byte in front of an optional value is neither 0 nor 1.
    #[error("argument {argument} of a log call is neither there nor absent: {value}")]
    Presence { argument: usize, value: u8 },
    /// A statement asks for an argument that it does not have.
    #[error("a log statement of {count} arguments shows argument {index}")]
    NoSuchArgument { index: usize, count: usize },
    /// The text grows beyond all measure.
    #[error("the text of a log call would be longer than {0} bytes")]
    TooLong(usize),
}

/// Reads a payload's arguments in order.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    /// A tag for each argument, no more.
    tags: &'a [u8],
    values: &'a [u8],
    next: usize,
    at: usize,
}

impl<'a> Reader<'a> {
    /// Begins with the first of so many arguments. Bytes behind the last are ignored: a ring pads its records.
    #[inline]
    pub fn new(payload: &'a [u8], count: usize) -> Result<Reader<'a>, BadPayload> {
        if count > ARGUMENTS_MAX {
            return Err(BadPayload::Count { expected: count });
        }
        let Some((tags, values)) = payload.split_at_checked(count.next_multiple_of(8)) else {
            return Err(BadPayload::Truncated { at: payload.len(), argument: 0 });
        };
        // The rest of the last word of tags.
        let last = tags.last_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        if !count.is_multiple_of(8) && last >> (8 * (count % 8)) != 0 {
            return Err(BadPayload::Count { expected: count });
        }
        let tags = &tags[..count];
        Ok(Reader { tags, values, next: 0, at: 0 })
    }

    /// Moves to an argument. Nearly always that is the next; otherwise the values before it are read again.
    #[inline]
    pub fn seek(&mut self, index: usize) -> Result<(), BadPayload> {
        if self.next == index { Ok(()) } else { self.search(index) }
    }

    #[cold]
    #[inline(never)]
    fn search(&mut self, index: usize) -> Result<(), BadPayload> {
        if self.next > index {
            (self.next, self.at) = (0, 0);
        }
        while self.next < index {
            self.take()?;
        }
        Ok(())
    }

    #[cold]
    fn truncated(&self) -> BadPayload {
        BadPayload::Truncated { at: self.tags.len().next_multiple_of(8) + self.values.len(), argument: self.next }
    }

    #[inline(always)]
    fn bytes(&mut self, length: usize) -> Result<&'a [u8], BadPayload> {
        // `at` is within the values, so nothing here overflows.
        let bytes = self.values[self.at..].get(..length).ok_or_else(|| self.truncated())?;
        self.at += length;
        Ok(bytes)
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], BadPayload> {
        // Returned by reference: a number that passes through a `Result` byte by byte waits in memory for its halves.
        let bytes = self.values[self.at..].first_chunk().ok_or_else(|| self.truncated())?;
        self.at += N;
        Ok(bytes)
    }

    #[inline(always)]
    fn text(&mut self) -> Result<Text<'a>, BadPayload> {
        let length = u32::from_le_bytes(*self.array()?);
        Ok(Text { bytes: self.bytes(kept(length as usize))?, length })
    }

    /// Tag of the next argument; 0 after the last.
    #[inline(always)]
    pub(crate) fn tag(&self) -> u8 {
        self.tags.get(self.next).copied().unwrap_or(0)
    }

    /// Reads the next argument, a number of so many bytes.
    #[inline(always)]
    pub(crate) fn number<const N: usize>(&mut self) -> Result<&'a [u8; N], BadPayload> {
        let bytes = self.array()?;
        self.next += 1;
        Ok(bytes)
    }

    /// Reads the next argument, which is a text.
    #[inline(always)]
    pub(crate) fn whole_text(&mut self) -> Result<Text<'a>, BadPayload> {
        let text = self.text()?;
        self.next += 1;
        Ok(text)
    }

    /// Reads the next argument.
    pub fn take(&mut self) -> Result<Argument<'a>, BadPayload> {
        let Some(&number) = self.tags.get(self.next) else {
            return Err(BadPayload::NoSuchArgument { index: self.next, count: self.tags.len() });
        };
        let optional = number & OPTIONAL != 0;
        let tag = Tag::from_number(number & !OPTIONAL).ok_or(BadPayload::UnknownTag { argument: self.next, tag: number })?;
        let there = match optional.then(|| self.array()).transpose()? {
            None | Some([1]) => true,
            Some([0]) => false,
            Some(&[value]) => return Err(BadPayload::Presence { argument: self.next, value }),
        };
        let value = if there { self.value(tag)? } else { Value::None };
        self.next += 1;
        Ok(Argument { value, optional })
    }

    fn value(&mut self, tag: Tag) -> Result<Value<'a>, BadPayload> {
        Ok(match tag {
            Tag::Bool => Value::Bool(*self.array::<1>()? != [0]),
            Tag::Char => Value::Char(char::from_u32(u32::from_le_bytes(*self.array()?)).unwrap_or(char::REPLACEMENT_CHARACTER)),
            Tag::U8 => Value::Unsigned(u8::from_le_bytes(*self.array()?).into()),
            Tag::U16 => Value::Unsigned(u16::from_le_bytes(*self.array()?).into()),
            Tag::U32 => Value::Unsigned(u32::from_le_bytes(*self.array()?).into()),
            Tag::U64 => Value::Unsigned(u64::from_le_bytes(*self.array()?)),
            Tag::U128 => Value::Unsigned128(*self.array()?),
            Tag::I8 => Value::Signed(i8::from_le_bytes(*self.array()?).into(), 8),
            Tag::I16 => Value::Signed(i16::from_le_bytes(*self.array()?).into(), 16),
            Tag::I32 => Value::Signed(i32::from_le_bytes(*self.array()?).into(), 32),
            Tag::I64 => Value::Signed(i64::from_le_bytes(*self.array()?), 64),
            Tag::I128 => Value::Signed128(*self.array()?),
            Tag::F32 => Value::F32(f32::from_le_bytes(*self.array()?)),
            Tag::F64 => Value::F64(f64::from_le_bytes(*self.array()?)),
            Tag::Str => Value::Str(self.text()?),
            Tag::Text => Value::Text(self.text()?),
        })
    }
}
