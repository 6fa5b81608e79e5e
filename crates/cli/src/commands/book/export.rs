//! `tampu book export`.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::PathBuf,
    sync::Arc,
};

use clap::Args;
use tampu_logbook::{
    export::{self, Format, Pieces},
    search::{Search, Sort, Stop},
    store::Entries,
};

use super::{
    abandon::Abandoned,
    elog,
    place::{Place, failed, refused},
};
use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
};

/// Bytes of a hub's file that are read at a time.
const PIECE: usize = 64 << 10;

/// Write what a search finds as a table, as JSON lines, as Markdown, or whole logbooks as ELOG's files
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu book export 'type:=Problem last:30d' --format csv > problems.csv\n  \
    tampu book export --book Shift --format markdown -o shift.md\n  tampu book export --format elog -o elog/")]
pub struct Export {
    /// The query, as for 'tampu book search'; without one, all entries
    #[arg(value_name = "QUERY")]
    query: Vec<String>,
    /// In this logbook only; repeatable
    #[arg(short, long, value_name = "NAME")]
    book: Vec<String>,
    /// Format: csv, raw-csv (cells as they are, which a spreadsheet may take for formulas), json, markdown, or elog for whole logbooks in an empty directory
    #[arg(short, long, value_name = "FORMAT")]
    format: String,
    /// Sort by date, id or an attribute; a minus before it reverses the order
    #[arg(long, allow_hyphen_values = true, value_name = "COLUMN", default_value = "date")]
    sort: String,
    /// The file, or for elog the directory [default: standard output]
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
}

impl Export {
    pub fn run(self, place: &Place, context: &Context) -> Outcome {
        if self.format.eq_ignore_ascii_case("elog") {
            let folder = self.output.ok_or_else(|| Failure::Usage("--format elog needs a folder: --output DIR".to_owned()))?;
            if !self.query.is_empty() {
                return Err(Failure::Usage("--format elog writes whole logbooks: it takes no query".to_owned()));
            }
            return elog::Export { output: folder, book: self.book, json: false }.run(place, context);
        }
        let format: Format =
            self.format.parse().map_err(|error: export::BadFormat| Failure::Usage(format!("{error}, or elog")))?;
        let (by, descending) = self.sort.strip_prefix('-').map_or((self.sort.as_str(), false), |by| (by, true));
        let sort = match by.to_ascii_lowercase().as_str() {
            "date" => Sort::Date,
            "id" => Sort::Id,
            _ => Sort::Attribute(by.to_owned()),
        };
        let search = Search { books: self.book, query: self.query.join(" "), sort, descending, ..Search::default() };
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
