//! A Parquet file's standard description, which other readers use.

use super::{
    column::{ColumnSpec, Layout, Shape},
    index::{Chunk, Coding, Group},
    thrift::{self, Struct},
};

const MAGIC: &[u8; 4] = b"PAR1";
const INT64: i32 = 2;
const DOUBLE: i32 = 5;
const BYTE_ARRAY: i32 = 6;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const DELTA_BINARY_PACKED: i32 = 5;
const DELTA_LENGTH_BYTE_ARRAY: i32 = 6;
const RLE_DICTIONARY: i32 = 8;
const ZSTD: i32 = 6;

/// First bytes of a Parquet file.
pub(crate) const HEAD: &[u8; 4] = MAGIC;

/// Facts about a column chunk that the footer states beyond the index.
#[derive(Debug, Default, Clone)]
pub(crate) struct ChunkFacts {
    dictionary_at: Option<u64>,
    data_at: Option<u64>,
    raw: u64,
    compressed: u64,
    pub(crate) nulls: u64,
    /// Least and greatest value, as the statistics state them.
    pub(crate) range: Option<Range>,
    /// Data pages, in order.
    pub(crate) pages: Vec<PageFacts>,
    /// Position and length of the chunk's column index and offset index, once they are written.
    pub(crate) column_index: Option<(u64, usize)>,
    pub(crate) offset_index: Option<(u64, usize)>,
}

/// Least and greatest value, as bytes.
pub(crate) type Range = (Vec<u8>, Vec<u8>);

/// Facts about a data page, for the page index.
#[derive(Debug, Default, Clone)]
pub(crate) struct PageFacts {
    /// Position and length of the page, with its header.
    pub(crate) at: u64,
    pub(crate) length: usize,
    pub(crate) rows: usize,
    pub(crate) nulls: u64,
    /// Least and greatest value; `None` if the page has no values, or a value without an order.
    pub(crate) range: Option<Range>,
}

impl ChunkFacts {
    pub(crate) fn add_page(&mut self, at: u64, is_dictionary: bool, rows: usize, raw: usize, compressed: usize) {
        if is_dictionary {
            self.dictionary_at = Some(at);
        } else {
            self.data_at.get_or_insert(at);
            self.pages.push(PageFacts { at, length: compressed, rows, ..PageFacts::default() });
        }
        self.raw += raw as u64;
        self.compressed += compressed as u64;
    }

    /// Sets the statistics of the page added last.
    pub(crate) fn last_page(&mut self, nulls: u64, range: Option<Range>) {
        self.nulls += nulls;
        if let Some(page) = self.pages.last_mut() {
            (page.nulls, page.range) = (nulls, range);
        }
    }

    fn start(&self) -> u64 {
        self.dictionary_at.or(self.data_at).unwrap_or_default()
    }
}

/// Encodes the header of a page; `coding` is `None` for a dictionary.
pub(crate) fn page_header(coding: Option<Coding>, count: usize, raw: usize, compressed: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(32);
    thrift::write(&mut out, |header| {
        header.i32(1, if coding.is_some() { 0 } else { 2 });
        header.i32(2, raw as i32);
        header.i32(3, compressed as i32);
        match coding {
            Some(coding) => header.structure(5, |data| {
                data.i32(1, count as i32);
                data.i32(2, encoding(coding));
                data.i32(3, RLE);
                data.i32(4, RLE);
            }),
            None => header.structure(7, |dictionary| {
                dictionary.i32(1, count as i32);
                dictionary.i32(2, PLAIN);
                dictionary.bool(3, true);
            }),
        }
    });
    out
}

fn encoding(coding: Coding) -> i32 {
    match coding {
        Coding::Dictionary => RLE_DICTIONARY,
        Coding::Delta => DELTA_BINARY_PACKED,
        Coding::Texts => DELTA_LENGTH_BYTE_ARRAY,
    }
}

/// Encodes the footer of a file with these row groups, and the bytes after it up to the file's end.
pub(crate) fn footer(layout: &Layout, groups: &[(Group, Vec<ChunkFacts>)], domain: &str) -> Vec<u8> {
    let mut out = Vec::new();
    thrift::write(&mut out, |file| {
        file.i32(1, 2);
        let mut elements: Vec<Option<&ColumnSpec>> = vec![None];
        elements.extend(layout.columns.iter().map(Some));
        file.structures(2, &elements, |column, element| schema_element(layout, *column, element));
        file.i64(3, groups.iter().map(|(group, _)| i64::from(group.rows)).sum());
        file.structures(4, groups, |(group, facts), one| row_group(layout, group, facts, one));
        let facts = [("tampu.domain", domain), ("tampu.format", "1")];
        file.structures(5, &facts, |(key, value), one| {
            one.binary(1, key.as_bytes());
            one.binary(2, value.as_bytes());
        });
        file.binary(6, concat!("tampu version ", env!("CARGO_PKG_VERSION")).as_bytes());
        // Every column has the order of its type.
        file.structures(7, layout.columns, |_, order| order.structure(1, |_| {}));
    });
    let length = out.len() as u32;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(MAGIC);
    out
}

/// Returns the physical type of a shape's values.
fn physical(shape: Shape) -> i32 {
    match shape {
        Shape::Text | Shape::Bytes => BYTE_ARRAY,
        Shape::OptionalDouble => DOUBLE,
        Shape::Time | Shape::Number | Shape::UnsignedNumber | Shape::OptionalNumber => INT64,
    }
}

fn schema_element(layout: &Layout, column: Option<&ColumnSpec>, element: &mut Struct<'_>) {
    let Some(&ColumnSpec { name, shape }) = column else {
        element.binary(4, layout.name.as_bytes());
        element.i32(5, layout.columns.len() as i32);
        return;
    };
    element.i32(1, physical(shape));
    element.i32(3, i32::from(shape.is_optional()));
    element.binary(4, name.as_bytes());
    match shape {
        Shape::Text => {
            element.i32(6, 0);
            element.structure(10, |logical| logical.structure(1, |_| {}));
        }
        Shape::Time => element.structure(10, |logical| {
            logical.structure(8, |timestamp| {
                timestamp.bool(1, true);
                timestamp.structure(2, |unit| unit.structure(3, |_| {}));
            });
        }),
        Shape::UnsignedNumber => {
            element.i32(6, 14);
            element.structure(10, |logical| {
                logical.structure(10, |integer| {
                    integer.i8(1, 64);
                    integer.bool(2, false);
                });
            });
        }
        Shape::Number | Shape::OptionalNumber | Shape::OptionalDouble | Shape::Bytes => {}
    }
}

fn row_group(layout: &Layout, group: &Group, facts: &[ChunkFacts], out: &mut Struct<'_>) {
    let chunks = layout.columns.iter().zip(&group.columns).zip(facts);
    let columns: Vec<(&ColumnSpec, &Chunk, &ChunkFacts)> =
        chunks.map(|((column, chunk), facts)| (column, chunk, facts)).collect();
    out.structures(1, &columns, |(column, chunk, facts), one| {
        one.i64(2, 0);
        one.structure(3, |meta| {
            meta.i32(1, physical(column.shape));
            match chunk.coding {
                Coding::Dictionary => meta.i32s(2, &[PLAIN, RLE, RLE_DICTIONARY]),
                other => meta.i32s(2, &[RLE, encoding(other)]),
            }
            meta.binaries(3, &[column.name.as_bytes()]);
            meta.i32(4, ZSTD);
            meta.i64(5, group.rows.into());
            meta.i64(6, facts.raw as i64);
            meta.i64(7, facts.compressed as i64);
            meta.i64(9, facts.data_at.unwrap_or_default() as i64);
            if let Some(at) = facts.dictionary_at {
                meta.i64(11, at as i64);
            }
            meta.structure(12, |statistics| {
                statistics.i64(3, facts.nulls as i64);
                if let Some((least, greatest)) = &facts.range {
                    statistics.binary(5, greatest);
                    statistics.binary(6, least);
                }
            });
        });
        if let Some((at, length)) = facts.offset_index {
            one.i64(4, at as i64);
            one.i32(5, length as i32);
        }
        if let Some((at, length)) = facts.column_index {
            one.i64(6, at as i64);
            one.i32(7, length as i32);
        }
    });
    out.i64(2, facts.iter().map(|facts| facts.raw as i64).sum());
    out.i64(3, group.rows.into());
    out.structures(4, &[layout.time], |time, sorting| {
        sorting.i32(1, *time as i32);
        sorting.bool(2, false);
        sorting.bool(3, false);
    });
    out.i64(5, facts.first().map_or(0, |facts| facts.start() as i64));
    out.i64(6, facts.iter().map(|facts| facts.compressed as i64).sum());
}
