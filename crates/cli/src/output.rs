//! Records on standard output: for people, or as JSON lines, ACS XML and CSV for programs.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use clap::Args;
use tampu_types::{
    LogRecord,
    xml::{AcsXmlOptions, AcsXmlWriter, write_record},
};

use crate::{
    failure::{Failure, Outcome, written},
    output::{highlight::Highlight, table::Table},
    paint::Paint,
};

pub mod csv;
pub mod highlight;
pub mod table;

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// A line a record, for people.
    #[default]
    Table,
    /// A JSON object a line.
    Json,
    /// An ACS XML file.
    Xml,
    /// CSV with a line of column names.
    Csv,
}

/// Choice of the format.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct FormatArgs {
    /// One JSON object a line, with LogRecord's fields
    #[arg(long, group = "format")]
    json: bool,
    /// An ACS XML file
    #[arg(long, group = "format")]
    xml: bool,
    /// CSV
    #[arg(long, group = "format")]
    csv: bool,
}

impl FormatArgs {
    /// The format chosen.
    pub fn format(self) -> Format {
        match self {
            FormatArgs { json: true, .. } => Format::Json,
            FormatArgs { xml: true, .. } => Format::Xml,
            FormatArgs { csv: true, .. } => Format::Csv,
            _ => Format::Table,
        }
    }
}

/// Writes records in one format.
pub struct RecordWriter<W: Write> {
    out: W,
    format: Format,
    table: Table,
    xml: AcsXmlOptions,
    text: String,
    begun: bool,
}

impl RecordWriter<BufWriter<Stdout>> {
    /// Writes on standard output.
    pub fn stdout(format: Format, paint: Paint, highlight: Highlight) -> RecordWriter<BufWriter<Stdout>> {
        RecordWriter::new(BufWriter::with_capacity(64 * 1024, io::stdout()), format, Table::new(paint, highlight))
    }
}

impl<W: Write> RecordWriter<W> {
    /// Writes into `out`.
    pub fn new(out: W, format: Format, table: Table) -> RecordWriter<W> {
        RecordWriter { out, format, table, xml: AcsXmlOptions::default(), text: String::new(), begun: false }
    }

    /// Writes XML like this.
    pub fn with_xml(mut self, options: AcsXmlOptions) -> RecordWriter<W> {
        self.xml = options;
        self
    }

    /// Writes what stands before the first record.
    pub fn begin(&mut self) -> Outcome {
        self.begun = true;
        match self.format {
            Format::Table if io::stdout().is_terminal() => self.table.heading(&mut self.text),
            Format::Csv => csv::heading(&mut self.text),
            Format::Xml => self.text.push_str(&xml_frame()?.0),
            _ => {}
        }
        self.pass_on()
    }

    /// Writes one record.
    pub fn record(&mut self, record: &LogRecord) -> Outcome {
        if !self.begun {
            self.begin()?;
        }
        match self.format {
            Format::Table => self.table.row(record, &mut self.text),
            Format::Csv => csv::row(record, &mut self.text),
            Format::Xml => {
                write_record(&mut self.text, record, self.xml);
                self.text.push('\n');
            }
            Format::Json => {
                let line = serde_json::to_string(record).map_err(|error| Failure::failed("a record as JSON", error))?;
                self.text.push_str(&line);
                self.text.push('\n');
            }
        }
        self.pass_on()
    }

    /// Writes what stands after the last record.
    pub fn end(&mut self) -> Outcome {
        if !self.begun {
            self.begin()?;
        }
        if self.format == Format::Xml {
            self.text.push_str(&xml_frame()?.1);
        }
        self.pass_on()?;
        self.flush()
    }

    /// Makes what was written visible now.
    pub fn flush(&mut self) -> Outcome {
        written(self.out.flush())
    }

    /// Hands the output back.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn pass_on(&mut self) -> Outcome {
        let result = self.out.write_all(self.text.as_bytes());
        self.text.clear();
        written(result)
    }
}

/// What stands before and after the records of an ACS XML file.
fn xml_frame() -> Result<(String, String), Failure> {
    let end = "</Log>\n";
    let empty = AcsXmlWriter::new(Vec::new(), "tampu", AcsXmlOptions::default()).and_then(AcsXmlWriter::finish);
    let text = String::from_utf8_lossy(&written(empty)?).into_owned();
    let begin = text.strip_suffix(end).unwrap_or(&text).to_owned();
    Ok((begin, end.to_owned()))
}
