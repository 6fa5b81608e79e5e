//! Check of a running archive: reads every byte that the archive relies on, and compares it with its description.
//!
//! Segments: the checksum of each frame, and its number of records. Parquet files: the checksum of the whole file. Each
//! record must be readable and in order, within the stated times and levels, and the count must match. Ids: no id
//! occurs twice anywhere, and each id in Parquet is known. Manifest: the one on disk equals the one in memory.

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use serde::{Deserialize, Serialize};
use tampu_types::{BatchHeader, LogRecord, RecordId};

use crate::query::Cursor;
use crate::{
    Doing, Fault, Stop,
    ids::{
        known::Known,
        seen::{Run, Seen},
    },
    local::{
        dirs::ids_dir,
        state::{ArchiveState, Contents},
    },
    manifest,
    parquet::{BadTable, Corrupt, Dictionaries, Scratch, Table, records, stored::Stored},
    tables::{Schema, each_row},
    wal::{
        content::Content,
        digest::Digest,
        frame::{self, Kind},
        segment::Segment,
    },
};

/// Summary of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Checked {
    /// Number of segments read.
    pub segments: u64,
    /// Number of Parquet files read.
    pub files: u64,
    /// Number of records read.
    pub records: u64,
    /// Number of different ids among them.
    pub ids: u64,
    /// Number of bytes read.
    pub bytes: u64,
    /// Damage that the check found; damage that was known before is in the archive's health.
    pub faults: Vec<Fault>,
    /// False if the check was stopped before it had read everything.
    pub complete: bool,
}

struct Check<'a> {
    content: Content,
    stop: &'a Stop,
    doing: &'a mut dyn FnMut(Doing),
    checked: Checked,
    total: u64,
    seen: Seen,
    known: Seen,
}

/// Most faults in one report. The first ones are enough to act on.
const MOST_FAULTS: usize = 1000;
/// Bytes per read.
const STEP: usize = 1 << 20;

pub(crate) fn check(shared: &ArchiveState, stop: &Stop, doing: &mut dyn FnMut(Doing)) -> Checked {
    let (contents, state, on_disk, ids) = {
        // The manifest stays locked, so that the check sees one state.
        let manifest = shared.manifest();
        let on_disk = fs::read(shared.dir.join(manifest::NAME));
        let ids: Vec<_> =
            manifest.state.ids.iter().map(|name| ids_dir(&shared.dir).join(name)).map(|path| (fs::read(&path), path)).collect();
        (shared.contents(), manifest.state.clone(), on_disk, ids)
    };
    let Contents { segments, files } = contents;
    let lengths = segments.iter().map(|segment| segment.committed.load(Ordering::Acquire));
    let total = lengths.sum::<u64>() + files.iter().map(|file| file.entry.bytes).sum::<u64>();
    let checked = Checked { complete: true, ..Checked::default() };
    let mut check = Check { content: shared.content, stop, doing, checked, total, seen: Seen::default(), known: Seen::default() };
    let path = shared.dir.join(manifest::NAME);
    let read = on_disk.map_err(|error| error.to_string());
    match read.and_then(|bytes| {
        manifest::read(&bytes, &shared.options.domain, shared.content.layout().name).map_err(|error| error.to_string())
    }) {
        Ok(read) if read.state == state && read.damage.is_none() => {}
        Ok(_) => check.fault(&path, 0, "its content on disk differs from the written content".to_owned()),
        Err(why) => check.fault(&path, 0, why),
    }
    for (bytes, path) in ids {
        let known =
            bytes.map_err(|error| error.to_string()).and_then(|bytes| Known::decode(&bytes).map_err(|why| why.to_string()));
        match known {
            Ok(known) => drop(check.known.insert(&known.runs)),
            Err(why) => check.fault(&path, 0, why),
        }
    }
    for segment in &segments {
        check.segment(segment);
    }
    for file in files.iter() {
        if let Err(error) = check.file(file) {
            file.note(&error);
            check.fault(&file.path, file.entry.bytes, error.to_string());
        }
    }
    check.checked
}

impl Check<'_> {
    fn fault(&mut self, path: &Path, to: u64, what: String) {
        if self.checked.faults.len() < MOST_FAULTS {
            self.checked.faults.push(Fault { file: path.to_owned(), from: 0, to, what });
        }
    }

    fn ids(&mut self, path: &Path, runs: &[(tampu_types::Incarnation, Run)], of_file: bool) {
        let count: u64 = runs.iter().map(|(_, run)| run.count).sum();
        let new = self.seen.insert(runs);
        self.checked.ids += new;
        if new < count {
            self.fault(path, 0, format!("{} ids are in the archive twice", count - new));
        }
        let unknown = if of_file { self.known.missing(runs) } else { 0 };
        if unknown > 0 {
            self.fault(
                path,
                0,
                format!("{unknown} ids are missing in the list of known ids: their records would be stored again"),
            );
        }
    }

    /// Reports progress; returns `false` if the check should end.
    fn step(&mut self, bytes: u64) -> bool {
        self.checked.bytes += bytes;
        (self.doing)(Doing { done: self.checked.bytes, total: self.total });
        let goes_on = !self.stop.is_stopped();
        self.checked.complete &= goes_on;
        goes_on
    }

    fn segment(&mut self, segment: &Arc<Segment>) {
        self.checked.segments += 1;
        let mut buffer = Vec::new();
        for entry in segment.select(|_| true) {
            if !self.step(u64::from(entry.length)) {
                return;
            }
            let Some((_, body)) = segment.load(&entry, &mut buffer) else {
                self.fault(&segment.path, entry.at, format!("the frame at {} is damaged", entry.at));
                continue;
            };
            if entry.kind != Kind::Batch {
                continue;
            }
            let mut digest = Digest::default();
            if let Ok((header, samples)) = BatchHeader::decode(body) {
                for sample in frame::samples(samples).flatten() {
                    self.add(&header, sample, &mut digest);
                }
            }
            if digest.records != entry.records {
                let what = format!("the frame at {} holds {} records instead of {}", entry.at, digest.records, entry.records);
                self.fault(&segment.path, entry.at, what);
            }
            self.checked.records += u64::from(digest.records);
            self.ids(&segment.path, &digest.runs, false);
        }
    }

    /// Adds the readable part of a sample to `digest`.
    fn add(&self, header: &BatchHeader, sample: &[u8], digest: &mut Digest) {
        match self.content {
            Content::Log => {
                if let Ok(view) = tampu_types::log_batch::LogBatchView::parse(sample) {
                    view.records().flatten().for_each(|record| digest.add(&record));
                }
            }
            Content::Plain(schema) => drop(schema.digest(header, sample).map(|row| digest.join(row))),
        }
    }

    fn file(&mut self, file: &Stored) -> Result<(), BadTable> {
        self.checked.files += 1;
        let Some(sum) = self.sum(&file.path)? else { return Ok(()) };
        if format!("{sum:08x}") != file.entry.crc32c {
            self.fault(&file.path, file.entry.bytes, format!("its checksum is {sum:08x} instead of {}", file.entry.crc32c));
        }
        let table = Arc::new(Table::open(&file.path, self.content.layout())?);
        let count = match self.content {
            Content::Log => self.records(file, &table)?,
            Content::Plain(schema) => self.rows(schema, file, &table)?,
        };
        let Some(count) = count else { return Ok(()) };
        self.checked.records += count;
        if count != file.entry.records {
            let what = format!("it holds {count} records instead of {}", file.entry.records);
            self.fault(&file.path, file.entry.bytes, what);
        }
        Ok(())
    }

    /// Reads every record of a file; returns their number, or `None` if the check should end.
    fn records(&mut self, file: &Stored, table: &Arc<Table>) -> Result<Option<u64>, BadTable> {
        let (mut scratch, dictionaries) = (Scratch::new()?, Dictionaries::default());
        let (mut count, mut last) = (0, None);
        for (number, group) in table.index.groups.iter().enumerate() {
            for (unit, &(earliest, latest)) in group.units.iter().enumerate() {
                if self.stop.is_stopped() {
                    self.checked.complete = false;
                    return Ok(None);
                }
                let rows: Vec<u32> = (0..Table::unit_rows(group, unit) as u32).collect();
                let mut runs: Vec<(tampu_types::Incarnation, Run)> = Vec::new();
                let mut wrong = None;
                records(table, number, unit, &rows, &dictionaries, &mut scratch, |_, record, _| {
                    count += 1;
                    let place = Cursor::of(&record);
                    let told =
                        record.time >= earliest && record.time <= latest && group.levels.0 & 1 << record.level.ordinal() != 0;
                    if !told || last.is_some_and(|last| place < last) {
                        wrong.get_or_insert_with(|| format!("record {count} is not at the place of its time and level"));
                    }
                    last = Some(place);
                    add_run(&mut runs, &record);
                })?;
                if let Some(what) = wrong {
                    self.fault(&file.path, file.entry.bytes, what);
                }
                self.ids(&file.path, &runs, true);
            }
        }
        Ok(Some(count))
    }

    /// Reads every row of a table's file; returns their number, or `None` if the check should end.
    fn rows(&mut self, schema: &Schema, file: &Stored, table: &Arc<Table>) -> Result<Option<u64>, BadTable> {
        let (mut count, mut last) = (0, None);
        let (mut runs, mut wrong) = (Vec::new(), None);
        each_row(schema, table, |number, unit, rows| {
            let group = &table.index.groups[number];
            let (earliest, latest) = group.units[unit];
            for row in rows {
                count += 1;
                let told = row.time >= earliest && row.time <= latest && group.levels.0 & row.marks == row.marks;
                if !told || last.is_some_and(|last| row.place() < last) {
                    wrong.get_or_insert_with(|| format!("row {count} is not at the place of its time and marks"));
                }
                last = Some(row.place());
                runs.extend(row.run());
            }
            self.checked.complete &= !self.stop.is_stopped();
            if self.checked.complete { Ok(()) } else { Err(Corrupt("the check was ended").into()) }
        })
        .or_else(|error| if self.checked.complete { Err(error) } else { Ok(()) })?;
        if !self.checked.complete {
            return Ok(None);
        }
        if let Some(what) = wrong {
            self.fault(&file.path, file.entry.bytes, what);
        }
        self.ids(&file.path, &runs, true);
        Ok(Some(count))
    }

    fn sum(&mut self, path: &Path) -> Result<Option<u32>, BadTable> {
        let mut file = File::open(path)?;
        let (mut sum, mut buffer) = (0, vec![0; STEP]);
        loop {
            let length = file.read(&mut buffer)?;
            if length == 0 {
                return Ok(Some(sum));
            }
            sum = crc32c::crc32c_append(sum, &buffer[..length]);
            if !self.step(length as u64) {
                return Ok(None);
            }
        }
    }
}

fn add_run(runs: &mut Vec<(tampu_types::Incarnation, Run)>, record: &LogRecord) {
    let Some(RecordId { incarnation, ring, number }) = record.id else { return };
    let continued = runs.last_mut().is_some_and(|(life, run)| *life == incarnation && run.extend(ring, number));
    if !continued {
        runs.push((incarnation, Run { ring, first: number, count: 1 }));
    }
}
