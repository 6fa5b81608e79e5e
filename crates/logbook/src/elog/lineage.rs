//! Who answers whom: threads, from what each entry of a book says it answers.

use std::collections::{HashMap, HashSet};

/// Where an entry stands in its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// What it answers, of what is there.
    pub parent: Option<u32>,
    /// The first entry of its thread.
    pub thread: u32,
    /// Why it answers nothing though it says so.
    pub odd: Option<Odd>,
}

/// Why an entry answers nothing though it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Odd {
    /// What it answers is not there.
    Missing(u32),
    /// Its answers lead back to it.
    Circle,
}

/// The lines of all entries of a book, from their ids and what they say they answer. The same entries give the same lines, in whatever order
/// they come.
pub fn lineage(entries: &[(u32, Option<u32>)]) -> HashMap<u32, Line> {
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
                // The first of a circle that is met begins it.
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
        let (parent, odd) = match up(id) {
            Some(parent) if !parents.contains_key(&parent) => (None, Some(Odd::Missing(parent))),
            // In a circle of answers the one that begins the thread answers nothing.
            Some(_) if thread == id => (None, Some(Odd::Circle)),
            parent => (parent, None),
        };
        (id, Line { parent, thread, odd })
    };
    ids.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_found_from_answers_in_any_order() {
        let line = |parent, thread, odd| Line { parent, thread, odd };
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
            let lines = lineage(&entries);
            assert_eq!((lines[&1], lines[&3]), (line(None, 1, None), line(Some(2), 1, None)));
            assert_eq!((lines[&4], lines[&5]), (line(None, 4, Some(Odd::Missing(99))), line(Some(4), 4, None)));
            assert_eq!((lines[&6].thread, lines[&7].thread, lines[&8].thread), (7, 7, 7));
            assert_eq!((lines[&6].parent, lines[&7], lines[&8].parent), (Some(7), line(None, 7, Some(Odd::Circle)), Some(7)));
            assert_eq!(lines[&9], line(None, 9, Some(Odd::Circle)));
        }
        let long: Vec<(u32, Option<u32>)> = (1u32..50_000).map(|id| (id, id.checked_sub(1).filter(|up| *up > 0))).collect();
        assert!(lineage(&long).values().all(|line| line.thread == 1));
    }
}
