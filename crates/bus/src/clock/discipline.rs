//! Quality of the host's clock: the kernel's report, and detection of steps.
//!
//! The kernel knows whether a reference (NTP, PTP) is followed. It also knows the offset of TAI from UTC, if it was
//! set. It does not report a step of UTC. But only a step moves UTC against the time since boot, because both are
//! slewed alike. The check costs a system call, so it runs once a [`PERIOD`] at most, not once a batch.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use tampu_types::{BatchHeader, ClockState};

use super::kernel;

/// Time in ns for which an answer of the kernel is used.
const PERIOD: u64 = 1_000_000_000;

/// Smallest reported step in ns. Without a step, two readings are never that far apart.
const STEP: u64 = 10_000_000;

/// Largest distance of the two readings around a third, in ns. A process interrupted between them reads again.
const CLOSE: u64 = 1_000_000;

/// Quality of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Discipline {
    /// State of the synchronisation with a reference.
    pub state: ClockState,
    /// TAI - UTC in seconds, 0 where unknown.
    pub tai_offset: i16,
    /// Largest error, if known.
    pub error: Option<Duration>,
    /// Number of steps since the first check.
    pub steps: u32,
}

impl Discipline {
    fn of(told: Option<kernel::Told>) -> Discipline {
        let Some(told) = told else { return Discipline::default() };
        Discipline {
            state: if told.synchronised { ClockState::Synchronised } else { ClockState::Free },
            tai_offset: i16::try_from(told.tai_offset).unwrap_or_default(),
            // Without a synchronised clock, the kernel's error estimate has no meaning.
            error: told.synchronised.then(|| u64::try_from(told.error_us).map(Duration::from_micros).ok()).flatten(),
            steps: 0,
        }
    }
}

/// Asks this host's kernel.
pub fn of_this_host() -> Discipline {
    Discipline::of(kernel::ask())
}

/// Periodic check of a host's clock.
#[derive(Debug, Default)]
pub(super) struct Watch(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// Time of the last check, in monotonic ns.
    at: Option<u64>,
    discipline: Discipline,
    /// UTC minus time since boot, in ns, if it could be read.
    ahead: Option<i64>,
}

impl Watch {
    /// Returns the clock's state, at most a period old.
    pub(super) fn look(&self, now: u64) -> Discipline {
        self.look_with(now, || (of_this_host(), utc_ahead_of_boot()))
    }

    fn look_with(&self, now: u64, read: impl FnOnce() -> (Discipline, Option<i64>)) -> Discipline {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.at.is_none_or(|at| now >= at + PERIOD) {
            let (discipline, ahead) = read();
            let stepped = matches!((seen.ahead, ahead), (Some(before), Some(ahead)) if before.abs_diff(ahead) > STEP);
            let steps = seen.discipline.steps.wrapping_add(u32::from(stepped));
            *seen = Seen { at: Some(now), discipline: Discipline { steps, ..discipline }, ahead: ahead.or(seen.ahead) };
        }
        seen.discipline
    }
}

/// Distance from the time since boot to UTC, in ns; `None` if this process was interrupted at each reading.
fn utc_ahead_of_boot() -> Option<i64> {
    let ns = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    (0..3).find_map(|_| {
        let (before, utc, after) = (ns(ClockId::Boottime), ns(ClockId::Realtime), ns(ClockId::Boottime));
        (after.abs_diff(before) <= CLOSE).then_some(utc - before)
    })
}

/// Clock state as the batches of one stream have reported it.
#[derive(Debug, Default)]
pub(crate) struct Told {
    steps: Option<u32>,
}

impl Told {
    /// Writes the clock's state into the header of a batch that is sealed at present. A step is reported once, by the
    /// first batch after it, in any state of the clock.
    pub(crate) fn stamp(&mut self, header: &mut BatchHeader, discipline: Discipline) {
        let stepped = self.steps.replace(discipline.steps).is_some_and(|before| before != discipline.steps);
        header.clock = if stepped { ClockState::Stepped } else { discipline.state };
        header.tai_offset = discipline.tai_offset;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLLOWS: kernel::Told = kernel::Told { synchronised: true, tai_offset: 37, error_us: 12 };

    #[test]
    fn what_the_kernel_says_is_what_is_told() {
        let good = Discipline::of(Some(FOLLOWS));
        assert_eq!((good.state, good.tai_offset), (ClockState::Synchronised, 37));
        assert_eq!(good.error, Some(Duration::from_micros(12)));
        let free = Discipline::of(Some(kernel::Told { synchronised: false, ..FOLLOWS }));
        assert_eq!((free.state, free.error), (ClockState::Free, None));
        assert_eq!(Discipline::of(None), Discipline::default());
        assert_eq!(Discipline::default().state, ClockState::Unknown);
        let absurd = Discipline::of(Some(kernel::Told { tai_offset: 70_000, error_us: -1, ..FOLLOWS }));
        assert_eq!((absurd.tai_offset, absurd.error), (0, None));
    }

    #[test]
    fn the_kernel_is_asked_once_a_second_at_most() {
        let watch = Watch::default();
        let mut asked = 0;
        for now in (0..3 * PERIOD).step_by(PERIOD as usize / 1000) {
            watch.look_with(now, || {
                asked += 1;
                (Discipline::of(Some(FOLLOWS)), Some(0))
            });
        }
        assert_eq!(asked, 3);
        assert_eq!(watch.look_with(0, || unreachable!("not asked again")).tai_offset, 37);
    }

    #[test]
    fn a_step_is_seen_and_noise_is_none() {
        let watch = Watch::default();
        let mut now = 0;
        let mut steps = |ahead| {
            now += PERIOD;
            watch.look_with(now, || (Discipline::of(Some(FOLLOWS)), ahead)).steps
        };
        assert_eq!(steps(Some(1_000_000_000)), 0);
        assert_eq!(steps(Some(1_000_000_000 + CLOSE as i64)), 0);
        assert_eq!(steps(None), 0, "an interrupted reading says nothing");
        assert_eq!(steps(Some(2_000_000_000)), 1, "a leap second, or somebody set the clock");
        assert_eq!(steps(Some(2_000_000_000)), 1);
        assert_eq!(steps(Some(0)), 2);
    }

    #[test]
    fn this_hosts_clock_can_be_read_twice_without_a_step() {
        if let (Some(one), Some(two)) = (utc_ahead_of_boot(), utc_ahead_of_boot()) {
            assert!(one.abs_diff(two) <= STEP, "{one} {two}");
        }
        assert_eq!(Watch::default().look(0).state, of_this_host().state);
    }
}
