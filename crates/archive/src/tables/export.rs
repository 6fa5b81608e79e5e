//! Parquet file of any rows of a table, with the columns of the archive's own files.

use std::io::{self, Write};

use tampu_types::Time;

use super::{Row, Schema, gather::PlainRows};
use crate::parquet::{ChunkFacts, GROUP, Group, HEAD, Output, finish, group_ranges};

/// Bytes of texts, about, after which a row group ends.
const GROUP_BYTES: usize = 64 << 20;

/// Writer of rows into a Parquet file. It holds the rows of a row group in memory, at most 131 072 rows and about 64 MiB,
/// and sorts them by time.
pub struct RowWriter<W: Write> {
    out: Output<W>,
    schema: &'static Schema,
    rows: PlainRows,
    count: usize,
    bytes: usize,
    groups: Vec<(Group, Vec<ChunkFacts>)>,
    received: Time,
    domain: String,
}

impl<W: Write> RowWriter<W> {
    /// Begins a file and notes the domain in it.
    pub fn new(out: W, schema: &'static Schema, domain: &str) -> io::Result<RowWriter<W>> {
        let mut out = Output::new(out)?;
        out.put(HEAD)?;
        let rows = PlainRows::new(schema);
        let (groups, received, domain) = (Vec::new(), Time(i64::MIN), domain.to_owned());
        Ok(RowWriter { out, schema, rows, count: 0, bytes: 0, groups, received, domain })
    }

    /// Adds a row.
    pub fn push(&mut self, row: Row) -> io::Result<()> {
        self.received = self.received.max(row.received);
        self.bytes += row.cells.iter().map(|cell| 16 + cell.text().len()).sum::<usize>();
        self.count += 1;
        self.rows.push(row);
        if self.count >= GROUP || self.bytes >= GROUP_BYTES { self.group() } else { Ok(()) }
    }

    fn group(&mut self) -> io::Result<()> {
        let places = self.rows.ordered();
        for range in group_ranges(places.len()) {
            self.groups.push(self.rows.group(&mut self.out, &places[range], &mut || Ok(()))?);
        }
        self.rows.clear();
        (self.count, self.bytes) = (0, 0);
        Ok(())
    }

    /// Writes the end of the file and returns the underlying writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.group()?;
        Ok(finish(self.out, &self.schema.layout, self.groups, self.received, &self.domain)?.1)
    }
}
