//! Column chunks of files that another program wrote: pages uncompressed and decoded to values.

use super::{
    BadTable, Corrupt, bits,
    column::{ColumnSpec, Shape},
    delta, snappy,
    thrift_read::{Fields, Value, take_struct},
};

/// Values of a column, a cell each row.
pub(crate) enum Cells {
    /// Numbers, times in ns, and floating point by its bits.
    Numbers(Vec<Option<i64>>),
    /// The distinct or repeated texts, and the text of each row.
    Texts { bytes: Vec<u8>, ends: Vec<(usize, usize)>, rows: Vec<Option<u32>> },
}

impl Cells {
    pub(crate) fn len(&self) -> usize {
        match self {
            Cells::Numbers(values) => values.len(),
            Cells::Texts { rows, .. } => rows.len(),
        }
    }

    /// Returns the text of a row; empty if the row has none.
    pub(crate) fn text(&self, row: usize) -> &[u8] {
        match self {
            Cells::Texts { bytes, ends, rows } => rows[row].map_or(&[], |code| {
                let (from, to) = ends[code as usize];
                &bytes[from..to]
            }),
            Cells::Numbers(_) => &[],
        }
    }
}

/// Most rows of a file.
const MOST_ROWS: usize = 1 << 27;
/// Longest page, uncompressed, in bytes.
const LONGEST_PAGE: usize = 1 << 30;

const BOOLEAN: i64 = 0;
const INT32: i64 = 1;
const INT64: i64 = 2;
const FLOAT: i64 = 4;
const DOUBLE: i64 = 5;
const BYTE_ARRAY: i64 = 6;

/// A whole file with its footer.
pub(crate) struct Chunks<'f> {
    file: &'f [u8],
    footer: &'f Fields<'f>,
}

/// One column as the file describes it.
struct Described {
    physical: i64,
    is_optional: bool,
    /// Nanoseconds of a unit of its times.
    unit: i64,
}

impl<'f> Chunks<'f> {
    pub(crate) fn new(file: &'f [u8], footer: &'f Fields<'f>) -> Result<Chunks<'f>, BadTable> {
        if footer.list(2).is_empty() {
            return Err(Corrupt("its footer has no schema").into());
        }
        Ok(Chunks { file, footer })
    }

    fn described(&self, name: &str) -> Result<Described, BadTable> {
        let elements = self.footer.list(2).iter().skip(1).filter_map(Value::fields);
        let mut elements = elements.filter(|element| element.binary(4) == Some(name.as_bytes()));
        let element = elements.next().ok_or_else(|| BadTable::of_column(name, "the file does not have it"))?;
        let repetition = element.int(3).unwrap_or_default();
        let physical =
            element.int(1).filter(|_| repetition < 2).ok_or_else(|| BadTable::of_column(name, "it is nested or repeated"))?;
        let converted = element.int(6);
        let unit = element.fields(10).and_then(|logical| logical.fields(8)).and_then(|timestamp| timestamp.fields(2));
        let unit = match unit {
            Some(unit) if unit.get(1).is_some() => 1_000_000,
            Some(unit) if unit.get(2).is_some() => 1000,
            Some(_) => 1,
            None if converted == Some(9) => 1_000_000,
            None if converted == Some(10) => 1000,
            None => 1,
        };
        Ok(Described { physical, is_optional: repetition == 1, unit })
    }

    /// Reads the values of one of our columns.
    pub(crate) fn cells(&self, column: &ColumnSpec) -> Result<Cells, BadTable> {
        let described = self.described(column.name)?;
        let fits = match column.shape {
            Shape::Text | Shape::Bytes => described.physical == BYTE_ARRAY,
            Shape::OptionalDouble => matches!(described.physical, FLOAT | DOUBLE),
            _ => matches!(described.physical, INT32 | INT64),
        };
        if !fits {
            return Err(BadTable::of_column(
                column.name,
                format!("its physical type {} is not the one of ours", described.physical),
            ));
        }
        let mut reader = ChunkReader {
            name: column.name,
            described,
            cells: if column.shape.is_text() {
                Cells::Texts { bytes: Vec::new(), ends: Vec::new(), rows: Vec::new() }
            } else {
                Cells::Numbers(Vec::new())
            },
        };
        for group in self.footer.list(4).iter().filter_map(Value::fields) {
            let chunk = group
                .list(1)
                .iter()
                .filter_map(|chunk| chunk.fields()?.fields(3))
                .find(|meta| matches!(meta.list(3), [Value::Binary(path)] if *path == column.name.as_bytes()));
            let chunk = chunk.ok_or_else(|| BadTable::of_column(column.name, "a row group lacks it"))?;
            reader.chunk(self.file, chunk).map_err(|error| match error {
                BadTable::Corrupt(why) => BadTable::of_column(column.name, why),
                error => error,
            })?;
        }
        let unit = reader.described.unit;
        let mut cells = reader.cells;
        if let Cells::Numbers(values) = &mut cells {
            if column.shape == Shape::Time && unit != 1 {
                values.iter_mut().flatten().for_each(|value| *value = value.saturating_mul(unit));
            }
            if !column.shape.is_optional() && values.contains(&None) {
                return Err(BadTable::of_column(column.name, "a row has no value"));
            }
        }
        Ok(cells)
    }
}

struct ChunkReader<'c> {
    name: &'c str,
    described: Described,
    cells: Cells,
}

/// Values of a page, before they are joined with the absent ones.
struct PageValues<'p> {
    encoding: i64,
    rows: usize,
    present: Option<Vec<u32>>,
    bytes: &'p [u8],
}

impl ChunkReader<'_> {
    fn error(&self, why: impl std::fmt::Display) -> BadTable {
        BadTable::of_column(self.name, why)
    }

    fn chunk(&mut self, file: &[u8], meta: &Fields<'_>) -> Result<(), BadTable> {
        let codec = meta.int(4).unwrap_or_default();
        let rows = usize::try_from(meta.int(5).unwrap_or_default()).map_err(|_| Corrupt("a row group of an impossible size"))?;
        let data = meta.int(9).unwrap_or_default();
        let start = meta.int(11).filter(|&dictionary| dictionary > 0 && dictionary < data).unwrap_or(data);
        let mut rest = usize::try_from(start).ok().and_then(|start| file.get(start..)).ok_or(Corrupt("a page lies outside"))?;
        let end = self
            .cells
            .len()
            .checked_add(rows)
            .filter(|&end| end <= MOST_ROWS)
            .ok_or(Corrupt("a row group of an impossible size"))?;
        // The first code of the dictionary's texts, and the dictionary's numbers.
        let (mut first_code, mut dictionary) = (0, Vec::new());
        while self.cells.len() < end {
            let header = take_struct(&mut rest)?;
            let size =
                |number| header.int(number).and_then(|size| usize::try_from(size).ok()).ok_or(Corrupt("a page has no length"));
            let (raw, compressed) = (size(2)?, size(3)?);
            let (page, behind) = rest.split_at_checked(compressed).ok_or(Corrupt("a page lies outside"))?;
            rest = behind;
            let left = end - self.cells.len();
            let rows_of = |facts: &Fields<'_>| {
                let rows = facts.int(1).and_then(|rows| usize::try_from(rows).ok()).filter(|&rows| rows <= left);
                rows.ok_or(Corrupt("a column's pages do not hold its rows"))
            };
            if raw > LONGEST_PAGE {
                return Err(Corrupt("a page of an impossible length").into());
            }
            match header.int(1) {
                Some(0) => {
                    let facts = header.fields(5).ok_or(Corrupt("a page has no header"))?;
                    let page = self.uncompressed(codec, page, raw)?;
                    let rows = rows_of(facts)?;
                    let (present, bytes) = if self.described.is_optional {
                        let (length, behind) = page.split_first_chunk::<4>().ok_or(Corrupt("a page is cut off"))?;
                        let length = u32::from_le_bytes(*length) as usize;
                        let (levels, behind) = behind.split_at_checked(length).ok_or(Corrupt("a page is cut off"))?;
                        (Some(present(levels, rows)?), behind)
                    } else {
                        (None, page.as_slice())
                    };
                    let values = PageValues { encoding: facts.int(2).unwrap_or_default(), rows, present, bytes };
                    self.page(values, first_code, &dictionary)?;
                }
                Some(3) => {
                    let facts = header.fields(8).ok_or(Corrupt("a page has no header"))?;
                    let rows = rows_of(facts)?;
                    let levels = facts.int(5).unwrap_or_default().unsigned_abs() as usize
                        + facts.int(6).unwrap_or_default().unsigned_abs() as usize;
                    let (levels, values) = page.split_at_checked(levels).ok_or(Corrupt("a page is cut off"))?;
                    let is_compressed = facts.bool(7).unwrap_or(true);
                    let length = raw.checked_sub(levels.len()).ok_or(Corrupt("a page of an impossible length"))?;
                    let values = self.uncompressed(if is_compressed { codec } else { 0 }, values, length)?;
                    let present = if self.described.is_optional { Some(present(levels, rows)?) } else { None };
                    let values = PageValues { encoding: facts.int(4).unwrap_or_default(), rows, present, bytes: &values };
                    self.page(values, first_code, &dictionary)?;
                }
                Some(2) => {
                    let count = header.fields(7).and_then(|facts| facts.int(1)).unwrap_or_default() as usize;
                    let page = self.uncompressed(codec, page, raw)?;
                    match &mut self.cells {
                        Cells::Texts { bytes, ends, .. } => {
                            first_code = ends.len();
                            plain_texts(&page, count, bytes, ends)?;
                        }
                        Cells::Numbers(_) => plain_numbers(self.described.physical, &page, count, &mut dictionary)?,
                    }
                }
                // Page types of later versions of the format are skipped.
                _ => {}
            }
        }
        if self.cells.len() == end { Ok(()) } else { Err(Corrupt("a column's pages do not hold its rows").into()) }
    }

    fn uncompressed(&self, codec: i64, page: &[u8], raw: usize) -> Result<Vec<u8>, BadTable> {
        match codec {
            _ if raw == 0 => Ok(Vec::new()),
            0 => Ok(page.to_vec()),
            1 => Ok(snappy::decompress(page, raw)?),
            6 => match zstd::bulk::decompress(page, raw) {
                Ok(bytes) if bytes.len() == raw => Ok(bytes),
                _ => Err(Corrupt("a page is damaged").into()),
            },
            2 => Err(self.error("its compression gzip is not understood; write the file with zstd or snappy")),
            4 => Err(self.error("its compression brotli is not understood; write the file with zstd or snappy")),
            5 | 7 => Err(self.error("its compression lz4 is not understood; write the file with zstd or snappy")),
            other => Err(self.error(format!("its compression {other} is not understood; write the file with zstd or snappy"))),
        }
    }

    fn page(&mut self, page: PageValues<'_>, first_code: usize, dictionary: &[i64]) -> Result<(), BadTable> {
        let PageValues { encoding, rows, present, bytes } = page;
        let count = present.as_ref().map_or(rows, |present| present.iter().filter(|&&present| present == 1).count());
        let physical = self.described.physical;
        let name = self.name;
        match &mut self.cells {
            Cells::Numbers(values) => {
                let mut found = Vec::new();
                match encoding {
                    0 => plain_numbers(physical, bytes, count, &mut found)?,
                    2 | 8 => {
                        found.extend(codes(bytes, count, dictionary.len())?.into_iter().map(|code| dictionary[code as usize]))
                    }
                    5 if matches!(physical, INT32 | INT64) => {
                        delta::decode(bytes, count, &mut found)?;
                        if physical == INT32 {
                            // Writers count differences of 32 bits within 32 bits.
                            found.iter_mut().for_each(|value| *value = i64::from(*value as i32));
                        }
                    }
                    other => return Err(BadTable::of_column(name, unknown_encoding(other))),
                }
                join(present, found, values);
            }
            Cells::Texts { bytes: texts, ends, rows: values } => {
                let mut found: Vec<u32> = Vec::new();
                match encoding {
                    0 => {
                        let first = ends.len() as u32;
                        plain_texts(bytes, count, texts, ends)?;
                        found.extend((0..count as u32).map(|place| first + place));
                    }
                    2 | 8 => {
                        let known = ends.len() - first_code;
                        found.extend(codes(bytes, count, known)?.into_iter().map(|code| first_code as u32 + code));
                    }
                    6 => {
                        let (mut within, first) = (Vec::new(), ends.len() as u32);
                        let raw = delta::decode_texts(bytes, count, &mut within)?;
                        let (base, mut from) = (texts.len(), 0);
                        texts.extend_from_slice(raw);
                        for end in within {
                            ends.push((base + from, base + end as usize));
                            from = end as usize;
                        }
                        found.extend((0..count as u32).map(|place| first + place));
                    }
                    other => return Err(BadTable::of_column(name, unknown_encoding(other))),
                }
                join(present, found, values);
            }
        }
        Ok(())
    }
}

fn unknown_encoding(encoding: i64) -> String {
    let name = match encoding {
        3 => "RLE",
        4 => "BIT_PACKED",
        7 => "DELTA_BYTE_ARRAY",
        9 => "BYTE_STREAM_SPLIT",
        _ => "",
    };
    format!(
        "its encoding {name}{}({encoding}) is not understood; write the file with PLAIN or a dictionary",
        if name.is_empty() { "" } else { " " }
    )
}

fn present(levels: &[u8], rows: usize) -> Result<Vec<u32>, Corrupt> {
    let mut present = Vec::new();
    bits::decode_hybrid(levels, 1, rows, 2, &mut present)?;
    Ok(present)
}

fn codes(bytes: &[u8], count: usize, values: usize) -> Result<Vec<u32>, Corrupt> {
    let mut codes = Vec::new();
    if count > 0 {
        let (&width, packed) = bytes.split_first().ok_or(Corrupt("a page of codes is cut off"))?;
        bits::decode_hybrid(packed, width.into(), count, values as u32, &mut codes)?;
    }
    Ok(codes)
}

fn join<V>(present: Option<Vec<u32>>, found: Vec<V>, values: &mut Vec<Option<V>>) {
    let mut found = found.into_iter();
    match present {
        Some(present) => values.extend(present.into_iter().map(|present| if present == 1 { found.next() } else { None })),
        None => values.extend(found.map(Some)),
    }
}

fn plain_numbers(physical: i64, bytes: &[u8], count: usize, out: &mut Vec<i64>) -> Result<(), Corrupt> {
    let width = match physical {
        INT32 | FLOAT => 4,
        BOOLEAN => return Err(Corrupt("a column of numbers holds truth values")),
        _ => 8,
    };
    let bytes = count.checked_mul(width).and_then(|length| bytes.get(..length)).ok_or(Corrupt("a page of numbers is cut off"))?;
    out.extend(bytes.chunks_exact(width).map(|value| match (physical, value.first_chunk::<4>(), value.first_chunk::<8>()) {
        (FLOAT, Some(value), _) => f64::from(f32::from_le_bytes(*value)).to_bits().cast_signed(),
        (INT32, Some(value), _) => i64::from(i32::from_le_bytes(*value)),
        (_, _, Some(value)) => i64::from_le_bytes(*value),
        _ => 0,
    }));
    Ok(())
}

fn plain_texts(mut bytes: &[u8], count: usize, texts: &mut Vec<u8>, ends: &mut Vec<(usize, usize)>) -> Result<(), Corrupt> {
    let cut = Corrupt("a page of texts is cut off");
    for _ in 0..count {
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or(cut)?;
        let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(cut)?;
        let from = texts.len();
        texts.extend_from_slice(text);
        ends.push((from, texts.len()));
        bytes = rest;
    }
    Ok(())
}
