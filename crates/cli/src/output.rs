//! Records on standard output: for people, or as JSON lines, ACS XML and CSV for programs.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use clap::Args;
use tampu_types::{
    LogRecord,
    xml::{AcsXmlOptions, file_frame, write_record},
};

use crate::{
    failure::{Failure, Outcome, written},
    output::{column::Column, highlight::Highlight, table::Table},
    paint::Paint,
};

pub use tampu_types::csv;

pub mod column;
pub mod file;
pub mod file_args;
pub mod highlight;
pub mod rotation;
pub mod rows;
pub mod table;

/// Formats of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// A line a record, for people.
    #[default]
    Table,
    /// A JSON object a line.
    Json,
    /// An ACS XML file.
    Xml,
    /// CSV with a line of column names, whose cells no spreadsheet takes for formulas.
    Csv,
    /// The same with every cell as it is.
    RawCsv,
}

/// Choice of the format.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct FormatArgs {
    /// Write JSON objects, one a line
    #[arg(long, group = "format")]
    json: bool,
    /// Write an ACS XML file
    #[arg(long, group = "format")]
    xml: bool,
    /// Write CSV with a heading
    #[arg(long, group = "format")]
    csv: bool,
    /// Write CSV whose cells are as they are; a spreadsheet may take some for formulas
    #[arg(long, group = "format")]
    raw_csv: bool,
    /// Show these columns only, in this order: time, level, source, message, file, line, ...
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with = "xml")]
    columns: Vec<Column>,
}

impl FormatArgs {
    /// The format chosen.
    pub fn format(&self) -> Format {
        match self {
            FormatArgs { json: true, .. } => Format::Json,
            FormatArgs { xml: true, .. } => Format::Xml,
            FormatArgs { csv: true, .. } => Format::Csv,
            FormatArgs { raw_csv: true, .. } => Format::RawCsv,
            _ => Format::Table,
        }
    }
}

/// Writes records in one format.
pub struct RecordWriter<W: Write> {
    out: W,
    format: Format,
    table: Table,
    columns: Vec<Column>,
    xml: AcsXmlOptions,
    text: String,
    begun: bool,
}

impl RecordWriter<BufWriter<Stdout>> {
    /// Writes on standard output.
    pub fn stdout(chosen: &FormatArgs, paint: Paint, highlight: Highlight) -> RecordWriter<BufWriter<Stdout>> {
        let table = Table::new(paint, highlight).with_columns(&chosen.columns);
        let out = BufWriter::with_capacity(64 * 1024, io::stdout());
        RecordWriter { columns: chosen.columns.clone(), ..RecordWriter::new(out, chosen.format(), table) }
    }
}

impl<W: Write> RecordWriter<W> {
    /// Writes into `out`.
    pub fn new(out: W, format: Format, table: Table) -> RecordWriter<W> {
        let (columns, xml) = (Vec::new(), AcsXmlOptions::default());
        RecordWriter { out, format, table, columns, xml, text: String::new(), begun: false }
    }

    /// Writes these columns as CSV and JSON; all, if there are none.
    pub fn with_columns(mut self, columns: &[Column]) -> RecordWriter<W> {
        self.columns = columns.to_vec();
        self
    }

    /// Writes XML like this.
    pub fn with_xml(mut self, options: AcsXmlOptions) -> RecordWriter<W> {
        self.xml = options;
        self
    }

    /// Writes the text before the first record.
    pub fn begin(&mut self) -> Outcome {
        self.begun = true;
        match self.format {
            Format::Table if io::stdout().is_terminal() => self.table.heading(&mut self.text),
            Format::Csv | Format::RawCsv => csv::heading(in_csv(&self.columns), &mut self.text),
            Format::Xml => self.text.push_str(&written(file_frame())?.0),
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
            Format::Csv | Format::RawCsv => {
                csv::row(in_csv(&self.columns), record, self.format == Format::RawCsv, &mut self.text);
            }
            Format::Xml => {
                write_record(&mut self.text, record, self.xml);
                self.text.push('\n');
            }
            Format::Json => {
                let line = match self.columns.as_slice() {
                    [] => serde_json::to_string(record),
                    columns => column::chosen(record, columns).and_then(|fields| serde_json::to_string(&fields)),
                };
                let line = line.map_err(|error| Failure::failed("a record as JSON", error))?;
                self.text.push_str(&line);
                self.text.push('\n');
            }
        }
        self.pass_on()
    }

    /// Writes the text after the last record.
    pub fn end(&mut self) -> Outcome {
        if !self.begun {
            self.begin()?;
        }
        if self.format == Format::Xml {
            self.text.push_str(&written(file_frame())?.1);
        }
        self.pass_on()?;
        self.flush()
    }

    /// Makes the output visible at once.
    pub fn flush(&mut self) -> Outcome {
        written(self.out.flush())
    }

    fn pass_on(&mut self) -> Outcome {
        let result = self.out.write_all(self.text.as_bytes());
        self.text.clear();
        written(result)
    }
}

fn in_csv(columns: &[Column]) -> &[Column] {
    if columns.is_empty() { &Column::SHOWN } else { columns }
}
