//! Tags: the byte for the kind of an argument in a payload. The numbers are those of `spec/log-call.md`.

/// Most arguments of one statement, its named values among them.
pub const ARGUMENTS_MAX: usize = 64;

/// Bit beside the tag of an optional value: a byte, 0 or 1, precedes the value, and after 0 there is no value.
pub const OPTIONAL: u8 = 0x80;

/// The kinds of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Tag {
    Bool = 1,
    /// A Unicode scalar value in four bytes.
    Char = 2,
    U8 = 3,
    U16 = 4,
    U32 = 5,
    U64 = 6,
    U128 = 7,
    I8 = 8,
    I16 = 9,
    I32 = 10,
    I64 = 11,
    I128 = 12,
    F32 = 13,
    F64 = 14,
    /// An unformatted text: its length in four bytes, UTF-8.
    Str = 15,
    /// A text that was formatted at the call, laid out as the one above; it is shown unchanged.
    Text = 16,
}

impl Tag {
    /// All of them, in the order of their numbers, which begin at 1.
    pub const ALL: [Tag; 16] = [
        Tag::Bool,
        Tag::Char,
        Tag::U8,
        Tag::U16,
        Tag::U32,
        Tag::U64,
        Tag::U128,
        Tag::I8,
        Tag::I16,
        Tag::I32,
        Tag::I64,
        Tag::I128,
        Tag::F32,
        Tag::F64,
        Tag::Str,
        Tag::Text,
    ];

    /// The kind of this number, which is without [`OPTIONAL`].
    pub const fn from_number(number: u8) -> Option<Tag> {
        match number {
            1..=16 => Some(Tag::ALL[number as usize - 1]),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back_to_the_kind() {
        for tag in Tag::ALL {
            assert_eq!(Tag::from_number(tag as u8), Some(tag));
        }
        for number in [0, 17, OPTIONAL, u8::MAX] {
            assert_eq!(Tag::from_number(number), None);
        }
    }
}
