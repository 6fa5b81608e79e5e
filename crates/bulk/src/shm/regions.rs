//! Lent regions of the memory. The lowest free region comes first, so that a fast flow stays in little memory and in a
//! cache. A value without I/O.

use std::collections::BTreeMap;

/// Alignment of regions in bytes.
const GRAIN: usize = 64;

/// Free parts, by their start.
#[derive(Debug)]
pub(crate) struct Regions {
    free: BTreeMap<usize, usize>,
}

impl Regions {
    /// Makes a set with so many free bytes from a start on.
    pub fn new(begin: usize, size: usize) -> Regions {
        Regions { free: BTreeMap::from([(begin, size)]) }
    }

    fn rounded(length: usize) -> Option<usize> {
        length.max(1).checked_next_multiple_of(GRAIN)
    }

    /// Lends so many bytes; returns their start.
    pub fn lend(&mut self, length: usize) -> Option<usize> {
        let length = Regions::rounded(length)?;
        let (&begin, &size) = self.free.iter().find(|(_, size)| **size >= length)?;
        self.free.remove(&begin);
        if size > length {
            self.free.insert(begin + length, size - length);
        }
        Some(begin)
    }

    /// Returns a lent part to the free ones.
    pub fn take_back(&mut self, begin: usize, length: usize) {
        let Some(mut length) = Regions::rounded(length) else { return };
        let mut begin = begin;
        if let Some(behind) = self.free.remove(&(begin + length)) {
            length += behind;
        }
        if let Some((&before, &size)) = self.free.range(..begin).next_back()
            && before + size == begin
        {
            self.free.remove(&before);
            begin = before;
            length += size;
        }
        self.free.insert(begin, length);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_lent_never_overlaps_and_all_comes_back(steps in proptest::collection::vec((0usize..5000, any::<bool>()), 1..80)) {
            let mut regions = Regions::new(0, 1 << 16);
            let mut lent: Vec<(usize, usize)> = Vec::new();
            for (number, take_back) in steps {
                if take_back && !lent.is_empty() {
                    let (begin, length) = lent.swap_remove(number % lent.len());
                    regions.take_back(begin, length);
                } else if let Some(begin) = regions.lend(number) {
                    prop_assert!(begin + number <= 1 << 16);
                    prop_assert!(lent.iter().all(|(other, length)| begin + number <= *other || other + length <= begin));
                    lent.push((begin, number.max(1)));
                }
            }
            for (begin, length) in lent {
                regions.take_back(begin, length);
            }
            prop_assert_eq!(regions.free, BTreeMap::from([(0, 1 << 16)]));
        }
    }
}
