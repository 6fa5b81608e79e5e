//! Many files instead of one: records go into a directory, and a new file begins when one is full or its time is over.
//!
//! Names are ACS's: `log<start>_<close>.xml`. Where files are cut by time, start and close are the ends of the span;
//! else they are the times of the first and last record. A complete file gets its name. Until then it is a hidden file
//! that ends with `.part`. An existing file stays: the new one gets a number behind its name.
//!
//! Real files hold records out of order. Where files are cut by time each record goes into the file of its time, and so
//! [`OPEN`] files are open at once. A record older than all of them gets a further file of its span. No record is
//! omitted.

use std::{
    collections::BTreeMap,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use tampu_types::{LogRecord, Time};

use crate::{
    failure::{Failure, Outcome},
    output::file::{FileFormat, FileOptions, RecordFile, unfinished},
};

/// Condition for the end of a file. Records of one millisecond stay together. Equal records are distinguished by the
/// number before them in their file; two of them in two files would become one on import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// After this many records, or this many bytes before compression, whichever is first.
    Full { records: u64, bytes: u64 },
    /// After each span of so many ns, counted from 1970.
    Span(i64),
}

/// Files of different spans that are open at once.
const OPEN: usize = 16;

/// A file on its way.
struct Part {
    file: RecordFile,
    hidden: PathBuf,
    first: Time,
    last: Time,
    /// The time of the record written last.
    latest: Time,
}

/// A directory that files go to.
pub struct Rotation {
    directory: PathBuf,
    cut: Cut,
    format: FileFormat,
    gz: bool,
    options: FileOptions,
    /// Files by the number of their span; a single one if files are cut when they are full.
    open: BTreeMap<i64, Part>,
    begun: u64,
    done: Vec<Written>,
}

/// A complete file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Written {
    pub file: PathBuf,
    pub records: u64,
    pub first: String,
    pub last: String,
}

impl Rotation {
    /// Writes into this directory, which is made if it is not there.
    pub fn new(directory: &Path, cut: Cut, format: FileFormat, gz: bool, options: FileOptions) -> Result<Rotation, Failure> {
        std::fs::create_dir_all(directory).map_err(|error| Failure::failed(directory.display(), error))?;
        let directory = directory.to_owned();
        Ok(Rotation { directory, cut, format, gz, options, open: BTreeMap::new(), begun: 0, done: Vec::new() })
    }

    /// Writes one record into the file it belongs to.
    pub fn record(&mut self, record: &LogRecord) -> Outcome {
        let span = match self.cut {
            Cut::Full { .. } => 0,
            Cut::Span(length) => record.time.0.div_euclid(length.max(1)),
        };
        let is_full = |part: &Part| match self.cut {
            Cut::Full { records, bytes } => part.file.records() >= records || part.file.bytes() >= bytes,
            Cut::Span(_) => false,
        };
        let goes_on = |part: &Part| !is_full(part) || part.latest.rounded_to_ms() == record.time.rounded_to_ms();
        if self.open.get(&span).is_some_and(|part| !goes_on(part))
            && let Some(part) = self.open.remove(&span)
        {
            self.finish(span, part)?;
        }
        if !self.open.contains_key(&span) {
            if self.open.len() >= OPEN
                && let Some((oldest, part)) = self.open.pop_first()
            {
                self.finish(oldest, part)?;
            }
            let part = self.begin(record.time)?;
            self.open.insert(span, part);
        }
        let Some(part) = self.open.get_mut(&span) else { return Ok(()) };
        part.file.record(record)?;
        part.first = part.first.min(record.time);
        part.last = part.last.max(record.time);
        part.latest = record.time;
        Ok(())
    }

    fn begin(&mut self, time: Time) -> Result<Part, Failure> {
        self.begun += 1;
        let name = format!("tampu-{}-{}.{}", std::process::id(), self.begun, self.ending());
        let hidden = unfinished(&self.directory.join(name));
        let file = RecordFile::create(&hidden, self.format, self.gz, &self.options)?;
        Ok(Part { file, hidden, first: time, last: time, latest: time })
    }

    fn ending(&self) -> String {
        format!("{}{}", self.format.extension(), if self.gz { ".gz" } else { "" })
    }

    fn finish(&mut self, span: i64, part: Part) -> Outcome {
        let Part { file, hidden, first, last, .. } = part;
        let records = file.records();
        file.close()?;
        let (start, close) = match self.cut {
            Cut::Full { .. } => (first, last),
            Cut::Span(length) => (Time(span.saturating_mul(length)), Time(span.saturating_add(1).saturating_mul(length))),
        };
        let place = self.settle(&hidden, &format!("log{}_{}", start.to_acs(), close.to_acs()))?;
        self.done.push(Written { file: place, records, first: first.to_rfc3339(), last: last.to_rfc3339() });
        Ok(())
    }

    /// Gives a file its name, or the first unused one with a number behind it.
    fn settle(&self, hidden: &Path, stem: &str) -> Result<PathBuf, Failure> {
        for number in 1u64.. {
            let further = if number > 1 { format!("-{number}") } else { String::new() };
            let place = self.directory.join(format!("{stem}{further}.{}", self.ending()));
            // A link fails if the name exists, so no file is overwritten, even with another writer in the directory.
            match std::fs::hard_link(hidden, &place) {
                Ok(()) => {
                    std::fs::remove_file(hidden).map_err(|error| Failure::failed(hidden.display(), error))?;
                    return Ok(place);
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                // Without links in the file system, an empty file reserves the name first.
                Err(_) => match std::fs::File::create_new(&place).and_then(|_| std::fs::rename(hidden, &place)) {
                    Ok(()) => return Ok(place),
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(Failure::failed(place.display(), error)),
                },
            }
        }
        Err(Failure::Failed(format!("{}: every name is taken", self.directory.display())))
    }

    /// Ends the open files; returns all written files, in the order of their names.
    pub fn close(mut self) -> Result<Vec<Written>, Failure> {
        while let Some((span, part)) = self.open.pop_first() {
            self.finish(span, part)?;
        }
        let mut done = std::mem::take(&mut self.done);
        done.sort_by(|one, other| one.file.cmp(&other.file));
        Ok(done)
    }
}

impl Drop for Rotation {
    /// Removes unfinished files, which have no end.
    fn drop(&mut self) {
        for part in self.open.values() {
            let _ = std::fs::remove_file(&part.hidden);
        }
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::{Level, xml::AcsXmlReader};

    use super::*;

    fn record(second: i64) -> LogRecord {
        LogRecord { time: Time(second * 1_000_000_000), ..LogRecord::new(Level::Info, second.to_string()) }
    }

    fn names(written: &[Written]) -> Vec<(String, u64)> {
        written.iter().map(|file| (file.file.file_name().unwrap().to_string_lossy().into_owned(), file.records)).collect()
    }

    #[test]
    fn each_record_is_in_the_file_of_its_time_however_late_it_comes() {
        let dir = tempfile::tempdir().unwrap();
        let cut = Cut::Span(60_000_000_000);
        let mut rotation = Rotation::new(dir.path(), cut, FileFormat::Xml, false, FileOptions::default()).unwrap();
        // 40 minutes, then a record of the first minute, whose file is closed by then.
        let mut seconds: Vec<i64> = (0..40).flat_map(|minute| [minute * 60 + 59, minute * 60]).collect();
        seconds.push(5);
        seconds.iter().for_each(|second| rotation.record(&record(*second)).unwrap());
        let written = rotation.close().unwrap();
        assert_eq!(written.len(), 41);
        assert_eq!(names(&written)[0], ("log1970-01-01T00:00:00.000_1970-01-01T00:01:00.000-2.xml".into(), 1));
        assert_eq!(names(&written)[1], ("log1970-01-01T00:00:00.000_1970-01-01T00:01:00.000.xml".into(), 2));
        let mut found = Vec::new();
        for file in &written {
            let text = std::io::BufReader::new(std::fs::File::open(&file.file).unwrap());
            let records: Vec<LogRecord> = AcsXmlReader::new(text, "x").map(Result::unwrap).collect();
            let minutes: std::collections::BTreeSet<i64> = records.iter().map(|record| record.time.0 / 60_000_000_000).collect();
            assert_eq!(minutes.len(), 1, "{file:?}");
            found.extend(records.iter().map(|record| record.time.0 / 1_000_000_000));
        }
        found.sort_unstable();
        seconds.sort_unstable();
        assert_eq!(found, seconds);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 41, "nothing unfinished is left");
    }

    #[test]
    fn a_full_file_is_followed_by_another_and_none_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let mut all = Vec::new();
        for (records, bytes) in [(3, u64::MAX), (u64::MAX, 300)] {
            let cut = Cut::Full { records, bytes };
            let mut rotation = Rotation::new(dir.path(), cut, FileFormat::Json, true, FileOptions::default()).unwrap();
            (0..7).for_each(|second| rotation.record(&record(second)).unwrap());
            all.push(rotation.close().unwrap());
        }
        assert_eq!(names(&all[0])[0], ("log1970-01-01T00:00:00.000_1970-01-01T00:00:02.000.json.gz".into(), 3));
        assert_eq!(all[0].iter().map(|file| file.records).collect::<Vec<_>>(), [3, 3, 1]);
        assert!(all[1].len() > 1 && all[1].iter().map(|file| file.records).sum::<u64>() == 7, "{:?}", all[1]);
        // Records of one millisecond stay together.
        let elsewhere = tempfile::tempdir().unwrap();
        let cut = Cut::Full { records: 2, bytes: u64::MAX };
        let mut rotation = Rotation::new(elsewhere.path(), cut, FileFormat::Xml, false, FileOptions::default()).unwrap();
        [1, 1, 1, 1, 2].into_iter().for_each(|second| rotation.record(&record(second)).unwrap());
        assert_eq!(rotation.close().unwrap().iter().map(|file| file.records).collect::<Vec<_>>(), [4, 1]);
        // An abandoned rotation leaves no file.
        let cut = Cut::Full { records: 100, bytes: u64::MAX };
        let mut rotation = Rotation::new(dir.path(), cut, FileFormat::Json, true, FileOptions::default()).unwrap();
        rotation.record(&record(1)).unwrap();
        let before = all[0].len() + all[1].len();
        drop(rotation);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), before);
    }
}
