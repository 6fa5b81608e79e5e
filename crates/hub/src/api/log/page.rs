//! Pages of a query, and the search behind all routes.

use std::time::Instant;

use tampu_archive::query::Query;
use tampu_bus::{Participant, access::Verb};
use tampu_log::collector::ask;
use tampu_types::LogRecord;
use tampu_workers::Stop;

use super::{
    super::{
        call::{Answer, Call, ok},
        on_bus::{PATIENCE, bounded, is_newest_first},
    },
    filter,
    shown::{Clip, RecordCursor, RecordPage},
    subject::archive,
};
use crate::http::problem::Problem;

/// Records of a page.
const MOST: u64 = 1000;
/// Bytes of the texts of an answer, beyond which it ends early.
const MOST_BYTES: usize = 8 << 20;

/// Records that a search has found.
#[derive(Default)]
pub(super) struct Found {
    pub records: Vec<LogRecord>,
    /// True if there may be more.
    pub more: bool,
    /// False if the search ran out of time.
    pub complete: bool,
    pub looked_at: u64,
}

/// Bytes of a record's texts, about.
pub(super) fn weight(record: &LogRecord) -> usize {
    let data = record.data.iter().chain(&record.attributes);
    256 + record.message.len() + data.map(|datum| datum.name.len() + datum.value.len()).sum::<usize>()
}

/// Searches until the query's limit, the bound of bytes or the time is reached.
pub(super) fn search(participant: &Participant, query: &Query, stop: &Stop) -> Result<Found, Problem> {
    let (mut found, mut bytes, mut is_full) = (Found::default(), 0, false);
    let end = Instant::now() + PATIENCE;
    let scanned = ask::query(participant, query, PATIENCE, &mut |record| {
        bytes += weight(&record);
        found.records.push(record);
        is_full = bytes > MOST_BYTES;
        !is_full && !stop.is_stopped() && Instant::now() < end
    })?;
    let is_full = is_full || query.limit == Some(found.records.len() as u64);
    found.complete = scanned.complete || is_full;
    found.more = is_full || !scanned.complete;
    found.looked_at = scanned.looked_at;
    Ok(found)
}

pub(super) fn page(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let participant = call.need_on_bus(Verb::Query, &archive())?;
    let query = filter::query(call)?;
    let clip = Clip::of(call)?;
    let newest_first = is_newest_first(call)?;
    let limit = bounded(call, "limit", 100, 1, MOST)?;
    let (after, before) = (call.parsed::<RecordCursor>("after")?, call.parsed::<RecordCursor>("before")?);
    if after.is_some() && before.is_some() {
        return Err(Problem::bad("query before", "either 'after' or 'before'"));
    }
    // A page before a place is a page after it in the other order.
    let backwards = before.is_some();
    let from = after.or(before);
    let query = Query {
        newest_first: newest_first != backwards,
        limit: Some(limit),
        after: from.map(|RecordCursor(cursor)| cursor),
        ..query
    };
    let mut found = search(participant, &query, call.stop)?;
    if backwards {
        found.records.reverse();
    }
    let (first, last) = (found.records.first().map(RecordCursor::of), found.records.last().map(RecordCursor::of));
    let (next, previous) = match (backwards, found.more) {
        (false, true) => (last.or(from), first.or(from)),
        (false, false) => (None, first.or(from)),
        (true, true) => (last.or(from), first.or(from)),
        (true, false) => (last.or(from), None),
    };
    ok(&RecordPage {
        records: clip.all(found.records),
        next: next.map(|cursor| cursor.to_string()),
        previous: previous.map(|cursor| cursor.to_string()),
        complete: found.complete,
        looked_at: found.looked_at,
    })
}
