//! Current values and kept events, one by one.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tampu_archive::Place;
use tampu_bus::access::{Resource, Verb};
use tampu_event::{
    ask,
    history::ask::{HistoryQuery, history},
};
use tampu_types::{
    Incarnation, RecordId, Time, csv,
    event::{AttributeName, AttributePattern, EventView, KeptEvent, Shape, ValueView},
};

use super::super::{
    call::{Answer, Call, ok},
    on_bus::{OF_PROCESSES, PATIENCE, bounded, is_newest_first, service},
};
use crate::{event_json::value_as_json, http::problem::Problem};

/// Attributes whose values are asked for at once.
const MOST_NAMES: usize = 200;
/// Events of a page.
const MOST_ROWS: u64 = 1000;
/// Elements of a text.
const WRITTEN_OUT: usize = 8;

/// A reading, or a message about a source.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in crate::api) struct ShownEvent {
    name: String,
    source: String,
    incarnation: String,
    /// Number of the event among those of its attribute.
    sequence: String,
    /// The first number that a row stands for, if not its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    received: Option<String>,
    /// Of kept events: first, update, resumed, gap, source died, source hung, source returned, source left.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    kinds: Vec<&'static str>,
    /// Absent without a reading.
    #[serde(skip_serializing_if = "Option::is_none")]
    quality: Option<&'static str>,
    /// A scalar bare, else a list; an integer beyond 2^53, NaN and infinities are texts.
    value: Value,
    /// The value for people, without its unit.
    text: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    unit: String,
    /// Elements of a row and rows; absent for a scalar.
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<[u32; 2]>,
    /// The reason why there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// A label, or the reason of a gap.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    note: String,
}

/// Current values of attributes.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct CurrentValues {
    values: Vec<ShownEvent>,
    /// Attributes that no running server has, or that have no value yet.
    missing: Vec<String>,
}

/// A page of kept events.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct KeptPage {
    rows: Vec<ShownEvent>,
    /// For `after`; null if nothing follows.
    next: Option<String>,
    /// False if the search ran out of time; `next` continues it.
    complete: bool,
}

/// Returns a value as JSON that a browser reads without loss.
fn exact(value: Value) -> Value {
    const LARGEST: u64 = 1 << 53;
    match value {
        Value::Number(number) if number.as_i64().is_some_and(|number| number.unsigned_abs() > LARGEST) => {
            Value::String(number.to_string())
        }
        Value::Number(number) if number.as_u64().is_some_and(|number| number > LARGEST) => Value::String(number.to_string()),
        Value::Array(all) => Value::Array(all.into_iter().map(exact).collect()),
        other => other,
    }
}

/// Returns a value as a text for people.
fn text_of(value: &ValueView<'_>, is_scalar: bool) -> String {
    let element = |index: usize| {
        let mut text = String::new();
        // Writing into a text does not fail.
        let _ = value.write_readable_element(index, &mut text);
        text
    };
    if is_scalar {
        return element(0);
    }
    let shown: Vec<String> = (0..value.len().min(WRITTEN_OUT)).map(element).collect();
    let rest = if value.len() > WRITTEN_OUT { ", ..." } else { "" };
    format!("[{}{rest}]", shown.join(", "))
}

impl ShownEvent {
    fn of_view(view: &EventView<'_>, name: &str, source: &str, incarnation: Incarnation) -> ShownEvent {
        let is_scalar = view.shape == Shape::SCALAR;
        ShownEvent {
            name: name.to_owned(),
            source: source.to_owned(),
            incarnation: incarnation.to_string(),
            sequence: view.number.to_string(),
            from: None,
            time: view.time.to_rfc3339(),
            received: None,
            reason: None,
            kinds: view.kinds.known().iter().map(|kind| kind.name()).collect(),
            quality: Some(view.quality.name()),
            value: exact(value_as_json(view)),
            text: view.value.as_ref().map(|value| text_of(value, is_scalar)).unwrap_or_default(),
            unit: String::new(),
            shape: (!is_scalar && view.value.is_some()).then_some([view.shape.x, view.shape.y]),
            error: view.errors.first().map(|error| format!("{}: {}", error.reason, error.description)),
            note: String::new(),
        }
    }

    /// Returns a kept event as it is shown.
    pub(in crate::api) fn of_kept(kept: &KeptEvent<'_>) -> ShownEvent {
        let shown = match EventView::parse(kept.event) {
            Ok(view) => ShownEvent::of_view(&view, kept.name, kept.source, kept.incarnation),
            Err(_) => ShownEvent {
                name: kept.name.to_owned(),
                source: kept.source.to_owned(),
                incarnation: kept.incarnation.to_string(),
                sequence: kept.number.to_string(),
                from: None,
                time: kept.time.to_rfc3339(),
                received: None,
                reason: None,
                kinds: Vec::new(),
                quality: None,
                value: Value::Null,
                text: String::new(),
                unit: String::new(),
                shape: None,
                error: None,
                note: String::new(),
            },
        };
        ShownEvent {
            from: (kept.from != kept.number && kept.from > 0).then(|| kept.from.to_string()),
            received: Some(kept.received.to_rfc3339()),
            reason: Some(kept.reason.name()),
            unit: kept.unit.to_owned(),
            note: kept.note.to_owned(),
            ..shown
        }
    }
}

/// Heading of a file with a row for each event.
pub(super) const HEADING: &str = "time,received,name,reason,from,sequence,kinds,quality,value,unit,source,incarnation,note\n";

impl ShownEvent {
    /// Returns the event as a row under [`HEADING`], with the end of the line.
    pub(super) fn csv(&self, is_raw: bool) -> String {
        let kinds = self.kinds.join(",");
        let cells = [
            self.time.as_str(),
            self.received.as_deref().unwrap_or_default(),
            &self.name,
            self.reason.unwrap_or_default(),
            self.from.as_deref().unwrap_or(&self.sequence),
            &self.sequence,
            &kinds,
            self.quality.unwrap_or_default(),
            self.error.as_deref().unwrap_or(&self.text),
            &self.unit,
            &self.source,
            &self.incarnation,
            &self.note,
        ];
        let mut text = String::new();
        csv::line(cells, is_raw, &mut text);
        text
    }
}

/// Returns the values of a parameter that is repeated.
pub(in crate::api) fn repeated<T: FromStr<Err: std::fmt::Display>>(call: &Call<'_>, name: &str) -> Result<Vec<T>, Problem> {
    let given = call.query.iter().filter(|(known, value)| known == name && !value.is_empty());
    given.map(|(_, value)| value.parse().map_err(|why: T::Err| Problem::bad(&format!("query {name}"), why.to_string()))).collect()
}

pub(super) fn current(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let names: Vec<AttributeName> = repeated(call, "name")?;
    if names.is_empty() || names.len() > MOST_NAMES {
        return Err(Problem::bad("query name", format!("1 to {MOST_NAMES} attributes")));
    }
    for name in &names {
        call.need_on_bus(Verb::Read, &Resource::Attribute(name.to_string()))?;
    }
    let participant = &call.api.bus.participant;
    let sources = participant.sources();
    let mut missing: Vec<AttributeName> = names.clone();
    let mut values = Vec::new();
    for (name, incarnation, event) in ask::get(participant, &names, OF_PROCESSES)? {
        let source = sources.iter().find(|source| source.incarnation == incarnation);
        let source = source.map_or(String::new(), |source| source.source.to_string());
        let mut bytes = Vec::new();
        let Ok(()) = event.encode(&mut bytes) else { continue };
        let Ok(view) = EventView::parse(&bytes) else { continue };
        values.push(ShownEvent::of_view(&view, &name.to_string(), &source, incarnation));
        missing.retain(|wanted| *wanted != name);
    }
    ok(&CurrentValues { values, missing: missing.iter().map(AttributeName::to_string).collect() })
}

/// The place of a kept event: `NS.INCARNATION.ATTRIBUTE.NUMBER`.
struct EventCursor(Place);

impl FromStr for EventCursor {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<EventCursor, &'static str> {
        let bad = "not a cursor of events; send one of a response";
        let (ns, id) = text.split_once('.').ok_or(bad)?;
        let (time, id) = (Time(ns.parse().map_err(|_| bad)?), id.parse::<RecordId>().map_err(|_| bad)?);
        Ok(EventCursor(Place { time, id }))
    }
}

pub(super) fn rows(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let participant = call.need_on_bus(Verb::Query, &service("event/history"))?;
    let attributes: Vec<AttributePattern> = repeated(call, "name")?;
    let (since, until) = call.range()?;
    let limit = bounded(call, "limit", 100, 1, MOST_ROWS)?;
    let after = call.parameter("after").filter(|text| !text.is_empty()).map(str::parse::<EventCursor>);
    let after = after.transpose().map_err(|why| Problem::bad("query after", why))?;
    let asked = HistoryQuery {
        attributes,
        since,
        until,
        newest_first: is_newest_first(call)?,
        limit: Some(limit),
        after: after.map(|EventCursor(place)| place),
        ..HistoryQuery::default()
    };
    let mut rows = Vec::new();
    let swept = history(participant, &asked, PATIENCE, &mut |kept| {
        rows.push(ShownEvent::of_kept(kept));
        !call.stop.is_stopped()
    })?;
    let is_full = rows.len() as u64 == limit;
    let next = swept.cursor.filter(|_| is_full || !swept.complete).map(|place| format!("{}.{}", place.time.0, place.id));
    ok(&KeptPage { rows, next, complete: swept.complete || is_full })
}
