//! Writer of a Parquet file: row groups, then the index, then the footer.
//!
//! A file is written under a temporary name, synced, and then renamed. The manifest decides if it belongs to the
//! archive.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use tampu_types::{Level, RecordField, Time, record::field::FieldPart};

use super::{
    UNIT,
    column::{Column, Layout},
    footer::{self, ChunkFacts},
    index::{Chunk, Group, Index},
    page_index,
    pages::Output,
    rows::{Extra, Origin, Row, Rows, Shared},
    words::WordsBuilder,
};
use crate::wal::frame::LevelSet;

/// Summary of a written file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) bytes: u64,
    /// CRC-32C of the whole file.
    pub(crate) sum: u32,
    pub(crate) records: u64,
    pub(crate) earliest: Time,
    pub(crate) latest: Time,
    /// Reception time of the last record.
    pub(crate) received: Time,
    pub(crate) levels: LevelSet,
}

/// Writes these rows, which are in order, as a file of this name. `pace` is called between pieces of work. If it
/// returns an error, the writing ends and no file is left.
pub(crate) fn write_file(
    path: &Path,
    rows: &Rows,
    places: &[u32],
    domain: &str,
    pace: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<Written> {
    whole_file(path, |file| {
        let mut table = TableWriter::new(file)?;
        table.add(rows, places, pace)?;
        table.finish(domain)
    })
}

/// Runs `write` for a file of this name. The file is then complete and synced, or absent.
pub(crate) fn whole_file(path: &Path, write: impl FnOnce(File) -> io::Result<(Written, File)>) -> io::Result<Written> {
    let unfinished = path.with_extension("parquet.new");
    let written = File::create(&unfinished).and_then(write).and_then(|(written, file)| {
        file.sync_all()?;
        fs::rename(&unfinished, path)?;
        Ok(written)
    });
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// Writes the end of a file, after its rows. Nothing is synced.
pub(crate) fn finish<W: Write>(
    mut out: Output<W>,
    layout: &Layout,
    mut groups: Vec<(Group, Vec<ChunkFacts>)>,
    received: Time,
    domain: &str,
) -> io::Result<(Written, W)> {
    let mut tail = Vec::new();
    for (_, facts) in &mut groups {
        page_index::append(layout, facts, out.at, &mut tail);
    }
    let index = Index { groups: groups.iter().map(|(group, _)| group.clone()).collect() };
    index.encode(layout, &mut tail)?;
    tail.extend(footer::footer(layout, &groups, domain));
    out.put(&tail)?;
    let written = Written {
        bytes: out.at,
        sum: out.sum,
        records: index.groups.iter().map(|group| u64::from(group.rows)).sum(),
        earliest: index.groups.iter().map(Group::earliest).min().unwrap_or(Time(0)),
        latest: index.groups.iter().map(Group::latest).max().unwrap_or(Time(0)),
        received,
        levels: LevelSet(index.groups.iter().fold(0, |levels, group| levels | group.levels.0)),
    };
    Ok((written, out.finish()?))
}

/// Unfinished Parquet file.
pub(crate) struct TableWriter<W: Write> {
    out: Output<W>,
    words: WordsBuilder,
    data_words: WordsBuilder,
    groups: Vec<(Group, Vec<ChunkFacts>)>,
    received: Time,
}

impl<W: Write> TableWriter<W> {
    pub(crate) fn new(file: W) -> io::Result<TableWriter<W>> {
        let mut out = Output::new(file)?;
        out.put(footer::HEAD)?;
        Ok(TableWriter {
            out,
            words: WordsBuilder::default(),
            data_words: WordsBuilder::default(),
            groups: Vec::new(),
            received: Time(i64::MIN),
        })
    }

    /// Appends these rows, which are in order, in as few row groups as they fit into.
    pub(crate) fn add(&mut self, rows: &Rows, places: &[u32], pace: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        let mut writer = Writer {
            rows,
            out: &mut self.out,
            words: &mut self.words,
            data_words: &mut self.data_words,
            local: vec![UNKNOWN; rows.origin_count()],
            codes_of_strings: vec![UNKNOWN; rows.string_count()],
        };
        for range in super::rows::group_ranges(places.len()) {
            let places = &places[range];
            self.received = places.iter().fold(self.received, |latest, &place| latest.max(Time(rows.row(place).received)));
            self.groups.push(writer.group(places, pace)?);
        }
        Ok(())
    }

    /// Writes the end of the file, after its rows. Nothing is synced.
    pub(crate) fn finish(self, domain: &str) -> io::Result<(Written, W)> {
        let TableWriter { out, groups, received, .. } = self;
        finish(out, &Column::LOG, groups, received, domain)
    }
}

const UNKNOWN: u32 = u32::MAX;

struct Writer<'r, W: Write> {
    rows: &'r Rows,
    out: &'r mut Output<W>,
    words: &'r mut WordsBuilder,
    data_words: &'r mut WordsBuilder,
    /// Number of each origin in this row group; unknown between row groups.
    local: Vec<u32>,
    /// Code of each string in this column; unknown between columns.
    codes_of_strings: Vec<u32>,
}

impl<W: Write> Writer<'_, W> {
    fn group(&mut self, places: &[u32], pace: &mut dyn FnMut() -> io::Result<()>) -> io::Result<(Group, Vec<ChunkFacts>)> {
        let rows: Vec<&Row> = places.iter().map(|&place| self.rows.row(place)).collect();
        let (mut origins, mut origin_of_row) = (Vec::new(), Vec::with_capacity(rows.len()));
        for row in &rows {
            let local = &mut self.local[row.origin as usize];
            if *local == UNKNOWN {
                *local = origins.len() as u32;
                origins.push(row.origin);
            }
            origin_of_row.push(*local);
        }
        origins.iter().for_each(|&origin| self.local[origin as usize] = UNKNOWN);
        let mut levels = LevelSet::default();
        rows.iter().for_each(|row| levels.0 |= 1 << row.level);
        let units = rows.chunks(UNIT).map(|unit| (Time(unit[0].time), Time(unit[unit.len() - 1].time))).collect();
        for row in &rows {
            self.words.add(self.rows.message(row));
            if row.has_data() {
                self.data_words.add_data(self.rows.data(row));
            }
        }
        let group = Gathered { rows, origins, origin_of_row };
        let (mut columns, mut facts) = (Vec::new(), Vec::new());
        for &column in Column::ALL {
            pace()?;
            let mut fact = ChunkFacts::default();
            columns.push(self.column(column, &group, &mut fact)?);
            facts.push(fact);
        }
        let group = Group {
            rows: places.len() as u32,
            levels,
            units,
            columns,
            words: self.words.finish(),
            data_words: self.data_words.finish(),
        };
        Ok((group, facts))
    }

    fn column(&mut self, column: Column, group: &Gathered<'_>, facts: &mut ChunkFacts) -> io::Result<Chunk> {
        if let Some(shared) = shared(column) {
            return self.shared(shared, group, facts);
        }
        let store = self.rows;
        let of_rows = |value: fn(&Row) -> i64| group.rows.iter().map(|row| value(row)).collect::<Vec<i64>>();
        match column {
            Column::Time => self.out.ranged_numbers(&of_rows(|row| row.time), facts),
            Column::Number => self.out.numbers(&of_rows(|row| row.number as i64), facts),
            Column::Received => self.out.few_numbers(&of_rows(|row| row.received), facts),
            Column::Ring => self.out.few_numbers(&of_rows(|row| row.ring.into()), facts),
            Column::LevelNumber => {
                self.out.few_numbers(&of_rows(|row| Level::ALL[usize::from(row.level)].number().into()), facts)
            }
            Column::TaiOffset => {
                let values: Vec<i64> =
                    group.origin_of_row.iter().map(|&local| group.origin(store, local).tai_offset.into()).collect();
                self.out.few_numbers(&values, facts)
            }
            Column::Line => {
                let values = group.origin_of_row.iter().map(|&local| group.origin(store, local).line.map(i64::from));
                self.out.optional_numbers(values, facts)
            }
            Column::Priority => {
                self.out.optional_numbers(group.extras(store).map(|extra| extra.and_then(|e| e.priority).map(i64::from)), facts)
            }
            Column::StackLevel => self
                .out
                .optional_numbers(group.extras(store).map(|extra| extra.and_then(|e| e.stack_level).map(i64::from)), facts),
            Column::Level => {
                let codes = group.rows.iter().map(|row| u32::from(row.level)).collect();
                let names = Level::ALL.iter().map(|level| level.name().as_bytes()).collect();
                self.out.dictionary(names, codes, facts)
            }
            Column::Message => self.out.texts(group.rows.iter().map(|row| store.message(row)), facts),
            Column::Data => self.out.texts(group.rows.iter().map(|row| store.data(row)), facts),
            Column::StackId => self.extra_texts(group, |extra| &extra.stack_id, facts),
            Column::LogId => self.extra_texts(group, |extra| &extra.log_id, facts),
            Column::TraceId => self.extra_texts(group, |extra| &extra.trace_id, facts),
            Column::SpanId => self.extra_texts(group, |extra| &extra.span_id, facts),
            Column::Archive => self.extra_texts(group, |extra| &extra.archive, facts),
            Column::Attributes => self.extra_texts(group, |extra| &extra.attributes, facts),
            // The remaining texts are record members of a later release; the columns of origins are handled above.
            _ => self.extra_texts(group, |extra| &extra.unknown, facts),
        }
    }

    /// Writes texts that belong to origins. Their codes are looked up once an origin.
    fn shared(&mut self, shared: usize, group: &Gathered<'_>, facts: &mut ChunkFacts) -> io::Result<Chunk> {
        let mut strings = Vec::new();
        let mut codes_of_origins = Vec::with_capacity(group.origins.len());
        for &origin in &group.origins {
            let string = self.rows.origin(origin).texts[shared];
            let code = &mut self.codes_of_strings[string as usize];
            if *code == UNKNOWN {
                *code = strings.len() as u32;
                strings.push(string);
            }
            codes_of_origins.push(*code);
        }
        strings.iter().for_each(|&string| self.codes_of_strings[string as usize] = UNKNOWN);
        let codes = group.origin_of_row.iter().map(|&local| codes_of_origins[local as usize]).collect();
        let values: Vec<&[u8]> = strings.iter().map(|&string| self.rows.string(string)).collect();
        self.out.dictionary_or_texts(values, codes, facts)
    }

    fn extra_texts(&mut self, group: &Gathered<'_>, text: fn(&Extra) -> &Vec<u8>, facts: &mut ChunkFacts) -> io::Result<Chunk> {
        if group.rows.iter().all(|row| !row.has_extra()) {
            return self.out.dictionary(vec![b""], vec![0; group.rows.len()], facts);
        }
        let extras = group.extras(self.rows);
        self.out.any_texts(extras.map(|extra| extra.map(|extra| text(extra).as_slice()).unwrap_or_default()), facts)
    }
}

/// Rows of one row group, and the origins among them.
struct Gathered<'r> {
    rows: Vec<&'r Row>,
    origins: Vec<u32>,
    origin_of_row: Vec<u32>,
}

impl<'r> Gathered<'r> {
    fn origin<'s>(&self, store: &'s Rows, local: u32) -> &'s Origin {
        store.origin(self.origins[local as usize])
    }

    fn extras<'s>(&'s self, store: &'s Rows) -> impl Iterator<Item = Option<&'s Extra>> + use<'r, 's> {
        self.rows.iter().map(|row| store.extra(row))
    }
}

/// Position of a column's texts among those of an origin; `None` if rows have their own values.
fn shared(column: Column) -> Option<usize> {
    if let Some(FieldPart::OriginText(place)) = RecordField::from_name(column.name()).map(RecordField::part) {
        return Some(place);
    }
    let shared = match column {
        Column::Audiences => Shared::Audiences,
        Column::Incarnation => Shared::Incarnation,
        Column::Source => Shared::Source,
        Column::Clock => Shared::Clock,
        Column::UnknownOrigin => Shared::UnknownOrigin,
        _ => return None,
    };
    Some(shared as usize)
}
