//! `tampu book export`.

use std::{
    fs::File,
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
};

use clap::Args;
use tampu_logbook::{
    elog::export::export_elog,
    export::{self, Format},
    search::{Search, Sort},
    store::Store,
};

use super::{Place, abandon::Abandoned, failed};
use crate::{
    commands::Context,
    failure::{Failure, Outcome, written},
};

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
        let store = place.open()?;
        if self.format.eq_ignore_ascii_case("elog") {
            let folder = self.output.ok_or_else(|| Failure::Usage("--format elog needs a folder: --output DIR".to_owned()))?;
            if !self.query.is_empty() {
                return Err(Failure::Usage("--format elog writes whole logbooks: it takes no --query".to_owned()));
            }
            let done = export_elog(&*store, &self.book, &folder, &mut |_, _| !context.interrupt.asked());
            let done = done.map_err(|error| Failure::Failed(error.to_string()))?;
            done.notes.iter().for_each(|note| eprintln!("{}", super::shown(note, false)));
            eprintln!("tampu: {} logbooks, {} entries, {} attachments", done.books, done.entries, done.attachments);
            return if done.interrupted {
                Err(Failure::Failed("interrupted: the export is not complete".to_owned()))
            } else {
                Ok(())
            };
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
        let store: Arc<dyn Store> = Arc::from(store);
        let pieces = export::export(store, search, format, abandoned.stop.clone()).map_err(failed)?;
        match &self.output {
            Some(path) => {
                let io = |error| Failure::failed(path.display(), error);
                let mut out = io::BufWriter::new(File::create(path).map_err(io)?);
                for piece in pieces {
                    out.write_all(&piece.map_err(|error| Failure::Failed(error.to_string()))?).map_err(io)?;
                }
                out.flush().map_err(io)
            }
            None => {
                let mut out = io::stdout().lock();
                for piece in pieces {
                    written(out.write_all(&piece.map_err(|error| Failure::Failed(error.to_string()))?))?;
                }
                written(out.flush())
            }
        }
    }
}
