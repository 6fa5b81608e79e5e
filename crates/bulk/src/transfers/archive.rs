//! The archive of transfers: writing notes of begins and ends, and finding transfers.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tampu_archive::{ArchiveError, Arrival, Find, Options, Stop, TableArchive};
use tampu_bus::Participant;
use tampu_types::{BatchHeader, ClockState, Incarnation, Time};

use super::{
    query::{PAGE, TransferPage, TransferQuery},
    table::{BEGUN, ENDED, ID, KEPT_TYPE, KeptTransfer, SCHEMA, transfer},
    transfer::Transfer,
};

/// Transfers of a page, if the question has no limit.
const USUAL_PAGE: u64 = 100;
/// Bytes of the transfers of a page, beyond which it ends.
const PAGE_BYTES: usize = 3 << 20;
/// Age of a begin without an end that an account still takes for running when it starts.
const RUNNING_FOR: i64 = 30 * 86_400_000_000_000;
/// Rows that are read for it.
const ROWS_READ: usize = 20_000;
/// Longest time for it.
const START: Duration = Duration::from_secs(10);
/// Longest time to write the last transfers at the end.
const LAST: Duration = Duration::from_secs(5);

/// Place of a note on the bus: a stream of its sender, and its number there from 1 on.
pub(super) type NotePlace = (u32, u64);

/// Place of a transfer that ended without a note.
pub(super) const NO_NOTE: NotePlace = (0, 0);

/// The archive of transfers. Dropping it writes the waiting transfers, for at most 5 s.
pub(super) struct TransferArchive {
    pub archive: Arc<TableArchive>,
    header: Mutex<BatchHeader>,
}

impl TransferArchive {
    pub fn open(dir: &Path, options: Options, participant: &Participant) -> Result<TransferArchive, ArchiveError> {
        let header = BatchHeader {
            domain: participant.domain().clone(),
            source: participant.source().clone(),
            incarnation: participant.incarnation(),
            stream: 0,
            first: 0,
            count: 1,
            type_id: KEPT_TYPE,
            type_version: 1,
            acquired: Time(0),
            sent: Time(0),
            clock: ClockState::Unknown,
            tai_offset: 0,
            flags: 0,
        };
        Ok(TransferArchive { archive: Arc::new(TableArchive::open(dir, &SCHEMA, options)?), header: Mutex::new(header) })
    }

    /// Returns true if the note at this place, or a later one of its stream, is kept already.
    pub fn has(&self, sender: Incarnation, (stream, number): NotePlace) -> bool {
        self.archive.last_number(sender, stream).is_some_and(|last| last >= number)
    }

    /// Keeps the begin or the end of a transfer.
    pub fn keep(&self, one: &Transfer, (note_stream, note): NotePlace, received: Time) -> Result<(), ArchiveError> {
        let kept = KeptTransfer { note_stream, note, received, transfer: one.clone() };
        // Texts and numbers always have a JSON.
        let sample = serde_json::to_vec(&kept).unwrap_or_default();
        let mut header = self.header.lock();
        let arrival = Arrival { header: &header, samples: &[&sample], received, advances: None };
        let outcome = self.archive.append(&arrival).map(drop);
        header.first += 1;
        outcome
    }

    /// Returns the transfers that began and of which no end is kept, the oldest first.
    pub fn running(&self, now: Time) -> Result<Vec<Transfer>, ArchiveError> {
        let find = Find {
            since: Some(Time(now.0.saturating_sub(RUNNING_FOR))),
            until: None,
            marks: ENDED | BEGUN,
            column: ID,
            wants: &|_| true,
            after: None,
            newest_first: true,
        };
        let (mut ended, mut running, mut read) = (HashSet::new(), HashMap::new(), 0);
        self.archive.find(&find, &Stop::after(START), &mut |row| {
            read += 1;
            if let Some(one) = transfer(&row) {
                let id = one.id();
                if !one.is_under_way() {
                    ended.insert(id);
                } else if !ended.contains(&id) {
                    running.insert(id, one);
                }
            }
            read < ROWS_READ
        })?;
        // The end of a very short transfer may have the time of its begin, or an earlier one if a clock stepped.
        let mut running: Vec<Transfer> = running.into_iter().filter(|(id, _)| !ended.contains(id)).map(|(_, one)| one).collect();
        running.sort_by_key(|one| one.began);
        Ok(running)
    }

    /// Returns a page: the wanted ones of the running transfers, if it is the first page, and kept ones.
    pub fn page(&self, query: &TransferQuery, running: &[Transfer], stop: &Stop) -> Result<TransferPage, ArchiveError> {
        let limit = query.limit.unwrap_or(USUAL_PAGE).clamp(1, PAGE);
        let mut page = TransferPage { complete: true, ..TransferPage::default() };
        let mut bytes = 0;
        let length = |one: &Transfer| serde_json::to_vec(one).map_or(0, |json| json.len());
        if query.after.is_none() {
            let mut wanted: Vec<&Transfer> = running.iter().filter(|one| query.wants(one)).collect();
            wanted.sort_by_key(|one| std::cmp::Reverse(one.began));
            for one in wanted {
                bytes += length(one);
                if bytes > PAGE_BYTES {
                    page.left_out += 1;
                } else {
                    page.transfers.push(one.clone());
                }
            }
            bytes = bytes.min(PAGE_BYTES - 1);
        }
        if query.outcome == Some(super::transfer::Outcome::UnderWay) {
            return Ok(page);
        }
        let is_it = |id: &[u8]| query.id.as_ref().is_none_or(|wanted| wanted.as_bytes() == id);
        let find = Find {
            since: query.since,
            // The table is in the order of ends, and the range is about begins.
            until: None,
            marks: ENDED,
            column: ID,
            wants: &is_it,
            after: query.after,
            newest_first: true,
        };
        let (mut found, mut seen, mut last) = (0, HashSet::new(), query.after);
        let mut is_full = false;
        let swept = self.archive.find(&find, stop, &mut |row| {
            let Some(one) = transfer(&row).filter(|one| query.wants(one)) else {
                last = Some(row.place());
                return true;
            };
            // A transfer that was taken for broken off may have ended after all: its last row counts.
            if seen.insert(one.id()) {
                let more = length(&one);
                is_full = found == limit || found > 0 && bytes + more > PAGE_BYTES;
                if is_full {
                    return false;
                }
                (found, bytes) = (found + 1, bytes + more);
                page.transfers.push(one);
            }
            last = Some(row.place());
            true
        })?;
        page.damaged = swept.damaged;
        page.complete = swept.complete || is_full;
        page.cursor = last.filter(|_| !swept.complete);
        Ok(page)
    }
}

impl Drop for TransferArchive {
    fn drop(&mut self) {
        self.archive.flush(LAST);
    }
}
