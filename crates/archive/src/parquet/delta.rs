//! Numbers by their differences (DELTA_BINARY_PACKED), and texts behind their lengths (DELTA_LENGTH_BYTE_ARRAY).
//!
//! Ordered times, ascending numbers and the lengths of texts take few bits as differences. Texts without separators can
//! be searched as one text.

use super::{
    Corrupt,
    bits::{pack, put_varint, take_varint, unpack, width_of},
};

const BLOCK: usize = 128;
const MINIBLOCK: usize = 32;
const MINIBLOCKS: usize = BLOCK / MINIBLOCK;
/// Largest block of another program that is read, and its largest number of miniblocks.
const LONGEST_BLOCK: u64 = 1 << 16;
const MOST_MINIBLOCKS: u64 = 64;

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Encodes numbers as differences.
pub(crate) fn encode(values: &[i64], out: &mut Vec<u8>) {
    put_varint(BLOCK as u64, out);
    put_varint(MINIBLOCKS as u64, out);
    put_varint(values.len() as u64, out);
    put_varint(zigzag(values.first().copied().unwrap_or_default()), out);
    let mut deltas = Vec::with_capacity(BLOCK);
    for block in values.get(1..).unwrap_or_default().chunks(BLOCK).enumerate() {
        let (number, block) = block;
        let mut before = values[number * BLOCK];
        deltas.clear();
        for &value in block {
            deltas.push(value.wrapping_sub(before));
            before = value;
        }
        let least = deltas.iter().copied().min().unwrap_or_default();
        put_varint(zigzag(least), out);
        let widths_at = out.len();
        out.resize(widths_at + MINIBLOCKS, 0);
        for (place, miniblock) in deltas.chunks(MINIBLOCK).enumerate() {
            let above = |delta: &i64| delta.wrapping_sub(least) as u64;
            let width = width_of(miniblock.iter().map(above).max().unwrap_or_default());
            out[widths_at + place] = width as u8;
            let padding = std::iter::repeat_n(0, MINIBLOCK - miniblock.len());
            pack(miniblock.iter().map(above).chain(padding), width, out);
        }
    }
}

/// Checks the size of blocks and their number of miniblocks; returns that number and the size of one.
fn block_of(block: u64, miniblocks: u64) -> Result<(usize, usize), Corrupt> {
    let known = (1..=LONGEST_BLOCK).contains(&block) && block.is_multiple_of(128) && (1..=MOST_MINIBLOCKS).contains(&miniblocks);
    if !known || !block.is_multiple_of(miniblocks) || !(block / miniblocks).is_multiple_of(32) {
        return Err(Corrupt("differences in blocks of a size that is not understood"));
    }
    Ok((miniblocks as usize, (block / miniblocks) as usize))
}

/// Decodes `count` numbers, appends them, and returns the remaining bytes. Blocks may have any size that the format
/// allows, because other programs choose other sizes than [`encode`]. Arrow uses 256 numbers in 4 miniblocks, DuckDB
/// 2048 in 8.
pub(crate) fn decode<'a>(mut bytes: &'a [u8], count: usize, out: &mut Vec<i64>) -> Result<&'a [u8], Corrupt> {
    let block = take_varint(&mut bytes)?;
    let miniblocks = take_varint(&mut bytes)?;
    let total = take_varint(&mut bytes)?;
    let first = unzigzag(take_varint(&mut bytes)?);
    if total != count as u64 {
        return Err(Corrupt("differences of another number of values"));
    }
    let (miniblocks, each) = block_of(block, miniblocks)?;
    if count == 0 {
        return Ok(bytes);
    }
    out.reserve(count.min(bytes.len().saturating_mul(BLOCK) + 1));
    out.push(first);
    let (mut value, mut left) = (first, count - 1);
    while left > 0 {
        let least = unzigzag(take_varint(&mut bytes)?);
        let (widths, rest) = bytes.split_at_checked(miniblocks).ok_or(Corrupt("a block is cut off"))?;
        bytes = rest;
        for &width in widths {
            if left == 0 {
                break;
            }
            let taken = left.min(each);
            let width = u32::from(width);
            unpack(bytes, width, taken, |above| {
                value = value.wrapping_add(least).wrapping_add(above as i64);
                out.push(value);
            })?;
            bytes = bytes.get(each * width as usize / 8..).ok_or(Corrupt("a block is cut off"))?;
            left -= taken;
        }
    }
    Ok(bytes)
}

/// Encodes texts: all lengths, then all texts.
pub(crate) fn encode_texts<'t>(texts: impl Iterator<Item = &'t [u8]> + Clone, out: &mut Vec<u8>) {
    let lengths: Vec<i64> = texts.clone().map(|text| text.len() as i64).collect();
    encode(&lengths, out);
    texts.for_each(|text| out.extend_from_slice(text));
}

/// Decodes `count` texts and returns their bytes. The end of each is appended to `ends`, counted from the last entry
/// there.
pub(crate) fn decode_texts<'a>(bytes: &'a [u8], count: usize, ends: &mut Vec<u32>) -> Result<&'a [u8], Corrupt> {
    let mut lengths = Vec::new();
    let texts = decode(bytes, count, &mut lengths)?;
    let before = ends.last().copied().unwrap_or_default();
    let mut end = u64::from(before);
    for length in lengths {
        end += u64::try_from(length).map_err(|_| Corrupt("a text of a negative length"))?;
        ends.push(u32::try_from(end).map_err(|_| Corrupt("texts of more than 4 GiB"))?);
    }
    texts.get(..(end - u64::from(before)) as usize).ok_or(Corrupt("texts are cut off"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Encodes ascending numbers, in blocks of this size; every difference takes `width` bits.
    fn counting_up(block: usize, miniblocks: usize, count: usize, width: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        [block, miniblocks, count].into_iter().for_each(|number| put_varint(number as u64, &mut bytes));
        put_varint(zigzag(-5), &mut bytes);
        let each = block / miniblocks;
        let mut left = count - 1;
        while left > 0 {
            put_varint(zigzag(0), &mut bytes);
            bytes.extend(std::iter::repeat_n(width, miniblocks));
            for _ in 0..miniblocks {
                if left > 0 {
                    pack(std::iter::repeat_n(1, each), width.into(), &mut bytes);
                    left = left.saturating_sub(each);
                }
            }
        }
        bytes
    }

    #[test]
    fn blocks_of_other_programs_are_read() {
        for (block, miniblocks) in [(128, 4), (128, 1), (256, 4), (2048, 8), (65_536, 64)] {
            for count in [1, 2, 64, 65, 257, 258, 5000] {
                let mut bytes = counting_up(block, miniblocks, count, 3);
                bytes.push(7);
                let mut back = Vec::new();
                assert_eq!(decode(&bytes, count, &mut back), Ok(&[7][..]), "{block}/{miniblocks}, {count}");
                assert!(back.into_iter().eq((0..count as i64).map(|number| number - 5)), "{block}/{miniblocks}, {count}");
            }
        }
        let impossible = [(0, 4), (128, 0), (100, 4), (128, 8), (256, 3), (131_072, 64), (8192, 128)];
        for (block, miniblocks) in impossible {
            let mut bytes = Vec::new();
            [block, miniblocks, 2u64, 0].into_iter().for_each(|number| put_varint(number, &mut bytes));
            assert!(decode(&bytes, 2, &mut Vec::new()).is_err(), "{block}/{miniblocks}");
        }
    }

    proptest! {
        #[test]
        fn numbers_lead_back(
            values in prop_oneof![
                proptest::collection::vec(any::<i64>(), 0..300),
                proptest::collection::vec(0i64..1000, 0..300),
                proptest::collection::vec(Just(i64::MIN), 0..140),
            ],
        ) {
            let mut bytes = Vec::new();
            encode(&values, &mut bytes);
            bytes.push(7);
            let mut back = Vec::new();
            prop_assert_eq!(decode(&bytes, values.len(), &mut back), Ok(&[7][..]));
            prop_assert_eq!(back, values);
        }

        #[test]
        fn texts_lead_back(texts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 0..200)) {
            let mut bytes = Vec::new();
            encode_texts(texts.iter().map(Vec::as_slice), &mut bytes);
            let mut ends = Vec::new();
            let all = decode_texts(&bytes, texts.len(), &mut ends).unwrap();
            let mut from = 0;
            for (text, end) in texts.iter().zip(ends) {
                prop_assert_eq!(text.as_slice(), &all[from..end as usize]);
                from = end as usize;
            }
        }

        #[test]
        fn hostile_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..80), count in 0usize..2000) {
            let mut hostile = Vec::new();
            [BLOCK, MINIBLOCKS, count].into_iter().for_each(|number| put_varint(number as u64, &mut hostile));
            hostile.extend(bytes);
            let mut out = Vec::new();
            if decode(&hostile, count, &mut out).is_ok() {
                prop_assert_eq!(out.len(), count);
            }
            let _ = decode_texts(&hostile, count, &mut Vec::new());
        }
    }
}
