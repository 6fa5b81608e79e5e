//! Entries as PDF: one, its thread, or everything that a search finds. A program without the feature `pdf` says so.

use std::{sync::Arc, time::Duration};

use http::{StatusCode, header};
use tampu_logbook::{
    entry::EntryRef,
    export::pdf::{
        self, MAX_ENTRIES, PdfError,
        collect::{Collector, PdfContext},
        document::PdfDocument,
        typeset::Typesetter,
    },
    search::Search,
    store::Logbook,
};

use super::{
    call::{Answer, Call, GET, Route},
    entries::readable,
};
use crate::{
    clock::now,
    http::{admission::WorkKind, body::ResponseBody, headers::set, problem::Problem, route::Content},
};

/// The time for collecting the entries of a PDF.
const COLLECTING: Duration = Duration::from_secs(30);

/// Routes of PDF.
pub const ROUTES: &[Route] = &[Route {
    path: "/books/{book}/entries/{id}/pdf",
    id: "getEntryPdf",
    what: "Returns an entry as PDF, in the site's layout; 501 if the program was built without the feature 'pdf'",
    query: &[("thread", "boolean", "with its whole thread"), ("inline", "boolean", "shown in the browser and not saved")],
    gives: (200, Content::Bytes(pdf::CONTENT_TYPE)),
    work: WorkKind::Typeset,
    act: entry,
    ..GET
}];

impl From<PdfError> for Problem {
    fn from(error: PdfError) -> Problem {
        let text = error.to_string();
        let problem = |status, kind| Problem::new(status, kind, text.clone());
        match error {
            PdfError::NotBuilt => not_built(),
            PdfError::TooLarge { .. } => problem(StatusCode::PAYLOAD_TOO_LARGE, "too-large")
                .help("narrow the search, or export it in another format, such as markdown"),
            PdfError::Unfinished | PdfError::Page(_) => problem(StatusCode::SERVICE_UNAVAILABLE, "busy").help("try again"),
            PdfError::Store(error) => error.into(),
            // Callers must not see paths on the hub's disk.
            PdfError::Layout { line, message, .. } => {
                let line = line.map(|line| format!(", line {line}")).unwrap_or_default();
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", format!("the layout of the site{line}: {message}"))
                    .help("an administrator of the site corrects the file of pdf_layout, and starts the hub again")
            }
            PdfError::File { .. } => {
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", "a file of the layout cannot be used")
            }
            PdfError::Failed(_) => problem(StatusCode::INTERNAL_SERVER_ERROR, "failed"),
        }
    }
}

fn not_built() -> Problem {
    Problem::new(StatusCode::NOT_IMPLEMENTED, "not-built", PdfError::NotBuilt.to_string())
        .help("GET /api/v1/search/export has other formats")
}

/// Returns the typesetter, if this program has one.
fn typesetter(call: &Call<'_>) -> Result<Arc<Typesetter>, Problem> {
    call.api.typesetter.clone().ok_or_else(not_built)
}

fn collector(call: &Call<'_>) -> Result<Collector, Problem> {
    let store: Arc<dyn Logbook> = call.api.store.clone();
    let base = Some(call.api.settings.elog_url.trim_end_matches('/').to_owned()).filter(|base| !base.is_empty());
    let shown = call.api.people.shown(call.who())?;
    Ok(Collector::new(store, PdfContext { shown, base, now: now(), stop: call.stop.within(COLLECTING) }))
}

fn entry(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let (with_thread, inline) = (call.flag("thread")?, call.flag("inline")?);
    let entry = readable(call)?;
    let typesetter = typesetter(call)?;
    let at: EntryRef = entry.at.clone();
    let mut collector = collector(call)?;
    if with_thread {
        collector.thread(&at)?;
    } else {
        collector.entry(entry)?;
    }
    call.api.looks.count(&at, &call.auth.reader());
    let title = if with_thread { format!("{}/{} and its thread", at.book, at.id) } else { String::new() };
    let name = format!("{}-{}.pdf", at.book, at.id);
    finished(&typesetter, collector.finish(&title, ""), &name, inline)
}

/// Answers with everything that a search finds; with `threads`, each entry with its thread.
pub(super) fn search(call: &Call<'_>, search: Search, threads: bool) -> Result<Answer, Problem> {
    let typesetter = typesetter(call)?;
    let query = search.query.clone();
    let mut collector = collector(call)?;
    collector.search(search, threads)?;
    let document = collector.finish("", &query);
    let make = move || finished(&typesetter, document, "logbook.pdf", false).unwrap_or_else(|problem| problem.answer());
    // The entries were read under the permit of an export.
    Ok(http::Response::new(ResponseBody::Later(WorkKind::Typeset, Box::new(make))))
}

fn finished(typesetter: &Typesetter, document: PdfDocument, name: &str, inline: bool) -> Result<Answer, Problem> {
    debug_assert!(document.entries.len() <= MAX_ENTRIES);
    let made = typesetter.pdf(document)?;
    let mut answer = http::Response::new(ResponseBody::Whole(made.bytes.into()));
    let headers = answer.headers_mut();
    set(headers, header::CONTENT_TYPE, pdf::CONTENT_TYPE);
    let how = if inline { "inline" } else { "attachment" };
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
    set(headers, header::CONTENT_DISPOSITION, &format!("{how}; filename=\"{plain}\""));
    set(headers, header::CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'; style-src 'unsafe-inline'");
    Ok(answer)
}
