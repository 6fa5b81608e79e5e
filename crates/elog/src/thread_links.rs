//! Threads of a book, derived from the parent that each entry names.

use std::collections::{HashMap, HashSet};

/// The position of an entry in its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadLink {
    /// The parent, if it exists.
    pub parent: Option<u32>,
    /// The first entry of its thread.
    pub thread: u32,
    /// The reason for a named parent that is not used.
    pub broken: Option<BrokenLink>,
}

/// The reason for a named parent that is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokenLink {
    /// The parent does not exist.
    Missing(u32),
    /// The parent is a reply to one of its own replies.
    Circle,
}

/// The threads of a book. Only entries that name a parent take room.
#[derive(Debug)]
pub struct ThreadLinks(HashMap<u32, ThreadLink>);

impl ThreadLinks {
    /// Finds the threads from the ids of all entries and the parents that they name. The result does not depend on the order of
    /// the entries.
    pub fn new(entries: impl Iterator<Item = (u32, Option<u32>)>) -> ThreadLinks {
        let (mut ids, mut parents): (Vec<u32>, HashMap<u32, u32>) = Default::default();
        for (id, parent) in entries {
            ids.push(id);
            // The last one of an id counts.
            match parent {
                Some(parent) => parents.insert(id, parent),
                None => parents.remove(&id),
            };
        }
        ids.sort_unstable();
        let is_there = |id: u32| ids.binary_search(&id).is_ok();
        let mut replies: Vec<u32> = parents.keys().copied().collect();
        replies.sort_unstable();
        let mut roots: HashMap<u32, u32> = HashMap::with_capacity(replies.len());
        for &id in &replies {
            let (mut way, mut passed, mut here) = (vec![id], HashSet::from([id]), id);
            let root = loop {
                if let Some(&root) = roots.get(&here) {
                    break root;
                }
                match parents.get(&here).copied().filter(|up| is_there(*up)) {
                    // The first entry found of a circle begins it.
                    Some(up) if !passed.insert(up) => break here,
                    Some(up) => {
                        way.push(up);
                        here = up;
                    }
                    None => break here,
                }
            };
            roots.extend(way.into_iter().map(|member| (member, root)));
        }
        let line = |(id, parent): (u32, u32)| {
            let thread = roots.get(&id).copied().unwrap_or(id);
            let (parent, broken) = match parent {
                parent if !is_there(parent) => (None, Some(BrokenLink::Missing(parent))),
                // In a circle of replies, the entry that begins the thread has no parent.
                _ if thread == id => (None, Some(BrokenLink::Circle)),
                parent => (Some(parent), None),
            };
            (id, ThreadLink { parent, thread, broken })
        };
        ThreadLinks(parents.iter().map(|(id, parent)| line((*id, *parent))).collect())
    }

    /// Returns the position of an entry.
    pub fn of(&self, id: u32) -> ThreadLink {
        self.0.get(&id).copied().unwrap_or(ThreadLink { parent: None, thread: id, broken: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_found_from_answers_in_any_order() {
        let line = |parent, thread, broken| ThreadLink { parent, thread, broken };
        let mut entries = vec![
            (1, None),
            (2, Some(1)),
            (3, Some(2)),
            (4, Some(99)),
            (5, Some(4)),
            (6, Some(7)),
            (7, Some(6)),
            (8, Some(7)),
            (9, Some(9)),
        ];
        for _ in 0..entries.len() {
            entries.rotate_left(1);
            let lines = ThreadLinks::new(entries.iter().copied());
            assert_eq!((lines.of(1), lines.of(3)), (line(None, 1, None), line(Some(2), 1, None)));
            assert_eq!((lines.of(4), lines.of(5)), (line(None, 4, Some(BrokenLink::Missing(99))), line(Some(4), 4, None)));
            assert_eq!((lines.of(6).thread, lines.of(7).thread, lines.of(8).thread), (7, 7, 7));
            assert_eq!(
                (lines.of(6).parent, lines.of(7), lines.of(8).parent),
                (Some(7), line(None, 7, Some(BrokenLink::Circle)), Some(7))
            );
            assert_eq!(lines.of(9), line(None, 9, Some(BrokenLink::Circle)));
        }
        let long = ThreadLinks::new((1u32..50_000).map(|id| (id, id.checked_sub(1).filter(|up| *up > 0))));
        assert!((1..50_000).all(|id| long.of(id).thread == 1));
    }
}
