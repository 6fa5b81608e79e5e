//! Decompression of snappy, the compression that most programs use in Parquet files.

use super::{Corrupt, bits::take_varint};

const DAMAGED: Corrupt = Corrupt("a page is damaged");

/// Uncompresses a block to `length` bytes.
pub(crate) fn decompress(mut bytes: &[u8], length: usize) -> Result<Vec<u8>, Corrupt> {
    if take_varint(&mut bytes)? != length as u64 {
        return Err(DAMAGED);
    }
    let mut out = Vec::with_capacity(length);
    while let Some((&tag, rest)) = bytes.split_first() {
        let number = |count: usize| -> Result<usize, Corrupt> {
            let little = rest.get(..count).ok_or(DAMAGED)?;
            Ok(little.iter().rev().fold(0, |value, &byte| value << 8 | usize::from(byte)))
        };
        let high = usize::from(tag >> 2);
        // The extra bytes of the tag, the count of bytes it stands for, and for a copy the distance back.
        let (extra, count, back) = match tag & 3 {
            0 if high < 60 => (0, high + 1, None),
            0 => (high - 59, number(high - 59)? + 1, None),
            1 => (1, (high & 7) + 4, Some((high >> 3) << 8 | number(1)?)),
            2 => (2, high + 1, Some(number(2)?)),
            _ => (4, high + 1, Some(number(4)?)),
        };
        bytes = &rest[extra..];
        if out.len() + count > length {
            return Err(DAMAGED);
        }
        match back {
            None => {
                let (literal, rest) = bytes.split_at_checked(count).ok_or(DAMAGED)?;
                out.extend_from_slice(literal);
                bytes = rest;
            }
            Some(back) => {
                let from = out.len().checked_sub(back).filter(|_| back > 0).ok_or(DAMAGED)?;
                // A copy may overlap with its source.
                for place in from..from + count {
                    out.push(out[place]);
                }
            }
        }
    }
    if out.len() == length { Ok(out) } else { Err(DAMAGED) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_overlapping_copies_lead_back() {
        // "abcd", then a copy of 4 from 4 back with one byte of offset, then 3 from 1 back with two.
        let bytes = [11, 3 << 2, b'a', b'b', b'c', b'd', 1, 4, 2 << 2 | 2, 1, 0];
        assert_eq!(decompress(&bytes, 11).unwrap(), b"abcdabcdddd");
        for cut in 0..bytes.len() {
            assert!(decompress(&bytes[..cut], 11).is_err());
        }
        assert!(decompress(&[4, 1, 9, 0], 4).is_err(), "a copy from before the beginning");
        assert!(decompress(&bytes, 12).is_err());
    }
}
