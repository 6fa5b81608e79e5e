//! Counts of records by the place in a program that logged them.

use schemars::JsonSchema;
use serde::Serialize;
use tampu_archive::PatternsWanted;
use tampu_bus::access::Verb;
use tampu_log::collector::ask;
use tampu_types::Time;

use super::{
    super::{
        call::{Answer, Call, ok},
        on_bus::{PATIENCE, bounded},
    },
    filter,
    subject::archive,
};
use crate::http::problem::Problem;

/// Patterns of records, the most frequent first.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct MessagePatterns {
    /// Number of all records.
    total: u64,
    patterns: Vec<MessagePattern>,
    /// Number of patterns, more than the answer may have.
    known: u64,
    /// Number of records of other patterns.
    others: u64,
    /// Begin of the first interval.
    since: String,
    /// Length of an interval, ns.
    every_ns: String,
    /// False if there were too many patterns at once: rare ones were dropped, and their counts may be too small.
    exact: bool,
    /// False if the count ran out of time.
    complete: bool,
}

/// Records that one place of a program logged, or that have one text but for numbers, ids and quoted words.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct MessagePattern {
    level: &'static str,
    /// File of the place; missing for a pattern of texts.
    file: Option<String>,
    /// Line in the file.
    line: Option<u32>,
    routine: Option<String>,
    /// Message of the newest record, at most 1000 characters.
    message: String,
    count: u64,
    /// Number of different sources, counted up to 1000.
    sources: u64,
    /// Time of the newest record.
    latest: String,
    /// Number of records in each interval.
    bins: Vec<u64>,
    /// The expression for 'where' that its records meet; missing if it would be too long.
    condition: Option<String>,
}

pub(super) fn patterns(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let participant = call.need_on_bus(Verb::Query, &archive())?;
    let query = filter::query(call)?;
    let limit = bounded(call, "limit", 200, 1, 1000)? as usize;
    let bins = bounded(call, "bins", 0, 0, 200)? as usize;
    let found = ask::patterns(participant, &query, PatternsWanted { limit, bins }, PATIENCE)?;
    let given = |text: String| Some(text).filter(|text| !text.is_empty());
    let patterns = found.patterns.into_iter().map(|pattern| MessagePattern {
        level: pattern.level.name(),
        file: given(pattern.file),
        line: Some(pattern.line).filter(|line| *line > 0),
        routine: given(pattern.routine),
        message: pattern.message,
        count: pattern.count,
        sources: pattern.sources,
        latest: pattern.latest.to_rfc3339(),
        bins: pattern.bins,
        condition: pattern.condition,
    });
    ok(&MessagePatterns {
        total: found.total,
        patterns: patterns.collect(),
        known: found.known,
        others: found.others,
        since: Time::to_rfc3339(found.since),
        every_ns: found.every_ns.to_string(),
        exact: found.exact,
        complete: found.complete,
    })
}
