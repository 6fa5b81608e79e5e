//! The clock of a log call: ticks at the call, UTC later.
//!
//! Decision: a call reads the processor's own counter, in 10 ns. Any other clock costs more than the whole rest of the
//! call. The reader of the records converts ticks to UTC by *anchors*: moments at which ticks, UTC and the monotonic
//! clock were read together. The drainer takes one anchor a second. The anchors lie in shared memory, so they outlive
//! the process. Between two anchors the time is interpolated; after the last it continues at the rate of the latest
//! two.
//!
//! If the kernel itself does not trust the counter (it is no clock source on this host), ticks are ns of UTC.
//!
//! A step of the system clock is an anchor marked as *step*: UTC and the monotonic clock moved differently. Before it,
//! the time continues as before the step, measured by the monotonic clock. From it on, the new UTC counts. So a step
//! never distorts the times of records, and the order in a ring never depends on either clock.

use std::{fs, sync::OnceLock};

use crate::system::{Clock, ns};

/// Unit of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// The processor's time-stamp counter, which is constant and does not stop.
    Processor,
    /// ns of UTC since 1970.
    Utc,
}

impl Counter {
    /// The counter this host's processes use.
    pub fn of_this_host() -> Counter {
        static CHOSEN: OnceLock<Counter> = OnceLock::new();
        *CHOSEN.get_or_init(choose)
    }

    /// Returns its present value.
    #[inline(always)]
    pub fn ticks(self) -> u64 {
        match self {
            Counter::Processor => processor_ticks(),
            Counter::Utc => utc_ticks(),
        }
    }

    pub(crate) fn number(self) -> u32 {
        match self {
            Counter::Processor => 1,
            Counter::Utc => 2,
        }
    }

    pub(crate) fn from_number(number: u32) -> Option<Counter> {
        [Counter::Processor, Counter::Utc].into_iter().find(|counter| counter.number() == number)
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn processor_ticks() -> u64 {
    // SAFETY: every processor of this architecture has the instruction.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn processor_ticks() -> u64 {
    let ticks: u64;
    // SAFETY: reads the virtual counter, which Linux lets every process read.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
    ticks
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn processor_ticks() -> u64 {
    ns(Clock::Utc) as u64
}

/// Not part of the call where there is a counter.
#[cold]
#[inline(never)]
fn utc_ticks() -> u64 {
    ns(Clock::Utc) as u64
}

fn choose() -> Counter {
    let known = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    if known && is_invariant() && kernel_trusts_it() { Counter::Processor } else { Counter::Utc }
}

/// Returns true if the counter runs at one rate in all states of the processor (`constant_tsc` and `nonstop_tsc`).
#[cfg(target_arch = "x86_64")]
fn is_invariant() -> bool {
    use core::arch::x86_64::__cpuid;
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn is_invariant() -> bool {
    // The architecture defines this counter as invariant.
    true
}

/// The kernel strikes a counter off its list that it found running apart between processors. No list, no objection.
fn kernel_trusts_it() -> bool {
    let listed = fs::read_to_string("/sys/devices/system/clocksource/clocksource0/available_clocksource");
    listed.map_or(true, |listed| listed.split_whitespace().any(|name| matches!(name, "tsc" | "arch_sys_counter")))
}

/// A moment read on all clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Anchor {
    /// Value of the counter, in ticks.
    pub ticks: u64,
    /// UTC, ns since 1970.
    pub utc: i64,
    /// The kernel's monotonic clock, ns.
    pub monotonic: i64,
    /// True if UTC was set between the previous anchor and this one.
    pub step: bool,
}

/// Largest difference that reading UTC and the monotonic clock in sequence explains; a larger one is a step.
const STEP_NS: i64 = 100_000;

impl Anchor {
    /// Now. The best of a few readings, so that being interrupted between two clocks does little harm.
    pub fn take(counter: Counter) -> Anchor {
        let reading = || {
            let before = counter.ticks();
            let (utc, monotonic) = (ns(Clock::Utc), ns(Clock::Monotonic));
            let width = counter.ticks().saturating_sub(before);
            (width, Anchor { ticks: before + width / 2, utc, monotonic, step: false })
        };
        (0..8).map(|_| reading()).min_by_key(|(width, _)| *width).map_or_else(Anchor::default, |(_, anchor)| anchor)
    }

    /// Returns the anchor, marked if UTC was set since `before`.
    pub fn after(mut self, before: &Anchor) -> Anchor {
        let apart = |anchor: &Anchor| i128::from(anchor.utc) - i128::from(anchor.monotonic);
        self.step = (apart(&self) - apart(before)).abs() > i128::from(STEP_NS);
        self
    }
}

/// Turns ticks into UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversion {
    counter: Counter,
    anchors: Vec<Anchor>,
    /// ns and ticks of the longest stretch without a step, for time outside of the anchors.
    rate: (i128, i128),
}

impl Conversion {
    /// Makes a conversion of anchors, the oldest first. Anchors out of order are skipped.
    pub fn new(counter: Counter, anchors: impl IntoIterator<Item = Anchor>) -> Conversion {
        let mut kept: Vec<Anchor> = Vec::new();
        for anchor in anchors {
            if kept.last().is_none_or(|last| anchor.ticks > last.ticks && anchor.monotonic >= last.monotonic) {
                kept.push(anchor);
            }
        }
        let rate = match (kept.first(), kept.last()) {
            (Some(first), Some(last)) if last.ticks > first.ticks => {
                (i128::from(last.monotonic) - i128::from(first.monotonic), i128::from(last.ticks - first.ticks))
            }
            _ => (1, 1),
        };
        Conversion { counter, anchors: kept, rate }
    }

    /// UTC in ns since 1970.
    pub fn utc(&self, ticks: u64) -> i64 {
        self.stretch(ticks).convert(ticks)
    }

    /// Returns the stretch of time around a moment. Calls are in the order of time, so a caller that converts many
    /// moments searches once.
    pub fn stretch(&self, ticks: u64) -> Stretch {
        if self.counter == Counter::Utc {
            return Stretch::new(0, u64::MAX, (0, 0), (1, 1));
        }
        let after = self.anchors.partition_point(|anchor| anchor.ticks <= ticks);
        let nearest = self.anchors.get(after.saturating_sub(1)).copied().unwrap_or_default();
        let (ns, span) = match self.anchors.get(after).filter(|_| after > 0) {
            Some(next) if next.step => (i128::from(next.monotonic) - i128::from(nearest.monotonic), next.ticks - nearest.ticks),
            Some(next) => (i128::from(next.utc) - i128::from(nearest.utc), next.ticks - nearest.ticks),
            None => (self.rate.0, 0),
        };
        let span = if span == 0 { self.rate.1 } else { i128::from(span) };
        let first = if after == 0 { 0 } else { nearest.ticks };
        let last = self.anchors.get(after).map_or(u64::MAX, |next| next.ticks - 1);
        Stretch::new(first, last, (nearest.ticks, nearest.utc), (ns, span))
    }

    /// Steps of the system clock: ticks, and size in ns.
    pub fn steps(&self) -> impl Iterator<Item = (u64, i64)> {
        self.anchors.array_windows().filter(|[_, step]| step.step).map(|[before, step]| {
            let moved = step.utc.wrapping_sub(before.utc).wrapping_sub(step.monotonic.wrapping_sub(before.monotonic));
            (step.ticks, moved)
        })
    }

    /// Unit of a tick.
    pub fn counter(&self) -> Counter {
        self.counter
    }
}

/// Time between two anchors, or outside of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Ticks from which on, and up to which, it holds.
    first: u64,
    last: u64,
    /// A moment in it, in ticks and as UTC.
    ticks: u64,
    utc: i64,
    /// Nanoseconds between the two anchors; `ticks` has the ticks between them.
    ns: i128,
    span: i128,
    /// The stretch in smaller numbers if both fit, as for anchors of a day apart.
    near: Option<StretchCache>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StretchCache {
    ns: u64,
    span: u64,
    /// 2^64 / span: a product replaces the division, which takes five times as long.
    inverse: u64,
}

impl Stretch {
    fn new(first: u64, last: u64, (ticks, utc): (u64, i64), (ns, span): (i128, i128)) -> Stretch {
        let near = match (u64::try_from(ns), u64::try_from(span)) {
            (Ok(ns), Ok(span)) if span > 0 => Some(StretchCache { ns, span, inverse: u64::MAX / span }),
            _ => None,
        };
        Stretch { first, last, ticks, utc, ns, span, near }
    }

    /// UTC in ns since 1970; nothing where this moment lies in another stretch.
    #[inline]
    pub fn utc(&self, ticks: u64) -> Option<i64> {
        (self.first <= ticks && ticks <= self.last).then(|| self.convert(ticks))
    }

    #[inline]
    fn convert(&self, ticks: u64) -> i64 {
        self.convert_near(ticks).unwrap_or_else(|| self.convert_far(ticks))
    }

    #[inline]
    fn convert_near(&self, ticks: u64) -> Option<i64> {
        let StretchCache { ns, span, inverse } = self.near?;
        let product = ticks.checked_sub(self.ticks)?.checked_mul(ns)?;
        // At most one or two less than the quotient; the remainder shows the difference.
        let mut passed = ((u128::from(product) * u128::from(inverse)) >> 64) as u64;
        while product - passed * span >= span {
            passed += 1;
        }
        self.utc.checked_add_unsigned(passed)
    }

    #[cold]
    #[inline(never)]
    fn convert_far(&self, ticks: u64) -> i64 {
        let since = i128::from(ticks) - i128::from(self.ticks);
        // Ticks in a hostile file may have any value: results out of range become the last time.
        let passed = since.checked_mul(self.ns).map_or(0, |product| product / self.span);
        let utc = i128::from(self.utc).saturating_add(passed);
        i64::try_from(utc).unwrap_or(if utc < 0 { i64::MIN } else { i64::MAX })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn anchor(ticks: u64, utc: i64, monotonic: i64) -> Anchor {
        Anchor { ticks, utc, monotonic, step: false }
    }

    #[test]
    fn a_step_is_visible_and_bends_nothing() {
        // Three ticks a ns; at the third anchor the clock was set back by a minute.
        let first = anchor(3_000, 1_000_000_000, 500);
        let second = anchor(6_000, 1_000_001_000, 1500).after(&first);
        let third = anchor(9_000, 1_000_002_000 - 60_000_000_000, 2500).after(&second);
        assert!(!second.step && third.step);
        let conversion = Conversion::new(Counter::Processor, [first, second, third]);
        assert_eq!(conversion.utc(4_500), 1_000_000_500);
        assert_eq!(conversion.utc(8_997), 1_000_001_999, "up to the step as before");
        assert_eq!(conversion.utc(9_000), third.utc);
        assert_eq!(conversion.utc(12_000), third.utc + 1000);
        assert_eq!(conversion.utc(0), 1_000_000_000 - 1000);
        assert_eq!(conversion.steps().collect::<Vec<_>>(), [(9_000, -60_000_000_000)]);
    }

    #[test]
    fn this_hosts_clock_converts_to_what_the_kernel_says() {
        let counter = Counter::of_this_host();
        let first = Anchor::take(counter);
        let mut second = first;
        while second.monotonic - first.monotonic < 5_000_000 {
            second = Anchor::take(counter).after(&first);
        }
        let conversion = Conversion::new(counter, [first, second]);
        let now = Anchor::take(counter);
        assert!((conversion.utc(now.ticks) - now.utc).abs() < 1_000_000, "{conversion:?} {now:?}");
    }

    proptest! {
        #[test]
        fn the_quotient_is_exact(
            ns in prop_oneof![1u64..100, any::<u64>()],
            span in prop_oneof![1u64..100, any::<u64>(), (0u32..63).prop_map(|bits| 1 << bits)],
            ticks in prop_oneof![0u64..10_000_000_000, any::<u64>()],
        ) {
            let stretch = Stretch::new(0, u64::MAX, (0, 5), (ns.into(), span.into()));
            if let Some(utc) = stretch.convert_near(ticks) {
                prop_assert_eq!(utc, stretch.convert_far(ticks));
            } else {
                prop_assert!(span == 0 || u128::from(ns) * u128::from(ticks) > i64::MAX as u128 - 5);
            }
        }

        #[test]
        fn any_anchors_convert_any_ticks(
            anchors in proptest::collection::vec((any::<u64>(), any::<i64>(), any::<i64>(), any::<bool>()), 0..6),
            ticks: u64,
            other: u64,
        ) {
            let anchors = anchors.into_iter().map(|(ticks, utc, monotonic, step)| Anchor { ticks, utc, monotonic, step });
            let conversion = Conversion::new(Counter::Processor, anchors);
            conversion.utc(ticks);
            conversion.steps().count();
            // A stretch returns for its own moments the same as a single conversion, and nothing for others.
            let stretch = conversion.stretch(ticks);
            for moment in [ticks, ticks.wrapping_add(1), other, stretch.first, stretch.last] {
                prop_assert!(stretch.utc(moment).is_none_or(|utc| utc == conversion.utc(moment)));
            }
            prop_assert_eq!(stretch.utc(ticks), Some(conversion.utc(ticks)));
            prop_assert!(stretch.last.checked_add(1).is_none_or(|next| stretch.utc(next).is_none()));
        }

        #[test]
        fn time_does_not_run_backwards_between_good_anchors(
            spans in proptest::collection::vec((1u64..4_000_000_000, 1i64..2_000_000_000), 1..6),
            ticks in proptest::collection::vec(0u64..10_000_000_000, 2..20),
        ) {
            let mut last = anchor(1_000_000, 1_700_000_000_000_000_000, 0);
            let mut anchors = vec![last];
            for (ticks, ns) in spans {
                last = anchor(last.ticks + ticks, last.utc + ns, last.monotonic + ns);
                anchors.push(last);
            }
            let conversion = Conversion::new(Counter::Processor, anchors);
            let mut ticks = ticks;
            ticks.sort_unstable();
            prop_assert!(ticks.windows(2).all(|pair| conversion.utc(pair[0]) <= conversion.utc(pair[1])));
        }
    }
}
