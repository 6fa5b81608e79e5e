//! `tampu book import`.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::{Args, ValueEnum};
use tampu_logbook::{
    book::Book,
    exchange::{
        ForeignReport, ForeignSource, SourceError,
        elabftw::Elabftw,
        eln::{Eln, is_zip},
        import_foreign,
        olog::Olog,
        scilog::SciLog,
    },
};

use super::{
    place::{Place, failed},
    text::shown,
};
use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    plural::counted,
    progress,
};

/// Import the entries of another logbook from a file: an .eln archive, or an export of Olog, SciLog or eLabFTW
///
/// Dates, authors, tags, replies and files come along. What cannot be read is told with file, place and what was done about it; the rest
/// is taken. Again takes only what is new or changed. What was edited or deleted here stays so.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu book import shift.eln --book Shift\n  \
    tampu book import --format olog logs.json --files attachments/ --book Control")]
pub struct Import {
    /// The file
    file: PathBuf,
    /// The logbook, which is made if it is missing
    #[arg(short, long, value_name = "NAME")]
    book: String,
    /// Format: eln, or that of the program which wrote the file
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Program::Eln)]
    format: Program,
    /// The directory with the files of entries, for exports that do not hold them
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,
    /// Number of errors that are listed one by one
    #[arg(long, value_name = "N", default_value_t = 20)]
    errors: usize,
    /// Write a JSON object
    #[arg(long)]
    json: bool,
}

/// The programs whose exports are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Program {
    /// An .eln archive of any program
    Eln,
    /// Olog: JSON of its REST API
    Olog,
    /// SciLog: an .eln archive, or JSON of its REST API
    Scilog,
    /// eLabFTW: an .eln archive, JSON, or CSV
    Elabftw,
}

impl Import {
    pub fn run(self, place: &Place, context: &Context) -> Outcome {
        place.need_directory("an import, of a file of this host,")?;
        Book::new(&self.book, vec![]).check().map_err(|why| Failure::Usage(format!("--book: {why}")))?;
        let source = self.source()?;
        let store = place.make()?;
        let bar = progress::work("importing");
        let report = import_foreign(&*store, &*source, &self.book, &mut |done, total| {
            bar.set_length(total);
            bar.set_position(done);
            !context.interrupt.asked()
        });
        bar.finish_and_clear();
        let report = report.map_err(error)?;
        if self.json {
            let line = serde_json::to_string(&report).map_err(|error| Failure::failed("the report as JSON", error))?;
            written(writeln!(io::stdout().lock(), "{line}"))?;
        } else {
            tell(&report, self.errors)?;
        }
        match report.interrupted {
            true => Err(Failure::Failed("interrupted; run the import again to continue".to_owned())),
            false => Ok(()),
        }
    }

    /// Opens the file as its program writes it.
    fn source(&self) -> Result<Box<dyn ForeignSource>, Failure> {
        let (file, files) = (self.file.clone(), self.files.clone());
        let is_csv = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
        Ok(match self.format {
            Program::Olog => Box::new(Olog { file, files }),
            Program::Scilog if !is_zip(&file) => Box::new(SciLog { file, files }),
            Program::Elabftw if !is_zip(&file) => Box::new(Elabftw { file, files, is_csv }),
            Program::Eln | Program::Scilog | Program::Elabftw => Box::new(Eln::open(&file).map_err(error)?),
        })
    }
}

fn error(error: SourceError) -> Failure {
    match error {
        SourceError::Store(error) => failed(error),
        error => Failure::Failed(shown(&error.to_string(), false)),
    }
}

fn tell(report: &ForeignReport, most: usize) -> Outcome {
    for fault in report.faults.iter().take(most) {
        eprintln!("{}", shown(&fault.to_string(), false));
    }
    let more = report.faults.len().saturating_sub(most) as u64 + report.more_faults;
    if more > 0 {
        eprintln!("{more} more (--errors N lists more of them, --json all)");
    }
    let ForeignReport { book, entries, new, changed, same, conflicts, gone, attachments, .. } = report;
    written(writeln!(
        io::stdout().lock(),
        "{}: {}, {new} new, {changed} changed, {same} as they were, {conflicts} changed here too, {gone} gone here, {}",
        shown(book, false),
        counted(*entries, "entry"),
        counted(*attachments, "attachment")
    ))
}
