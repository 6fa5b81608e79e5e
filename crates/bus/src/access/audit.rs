//! Audit: refused and administrative actions, and the limit that keeps refusals from flooding a log.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::nouns::{Principal, Resource, Verb};

/// An action for the audit.
#[derive(Debug)]
pub struct Act<'a> {
    /// The acting principal.
    pub principal: &'a Principal,
    /// The kind of the action.
    pub verb: Verb,
    /// The object of the action.
    pub resource: &'a Resource,
    /// The outcome of the action.
    pub outcome: Outcome<'a>,
}

/// Outcome of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// Carried out, with details.
    Done(&'a str),
    /// Refused, with the reason.
    Refused(&'a str),
}

/// Refused actions of this process, by verb.
static REFUSED: [AtomicU64; Verb::ALL.len()] = [const { AtomicU64::new(0) }; Verb::ALL.len()];

/// Counts a refused action.
pub(super) fn count(verb: Verb) {
    // The order of `Verb::ALL` is that of the variants.
    REFUSED[verb as usize].fetch_add(1, Ordering::Relaxed);
}

/// Returns the number of actions that this process refused, by verb.
pub fn refusals() -> impl Iterator<Item = (Verb, u64)> {
    Verb::ALL.into_iter().map(|verb| (verb, REFUSED[verb as usize].load(Ordering::Relaxed)))
}

/// Records of one principal and verb that are logged in a period. Further ones are counted.
const IN_PERIOD: u64 = 5;
/// Length of a period.
const PERIOD: Duration = Duration::from_secs(60);
/// Principals and verbs that are counted apart. Further ones share one place.
const PLACES: usize = 1024;

/// Limit for audit records of refusals, for each principal and verb.
#[derive(Debug, Default)]
pub struct RefusalLimit {
    periods: Mutex<HashMap<Option<(Principal, Verb)>, Period>>,
}

#[derive(Debug)]
struct Period {
    began: Instant,
    seen: u64,
}

impl RefusalLimit {
    /// Returns the number of refusals without a record since the last record if this refusal gets one, else `None`.
    pub fn admit(&self, principal: &Principal, verb: Verb, now: Instant) -> Option<u64> {
        let mut periods = self.periods.lock();
        let key = Some((principal.clone(), verb));
        let key = if periods.contains_key(&key) || periods.len() < PLACES { key } else { None };
        let period = periods.entry(key).or_insert(Period { began: now, seen: 0 });
        let mut untold = 0;
        if now.saturating_duration_since(period.began) >= PERIOD {
            untold = period.seen.saturating_sub(IN_PERIOD);
            *period = Period { began: now, seen: 0 };
        }
        period.seen += 1;
        (period.seen <= IN_PERIOD).then_some(untold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_is_five_records_a_minute_and_a_count() {
        let limit = RefusalLimit::default();
        let start = Instant::now();
        let at = |verb, seconds| limit.admit(&Principal::Guest, verb, start + Duration::from_secs(seconds));
        assert_eq!((0..1000).filter(|_| at(Verb::Set, 1).is_some()).count(), 5);
        assert_eq!(at(Verb::Backup, 1), Some(0), "another verb has its own records");
        assert_eq!(at(Verb::Set, 60), None);
        assert_eq!(at(Verb::Set, 61), Some(996));
        assert_eq!(at(Verb::Set, 62), Some(0));
    }

    #[test]
    fn many_names_take_a_bounded_place() {
        let limit = RefusalLimit::default();
        let now = Instant::now();
        let told = (0..5000).filter(|name| limit.admit(&Principal::Login(name.to_string()), Verb::Read, now).is_some()).count();
        assert_eq!(told, PLACES + IN_PERIOD as usize);
        assert_eq!(limit.periods.lock().len(), PLACES + 1);
    }

    #[test]
    fn verbs_stand_in_the_order_of_their_numbers() {
        assert!(Verb::ALL.into_iter().enumerate().all(|(index, verb)| verb as usize == index));
    }
}
