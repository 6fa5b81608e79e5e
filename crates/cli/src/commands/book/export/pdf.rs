//! `tampu book export --format pdf`: a hub makes the PDF in its own layout; for a directory or a database, this program does.

use std::{
    fs,
    io::{self, Write},
    path::Path,
    sync::Arc,
};

use tampu_logbook::{
    export::pdf::{
        PdfError,
        collect::{Collector, PdfContext},
        typeset::Typesetter,
    },
    search::Search,
    store::Logbook,
};

use super::Export;
use crate::{
    commands::book::{
        abandon::Abandoned,
        place::{Place, failed, refused},
        text::shown,
    },
    context::Context,
    failure::{Failure, Outcome, written},
    plural::counted,
    time_expression,
};

impl Export {
    /// Writes what a search finds as PDF.
    pub(super) fn pdf(&self, search: Search, place: &Place, context: &Context) -> Outcome {
        let needs = || Failure::Usage("--format pdf needs a file: --output FILE.pdf".to_owned());
        let path = self.output.as_ref().ok_or_else(needs)?;
        let abandoned = Abandoned::watch(&context.interrupt);
        if let Some(hub) = place.remote("")? {
            if self.layout.is_some() || !self.layout_file.is_empty() {
                let why = "--layout and --layout-file are for logbooks in a directory or a database (--data); a hub has its own layout, pdf_layout of [book]";
                return Err(Failure::Usage(why.to_owned()));
            }
            let mut from = hub.export_pdf(&search, self.thread, &abandoned.stop).map_err(|error| abandoned.or(refused(error)))?;
            let mut out = Vec::new();
            from.read_to_end(&mut out).map_err(|error| Failure::Failed(format!("the PDF ended before its end: {error}")))?;
            return store(path, &out);
        }
        let wrong = |error: PdfError| match error {
            PdfError::Store(error) => abandoned.or(failed(error)),
            error @ (PdfError::NotBuilt | PdfError::TooLarge { .. } | PdfError::Layout { .. } | PdfError::File { .. }) => {
                Failure::Usage(error.to_string())
            }
            error => abandoned.or(Failure::Failed(error.to_string())),
        };
        let typesetter = Typesetter::new(self.layout.as_deref(), &self.layout_file).map_err(wrong)?;
        let logbook: Arc<dyn Logbook> = Arc::from(place.open()? as Box<dyn Logbook>);
        let (now, stop, query) = (time_expression::now(), abandoned.stop.clone(), search.query.clone());
        let mut collector = Collector::new(logbook, PdfContext { shown: Vec::new(), base: None, now, stop });
        collector.search(search, self.thread).map_err(wrong)?;
        let document = collector.finish("", &query);
        let entries = document.entries.len() as u64;
        let made = typesetter.pdf(document).map_err(wrong)?;
        store(path, &made.bytes)?;
        made.notes.iter().for_each(|note| eprintln!("{}", shown(note, false)));
        let (entries, pages) = (counted(entries, "entry"), counted(made.pages as u64, "page"));
        written(writeln!(io::stdout().lock(), "{entries}, {pages}"))
    }
}

fn store(path: &Path, bytes: &[u8]) -> Outcome {
    fs::write(path, bytes).map_err(|error| Failure::failed(path.display(), error))
}
