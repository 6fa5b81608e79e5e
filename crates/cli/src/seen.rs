//! Which records a viewer has seen lately, by their ids.
//!
//! Who takes over the log rings of a process that died sends what nobody had acknowledged, and that may be there already: on the
//! screen too. An archive keeps each id once; a viewer keeps the last [`LATELY`] of what it was sent, which is more than a ring
//! holds that is drained as it fills. What is older than that is shown again: a viewer that runs for weeks must not grow.

use std::collections::{HashSet, VecDeque};

use tampu_types::RecordId;

/// Ids that are remembered by each reader of a topic; some 5 MB.
pub const LATELY: usize = 65_536;

/// Ids seen lately.
#[derive(Default)]
pub struct Seen {
    ids: HashSet<RecordId>,
    /// The same, the oldest first.
    order: VecDeque<RecordId>,
}

impl Seen {
    /// Whether this record comes for the first time, as far as is remembered. One without an id always does.
    pub fn is_new(&mut self, id: Option<RecordId>) -> bool {
        let Some(id) = id else { return true };
        if !self.ids.insert(id) {
            return false;
        }
        if self.order.len() == LATELY
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        self.order.push_back(id);
        true
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::Incarnation;

    use super::*;

    fn id(ring: u32, number: u64) -> Option<RecordId> {
        Some(RecordId { incarnation: Incarnation { boot: 1, pid: 2, start: 3 }, ring, number })
    }

    #[test]
    fn an_id_is_new_once_and_again_when_it_is_forgotten() {
        let mut seen = Seen::default();
        assert!(seen.is_new(id(0, 0)) && seen.is_new(id(1, 0)) && !seen.is_new(id(0, 0)));
        assert!(seen.is_new(None) && seen.is_new(None));
        assert!((1..LATELY as u64 - 1).all(|number| seen.is_new(id(0, number))));
        assert!(!seen.is_new(id(0, 0)), "the oldest is still known");
        assert!(seen.is_new(id(2, 0)));
        assert!(seen.is_new(id(0, 0)), "one more than is remembered");
        assert_eq!((seen.ids.len(), seen.order.len()), (LATELY, LATELY));
    }
}
