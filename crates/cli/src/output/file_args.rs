//! The options by which files are written, shared by `export` and `split`.

use std::{path::Path, time::Duration};

use clap::Args;
use tampu_types::xml::AcsXmlOptions;

use crate::{
    failure::Failure,
    output::{
        column::Column,
        file::{FileFormat, FileOptions},
        rotation::Cut,
    },
    time_expression::parse_duration,
};

/// How a file is written.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Files")]
pub struct FileArgs {
    /// The format
    #[arg(short, long, value_name = "FORMAT")]
    format: Option<FileFormat>,
    /// Times in XML with nine decimals instead of ACS's three
    #[arg(long)]
    ns: bool,
    /// Leave out what ACS's own tools do not know: record ids
    #[arg(long)]
    plain: bool,
    /// Only these columns in CSV and JSON: time, level, source, message, file, line, ...
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    columns: Vec<Column>,
}

/// When a file ends and another begins.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Files")]
pub struct CutArgs {
    /// A file for each span of this length, cut at whole ones (UTC)
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with_all = ["records", "size"])]
    every: Option<Duration>,
    /// A new file after this many records
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    records: Option<u64>,
    /// A new file after this size, before it is compressed: 64MiB, 100MB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    size: Option<u64>,
    /// Compress the files
    #[arg(long)]
    gz: bool,
}

/// What ACS's archiver puts into a file.
const ACS_FILE: u64 = 128 << 20;

impl FileArgs {
    /// The format, said or meant by a file's name; XML if neither is.
    pub fn format(&self, path: Option<&Path>) -> Result<FileFormat, Failure> {
        let format = self.format.or_else(|| path.and_then(FileFormat::of_name)).unwrap_or(FileFormat::Xml);
        if matches!(format, FileFormat::Xml | FileFormat::Parquet) && !self.columns.is_empty() {
            return Err(Failure::Usage("--columns is for CSV and JSON: ACS XML and Parquet have all of a record".to_owned()));
        }
        Ok(format)
    }

    /// The rest.
    pub fn options(&self) -> FileOptions {
        let xml = AcsXmlOptions { nanoseconds: self.ns, identity: !self.plain, received: false, one_line: false };
        FileOptions { xml, columns: self.columns.clone(), domain: String::new() }
    }
}

impl CutArgs {
    /// Whether something is said.
    pub fn is_given(&self) -> bool {
        self.every.is_some() || self.records.is_some() || self.size.is_some()
    }

    /// Whether files are compressed.
    pub fn gz(&self) -> bool {
        self.gz
    }

    /// When a file ends; without a word as ACS's do.
    pub fn cut(&self) -> Result<Cut, Failure> {
        match self.every {
            Some(every) => match i64::try_from(every.as_nanos()) {
                Ok(ns) if ns > 0 => Ok(Cut::Span(ns)),
                _ => Err(Failure::Usage("--every takes a time longer than none and shorter than 292 years".to_owned())),
            },
            None => {
                let size = if self.records.is_some() { u64::MAX } else { ACS_FILE };
                Ok(Cut::Full { records: self.records.unwrap_or(u64::MAX), bytes: self.size.unwrap_or(size) })
            }
        }
    }
}

/// Reads `64MiB`, `100MB`, `4096`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let bad = || format!("'{text}' is no size: write bytes, or numbers with kB, MB, GB, KiB, MiB, GiB");
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..digits].parse().map_err(|_| bad())?;
    let unit = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ => return Err(bad()),
    };
    number.checked_mul(unit).filter(|size| *size > 0).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_people_write_them() {
        for (text, size) in [("1", 1), ("64MiB", 64 << 20), ("100 MB", 100_000_000), ("2g", 2 << 30)] {
            assert_eq!(parse_size(text), Ok(size), "{text}");
        }
        for text in ["", "0", "MB", "1.5MB", "3 parsecs", "99999999999999999999", "9999999999999GiB"] {
            assert!(parse_size(text).is_err_and(|why| why.contains(&format!("'{text}'"))), "{text}");
        }
    }
}
