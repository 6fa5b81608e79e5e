//! Ids of records that a viewer has recently shown.
//!
//! After the death of a process, the node or a recovery sends the unacknowledged records of its rings. Some of them may
//! have been sent, and shown, before. An archive keeps each id once. A viewer keeps the last [`LATELY`] ids, which is
//! more than a ring holds that is drained as it fills. Older records are shown again: a viewer that runs for weeks must
//! not grow.

use std::collections::{HashSet, VecDeque};

use tampu_types::RecordId;

/// Ids that are remembered by each reader of a topic; some 5 MB.
pub const LATELY: usize = 65_536;

/// Ids seen lately.
#[derive(Default)]
pub struct Seen {
    ids: HashSet<RecordId>,
    /// The ids in order, the oldest first.
    order: VecDeque<RecordId>,
}

impl Seen {
    /// Returns true if this record is new, as far as ids are remembered. A record without an id is always new.
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
