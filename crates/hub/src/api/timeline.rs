//! One range of time in all services: the density of logs, attributes, transfers and entries.

use schemars::JsonSchema;
use serde::Serialize;
use tampu_bulk::{asking, transfers::TransferQuery};
use tampu_bus::access::{Resource, Verb};
use tampu_types::{Time, event::AttributeName};

use super::{
    bulk::{self, ShownTransfer},
    call::{Answer, Call, GET, Route, ok},
    event::{AttributeHistory, repeated},
    links::{EntrySummary, entries},
    log::{LogHistogram, conditions, histogram_of, with_filter},
    on_bus::{bounded, service},
    when::{SINCE, UNTIL},
};
use crate::{
    clock::now,
    http::{admission::WorkKind, problem::Problem, route::json_of},
};

/// Attributes of an answer.
const MOST_ATTRIBUTES: usize = 20;
/// Transfers and entries of an answer.
const MOST_ROWS: usize = 500;
/// Range without a beginning: the last hour, ns.
const USUAL: i64 = 3600 * 1_000_000_000;

/// The route of the timeline.
pub const ROUTES: &[Route] = &[Route {
    path: "/timeline",
    id: "timeline",
    what: "Returns one range of time of all services: counts of records by level, attributes, transfers, entries; without a range the last hour",
    query: with_filter![
        ("lanes", "string", "log, transfers, entries, with commas; all, if missing"),
        ("event", "string", "an attribute; may be repeated, at most 20"),
        ("bins", "integer", "the largest number of bins and intervals, 1 to 2000; 300, if missing"),
    ],
    gives: (200, json_of::<Timeline>()),
    work: WorkKind::Search,
    act: show,
    ..GET
}];

/// One range of time.
#[derive(Debug, Serialize, JsonSchema)]
struct Timeline {
    since: String,
    until: String,
    /// Counts of the records that match the filter.
    log: Option<LogHistogram>,
    events: Vec<AttributeHistory>,
    /// Transfers that ran in the range, the newest first, at most 500.
    transfers: Vec<ShownTransfer>,
    /// Entries of the range, the newest first, at most 500.
    entries: Vec<EntrySummary>,
    /// Those of `transfers` and `entries` that have more: the oldest are left out.
    cut: Vec<&'static str>,
    /// Lanes that are empty for another reason than that nothing was there.
    missing: Vec<MissingLane>,
}

/// A lane that cannot be shown.
#[derive(Debug, Serialize, JsonSchema)]
struct MissingLane {
    /// log, transfers, entries, or the attribute.
    lane: String,
    why: String,
}

/// Returns the newest entries of a range, and true if there are more. The query language knows whole seconds, so the second of the end is searched as well.
fn entries_of(call: &Call<'_>, since: Time, until: Time) -> Result<(Vec<EntrySummary>, bool), Problem> {
    let seconds = |time: Time| {
        let mut text = String::new();
        time.write_to(&mut text, 0);
        text
    };
    let end = Time(until.0.saturating_add(1_000_000_000));
    let found = entries(call, format!("since:{} until:{}", seconds(since), seconds(end)), MOST_ROWS + 1)?;
    let within = found.iter().filter(|(entry, _)| entry.date >= since && entry.date < until);
    let shown = within.take(MOST_ROWS).map(|(entry, snippet)| EntrySummary::of(entry, snippet)).collect();
    Ok((shown, found.len() > MOST_ROWS))
}

fn show(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let mut query = conditions(call)?;
    let until = query.until.unwrap_or_else(now);
    let since = query.since.unwrap_or(Time(until.0.saturating_sub(USUAL)));
    (query.since, query.until) = (Some(since), Some(until));
    let bins = bounded(call, "bins", 300, 1, 2000)?;
    let names: Vec<AttributeName> = repeated(call, "event")?;
    if names.len() > MOST_ATTRIBUTES {
        return Err(Problem::bad("query event", format!("at most {MOST_ATTRIBUTES} attributes")));
    }
    let lanes = call.parameter("lanes").filter(|lanes| !lanes.is_empty()).unwrap_or("log,transfers,entries");
    if let Some(lane) = lanes.split(',').find(|lane| !["log", "transfers", "entries"].contains(lane)) {
        return Err(Problem::bad("query lanes", format!("'{}' is no lane; write log, transfers, entries", lane.escape_debug())));
    }
    let participant = &call.api.bus.participant;
    let mut missing = Vec::new();
    // A lane that the caller may not see, or whose service does not answer, leaves the others.
    let mut lane = |lane: &str, verb: Verb, resource: Resource| {
        let allowed = call.may_on_bus(verb, &resource);
        if !allowed {
            missing.push(MissingLane { lane: lane.to_owned(), why: format!("you may not {verb} {resource}") });
        }
        allowed
    };
    let has = |name: &str| lanes.split(',').any(|lane| lane == name);
    let with_log = has("log") && lane("log", Verb::Query, service("log/query"));
    let with_transfers = has("transfers") && lane("transfers", Verb::Read, service(asking::TRANSFERS));
    let names: Vec<AttributeName> =
        names.into_iter().filter(|name| lane(name.as_str(), Verb::Query, service("event/history"))).collect();
    let mut failed = |lane: &str, problem: Problem| missing.push(MissingLane { lane: lane.to_owned(), why: problem.detail });
    let mut timeline = Timeline {
        since: since.to_rfc3339(),
        until: until.to_rfc3339(),
        log: None,
        events: Vec::new(),
        transfers: Vec::new(),
        entries: Vec::new(),
        cut: Vec::new(),
        missing: Vec::new(),
    };
    if with_log {
        match histogram_of(participant, &query, bins, None) {
            Ok(histogram) => timeline.log = Some(histogram),
            Err(problem) => failed("log", problem),
        }
    }
    for name in &names {
        match super::event::read_history(participant, name, (Some(since), Some(until)), bins, call.stop) {
            Ok(history) => timeline.events.push(history),
            Err(problem) => failed(name.as_str(), problem),
        }
    }
    if with_transfers {
        let query =
            TransferQuery { since: Some(since), until: Some(until), limit: Some(MOST_ROWS as u64), ..TransferQuery::default() };
        match bulk::find(participant, &query) {
            Ok(found) => {
                let (mut transfers, mut has_more) = found.into_transfers();
                has_more |= transfers.len() > MOST_ROWS;
                transfers.truncate(MOST_ROWS);
                timeline.transfers = transfers;
                timeline.cut.extend(has_more.then_some("transfers"));
            }
            Err(problem) => failed("transfers", problem),
        }
    }
    if has("entries") {
        match entries_of(call, since, until) {
            Ok((entries, has_more)) => {
                timeline.entries = entries;
                timeline.cut.extend(has_more.then_some("entries"));
            }
            Err(problem) => failed("entries", problem),
        }
    }
    timeline.missing = missing;
    ok(&timeline)
}
