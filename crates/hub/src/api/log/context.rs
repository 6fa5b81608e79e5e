//! Single records, their surroundings, and error chains.

use tampu_archive::query::{Cursor, Field, Query};
use tampu_bus::{Participant, access::Verb};
use tampu_types::{LogRecord, RecordId, Time};
use tampu_workers::Stop;

use super::{
    super::{
        call::{Answer, Call, ok},
        on_bus::bounded,
    },
    filter,
    page::{Found, search},
    shown::{Clip, ErrorChain, FoundRecord, LogContext, RecordCursor},
    subject::{archive, no_record},
};
use crate::{clock::now, http::problem::Problem};

/// Records on one side.
const MOST_AROUND: u64 = 500;
/// Records of a chain.
const MOST_OF_CHAIN: u64 = 10_000;

/// Returns the record with an id. With its time it is found at once; else every file with records of its incarnation is read.
pub(in crate::api) fn by_id(
    participant: &Participant,
    id: RecordId,
    time: Option<Time>,
    stop: &Stop,
) -> Result<Option<LogRecord>, Problem> {
    let query = Query { ids: vec![id], newest_first: true, limit: Some(1), ..Query::default() };
    if let Some(time) = time {
        let then = Query { since: Some(time), until: Some(Time(time.0.saturating_add(1))), ..query.clone() };
        if let Some(record) = search(participant, &then, stop)?.records.pop() {
            return Ok(Some(record));
        }
    }
    Ok(search(participant, &query, stop)?.records.pop())
}

pub(super) fn record(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let participant = call.need_on_bus(Verb::Query, &archive())?;
    let id: RecordId = call.number(0, "id of a record")?;
    let (time, clip) = (call.time("time", now())?, Clip::of(call)?);
    let found = by_id(participant, id, time, call.stop)?;
    let record = found.ok_or_else(|| no_record(format!("the archive has no record {id}")))?;
    ok(&FoundRecord { record: clip.one(record) })
}

/// Adds the condition that a field has the value of a record.
fn same(query: &mut Query, name: &str, of: &LogRecord) -> Result<(), Problem> {
    // Names may hold wildcards, which only find more.
    let (field, value) = match name {
        "host" => (Field::Host, &of.host),
        "process" => (Field::Process, &of.process),
        "thread" => (Field::Thread, &of.thread),
        "logger" => (Field::Logger, &of.logger),
        "stack" => (Field::StackId, &of.stack_id),
        "run" => (Field::RunId, &of.run_id),
        "source" => {
            query.sources.push(tampu_archive::query::source_of(&of.source_object, &of.process).to_owned());
            return Ok(());
        }
        _ => return Err(Problem::bad("query same", "write host, process, thread, logger, source, stack or run")),
    };
    query.fields.entry(field).or_default().push(value.clone());
    Ok(())
}

pub(super) fn around(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let participant = call.need_on_bus(Verb::Query, &archive())?;
    let mut query = filter::query(call)?;
    let clip = Clip::of(call)?;
    let (older, newer) = (bounded(call, "older", 20, 0, MOST_AROUND)?, bounded(call, "newer", 20, 0, MOST_AROUND)?);
    let at = call.parsed::<RecordCursor>("at")?;
    let id = std::mem::take(&mut query.ids).pop().or_else(|| at.map(|RecordCursor(Cursor { id, .. })| id));
    let id = id.ok_or_else(|| Problem::bad("query at", "missing; send the cursor or the id of a record"))?;
    let own = by_id(participant, id, at.map(|RecordCursor(cursor)| cursor.time), call.stop)?;
    let cursor = match (&own, at) {
        (Some(own), _) => Cursor::of(own),
        (None, Some(RecordCursor(cursor))) => cursor,
        (None, None) => return Err(no_record(format!("the archive has no record {id}"))),
    };
    for (_, name) in call.query.iter().filter(|(name, _)| name == "same") {
        let own = own.as_ref().ok_or_else(|| no_record(format!("the archive has no record {id}")))?;
        same(&mut query, name, own)?;
    }
    let side = |newest_first: bool, limit: u64| {
        if limit == 0 {
            return Ok(Found { more: true, complete: true, ..Found::default() });
        }
        search(participant, &Query { newest_first, limit: Some(limit), after: Some(cursor), ..query.clone() }, call.stop)
    };
    let (mut before, after) = (side(true, older)?, side(false, newer)?);
    before.records.reverse();
    let at = own.as_ref().map(|_| before.records.len());
    let records: Vec<LogRecord> = before.records.into_iter().chain(own).chain(after.records).collect();
    let place = |record: Option<&LogRecord>| Some(record.map_or(RecordCursor(cursor), RecordCursor::of).to_string());
    ok(&LogContext {
        older: if before.more { place(records.first()) } else { None },
        newer: if after.more { place(records.last()) } else { None },
        records: clip.all(records),
        at,
    })
}

pub(super) fn chain(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let participant = call.need_on_bus(Verb::Query, &archive())?;
    let clip = Clip::of(call)?;
    let (since, until) = call.range()?;
    let stack = call.parameter("stack").filter(|stack| !stack.is_empty());
    let stack = stack.ok_or_else(|| Problem::bad("query stack", "missing; send the stack_id of a record"))?.to_owned();
    let fields = [(Field::StackId, vec![stack.clone()])].into();
    let query = Query { since, until, fields, limit: Some(MOST_OF_CHAIN), ..Query::default() };
    let mut found = search(participant, &query, call.stop)?;
    found.records.retain(|record| record.stack_id == stack);
    found.records.sort_by_key(|record| (record.stack_level.is_none(), record.stack_level));
    ok(&ErrorChain { stack, records: clip.all(found.records), complete: !found.more })
}
