//! Counts of records by time, level and the values of a field.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tampu_archive::{
    Counts, Grouping,
    query::{Field, Query},
    upkeep::{Done, Upkeep},
};
use tampu_bus::{Participant, access::Verb};
use tampu_log::collector::ask;
use tampu_types::{Level, Time};

use super::{
    super::{
        call::{Answer, Call, ok},
        on_bus::{PATIENCE, bounded},
    },
    filter,
    subject::archive,
};
use crate::http::problem::Problem;

/// Bins of a histogram.
const MOST_BINS: u64 = 2000;
/// Values of a field.
const MOST_VALUES: u64 = 10_000;
const SECOND: u64 = 1_000_000_000;

/// Counts by time and level.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct LogHistogram {
    /// Begin of the range.
    since: String,
    /// End of the range.
    until: String,
    /// Width of a bin, ns.
    every_ns: String,
    /// Begin of the first bin, a multiple of the width since 1970.
    start: String,
    /// Number of bins.
    bins: u64,
    /// Number of all records.
    total: u64,
    /// For each level that occurs, the counts of all bins.
    levels: BTreeMap<&'static str, Vec<u64>>,
    /// Time of the earliest record.
    earliest: Option<String>,
    /// Time of the latest record.
    latest: Option<String>,
    /// False if the count ran out of time.
    complete: bool,
}

/// Counts by the values of a field.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct FieldCounts {
    /// Number of all records.
    total: u64,
    /// The most frequent values.
    rows: Vec<ValueCounts>,
    /// Number of records with other values.
    others: u64,
    earliest: Option<String>,
    latest: Option<String>,
    /// False if the count ran out of time.
    complete: bool,
}

/// A value and its counts.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct ValueCounts {
    value: String,
    count: u64,
    levels: BTreeMap<&'static str, u64>,
}

/// Returns the next round width for so many bins.
pub(in crate::api) fn round_width(span: u64, bins: u64) -> u64 {
    let wanted = span.div_ceil(bins.max(1)).max(1);
    let minute = 60 * SECOND;
    let (hour, day) = (60 * minute, 24 * 60 * minute);
    let below = (0..9).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_u64.pow(power)));
    let above = [1, 2, 5, 10, 15, 30].into_iter().flat_map(|count| [count * SECOND, count * minute]);
    let long = [1, 2, 3, 6, 12].map(|count| count * hour).into_iter().chain([1, 2, 7, 14, 28].map(|count| count * day));
    let mut widths: Vec<u64> = below.chain(above).chain(long).collect();
    widths.sort_unstable();
    widths.into_iter().find(|width| *width >= wanted).unwrap_or_else(|| wanted.next_multiple_of(28 * day))
}

/// Returns the times of the archive's earliest and latest record.
fn whole_range(participant: &Participant) -> Result<(Option<Time>, Option<Time>), Problem> {
    let Done::Health(health) = ask::upkeep(participant, &Upkeep::Health, PATIENCE, &mut |_| true)? else {
        return Ok((None, None));
    };
    let time = |name: &str| health.get(name).and_then(Value::as_i64).map(Time);
    Ok((time("earliest"), time("latest")))
}

fn count(participant: &Participant, query: &Query, by: &Grouping) -> Result<Counts, Problem> {
    Ok(ask::stat(participant, query, by, PATIENCE)?)
}

/// Counts records in bins. Without an end of the range, the archive's.
pub(in crate::api) fn histogram_of(
    participant: &Participant,
    query: &Query,
    bins: u64,
    every_ns: Option<u64>,
) -> Result<LogHistogram, Problem> {
    let (mut since, mut until) = (query.since, query.until);
    if since.is_none() || until.is_none() {
        let (earliest, latest) = whole_range(participant)?;
        since = since.or(earliest);
        until = until.or(latest.map(|time| Time(time.0.saturating_add(1))));
    }
    let since = since.or(until).unwrap_or_default();
    // A range that ends before the archive begins has one empty bin.
    let until = until.unwrap_or(since).max(Time(since.0.saturating_add(1)));
    let span = until.0.abs_diff(since.0);
    let every = every_ns.unwrap_or_else(|| round_width(span, bins));
    let width = i64::try_from(every).unwrap_or(i64::MAX);
    let first = since.0.div_euclid(width);
    let bins = (until.0 - 1).div_euclid(width).abs_diff(first) + 1;
    if bins > MOST_BINS + 1 {
        return Err(Problem::bad("query every_ns", format!("{bins} bins are too many; at most {MOST_BINS}")));
    }
    let by = Grouping { level: true, every_ns: Some(every), ..Grouping::default() };
    let counts = count(participant, &Query { since: Some(since), until: Some(until), ..query.clone() }, &by)?;
    let mut levels: BTreeMap<&'static str, Vec<u64>> = BTreeMap::new();
    for row in &counts.rows {
        let (Some(time), Some(level)) = (row.time, row.level) else { continue };
        let bin = time.0.div_euclid(width).saturating_sub(first);
        let of_level = levels.entry(level.name()).or_insert_with(|| vec![0; bins as usize]);
        if let Some(cell) = usize::try_from(bin).ok().and_then(|bin| of_level.get_mut(bin)) {
            *cell += row.count;
        }
    }
    Ok(LogHistogram {
        since: since.to_rfc3339(),
        until: until.to_rfc3339(),
        every_ns: every.to_string(),
        start: Time(first.saturating_mul(width)).to_rfc3339(),
        bins,
        total: counts.total,
        levels,
        earliest: counts.earliest.map(Time::to_rfc3339),
        latest: counts.latest.map(Time::to_rfc3339),
        complete: counts.complete,
    })
}

pub(super) fn histogram(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let participant = call.need_on_bus(Verb::Query, &archive())?;
    let query = filter::query(call)?;
    let bins = bounded(call, "bins", 200, 1, MOST_BINS)?;
    let every = call.parsed::<u64>("every_ns")?;
    if every == Some(0) {
        return Err(Problem::bad("query every_ns", "at least 1"));
    }
    ok(&histogram_of(participant, &query, bins, every)?)
}

pub(super) fn stat(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let participant = call.need_on_bus(Verb::Query, &archive())?;
    let query = filter::query(call)?;
    let limit = bounded(call, "limit", 100, 1, MOST_VALUES)?;
    let field = match call.parameter("by").unwrap_or_default() {
        "" | "level" => None,
        "source" => Some(Field::SourceObject),
        name => Some(Field::from_name(name).ok_or_else(|| {
            let names = Field::ALL.map(Field::name).join(", ");
            Problem::bad("query by", format!("unknown field '{}'; write level, source, {names}", name.escape_debug()))
        })?),
    };
    let counts = count(participant, &query, &Grouping { level: true, field, ..Grouping::default() })?;
    let mut by_value: HashMap<String, ValueCounts> = HashMap::new();
    for row in counts.rows {
        let level = row.level.unwrap_or(Level::Info).name();
        let value = row.value.unwrap_or_else(|| level.to_owned());
        let of_value = by_value.entry(value).or_insert_with_key(|value| ValueCounts {
            value: value.clone(),
            count: 0,
            levels: BTreeMap::new(),
        });
        of_value.count += row.count;
        *of_value.levels.entry(level).or_default() += row.count;
    }
    let mut rows: Vec<ValueCounts> = by_value.into_values().collect();
    rows.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.value.cmp(&b.value)));
    let others = rows.iter().skip(limit as usize).map(|row| row.count).sum();
    rows.truncate(limit as usize);
    ok(&FieldCounts {
        total: counts.total,
        rows,
        others,
        earliest: counts.earliest.map(Time::to_rfc3339),
        latest: counts.latest.map(Time::to_rfc3339),
        complete: counts.complete,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_round_and_make_no_more_bins_than_wanted() {
        let day = 86_400 * SECOND;
        for (span, bins, width) in [
            (day, 200, 10 * 60 * SECOND),
            (day, 1, day),
            (3600 * SECOND, 200, 30 * SECOND),
            (1_000, 200, 5),
            (1, 200, 1),
            (0, 1, 1),
            (365 * day, 200, 2 * day),
            (3650 * day, 10, 392 * day),
        ] {
            assert_eq!(round_width(span, bins), width, "{span} {bins}");
        }
    }
}
