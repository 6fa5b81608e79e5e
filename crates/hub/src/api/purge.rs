//! The purge of an entry: its text goes for good, and the fact stays in the history and in the log.

use tampu_log::notice;
use tampu_logbook::{
    mail::purged::PurgedText,
    people::{Resource, Verb},
    store::purge::{Purge, Purged},
};

use super::call::{Answer, Call, POST, Route, ok};
use crate::http::{problem::Problem, route::json_of};

/// The route of the purge.
pub const ROUTES: &[Route] = &[Route {
    path: "/books/{book}/entries/{id}/purge",
    id: "purgeEntry",
    what: "Removes the texts and files of an entry, of a revision, of all former revisions, or an attachment for good, also from the history. Needs the \
           right 'admin'. The history keeps who purged what, and the reason. The response comes when the files of the store are overwritten",
    takes: json_of::<Purge>(),
    gives: (200, json_of::<Purged>()),
    act: purge,
    ..POST
}];

fn purge(call: &mut Call<'_>) -> Result<Answer, Problem> {
    call.ask(Verb::Administer, Resource::Book(call.var(0)))?;
    let purge: Purge = call.json()?;
    let (at, by) = (call.entry_ref()?, call.by());
    let done = call.api.store.purge(&at, &purge, &by);
    // The store may have removed the texts before an error.
    call.api.rendered.forget(&at);
    call.api.previews.forget_all();
    let done = done?;
    let (from, what) = (call.auth.from, purge.told());
    notice!(call.api.audit, "{by} from {from}: entry {}: {what}", done.at);
    forget_mails(call, PurgedText::Entry(&done.at))?;
    ok(&done)
}

/// Removes the texts of a purge from the queue of mails.
pub(super) fn forget_mails(call: &Call<'_>, purged: PurgedText<'_>) -> Result<(), Problem> {
    let Some(outbox) = call.api.mail.as_deref() else { return Ok(()) };
    let count = outbox.forget(&*call.api.store, purged)?;
    if count > 0 {
        let (by, from) = (call.by(), call.auth.from);
        notice!(call.api.audit, "{by} from {from}: mails with a purged text removed from the queue: {count}");
    }
    Ok(())
}
