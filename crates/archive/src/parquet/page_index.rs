//! The standard page index, by which other readers skip pages: `PageIndex.md` of Apache Parquet.
//!
//! A column index holds the least and the greatest value of each page of a column chunk. An offset index holds the
//! position and the first row of each page. Both stand between the last row group and our own index. Our reader does
//! not use them: our own index is smaller and holds more.
//!
//! A chunk has no column index if one of its pages has values without an order, or a text that is too long for it. Its
//! offset index is always written.

use super::{
    column::{Layout, Shape},
    footer::{ChunkFacts, PageFacts, Range},
    thrift,
};

/// Longest text in a column index, in bytes. A truncated one would have to be rounded up.
const LONGEST: usize = 256;

/// Appends the page index of a row group to `out`, which begins at `start` in the file, and notes the positions.
pub(crate) fn append(layout: &Layout, facts: &mut [ChunkFacts], start: u64, out: &mut Vec<u8>) {
    for (place, (column, facts)) in layout.columns.iter().zip(facts.iter_mut()).enumerate() {
        let at = out.len();
        if column_index(column.shape, place == layout.time, &facts.pages, out) {
            facts.column_index = Some((start + at as u64, out.len() - at));
        }
    }
    for facts in facts {
        let at = out.len();
        offset_index(&facts.pages, out);
        facts.offset_index = Some((start + at as u64, out.len() - at));
    }
}

/// Appends a column index; returns false if the pages cannot have one.
fn column_index(shape: Shape, is_ascending: bool, pages: &[PageFacts], out: &mut Vec<u8>) -> bool {
    let mut ranges = Vec::with_capacity(pages.len());
    for page in pages {
        let is_null = page.nulls == page.rows as u64;
        match page.range.as_ref().map(|range| in_order(shape, range)) {
            None if is_null => ranges.push((Vec::new(), Vec::new())),
            Some(Some(range)) => ranges.push(range),
            _ => return false,
        }
    }
    let null_pages: Vec<bool> = pages.iter().map(|page| page.nulls == page.rows as u64).collect();
    let least: Vec<&[u8]> = ranges.iter().map(|(least, _)| least.as_slice()).collect();
    let greatest: Vec<&[u8]> = ranges.iter().map(|(_, greatest)| greatest.as_slice()).collect();
    let nulls: Vec<i64> = pages.iter().map(|page| page.nulls as i64).collect();
    thrift::write(out, |index| {
        index.bools(1, &null_pages);
        index.binaries(2, &least);
        index.binaries(3, &greatest);
        index.i32(4, i32::from(is_ascending));
        index.i64s(5, &nulls);
    });
    true
}

/// Returns the range in the form of a column index; `None` if it has no such form.
fn in_order(shape: Shape, (least, greatest): &Range) -> Option<Range> {
    if least.len().max(greatest.len()) > LONGEST {
        return None;
    }
    if shape == Shape::UnsignedNumber {
        return None;
    }
    if shape != Shape::OptionalDouble {
        return Some((least.clone(), greatest.clone()));
    }
    let double = |bytes: &[u8]| bytes.first_chunk().map(|bytes| f64::from_le_bytes(*bytes)).filter(|value| !value.is_nan());
    let (least, greatest) = (double(least)?, double(greatest)?);
    // A reader may look for a zero of either sign.
    let (least, greatest) = (if least == 0.0 { -0.0 } else { least }, if greatest == 0.0 { 0.0 } else { greatest });
    Some((least.to_le_bytes().to_vec(), greatest.to_le_bytes().to_vec()))
}

fn offset_index(pages: &[PageFacts], out: &mut Vec<u8>) {
    let mut first = 0;
    let located: Vec<(&PageFacts, usize)> = pages
        .iter()
        .map(|page| {
            let from = first;
            first += page.rows;
            (page, from)
        })
        .collect();
    thrift::write(out, |index| {
        index.structures(1, &located, |(page, first), location| {
            location.i64(1, page.at as i64);
            location.i32(2, page.length as i32);
            location.i64(3, *first as i64);
        });
    });
}
