//! Readers of files of records: ACS XML and JSON lines, plain and compressed, recognised by their first bytes.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, IsTerminal, Read},
    path::{Path, PathBuf},
};

use flate2::bufread::MultiGzDecoder;
use indicatif::ProgressBar;
use tampu_archive::query::{Matcher, Query};
use tampu_types::{
    BadRecord, LogRecord,
    json_lines::JsonLinesReader,
    log_batch::{LogBatchBuilder, LogBatchView},
    xml::AcsXmlReader,
};

use crate::failure::Failure;

/// Returns the sum of the sizes of these files, in bytes.
pub fn total_size(files: &[PathBuf]) -> u64 {
    files.iter().map(|path| std::fs::metadata(path).map_or(0, |data| data.len())).sum()
}

/// A file as its text, decompressed where it is compressed; the bar follows the bytes of the file itself.
pub fn open(path: &Path, bar: &ProgressBar) -> io::Result<Box<dyn BufRead>> {
    let raw: Box<dyn Read> = if path == Path::new("-") {
        if io::stdin().is_terminal() {
            eprintln!("reading records from the terminal; end with Ctrl-D");
        }
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path)?)
    };
    let mut raw = BufReader::with_capacity(256 * 1024, bar.wrap_read(raw));
    let compressed = raw.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    Ok(if compressed { Box::new(BufReader::new(MultiGzDecoder::new(raw))) } else { Box::new(raw) })
}

/// The records of a file, and its errors.
pub type Records = Box<dyn Iterator<Item = Result<LogRecord, BadRecord>>>;

/// The records of a file: JSON lines where its first character is a brace, else ACS XML.
pub fn records(mut input: Box<dyn BufRead>, name: &str) -> io::Result<Records> {
    let first = input.fill_buf()?.iter().copied().find(|byte| !byte.is_ascii_whitespace());
    Ok(if first == Some(b'{') { Box::new(JsonLinesReader::new(input, name)) } else { Box::new(AcsXmlReader::new(input, name)) })
}

/// Chooses records like a query. Queries examine records in a batch, so the records are put into one here.
pub struct Chooser {
    /// `None` if all records match, so that none is examined.
    matcher: Option<Matcher>,
    batch: LogBatchBuilder,
}

impl Chooser {
    /// Makes a chooser of the records that this query finds.
    pub fn new(query: &Query) -> Result<Chooser, Failure> {
        let matcher = query.compile().map_err(|error| Failure::Usage(error.to_string()))?;
        let matcher = (*query != Query::default()).then_some(matcher);
        Ok(Chooser { matcher, batch: LogBatchBuilder::new() })
    }

    /// Returns the matching records, in their order.
    pub fn choose(&mut self, records: Vec<LogRecord>) -> Result<Vec<LogRecord>, Failure> {
        let Some(matcher) = &self.matcher else { return Ok(records) };
        self.batch.reset();
        for record in &records {
            self.batch.push_record(record).map_err(|error| Failure::failed("a record", error))?;
        }
        let view = LogBatchView::parse(self.batch.seal()).map_err(|error| Failure::failed("a record", error))?;
        let wanted: Vec<bool> = view.records().map(|record| record.is_ok_and(|record| matcher.wants(&record))).collect();
        Ok(records.into_iter().zip(wanted).filter_map(|(record, wanted)| wanted.then_some(record)).collect())
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::Level;

    use super::*;

    #[test]
    fn records_of_a_file_are_chosen_as_a_collector_chooses() {
        let query = Query { min_level: Some(Level::Warning), text: Some("LOCK".into()), ..Query::default() };
        let mut chooser = Chooser::new(&query).unwrap();
        let records = vec![
            LogRecord::new(Level::Info, "no lock"),
            LogRecord::new(Level::Error, "no lock"),
            LogRecord::new(Level::Error, "other"),
        ];
        for _ in 0..2 {
            let chosen = chooser.choose(records.clone()).unwrap();
            assert_eq!(chosen, records[1..2]);
        }
        assert!(chooser.choose(Vec::new()).unwrap().is_empty());
        assert_eq!(Chooser::new(&Query::default()).unwrap().choose(records.clone()).unwrap(), records);
    }
}
