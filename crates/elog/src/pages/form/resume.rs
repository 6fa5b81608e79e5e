//! Drafts: resumed in a form, saved, and deleted.

use http::StatusCode;
use tampu_logbook::{
    book::same_name,
    entry::{Content, Draft},
    store::StoreError,
};

use crate::pages::{
    command::PageCommand,
    entry,
    form::{
        drafts::NUMBER,
        lock::lock,
        model::{EntryForm, empty},
        page::show,
    },
    layout,
    request::BookRequest,
    response::{self, Response},
    sent::ReceivedForm,
    settings::FormOccasion,
};

/// Answers with the form of the draft that the address names; `None` if it names none of the caller's.
pub fn resumed(request: &BookRequest<'_>) -> Option<Response> {
    let number = request.query.number::<i64>("draft").filter(|_| !request.caller.login.is_empty())?;
    let drafts = match request.site.store.drafts(&request.caller.login) {
        Ok(drafts) => drafts,
        Err(error) => return Some(request.failed(&error)),
    };
    let draft = drafts.into_iter().find(|draft| draft.number == number && same_name(&draft.book, &request.book.name))?;
    Some(resume(request, draft).unwrap_or_else(|refused| *refused))
}

fn resume(request: &BookRequest<'_>, draft: Draft) -> Result<Response, Box<Response>> {
    let occasion = match (draft.edits, draft.parent) {
        (Some(_), _) => FormOccasion::Edit,
        (_, Some(_)) => FormOccasion::Reply,
        _ => FormOccasion::New,
    };
    let mut form = empty(request, occasion);
    (form.content, form.draft, form.of) = (draft.content, Some(draft.number), draft.edits.or(draft.parent));
    // New files wait for the console; this form has those of the entry.
    let files = std::mem::take(&mut form.content.attachments);
    if let Some(id) = draft.edits {
        let found = request.read_entry(id).map_err(|error| Box::new(request.failed(&error)))?;
        entry::may_change(request, &found, PageCommand::Edit).map_err(|denied| Box::new(request.refuse(denied)))?;
        lock(request, &found, &mut form)?;
        if found.changed > draft.saved {
            form.error =
                Some(format!("Entry {id} was changed after this draft was saved: sending the draft replaces that change"));
        }
        (form.revision, form.content.attachments) = (Some(found.revision), found.content.attachments);
    }
    let others = files.iter().filter(|file| !form.content.attachments.iter().any(|known| known.sha == file.sha));
    let names: Vec<&str> = others.map(|file| file.name.as_str()).collect();
    if !names.is_empty() {
        form.note = Some(format!("Attach again: {}", names.join(", ")));
    }
    Ok(show(request, &form, StatusCode::OK))
}

/// Returns the number of a form's draft, if the caller has a draft of this number in this logbook. A number of another
/// logbook counts as none.
fn own_number(request: &BookRequest<'_>, sent: &ReceivedForm) -> Result<Option<i64>, StoreError> {
    let Ok(number) = sent.text(NUMBER).parse::<i64>() else { return Ok(None) };
    let drafts = request.site.store.drafts(request.by())?;
    let is_own = |draft: &Draft| draft.number == number && same_name(&draft.book, &request.book.name);
    Ok(drafts.iter().any(is_own).then_some(number))
}

/// Deletes the draft of a form.
pub fn drop_draft(request: &BookRequest<'_>, sent: &ReceivedForm) -> Result<(), StoreError> {
    if let Some(number) = own_number(request, sent)? {
        request.site.store().drop_draft(request.by(), number)?;
    }
    Ok(())
}

/// Saves a form as a draft. A script of ELOG's pages gets its number, the script of forms also a note with the time; others
/// get the form again.
pub fn kept(request: &BookRequest<'_>, sent: &ReceivedForm, mut form: EntryForm) -> Response {
    if request.caller.login.is_empty() {
        return layout::error(request, StatusCode::FORBIDDEN, "Error: log in to save drafts");
    }
    let edits = form.of.filter(|_| form.occasion == FormOccasion::Edit);
    let number = match own_number(request, sent) {
        Ok(number) => number.unwrap_or(0),
        Err(error) => return request.failed(&error),
    };
    let draft = Draft {
        number,
        owner: request.by().to_owned(),
        book: request.book.name.clone(),
        edits,
        parent: form.of.filter(|_| edits.is_none()),
        saved: request.now,
        content: Content { attachments: Vec::new(), ..form.content.clone() },
    };
    let number = match request.site.store().save_draft(&draft) {
        Ok(number) => number,
        Err(error) => return request.failed(&error),
    };
    let scripted = sent.is("scripted");
    if scripted || sent.is("draft") || !request.by_browser {
        let mut text = format!("OK {number}");
        if scripted {
            let time = request.zone.write(request.now, 0, request.settings.time_format(None));
            text.push_str(&format!("\n{} {time}", request.said("Draft saved at", "Draft saved at")));
        }
        return response::with_bytes(StatusCode::OK, "text/plain; charset=utf-8", text.into_bytes());
    }
    form.draft = Some(number);
    form.note = Some("The draft is saved, without new files.".to_owned());
    show(request, &form, StatusCode::OK)
}

/// Deletes a draft of the caller, and answers with the form of a new entry.
pub fn dropped(request: &BookRequest<'_>, sent: &ReceivedForm) -> Response {
    match drop_draft(request, sent) {
        Ok(()) => response::redirect(&request.address("?cmd=New")),
        Err(error) => request.failed(&error),
    }
}
