//! `resubmit`: a changed entry becomes a new one.

use std::collections::HashMap;

use http::StatusCode;
use tampu_logbook::{
    attachment::Upload,
    entry::{Content, Entry, EntryRef, NewEntry},
    people::Verb,
    store::{StoreError, pages},
};
use tampu_types::Time;

use crate::pages::{
    layout,
    post::{
        conflict::{expected, holder, is_answered, past_lock},
        transfer::{RefusedResponse, failed, family, may_change, may_delete},
    },
    request::BookRequest,
    response::LoggedFailure,
    sent::ReceivedForm,
};

/// Posts a changed entry again with a new number and date, and deletes the old one. With `Resubmit replies` the replies
/// come with it. If another user has locked or changed it, nothing happens.
pub fn resubmit(
    request: &BookRequest<'_>,
    form: &ReceivedForm,
    old: &Entry,
    content: Content,
    uploads: Vec<Upload>,
) -> Result<u32, RefusedResponse> {
    let store = request.site.store();
    may_change(request, old, Verb::Delete)?;
    let takes_replies = request.settings.resubmits_replies();
    let family = if takes_replies { family(request, old.at.id)? } else { vec![old.at.id] };
    if takes_replies {
        may_delete(request, old.at.id, &family)?;
    } else if is_answered(request, old.at.id)? {
        let text = "Error: this entry has been answered, and stays where it is: send it without \"Resubmit as new entry\", or write a reply";
        return Err(Box::new(layout::error(request, StatusCode::CONFLICT, text)));
    }
    expected(request, form, old)?;
    let own = [request.by().to_owned(), holder(request, form)];
    let lock = store.locked(&old.at).map_err(|error| failed(request, &error))?.filter(|lock| !own.contains(&lock.by));
    if let Some(lock) = lock.filter(|_| !form.is("skiplock")) {
        return Err(failed(request, &StoreError::Locked { at: old.at.clone(), lock: Box::new(lock) }));
    }
    let zone = request.zone.minutes(request.now, 0);
    let new = NewEntry { book: request.book.name.clone(), parent: old.parent, content, date: Some(request.now), zone };
    let at = store.post(new, uploads, request.by()).map_err(|error| failed(request, &error))?;
    let gone = past_lock(request, form, old, || {
        replies(request, &old.at, &at, &family)?;
        store.delete_seen(&old.at, request.by(), &family).map(|_| ())
    });
    if let Err(refused) = gone {
        // The old entry was locked or deleted at the last moment: the new one is deleted. If that fails too, the response names both.
        return Err(match store.delete(&at, request.by(), true) {
            Ok(_) => refused,
            Err(error) => {
                let text = format!("Error: entry {} was posted, but entry {} could not be deleted for it", at.id, old.at.id);
                let mut answer = layout::error(request, StatusCode::INTERNAL_SERVER_ERROR, &text);
                answer.extensions_mut().insert(LoggedFailure(error.to_string()));
                Box::new(answer)
            }
        });
    }
    Ok(at.id)
}

/// Posts the replies to an entry again, as replies to its successor: parents before their replies, all with today's date.
fn replies(request: &BookRequest<'_>, old: &EntryRef, new: &EntryRef, family: &[u32]) -> tampu_logbook::store::Result<()> {
    if family.len() < 2 {
        return Ok(());
    }
    let store = request.site.store();
    let mut entries: HashMap<u32, Entry> = HashMap::new();
    for entry in pages::thread_entries(store, old, true) {
        let entry = entry?;
        entries.insert(entry.at.id, entry);
    }
    let mut posts: Vec<(NewEntry, Option<usize>)> = Vec::new();
    // The position of an entry among the new ones.
    let mut places: HashMap<u32, usize> = HashMap::new();
    let zone = request.zone.minutes(request.now, 0);
    for entry in family[1..].iter().filter_map(|id| entries.remove(id)) {
        places.insert(entry.at.id, posts.len());
        let place = entry.parent.and_then(|parent| places.get(&parent).copied());
        // The entries of a thread stand in the order of their dates.
        let date = Some(Time(request.now.0 + (posts.len() as i64 + 1) * 1_000));
        let parent = Some(new.id).filter(|_| place.is_none());
        posts.push((NewEntry { book: request.book.name.clone(), parent, content: entry.content, date, zone }, place));
    }
    store.post_all(posts, request.by()).map(drop)
}
