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

/// Returns the threads of a book, from the ids of its entries and the parents that they name. The result does not
/// depend on the order of the entries.
pub fn thread_links(entries: &[(u32, Option<u32>)]) -> HashMap<u32, ThreadLink> {
    let parents: HashMap<u32, Option<u32>> = entries.iter().copied().collect();
    let up = |id: u32| parents.get(&id).copied().flatten();
    let mut ids: Vec<u32> = parents.keys().copied().collect();
    ids.sort_unstable();
    let mut roots: HashMap<u32, u32> = HashMap::with_capacity(ids.len());
    for &id in &ids {
        let (mut way, mut passed, mut here) = (vec![id], HashSet::from([id]), id);
        let root = loop {
            if let Some(&root) = roots.get(&here) {
                break root;
            }
            match up(here).filter(|up| parents.contains_key(up)) {
                // The first entry found of a circle begins it.
                Some(up) if !passed.insert(up) => break here,
                Some(up) => {
                    way.push(up);
                    here = up;
                }
                None => break here,
            }
        };
        way.into_iter().for_each(|member| {
            roots.insert(member, root);
        });
    }
    let line = |id: u32| {
        let thread = roots.get(&id).copied().unwrap_or(id);
        let (parent, broken) = match up(id) {
            Some(parent) if !parents.contains_key(&parent) => (None, Some(BrokenLink::Missing(parent))),
            // In a circle of replies, the entry that begins the thread has no parent.
            Some(_) if thread == id => (None, Some(BrokenLink::Circle)),
            parent => (parent, None),
        };
        (id, ThreadLink { parent, thread, broken })
    };
    ids.into_iter().map(line).collect()
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
            let lines = thread_links(&entries);
            assert_eq!((lines[&1], lines[&3]), (line(None, 1, None), line(Some(2), 1, None)));
            assert_eq!((lines[&4], lines[&5]), (line(None, 4, Some(BrokenLink::Missing(99))), line(Some(4), 4, None)));
            assert_eq!((lines[&6].thread, lines[&7].thread, lines[&8].thread), (7, 7, 7));
            assert_eq!(
                (lines[&6].parent, lines[&7], lines[&8].parent),
                (Some(7), line(None, 7, Some(BrokenLink::Circle)), Some(7))
            );
            assert_eq!(lines[&9], line(None, 9, Some(BrokenLink::Circle)));
        }
        let long: Vec<(u32, Option<u32>)> = (1u32..50_000).map(|id| (id, id.checked_sub(1).filter(|up| *up > 0))).collect();
        assert!(thread_links(&long).values().all(|line| line.thread == 1));
    }
}
