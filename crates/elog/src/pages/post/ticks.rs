//! `cmd=Tick`: items of an entry's checklist are ticked or not, which is a change of its text.

use tampu_logbook::{checklist, entry::Content, people::Verb, store::StoreError};

use crate::pages::{
    checklist::{REVISION, TICK},
    command::PageCommand,
    post::transfer::{RefusedResponse, allowed, failed, may_change},
    request::BookRequest,
    response::{self, Response},
    sent::ReceivedForm,
};

/// Changes the checklist of an entry, at the revision that the page has shown.
pub fn ticked(request: &BookRequest<'_>, form: &ReceivedForm, id: u32) -> Response {
    try_tick(request, form, id).unwrap_or_else(|refused| *refused)
}

fn try_tick(request: &BookRequest<'_>, form: &ReceivedForm, id: u32) -> Result<Response, RefusedResponse> {
    allowed(request, PageCommand::Edit)?;
    let entry = request.read_entry(id).map_err(|error| failed(request, &error))?;
    may_change(request, &entry, Verb::Edit)?;
    // Another revision may have other items, so a form without a number changes nothing.
    let expected = form.text(REVISION).parse().unwrap_or(u32::MAX);
    if expected != entry.revision {
        return Err(failed(request, &StoreError::Changed { at: entry.at, expected, is: entry.revision }));
    }
    let items = checklist::items(&entry.content).len();
    let done: Vec<bool> = (0..items).map(|nth| form.is(&format!("{TICK}{nth}"))).collect();
    let text = checklist::ticked(&entry.content, &done);
    let content = Content { text, ..entry.content };
    let edited = request.site.store().edit(&entry.at, content, vec![], request.by(), Some(expected));
    edited.map_err(|error| failed(request, &error))?;
    Ok(response::redirect(&request.address(&id.to_string())))
}
