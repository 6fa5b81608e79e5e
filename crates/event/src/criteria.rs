//! Criteria that choose the kinds of event for a reading. `spec/events.md` has the rules and their differences from
//! Tango's.
//!
//! A [`Detector`] is a value: it gets readings with their times and returns kinds. It remembers the reading sent last
//! for each kind; kinds sent together share one copy. The thresholds come with every reading, so a program can change
//! them at any time.

use std::sync::Arc;

use tampu_types::event::{Criteria, Data, Failure, Kinds, Quality, Shape, Thresholds, Value, Values};

pub mod compare;

use compare::differ;

/// Period in ns below which the tolerance is a share of the period. From here on it is a fixed time.
const LONG_PERIOD: u64 = 5_000_000_000;
/// Tolerance of long periods, in ns.
const TOLERANCE: u64 = 100_000_000;

/// One reading of an attribute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading<'a> {
    /// Value of the reading; `None` with errors, or if the quality is invalid.
    pub value: Option<Value<'a>>,
    /// Last written value, for writable attributes.
    pub set_point: Option<Data<'a>>,
    /// Quality of the value.
    pub quality: Quality,
    /// Errors of a failed reading, innermost first; empty if it succeeded.
    pub errors: &'a [Failure],
}

impl<'a> Reading<'a> {
    /// Makes a good reading of this value.
    pub fn of(value: Value<'a>) -> Reading<'a> {
        Reading { value: Some(value), set_point: None, quality: Quality::Valid, errors: &[] }
    }

    /// Makes a failed reading.
    pub fn failed(errors: &'a [Failure]) -> Reading<'a> {
        Reading { value: None, set_point: None, quality: Quality::Invalid, errors }
    }
}

/// Reading that was sent.
#[derive(Debug, Clone, PartialEq)]
struct Sent {
    value: Option<Values>,
    shape: Shape,
    set_point: Option<Values>,
    quality: Quality,
    errors: Vec<Failure>,
}

impl Sent {
    fn of(reading: &Reading<'_>) -> Sent {
        Sent {
            value: reading.value.map(|value| value.data.to_values()),
            shape: reading.value.map_or(Shape::NOTHING, |value| value.shape),
            set_point: reading.set_point.map(Data::to_values),
            quality: reading.quality,
            errors: reading.errors.to_vec(),
        }
    }

    /// Takes over another reading, and reuses the memory.
    fn assign(&mut self, reading: &Reading<'_>) {
        fn refill(into: &mut Option<Values>, from: Option<Data<'_>>) {
            match (into.as_mut(), from) {
                (Some(into), Some(from)) => into.assign(from),
                (_, from) => *into = from.map(Data::to_values),
            }
        }
        refill(&mut self.value, reading.value.map(|value| value.data));
        refill(&mut self.set_point, reading.set_point);
        self.shape = reading.value.map_or(Shape::NOTHING, |value| value.shape);
        self.quality = reading.quality;
        if !(self.errors.is_empty() && reading.errors.is_empty()) {
            self.errors = reading.errors.to_vec();
        }
    }
}

/// Detector of events for one attribute.
#[derive(Debug, Default)]
pub struct Detector {
    change: Option<Arc<Sent>>,
    archive: Option<Arc<Sent>>,
    /// Time of the last archive event, monotonic ns.
    archived_at: Option<u64>,
    /// Time of the last periodic event, monotonic ns.
    periodic_at: Option<u64>,
    /// Quality and errors of the last alarm event.
    alarm: Option<(Quality, Vec<Failure>)>,
}

impl Detector {
    /// Returns the kinds of event for this reading, at this time (monotonic ns), and counts them as sent.
    pub fn judge(&mut self, criteria: &Criteria, reading: &Reading<'_>, now: u64) -> Kinds {
        let kinds = self.due(criteria, reading, now);
        self.sent(kinds, reading, now);
        kinds
    }

    /// Returns the kinds that are due, without counting them. After a successful send, call [`Detector::sent`].
    pub fn due(&self, criteria: &Criteria, reading: &Reading<'_>, now: u64) -> Kinds {
        let mut kinds = Kinds::NONE;
        if beyond(self.change.as_deref(), reading, &criteria.change) {
            kinds |= Kinds::CHANGE;
        }
        let due = |at: Option<u64>, period_ms: u64| at.is_none_or(|at| now.saturating_sub(at) > patience(period_ms));
        let archive_due = criteria.archive_period_ms.is_some_and(|period| due(self.archived_at, period));
        if archive_due || beyond(self.archive.as_deref(), reading, &criteria.archive) {
            kinds |= Kinds::ARCHIVE;
        }
        if due(self.periodic_at, criteria.period_ms) {
            kinds |= Kinds::PERIODIC;
        }
        if self.alarms(reading) {
            kinds |= Kinds::ALARM;
        }
        kinds
    }

    /// Remembers a reading that was sent as these kinds, by any decision. Later readings are compared with it.
    pub fn sent(&mut self, kinds: Kinds, reading: &Reading<'_>, now: u64) {
        match (kinds.intersects(Kinds::CHANGE), kinds.intersects(Kinds::ARCHIVE)) {
            (true, true) => {
                // The archive's memory goes first, so that the other is alone and can be filled again.
                self.archive = None;
                remember(&mut self.change, reading);
                self.archive.clone_from(&self.change);
            }
            (true, false) => remember(&mut self.change, reading),
            (false, true) => remember(&mut self.archive, reading),
            (false, false) => {}
        }
        if kinds.intersects(Kinds::ARCHIVE) {
            self.archived_at = Some(now);
        }
        if kinds.intersects(Kinds::PERIODIC) {
            self.periodic_at = Some(now);
        }
        if kinds.intersects(Kinds::ALARM) {
            self.alarm = Some((reading.quality, reading.errors.to_vec()));
        }
    }

    fn alarms(&self, reading: &Reading<'_>) -> bool {
        let Some((quality, errors)) = &self.alarm else { return true };
        errors != reading.errors
            || reading.errors.is_empty()
                && *quality != reading.quality
                && (quality.is_alarming() || reading.quality.is_alarming())
    }
}

/// Returns the minimum age of the last event before the next one is due, ns.
fn patience(period_ms: u64) -> u64 {
    let period = period_ms.saturating_mul(1_000_000);
    if period < LONG_PERIOD { period / 50 * 49 } else { period - TOLERANCE }
}

fn remember(into: &mut Option<Arc<Sent>>, reading: &Reading<'_>) {
    match into.as_mut().and_then(Arc::get_mut) {
        Some(sent) => sent.assign(reading),
        None => *into = Some(Arc::new(Sent::of(reading))),
    }
}

/// Returns whether a reading differs enough from the one sent last.
fn beyond(last: Option<&Sent>, now: &Reading<'_>, thresholds: &Thresholds) -> bool {
    let Some(last) = last else { return true };
    if !now.errors.is_empty() {
        return last.errors != now.errors;
    }
    if !last.errors.is_empty() {
        return true;
    }
    match (last.quality == Quality::Invalid, now.quality == Quality::Invalid) {
        (true, true) => return false,
        (false, false) => {}
        _ => return true,
    }
    let value_differs = match (&last.value, now.value) {
        (None, None) => false,
        (Some(before), Some(value)) => last.shape != value.shape || differ(before.as_data(), value.data, thresholds),
        _ => true,
    };
    let set_point_differs = || match (&last.set_point, now.set_point) {
        (None, None) => false,
        (Some(before), Some(now)) => differ(before.as_data(), now, thresholds),
        _ => true,
    };
    value_differs || last.quality != now.quality || set_point_differs()
}
