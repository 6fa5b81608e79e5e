//! Records in files, in every supported format.
//!
//! [`FileFormat`] is the list of formats, and [`FileFormat::encoder`] alone knows how to write each. A further format
//! is a name, an extension and an [`Encoder`].

use std::{
    cell::Cell,
    ffi::OsString,
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    rc::Rc,
};

use clap::ValueEnum;
use flate2::{Compression, write::GzEncoder};
use tampu_archive::ParquetWriter;
use tampu_types::{LogRecord, xml::AcsXmlOptions};

use crate::{
    failure::{Failure, Outcome},
    output::{Format, RecordWriter, column::Column, highlight::Highlight, table::Table},
    paint::{Paint, When},
};

/// The formats of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FileFormat {
    /// XML as ACS writes it
    Xml,
    /// JSON objects, one a line
    Json,
    /// Values separated by commas, with a heading; safe for spreadsheets
    Csv,
    /// The same with every cell as it is
    RawCsv,
    /// Parquet, with the archive's columns
    Parquet,
}

/// Options of a file besides its format.
#[derive(Debug, Clone, Default)]
pub struct FileOptions {
    pub xml: AcsXmlOptions,
    /// The columns of CSV and JSON; all if empty.
    pub columns: Vec<Column>,
    /// Noted in Parquet files.
    pub domain: String,
}

/// Something that writes records in one format.
pub trait Encoder {
    /// Writes one record.
    fn record(&mut self, record: &LogRecord) -> Outcome;
    /// Writes the text after the last record, and flushes the output.
    fn end(&mut self) -> Outcome;
}

impl FileFormat {
    /// The format a file's name asks for, whether it is compressed or not.
    pub fn of_name(path: &Path) -> Option<FileFormat> {
        let name = path.file_name()?.to_string_lossy().to_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let (_, extension) = name.rsplit_once('.')?;
        match extension {
            "xml" => Some(FileFormat::Xml),
            "json" | "jsonl" => Some(FileFormat::Json),
            "csv" => Some(FileFormat::Csv),
            "parquet" => Some(FileFormat::Parquet),
            _ => None,
        }
    }

    /// Returns the ending of file names.
    pub const fn extension(self) -> &'static str {
        match self {
            FileFormat::Xml => "xml",
            FileFormat::Json => "json",
            FileFormat::Csv | FileFormat::RawCsv => "csv",
            FileFormat::Parquet => "parquet",
        }
    }

    /// Makes an encoder of this format for an output. Writes the text before the first record at once.
    pub fn encoder<'w>(self, out: Box<dyn Write + 'w>, options: &FileOptions) -> Result<Box<dyn Encoder + 'w>, Failure> {
        let format = match self {
            FileFormat::Xml => Format::Xml,
            FileFormat::Json => Format::Json,
            FileFormat::Csv => Format::Csv,
            FileFormat::RawCsv => Format::RawCsv,
            FileFormat::Parquet => {
                let file = ParquetWriter::new(out, &options.domain).map_err(|error| Failure::failed("standard output", error))?;
                return Ok(Box::new(Some(file)));
            }
        };
        let table = Table::new(Paint::for_stdout(When::Never), Highlight::default());
        let mut text = RecordWriter::new(out, format, table).with_xml(options.xml).with_columns(&options.columns);
        text.begin()?;
        Ok(Box::new(text))
    }
}

impl<W: Write> Encoder for RecordWriter<W> {
    fn record(&mut self, record: &LogRecord) -> Outcome {
        RecordWriter::record(self, record)
    }

    fn end(&mut self) -> Outcome {
        RecordWriter::end(self)
    }
}

/// Until it has ended.
impl<W: Write> Encoder for Option<ParquetWriter<W>> {
    fn record(&mut self, record: &LogRecord) -> Outcome {
        self.as_mut().map_or(Ok(()), |file| file.push(record)).map_err(|error| Failure::failed("standard output", error))
    }

    fn end(&mut self) -> Outcome {
        let ended = self.take().map_or(Ok(()), |file| file.finish()?.flush());
        ended.map_err(|error| Failure::failed("standard output", error))
    }
}

/// Returns true if a file of this name is compressed.
pub fn is_gz(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}

/// A file of records on its way.
pub struct RecordFile {
    encoder: Box<dyn Encoder>,
    /// Flag for errors of closing the file, whose end is written by the last owner.
    compressed: Option<Rc<Cell<bool>>>,
    place: String,
    bytes: Rc<Cell<u64>>,
    records: u64,
}

impl RecordFile {
    /// Creates this file, or replaces it.
    pub fn create(path: &Path, format: FileFormat, gz: bool, options: &FileOptions) -> Result<RecordFile, Failure> {
        let place = path.display().to_string();
        let file = File::create(path).map_err(|error| Failure::failed(&place, error))?;
        RecordFile::over(Box::new(file), place, format, gz, options)
    }

    /// Writes on standard output.
    pub fn stdout(format: FileFormat, options: &FileOptions) -> Result<RecordFile, Failure> {
        RecordFile::over(Box::new(io::stdout()), "standard output".to_owned(), format, false, options)
    }

    fn over(
        out: Box<dyn Write>,
        place: String,
        format: FileFormat,
        gz: bool,
        options: &FileOptions,
    ) -> Result<RecordFile, Failure> {
        if gz && format == FileFormat::Parquet {
            return Err(Failure::Usage("Parquet files are compressed already: leave .gz and --gz out".to_owned()));
        }
        let bytes = Rc::new(Cell::new(0));
        let done = gz.then(|| Rc::new(Cell::new(false)));
        let out = BufWriter::with_capacity(64 * 1024, out);
        let out: Box<dyn Write> = match &done {
            None => Box::new(Counted { out, bytes: bytes.clone() }),
            Some(done) => {
                let gz = Gz { out: GzEncoder::new(out, Compression::default()), end: done.clone() };
                Box::new(Counted { out: gz, bytes: bytes.clone() })
            }
        };
        let encoder = format.encoder(out, options)?;
        Ok(RecordFile { encoder, compressed: done, place, bytes, records: 0 })
    }

    /// Returns the destination for messages.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Writes one record.
    pub fn record(&mut self, record: &LogRecord) -> Outcome {
        self.records += 1;
        self.encoder.record(record).map_err(|failure| self.named(failure))
    }

    /// Records in it.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Bytes in it, before they are compressed.
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Ends it: all of it is with the system then.
    pub fn close(mut self) -> Outcome {
        // The last flush of a compressed file writes its end.
        if let Some(end) = &self.compressed {
            end.set(true);
        }
        self.encoder.end().map_err(|failure| self.named(failure))
    }

    /// Names this file in a failure of its encoder.
    fn named(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Failed(why) => Failure::Failed(why.replace("standard output", &self.place)),
            other => other,
        }
    }
}

/// A writer that counts its bytes.
struct Counted<W> {
    out: W,
    bytes: Rc<Cell<u64>>,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes.set(self.bytes.get() + written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A compressing writer; after the request for the end, a flush writes it.
struct Gz<W: Write> {
    out: GzEncoder<W>,
    end: Rc<Cell<bool>>,
}

impl<W: Write> Write for Gz<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.end.get() {
            self.out.try_finish()?;
        }
        self.out.get_mut().flush()
    }
}

/// Returns the name of a file while it is written: a search for finished files does not find it.
pub fn unfinished(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".part");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::MultiGzDecoder;
    use tampu_types::Level;

    use super::*;

    #[test]
    fn names_say_formats() {
        for (name, format) in [
            ("a.xml", Some(FileFormat::Xml)),
            ("b/a.JSON.gz", Some(FileFormat::Json)),
            ("a.jsonl", Some(FileFormat::Json)),
            ("a.csv.gz", Some(FileFormat::Csv)),
            ("a.parquet", Some(FileFormat::Parquet)),
            ("a.txt", None),
            ("xml", None),
        ] {
            assert_eq!(FileFormat::of_name(Path::new(name)), format, "{name}");
        }
        assert_eq!(unfinished(Path::new("/a/b.xml")), Path::new("/a/.b.xml.part"));
    }

    #[test]
    fn a_compressed_file_is_whole_and_its_bytes_are_counted_before() {
        let dir = tempfile::tempdir().unwrap();
        let record = LogRecord::new(Level::Info, "x".repeat(1000));
        let mut texts = Vec::new();
        for gz in [false, true] {
            let path = dir.path().join("log");
            let mut file = RecordFile::create(&path, FileFormat::Xml, gz, &FileOptions::default()).unwrap();
            (0..100).for_each(|_| file.record(&record).unwrap());
            assert!(file.bytes() > 100_000 && file.records() == 100);
            file.close().unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let mut text = String::new();
            match gz {
                true => drop(MultiGzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap()),
                false => text = String::from_utf8(bytes).unwrap(),
            }
            assert!(text.ends_with("</Log>\n"));
            texts.push(text);
        }
        assert_eq!(texts[0], texts[1]);
    }
}
