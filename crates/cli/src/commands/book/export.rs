//! `tampu book export`.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use tampu_logbook::{
    exchange::eln::export_eln,
    export::{
        self, Format, Pieces,
        html::{Exported, FolderError, export_html},
    },
    search::{Search, Sort, Stop},
    store::{Entries, Logbook},
};

use super::{
    abandon::Abandoned,
    elog,
    place::{Place, failed, refused},
    text::shown,
};
use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    plural::counted,
    progress, time_expression,
};

mod pdf;

/// Bytes of a hub's file that are read at a time.
const PIECE: usize = 64 << 10;

/// Write what a search finds as a table, as JSON lines, as Markdown, as PDF, or whole logbooks as pages or as ELOG's files
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu book export 'type:=Problem last:30d' --format csv > problems.csv\n  \
    tampu book export --book Shift --format markdown -o shift.md\n  tampu book export --format html -o pages/\n  \
    tampu book export 'last:30d' --book Shift --format eln -o shift.eln\n  \
    tampu book export 'last:7d' --book Shift --format pdf --thread -o week.pdf\n  \
    tampu book export --format elog -o elog/")]
pub struct Export {
    /// The query, as for 'tampu book search'; without one, all entries
    #[arg(value_name = "QUERY")]
    query: Vec<String>,
    /// In this logbook only; repeatable
    #[arg(short, long, value_name = "NAME")]
    book: Vec<String>,
    /// Format: csv, raw-csv (cells as they are, which a spreadsheet may take for formulas), json, markdown, or for whole logbooks in an empty directory html (pages for a browser) or elog; or eln, an archive for electronic lab notebooks; or pdf, if this program or the hub was built with it
    #[arg(short, long, value_name = "FORMAT")]
    format: String,
    /// Sort by date, id or an attribute; a minus before it reverses the order
    #[arg(long, allow_hyphen_values = true, value_name = "COLUMN", default_value = "date")]
    sort: String,
    /// The file, or for html and elog the directory [default: standard output, but eln and pdf need a file]
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// For pdf: each entry with its whole thread
    #[arg(long)]
    thread: bool,
    /// For pdf of a directory or a database: a layout, which spec/pdf-layout.md describes
    #[arg(long, value_name = "FILE")]
    layout: Option<PathBuf>,
    /// For pdf: a picture or font of the layout; repeatable
    #[arg(long, value_name = "FILE")]
    layout_file: Vec<PathBuf>,
}

impl Export {
    pub fn run(self, place: &Place, context: &Context) -> Outcome {
        let name = self.format.to_ascii_lowercase();
        if name != "pdf" && (self.thread || self.layout.is_some() || !self.layout_file.is_empty()) {
            return Err(Failure::Usage("--thread, --layout and --layout-file are for --format pdf".to_owned()));
        }
        if matches!(name.as_str(), "elog" | "html") {
            let needs = || Failure::Usage(format!("--format {name} needs a directory: --output DIR"));
            let folder = self.output.clone().ok_or_else(needs)?;
            if !self.query.is_empty() {
                return Err(Failure::Usage(format!("--format {name} writes whole logbooks: it takes no query")));
            }
            if name == "html" {
                return self.pages(&folder, place, context);
            }
            return elog::Export { output: folder, book: self.book, elog_passwords: Vec::new(), json: false }.run(place, context);
        }
        let (by, descending) = self.sort.strip_prefix('-').map_or((self.sort.as_str(), false), |by| (by, true));
        let sort = match by.to_ascii_lowercase().as_str() {
            "date" => Sort::Date,
            "id" => Sort::Id,
            _ => Sort::Attribute(by.to_owned()),
        };
        let search = Search { books: self.book.clone(), query: self.query.join(" "), sort, descending, ..Search::default() };
        if name == "pdf" {
            return self.pdf(search, place, context);
        }
        if name == "eln" {
            return self.archive(&search, place, context);
        }
        let format: Format =
            self.format.parse().map_err(|error: export::BadFormat| Failure::Usage(format!("{error}, eln, pdf, html or elog")))?;
        let abandoned = Abandoned::watch(&context.interrupt);
        let pieces: Pieces = match place.remote("")? {
            Some(hub) => {
                let from = hub.export(&search, format, &abandoned.stop).map_err(|error| abandoned.or(refused(error)))?;
                Box::new(read(from, abandoned.stop.clone()))
            }
            None => {
                let store: Box<dyn Entries> = place.open()?;
                let store: Arc<dyn Entries> = Arc::from(store);
                export::export(store, search, format, abandoned.stop.clone()).map_err(failed)?
            }
        };
        let piece = |piece: io::Result<Vec<u8>>| piece.map_err(|error| abandoned.or(Failure::Failed(error.to_string())));
        match &self.output {
            Some(path) => {
                let io = |error| Failure::failed(path.display(), error);
                let mut out = io::BufWriter::new(File::create(path).map_err(io)?);
                for one in pieces {
                    out.write_all(&piece(one)?).map_err(io)?;
                }
                out.flush().map_err(io)
            }
            None => {
                let mut out = io::stdout().lock();
                for one in pieces {
                    written(out.write_all(&piece(one)?))?;
                }
                written(out.flush())
            }
        }
    }
}

/// Returns the logbook of a hub or of a directory.
fn logbook(place: &Place) -> Result<Arc<dyn Logbook>, Failure> {
    Ok(match place.remote("")? {
        Some(hub) => Arc::new(hub),
        None => Arc::from(place.open()? as Box<dyn Logbook>),
    })
}

fn folder_error(error: FolderError, abandoned: &Abandoned) -> Failure {
    match error {
        FolderError::Store(error) => abandoned.or(failed(error)),
        error => abandoned.or(Failure::Failed(error.to_string())),
    }
}

impl Export {
    /// Writes what a search finds as an archive for electronic lab notebooks.
    fn archive(&self, search: &Search, place: &Place, context: &Context) -> Outcome {
        let needs = || Failure::Usage("--format eln needs a file: --output FILE.eln".to_owned());
        let path = self.output.as_ref().ok_or_else(needs)?;
        let bar = progress::work("exporting");
        let abandoned = Abandoned::watch(&context.interrupt);
        let done = export_eln(&logbook(place)?, search, path, time_expression::now(), &abandoned.stop, &mut |done| {
            bar.set_position(done);
            !context.interrupt.asked()
        });
        bar.finish_and_clear();
        report(done.map_err(|error| folder_error(error, &abandoned))?)
    }

    /// Writes logbooks as a folder of pages.
    fn pages(&self, folder: &Path, place: &Place, context: &Context) -> Outcome {
        let store = logbook(place)?;
        let bar = progress::work("exporting");
        let abandoned = Abandoned::watch(&context.interrupt);
        let done = export_html(&store, &self.book, folder, &abandoned.stop, &mut |done, total| {
            bar.set_length(total);
            bar.set_position(done);
            !context.interrupt.asked()
        });
        bar.finish_and_clear();
        report(done.map_err(|error| folder_error(error, &abandoned))?)
    }
}

/// Prints the numbers of an export, and the content that it lacks.
fn report(done: Exported) -> Outcome {
    done.notes.iter().for_each(|note| eprintln!("{}", shown(note, false)));
    let (books, entries) = (counted(done.books, "logbook"), counted(done.entries, "entry"));
    written(writeln!(io::stdout().lock(), "{books}, {entries}, {}", counted(done.attachments, "attachment")))?;
    if done.interrupted { Err(Failure::Failed("interrupted: the export is not complete".to_owned())) } else { Ok(()) }
}

/// Returns the pieces of a file that a hub makes; nothing follows an error.
fn read(mut from: Box<dyn Read + Send>, stop: Stop) -> impl Iterator<Item = io::Result<Vec<u8>>> + Send {
    let mut ended = false;
    std::iter::from_fn(move || {
        if ended {
            return None;
        }
        if stop.is_stopped() {
            ended = true;
            return Some(Err(io::Error::other("interrupted")));
        }
        let mut piece = vec![0; PIECE];
        let read = loop {
            match from.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        ended = !matches!(read, Ok(1..));
        match read {
            Ok(0) => None,
            Ok(length) => {
                piece.truncate(length);
                Some(Ok(piece))
            }
            Err(error) => Some(Err(io::Error::other(format!("the export ended before its end: {error}")))),
        }
    })
}
