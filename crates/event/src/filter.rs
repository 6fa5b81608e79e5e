//! A subscriber's filter: readings of some qualities only, only readings whose value has moved or fulfils a condition, or
//! at most one reading in a time.
//!
//! The subscriber's stream worker filters an event in place, before the event is copied or delivered. A server filters
//! the stream of another host by the same rules, and leaves out what every reader there would reject. The rules are those
//! of the server's criteria ([`crate::criteria`]), with the subscriber's thresholds. The first value, values after an
//! absence, gaps and changes of the source pass every filter. Without them a stale value would look like a quiet one.
//!
//! A reading that comes too soon is held, and the newest held one is judged again when its time has come.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use tampu_bus::clock::Clock;
use tampu_types::event::{Criteria, EventView, Kinds, Quality, Reason, Thresholds, Value};

pub use self::condition::{BadCondition, Condition};
use crate::criteria::{Detector, Reading};

mod condition;

/// Conditions on readings; by default all readings pass.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Filter {
    /// Qualities that pass; all if it is empty.
    #[serde(deserialize_with = "distinct")]
    pub qualities: Vec<Quality>,
    /// Minimum difference from the value delivered last; a change of quality or shape passes too. `None`: every reading passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<Thresholds>,
    /// Condition on the value. The first reading that no longer fulfils it passes as well, and failed readings do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// At most one reading passes in this time in ms: the newest, when the time is over. Another quality passes at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_ms: Option<u64>,
}

impl Filter {
    /// Returns whether every reading passes.
    pub(crate) fn is_default(&self) -> bool {
        *self == Filter::default()
    }

    /// Returns the part that a server can judge for a reader elsewhere. With a minimum interval, it depends on times whether a
    /// reading is judged by its value, and those of the two differ a little. So a server that left out readings by time would
    /// leave out some whose value the reader takes.
    pub(crate) fn at_source(&self) -> Filter {
        let judges_values = self.moved.is_some() || self.condition.is_some();
        match self.every_ms {
            Some(_) if judges_values => Filter { qualities: self.qualities.clone(), ..Filter::default() },
            _ => self.clone(),
        }
    }
}

/// Reads qualities, each once however often it comes: a server keeps the filters of others.
fn distinct<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Quality>, D::Error> {
    let all = Vec::<Quality>::deserialize(from)?;
    Ok(Quality::ALL.into_iter().filter(|quality| all.contains(quality)).collect())
}

/// Decision about a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is delivered.
    Passes,
    /// It is not delivered.
    Rejected,
    /// It comes too soon. The newest such reading is judged again at this time, monotonic ns.
    Held(u64),
}

/// A filter at one attribute, with the value delivered last.
pub(crate) struct FilterState {
    filter: Arc<Filter>,
    criteria: Criteria,
    detector: Detector,
    /// True if the reading delivered last fulfilled the condition.
    fulfilled: bool,
    /// Time and quality of the reading delivered last.
    last: Option<(u64, Quality)>,
    clock: Arc<dyn Clock>,
}

/// Held readings of many attributes are judged again together, at multiples of this time in ns.
const TOGETHER: u64 = 10_000_000;

impl FilterState {
    /// Makes the state of a filter; `None` if every reading passes.
    pub fn of(filter: &Filter, clock: &Arc<dyn Clock>) -> Option<Box<FilterState>> {
        FilterState::shared(&Arc::new(filter.clone()), clock)
    }

    /// Makes the state of a filter that other attributes have too; `None` if every reading passes.
    pub fn shared(filter: &Arc<Filter>, clock: &Arc<dyn Clock>) -> Option<Box<FilterState>> {
        if filter.is_default() {
            return None;
        }
        Some(Box::new(FilterState {
            filter: filter.clone(),
            criteria: Criteria { change: filter.moved.unwrap_or_default(), ..Criteria::default() },
            detector: Detector::default(),
            fulfilled: false,
            last: None,
            clock: clock.clone(),
        }))
    }

    /// Decides whether this reading is delivered, and then remembers it.
    pub fn judge(&mut self, reason: Reason, view: &EventView<'_>) -> Verdict {
        let now = if self.filter.every_ms.is_some() { self.clock.monotonic() } else { 0 };
        let must_pass = reason != Reason::Update;
        if !must_pass && !self.filter.qualities.is_empty() && !self.filter.qualities.contains(&view.quality) {
            return Verdict::Rejected;
        }
        if let (false, Some((at, quality)), Some(every_ms)) = (must_pass, self.last, self.filter.every_ms) {
            let due = at.saturating_add(every_ms.saturating_mul(1_000_000));
            if quality == view.quality && now < due {
                return Verdict::Held(due.checked_next_multiple_of(TOGETHER).unwrap_or(due));
            }
        }
        let fulfils = |condition: &Condition| view.value.is_none_or(|value| condition.holds(&value));
        let fulfilled = self.filter.condition.as_ref().is_none_or(fulfils);
        if !must_pass && !fulfilled && !self.fulfilled || !self.moves(must_pass, view) {
            return Verdict::Rejected;
        }
        self.fulfilled = fulfilled;
        self.last = Some((now, view.quality));
        Verdict::Passes
    }

    /// Returns whether the value has moved since it was delivered last, or `must_pass`. Then it counts as delivered.
    fn moves(&mut self, must_pass: bool, view: &EventView<'_>) -> bool {
        if self.filter.moved.is_none() {
            return true;
        }
        let (value, set_point) = (view.value.map(|value| value.to_values()), view.set_point.map(|value| value.to_values()));
        let reading = Reading {
            value: value.as_ref().map(|values| Value { data: values.as_data(), shape: view.shape }),
            set_point: set_point.as_ref().map(|values| values.as_data()),
            quality: view.quality,
            errors: &view.errors,
        };
        if must_pass {
            self.detector.sent(Kinds::CHANGE, &reading, 0);
            return true;
        }
        self.detector.judge(&self.criteria, &reading, 0).intersects(Kinds::CHANGE)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tampu_bus::engine::{Engine, memory::MemoryNet};
    use tampu_types::event::EventSample;

    use super::*;

    fn filter(qualities: &[Quality], abs: Option<&str>) -> Box<FilterState> {
        let moved = abs.map(|abs| Thresholds { abs: Some(abs.parse().unwrap()), rel: None });
        state(&Filter { qualities: qualities.to_vec(), moved, ..Filter::default() }, &MemoryNet::new(1))
    }

    fn state(filter: &Filter, net: &MemoryNet) -> Box<FilterState> {
        FilterState::of(filter, &net.engine("a").clock()).unwrap()
    }

    fn passes(filter: &mut FilterState, reason: Reason, value: f64, quality: Quality) -> bool {
        let mut bytes = Vec::new();
        EventSample { quality, ..EventSample::of(0, Value::scalar(&value)) }.encode(&mut bytes).unwrap();
        filter.judge(reason, &EventView::parse(&bytes).unwrap()) == Verdict::Passes
    }

    #[test]
    fn only_what_has_moved_since_it_was_told_last_is_told() {
        let mut filter = filter(&[], Some("1"));
        let mut told = |reason, value| passes(&mut filter, reason, value, Quality::Valid);
        assert!(told(Reason::First, 5.0));
        assert!(!told(Reason::Update, 5.5));
        assert!(!told(Reason::Update, 5.9), "compared with what was told, not with what came");
        assert!(told(Reason::Update, 6.0));
        assert!(told(Reason::Resumed, 6.1) && !told(Reason::Update, 7.0) && told(Reason::Update, 7.1));
        assert!(told(Reason::Update, f64::NAN) && !told(Reason::Update, f64::NAN));
    }

    #[test]
    fn qualities_that_are_not_wanted_are_left_out_but_not_the_first_value() {
        let mut filter = filter(&[Quality::Alarm, Quality::Warning], None);
        let mut told = |reason, quality| passes(&mut filter, reason, 1.0, quality);
        assert!(told(Reason::First, Quality::Valid));
        assert!(!told(Reason::Update, Quality::Valid) && told(Reason::Update, Quality::Alarm));
        assert!(FilterState::of(&Filter::default(), &MemoryNet::new(1).engine("a").clock()).is_none());
    }

    #[test]
    fn a_quality_that_is_named_often_is_kept_once() {
        let qualities = ["\"warning\", \"alarm\""; 1000].join(",");
        let filter: Filter = serde_json::from_str(&format!("{{\"qualities\": [{qualities}]}}")).unwrap();
        assert_eq!(filter.qualities, [Quality::Alarm, Quality::Warning]);
        assert!(serde_json::from_str::<Filter>("{}").unwrap().is_default());
    }

    #[test]
    fn a_condition_passes_while_it_holds_and_once_when_it_ends() {
        let condition = Some("value > 10".parse().unwrap());
        let mut filter = state(&Filter { condition, ..Filter::default() }, &MemoryNet::new(1));
        let mut told = |reason, value| passes(&mut filter, reason, value, Quality::Valid);
        assert!(told(Reason::First, 5.0));
        assert!(!told(Reason::Update, 6.0) && told(Reason::Update, 11.0) && told(Reason::Update, 12.0));
        assert!(told(Reason::Update, 9.0), "the end of it");
        assert!(!told(Reason::Update, 8.0) && told(Reason::Update, 13.0));
    }

    #[test]
    fn at_most_one_reading_in_a_time_but_another_quality_at_once() {
        let net = MemoryNet::new(1);
        let engine = net.engine("a");
        let mut filter = FilterState::of(&Filter { every_ms: Some(100), ..Filter::default() }, &engine.clock()).unwrap();
        let mut bytes = Vec::new();
        let mut judge = |value: f64, quality| {
            EventSample { quality, ..EventSample::of(0, Value::scalar(&value)) }.encode(&mut bytes).unwrap();
            filter.judge(Reason::Update, &EventView::parse(&bytes).unwrap())
        };
        assert_eq!(judge(1.0, Quality::Valid), Verdict::Passes);
        let Verdict::Held(due) = judge(2.0, Quality::Valid) else { panic!("it comes too soon") };
        assert!((net.now() + 100_000_000..net.now() + 111_000_000).contains(&due));
        assert_eq!(judge(3.0, Quality::Alarm), Verdict::Passes);
        net.advance(Duration::from_millis(99));
        assert!(matches!(judge(4.0, Quality::Alarm), Verdict::Held(_)));
        net.advance(Duration::from_millis(1));
        assert_eq!(judge(5.0, Quality::Alarm), Verdict::Passes);
    }
}
