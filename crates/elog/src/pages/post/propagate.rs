//! `Propagate attributes`: attributes that all entries of a thread have in common.

use http::StatusCode;
use tampu_logbook::{
    entry::{Entry, EntryRef},
    people::{Resource, Right, Rights, Verb, ask},
    store::{EntryEdit, Result, StoreError, pages},
};

use crate::pages::{
    layout,
    post::transfer::{RefusedResponse, failed},
    request::BookRequest,
    settings::has,
};

/// Gives the attributes of an entry that was just written to the other entries of its thread. As in elogd, the
/// configuration allows it, whoever wrote them; the book's policy still holds. If one entry cannot be changed, none is, and
/// the answer says so.
pub fn propagate(request: &BookRequest<'_>, id: u32) -> std::result::Result<(), RefusedResponse> {
    let names = request.settings.propagated();
    if names.is_empty() {
        return Ok(());
    }
    let at = EntryRef::new(&request.book.name, id);
    let changes = changes(request, &at, &names).map_err(|error| failed(request, &error))?;
    let all = Rights([(request.book.name.clone(), Right::ALL.to_vec())].into());
    let forbidden = |entry: &Entry| ask(request.site.store(), request.by(), &all, Verb::Edit, Resource::Entry(entry)).err();
    let why = match changes.iter().find_map(|(entry, _)| Some((entry.at.id, forbidden(entry)?))) {
        Some((id, why)) => format!("entry {id}: {why}"),
        None => match request.site.store().edit_all(changes.into_iter().map(|(_, change)| change).collect(), request.by()) {
            Ok(_) => return Ok(()),
            Err(error @ (StoreError::Locked { .. } | StoreError::Changed { .. } | StoreError::Invalid(_))) => error.to_string(),
            Err(error) => return Err(failed(request, &error)),
        },
    };
    let text =
        format!("Error: entry {id} was saved, but its attributes were not given to the other entries of the thread: {why}");
    Err(Box::new(layout::error(request, StatusCode::CONFLICT, &text)))
}

/// Returns the entries of the thread whose attributes differ, and their changes.
fn changes(request: &BookRequest<'_>, at: &EntryRef, names: &[String]) -> Result<Vec<(Entry, EntryEdit)>> {
    let store = request.site.store();
    let source = store.entry(at)?;
    let mut changes = Vec::new();
    for entry in pages::thread_entries(store, at, true) {
        let entry = entry?;
        let mut content = entry.content.clone();
        for said in source.content.attributes.iter().filter(|said| has(names, &said.name)) {
            match content.attributes.iter_mut().find(|there| there.name == said.name) {
                Some(there) => there.values.clone_from(&said.values),
                None => content.attributes.push(said.clone()),
            }
        }
        if entry.at != *at && content != entry.content {
            let change = EntryEdit { at: entry.at.clone(), expected: entry.revision, content };
            changes.push((entry, change));
        }
    }
    Ok(changes)
}
