//! Numbers by their differences (DELTA_BINARY_PACKED), and texts behind their lengths (DELTA_LENGTH_BYTE_ARRAY).
//!
//! Times in order, numbers that count up and the lengths of texts take few bits as differences, and texts that lie one behind
//! the other can be searched as one.

use super::{
    Corrupt,
    bits::{pack, put_varint, take_varint, unpack, width_of},
};

const BLOCK: usize = 128;
const MINIBLOCK: usize = 32;
const MINIBLOCKS: usize = BLOCK / MINIBLOCK;

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

/// Decodes `count` numbers, appends them, and returns what follows.
pub(crate) fn decode<'a>(mut bytes: &'a [u8], count: usize, out: &mut Vec<i64>) -> Result<&'a [u8], Corrupt> {
    let block = take_varint(&mut bytes)?;
    let miniblocks = take_varint(&mut bytes)?;
    let total = take_varint(&mut bytes)?;
    let first = unzigzag(take_varint(&mut bytes)?);
    if block != BLOCK as u64 || miniblocks != MINIBLOCKS as u64 || total != count as u64 {
        return Err(Corrupt("differences in blocks of another size or number"));
    }
    if count == 0 {
        return Ok(bytes);
    }
    out.reserve(count.min(bytes.len().saturating_mul(BLOCK) + 1));
    out.push(first);
    let (mut value, mut left) = (first, count - 1);
    while left > 0 {
        let least = unzigzag(take_varint(&mut bytes)?);
        let (widths, rest) = bytes.split_first_chunk::<MINIBLOCKS>().ok_or(Corrupt("a block is cut off"))?;
        bytes = rest;
        for &width in widths {
            if left == 0 {
                break;
            }
            let taken = left.min(MINIBLOCK);
            let width = u32::from(width);
            unpack(bytes, width, taken, |above| {
                value = value.wrapping_add(least).wrapping_add(above as i64);
                out.push(value);
            })?;
            bytes = bytes.get(MINIBLOCK * width as usize / 8..).ok_or(Corrupt("a block is cut off"))?;
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

/// Decodes `count` texts: where each ends (added to what `ends` has, from `ends`' last on), and the texts.
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
