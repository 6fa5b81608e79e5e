//! Summary of the times of many calls.

use serde::{Deserialize, Serialize};

use crate::call::tsc::Scale;

/// Times of calls in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of calls.
    pub calls: u64,
    /// Sum of all times over all threads, as in the published table.
    pub total_ns: f64,
    pub min_ns: f64,
    pub max_ns: f64,
    /// Half of the calls took at most this time.
    pub p50_ns: f64,
    /// 99 % of the calls took at most this time.
    pub p99_ns: f64,
    /// 99.9 % of the calls took at most this time.
    pub p999_ns: f64,
}

impl Summary {
    /// Summarises these times in ticks, in any order.
    pub fn of(mut ticks: Vec<u64>, scale: Scale) -> Summary {
        ticks.sort_unstable();
        let (Some(first), Some(last)) = (ticks.first(), ticks.last()) else { return Summary::default() };
        let ns = |ticks: u64| ticks as f64 * scale.ns_per_tick;
        Summary {
            calls: ticks.len() as u64,
            total_ns: ns(ticks.iter().sum()),
            min_ns: ns(*first),
            max_ns: ns(*last),
            p50_ns: ns(quantile(&ticks, 0.5)),
            p99_ns: ns(quantile(&ticks, 0.99)),
            p999_ns: ns(quantile(&ticks, 0.999)),
        }
    }

    /// Returns the arithmetic mean.
    pub fn average_ns(&self) -> f64 {
        self.total_ns / self.calls.max(1) as f64
    }
}

/// Returns the smallest value that at least this share of the (sorted) values do not exceed.
fn quantile(sorted: &[u64], share: f64) -> u64 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prop_assert, prop_assert_eq, proptest};

    use super::*;

    const NANOSECONDS: Scale = Scale { ns_per_tick: 1.0 };

    #[test]
    fn a_thousand_calls_have_one_that_is_slower_than_the_last_quantile() {
        let summary = Summary::of((1..=1000).rev().collect(), Scale { ns_per_tick: 0.5 });
        assert_eq!((summary.calls, summary.min_ns, summary.max_ns), (1000, 0.5, 500.0));
        assert_eq!((summary.p50_ns, summary.p99_ns, summary.p999_ns), (250.0, 495.0, 499.5));
        assert_eq!((summary.total_ns, summary.average_ns()), (250_250.0, 250.25));
    }

    proptest! {
        #[test]
        fn a_quantile_is_the_first_value_that_enough_calls_do_not_exceed(ticks in vec(0u64..1_000_000, 1..3000)) {
            let summary = Summary::of(ticks.clone(), NANOSECONDS);
            prop_assert_eq!((summary.calls, summary.total_ns), (ticks.len() as u64, ticks.iter().sum::<u64>() as f64));
            prop_assert!(summary.min_ns <= summary.p50_ns && summary.p50_ns <= summary.p99_ns);
            prop_assert!(summary.p99_ns <= summary.p999_ns && summary.p999_ns <= summary.max_ns);
            for (value, per_mille) in [(summary.p50_ns, 500), (summary.p99_ns, 990), (summary.p999_ns, 999)] {
                let share = |holds: &dyn Fn(f64) -> bool| ticks.iter().filter(|tick| holds(**tick as f64)).count() * 1000;
                prop_assert!(share(&|tick| tick <= value) >= per_mille * ticks.len());
                prop_assert!(share(&|tick| tick < value) < per_mille * ticks.len());
            }
        }
    }

    #[test]
    fn few_calls_and_none() {
        let one = Summary::of(vec![7], NANOSECONDS);
        assert_eq!((one.p50_ns, one.p999_ns, one.average_ns()), (7.0, 7.0, 7.0));
        assert_eq!(Summary::of(Vec::new(), NANOSECONDS).average_ns(), 0.0);
    }
}
