//! Changes of the retention that remove records.

use crate::config::{Collector, Config};

/// Returns the setting by which a configuration in place of another may remove records that the other keeps. Nothing here
/// reads the archive, which is the collector's: a tighter limit counts, whether records are beyond it or not.
pub(super) fn tightened(old: &Config, new: &Config) -> Option<&'static str> {
    let (old, new) = (&old.collector, &new.collector);
    let is_tighter = |old: u64, new: u64| new > 0 && (old == 0 || new < old);
    let limits = |of: &Collector| of.keep_days > 0 || of.keep_gb > 0;
    let by_size = new.keep_gb > 0 || new.min_free_gb > 0 && limits(new);
    if is_tighter(old.keep_days, new.keep_days) {
        Some("collector.keep_days")
    } else if is_tighter(old.keep_gb, new.keep_gb) {
        Some("collector.keep_gb")
    } else if new.keep_at_least_days < old.keep_at_least_days && by_size {
        Some("collector.keep_at_least_days")
    } else if new.min_free_gb > old.min_free_gb && limits(new) {
        Some("collector.min_free_gb")
    } else {
        None
    }
}

/// Returns true for a setting that decides how long records are kept.
pub(super) fn is_of_retention(name: &str) -> bool {
    ["collector.keep_days", "collector.keep_gb", "collector.keep_at_least_days", "collector.min_free_gb"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tighter_limit_removes_records_and_a_wider_one_does_not() {
        let of = |[keep_days, keep_gb, keep_at_least_days, min_free_gb]: [u64; 4]| Config {
            collector: Collector { keep_days, keep_gb, keep_at_least_days, min_free_gb, ..Collector::default() },
            ..Config::default()
        };
        for (old, new, expected) in [
            ([0, 0, 7, 2], [365, 0, 7, 2], Some("collector.keep_days")),
            ([365, 0, 7, 2], [30, 0, 7, 2], Some("collector.keep_days")),
            ([30, 0, 7, 2], [365, 0, 7, 2], None),
            ([30, 0, 7, 2], [0, 0, 7, 2], None),
            ([0, 0, 7, 2], [0, 10, 7, 2], Some("collector.keep_gb")),
            ([0, 10, 7, 2], [0, 11, 7, 2], None),
            ([0, 10, 7, 2], [0, 10, 6, 2], Some("collector.keep_at_least_days")),
            ([30, 0, 7, 2], [30, 0, 6, 2], Some("collector.keep_at_least_days")),
            ([30, 0, 7, 0], [30, 0, 6, 0], None),
            ([0, 0, 7, 2], [0, 0, 6, 3], None),
            ([30, 0, 7, 2], [30, 0, 7, 3], Some("collector.min_free_gb")),
            ([30, 0, 7, 2], [30, 0, 8, 1], None),
        ] {
            assert_eq!(tightened(&of(old), &of(new)), expected, "{old:?} to {new:?}");
        }
    }
}
