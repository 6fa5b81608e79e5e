//! The part of XCDR2 (OMG DDS-XTypes 1.3, clause 7.4) that Tampu's types need: little endian, alignment at most 4.
//!
//! Rejected: a general CDR library. The existing ones build owned values. The point of this encoding is that a record
//! is written without allocating and read without copying. The type descriptions stay in `spec/*.idl`. The code that
//! follows them is beside the types (`log_batch`). `tests/peers/cdr_cyclonedds.py` checks it against an independent
//! implementation.
//!
//! Positions count from the start of the encapsulation header. The header is 4 bytes long and nothing is aligned to
//! more than 4, so positions from the start of the body would align equally. Any part that begins on a multiple of 4
//! can be moved to any other multiple of 4 unchanged. The batch builder relies on that.

/// The encapsulation header of delimited (appendable) XCDR2, little endian, without options.
pub const ENCAPSULATION: [u8; 4] = [0x00, 0x09, 0x00, 0x00];

/// Error of bytes that do not match their type, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at byte {at}: {what}")]
pub struct BadCdr {
    /// Position from the start of the encapsulation header.
    pub at: usize,
    /// The defect at that place.
    pub what: &'static str,
}

/// Reads values from a borrowed buffer. Every read checks the bounds; nothing is allocated.
#[derive(Debug, Clone, Copy)]
pub struct Decoder<'a> {
    /// Everything up to where this part ends, so that positions align.
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Decoder<'a> {
    /// Checks the encapsulation header and stands behind it.
    pub fn new(bytes: &'a [u8]) -> Result<Decoder<'a>, BadCdr> {
        match bytes {
            // The options' low bits give the padding behind the body; delimited bodies do not need it.
            [0x00, 0x09, _, _, ..] => Ok(Decoder { bytes, at: 4 }),
            [_, _, _, _, ..] => Err(BadCdr { at: 0, what: "not delimited XCDR2, little endian (00 09)" }),
            _ => Err(BadCdr { at: 0, what: "shorter than an encapsulation header" }),
        }
    }

    /// Position of the next read in bytes, before alignment.
    pub fn position(&self) -> usize {
        self.at
    }

    /// An error at the present position.
    pub fn bad(&self, what: &'static str) -> BadCdr {
        BadCdr { at: self.at, what }
    }

    /// Number of bytes left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Returns all remaining bytes.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    #[inline]
    fn take<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], BadCdr> {
        let found = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        let found = *found.ok_or(BadCdr { at: self.at, what })?;
        self.at += N;
        Ok(found)
    }

    /// Skips the padding before a value of 4 bytes.
    #[inline]
    pub fn align(&mut self) {
        self.at = self.at.next_multiple_of(4).min(self.bytes.len());
    }

    /// Reads one octet.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, BadCdr> {
        self.take::<1>("an octet is cut off").map(|[byte]| byte)
    }

    /// An unsigned long.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, BadCdr> {
        self.align();
        self.take("a number of 4 bytes is cut off").map(u32::from_le_bytes)
    }

    /// An unsigned long long.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, BadCdr> {
        self.align();
        self.take("a number of 8 bytes is cut off").map(u64::from_le_bytes)
    }

    /// The flag before an optional member: whether it is there.
    #[inline]
    pub fn present(&mut self) -> Result<bool, BadCdr> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(BadCdr { at: self.at - 1, what: "a flag is neither 0 nor 1" }),
        }
    }

    /// Reads this many octets.
    #[inline]
    pub fn octets(&mut self, count: usize) -> Result<&'a [u8], BadCdr> {
        let found = self.bytes.get(self.at..).and_then(|rest| rest.get(..count));
        let found = found.ok_or(BadCdr { at: self.at, what: "octets are cut off" })?;
        self.at += count;
        Ok(found)
    }

    /// A string: length with the closing zero, UTF-8, zero.
    #[inline]
    pub fn string(&mut self) -> Result<&'a str, BadCdr> {
        let length = self.u32()? as usize;
        let at = self.at;
        let Some((0, text)) = self.octets(length)?.split_last() else {
            return Err(BadCdr { at, what: "a string does not end in a zero byte" });
        };
        std::str::from_utf8(text).map_err(|_| BadCdr { at, what: "a string is not UTF-8" })
    }

    /// Reads this many unsigned longs in sequence.
    #[inline]
    pub fn u32s<const N: usize>(&mut self) -> Result<[u32; N], BadCdr> {
        self.align();
        let found = self.octets(4 * N)?;
        let mut values = [0; N];
        for (value, bytes) in values.iter_mut().zip(found.as_chunks().0) {
            *value = u32::from_le_bytes(*bytes);
        }
        Ok(values)
    }

    /// Decoder for the part that a DHEADER (length in bytes) delimits; this decoder continues behind it.
    #[inline]
    pub fn delimited(&mut self) -> Result<Decoder<'a>, BadCdr> {
        let length = self.u32()? as usize;
        if length > self.remaining() {
            return Err(BadCdr { at: self.at - 4, what: "a length reaches beyond the end" });
        }
        let part = Decoder { bytes: &self.bytes[..self.at + length], at: self.at };
        self.at += length;
        Ok(part)
    }

    /// Reads the number of a sequence's elements, each of at least `least` bytes here. An impossible count is an error
    /// before any caller allocates for it.
    #[inline]
    pub fn count(&mut self, least: usize) -> Result<usize, BadCdr> {
        let count = self.u32()? as usize;
        if count.saturating_mul(least) > self.remaining() {
            return Err(BadCdr { at: self.at - 4, what: "more elements are announced than there are bytes for" });
        }
        Ok(count)
    }
}

/// Appends values to a buffer that begins with (or as if with) an encapsulation header. Each function aligns by the
/// length.
pub mod encode {
    /// Zeros up to the next multiple of 4.
    #[inline]
    pub fn align(out: &mut Vec<u8>) {
        let padding = out.len().wrapping_neg() % 4;
        out.extend_from_slice(&[0; 3][..padding]);
    }

    /// An unsigned long.
    #[inline]
    pub fn u32(out: &mut Vec<u8>, value: u32) {
        align(out);
        out.extend_from_slice(&value.to_le_bytes());
    }

    /// A long long or unsigned long long, by its bits.
    #[inline]
    pub fn u64(out: &mut Vec<u8>, value: u64) {
        align(out);
        out.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes a string. A text longer than 4 GiB has no CDR; callers bound their batches far below.
    #[inline]
    pub fn string(out: &mut Vec<u8>, text: &str) {
        u32(out, text.len() as u32 + 1);
        out.extend_from_slice(text.as_bytes());
        out.push(0);
    }

    /// Reserves room for a DHEADER; pass the result to [`end`] when its content is written.
    #[inline]
    pub fn begin(out: &mut Vec<u8>) -> usize {
        u32(out, 0);
        out.len()
    }

    /// Writes the length of the content of the DHEADER that ends at `start`.
    #[inline]
    pub fn end(out: &mut [u8], start: usize) {
        let length = (out.len() - start) as u32;
        out[start - 4..start].copy_from_slice(&length.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignment_is_at_most_four_and_strings_end_in_zero() {
        let mut out = ENCAPSULATION.to_vec();
        let start = encode::begin(&mut out);
        out.push(7);
        encode::u64(&mut out, 8);
        encode::string(&mut out, "ab");
        encode::u32(&mut out, 9);
        encode::end(&mut out, start);
        assert_eq!(out, [0, 9, 0, 0, 24, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, b'a', b'b', 0, 0, 9, 0, 0, 0]);
        let mut all = Decoder::new(&out).unwrap();
        let mut part = all.delimited().unwrap();
        assert_eq!(all.remaining(), 0);
        assert_eq!(part.u8(), Ok(7));
        assert_eq!(part.u64(), Ok(8));
        assert_eq!(part.string(), Ok("ab"));
        assert_eq!(part.u32(), Ok(9));
        assert_eq!(part.u8(), Err(BadCdr { at: 32, what: "an octet is cut off" }));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        assert_eq!(Decoder::new(&[0, 9]).unwrap_err().to_string(), "at byte 0: shorter than an encapsulation header");
        assert!(Decoder::new(&[0, 8, 0, 0]).is_err());
        let long = [0, 9, 0, 0, 9, 0, 0, 0, b'a', 0];
        assert_eq!(Decoder::new(&long).unwrap().string().unwrap_err(), BadCdr { at: 8, what: "octets are cut off" });
        assert_eq!(Decoder::new(&long).unwrap().delimited().unwrap_err().at, 4);
        assert_eq!(Decoder::new(&long).unwrap().count(1).unwrap_err().at, 4);
        let open = [0, 9, 0, 0, 2, 0, 0, 0, b'a', b'b'];
        assert!(Decoder::new(&open).unwrap().string().unwrap_err().what.contains("zero"));
        let latin = [0, 9, 0, 0, 2, 0, 0, 0, 0xe9, 0];
        assert!(Decoder::new(&latin).unwrap().string().unwrap_err().what.contains("UTF-8"));
    }
}
