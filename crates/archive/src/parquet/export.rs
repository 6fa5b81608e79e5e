//! Parquet file of any records, as `tampu log export` writes it, with the columns of the archive's own files.

use std::io::{self, Write};

use tampu_types::{
    ClockState, LogRecord, Time,
    log_batch::{LogBatchBuilder, PushError},
};

use super::{
    GROUP,
    rows::{Rows, Sent},
    write::TableWriter,
};

/// Number of records that are encoded together before they become rows.
const TOGETHER: usize = 1024;
/// Bytes of encoded records after which a row group ends.
const GROUP_BYTES: usize = 64 << 20;

/// Writer of records into a Parquet file. It holds the records of a row group in memory, at most 131 072 records
/// and about 64 MiB, and sorts them by time.
pub struct ParquetWriter<W: Write> {
    table: TableWriter<W>,
    rows: Rows,
    batch: LogBatchBuilder,
    gathered: usize,
    /// Bytes of encoded records among the rows.
    bytes: usize,
    domain: String,
}

impl<W: Write> ParquetWriter<W> {
    /// Begins a file and notes the domain in it.
    pub fn new(out: W, domain: &str) -> io::Result<ParquetWriter<W>> {
        Ok(ParquetWriter {
            table: TableWriter::new(out)?,
            rows: Rows::default(),
            batch: LogBatchBuilder::new(),
            gathered: 0,
            bytes: 0,
            domain: domain.to_owned(),
        })
    }

    /// Adds a record.
    pub fn push(&mut self, record: &LogRecord) -> io::Result<()> {
        if let Err(PushError::Full { .. }) = self.batch.push_record(record) {
            self.gather()?;
            self.batch.push_record(record).map_err(io::Error::other)?;
        }
        self.gathered += 1;
        if self.gathered >= TOGETHER {
            self.gather()?;
        }
        if self.rows.len() >= GROUP || self.bytes >= GROUP_BYTES { self.group() } else { Ok(()) }
    }

    /// Converts the records into rows.
    fn gather(&mut self) -> io::Result<()> {
        if self.gathered > 0 {
            // An export does not carry the sender of a record and its clock state.
            let sent = Sent { source: String::new(), clock: ClockState::Unknown, tai_offset: 0 };
            let sample = self.batch.seal();
            self.bytes += sample.len();
            let unreadable = self.rows.push_sample(&sent, sample, Time(0));
            self.batch.reset();
            self.gathered = 0;
            if unreadable > 0 {
                return Err(io::Error::other(format!("{unreadable} records could not be read again")));
            }
        }
        Ok(())
    }

    /// Writes the rows as row groups, at least one a day.
    fn group(&mut self) -> io::Result<()> {
        for places in self.rows.by_day() {
            self.table.add(&self.rows, &places, &mut || Ok(()))?;
        }
        self.rows.clear();
        self.bytes = 0;
        Ok(())
    }

    /// Writes the end of the file and returns the underlying writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.gather()?;
        self.group()?;
        Ok(self.table.finish(&self.domain)?.1)
    }
}
