//! What an archive keeps: log records, or the rows of a table. Everything that differs is asked here.

use std::{io, path::Path, sync::Arc};

use tampu_types::{BatchHeader, Incarnation, Time};

use super::{
    digest::{self, Digest},
    parquet::{self, BadTable, Column, Layout, Rows, Sent, Table, Written, write_file},
    plain::{self, PlainRows, Schema},
    seen::Run,
};

/// What is kept.
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

    /// What a sample holds.
    pub(crate) fn digest(self, header: &BatchHeader, sample: &[u8]) -> Result<Digest, String> {
        match self {
            Content::Log => digest::digest(sample),
            Content::Plain(schema) => schema.digest(header, sample),
        }
    }

    /// What a stored batch frame's body holds.
    pub(crate) fn digest_body(self, body: &[u8]) -> Result<Digest, String> {
        let (header, samples) = BatchHeader::decode(body).map_err(|error| error.to_string())?;
        let mut whole = Digest::default();
        for sample in super::frame::samples(samples) {
            let sample = sample.ok_or("a sample's length leads outside")?;
            match self {
                Content::Log => digest::read_into(sample, &mut whole)?,
                Content::Plain(schema) => whole.join(schema.digest(&header, sample)?),
            }
        }
        Ok(whole)
    }

    /// All ids in a Parquet file.
    pub(crate) fn ids(self, table: &Arc<Table>) -> Result<Vec<(Incarnation, Run)>, BadTable> {
        match self {
            Content::Log => parquet::ids(table),
            Content::Plain(_) => plain::ids(table),
        }
    }
}

/// Rows on their way into Parquet files.
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

    /// Takes in a sample's rows. Returns how many could not be read.
    pub(crate) fn push_sample(&mut self, header: &BatchHeader, sent: &Sent, sample: &[u8], received: Time) -> u32 {
        match self {
            Gathered::Log(rows) => rows.push_sample(sent, sample, received),
            Gathered::Plain(rows) => rows.push_sample(header, sample),
        }
    }

    /// The rows in order, those of each UTC day together.
    pub(crate) fn by_day(&self) -> Vec<(i64, Vec<u32>)> {
        match self {
            Gathered::Log(rows) => rows.by_day(),
            Gathered::Plain(rows) => rows.by_day(),
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
