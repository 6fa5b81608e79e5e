//! Asking a collector: what `tampu log query`, `stat` and the console use.
//!
//! | service | question | answer |
//! |-|-|-|
//! | `log/query` | a [`Query`] as JSON | `LogBatch`es of at most 1 MB, in the query's order, then JSON: `{"scanned": {...}}` or `{"error": "..."}`, with `"denied"` where whoever asks may not |
//! | `log/stat` | `{"query": {...}, "by": {...}}` ([`StatQuestion`]) | [`Counts`] as JSON |
//! | `log/status` | nothing | [`Report`](super::status::Report) as JSON |
//! | `log/offsets` | nothing | [`Kept`] as JSON |
//! | `log/archive` | an [`Upkeep`] as JSON | parts of JSON, each a [`Told`]: how far it is, and last that it is done |
//! | `log/keeps` | nothing | [`Keeps`] as JSON |
//!
//! Every part of an answer begins with the answering collector's incarnation (16 bytes). Where two collectors answer, the
//! first to do so is listened to.

use std::time::Duration;

use bytes::Bytes;
use tampu_bus::{AskError, Participant, access::Denied};
use tampu_types::{LogRecord, TopicName, log_batch::LogBatchView, name::BadTopic};

pub use super::services::{Keeps, Kept, KeptStream, StatQuestion};
use super::{
    services::{ARCHIVE, End, KEEPS, OFFSETS, QUERY, STAT, STATUS},
    upkeep::{Done, Told, Upkeep},
};
use crate::{
    archive::{Counts, Doing, Grouping, Scanned},
    query::Query,
};

/// Why a collector's answer could not be had.
#[derive(Debug, thiserror::Error)]
pub enum AskFailed {
    /// Nobody answered.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The service's name is none.
    #[error(transparent)]
    Topic(#[from] BadTopic),
    /// Whoever asks here may not.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The collector says why not.
    #[error("the collector answers: {0}")]
    Refused(String),
    /// The answer ended before its end.
    #[error("the collector's answer was cut off after {0} records")]
    CutOff(u64),
    /// The answer cannot be read: the collector is of another release, perhaps.
    #[error("the collector's answer cannot be read: {0}")]
    Unreadable(String),
}

/// The parts of the first collector that answers.
fn parts(
    participant: &Participant,
    service: &str,
    question: Vec<u8>,
    timeout: Duration,
) -> Result<impl Iterator<Item = Result<Bytes, AskError>>, AskFailed> {
    let answers = participant.ask(&TopicName::new(service)?, Bytes::from(question), timeout)?;
    let mut first: Option<Bytes> = None;
    Ok(answers.filter_map(move |part| match part {
        Ok(part) if part.len() >= 16 => {
            let from = part.slice(..16);
            (*first.get_or_insert_with(|| from.clone()) == from).then(|| Ok(part.slice(16..)))
        }
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    }))
}

/// Records asked for at once. What a collector sends is on its way all at once, so this bounds what lies between it and a slow
/// asker, and how long one answer takes.
const PAGE: u64 = 50_000;

/// Finds records: calls `sink` with each, in the query's order, until it returns `false`. Asks page by page, each within the
/// timeout.
pub fn query(
    participant: &Participant,
    query: &Query,
    timeout: Duration,
    sink: &mut dyn FnMut(LogRecord) -> bool,
) -> Result<Scanned, AskFailed> {
    let mut page = Query { asker: Some(participant.incarnation()), ..query.clone() };
    let mut total = Scanned::default();
    loop {
        let left = query.limit.map_or(u64::MAX, |limit| limit.saturating_sub(total.found));
        page.limit = Some(left.min(PAGE));
        let mut wanted = true;
        let scanned = query_page(participant, &page, timeout, &mut |record| {
            wanted = sink(record);
            wanted
        })?;
        total = Scanned {
            found: total.found + scanned.found,
            looked_at: total.looked_at + scanned.looked_at,
            frames: total.frames + scanned.frames,
            left_out: scanned.left_out,
            damaged: total.damaged.max(scanned.damaged),
            complete: scanned.complete,
            cursor: scanned.cursor.or(total.cursor),
        };
        // A page that is full, or was ended by the collector's time limit, has a page after it.
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
) -> Result<Scanned, AskFailed> {
    let question = serde_json::to_vec(query).map_err(|error| AskFailed::Unreadable(error.to_string()))?;
    let mut found = 0;
    for part in parts(participant, QUERY, question, timeout)? {
        let part = part?;
        if part.first() == Some(&b'{') {
            let end: End = serde_json::from_slice(&part).map_err(|error| AskFailed::Unreadable(error.to_string()))?;
            return match end {
                End { denied: Some(denied), .. } => Err(denied.into()),
                End { error: Some(error), .. } => Err(AskFailed::Refused(error)),
                End { scanned, .. } => Ok(scanned.unwrap_or_default()),
            };
        }
        let view = LogBatchView::parse(&part).map_err(|error| AskFailed::Unreadable(error.to_string()))?;
        for record in view.records() {
            let record = record.map_err(|error| AskFailed::Unreadable(error.to_string()))?;
            found += 1;
            if !sink(record.to_record()) {
                return Ok(Scanned { found, ..Scanned::default() });
            }
        }
    }
    Err(AskFailed::CutOff(found))
}

fn json<T: serde::de::DeserializeOwned>(
    participant: &Participant,
    service: &str,
    question: Vec<u8>,
    timeout: Duration,
) -> Result<T, AskFailed> {
    let mut answer = Vec::new();
    for part in parts(participant, service, question, timeout)? {
        answer.extend_from_slice(&part?);
    }
    match serde_json::from_slice(&answer) {
        Ok(End { denied: Some(denied), .. }) => return Err(denied.into()),
        Ok(End { error: Some(error), .. }) => return Err(AskFailed::Refused(error)),
        _ => {}
    }
    serde_json::from_slice(&answer).map_err(|error| AskFailed::Unreadable(error.to_string()))
}

/// Counts records.
pub fn stat(participant: &Participant, query: &Query, by: &Grouping, timeout: Duration) -> Result<Counts, AskFailed> {
    let query = Query { asker: Some(participant.incarnation()), ..query.clone() };
    let question = StatQuestion { query, by: by.clone() };
    let question = serde_json::to_vec(&question).map_err(|error| AskFailed::Unreadable(error.to_string()))?;
    json(participant, STAT, question, timeout)
}

/// Asks a collector how it is: [`Report`](super::status::Report) as JSON, which a later release may lengthen.
pub fn status(participant: &Participant, timeout: Duration) -> Result<serde_json::Value, AskFailed> {
    json(participant, STATUS, Vec::new(), timeout)
}

/// How far a collector has kept the streams of those who are on the bus. A reader that resumes there, and reads all of those
/// that are not told, gets everything that a search made after this answer does not find.
pub fn offsets(participant: &Participant, timeout: Duration) -> Result<Kept, AskFailed> {
    json(participant, OFFSETS, Vec::new(), timeout)
}

/// Asks for something to be done to a collector's archive; `doing` is told how far it is, until it returns `false`. What goes on
/// there then ends soon.
pub fn upkeep(
    participant: &Participant,
    what: &Upkeep,
    timeout: Duration,
    doing: &mut dyn FnMut(Doing) -> bool,
) -> Result<Done, AskFailed> {
    let unreadable = |error: serde_json::Error| AskFailed::Unreadable(error.to_string());
    let question = serde_json::to_vec(what).map_err(unreadable)?;
    for part in parts(participant, ARCHIVE, question, timeout)? {
        let part = part?;
        match serde_json::from_slice(&part) {
            Ok(Told::Done(done)) => return Ok(done),
            Ok(Told::Doing(now)) if doing(now) => {}
            Ok(Told::Doing(_)) => break,
            Err(told) => {
                return match serde_json::from_slice(&part).map_err(|_| unreadable(told))? {
                    End { denied: Some(denied), .. } => Err(denied.into()),
                    End { error, .. } => Err(AskFailed::Refused(error.unwrap_or_default())),
                };
            }
        }
    }
    Err(AskFailed::CutOff(0))
}

/// Whether a collector can keep what comes: `None` if one of those there can, else why the last of them cannot.
pub fn keeps(participant: &Participant, timeout: Duration) -> Result<Option<String>, AskFailed> {
    let mut told = None;
    for answer in participant.ask(&TopicName::new(KEEPS)?, Bytes::new(), timeout)? {
        let answer = match answer {
            Ok(answer) => answer,
            // Who has not answered by now does not take back what another has said.
            Err(_) if told.is_some() => break,
            Err(error) => return Err(error.into()),
        };
        let json = answer.get(16..).unwrap_or_default();
        if let Ok(End { denied: Some(denied), .. }) = serde_json::from_slice(json) {
            return Err(denied.into());
        }
        let Keeps { stuck } = serde_json::from_slice(json).map_err(|error| AskFailed::Unreadable(error.to_string()))?;
        match stuck {
            None => return Ok(None),
            Some(why) => told = Some(why),
        }
    }
    told.map(Some).ok_or_else(|| AskFailed::Unreadable("an answer without a part".to_owned()))
}
