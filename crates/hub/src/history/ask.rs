//! Asking for the history of events.

use std::time::Duration;

use bytes::Bytes;
use tampu_bus::{AskError, Participant, access::Denied};
use tampu_log::{
    archive::{Doing, Swept},
    collector::upkeep::{Done, Told, Upkeep},
};
use tampu_types::{TopicName, event::KeptEvent, name::BadTopic};

use super::service::{ARCHIVE, End, HISTORY};
pub use super::service::{Asked, archive_in};

/// Why an answer could not be had.
#[derive(Debug, thiserror::Error)]
pub enum AskFailed {
    /// Nobody answered.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The service has no name.
    #[error(transparent)]
    Topic(#[from] BadTopic),
    /// Whoever asks here may not.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The hub says why not.
    #[error("the hub answers: {0}")]
    Refused(String),
    /// The answer ended before its end.
    #[error("the hub's answer was cut off after {0} events")]
    CutOff(u64),
    /// The answer cannot be read: the hub is of another release, perhaps.
    #[error("the hub's answer cannot be read: {0}")]
    Unreadable(String),
}

/// Events asked for at once; the hub ends an answer sooner where they are long. Bounds what lies between it and a slow asker.
const PAGE: u64 = 20_000;

/// The parts of the first hub that answers.
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

/// Finds events: calls `sink` with each, in the order asked for, until it returns `false`. Asks page by page, each within the timeout.
pub fn history(
    participant: &Participant,
    asked: &Asked,
    timeout: Duration,
    sink: &mut dyn FnMut(&KeptEvent<'_>) -> bool,
) -> Result<Swept, AskFailed> {
    let mut page = Asked { asker: Some(participant.incarnation()), ..asked.clone() };
    let mut total = Swept::default();
    loop {
        let left = asked.limit.map_or(u64::MAX, |limit| limit.saturating_sub(total.found));
        page.limit = Some(if asked.count { left } else { left.min(PAGE) });
        let mut wanted = true;
        let swept = one_page(participant, &page, timeout, &mut |kept| {
            wanted = sink(kept);
            wanted
        })?;
        total = Swept {
            found: total.found + swept.found,
            looked_at: total.looked_at + swept.looked_at,
            damaged: total.damaged.max(swept.damaged),
            complete: swept.complete,
            cursor: swept.cursor.or(total.cursor),
        };
        // A page that is full, or was ended by the hub's time limit, has a page after it.
        if !wanted || swept.complete || swept.found == 0 || swept.found >= left {
            return Ok(total);
        }
        page.after = total.cursor;
    }
}

fn one_page(
    participant: &Participant,
    page: &Asked,
    timeout: Duration,
    sink: &mut dyn FnMut(&KeptEvent<'_>) -> bool,
) -> Result<Swept, AskFailed> {
    let question = serde_json::to_vec(page).map_err(|error| AskFailed::Unreadable(error.to_string()))?;
    let mut found = 0;
    for part in parts(participant, HISTORY, question, timeout)? {
        let part = part?;
        if part.first() != Some(&b'E') {
            let end: End = serde_json::from_slice(&part).map_err(|error| AskFailed::Unreadable(error.to_string()))?;
            return match end {
                End { denied: Some(denied), .. } => Err(denied.into()),
                End { error: Some(error), .. } => Err(AskFailed::Refused(error)),
                End { swept, .. } => Ok(swept.unwrap_or_default()),
            };
        }
        let mut rest = &part[1..];
        while !rest.is_empty() {
            let cut = || AskFailed::Unreadable("a part ends within an event".to_owned());
            let (length, behind) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
            let (event, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(cut)?;
            rest = behind;
            found += 1;
            let kept = KeptEvent::parse(event).map_err(|error| AskFailed::Unreadable(error.to_string()))?;
            if !sink(&kept) {
                return Ok(Swept { found, ..Swept::default() });
            }
        }
    }
    Err(AskFailed::CutOff(found))
}

/// Has something done to the archive of events; `doing` is told how far it is, until it returns `false`.
pub fn upkeep(
    participant: &Participant,
    what: &Upkeep,
    timeout: Duration,
    doing: &mut dyn FnMut(Doing) -> bool,
) -> Result<Done, AskFailed> {
    let question = serde_json::to_vec(what).map_err(|error| AskFailed::Unreadable(error.to_string()))?;
    let mut last = Vec::new();
    for part in parts(participant, ARCHIVE, question, timeout)? {
        last.extend_from_slice(&part?);
        if let Ok(End { error: Some(error), denied, .. }) = serde_json::from_slice(&last) {
            return Err(denied.map_or(AskFailed::Refused(error), AskFailed::from));
        }
        match serde_json::from_slice::<Told>(&last) {
            Ok(Told::Done(done)) => return Ok(done),
            Ok(Told::Doing(now)) => {
                last.clear();
                if !doing(now) {
                    break;
                }
            }
            // A long one comes in pieces.
            Err(_) => {}
        }
    }
    Err(AskFailed::CutOff(0))
}
