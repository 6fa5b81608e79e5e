//! The options by which files are written, shared by `export` and `split`.

use std::{path::Path, time::Duration};

use clap::Args;
use tampu_types::units::{parse_duration, parse_size};
use tampu_types::xml::AcsXmlOptions;

use crate::{
    failure::Failure,
    output::{
        column::Column,
        file::{FileFormat, FileOptions},
        rotation::Cut,
    },
};

/// Options of a file.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Files")]
pub struct FileArgs {
    /// Format of the file [default: by the file's ending, else xml]
    #[arg(short, long, value_name = "FORMAT")]
    format: Option<FileFormat>,
    /// Write times in XML with nine decimals instead of ACS's three
    #[arg(long)]
    ns: bool,
    /// Omit fields that ACS's own tools do not know: record ids
    #[arg(long)]
    plain: bool,
    /// Show these columns only, in this order: time, level, source, message, file, line, ...
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    columns: Vec<Column>,
}

/// Conditions for the end of a file.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Files")]
pub struct CutArgs {
    /// Begin a new file for each span of this length, at whole spans of UTC
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with_all = ["records", "file_size"])]
    every: Option<Duration>,
    /// Begin a new file after this many records
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    records: Option<u64>,
    /// Begin a new file after this size, before compression: 64MiB, 100MB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    file_size: Option<u64>,
    /// Compress files with gzip
    #[arg(long)]
    gz: bool,
}

/// Size of a file of ACS's archiver.
const ACS_FILE: u64 = 128 << 20;

impl FileArgs {
    /// The format that was asked for, or that the file's name ends with; XML without a file.
    pub fn format(&self, path: Option<&Path>) -> Result<FileFormat, Failure> {
        let format = match (self.format, path) {
            (Some(format), _) => format,
            (None, None) => FileFormat::Xml,
            (None, Some(path)) => FileFormat::of_name(path).ok_or_else(|| {
                Failure::Usage(format!(
                    "{}: unknown ending; use .xml, .json, .csv or .parquet (.gz after it compresses), set --format, or end a directory's name with a slash",
                    path.display()
                ))
            })?,
        };
        if matches!(format, FileFormat::Xml | FileFormat::Parquet) && !self.columns.is_empty() {
            return Err(Failure::Usage("--columns is for CSV and JSON: ACS XML and Parquet have all of a record".to_owned()));
        }
        Ok(format)
    }

    /// Returns the remaining options.
    pub fn options(&self) -> FileOptions {
        let xml = AcsXmlOptions { nanoseconds: self.ns, identity: !self.plain, received: false, one_line: false };
        FileOptions { xml, columns: self.columns.clone(), domain: String::new() }
    }
}

impl CutArgs {
    /// Returns true if a condition is given.
    pub fn is_given(&self) -> bool {
        self.every.is_some() || self.records.is_some() || self.file_size.is_some()
    }

    /// Returns true if files are compressed.
    pub fn gz(&self) -> bool {
        self.gz
    }

    /// Returns the condition for the end of a file; that of ACS by default.
    pub fn cut(&self) -> Result<Cut, Failure> {
        match self.every {
            Some(every) => match i64::try_from(every.as_nanos()) {
                Ok(ns) if ns > 0 => Ok(Cut::Span(ns)),
                _ => Err(Failure::Usage("--every takes a time above 0 and below 292 years".to_owned())),
            },
            None => {
                let size = if self.records.is_some() { u64::MAX } else { ACS_FILE };
                Ok(Cut::Full { records: self.records.unwrap_or(u64::MAX), bytes: self.file_size.unwrap_or(size) })
            }
        }
    }
}
