//! A bounded cache of rendered texts, by entry and revision.
//!
//! Sanitising a long text takes up to seconds, and a page is read far more often than it is changed. A revision never
//! changes, so its HTML is rendered once and used until it is evicted.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tampu_types::Time;
use tampu_workers::Stop;

use super::{
    Unfinished,
    room::{TextRoom, leave},
};
use crate::{
    book::same_name,
    entry::{Entry, EntryRef},
};

/// Bytes of HTML in a cache; the texts that were used longest ago are evicted.
pub const CACHE: usize = 8 << 20;

/// The revision of an entry, and the page that its links start from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    at: EntryRef,
    revision: u32,
    changed: Time,
    links: String,
}

/// Rendered texts of entries, and the room for long ones.
#[derive(Debug, Default)]
pub struct RenderCache {
    state: Mutex<State>,
    room: Arc<TextRoom>,
}

#[derive(Debug, Default)]
struct State {
    /// A number that grows with each use, in place of a time.
    clock: u64,
    bytes: usize,
    kept: HashMap<Key, (u64, Arc<String>)>,
}

impl RenderCache {
    /// Returns the HTML of an entry. Renders it unless it is cached, once there is room for it. `links` names the page that its
    /// links start from.
    pub fn html(
        &self,
        entry: &Entry,
        links: &str,
        stop: &Stop,
        render: impl FnOnce() -> Result<String, Unfinished>,
    ) -> Result<Arc<String>, Unfinished> {
        let key = Key { at: entry.at.clone(), revision: entry.revision, changed: entry.changed, links: links.to_owned() };
        if let Some(html) = self.state.lock().find(&key) {
            return Ok(html);
        }
        // The lock is not held while the text is rendered.
        let held = self.room.take(entry.content.text.len(), stop)?;
        let html = Arc::new(render()?);
        self.state.lock().keep(key, &html);
        leave(held);
        Ok(html)
    }
}

impl RenderCache {
    /// Waits for room for an answer with a text that is not rendered here. The thread's answer holds it.
    pub fn hold(&self, text: &str, stop: &Stop) -> Result<(), Unfinished> {
        self.room.take(text.len(), stop).map(leave)
    }

    /// Removes all texts.
    pub fn forget_all(&self) {
        *self.state.lock() = State::default();
    }

    /// Removes all texts of an entry.
    pub fn forget(&self, at: &EntryRef) {
        let mut state = self.state.lock();
        let mut freed = 0;
        state.kept.retain(|key, (_, html)| {
            let stays = key.at.id != at.id || !same_name(&key.at.book, &at.book);
            freed += if stays { 0 } else { size(key, html) };
            stays
        });
        state.bytes -= freed;
    }
}

impl State {
    fn find(&mut self, key: &Key) -> Option<Arc<String>> {
        self.clock += 1;
        let (used, html) = self.kept.get_mut(key)?;
        *used = self.clock;
        Some(html.clone())
    }

    fn keep(&mut self, key: Key, html: &Arc<String>) {
        // One text takes an eighth at most, so that it does not evict all others.
        if html.len() > CACHE / 8 {
            return;
        }
        self.clock += 1;
        self.bytes += size(&key, html);
        if let Some((_, old)) = self.kept.insert(key.clone(), (self.clock, html.clone())) {
            self.bytes -= size(&key, &old);
        }
        if self.bytes <= CACHE {
            return;
        }
        let mut by_use: Vec<(u64, Key)> = self.kept.iter().map(|(key, (used, _))| (*used, key.clone())).collect();
        by_use.sort_unstable_by_key(|(used, _)| *used);
        for (_, key) in by_use {
            // Some room is left, so that the next text does not sort all of them again.
            if self.bytes <= CACHE / 4 * 3 {
                break;
            }
            if let Some((_, html)) = self.kept.remove(&key) {
                self.bytes -= size(&key, &html);
            }
        }
    }
}

/// Returns about how many bytes a cached text takes.
fn size(key: &Key, html: &str) -> usize {
    html.len() + key.links.len() + key.at.book.len() + 128
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Content;

    fn entry(id: u32, revision: u32) -> Entry {
        let at = EntryRef::new("Shift", id);
        let (date, changed) = (Time(0), Time(0));
        Entry {
            at,
            date,
            zone: 0,
            by: String::new(),
            revision,
            changed,
            parent: None,
            thread: id,
            content: Content::default(),
            signatures: vec![],
        }
    }

    #[test]
    fn a_revision_is_rendered_once_and_the_cache_is_bounded() {
        let cache = RenderCache::default();
        let fails = || -> Result<String, Unfinished> { panic!("it is rendered again") };
        let html = |entry: &Entry, links: &str, text: String| cache.html(entry, links, &Stop::default(), || Ok(text)).unwrap();
        assert_eq!(&**html(&entry(1, 0), "a", "first".to_owned()), "first");
        assert_eq!(&**cache.html(&entry(1, 0), "a", &Stop::default(), fails).unwrap(), "first");
        assert_eq!(&**html(&entry(1, 1), "a", "changed".to_owned()), "changed");
        assert_eq!(&**html(&entry(1, 0), "b", "elsewhere".to_owned()), "elsewhere");
        assert_eq!(cache.html(&entry(2, 0), "a", &Stop::default(), || Err(Unfinished)), Err(Unfinished));
        for id in 10..100 {
            html(&entry(id, 0), "a", "x".repeat(CACHE / 20));
            assert!(cache.state.lock().bytes <= CACHE);
            // A text that is used is not evicted.
            assert_eq!(&**cache.html(&entry(1, 0), "a", &Stop::default(), fails).unwrap(), "first");
        }
        html(&entry(3, 0), "a", "x".repeat(CACHE / 2));
        cache.forget(&EntryRef::new("shift", 1));
        assert_eq!(&**html(&entry(1, 0), "a", "again".to_owned()), "again");
        let state = cache.state.lock();
        let sum: usize = state.kept.iter().map(|(key, (_, html))| size(key, html)).sum();
        assert_eq!(
            (
                state.bytes,
                state.kept.contains_key(&Key { at: EntryRef::new("Shift", 3), revision: 0, changed: Time(0), links: "a".into() })
            ),
            (sum, false)
        );
    }
}
