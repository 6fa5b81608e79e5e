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
    store::Store,
};

use super::{Place, abandon::Abandoned, elog, failed};
use crate::{
    commands::Context,
    failure::{Failure, Outcome, written},
};

/// Bytes of a hub's file that are read at a time.
const PIECE: usize = 64 << 10;

/// Write what a search finds as a table, as JSON lines, as Markdown, or whole logbooks as ELOG's files
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu book export --query 'type:=Problem last:30d' --format csv > problems.csv\n  \
    tampu book export --book Shift --format markdown -o shift.md\n  tampu book export --format elog -o elog/")]
pub struct Export {
    /// What to look for, as 'tampu book search' has it; nothing finds everything
    #[arg(short, long, default_value = "", hide_default_value = true)]
    query: String,
    /// In this logbook; in several, once for each
    #[arg(short, long, value_name = "NAME")]
    book: Vec<String>,
    /// csv, json, markdown, or elog: whole logbooks, into an empty folder
    #[arg(short, long)]
    format: String,
    /// Order by date, id or an attribute; a minus before it turns it round
    #[arg(long, allow_hyphen_values = true, value_name = "WHAT", default_value = "date")]
    sort: String,
    /// Where to; standard output, if nothing is said. For elog the folder
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
}

impl Export {
    pub fn run(self, place: &Place, context: &Context) -> Outcome {
        if self.format.eq_ignore_ascii_case("elog") {
            let folder = self.output.ok_or_else(|| Failure::Usage("--format elog needs a folder: --output DIR".to_owned()))?;
            if !self.query.is_empty() {
                return Err(Failure::Usage("--format elog writes whole logbooks: it takes no --query".to_owned()));
            }
            return elog::Export { target: folder, book: self.book, json: false }.run(place, context);
        }
        let format: Format =
            self.format.parse().map_err(|error: export::BadFormat| Failure::Usage(format!("{error}, or elog")))?;
        let (by, descending) = self.sort.strip_prefix('-').map_or((self.sort.as_str(), false), |by| (by, true));
        let sort = match by.to_ascii_lowercase().as_str() {
            "date" => Sort::Date,
            "id" => Sort::Id,
            _ => Sort::Attribute(by.to_owned()),
        };
        let search = Search { books: self.book, query: self.query, sort, descending, ..Search::default() };
        let abandoned = Abandoned::watch(&context.interrupt);
        let pieces: Pieces = match place.remote("") {
            Some(hub) => {
                let from = hub.export(&search, format, &abandoned.stop).map_err(|error| abandoned.or(failed(error)))?;
                Box::new(read(from, abandoned.stop.clone()))
            }
            None => {
                let store: Arc<dyn Store> = Arc::from(place.open()?);
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

/// The pieces of a file that a hub makes; nothing comes after an error.
fn read(mut from: Box<dyn Read + Send>, stop: Stop) -> impl Iterator<Item = io::Result<Vec<u8>>> + Send {
    let mut ended = false;
    std::iter::from_fn(move || {
        if ended {
            return None;
        }
        if stop.why().is_some() {
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
