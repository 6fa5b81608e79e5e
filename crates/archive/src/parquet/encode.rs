//! Encoding of a column's values for a file: the choice of the coding, and the column's entry in the footer.

use std::{
    collections::HashMap,
    io::{self, Write},
};

use super::{footer::ChunkFacts, index::Chunk, pages::Output};
use crate::ids::hash::Mixed;

impl<W: Write> Output<W> {
    /// Writes distinct texts with the rows' codes: a dictionary, unless nearly every row has its own text.
    pub(crate) fn dictionary_or_texts(
        &mut self,
        values: Vec<&[u8]>,
        codes: Vec<u32>,
        facts: &mut ChunkFacts,
    ) -> io::Result<Chunk> {
        let bytes: usize = values.iter().map(|value| value.len()).sum();
        if values.len() > 1000 && values.len() * 2 > codes.len() || bytes > MOST_DICTIONARY {
            return self.texts(codes.iter().map(|&code| values[code as usize]), facts);
        }
        self.dictionary(values, codes, facts)
    }

    /// Sorts the values that occur, and adapts the rows' codes.
    pub(crate) fn dictionary(&mut self, values: Vec<&[u8]>, mut codes: Vec<u32>, facts: &mut ChunkFacts) -> io::Result<Chunk> {
        let mut occurs = vec![false; values.len()];
        codes.iter().for_each(|&code| occurs[code as usize] = true);
        let mut order: Vec<u32> = (0..values.len() as u32).filter(|&code| occurs[code as usize]).collect();
        order.sort_unstable_by_key(|&code| values[code as usize]);
        let mut places = vec![0; values.len()];
        order.iter().enumerate().for_each(|(place, &code)| places[code as usize] = place as u32);
        codes.iter_mut().for_each(|code| *code = places[*code as usize]);
        let sorted: Vec<&[u8]> = order.iter().map(|&code| values[code as usize]).collect();
        let (Some(least), Some(greatest)) = (sorted.first(), sorted.last()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        if least.len().max(greatest.len()) <= MOST_STATISTICS {
            facts.range = Some((least.to_vec(), greatest.to_vec()));
        }
        self.codes(&codes, &sorted, true, false, facts)
    }

    /// Writes numbers, with their range.
    pub(crate) fn ranged_numbers(&mut self, values: &[i64], facts: &mut ChunkFacts) -> io::Result<Chunk> {
        facts.range = number_range(values.iter());
        self.numbers(values, facts)
    }

    /// Writes numbers of which many seem to be equal.
    pub(crate) fn few_numbers(&mut self, values: &[i64], facts: &mut ChunkFacts) -> io::Result<Chunk> {
        let mut distinct: HashMap<i64, u32, Mixed> = HashMap::default();
        for &value in values {
            distinct.entry(value).or_insert(0);
            if distinct.len() > 1000 && distinct.len() * 4 > values.len() {
                return self.ranged_numbers(values, facts);
            }
        }
        let mut sorted: Vec<i64> = distinct.keys().copied().collect();
        sorted.sort_unstable();
        sorted.iter().enumerate().for_each(|(place, value)| {
            distinct.insert(*value, place as u32);
        });
        let codes: Vec<u32> = values.iter().map(|value| distinct[value]).collect();
        facts.range = number_range(sorted.iter());
        let dictionary: Vec<[u8; 8]> = sorted.iter().map(|value| value.to_le_bytes()).collect();
        self.codes(&codes, &dictionary, false, false, facts)
    }

    /// Writes numbers that may be absent.
    pub(crate) fn optional_numbers(
        &mut self,
        values: impl Iterator<Item = Option<i64>>,
        facts: &mut ChunkFacts,
    ) -> io::Result<Chunk> {
        let values: Vec<Option<i64>> = values.collect();
        let mut sorted: Vec<i64> = values.iter().flatten().copied().collect();
        sorted.sort_unstable();
        sorted.dedup();
        let code = |value: &i64| sorted.binary_search(value).map_or(0, |place| place as u32 + 1);
        let codes: Vec<u32> = values.iter().map(|value| value.as_ref().map_or(0, code)).collect();
        facts.range = number_range(sorted.iter());
        let dictionary: Vec<[u8; 8]> = sorted.iter().map(|value| value.to_le_bytes()).collect();
        self.codes(&codes, &dictionary, false, true, facts)
    }

    /// Writes floating-point values that may be absent. The range is stated if no value is NaN, which has no order.
    pub(crate) fn optional_doubles(
        &mut self,
        values: impl Iterator<Item = Option<f64>>,
        facts: &mut ChunkFacts,
    ) -> io::Result<Chunk> {
        let values: Vec<Option<f64>> = values.collect();
        let mut sorted: Vec<f64> = values.iter().flatten().copied().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        // Compared by their bits, so that -0 and every NaN are read back unchanged.
        sorted.dedup_by_key(|value| value.to_bits());
        let code = |value: &f64| sorted.binary_search_by(|one| one.total_cmp(value)).map_or(0, |place| place as u32 + 1);
        let codes: Vec<u32> = values.iter().map(|value| value.as_ref().map_or(0, code)).collect();
        if let (Some(least), Some(greatest)) = (sorted.first(), sorted.last())
            && !sorted.iter().any(|value| value.is_nan())
        {
            // A reader may look for a zero of either sign.
            let (least, greatest) = (if *least == 0.0 { -0.0 } else { *least }, if *greatest == 0.0 { 0.0 } else { *greatest });
            facts.range = Some((least.to_le_bytes().to_vec(), greatest.to_le_bytes().to_vec()));
        }
        let dictionary: Vec<[u8; 8]> = sorted.iter().map(|value| value.to_le_bytes()).collect();
        self.codes(&codes, &dictionary, false, true, facts)
    }

    /// Writes texts of which some may be frequent.
    pub(crate) fn any_texts<'t>(&mut self, texts: impl Iterator<Item = &'t [u8]>, facts: &mut ChunkFacts) -> io::Result<Chunk> {
        let (mut values, mut known) = (Vec::<&[u8]>::new(), HashMap::<&[u8], u32, Mixed>::default());
        let mut codes = Vec::new();
        for value in texts {
            let code = *known.entry(value).or_insert_with(|| {
                values.push(value);
                values.len() as u32 - 1
            });
            codes.push(code);
        }
        self.dictionary_or_texts(values, codes, facts)
    }
}

/// Most bytes of texts in a dictionary. Beyond it the texts are written directly, in pages of their own.
const MOST_DICTIONARY: usize = 16 << 20;
/// Longest text in a column's statistics. A truncated one would need a mark, which few readers know.
const MOST_STATISTICS: usize = 256;

fn number_range<'v>(values: impl Iterator<Item = &'v i64> + Clone) -> Option<(Vec<u8>, Vec<u8>)> {
    let bytes = |value: &i64| value.to_le_bytes().to_vec();
    Some((bytes(values.clone().min()?), bytes(values.max()?)))
}
