//! Reader for the rows of a Parquet file.

use std::{ops::Range, sync::Arc};

use tampu_types::{Incarnation, RecordId, Time};

use super::{Cell, KEYS, Place, Row, Schema, run_of};
use crate::{
    ids::seen::Run,
    parquet::{BadTable, Corrupt, Dictionaries, Dictionary, Group, Scratch, Shape, Table, UNIT, Values},
};

/// One column of a unit.
pub(super) struct Column(Values);

impl Column {
    /// Reads the column; of texts, the pages that hold one of these rows, which are in order.
    pub(super) fn read(
        table: &Arc<Table>,
        group: usize,
        unit: usize,
        column: usize,
        rows: &[u32],
        dictionaries: &Dictionaries,
        scratch: &mut Scratch,
    ) -> Result<Column, BadTable> {
        let known = dictionaries.of(table, group, scratch)?;
        let wanted = |range: Range<usize>| {
            let from = rows.partition_point(|&row| (row as usize) < range.start);
            rows.get(from).is_some_and(|&row| (row as usize) < range.end)
        };
        let chunks = &table.index.groups[group];
        Ok(Column(table.values(chunks, column, unit, known.columns[column].clone(), &wanted, scratch)?))
    }

    pub(super) fn bytes(&self, row: usize) -> Result<&[u8], Corrupt> {
        match &self.0 {
            Values::Codes(codes, dictionary) => match &**dictionary {
                Dictionary::Texts(texts) if (codes[row] as usize) < texts.len() => Ok(texts.get(codes[row] as usize)),
                _ => Err(Corrupt("a text column holds something else")),
            },
            Values::Texts(pages) => {
                let page = pages.partition_point(|(first, _)| *first <= row).checked_sub(1);
                let found = page.and_then(|page| pages.get(page)).filter(|(first, texts)| row - first < texts.len());
                found.map(|(first, texts)| texts.get(row - first)).ok_or(Corrupt("a page of texts is missing"))
            }
            Values::Numbers(_) => Err(Corrupt("a text column holds numbers")),
        }
    }

    pub(super) fn number(&self, row: usize) -> Result<i64, Corrupt> {
        match &self.0 {
            Values::Numbers(numbers) => Ok(numbers[row]),
            Values::Codes(codes, dictionary) => match &**dictionary {
                Dictionary::Numbers(numbers) => {
                    numbers.get(codes[row] as usize).copied().ok_or(Corrupt("a number is not in its dictionary"))
                }
                Dictionary::Texts(_) => Err(Corrupt("a number column holds texts")),
            },
            Values::Texts(_) => Err(Corrupt("a number column holds texts")),
        }
    }

    /// Returns a number that may be absent, by its bits.
    fn optional(&self, row: usize) -> Result<Option<i64>, Corrupt> {
        let Values::Codes(codes, dictionary) = &self.0 else {
            return Err(Corrupt("missing values in a required column"));
        };
        let Dictionary::Numbers(numbers) = &**dictionary else { return Err(Corrupt("a number column holds texts")) };
        let Some(place) = (codes[row] as usize).checked_sub(1) else { return Ok(None) };
        numbers.get(place).copied().map(Some).ok_or(Corrupt("a number is not in its dictionary"))
    }

    fn cell(&self, shape: Shape, row: usize) -> Result<Cell, Corrupt> {
        Ok(match shape {
            Shape::Time | Shape::Number | Shape::UnsignedNumber => Cell::Number(self.number(row)?),
            Shape::OptionalNumber => Cell::OptionalNumber(self.optional(row)?),
            Shape::OptionalDouble => Cell::Double(self.optional(row)?.map(|bits| f64::from_bits(bits.cast_unsigned()))),
            Shape::Text | Shape::Bytes => Cell::Text(self.bytes(row)?.to_vec()),
        })
    }
}

/// Keys of a unit's rows.
pub(super) struct Keys(Vec<Column>);

impl Keys {
    pub(super) fn read(
        table: &Arc<Table>,
        group: usize,
        unit: usize,
        dictionaries: &Dictionaries,
        scratch: &mut Scratch,
    ) -> Result<Keys, BadTable> {
        let rows: Vec<u32> = (0..Table::unit_rows(&table.index.groups[group], unit) as u32).collect();
        let read = |column| Column::read(table, group, unit, column, &rows, dictionaries, scratch);
        Ok(Keys((0..KEYS).map(read).collect::<Result<_, BadTable>>()?))
    }

    pub(super) fn time(&self, row: usize) -> Result<Time, Corrupt> {
        Ok(Time(self.0[0].number(row)?))
    }

    pub(super) fn marks(&self, row: usize) -> Result<u16, Corrupt> {
        u16::try_from(self.0[6].number(row)?).map_err(|_| Corrupt("marks out of range"))
    }

    fn life(&self, row: usize) -> Result<Incarnation, Corrupt> {
        let text = std::str::from_utf8(self.0[2].bytes(row)?).ok();
        text.and_then(|text| text.parse().ok()).ok_or(Corrupt("invalid incarnation"))
    }

    pub(super) fn place(&self, row: usize) -> Result<Place, Corrupt> {
        let ring = u32::try_from(self.0[3].number(row)?).map_err(|_| Corrupt("a ring out of range"))?;
        let id = RecordId { incarnation: self.life(row)?, ring, number: self.0[5].number(row)?.cast_unsigned() };
        Ok(Place { time: self.time(row)?, id })
    }

    fn row(&self, row: usize) -> Result<Row, Corrupt> {
        let Place { time, id: RecordId { incarnation, ring, number } } = self.place(row)?;
        Ok(Row {
            time,
            received: Time(self.0[1].number(row)?),
            life: incarnation,
            ring,
            from: self.0[4].number(row)?.cast_unsigned(),
            number,
            marks: self.marks(row)?,
            cells: Vec::new(),
        })
    }
}

/// Reads these rows of a unit, which are in order.
pub(super) fn rows(
    schema: &Schema,
    table: &Arc<Table>,
    group: usize,
    unit: usize,
    wanted: &[u32],
    dictionaries: &Dictionaries,
    scratch: &mut Scratch,
) -> Result<Vec<Row>, BadTable> {
    let keys = Keys::read(table, group, unit, dictionaries, scratch)?;
    let mut found = wanted.iter().map(|&row| keys.row(row as usize)).collect::<Result<Vec<Row>, Corrupt>>()?;
    for (column, spec) in schema.layout.columns.iter().enumerate().skip(KEYS) {
        let column = Column::read(table, group, unit, column, wanted, dictionaries, scratch)?;
        for (row, &place) in found.iter_mut().zip(wanted) {
            row.cells.push(column.cell(spec.shape, place as usize)?);
        }
    }
    Ok(found)
}

/// Approximate number of bytes of rows that are read together.
pub(super) const TOGETHER: u64 = 8 << 20;

/// Returns the number of rows of a row group to read together: few where rows are long.
pub(super) fn at_once(group: &Group) -> usize {
    let bytes: u64 = group.columns.iter().flat_map(|chunk| &chunk.pages).map(|page| u64::from(page.raw)).sum();
    let each = (bytes / u64::from(group.rows.max(1))).max(1);
    usize::try_from(TOGETHER / each).unwrap_or(usize::MAX).clamp(1, UNIT)
}

/// Calls `each` with the rows of a file, in order, a few thousand at a time: the row group, the unit, its rows.
pub(crate) fn each_row(
    schema: &Schema,
    table: &Arc<Table>,
    mut each: impl FnMut(usize, usize, Vec<Row>) -> Result<(), BadTable>,
) -> Result<(), BadTable> {
    let (mut scratch, dictionaries) = (Scratch::new()?, Dictionaries::default());
    for (number, group) in table.index.groups.iter().enumerate() {
        for unit in 0..group.units.len() {
            let all: Vec<u32> = (0..Table::unit_rows(group, unit) as u32).collect();
            for few in all.chunks(at_once(group)) {
                each(number, unit, rows(schema, table, number, unit, few, &dictionaries, &mut scratch)?)?;
            }
        }
    }
    Ok(())
}

/// Returns all numbers that a file's rows stand for.
pub(crate) fn ids(table: &Arc<Table>) -> Result<Vec<(Incarnation, Run)>, BadTable> {
    let (mut scratch, dictionaries) = (Scratch::new()?, Dictionaries::default());
    let mut runs = Vec::new();
    for (number, group) in table.index.groups.iter().enumerate() {
        for unit in 0..group.units.len() {
            let keys = Keys::read(table, number, unit, &dictionaries, &mut scratch)?;
            for row in 0..Table::unit_rows(group, unit) {
                let Row { life, ring, from, number, .. } = keys.row(row)?;
                runs.extend(run_of(life, ring, from, number));
            }
        }
    }
    Ok(runs)
}
