//! Conflicts of a change with others: revisions, locks, replies.

use std::time::Duration;

use http::StatusCode;
use tampu_logbook::{entry::Entry, store::StoreError};

use crate::pages::{
    author::guest_with,
    form,
    html::put,
    post::transfer::{RefusedResponse, failed},
    refusal,
    request::BookRequest,
    response::Response,
    sent::ReceivedForm,
};

/// The time for which an entry stays locked if the process ends during a change past a lock.
const CHANGING: Duration = Duration::from_secs(60);

/// Marks the response to a change of an entry that was changed meanwhile.
#[derive(Debug, Clone)]
pub struct EditConflict;

/// Returns true if an entry of the book has a reply.
pub fn is_answered(request: &BookRequest<'_>, id: u32) -> Result<bool, RefusedResponse> {
    let answers = request.site.store().answers(&request.book.name, &[id]).map_err(|error| failed(request, &error))?;
    Ok(!answers.is_empty())
}

/// Returns the revision that is changed: the one the form names, if the entry still has it, else the one that was read.
pub fn expected(request: &BookRequest<'_>, form: &ReceivedForm, old: &Entry) -> Result<u32, RefusedResponse> {
    match form.text("entry_revision").parse::<u32>() {
        Ok(expected) if expected != old.revision => Err(Box::new(changed(request, old))),
        _ => Ok(old.revision),
    }
}

/// Performs an action that a lock forbids to other users. The lock belongs to this form, or to another user if the form
/// overrides the lock; that user is notified when they submit. Meanwhile the caller holds the lock, so no third user
/// can interfere. If the action fails, the lock is returned.
pub fn past_lock(
    request: &BookRequest<'_>,
    form: &ReceivedForm,
    old: &Entry,
    change: impl FnOnce() -> tampu_logbook::store::Result<()>,
) -> Result<(), RefusedResponse> {
    let store = request.site.store();
    let lock = store.locked(&old.at).map_err(|error| failed(request, &error))?.filter(|lock| lock.by != request.by());
    let own = holder(request, form);
    let mut passed = lock.filter(|lock| lock.by == own || form.is("skiplock"));
    if let Some(lock) = &passed {
        let to = (request.by(), &*request.caller.from.to_string());
        if !store.hand_lock(&old.at, &lock.by, to, CHANGING).map_err(|error| failed(request, &error))? {
            // The lock was released, or expired, at this moment.
            passed = None;
        }
    }
    let Err(error) = change() else { return Ok(()) };
    if let Some(lock) = passed {
        let left = u64::try_from(lock.until.0.saturating_sub(request.now.0)).unwrap_or(0);
        // The response reports the failed change, not the lock.
        let _ = store.hand_lock(&old.at, request.by(), (&lock.by, &lock.host), Duration::from_nanos(left));
    }
    match error {
        StoreError::Changed { .. } => Err(Box::new(changed(request, old))),
        error => Err(failed(request, &error)),
    }
}

/// Returns the holder of the lock that belongs to a form: guests have no name, so each of their forms has a key.
pub fn holder(request: &BookRequest<'_>, form: &ReceivedForm) -> String {
    match form.text(form::model::LOCK_KEY) {
        key if request.caller.login.is_empty() && !key.is_empty() => guest_with(key),
        _ => request.by().to_owned(),
    }
}

/// Answers a change of an entry that another user has changed meanwhile.
fn changed(request: &BookRequest<'_>, old: &Entry) -> Response {
    let mut html = String::new();
    put!(&mut html, "Error: entry {} was changed by somebody else while you wrote. ", old.at.id);
    put!(&mut html, "Go back to keep what you wrote, and look at <a href=\"{}\">the current entry</a>.", old.at.id);
    let mut answer = refusal::html_error(request, StatusCode::CONFLICT, &html);
    answer.extensions_mut().insert(EditConflict);
    answer
}
