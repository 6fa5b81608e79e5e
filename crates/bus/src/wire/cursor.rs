//! Reader for little-endian fields in untrusted bytes: every step checks the remaining length.

use tampu_types::Incarnation;

/// Error for a malformed message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadMessage {
    /// It ends before the named field does.
    #[error("the message ends inside its {0}")]
    Short(&'static str),
    /// The named field has an invalid value.
    #[error("invalid {0} in the message")]
    Senseless(&'static str),
}

pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes }
    }

    pub fn bytes(&mut self, count: usize, field: &'static str) -> Result<&'a [u8], BadMessage> {
        let (head, rest) = self.rest.split_at_checked(count).ok_or(BadMessage::Short(field))?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], BadMessage> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(BadMessage::Short(field))?;
        self.rest = rest;
        Ok(*head)
    }

    pub fn u8(&mut self, field: &'static str) -> Result<u8, BadMessage> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    pub fn u16(&mut self, field: &'static str) -> Result<u16, BadMessage> {
        self.array(field).map(u16::from_le_bytes)
    }

    pub fn u32(&mut self, field: &'static str) -> Result<u32, BadMessage> {
        self.array(field).map(u32::from_le_bytes)
    }

    pub fn u64(&mut self, field: &'static str) -> Result<u64, BadMessage> {
        self.array(field).map(u64::from_le_bytes)
    }

    pub fn incarnation(&mut self, field: &'static str) -> Result<Incarnation, BadMessage> {
        self.array(field).map(Incarnation::from_bytes)
    }

    pub fn text(&mut self, field: &'static str) -> Result<&'a str, BadMessage> {
        let length = usize::from(self.u16(field)?);
        std::str::from_utf8(self.bytes(length, field)?).map_err(|_| BadMessage::Senseless(field))
    }
}

/// Appends a text with its length; texts in messages are names, all shorter than 64 KiB.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&text.as_bytes()[..usize::from(length)]);
}
