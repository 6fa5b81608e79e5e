//! The times at which a member asks another node for its key.

/// Time after which it asks again, ns: soon without the key, seldom with it or when nothing answers.
const ASK: [u64; 2] = [400_000_000, 2_000_000_000];
/// Questions without an answer after which it asks seldom: most nodes of a site may be without this group.
const SOON: u32 = 10;

/// Questions to a node.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked {
    /// Time of the next one.
    next: u64,
    unanswered: u32,
}

impl Asked {
    /// Reports if a question is due, and notes that it is asked. `is_known` is true if a key of this node is here, `misses` if
    /// datagrams came whose key is not.
    pub fn is_due(&mut self, is_known: bool, misses: bool, now: u64) -> bool {
        if now < self.next && !(misses && now + ASK[1] - ASK[0] >= self.next) {
            return false;
        }
        self.unanswered = if is_known { 0 } else { self.unanswered.saturating_add(1) };
        let is_seldom = if is_known { !misses } else { self.unanswered > SOON };
        self.next = now + ASK[usize::from(is_seldom)];
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: u64 = 100_000_000;

    /// Counts the questions of ten seconds.
    fn count(asked: &mut Asked, is_known: bool, misses: bool, from: u64) -> usize {
        (0..100).filter(|step| asked.is_due(is_known, misses, from + step * STEP)).count()
    }

    #[test]
    fn nodes_without_the_group_are_asked_seldom() {
        let mut asked = Asked::default();
        assert_eq!(count(&mut asked, false, false, 0), 13, "ten soon, the others every two seconds");
        assert_eq!(count(&mut asked, false, false, 100 * STEP), 5);
        assert_eq!(count(&mut asked, false, true, 200 * STEP), 25, "datagrams of an unknown key show that there is one");
        assert_eq!(count(&mut asked, true, false, 300 * STEP), 5);
    }
}
