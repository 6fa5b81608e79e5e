//! Drafts that are offered beside a form, and above a list.

use tampu_logbook::{book::same_name, entry::Draft};

use crate::pages::{command::PageCommand, csrf, form::model::EntryForm, html::put, request::BookRequest, settings::FormOccasion};

/// The field with the number of a draft.
pub const NUMBER: &str = "draft_id";

/// Writes the caller's drafts that fit a form: those of new entries and all others beside an empty form, else those of
/// the same entry.
pub fn offer(request: &BookRequest<'_>, form: &EntryForm, out: &mut String) {
    if request.caller.login.is_empty() {
        return;
    }
    let fits = |draft: &Draft| match form.occasion {
        FormOccasion::New => true,
        FormOccasion::Edit => draft.edits == form.of,
        FormOccasion::Reply | FormOccasion::FirstReply => draft.edits.is_none() && draft.parent == form.of,
        FormOccasion::Duplicate => false,
    };
    write(request, fits, out);
}

/// Writes the caller's drafts of a book above its list, unless `List drafts` or `Save drafts` is 0.
pub fn list(request: &BookRequest<'_>, out: &mut String) {
    if !request.caller.login.is_empty() && request.settings.list_drafts() && request.may(PageCommand::New).is_ok() {
        write(request, |_| true, out);
    }
}

/// Writes some of the caller's drafts of a book.
fn write(request: &BookRequest<'_>, fits: impl Fn(&Draft) -> bool, out: &mut String) {
    // A page is complete without them.
    let drafts = request.site.store.drafts(&request.caller.login).unwrap_or_default();
    let own: Vec<_> = drafts.into_iter().filter(|draft| same_name(&draft.book, &request.book.name) && fits(draft)).collect();
    if own.is_empty() {
        return;
    }
    put!(
        out,
        "<form class=\"drafts\" method=\"post\" action=\"./\">Drafts that you have not sent:\n\
         <input type=\"hidden\" name=\"{}\" value=\"{}\"><input type=\"hidden\" name=\"cmd\" value=\"Drop draft\"><ul>\n",
        csrf::FIELD,
        csrf::token(request.site, request.caller, request.session.as_deref())
    );
    for draft in own {
        let saved = request.zone.write(draft.saved, 0, request.settings.time_format(None));
        let subject = draft.content.attribute("Subject").map(|said| said.joined()).unwrap_or_default();
        put!(out, "<li><a href=\"./?cmd=New&amp;draft={}\">{} {}</a>", draft.number, saved, subject);
        match (draft.edits, draft.parent) {
            (Some(id), _) => put!(out, " (a change of {})", id),
            (_, Some(id)) => put!(out, " (a reply to {})", id),
            _ => {}
        }
        put!(out, " <button type=\"submit\" name=\"{}\" value=\"{}\">Discard</button></li>\n", NUMBER, draft.number);
    }
    out.push_str("</ul></form>\n");
}
