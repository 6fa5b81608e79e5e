//! The lock of an entry while its form is open, in books with `Use Lock`.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use http::StatusCode;
use sha2::{Digest, Sha256};
use tampu_logbook::{attachment::hex, entry::Entry, store::StoreError};

use crate::pages::{author, form::model::EntryForm, html::put, layout::BookPage, request::BookRequest, response::Response};

/// The time for which an entry stays locked after its form was opened.
const LOCKED: Duration = Duration::from_secs(3600);

/// Locks an entry for its form, if the book has locks. Returns a response if another user has locked it.
pub fn lock(request: &BookRequest<'_>, found: &Entry, form: &mut EntryForm) -> Result<(), Box<Response>> {
    // An image that leads here is not a user who edits.
    if !request.settings.use_lock() || request.query.is_on("skiplock") || !request.origin.for_a_page {
        return Ok(());
    }
    let host = request.caller.from.to_string();
    form.lock_key = request.caller.login.is_empty().then(|| fresh_key(request));
    let by = form.lock_key.as_deref().map_or_else(|| request.by().to_owned(), author::guest_with);
    match request.site.store.lock(&found.at, &by, &host, LOCKED) {
        Ok(_) => Ok(()),
        Err(StoreError::Locked { lock, .. }) => Err(Box::new(locked(request, found.at.id, &lock.by, &lock.host))),
        Err(error) => Err(Box::new(request.failed(&error))),
    }
}

/// Returns a key that no other form has.
fn fresh_key(request: &BookRequest<'_>) -> String {
    static FORMS: AtomicU64 = AtomicU64::new(0);
    let nth = FORMS.fetch_add(1, Ordering::Relaxed);
    let of = Sha256::new()
        .chain_update(request.site.config.secret)
        .chain_update(request.now.0.to_be_bytes())
        .chain_update(nth.to_be_bytes());
    hex(&of.chain_update(request.caller.from.to_string()).finalize()[..6])
}

fn locked(request: &BookRequest<'_>, id: u32, by: &str, host: &str) -> Response {
    let mut body = String::from("<table class=\"dlgframe\"><tr><td class=\"errormsg\">");
    let by = if by.starts_with(author::GUEST) { author::GUEST } else { by };
    put!(&mut body, "Entry is currently edited by {} on {}</td></tr>\n", by, host);
    put!(
        &mut body,
        "<tr><td><a href=\"{}?cmd=Edit&amp;skiplock=1\">Edit it anyway</a> | <a href=\"{}\">Cancel</a></td></tr></table>\n",
        id,
        id
    );
    BookPage::new(request, "Locked", body).answer(StatusCode::OK)
}
