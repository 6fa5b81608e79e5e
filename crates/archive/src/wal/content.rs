//! Content of an archive: log records, or the rows of a table. This module decides everything in which the two differ.

use std::{io, path::Path, sync::Arc};

use tampu_types::{BatchHeader, Incarnation, Time, log_batch::BatchSequence};

use crate::{
    ids::seen::Run,
    parquet::{self, BadTable, Column, Layout, Rows, Sent, Table, Written, write_file},
    tables::{self, PlainRows, Schema},
    wal::digest::{self, Digest, Together},
};

/// Content of an archive.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content {
    Log,
    Plain(&'static Schema),
}

impl Content {
    pub(crate) fn layout(self) -> &'static Layout {
        match self {
            Content::Log => const { &Column::LOG },
            Content::Plain(schema) => &schema.layout,
        }
    }

    /// Summarises a sample.
    pub(crate) fn digest(self, header: &BatchHeader, sample: &[u8]) -> Result<Digest, String> {
        match self {
            Content::Log => digest::digest(sample),
            Content::Plain(schema) => schema.digest(header, sample),
        }
    }

    /// Summarises several samples as one; `None` where each has to be summarised for itself. An error names the first that
    /// is not valid.
    pub(crate) fn digest_all<'a>(self, samples: &[&'a [u8]]) -> Result<Option<Together<'a>>, (usize, String)> {
        match self {
            Content::Log if samples.len() > 1 => digest::digest_all(samples).map(Some),
            Content::Log | Content::Plain(_) => Ok(None),
        }
    }

    /// Summarises the body of a stored batch frame.
    pub(crate) fn digest_body(self, body: &[u8]) -> Result<Digest, String> {
        let (header, samples) = BatchHeader::decode(body).map_err(|error| error.to_string())?;
        let mut whole = Digest::default();
        let mut sequence = BatchSequence::default();
        for sample in crate::wal::frame::samples(samples) {
            let sample = sample.ok_or("a sample's length leads outside")?;
            match self {
                Content::Log => digest::read_next(&mut sequence, sample, &mut whole)?,
                Content::Plain(schema) => whole.join(schema.digest(&header, sample)?),
            }
        }
        Ok(whole)
    }

    /// Reads all ids in a Parquet file.
    pub(crate) fn ids(self, table: &Arc<Table>) -> Result<Vec<(Incarnation, Run)>, BadTable> {
        match self {
            Content::Log => parquet::ids(table),
            Content::Plain(_) => tables::ids(table),
        }
    }
}

/// Rows that wait to be written into Parquet files.
#[derive(Debug)]
pub(crate) enum Gathered {
    Log(Rows),
    Plain(PlainRows),
}

impl Gathered {
    pub(crate) fn new(content: Content) -> Gathered {
        match content {
            Content::Log => Gathered::Log(Rows::default()),
            Content::Plain(schema) => Gathered::Plain(PlainRows::new(schema)),
        }
    }

    /// Adds a sample's rows. Returns the number of unreadable ones.
    pub(crate) fn push_sample(&mut self, header: &BatchHeader, sent: &Sent, sample: &[u8], received: Time) -> u32 {
        match self {
            Gathered::Log(rows) => rows.push_sample(sent, sample, received),
            Gathered::Plain(rows) => rows.push_sample(header, sample),
        }
    }

    /// Returns the positions of all rows, in order of time and id.
    pub(crate) fn ordered(&self) -> Vec<u32> {
        match self {
            Gathered::Log(rows) => rows.ordered(),
            Gathered::Plain(rows) => rows.ordered(),
        }
    }

    /// Returns the own times of the rows from this position on.
    pub(crate) fn times_from(&self, place: usize) -> Box<dyn Iterator<Item = Time> + '_> {
        match self {
            Gathered::Log(rows) => Box::new(rows.times_from(place)),
            Gathered::Plain(rows) => Box::new(rows.times_from(place)),
        }
    }

    /// Writes these rows as a file.
    pub(crate) fn write_file(
        &self,
        path: &Path,
        places: &[u32],
        domain: &str,
        pace: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<Written> {
        match self {
            Gathered::Log(rows) => write_file(path, rows, places, domain, pace),
            Gathered::Plain(rows) => rows.write_file(path, places, domain, pace),
        }
    }

    pub(crate) fn clear(&mut self) {
        match self {
            Gathered::Log(rows) => rows.clear(),
            Gathered::Plain(rows) => rows.clear(),
        }
    }
}
