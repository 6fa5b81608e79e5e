//! The directory of a Parquet file: the UTC day on which its records were received, or `far`.
//!
//! The reception is told by the collector's own clock, so one compaction writes few files. A record's own time is its sender's
//! word: one sender whose clock walks through the centuries would have a file written for each of its days. Records whose own
//! time is far from their reception share one file a compaction, whatever their times are; searches find them by the times
//! that the manifest has of each file.

use std::collections::BTreeMap;

use tampu_types::Time;

const DAY: i64 = 86_400_000_000_000;
/// Largest difference between a record's own time and its reception at which it is kept by day, in ns.
const NEAR: u64 = 2 * DAY as u64;

/// Name of the directory of records from far away.
pub(crate) const FAR: &str = "far";

/// A directory of Parquet files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Partition {
    /// Records received on this day, counted since 1970.
    Day(i64),
    /// Records whose own time is more than two days from their reception.
    Far,
}

impl Partition {
    /// Returns the partition of a record.
    pub(crate) fn of(time: Time, received: Time) -> Partition {
        if time.0.abs_diff(received.0) > NEAR { Partition::Far } else { Partition::Day(received.0.div_euclid(DAY)) }
    }

    /// Returns the name of its directory.
    pub(crate) fn directory(self) -> String {
        match self {
            Partition::Day(day) => {
                let text = Time(day.saturating_mul(DAY)).to_acs();
                text.split('T').next().unwrap_or_default().to_owned()
            }
            Partition::Far => FAR.to_owned(),
        }
    }
}

/// Splits rows by their partitions, and keeps their order in each.
pub(crate) fn split(order: &[u32], partitions: &[Partition]) -> BTreeMap<Partition, Vec<u32>> {
    let mut split: BTreeMap<Partition, Vec<u32>> = BTreeMap::new();
    for &place in order {
        // A row without an entry is a mistake here; it is kept all the same.
        let partition = partitions.get(place as usize).copied().unwrap_or(Partition::Far);
        split.entry(partition).or_default().push(place);
    }
    split
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reception_decides_unless_the_record_is_from_far_away() {
        let noon = 20_000 * DAY + DAY / 2;
        for (time, expected) in [
            (noon, Partition::Day(20_000)),
            (noon - 2 * DAY, Partition::Day(20_000)),
            (noon + 2 * DAY, Partition::Day(20_000)),
            (noon - 2 * DAY - 1, Partition::Far),
            (noon + 2 * DAY + 1, Partition::Far),
            (i64::MIN, Partition::Far),
            (i64::MAX, Partition::Far),
        ] {
            assert_eq!(Partition::of(Time(time), Time(noon)), expected, "{time}");
        }
        assert_eq!((Partition::Day(20_000).directory(), Partition::Far.directory()), ("2024-10-04".into(), "far".into()));
    }

    #[test]
    fn rows_keep_their_order_in_each_partition() {
        let split = split(&[3, 0, 2, 1], &[Partition::Far, Partition::Day(1), Partition::Far, Partition::Day(1)]);
        assert_eq!(split, BTreeMap::from([(Partition::Day(1), vec![3, 1]), (Partition::Far, vec![0, 2])]));
    }
}
