//! Numbers in few bits, as Parquet packs them: bit-packed runs, and the hybrid of those with runs of one value.

use super::Corrupt;

/// Returns the number of bits of the largest value.
pub(crate) fn width_of(largest: u64) -> u32 {
    64 - largest.leading_zeros()
}

/// Packs values of `width` bits, the first one in the lowest bits. The rest of the last byte is zeros.
pub(crate) fn pack(values: impl IntoIterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    let (mut held, mut bits) = (0u128, 0);
    for value in values {
        held |= u128::from(value) << bits;
        bits += width;
        while bits >= 64 {
            out.extend_from_slice(&(held as u64).to_le_bytes());
            held >>= 64;
            bits -= 64;
        }
    }
    out.extend_from_slice(&held.to_le_bytes()[..bits.div_ceil(8) as usize]);
}

/// Calls `each` with `count` values of `width` bits. `bytes` must hold them.
pub(crate) fn unpack(bytes: &[u8], width: u32, count: usize, mut each: impl FnMut(u64)) -> Result<(), Corrupt> {
    if width > 64 || bytes.len() < (count * width as usize).div_ceil(8) {
        return Err(Corrupt("packed numbers are cut off"));
    }
    let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
    let mut at = 0;
    // A load of sixteen bytes holds any value at any bit; the last few values are read from a copy with zeros behind it.
    let (mut body, mut base) = (bytes, 0);
    let mut tail;
    for _ in 0..count {
        let place = at / 8 - base;
        let chunk = match body.get(place..place + 16) {
            Some(chunk) => chunk,
            None => {
                let rest = &bytes[at / 8..];
                let length = rest.len().min(48);
                tail = [0; 64];
                tail[..length].copy_from_slice(&rest[..length]);
                (body, base) = (&[], at / 8);
                &tail[..16]
            }
        };
        let value = if width <= 56 {
            let mut low = [0; 8];
            low.copy_from_slice(&chunk[..8]);
            u64::from_le_bytes(low) >> (at % 8)
        } else {
            let mut wide = [0; 16];
            wide.copy_from_slice(chunk);
            (u128::from_le_bytes(wide) >> (at % 8)) as u64
        };
        each(value & mask);
        at += width as usize;
    }
    Ok(())
}

/// Appends an unsigned LEB128 number.
pub(crate) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Decodes an unsigned LEB128 number and advances past it.
pub(crate) fn take_varint(bytes: &mut &[u8]) -> Result<u64, Corrupt> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(Corrupt("a number is cut off"))?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Corrupt("a number has more than 64 bits"))
}

/// Encodes values of `width` bits as one run: a repeated value if they are all equal, else bit-packed.
pub(crate) fn encode_hybrid(values: &[u32], width: u32, out: &mut Vec<u8>) {
    let Some(&first) = values.first() else { return };
    if values.iter().all(|&value| value == first) {
        put_varint((values.len() as u64) << 1, out);
        out.extend_from_slice(&first.to_le_bytes()[..width.div_ceil(8) as usize]);
    } else {
        let groups = values.len().div_ceil(8);
        put_varint((groups as u64) << 1 | 1, out);
        let padding = groups * 8 - values.len();
        pack(values.iter().map(|&value| u64::from(value)).chain(std::iter::repeat_n(0, padding)), width, out);
    }
}

/// Decodes `count` values of `width` bits and appends them. Each must be below `bound`.
pub(crate) fn decode_hybrid(mut bytes: &[u8], width: u32, count: usize, bound: u32, out: &mut Vec<u32>) -> Result<(), Corrupt> {
    if width > 32 {
        return Err(Corrupt("codes of more than 32 bits"));
    }
    let mut left = count;
    out.reserve(count);
    while left > 0 {
        let header = take_varint(&mut bytes)?;
        if header & 1 == 0 {
            let length = width.div_ceil(8) as usize;
            let value = bytes.get(..length).ok_or(Corrupt("a run is cut off"))?;
            bytes = &bytes[length..];
            let mut whole = [0; 4];
            whole[..length].copy_from_slice(value);
            let value = u32::from_le_bytes(whole);
            if value >= bound {
                return Err(Corrupt("a code that is not in the dictionary"));
            }
            let run = ((header >> 1) as usize).min(left);
            if run == 0 {
                return Err(Corrupt("an empty run"));
            }
            out.resize(out.len() + run, value);
            left -= run;
        } else {
            let groups = (header >> 1) as usize;
            let run = groups.saturating_mul(8).min(left);
            if run == 0 {
                return Err(Corrupt("an empty run"));
            }
            let mut largest = 0;
            unpack(bytes, width, run, |value| {
                largest = largest.max(value);
                out.push(value as u32);
            })?;
            if largest >= u64::from(bound) {
                return Err(Corrupt("a code that is not in the dictionary"));
            }
            bytes = bytes.get(groups.saturating_mul(width as usize)..).unwrap_or_default();
            left -= run;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_specifications_example_of_bit_packing() {
        let mut out = Vec::new();
        pack(0..8, 3, &mut out);
        assert_eq!(out, [0b1000_1000, 0b1100_0110, 0b1111_1010]);
    }

    proptest! {
        #[test]
        fn packed_numbers_lead_back(width in 0u32..=64, values in proptest::collection::vec(any::<u64>(), 0..200)) {
            let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
            let values: Vec<u64> = values.into_iter().map(|value| value & mask).collect();
            let mut bytes = Vec::new();
            pack(values.iter().copied(), width, &mut bytes);
            prop_assert_eq!(bytes.len(), (values.len() * width as usize).div_ceil(8));
            let mut back = Vec::new();
            unpack(&bytes, width, values.len(), |value| back.push(value)).unwrap();
            prop_assert_eq!(back, values);
        }

        #[test]
        fn codes_lead_back(bound in 1u32..5000, seeds in proptest::collection::vec(any::<u32>(), 1..300), equal: bool) {
            let values: Vec<u32> = seeds.iter().map(|seed| if equal { bound - 1 } else { seed % bound }).collect();
            let width = width_of(u64::from(bound - 1));
            let mut bytes = Vec::new();
            encode_hybrid(&values, width, &mut bytes);
            let mut back = Vec::new();
            decode_hybrid(&bytes, width, values.len(), bound, &mut back).unwrap();
            prop_assert_eq!(back, values);
        }

        #[test]
        fn hostile_runs_end(bytes in proptest::collection::vec(any::<u8>(), 0..64), width in 0u32..40, count in 0usize..1000) {
            let mut out = Vec::new();
            if decode_hybrid(&bytes, width, count, 7, &mut out).is_ok() {
                prop_assert_eq!(out.len(), count);
                prop_assert!(out.iter().all(|&code| code < 7));
            }
        }
    }
}
