//! Memory of the datagrams that have arrived, so that a repeated one is dropped. A value without I/O.

/// Numbers behind the last one that are told apart. An older datagram is dropped. More are not in flight: a room of
/// 1 MiB has 4096 datagrams at most.
const SPAN: u64 = 8192;

/// Numbers of the last datagrams.
#[derive(Debug)]
pub(super) struct Replay {
    /// One after the highest number.
    end: u64,
    seen: Vec<u64>,
}

impl Replay {
    pub fn new() -> Replay {
        Replay { end: 0, seen: vec![0; (SPAN / 64) as usize] }
    }

    fn place(number: u64) -> (usize, u64) {
        ((number % SPAN / 64) as usize, 1 << (number % 64))
    }

    /// Returns true if a datagram of this number has not arrived, as far as is known.
    pub fn is_new(&self, number: u64) -> bool {
        let (word, bit) = Replay::place(number);
        number >= self.end || (number + SPAN >= self.end && self.seen[word] & bit == 0)
    }

    /// Notes a datagram that was opened.
    pub fn note(&mut self, number: u64) {
        if number >= self.end {
            if number - self.end >= SPAN {
                self.seen.fill(0);
            } else {
                for passed in self.end..number {
                    let (word, bit) = Replay::place(passed);
                    self.seen[word] &= !bit;
                }
            }
            self.end = number + 1;
        }
        let (word, bit) = Replay::place(number);
        self.seen[word] |= bit;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_number_is_new_twice_and_none_within_the_span_is_refused(
            steps in proptest::collection::vec(prop_oneof![-20i64..20, -9000i64..9000, -30_000i64..30_000], 1..300)
        ) {
            let (mut replay, mut seen, mut at) = (Replay::new(), BTreeSet::new(), 20_000i64);
            for step in steps {
                at = (at + step).max(0);
                let number = at as u64;
                let highest = seen.last().copied();
                let in_span = highest.is_none_or(|highest: u64| number + SPAN > highest);
                let expected = in_span && !seen.contains(&number);
                prop_assert_eq!(replay.is_new(number), expected, "{} after {:?}", number, highest);
                if expected {
                    replay.note(number);
                    seen.insert(number);
                }
            }
        }
    }
}
