//! The history of one attribute, reduced to what a plot can show.
//!
//! Up to the wanted number of points each event is returned. Beyond it the range is divided into intervals of a round
//! width, and each has its least, largest, mean, first and last value, so that no peak is lost.

use std::{collections::BTreeMap, time::Instant};

use schemars::JsonSchema;
use serde::Serialize;
use tampu_bus::{Participant, access::Verb};
use tampu_event::history::ask::{HistoryQuery, history};
use tampu_types::{
    Time,
    event::{AttributeName, AttributePattern, EventView, KeptEvent, Quality, Shape},
};
use tampu_workers::Stop;

use super::{
    super::{
        call::{Answer, Call, ok},
        log::round_width,
        on_bus::{PATIENCE, bounded, service},
    },
    reading::ShownEvent,
};
use crate::{clock::now, http::problem::Problem};

/// Intervals or events of an answer.
const MOST_POINTS: u64 = 5000;
/// Gaps and changes of sources in an answer.
const MOST_MARKS: usize = 2000;

/// The history of an attribute.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct AttributeHistory {
    name: String,
    /// The unit of the last event.
    unit: String,
    since: String,
    until: String,
    /// True if `points` has intervals; false if `values` has each event.
    decimated: bool,
    /// Width of an interval, ns.
    every_ns: String,
    /// Intervals with events, in the order of time.
    points: Vec<HistoryPoint>,
    /// Events with a reading, in the order of time.
    values: Vec<ShownEvent>,
    /// Gaps and changes of sources, in the order of time.
    marks: Vec<ShownEvent>,
    /// Number of marks beyond the first ones.
    marks_left_out: u64,
    /// Number of events with a reading.
    count: u64,
    /// False if the search ran out of time; what follows `until` is missing.
    complete: bool,
}

/// The events of an interval.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct HistoryPoint {
    /// Begin of the interval.
    time: String,
    /// Number of events.
    count: u64,
    /// Least value; null if no event has a number.
    min: Option<f64>,
    /// Largest value of them.
    max: Option<f64>,
    /// Mean of the values of the events, without regard to their distances.
    mean: Option<f64>,
    first: Option<f64>,
    last: Option<f64>,
    /// The worst quality.
    quality: &'static str,
}

/// Sums of an interval.
#[derive(Debug, Clone, Copy)]
struct Interval {
    count: u64,
    numbers: u64,
    sum: f64,
    min: f64,
    max: f64,
    first: f64,
    last: f64,
    quality: Quality,
}

/// Rank of a quality: the worst has the largest.
fn badness(quality: Quality) -> u8 {
    match quality {
        Quality::Valid => 0,
        Quality::Changing => 1,
        Quality::Warning => 2,
        Quality::Alarm => 3,
        Quality::Invalid => 4,
    }
}

impl Interval {
    fn new() -> Interval {
        let (min, max) = (f64::INFINITY, f64::NEG_INFINITY);
        Interval { count: 0, numbers: 0, sum: 0.0, min, max, first: 0.0, last: 0.0, quality: Quality::Valid }
    }

    fn add(&mut self, number: Option<f64>, quality: Quality) {
        self.count += 1;
        if badness(quality) > badness(self.quality) {
            self.quality = quality;
        }
        let Some(number) = number.filter(|number| number.is_finite()) else { return };
        if self.numbers == 0 {
            self.first = number;
        }
        self.numbers += 1;
        self.sum += number;
        self.last = number;
        self.min = self.min.min(number);
        self.max = self.max.max(number);
    }

    fn shown(&self, time: Time) -> HistoryPoint {
        let has = |number: f64| (self.numbers > 0).then_some(number);
        HistoryPoint {
            time: time.to_rfc3339(),
            count: self.count,
            min: has(self.min),
            max: has(self.max),
            mean: has(self.sum / self.numbers as f64),
            first: has(self.first),
            last: has(self.last),
            quality: self.quality.name(),
        }
    }
}

/// Returns the time of the first kept event of an attribute.
fn earliest(participant: &Participant, attribute: &AttributePattern) -> Result<Option<Time>, Problem> {
    let asked = HistoryQuery { attributes: vec![attribute.clone()], limit: Some(1), ..HistoryQuery::default() };
    let mut time = None;
    history(participant, &asked, PATIENCE, &mut |kept| {
        time = Some(kept.time);
        false
    })?;
    Ok(time)
}

/// Reads the history of an attribute. Without a beginning, from its first event.
pub(in crate::api) fn read(
    participant: &Participant,
    name: &AttributeName,
    (since, until): (Option<Time>, Option<Time>),
    points: u64,
    stop: &Stop,
) -> Result<AttributeHistory, Problem> {
    let attribute: AttributePattern =
        name.to_string().parse().map_err(|why: tampu_types::event::BadPattern| Problem::bad("query name", why.to_string()))?;
    let until = until.unwrap_or_else(now);
    let since = match since {
        Some(since) => since,
        None => earliest(participant, &attribute)?.unwrap_or(until),
    };
    let width = round_width(until.0.abs_diff(since.0), points);
    let every = i64::try_from(width).unwrap_or(i64::MAX);
    let asked = HistoryQuery { attributes: vec![attribute], since: Some(since), until: Some(until), ..HistoryQuery::default() };
    let (mut intervals, mut values): (BTreeMap<i64, Interval>, Vec<ShownEvent>) = Default::default();
    let (mut marks, mut marks_left_out, mut unit, mut count) = (Vec::new(), 0, String::new(), 0);
    let end = Instant::now() + PATIENCE;
    let mut take = |kept: &KeptEvent<'_>| {
        let Ok(view) = EventView::parse(kept.event) else {
            if marks.len() < MOST_MARKS {
                marks.push(ShownEvent::of_kept(kept));
            } else {
                marks_left_out += 1;
            }
            return !stop.is_stopped() && Instant::now() < end;
        };
        count += 1;
        if count <= points {
            values.push(ShownEvent::of_kept(kept));
        }
        if unit != kept.unit {
            kept.unit.clone_into(&mut unit);
        }
        let number = view.value.filter(|_| view.shape == Shape::SCALAR).and_then(|value| value.number(0));
        intervals.entry(kept.time.0.div_euclid(every)).or_insert_with(Interval::new).add(number, view.quality);
        !stop.is_stopped() && Instant::now() < end
    };
    let swept = history(participant, &asked, PATIENCE, &mut take)?;
    let decimated = count > points;
    let shown = |(begin, interval): (i64, Interval)| interval.shown(Time(begin.saturating_mul(every)));
    Ok(AttributeHistory {
        name: name.to_string(),
        unit,
        since: since.to_rfc3339(),
        until: until.to_rfc3339(),
        decimated,
        every_ns: width.to_string(),
        points: if decimated { intervals.into_iter().map(shown).collect() } else { Vec::new() },
        values: if decimated { Vec::new() } else { values },
        marks,
        marks_left_out,
        count,
        complete: swept.complete,
    })
}

pub(super) fn decimated(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let participant = call.need_on_bus(Verb::Query, &service("event/history"))?;
    let name = call.parsed::<AttributeName>("name")?;
    let name = name.ok_or_else(|| Problem::bad("query name", "missing; send the name of an attribute"))?;
    let points = bounded(call, "points", 1000, 1, MOST_POINTS)?;
    ok(&read(participant, &name, call.range()?, points, call.stop)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_keeps_peaks_and_the_worst_quality() {
        let mut interval = Interval::new();
        for (number, quality) in [
            (Some(2.0), Quality::Valid),
            (Some(-7.0), Quality::Alarm),
            (None, Quality::Valid),
            (Some(f64::NAN), Quality::Warning),
            (Some(8.0), Quality::Valid),
        ] {
            interval.add(number, quality);
        }
        let shown = interval.shown(Time(0));
        assert_eq!((shown.count, shown.min, shown.max, shown.mean), (5, Some(-7.0), Some(8.0), Some(1.0)));
        assert_eq!((shown.first, shown.last, shown.quality), (Some(2.0), Some(8.0), "alarm"));
        let mut empty = Interval::new();
        empty.add(None, Quality::Valid);
        assert_eq!((empty.shown(Time(0)).min, empty.shown(Time(0)).mean), (None, None));
    }
}
