//! Records as JSON, one object a line, with the names of [`LogRecord`]'s fields.
//!
//! This is the simplest form to make and to read with other tools. A line that is not a record is reported and skipped.
//! Unknown keys become the record's unknown attributes: a text unchanged, anything else as its JSON. So nothing of a
//! line is lost, though they are written back as attributes. Contract: `spec/wire/json-lines.md`.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, Read, Write},
};

use serde::Deserialize;
use serde_json::Value;

use crate::{
    bad_record::BadRecord,
    record::{Datum, LogRecord},
};

/// The longest line, in bytes.
const LONGEST: u64 = 64 << 20;

/// Reads the records of a file in order: an iterator of records and of bad lines.
///
/// A read error ends the file, and is returned as its last item.
#[derive(Debug)]
pub struct JsonLinesReader<R> {
    input: R,
    file: String,
    line: u64,
    text: Vec<u8>,
    failed: bool,
}

#[derive(Deserialize)]
struct Line {
    #[serde(flatten)]
    record: LogRecord,
    #[serde(flatten)]
    unknown: BTreeMap<String, Value>,
}

impl<R: BufRead> JsonLinesReader<R> {
    /// Reads from `input`; `file` is how bad records call it.
    pub fn new(input: R, file: impl Into<String>) -> JsonLinesReader<R> {
        JsonLinesReader { input, file: file.into(), line: 0, text: Vec::new(), failed: false }
    }

    /// The line of the last item, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Reads a line into `text`; `false` at the end.
    fn read_line(&mut self) -> io::Result<bool> {
        self.text.clear();
        self.line += 1;
        let read = self.input.by_ref().take(LONGEST).read_until(b'\n', &mut self.text)?;
        Ok(read > 0)
    }

    /// Skips the rest of a line that is too long.
    fn skip_line(&mut self) -> io::Result<()> {
        while !self.text.ends_with(b"\n") {
            self.text.clear();
            if self.input.by_ref().take(LONGEST).read_until(b'\n', &mut self.text)? == 0 {
                break;
            }
        }
        Ok(())
    }

    fn bad(&self, reason: impl ToString) -> BadRecord {
        BadRecord { file: self.file.clone(), line: self.line, reason: reason.to_string() }
    }

    fn record(&self) -> Result<LogRecord, BadRecord> {
        let text = std::str::from_utf8(&self.text)
            .map_err(|error| self.bad(format!("invalid UTF-8 {} bytes behind its start", error.valid_up_to())))?;
        let Line { mut record, unknown } = serde_json::from_str(text.trim_start_matches('\u{feff}').trim_ascii_end())
            .map_err(|error| self.bad(reason(&error)))?;
        record.attributes.extend(unknown.into_iter().map(|(name, value)| match value {
            Value::String(text) => Datum::new(name, text),
            other => Datum::new(name, other.to_string()),
        }));
        Ok(record)
    }
}

/// serde_json counts lines from 1 in each text it is given; here that line is always the first.
fn reason(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", " at column ")
}

impl<R: BufRead> Iterator for JsonLinesReader<R> {
    type Item = Result<LogRecord, BadRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed {
            match self.read_line() {
                Ok(false) => return None,
                Ok(true) if self.text.len() as u64 == LONGEST && !self.text.ends_with(b"\n") => {
                    let bad = self.bad(format!("the line is longer than {} MiB", LONGEST >> 20));
                    // An error here appears again at the next line.
                    let _ = self.skip_line();
                    return Some(Err(bad));
                }
                Ok(true) if self.text.trim_ascii().is_empty() => {}
                Ok(true) => return Some(self.record()),
                Err(error) => {
                    self.failed = true;
                    return Some(Err(self.bad(format!("reading stopped here: {error}"))));
                }
            }
        }
        None
    }
}

/// Writes records, one a line.
#[derive(Debug)]
pub struct JsonLinesWriter<W> {
    out: W,
}

impl<W: Write> JsonLinesWriter<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> JsonLinesWriter<W> {
        JsonLinesWriter { out }
    }

    /// Appends a record.
    pub fn record(&mut self, record: &LogRecord) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, record)?;
        self.out.write_all(b"\n")
    }

    /// Ends the file and hands the output back.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::{Level, arbitrary};

    fn read(file: impl AsRef<[u8]>) -> Vec<Result<LogRecord, BadRecord>> {
        JsonLinesReader::new(file.as_ref(), "f").collect()
    }

    fn written(records: &[LogRecord]) -> Vec<u8> {
        let mut writer = JsonLinesWriter::new(Vec::new());
        records.iter().for_each(|record| writer.record(record).unwrap());
        writer.finish().unwrap()
    }

    #[test]
    fn bad_lines_are_told_and_the_rest_is_read() {
        let good = r#"{"time":"2005-02-01T15:33:09.592","level":"Info","message":"good"}"#;
        for (bad, reason) in [
            (&b"{"[..], "EOF while parsing an object at column 1"),
            (b"null", "invalid type: null, expected struct Line at column 4"),
            (br#"{"level":"Info"}"#, "missing field `time`"),
            (br#"{"time":"now","level":"Info"}"#, "'now' is not a time"),
            (br#"{"time":"2005-02-01T15:33:09.592","level":"Fatal"}"#, "unknown variant `Fatal`"),
            (br#"{"time":"2005-02-01T15:33:09.592","level":"Info","line":-1}"#, "invalid value"),
            (b"\xff", "invalid UTF-8 0 bytes behind its start"),
            (b"\0\0", "expected value"),
        ] {
            let file = [good.as_bytes(), b"\r\n\n", bad, b"\n", good.as_bytes()].concat();
            let read = read(file);
            assert_eq!(read.len(), 3);
            assert!(read[0].is_ok() && read[2].is_ok());
            let told = read[1].as_ref().unwrap_err().to_string();
            assert!(told.starts_with(&format!("f:3: {reason}")), "{told}");
        }
    }

    #[test]
    fn keys_of_a_later_release_are_kept() {
        let line = r#"{"time":"2005-02-01T15:33:09.592","level":"Info","colour":"red","weight":{"kg":1}}"#;
        let record = read(line).remove(0).unwrap();
        assert_eq!(record.attributes, [Datum::new("colour", "red"), Datum::new("weight", r#"{"kg":1}"#)]);
    }

    #[test]
    fn a_message_of_ten_megabytes() {
        let records = [LogRecord::new(Level::Info, "0123456789abcde\n".repeat(10 << 16)), LogRecord::default()];
        assert_eq!(read(written(&records)).into_iter().map(Result::unwrap).collect::<Vec<_>>(), records);
    }

    proptest! {
        #[test]
        fn records_written_and_read_are_the_same(records in vec(arbitrary::record(), 0..6)) {
            let expected: Vec<_> = records.iter().cloned().map(Ok).collect();
            prop_assert_eq!(read(written(&records)), expected);
        }
    }
}
