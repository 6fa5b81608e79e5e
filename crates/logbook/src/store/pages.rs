//! Threads and histories as a whole, read page by page.

use std::collections::{HashMap, HashSet, VecDeque};

use super::{Entries, PagePart, Result};
use crate::entry::{Entry, EntryRef, Revision};

/// Reads all pages, one after the other, as far as the iterator is used.
fn all_of<'a, T: 'a>(page: impl Fn(PagePart) -> Result<(Vec<T>, Option<i64>)> + 'a) -> impl Iterator<Item = Result<T>> + 'a {
    let (mut ready, mut part) = (VecDeque::new(), Some(PagePart::default()));
    std::iter::from_fn(move || {
        while ready.is_empty() {
            match page(part.take()?) {
                Ok((read, next)) => {
                    ready.extend(read);
                    part = next.map(|after| PagePart { after: Some(after), ..PagePart::default() });
                }
                Err(error) => return Some(Err(error)),
            }
        }
        ready.pop_front().map(Ok)
    })
}

/// The entries of a thread, by date, read page by page.
pub fn thread_entries<'a, S: Entries + ?Sized>(
    store: &'a S,
    at: &'a EntryRef,
    text: bool,
) -> impl Iterator<Item = Result<Entry>> + 'a {
    all_of(move |part| store.thread_page(at, part, text).map(|page| (page.entries, page.next)))
}

/// The revisions of an entry, the oldest first, read page by page.
pub fn revisions<'a, S: Entries + ?Sized>(store: &'a S, at: &'a EntryRef) -> impl Iterator<Item = Result<Revision>> + 'a {
    all_of(move |part| store.history_page(at, part).map(|page| (page.revisions, page.next)))
}

/// Returns the numbers of an entry and of all replies to it: the entry first, and each reply after its parent.
pub fn family<S: Entries + ?Sized>(store: &S, at: &EntryRef) -> Result<Vec<u32>> {
    let mut replies: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in thread_entries(store, at, false) {
        let entry = entry?;
        if let Some(parent) = entry.parent {
            replies.entry(parent).or_default().push(entry.at.id);
        }
    }
    let (mut family, mut known, mut next) = (vec![at.id], HashSet::from([at.id]), 0);
    while let Some(parent) = family.get(next) {
        let replies = replies.remove(parent).unwrap_or_default();
        family.extend(replies.into_iter().filter(|reply| known.insert(*reply)));
        next += 1;
    }
    Ok(family)
}
