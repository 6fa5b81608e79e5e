//! `tampu log export`.

use std::{
    fs::File,
    io::{BufWriter, IsTerminal, Write},
    path::PathBuf,
};

use clap::{Args, ValueEnum};
use flate2::{Compression, write::GzEncoder};
use tampu_types::xml::AcsXmlOptions;

use crate::{
    commands::Context,
    failure::{Failure, Outcome},
    filter::{FilterArgs, SpanArgs},
    keeper::Keeper,
    output::{Format, RecordWriter, highlight::Highlight, table::Table},
    paint::{Paint, When},
    time_expression::now,
};

/// Write records the collector keeps as a file that other tools and 'import' read
///
/// The oldest first. What was exported as XML or JSON and is imported again adds nothing.
#[derive(Debug, Args)]
#[command(after_help = "Example: tampu log export --since yesterday --until today -o night.xml.gz")]
pub struct Export {
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    span: SpanArgs,
    /// The file; .gz compresses, and .xml, .json, .csv choose the format. Standard output if not given
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The format
    #[arg(short, long, value_name = "FORMAT")]
    format: Option<ExportFormat>,
    /// Times in XML with nine decimals instead of ACS's three
    #[arg(long)]
    ns: bool,
    /// Leave out what ACS's own tools do not know: record ids and times of reception
    #[arg(long)]
    plain: bool,
    /// At most so many records
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<u64>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ExportFormat {
    Xml,
    Json,
    Csv,
}

impl Export {
    pub fn run(self, context: &Context) -> Outcome {
        let mut query = self.filter.query()?;
        self.span.apply(&mut query, now())?;
        query.limit = self.limit;
        let keeper = Keeper::find(&context.common.connect, "tampu-export")?;

        let place = self.output.as_ref().map_or_else(|| "standard output".to_owned(), |path| path.display().to_string());
        let out = self.open().map_err(|error| Failure::failed(&place, error))?;
        let table = Table::new(Paint::for_stdout(When::Never), Highlight::default());
        let options = AcsXmlOptions { nanoseconds: self.ns, identity: !self.plain, received: false, one_line: false };
        let mut writer = RecordWriter::new(out, self.format(), table).with_xml(options);
        let mut count = 0u64;
        keeper.search(&query, &context.interrupt, &mut |record| {
            count += 1;
            writer.record(&record)
        })?;
        writer.end()?;
        writer.close().map_err(|error| Failure::failed(&place, error))?;
        if self.output.is_some() || std::io::stderr().is_terminal() {
            eprintln!("{count} records written to {place}");
        }
        Ok(())
    }

    fn format(&self) -> Format {
        let by_name = || {
            let name = self.output.as_ref()?.to_string_lossy().to_lowercase();
            let name = name.strip_suffix(".gz").unwrap_or(&name).to_owned();
            if name.ends_with(".json") || name.ends_with(".jsonl") {
                Some(ExportFormat::Json)
            } else {
                name.ends_with(".csv").then_some(ExportFormat::Csv)
            }
        };
        match self.format.or_else(by_name) {
            Some(ExportFormat::Json) => Format::Json,
            Some(ExportFormat::Csv) => Format::Csv,
            Some(ExportFormat::Xml) | None => Format::Xml,
        }
    }

    fn open(&self) -> std::io::Result<Sink> {
        Ok(match &self.output {
            None => Sink::Plain(BufWriter::new(Box::new(std::io::stdout()))),
            Some(path) => {
                let file: Box<dyn Write> = Box::new(File::create(path)?);
                if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz")) {
                    Sink::Gz(GzEncoder::new(BufWriter::new(file), Compression::default()))
                } else {
                    Sink::Plain(BufWriter::new(file))
                }
            }
        })
    }
}

/// Where an export goes.
pub enum Sink {
    Plain(BufWriter<Box<dyn Write>>),
    Gz(GzEncoder<BufWriter<Box<dyn Write>>>),
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Sink::Plain(out) => out.write(bytes),
            Sink::Gz(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Sink::Plain(out) => out.flush(),
            Sink::Gz(out) => out.flush(),
        }
    }
}

impl RecordWriter<Sink> {
    /// Ends the file: the compressed one has an end of its own.
    fn close(self) -> std::io::Result<()> {
        match self.into_inner() {
            Sink::Plain(mut out) => out.flush(),
            Sink::Gz(out) => out.finish()?.flush(),
        }
    }
}
