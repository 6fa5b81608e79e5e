//! Client of a collector's services, which `tampu log query`, `stat` and the console use.
//!
//! | service | request | reply |
//! |-|-|-|
//! | `log/query` | a [`Query`] as JSON | `LogBatch`es of at most 1 MB, in the query's order, then JSON: `{"scanned": {...}}` |
//! | `log/query` | the same, with the member `columns` | messages of Arrow, then the same JSON |
//! | `log/stat` | `{"query": {...}, "by": {...}}` ([`StatQuestion`]) | [`Counts`] as JSON; with `patterns` [`Patterns`] |
//! | `log/status` | nothing | [`Report`](super::status::Report) as JSON |
//! | `log/offsets` | nothing | [`Kept`] as JSON |
//! | `log/archive` | an [`Upkeep`] as JSON | parts of JSON, each a [`Told`]: the progress, and at last the end |
//! | `log/keeps` | nothing | [`Keeps`] as JSON |
//!
//! Every part of a reply begins with the collector's incarnation (16 bytes). If two collectors reply, the client reads
//! the first one's reply.

use std::time::Duration;

use bytes::Bytes;
use tampu_bus::{
    Participant,
    service::{CallError, call, call_json},
};
use tampu_types::{Incarnation, LogRecord, log_batch::LogBatchView};

use super::messages::{ARCHIVE, End, KEEPS, OFFSETS, OffsetsQuestion, QUERY, RecordsQuestion, STAT, STATUS};
pub use super::messages::{Keeps, Kept, KeptStream, StatQuestion};
use tampu_archive::{
    Counts, Doing, Grouping, Patterns, PatternsWanted, Scanned,
    columns::{ColumnReader, ColumnTable, push_record},
    query::Query,
    upkeep::{Done, Told, Upkeep},
};

/// Records requested at once. A collector sends the whole reply without pause. So this number bounds the data between
/// the collector and a slow client, and the duration of one reply.
const PAGE: u64 = 50_000;
/// The same for rows in columns, which a client takes in about a tenth of the time.
const COLUMNS_PAGE: u64 = 500_000;
/// Records after which a client that wants columns is asked whether it goes on.
const RECORDS: u64 = 4096;
/// Part of the refusal of a collector without answers in columns.
const WITHOUT_COLUMNS: &str = "unknown field `columns`";

/// Finds records: calls `sink` with each, in the query's order, until it returns `false`. Asks page by page, each within the
/// timeout.
pub fn query(
    participant: &Participant,
    query: &Query,
    timeout: Duration,
    sink: &mut dyn FnMut(LogRecord) -> bool,
) -> Result<Scanned, CallError> {
    pages(participant, query, PAGE, |page| {
        let mut wanted = true;
        let scanned = query_page(participant, page, timeout, &mut |record| {
            wanted = sink(record);
            wanted
        })?;
        Ok((scanned, wanted))
    })
}

/// Finds records, and adds them to a table whose columns are some of the [columns of
/// records](tampu_archive::columns::LOG_COLUMNS). Calls `go_on` from time to time; if it returns `false`, the answer
/// ends. Asks page by page, each within the timeout. A collector of an earlier release, which has no answers in
/// columns, is asked for records.
pub fn columns(
    participant: &Participant,
    query: &Query,
    timeout: Duration,
    table: &mut ColumnTable,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Scanned, CallError> {
    let has_begun = table.rows();
    let mut knows_columns = true;
    let asked = pages(participant, query, COLUMNS_PAGE, |page| {
        let page = columns_page(participant, page, timeout, table, go_on)?;
        knows_columns = page.is_some();
        Ok(page.unwrap_or_default())
    });
    if knows_columns || table.rows() > has_begun {
        return asked;
    }
    let mut taken = 0_u64;
    self::query(participant, query, timeout, &mut |record| {
        push_record(table, &record);
        taken += 1;
        !taken.is_multiple_of(RECORDS) || go_on()
    })
}

/// Asks for the whole answer with `ask`, page by page. `ask` returns what was scanned, and whether more is wanted.
fn pages(
    participant: &Participant,
    query: &Query,
    rows: u64,
    mut ask: impl FnMut(&Query) -> Result<(Scanned, bool), CallError>,
) -> Result<Scanned, CallError> {
    let mut page = Query { asker: Some(participant.incarnation()), ..query.clone() };
    let mut total = Scanned::default();
    loop {
        let left = query.limit.map_or(u64::MAX, |limit| limit.saturating_sub(total.found));
        page.limit = Some(left.min(rows));
        let (scanned, wanted) = ask(&page)?;
        total = Scanned {
            found: total.found + scanned.found,
            looked_at: total.looked_at + scanned.looked_at,
            frames: total.frames + scanned.frames,
            left_out: scanned.left_out,
            damaged: total.damaged.max(scanned.damaged),
            complete: scanned.complete,
            cursor: scanned.cursor.or(total.cursor),
        };
        // A page that is full, or was ended by the collector's time limit, is followed by another one.
        if !wanted || scanned.complete || scanned.found == 0 || scanned.found >= left {
            return Ok(total);
        }
        page.after = total.cursor;
    }
}

fn query_page(
    participant: &Participant,
    query: &Query,
    timeout: Duration,
    sink: &mut dyn FnMut(LogRecord) -> bool,
) -> Result<Scanned, CallError> {
    let mut answer = call_json(participant, QUERY, query, timeout)?.first();
    let mut found = 0;
    while let Some(part) = answer.next() {
        let part = part?;
        if part.first() == Some(&b'{') {
            let end: End = serde_json::from_slice(&part).map_err(|why| answer.unreadable(&why))?;
            return Ok(end.scanned);
        }
        let view = LogBatchView::parse(&part).map_err(|why| answer.unreadable(&why))?;
        for record in view.records() {
            let record = record.map_err(|why| answer.unreadable(&why))?;
            found += 1;
            if !sink(record.to_record()) {
                return Ok(Scanned { found, ..Scanned::default() });
            }
        }
    }
    Err(answer.cut_off(found))
}

/// Asks for a page in columns. Returns `None` if the collector has no answers in columns.
fn columns_page(
    participant: &Participant,
    query: &Query,
    timeout: Duration,
    table: &mut ColumnTable,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Option<(Scanned, bool)>, CallError> {
    let names: Vec<String> = table.schema.iter().map(|(name, _)| (*name).to_owned()).collect();
    let question = RecordsQuestion::in_columns(query, &names)
        .map_err(|why| CallError::NotSent { service: QUERY.to_owned(), why: why.to_string() })?;
    let mut answer = call_json(participant, QUERY, &question, timeout)?.first();
    let (mut reader, mut found) = (ColumnReader::default(), 0);
    while let Some(part) = answer.next() {
        let part = match part {
            Err(CallError::Refused { why, .. }) if why.contains(WITHOUT_COLUMNS) => return Ok(None),
            part => part?,
        };
        // The last part comes behind the end of the columns. Without columns, it or a batch of records comes first.
        if !reader.has_begun() && (part.first() == Some(&b'{') || LogBatchView::parse(&part).is_ok()) {
            return Ok(None);
        }
        if part.first() == Some(&b'{') {
            let end: End = serde_json::from_slice(&part).map_err(|why| answer.unreadable(&why))?;
            if !reader.has_ended() || end.scanned.found != found {
                return Err(answer.cut_off(found));
            }
            return Ok(Some((end.scanned, true)));
        }
        found += reader.read(&part, table).map_err(|why| answer.unreadable(&why))? as u64;
        if !go_on() {
            return Ok(Some((Scanned { found, ..Scanned::default() }, false)));
        }
    }
    Err(answer.cut_off(found))
}

/// Counts the records that match `query`, grouped by `by`.
pub fn stat(participant: &Participant, query: &Query, by: &Grouping, timeout: Duration) -> Result<Counts, CallError> {
    let query = Query { asker: Some(participant.incarnation()), ..query.clone() };
    let question = StatQuestion { query, by: by.clone(), patterns: None };
    call_json(participant, STAT, &question, timeout)?.first().json()
}

/// Counts the records that match `query` by the place in the program that logged them.
pub fn patterns(
    participant: &Participant,
    query: &Query,
    wanted: PatternsWanted,
    timeout: Duration,
) -> Result<Patterns, CallError> {
    let query = Query { asker: Some(participant.incarnation()), ..query.clone() };
    let question = StatQuestion { query, patterns: Some(wanted), ..StatQuestion::default() };
    call_json(participant, STAT, &question, timeout)?.first().json()
}

/// Asks a collector how it is: [`Report`](super::status::Report) as JSON, which a later release may lengthen.
pub fn status(participant: &Participant, timeout: Duration) -> Result<serde_json::Value, CallError> {
    call(participant, STATUS, Bytes::new(), timeout)?.first().json()
}

/// Returns the positions up to which a collector has kept the streams of processes on the bus. A reader that resumes there, and
/// reads all streams that are not listed, gets every record that a later search does not find.
pub fn offsets(participant: &Participant, timeout: Duration) -> Result<Kept, CallError> {
    call(participant, OFFSETS, Bytes::new(), timeout)?.first().json()
}

/// Returns the same positions, and those of a life that may have ended.
pub fn offsets_with(participant: &Participant, life: Incarnation, timeout: Duration) -> Result<Kept, CallError> {
    call_json(participant, OFFSETS, &OffsetsQuestion { of: vec![life], commit: false }, timeout)?.first().json()
}

/// Has a collector commit what it has received, so that a search finds it.
///
/// A reader that has just begun gets the records of a process that is here. One that ended before it knew the reader had them
/// committed, or at least received, and the next search has to find them.
pub fn commit(participant: &Participant, timeout: Duration) -> Result<(), CallError> {
    let question = OffsetsQuestion { of: Vec::new(), commit: true };
    call_json(participant, OFFSETS, &question, timeout)?.first().json::<Kept>().map(drop)
}

/// Requests an operation on a collector's archive. Calls `doing` with the progress until it returns `false`; then the
/// operation ends soon.
pub fn upkeep(
    participant: &Participant,
    what: &Upkeep,
    timeout: Duration,
    doing: &mut dyn FnMut(Doing) -> bool,
) -> Result<Done, CallError> {
    call_json(participant, ARCHIVE, what, timeout)?.first().until(|told: Told| told.judged(doing))
}

/// Asks the collectors whether they can keep records: `None` if one of them can, else the reason of the last one that cannot.
pub fn keeps(participant: &Participant, timeout: Duration) -> Result<Option<String>, CallError> {
    let mut stuck = None;
    for part in call(participant, KEEPS, Bytes::new(), timeout)? {
        let part = match part {
            Ok(part) => part.content?,
            // A late collector does not invalidate another one's answer.
            Err(_) if stuck.is_some() => break,
            Err(error) => return Err(error),
        };
        let unreadable = |why: serde_json::Error| CallError::Unreadable { service: KEEPS.to_owned(), why: why.to_string() };
        match serde_json::from_slice(&part).map_err(unreadable)? {
            Keeps { stuck: None } => return Ok(None),
            Keeps { stuck: why } => stuck = why,
        }
    }
    stuck.map(Some).ok_or_else(|| CallError::CutOff { service: KEEPS.to_owned(), received: 0 })
}
