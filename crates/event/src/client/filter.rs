//! What a subscriber wants less of: readings of some qualities only, or only when the value has moved.
//!
//! A server's stream is shared by everybody who reads it, so nothing of this saves the wire; it is judged by the feed that reads the
//! stream, where an event has been read in place and before it is copied or handed to anybody. The rules are those of the server's own
//! criteria ([`crate::criteria`]), with the subscriber's thresholds. The first value, values after an absence, gaps and word of the
//! source always come: a filter that hid them would make a stale value look like a quiet one.

use tampu_types::event::{Criteria, EventView, Kinds, Quality, Reason, Thresholds, Value};

use crate::criteria::{Detector, Reading};

/// Which readings are wanted; by default all.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filter {
    /// Of these qualities; of any, where there is none.
    pub qualities: Vec<Quality>,
    /// When the value is so far from the one told last, or its quality or shape is another; always, where there is none.
    pub moved: Option<Thresholds>,
}

/// A filter at one attribute: it remembers what was told last.
#[derive(Debug)]
pub(super) struct Sieve {
    filter: Filter,
    criteria: Criteria,
    detector: Detector,
}

impl Sieve {
    /// Nothing, where everything is wanted.
    pub fn of(filter: &Filter) -> Option<Box<Sieve>> {
        if *filter == Filter::default() {
            return None;
        }
        let criteria = Criteria { change: filter.moved.unwrap_or_default(), ..Criteria::default() };
        Some(Box::new(Sieve { filter: filter.clone(), criteria, detector: Detector::default() }))
    }

    /// Whether this reading is told.
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

    fn sieve(qualities: &[Quality], abs: Option<&str>) -> Box<Sieve> {
        let moved = abs.map(|abs| Thresholds { abs: Some(abs.parse().unwrap()), rel: None });
        Sieve::of(&Filter { qualities: qualities.to_vec(), moved }).unwrap()
    }

    fn passes(sieve: &mut Sieve, reason: Reason, value: f64, quality: Quality) -> bool {
        let mut bytes = Vec::new();
        EventSample { quality, ..EventSample::of(0, Value::scalar(&value)) }.encode(&mut bytes).unwrap();
        sieve.passes(reason, &EventView::parse(&bytes).unwrap())
    }

    #[test]
    fn only_what_has_moved_since_it_was_told_last_is_told() {
        let mut sieve = sieve(&[], Some("1"));
        let mut told = |reason, value| passes(&mut sieve, reason, value, Quality::Valid);
        assert!(told(Reason::First, 5.0));
        assert!(!told(Reason::Update, 5.5));
        assert!(!told(Reason::Update, 5.9), "compared with what was told, not with what came");
        assert!(told(Reason::Update, 6.0));
        assert!(told(Reason::Resumed, 6.1) && !told(Reason::Update, 7.0) && told(Reason::Update, 7.1));
        assert!(told(Reason::Update, f64::NAN) && !told(Reason::Update, f64::NAN));
    }

    #[test]
    fn qualities_that_are_not_wanted_are_left_out_but_not_the_first_value() {
        let mut sieve = sieve(&[Quality::Alarm, Quality::Warning], None);
        let mut told = |reason, quality| passes(&mut sieve, reason, 1.0, quality);
        assert!(told(Reason::First, Quality::Valid));
        assert!(!told(Reason::Update, Quality::Valid) && told(Reason::Update, Quality::Alarm));
        assert!(Sieve::of(&Filter::default()).is_none());
    }
}
