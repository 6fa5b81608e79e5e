//! An entry as PDF: `12?mode=PDF`, and with its thread `12?mode=PDF&thread=1`.

use std::sync::Arc;

use http::{
    StatusCode,
    header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, HeaderValue},
};
use tampu_logbook::{
    entry::{Entry, EntryRef},
    export::pdf::{
        self, PdfError,
        collect::{Collector, PdfContext},
        document::{PdfDocument, PdfEntry},
    },
    store::{Logbook, PagePart},
};

use crate::pages::{
    address::Parameters,
    formats::file::BOX,
    layout,
    request::BookRequest,
    response::{self, EntryShown, LoggedFailure, Response},
    values,
};

/// The query of an entry's PDF.
pub const QUERY: &str = "mode=PDF";
/// Entries of a thread that are read at a time.
const PART: usize = 200;

/// Returns true if a query asks for a PDF.
pub fn is_wanted(query: &Parameters) -> bool {
    query.get("mode").is_some_and(|mode| mode.eq_ignore_ascii_case("pdf"))
}

/// Answers with an entry as PDF.
pub fn answer(request: &BookRequest<'_>, id: u32) -> Response {
    let Some(typesetter) = &request.site.pdf else {
        return layout::error(request, StatusCode::NOT_IMPLEMENTED, &PdfError::NotBuilt.to_string());
    };
    let made = collected(request, id).and_then(|document| Ok(typesetter.pdf(document)?.bytes));
    match made {
        Ok(bytes) => {
            let mut answer = response::with_bytes(StatusCode::OK, pdf::CONTENT_TYPE, bytes);
            if let Ok(name) = HeaderValue::from_str(&format!("inline; filename=\"entry-{id}.pdf\"")) {
                answer.headers_mut().insert(CONTENT_DISPOSITION, name);
            }
            answer.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(BOX));
            answer.extensions_mut().insert(EntryShown(EntryRef::new(&request.book.name, id)));
            answer
        }
        Err(PdfError::Store(error)) => request.failed(&error),
        Err(error @ PdfError::TooLarge { .. }) => layout::error(request, StatusCode::PAYLOAD_TOO_LARGE, &error.to_string()),
        Err(error @ (PdfError::Unfinished | PdfError::Page(_))) => {
            layout::error(request, StatusCode::SERVICE_UNAVAILABLE, &error.to_string())
        }
        Err(error) => {
            let text = "No PDF was made; the log of the hub has the reason";
            let mut answer = layout::error(request, StatusCode::INTERNAL_SERVER_ERROR, text);
            answer.extensions_mut().insert(LoggedFailure(error.to_string()));
            answer
        }
    }
}

fn collected(request: &BookRequest<'_>, id: u32) -> Result<PdfDocument, PdfError> {
    let store: Arc<dyn Logbook> = request.site.store.clone();
    let shown = request.shown().map(|shown| (request.book.name.clone(), shown)).into_iter().collect();
    let base = Some(request.base.clone());
    let mut collector = Collector::new(store, PdfContext { shown, base, now: request.now, stop: request.stop.clone() });
    let as_shown = |entry: &mut Entry, made: &mut PdfEntry| as_on_page(request, entry, made);
    if !request.query.is_on("thread") {
        collector.entry_with(request.read_entry(id)?, as_shown)?;
        return Ok(collector.finish("", ""));
    }
    let at = EntryRef::new(&request.book.name, id);
    let mut part = PagePart { after: None, limit: PART };
    loop {
        let page = request.site.store.thread_page(&at, part, true)?;
        for entry in page.entries {
            collector.entry_with(entry, as_shown)?;
        }
        match page.next {
            Some(next) => part.after = Some(next),
            None => return Ok(collector.finish(&format!("{at} and its thread"), "")),
        }
    }
}

/// Leaves out the attributes and files that the page of an entry does not show, and writes values and times as the page does.
fn as_on_page(request: &BookRequest<'_>, entry: &mut Entry, made: &mut PdfEntry) {
    let is_guest = request.caller.login.is_empty();
    made.attributes.retain(|(name, _)| request.settings.shows(name, is_guest));
    for (name, value) in &mut made.attributes {
        *value = values::plain_value(request, entry, name);
    }
    made.date = format!("{} ({})", values::when(request, entry), values::zone(request, entry));
    if !request.settings.show_attachments() {
        entry.content.attachments.clear();
    }
}
