//! Parquet files of ours that another program, such as pyarrow or DuckDB, has rewritten: without our index, often with
//! other encodings.
//!
//! Such a file is read whole by its footer. Its rows are sorted, and a copy in our own form is made in memory. Searches
//! read the copy like any other file, so a search knows one form of file only. Rejected: reading other programs' pages
//! in place. Each search would decode each page of every column, and all code that skips rows would exist twice.
//!
//! Supported are flat columns with our names and types, required or optional, and pages of version 1 and 2. Supported
//! encodings are PLAIN, RLE_DICTIONARY, DELTA_BINARY_PACKED and DELTA_LENGTH_BYTE_ARRAY; supported compressions are
//! none, snappy and zstd. Anything else is an error that names the column. Other columns are ignored.

use std::{
    fs::File,
    io::{self, Seek, Write},
    os::unix::fs::FileExt,
};

use rustix::fs::MemfdFlags;
use tampu_types::{Level, Time};

use super::{
    BadTable, Corrupt, UNIT,
    chunk::{Cells, Chunks},
    column::{Column, ColumnSpec, Layout, Shape},
    footer::{ChunkFacts, HEAD},
    index::Group,
    pages::Output,
    rows::group_ranges,
    thrift_read::take_struct,
    words::{Words, WordsBuilder},
    write::finish,
};
use crate::wal::frame::LevelSet;

/// Longest file that is read into memory, in bytes.
const LONGEST: u64 = 256 << 20;

/// Makes a copy of a file in our own form.
pub(crate) fn as_ours(file: &File, length: u64, layout: &'static Layout) -> Result<File, BadTable> {
    if length > LONGEST {
        return Err(BadTable::Foreign(format!("it has {length} bytes; {LONGEST} are read of a file that another program wrote")));
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, 0)?;
    let footer = bytes.len().checked_sub(8).ok_or(Corrupt("it is too short"))?;
    let size = bytes[footer..].first_chunk::<4>().map_or(0, |size| u32::from_le_bytes(*size)) as usize;
    let mut footer = footer
        .checked_sub(size)
        .and_then(|from| bytes.get(from..footer))
        .ok_or(Corrupt("its footer has an impossible length"))?;
    let footer = take_struct(&mut footer)?;
    let chunks = Chunks::new(&bytes, &footer)?;
    let cells: Vec<Cells> = layout.columns.iter().map(|column| chunks.cells(column)).collect::<Result<_, _>>()?;
    let order = order(layout, &cells)?;
    let copy = rustix::fs::memfd_create("tampu-parquet", MemfdFlags::CLOEXEC).map_err(io::Error::from)?;
    let mut copy = write(File::from(copy), layout, &cells, &order)?;
    copy.rewind()?;
    Ok(copy)
}

fn numbers(cells: &Cells) -> &[Option<i64>] {
    match cells {
        Cells::Numbers(values) => values,
        Cells::Texts { .. } => &[],
    }
}

/// Returns the columns of a record id: incarnation, ring, number.
fn id_columns(layout: &Layout) -> [usize; 3] {
    if layout.name == Column::LOG.name {
        [Column::Incarnation, Column::Ring, Column::Number].map(Column::index)
    } else {
        crate::tables::ID_COLUMNS
    }
}

/// Returns the rows in the order of our files: by time, then by record id. Rows that are equal in both, such as records
/// without an id, keep the order of the file.
fn order(layout: &Layout, cells: &[Cells]) -> Result<Vec<u32>, BadTable> {
    let rows = cells.first().map_or(0, Cells::len);
    if cells.iter().any(|cells| cells.len() != rows) {
        return Err(Corrupt("its columns have different numbers of rows").into());
    }
    let times = numbers(&cells[layout.time]);
    let [incarnations, ring, number] = id_columns(layout).map(|column| &cells[column]);
    // The text of an incarnation has a fixed width, so texts sort like the incarnations.
    let id = |row: u32| match incarnations.text(row as usize) {
        [] => (&[][..], None, None),
        text => (text, numbers(ring)[row as usize], numbers(number)[row as usize].map(i64::cast_unsigned)),
    };
    let mut order: Vec<u32> = (0..rows as u32).collect();
    order.sort_by(|&row, &other| times[row as usize].cmp(&times[other as usize]).then_with(|| id(row).cmp(&id(other))));
    Ok(order)
}

fn write(file: File, layout: &'static Layout, cells: &[Cells], order: &[u32]) -> Result<File, BadTable> {
    let mut out = Output::new(file)?;
    out.put(HEAD)?;
    let (mut words, mut data_words) = (WordsBuilder::default(), WordsBuilder::default());
    let is_log = layout.name == Column::LOG.name;
    let mut groups = Vec::new();
    for range in group_ranges(order.len()) {
        let rows = &order[range];
        let (mut columns, mut facts) = (Vec::new(), Vec::new());
        // Columns for text search have pages of their own and no dictionary.
        let searched = |column: &ColumnSpec| is_log && matches!(column.name, "message" | "data");
        for (column, cells) in layout.columns.iter().zip(cells) {
            let mut fact = ChunkFacts::default();
            columns.push(write_column(&mut out, column.shape, searched(column), cells, rows, &mut fact)?);
            facts.push(fact);
        }
        let time = |row: u32| Time(numbers(&cells[layout.time])[row as usize].unwrap_or_default());
        let group = Group {
            rows: rows.len() as u32,
            levels: levels(layout, is_log, cells, rows)?,
            units: rows.chunks(UNIT).map(|unit| (time(unit[0]), time(unit[unit.len() - 1]))).collect(),
            columns,
            words: if is_log { listed(&mut words, &cells[Column::Message.index()], rows, false) } else { Words::default() },
            data_words: if is_log { listed(&mut data_words, &cells[Column::Data.index()], rows, true) } else { Words::default() },
        };
        groups.push((group, facts));
    }
    let (_, mut file) = finish(out, layout, groups, Time(0), "")?;
    file.flush()?;
    Ok(file)
}

fn listed(words: &mut WordsBuilder, cells: &Cells, rows: &[u32], is_data: bool) -> Words {
    for &row in rows {
        let text = cells.text(row as usize);
        if !is_data {
            words.add(text);
        } else if !text.is_empty() {
            words.add_data(text);
        }
    }
    words.finish()
}

/// Returns the levels of log records, or the marks of another table's rows, which are its seventh column.
fn levels(layout: &Layout, is_log: bool, cells: &[Cells], rows: &[u32]) -> Result<LevelSet, BadTable> {
    let mut levels = LevelSet::default();
    for &row in rows {
        if is_log {
            let name = cells[Column::Level.index()].text(row as usize);
            let level: Option<Level> = std::str::from_utf8(name).ok().and_then(|name| name.parse().ok());
            let level = level.ok_or_else(|| BadTable::of_column("level", "a row has no level of ours"))?;
            levels.0 |= 1 << level.ordinal();
        } else if let Some(marks) = layout.columns.get(crate::tables::KEYS - 1).map(|_| &cells[crate::tables::KEYS - 1]) {
            levels.0 |= numbers(marks).get(row as usize).copied().flatten().unwrap_or_default() as u16;
        }
    }
    Ok(levels)
}

fn write_column<W: Write>(
    out: &mut Output<W>,
    shape: Shape,
    is_searched: bool,
    cells: &Cells,
    rows: &[u32],
    facts: &mut ChunkFacts,
) -> io::Result<super::index::Chunk> {
    let texts = || rows.iter().map(|&row| cells.text(row as usize));
    let optional = || rows.iter().map(|&row| numbers(cells)[row as usize]);
    let required = || optional().map(Option::unwrap_or_default).collect::<Vec<i64>>();
    match shape {
        Shape::Text if !is_searched => out.any_texts(texts(), facts),
        Shape::Text | Shape::Bytes => out.texts(texts(), facts),
        Shape::Time => out.ranged_numbers(&required(), facts),
        Shape::Number => out.few_numbers(&required(), facts),
        Shape::UnsignedNumber => out.numbers(&required(), facts),
        Shape::OptionalNumber => out.optional_numbers(optional(), facts),
        Shape::OptionalDouble => {
            out.optional_doubles(optional().map(|value| value.map(|bits| f64::from_bits(bits.cast_unsigned()))), facts)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_time_stand_in_the_order_of_their_ids() {
        let shapes = [Shape::Time, Shape::Time, Shape::Text, Shape::Number, Shape::UnsignedNumber, Shape::UnsignedNumber];
        let columns: Vec<ColumnSpec> = shapes.into_iter().map(|shape| ColumnSpec { name: "", shape }).collect();
        let layout = Layout { name: "a table", columns: columns.leak(), time: 0 };
        // The columns are time, incarnation, ring and number.
        let rows =
            [(7, "b", 1, 1), (7, "a", 1, -1), (7, "a", 1, 2), (7, "a", 0, 3), (7, "", 2, 9), (7, "", 1, 8), (3, "c", 1, 1)];
        let column = |value: fn(&(i64, &str, i64, i64)) -> i64| Cells::Numbers(rows.iter().map(|row| Some(value(row))).collect());
        let mut texts = Cells::Texts { bytes: b"abc".to_vec(), ends: vec![(0, 0), (0, 1), (1, 2), (2, 3)], rows: Vec::new() };
        if let Cells::Texts { rows: codes, .. } = &mut texts {
            codes.extend(
                rows.iter().map(|row| ["", "a", "b", "c"].iter().position(|text| *text == row.1).map(|code| code as u32)),
            );
        }
        let time = || column(|row| row.0);
        let cells = [time(), time(), texts, column(|row| row.2), time(), column(|row| row.3)];
        // Numbers compare as unsigned, and rows without an id keep their order.
        assert_eq!(order(&layout, &cells).unwrap(), [6, 4, 5, 3, 2, 1, 0]);
    }
}
