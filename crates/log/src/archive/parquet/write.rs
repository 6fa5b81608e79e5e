//! Writing a file: row groups, then the index, then the footer.
//!
//! A file is written under another name, synced, and only then given its own; that it belongs to the archive is for the manifest
//! to say.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use tampu_types::{Level, Time};

use super::{
    UNIT,
    column::Column,
    footer::{self, ChunkFacts},
    index::{Chunk, Group, Index},
    pages::Output,
    rows::{Extra, Origin, Row, Rows, Shared},
    words::WordsBuilder,
};
use crate::archive::{frame::Levels, hash::Mixed};

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) bytes: u64,
    /// CRC-32C of the whole file.
    pub(crate) sum: u32,
    pub(crate) records: u64,
    pub(crate) earliest: Time,
    pub(crate) latest: Time,
    /// When the last of its records was received.
    pub(crate) received: Time,
    pub(crate) levels: Levels,
}

/// Writes these rows, which are in order, as a file of this name. `pace` is called between pieces of work; an error of it ends
/// the writing, and the file is not there.
pub(crate) fn write_file(
    path: &Path,
    rows: &Rows,
    places: &[u32],
    domain: &str,
    pace: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<Written> {
    let unfinished = path.with_extension("parquet.new");
    let written = write_unfinished(&unfinished, rows, places, domain, pace).and_then(|written| {
        fs::rename(&unfinished, path)?;
        Ok(written)
    });
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}

fn write_unfinished(
    path: &Path,
    rows: &Rows,
    places: &[u32],
    domain: &str,
    pace: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<Written> {
    let mut table = TableWriter::new(File::create(path)?)?;
    table.add(rows, places, pace)?;
    let (written, file) = table.finish(domain)?;
    file.sync_all()?;
    Ok(written)
}

/// A file in the making.
pub(crate) struct TableWriter<W: Write> {
    out: Output<W>,
    words: WordsBuilder,
    data_words: WordsBuilder,
    groups: Vec<(Group, Vec<ChunkFacts>)>,
    records: u64,
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
            records: 0,
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
        self.records += places.len() as u64;
        Ok(())
    }

    /// Writes what stands behind the rows. Nothing is synced.
    pub(crate) fn finish(self, domain: &str) -> io::Result<(Written, W)> {
        let TableWriter { mut out, groups, records, received, .. } = self;
        let mut tail = Vec::new();
        let index = Index { groups: groups.iter().map(|(group, _)| group.clone()).collect() };
        index.encode(&mut tail)?;
        tail.extend(footer::footer(&groups, domain));
        out.put(&tail)?;
        let levels = index.groups.iter().fold(0, |levels, group| levels | group.levels.0);
        let written = Written {
            bytes: out.at,
            sum: out.sum,
            records,
            earliest: index.groups.iter().map(Group::earliest).min().unwrap_or(Time(0)),
            latest: index.groups.iter().map(Group::latest).max().unwrap_or(Time(0)),
            received,
            levels: Levels(levels),
        };
        Ok((written, out.finish()?))
    }
}

const UNKNOWN: u32 = u32::MAX;

struct Writer<'r, W: Write> {
    rows: &'r Rows,
    out: &'r mut Output<W>,
    words: &'r mut WordsBuilder,
    data_words: &'r mut WordsBuilder,
    /// Of each origin, its number in this row group; unknown between row groups.
    local: Vec<u32>,
    /// Of each string, its code in this column; unknown between columns.
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
        let mut levels = Levels::default();
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
            Column::Time => self.numbers(&of_rows(|row| row.time), facts),
            Column::Number => self.out.numbers(&of_rows(|row| row.number as i64), facts),
            Column::Received => self.few_numbers(&of_rows(|row| row.received), facts),
            Column::Ring => self.few_numbers(&of_rows(|row| row.ring.into()), facts),
            Column::LevelNumber => self.few_numbers(&of_rows(|row| Level::ALL[usize::from(row.level)].number().into()), facts),
            Column::TaiOffset => {
                let values: Vec<i64> =
                    group.origin_of_row.iter().map(|&local| group.origin(store, local).tai_offset.into()).collect();
                self.few_numbers(&values, facts)
            }
            Column::Line => {
                let values = group.origin_of_row.iter().map(|&local| group.origin(store, local).line.map(i64::from));
                self.optional_numbers(values, facts)
            }
            Column::Priority => {
                self.optional_numbers(group.extras(store).map(|extra| extra.and_then(|e| e.priority).map(i64::from)), facts)
            }
            Column::StackLevel => {
                self.optional_numbers(group.extras(store).map(|extra| extra.and_then(|e| e.stack_level).map(i64::from)), facts)
            }
            Column::Level => {
                let codes = group.rows.iter().map(|row| u32::from(row.level)).collect();
                let names = Level::ALL.iter().map(|level| level.name().as_bytes()).collect();
                self.dictionary(names, codes, facts)
            }
            Column::Message => self.out.texts(group.rows.iter().map(|row| store.message(row)), facts),
            Column::Data => self.out.texts(group.rows.iter().map(|row| store.data(row)), facts),
            Column::StackId => self.extra_texts(group, |extra| &extra.stack_id, facts),
            Column::LogId => self.extra_texts(group, |extra| &extra.log_id, facts),
            Column::TraceId => self.extra_texts(group, |extra| &extra.trace_id, facts),
            Column::SpanId => self.extra_texts(group, |extra| &extra.span_id, facts),
            Column::Archive => self.extra_texts(group, |extra| &extra.archive, facts),
            Column::Attributes => self.extra_texts(group, |extra| &extra.attributes, facts),
            // What is left are the record's members of a later release; the columns of origins were dealt with above.
            _ => self.extra_texts(group, |extra| &extra.unknown, facts),
        }
    }

    /// Texts that belong to origins: their codes are found once an origin.
    fn shared(&mut self, shared: Shared, group: &Gathered<'_>, facts: &mut ChunkFacts) -> io::Result<Chunk> {
        let mut strings = Vec::new();
        let mut codes_of_origins = Vec::with_capacity(group.origins.len());
        for &origin in &group.origins {
            let string = self.rows.origin(origin).texts[shared as usize];
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
        self.dictionary_or_texts(values, codes, facts)
    }

    fn extra_texts(&mut self, group: &Gathered<'_>, text: fn(&Extra) -> &Vec<u8>, facts: &mut ChunkFacts) -> io::Result<Chunk> {
        if group.rows.iter().all(|row| !row.has_extra()) {
            return self.dictionary(vec![b""], vec![0; group.rows.len()], facts);
        }
        let (mut values, mut known) = (Vec::<&[u8]>::new(), HashMap::<&[u8], u32, Mixed>::default());
        let mut codes = Vec::with_capacity(group.rows.len());
        for extra in group.extras(self.rows) {
            let value = extra.map(|extra| text(extra).as_slice()).unwrap_or_default();
            let code = *known.entry(value).or_insert_with(|| {
                values.push(value);
                values.len() as u32 - 1
            });
            codes.push(code);
        }
        self.dictionary_or_texts(values, codes, facts)
    }

    /// Distinct texts with the rows' codes: a dictionary, unless nearly every row has its own text.
    fn dictionary_or_texts(&mut self, values: Vec<&[u8]>, codes: Vec<u32>, facts: &mut ChunkFacts) -> io::Result<Chunk> {
        let bytes: usize = values.iter().map(|value| value.len()).sum();
        if values.len() > 1000 && values.len() * 2 > codes.len() || bytes > MOST_DICTIONARY {
            return self.out.texts(codes.iter().map(|&code| values[code as usize]), facts);
        }
        self.dictionary(values, codes, facts)
    }

    /// Puts the values that occur in order, with the rows' codes accordingly.
    fn dictionary(&mut self, values: Vec<&[u8]>, mut codes: Vec<u32>, facts: &mut ChunkFacts) -> io::Result<Chunk> {
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
        self.out.codes(&codes, &sorted, true, false, facts)
    }

    fn numbers(&mut self, values: &[i64], facts: &mut ChunkFacts) -> io::Result<Chunk> {
        facts.range = number_range(values.iter());
        self.out.numbers(values, facts)
    }

    /// Numbers of which many are equal, as it seems.
    fn few_numbers(&mut self, values: &[i64], facts: &mut ChunkFacts) -> io::Result<Chunk> {
        let mut distinct: HashMap<i64, u32, Mixed> = HashMap::default();
        for &value in values {
            distinct.entry(value).or_insert(0);
            if distinct.len() > 1000 && distinct.len() * 4 > values.len() {
                return self.numbers(values, facts);
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
        self.out.codes(&codes, &dictionary, false, false, facts)
    }

    fn optional_numbers(&mut self, values: impl Iterator<Item = Option<i64>>, facts: &mut ChunkFacts) -> io::Result<Chunk> {
        let values: Vec<Option<i64>> = values.collect();
        let mut sorted: Vec<i64> = values.iter().flatten().copied().collect();
        sorted.sort_unstable();
        sorted.dedup();
        let code = |value: &i64| sorted.binary_search(value).map_or(0, |place| place as u32 + 1);
        let codes: Vec<u32> = values.iter().map(|value| value.as_ref().map_or(0, code)).collect();
        facts.range = number_range(sorted.iter());
        let dictionary: Vec<[u8; 8]> = sorted.iter().map(|value| value.to_le_bytes()).collect();
        self.out.codes(&codes, &dictionary, false, true, facts)
    }
}

/// The most bytes of texts a dictionary holds; more are written as they are, in pages of their own.
const MOST_DICTIONARY: usize = 16 << 20;
/// The longest text that stands in a column's statistics: a cut one would have to be marked, which few readers know.
const MOST_STATISTICS: usize = 256;

fn number_range<'v>(values: impl Iterator<Item = &'v i64> + Clone) -> Option<(Vec<u8>, Vec<u8>)> {
    let bytes = |value: &i64| value.to_le_bytes().to_vec();
    Some((bytes(values.clone().min()?), bytes(values.max()?)))
}

/// The rows of one row group, and which origins they have among them.
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

fn shared(column: Column) -> Option<Shared> {
    Some(match column {
        Column::Logger => Shared::Logger,
        Column::File => Shared::File,
        Column::Routine => Shared::Routine,
        Column::Host => Shared::Host,
        Column::Process => Shared::Process,
        Column::Thread => Shared::Thread,
        Column::Context => Shared::Context,
        Column::SourceObject => Shared::SourceObject,
        Column::Audiences => Shared::Audiences,
        Column::Array => Shared::Array,
        Column::Antenna => Shared::Antenna,
        Column::RunId => Shared::RunId,
        Column::Uri => Shared::Uri,
        Column::Incarnation => Shared::Incarnation,
        Column::Source => Shared::Source,
        Column::Clock => Shared::Clock,
        Column::UnknownOrigin => Shared::UnknownOrigin,
        _ => return None,
    })
}
