//! Whether a reading is told, and as what: `spec/events.md` has the rules and where they differ from Tango's.
//!
//! A [`Detector`] is a value: it is given readings with their times and says the kinds. It remembers, for each kind, the
//! reading sent last; kinds that were sent together share the memory of it. The thresholds are given with every reading, so
//! that they can be changed while it runs.

use std::sync::Arc;

use tampu_types::event::{Criteria, Data, Failure, Kinds, Quality, Shape, Thresholds, Value, Values};

pub mod compare;

use compare::differ;

/// Below this period the tolerance is a share of it, from here on a fixed time, ns.
const LONG_PERIOD: u64 = 5_000_000_000;
/// The tolerance of long periods, ns.
const TOLERANCE: u64 = 100_000_000;

/// What was read of an attribute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading<'a> {
    /// The value; none with errors, or where the quality is invalid.
    pub value: Option<Value<'a>>,
    /// What was written last.
    pub set_point: Option<Data<'a>>,
    /// How good it is.
    pub quality: Quality,
    /// Why there is none.
    pub errors: &'a [Failure],
}

impl<'a> Reading<'a> {
    /// A good one.
    pub fn of(value: Value<'a>) -> Reading<'a> {
        Reading { value: Some(value), set_point: None, quality: Quality::Valid, errors: &[] }
    }

    /// One that failed.
    pub fn failed(errors: &'a [Failure]) -> Reading<'a> {
        Reading { value: None, set_point: None, quality: Quality::Invalid, errors }
    }
}

/// A reading that was sent.
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

    /// Becomes another reading, in the memory it has.
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

/// Decides for one attribute.
#[derive(Debug, Default)]
pub struct Detector {
    change: Option<Arc<Sent>>,
    archive: Option<Arc<Sent>>,
    /// When the last archive event was sent, monotonic ns.
    archived_at: Option<u64>,
    /// When the last periodic one was.
    periodic_at: Option<u64>,
    /// Quality and errors of the last alarm event.
    alarm: Option<(Quality, Vec<Failure>)>,
}

impl Detector {
    /// The kinds as which this reading is to be sent, at this time (monotonic ns). They count as sent.
    pub fn judge(&mut self, criteria: &Criteria, reading: &Reading<'_>, now: u64) -> Kinds {
        let kinds = self.due(criteria, reading, now);
        self.sent(kinds, reading, now);
        kinds
    }

    /// The same, where sending may fail: it counts when [`Detector::sent`] says so.
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

    /// A reading was sent as these kinds, whoever decided it: later ones are compared with it.
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

/// How long ago the last event must be, ns.
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

/// Whether a reading is far enough from the last one sent.
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
