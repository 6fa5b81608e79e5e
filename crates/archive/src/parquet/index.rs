//! Index of a Parquet file: the position of every page of every column, and statistics by which a search skips rows.
//!
//! It stands between the last row group and the footer, where other readers do not look:
//!
//! ```text
//! index, compressed (zstd)
//! u32 its length   u32 its length uncompressed   u32 CRC-32C of the compressed bytes   u32 version = 1   u8[8] "TAMPUPQI"
//! footer, u32 its length, "PAR1"
//! ```
//! Uncompressed, all numbers varints (z: zigzag):
//!
//! ```text
//! columns: count, each length and name
//! row groups: count, each
//!   rows   levels (bit n: ordinal n occurs)
//!   for each unit of 8192 rows: z time of its first row, z of its last
//!   for each column: coding; with a dictionary, its page and how many values; count of pages, each place, length, length
//!                    uncompressed, rows. Places count from the page before.
//!   words of messages, words of data
//! ```

use tampu_types::Time;

use super::{
    BadTable, Corrupt, GROUP, UNIT,
    bits::{put_varint, take_varint},
    column::{Column, Layout},
    words::Words,
};
// The fuzz target compiles this file without the others and defines its own `LevelSet` at this path.
use crate::wal::frame::LevelSet;

pub(crate) const MAGIC: [u8; 8] = *b"TAMPUPQI";
const VERSION: u32 = 1;
/// Bytes of the trailer behind the index.
pub(crate) const TRAILER: usize = 24;
/// Longest index that a reader accepts, uncompressed, in bytes.
const LONGEST: usize = 256 << 20;

/// Encoding of a column's values in a row group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    /// Codes of a dictionary.
    Dictionary,
    /// Differences of consecutive values.
    Delta,
    /// Lengths, then texts.
    Texts,
}

/// A page's compressed content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Page {
    pub(crate) at: u64,
    pub(crate) length: u32,
    /// Uncompressed length in bytes.
    pub(crate) raw: u32,
    /// Number of rows, or of values of a dictionary.
    pub(crate) count: u32,
}

/// One column of a row group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) coding: Coding,
    pub(crate) dictionary: Option<Page>,
    pub(crate) pages: Vec<Page>,
}

/// One row group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) rows: u32,
    pub(crate) levels: LevelSet,
    /// Time of the first and of the last row of each unit.
    pub(crate) units: Vec<(Time, Time)>,
    /// Columns, in the order of the layout.
    pub(crate) columns: Vec<Chunk>,
    pub(crate) words: Words,
    pub(crate) data_words: Words,
}

impl Group {
    pub(crate) fn chunk(&self, column: impl Into<usize>) -> &Chunk {
        &self.columns[column.into()]
    }

    /// Returns whether a text of this column can hold `word`.
    pub(crate) fn may_hold(&self, column: Column, word: &str) -> bool {
        let words = if column == Column::Data { &self.data_words } else { &self.words };
        words.may_hold(word)
    }

    pub(crate) fn earliest(&self) -> Time {
        self.units.first().map_or(Time(0), |unit| unit.0)
    }

    pub(crate) fn latest(&self) -> Time {
        self.units.last().map_or(Time(0), |unit| unit.1)
    }
}

/// All row groups of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) groups: Vec<Group>,
}

fn put_signed(value: i64, out: &mut Vec<u8>) {
    put_varint((value << 1 ^ value >> 63) as u64, out);
}

fn take_signed(bytes: &mut &[u8]) -> Result<i64, Corrupt> {
    let value = take_varint(bytes)?;
    Ok((value >> 1) as i64 ^ -((value & 1) as i64))
}

fn put_page(page: &Page, before: &mut u64, out: &mut Vec<u8>) {
    put_varint(page.at - *before, out);
    *before = page.at;
    for number in [page.length, page.raw, page.count] {
        put_varint(number.into(), out);
    }
}

fn take_u32(bytes: &mut &[u8]) -> Result<u32, Corrupt> {
    u32::try_from(take_varint(bytes)?).map_err(|_| Corrupt("a number of the index is too large"))
}

fn take_page(bytes: &mut &[u8], before: &mut u64) -> Result<Page, Corrupt> {
    *before = before.checked_add(take_varint(bytes)?).ok_or(Corrupt("a page lies beyond everything"))?;
    Ok(Page { at: *before, length: take_u32(bytes)?, raw: take_u32(bytes)?, count: take_u32(bytes)? })
}

impl Index {
    /// Returns the approximate size in memory, in bytes.
    pub(crate) fn size(&self) -> usize {
        let pages = |group: &Group| group.columns.iter().map(|chunk| 64 + 24 * chunk.pages.len()).sum::<usize>();
        self.groups
            .iter()
            .map(|group| 64 + 16 * group.units.len() + pages(group) + group.words.size() + group.data_words.size())
            .sum()
    }

    /// Appends the index and its trailer.
    pub(crate) fn encode(&self, layout: &Layout, out: &mut Vec<u8>) -> std::io::Result<()> {
        let mut raw = Vec::new();
        put_varint(layout.columns.len() as u64, &mut raw);
        for column in layout.columns {
            put_varint(column.name.len() as u64, &mut raw);
            raw.extend_from_slice(column.name.as_bytes());
        }
        put_varint(self.groups.len() as u64, &mut raw);
        let mut before = 0;
        for group in &self.groups {
            put_varint(group.rows.into(), &mut raw);
            put_varint(group.levels.0.into(), &mut raw);
            for (first, last) in &group.units {
                put_signed(first.0, &mut raw);
                put_signed(last.0, &mut raw);
            }
            for chunk in &group.columns {
                raw.push(chunk.coding as u8);
                if let Some(page) = &chunk.dictionary {
                    put_page(page, &mut before, &mut raw);
                }
                put_varint(chunk.pages.len() as u64, &mut raw);
                chunk.pages.iter().for_each(|page| put_page(page, &mut before, &mut raw));
            }
            group.words.encode(&mut raw);
            group.data_words.encode(&mut raw);
        }
        let compressed = zstd::bulk::compress(&raw, 3)?;
        let sum = crc32c::crc32c(&compressed);
        out.extend_from_slice(&compressed);
        for number in [compressed.len() as u32, raw.len() as u32, sum, VERSION] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&MAGIC);
        Ok(())
    }

    /// Decodes the trailer of the index: its length, its uncompressed length, its checksum.
    pub(crate) fn trailer(bytes: &[u8; TRAILER]) -> Result<(u32, u32, u32), BadTable> {
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if bytes[16..] != MAGIC {
            return Err(BadTable::WithoutIndex);
        }
        if number(12) != VERSION {
            return Err(BadTable::Later(number(12)));
        }
        if number(4) as usize > LONGEST {
            return Err(Corrupt("its index has an impossible length").into());
        }
        Ok((number(0), number(4), number(8)))
    }

    /// Decodes the index. Every page must end before `end`, the position of the index itself.
    pub(crate) fn decode(compressed: &[u8], raw: u32, sum: u32, end: u64, layout: &Layout) -> Result<Index, BadTable> {
        if crc32c::crc32c(compressed) != sum {
            return Err(Corrupt("its index has a wrong checksum").into());
        }
        let raw = zstd::bulk::decompress(compressed, raw as usize).map_err(|_| Corrupt("its index cannot be uncompressed"))?;
        let mut rest = raw.as_slice();
        let index = Index::read(&mut rest, end, layout)?;
        if rest.is_empty() { Ok(index) } else { Err(Corrupt("its index is longer than it should be").into()) }
    }

    fn read(bytes: &mut &[u8], end: u64, layout: &Layout) -> Result<Index, Corrupt> {
        // Columns of a later release are skipped; without one of ours the file is unreadable.
        let mut places = Vec::new();
        for _ in 0..take_u32(bytes)? {
            let length = take_u32(bytes)? as usize;
            let (name, rest) = bytes.split_at_checked(length).ok_or(Corrupt("a column's name is cut off"))?;
            *bytes = rest;
            places.push(layout.columns.iter().position(|column| column.name.as_bytes() == name));
        }
        let mut index = Index::default();
        let mut before = 0;
        for _ in 0..take_u32(bytes)? {
            index.groups.push(Index::read_group(bytes, &places, layout, &mut before)?);
        }
        let pages =
            index.groups.iter().flat_map(|group| &group.columns).flat_map(|chunk| chunk.pages.iter().chain(&chunk.dictionary));
        for page in pages {
            if page.at + u64::from(page.length) > end {
                return Err(Corrupt("a page lies outside"));
            }
        }
        Ok(index)
    }

    fn read_group(bytes: &mut &[u8], places: &[Option<usize>], layout: &Layout, before: &mut u64) -> Result<Group, Corrupt> {
        let rows = take_u32(bytes)?;
        if rows == 0 || rows as usize > GROUP {
            return Err(Corrupt("a row group of an impossible size"));
        }
        let levels = LevelSet(take_u32(bytes)? as u16);
        let mut units = Vec::new();
        for _ in 0..(rows as usize).div_ceil(UNIT) {
            units.push((Time(take_signed(bytes)?), Time(take_signed(bytes)?)));
        }
        let mut columns = vec![None; layout.columns.len()];
        for place in places {
            let (&coding, rest) = bytes.split_first().ok_or(Corrupt("a column is cut off"))?;
            *bytes = rest;
            let coding = match coding {
                0 => Coding::Dictionary,
                1 => Coding::Delta,
                2 => Coding::Texts,
                _ => return Err(Corrupt("a column in a coding of a later release")),
            };
            let dictionary = if coding == Coding::Dictionary { Some(take_page(bytes, before)?) } else { None };
            let mut pages = Vec::new();
            let mut counted = 0u64;
            for _ in 0..take_u32(bytes)? {
                let page = take_page(bytes, before)?;
                counted += u64::from(page.count);
                pages.push(page);
            }
            if counted != u64::from(rows) {
                return Err(Corrupt("a column's pages do not hold its rows"));
            }
            if let Some(place) = place {
                columns[*place] = Some(Chunk { coding, dictionary, pages });
            }
        }
        let columns = columns.into_iter().collect::<Option<Vec<_>>>().ok_or(Corrupt("a column is missing"))?;
        Ok(Group { rows, levels, units, columns, words: Words::decode(bytes)?, data_words: Words::decode(bytes)? })
    }
}
