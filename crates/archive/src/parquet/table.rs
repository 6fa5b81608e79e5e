//! An open Parquet file of ours: its index, and its columns a unit at a time.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path, sync::Arc};

use super::{
    BadTable, Corrupt, UNIT, bits,
    column::Layout,
    delta, foreign,
    index::{Chunk, Coding, Group, Index, Page, TRAILER},
};

/// Open Parquet file of ours.
#[derive(Debug)]
pub(crate) struct Table {
    file: File,
    layout: &'static Layout,
    pub(crate) index: Index,
    /// Bytes of a copy in memory; 0 if the file is read from the disk.
    in_memory: usize,
}

/// Buffers that a reader keeps between pages.
pub(crate) struct Scratch {
    decompressor: zstd::bulk::Decompressor<'static>,
    compressed: Vec<u8>,
}

impl Scratch {
    pub(crate) fn new() -> io::Result<Scratch> {
        Ok(Scratch { decompressor: zstd::bulk::Decompressor::new()?, compressed: Vec::new() })
    }
}

/// Concatenated texts of a column.
#[derive(Debug, Default, Clone)]
pub(crate) struct Texts {
    raw: Vec<u8>,
    base: usize,
    ends: Vec<u32>,
}

impl Texts {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, place: usize) -> &[u8] {
        let from = if place == 0 { 0 } else { self.ends[place - 1] as usize };
        &self.raw[self.base + from..self.base + self.ends[place] as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|place| self.get(place))
    }

    /// Returns all texts as one, and the end of each in it.
    pub(crate) fn joined(&self) -> (&[u8], &[u32]) {
        let end = self.ends.last().copied().unwrap_or_default() as usize;
        (&self.raw[self.base..self.base + end], &self.ends)
    }
}

/// Values of a dictionary.
#[derive(Debug, Clone)]
pub(crate) enum Dictionary {
    Texts(Texts),
    Numbers(Vec<i64>),
}

/// Values of a column in one unit.
#[derive(Debug, Clone)]
pub(crate) enum Values {
    /// Codes of a dictionary. In a column with optional values, 0 marks an absent value and the others count from 1.
    Codes(Vec<u32>, Arc<Dictionary>),
    Numbers(Vec<i64>),
    /// Texts of the requested pages, each with its first row.
    Texts(Vec<(usize, Texts)>),
}

impl Table {
    /// Opens a file of this layout and reads its index.
    pub(crate) fn open(path: &Path, layout: &'static Layout) -> Result<Table, BadTable> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        match Table::read(file, length, layout) {
            Err((file, BadTable::WithoutIndex)) => {
                let copy = foreign::as_ours(&file, length, layout)?;
                let length = copy.metadata()?.len();
                let table = Table::read(copy, length, layout).map_err(|(_, error)| error)?;
                Ok(Table { in_memory: length as usize, ..table })
            }
            read => read.map_err(|(_, error)| error),
        }
    }

    /// Reads the index of a file; returns the file with any error.
    fn read(file: File, length: u64, layout: &'static Layout) -> Result<Table, (File, BadTable)> {
        match Table::index_of(&file, length, layout) {
            Ok(index) => Ok(Table { file, layout, index, in_memory: 0 }),
            Err(error) => Err((file, error)),
        }
    }

    fn index_of(file: &File, length: u64, layout: &'static Layout) -> Result<Index, BadTable> {
        let mut end = [0; 8];
        file.read_exact_at(&mut end, length.checked_sub(8).ok_or(Corrupt("it is too short"))?)?;
        if end[4..] != *b"PAR1" {
            return Err(Corrupt("it does not end as a Parquet file does").into());
        }
        let footer = u64::from(u32::from_le_bytes([end[0], end[1], end[2], end[3]]));
        let behind = length.checked_sub(8 + footer).ok_or(Corrupt("its footer has an impossible length"))?;
        let mut trailer = [0; TRAILER];
        let at = behind.checked_sub(TRAILER as u64).ok_or(BadTable::WithoutIndex)?;
        file.read_exact_at(&mut trailer, at)?;
        let (size, raw, sum) = Index::trailer(&trailer)?;
        let start = at.checked_sub(size.into()).ok_or(Corrupt("its index has an impossible length"))?;
        let mut compressed = vec![0; size as usize];
        file.read_exact_at(&mut compressed, start)?;
        Index::decode(&compressed, raw, sum, start, layout)
    }

    /// Returns the approximate memory of the open file, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.index.size() + self.in_memory
    }

    /// Reads a page and decompresses it.
    fn page(&self, page: &Page, scratch: &mut Scratch) -> Result<Vec<u8>, BadTable> {
        scratch.compressed.resize(page.length as usize, 0);
        self.file.read_exact_at(&mut scratch.compressed, page.at)?;
        // The frame's length is checked against the index before memory is allocated.
        let told = zstd::zstd_safe::get_frame_content_size(&scratch.compressed);
        if !matches!(told, Ok(Some(length)) if length == u64::from(page.raw)) {
            return Err(Corrupt("a page is damaged").into());
        }
        let raw = scratch.decompressor.decompress(&scratch.compressed, page.raw as usize);
        match raw {
            Ok(raw) if raw.len() == page.raw as usize => Ok(raw),
            _ => Err(Corrupt("a page is damaged").into()),
        }
    }

    /// Returns the number of rows of a unit.
    pub(crate) fn unit_rows(group: &Group, unit: usize) -> usize {
        (group.rows as usize - unit * UNIT).min(UNIT)
    }

    /// Reads the dictionary of a column, if it has one in this row group.
    pub(crate) fn dictionary(
        &self,
        group: &Group,
        column: impl Into<usize>,
        scratch: &mut Scratch,
    ) -> Result<Option<Dictionary>, BadTable> {
        let column = column.into();
        let Some(page) = &group.chunk(column).dictionary else { return Ok(None) };
        let raw = self.page(page, scratch)?;
        let count = page.count as usize;
        if !self.layout.columns[column].shape.is_text() {
            if raw.len() != count * 8 {
                return Err(Corrupt("a dictionary's length is wrong").into());
            }
            let number = |bytes: &[u8]| bytes.first_chunk::<8>().map_or(0, |bytes| i64::from_le_bytes(*bytes));
            return Ok(Some(Dictionary::Numbers(raw.chunks_exact(8).map(number).collect())));
        }
        let mut texts = Texts { raw: Vec::with_capacity(raw.len()), base: 0, ends: Vec::new() };
        let mut rest = raw.as_slice();
        for _ in 0..count {
            let (length, behind) = rest.split_first_chunk::<4>().ok_or(Corrupt("a dictionary is cut off"))?;
            let length = u32::from_le_bytes(*length) as usize;
            let (text, behind) = behind.split_at_checked(length).ok_or(Corrupt("a dictionary is cut off"))?;
            texts.raw.extend_from_slice(text);
            texts.ends.push(texts.raw.len() as u32);
            rest = behind;
        }
        Ok(Some(Dictionary::Texts(texts)))
    }

    /// Reads a column's codes in one unit; the column has a dictionary of so many values.
    pub(crate) fn codes(
        &self,
        group: &Group,
        column: impl Into<usize>,
        unit: usize,
        values: usize,
        scratch: &mut Scratch,
    ) -> Result<Vec<u32>, BadTable> {
        let (column, rows) = (column.into(), Table::unit_rows(group, unit));
        let optional = self.layout.columns[column].shape.is_optional();
        let chunk = group.chunk(column);
        if values == 0 || values == 1 && !optional {
            return Ok(vec![0; rows]);
        }
        let mut codes = Vec::with_capacity(rows);
        for (start, page) in pages_of(chunk, unit * UNIT, rows) {
            let raw = self.page(page, scratch)?;
            let mut decoded = Vec::new();
            let out = if start == unit * UNIT && codes.is_empty() { &mut codes } else { &mut decoded };
            decode_codes(&raw, page.count as usize, optional, values, out)?;
            if !decoded.is_empty() {
                let from = (unit * UNIT).saturating_sub(start);
                codes.extend(decoded.into_iter().skip(from).take(rows - codes.len()));
            }
        }
        codes.truncate(rows);
        if codes.len() == rows { Ok(codes) } else { Err(Corrupt("a unit lacks rows").into()) }
    }

    /// Reads a column's numbers in one unit, in any coding.
    pub(crate) fn numbers(
        &self,
        group: &Group,
        column: impl Into<usize>,
        unit: usize,
        scratch: &mut Scratch,
    ) -> Result<Vec<i64>, BadTable> {
        let column = column.into();
        if let Some(Dictionary::Numbers(values)) = self.dictionary(group, column, scratch)? {
            let codes = self.codes(group, column, unit, values.len(), scratch)?;
            return Ok(codes.into_iter().map(|code| values.get(code as usize).copied().unwrap_or_default()).collect());
        }
        let rows = Table::unit_rows(group, unit);
        let mut numbers = Vec::with_capacity(rows);
        for (start, page) in pages_of(group.chunk(column), unit * UNIT, rows) {
            let raw = self.page(page, scratch)?;
            delta::decode(&raw, page.count as usize, &mut numbers)?;
            if start < unit * UNIT {
                numbers.drain(..unit * UNIT - start);
            }
        }
        numbers.truncate(rows);
        if numbers.len() == rows { Ok(numbers) } else { Err(Corrupt("a unit lacks rows").into()) }
    }

    /// Reads the pages of texts of one unit that hold wanted rows: the first row of each in the unit, and its texts.
    pub(crate) fn text_pages(
        &self,
        group: &Group,
        column: impl Into<usize>,
        unit: usize,
        wanted: &dyn Fn(std::ops::Range<usize>) -> bool,
        scratch: &mut Scratch,
    ) -> Result<Vec<(usize, Texts)>, BadTable> {
        let mut all = Vec::new();
        for (start, page) in pages_of(group.chunk(column), unit * UNIT, Table::unit_rows(group, unit)) {
            let Some(first) = start.checked_sub(unit * UNIT) else {
                return Err(Corrupt("a page of texts spans two units").into());
            };
            if wanted(first..first + page.count as usize) {
                all.push((first, self.texts(page, scratch)?));
            }
        }
        Ok(all)
    }

    fn texts(&self, page: &Page, scratch: &mut Scratch) -> Result<Texts, BadTable> {
        let raw = self.page(page, scratch)?;
        let mut ends = Vec::with_capacity(page.count as usize);
        let length = delta::decode_texts(&raw, page.count as usize, &mut ends)?.len();
        let base = raw.len() - length;
        Ok(Texts { raw, base, ends })
    }

    /// Reads a column's values in one unit; of texts, the pages that hold wanted rows.
    pub(crate) fn values(
        &self,
        group: &Group,
        column: impl Into<usize>,
        unit: usize,
        dictionary: Option<Arc<Dictionary>>,
        wanted: &dyn Fn(std::ops::Range<usize>) -> bool,
        scratch: &mut Scratch,
    ) -> Result<Values, BadTable> {
        let column = column.into();
        Ok(match (group.chunk(column).coding, dictionary) {
            (Coding::Dictionary, Some(dictionary)) => {
                let count = match &*dictionary {
                    Dictionary::Texts(texts) => texts.len(),
                    Dictionary::Numbers(numbers) => numbers.len(),
                };
                Values::Codes(self.codes(group, column, unit, count, scratch)?, dictionary)
            }
            (Coding::Texts, _) => Values::Texts(self.text_pages(group, column, unit, wanted, scratch)?),
            _ => Values::Numbers(self.numbers(group, column, unit, scratch)?),
        })
    }
}

/// Returns the pages that hold some of these rows, each with its first row.
fn pages_of(chunk: &Chunk, from: usize, rows: usize) -> impl Iterator<Item = (usize, &Page)> {
    let mut start = 0;
    chunk
        .pages
        .iter()
        .map(move |page| {
            let first = start;
            start += page.count as usize;
            (first, page)
        })
        .skip_while(move |(first, page)| first + page.count as usize <= from)
        .take_while(move |(first, _)| *first < from + rows)
}

fn decode_codes(raw: &[u8], rows: usize, optional: bool, values: usize, out: &mut Vec<u32>) -> Result<(), Corrupt> {
    let cut = Corrupt("a page of codes is cut off");
    let mut rest = raw;
    let mut present = Vec::new();
    if optional {
        let (length, behind) = rest.split_first_chunk::<4>().ok_or(cut)?;
        let (levels, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(cut)?;
        bits::decode_hybrid(levels, 1, rows, 2, &mut present)?;
        rest = behind;
    }
    let (&width, codes) = rest.split_first().ok_or(cut)?;
    if !optional {
        return bits::decode_hybrid(codes, width.into(), rows, values as u32, out);
    }
    let count = present.iter().filter(|&&present| present == 1).count();
    let mut shown = Vec::new();
    bits::decode_hybrid(codes, width.into(), count, values as u32, &mut shown)?;
    let mut shown = shown.into_iter();
    out.extend(present.into_iter().map(|present| if present == 1 { shown.next().map_or(0, |code| code + 1) } else { 0 }));
    Ok(())
}
