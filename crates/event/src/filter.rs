//! A subscriber's filter: readings of some qualities only, or only readings whose value has moved.
//!
//! The subscriber's stream worker filters an event in place, before the event is copied or delivered. A server filters
//! the stream of another host by the same rules, and leaves out what every reader there would reject. The rules are those
//! of the server's criteria ([`crate::criteria`]), with the subscriber's thresholds. The first value, values after an
//! absence, gaps and changes of the source pass every filter. Without them a stale value would look like a quiet one.

use serde::{Deserialize, Serialize};
use tampu_types::event::{Criteria, EventView, Kinds, Quality, Reason, Thresholds, Value};

use crate::criteria::{Detector, Reading};

/// Conditions on readings; by default all readings pass.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Filter {
    /// Qualities that pass; all if it is empty.
    pub qualities: Vec<Quality>,
    /// Minimum difference from the value delivered last; a change of quality or shape passes too. `None`: every reading passes.
    pub moved: Option<Thresholds>,
}

impl Filter {
    /// Returns whether every reading passes.
    pub(crate) fn is_default(&self) -> bool {
        *self == Filter::default()
    }
}

/// A filter at one attribute, with the value delivered last.
#[derive(Debug)]
pub(crate) struct FilterState {
    filter: Filter,
    criteria: Criteria,
    detector: Detector,
}

impl FilterState {
    /// Makes the state of a filter; `None` if every reading passes.
    pub fn of(filter: &Filter) -> Option<Box<FilterState>> {
        if filter.is_default() {
            return None;
        }
        let criteria = Criteria { change: filter.moved.unwrap_or_default(), ..Criteria::default() };
        Some(Box::new(FilterState { filter: filter.clone(), criteria, detector: Detector::default() }))
    }

    /// Returns whether this reading is delivered, and then remembers it.
    pub fn passes(&mut self, reason: Reason, view: &EventView<'_>) -> bool {
        let known = !self.filter.qualities.is_empty() && !self.filter.qualities.contains(&view.quality);
        if reason == Reason::Update && known {
            return false;
        }
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
        let told = reason != Reason::Update || self.detector.judge(&self.criteria, &reading, 0).intersects(Kinds::CHANGE);
        if reason != Reason::Update {
            self.detector.sent(Kinds::CHANGE, &reading, 0);
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::event::EventSample;

    use super::*;

    fn filter(qualities: &[Quality], abs: Option<&str>) -> Box<FilterState> {
        let moved = abs.map(|abs| Thresholds { abs: Some(abs.parse().unwrap()), rel: None });
        FilterState::of(&Filter { qualities: qualities.to_vec(), moved }).unwrap()
    }

    fn passes(filter: &mut FilterState, reason: Reason, value: f64, quality: Quality) -> bool {
        let mut bytes = Vec::new();
        EventSample { quality, ..EventSample::of(0, Value::scalar(&value)) }.encode(&mut bytes).unwrap();
        filter.passes(reason, &EventView::parse(&bytes).unwrap())
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
        assert!(FilterState::of(&Filter::default()).is_none());
    }
}
