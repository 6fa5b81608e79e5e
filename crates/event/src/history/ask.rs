//! Requests for the history of events.

use std::time::Duration;

use tampu_archive::{
    Doing, Swept,
    upkeep::{Done, Told, Upkeep},
};
use tampu_bus::{
    Participant,
    service::{CallError, call_json},
};
use tampu_types::event::KeptEvent;

use super::service::{ARCHIVE, End, HISTORY};
pub use super::service::{HistoryQuery, archive_in};

/// Events requested at once. The hub ends an answer sooner if they are long. This limits the data on the way to a slow
/// asker.
const PAGE: u64 = 20_000;

/// Finds events and calls `sink` with each, in the requested order, until it returns `false`. It requests page by page,
/// each within the timeout.
pub fn history(
    participant: &Participant,
    asked: &HistoryQuery,
    timeout: Duration,
    sink: &mut dyn FnMut(&KeptEvent<'_>) -> bool,
) -> Result<Swept, CallError> {
    let mut page = HistoryQuery { asker: Some(participant.incarnation()), ..asked.clone() };
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
    page: &HistoryQuery,
    timeout: Duration,
    sink: &mut dyn FnMut(&KeptEvent<'_>) -> bool,
) -> Result<Swept, CallError> {
    let mut answer = call_json(participant, HISTORY, page, timeout)?.first();
    let mut found = 0;
    while let Some(part) = answer.next() {
        let part = part?;
        if part.first() != Some(&b'E') {
            let end: End = serde_json::from_slice(&part).map_err(|why| answer.unreadable(&why))?;
            return Ok(end.swept);
        }
        let mut rest = &part[1..];
        while !rest.is_empty() {
            let cut = || answer.unreadable(&"a part ends within an event");
            let (length, behind) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
            let (event, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(cut)?;
            rest = behind;
            found += 1;
            let kept = KeptEvent::parse(event).map_err(|why| answer.unreadable(&why))?;
            if !sink(&kept) {
                return Ok(Swept { found, ..Swept::default() });
            }
        }
    }
    Err(answer.cut_off(found))
}

/// Runs an upkeep task of the archive of events. `doing` gets its progress until it returns `false`.
pub fn upkeep(
    participant: &Participant,
    what: &Upkeep,
    timeout: Duration,
    doing: &mut dyn FnMut(Doing) -> bool,
) -> Result<Done, CallError> {
    call_json(participant, ARCHIVE, what, timeout)?.first().until(|told: Told| told.judged(doing))
}
