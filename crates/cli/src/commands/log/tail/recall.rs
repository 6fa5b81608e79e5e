//! Archived records before live ones, without gaps or duplicates.
//!
//! The first request to the collector asks for the kept position of each stream. The live readers then begin there. A second
//! request has the collector commit what it has received: its writer may end before it knows of the readers. Only after that
//! the archive is searched. So a record that the search does not find arrives live, however late it is committed. A record
//! committed between the first request and the search arrives both ways; its id is remembered from the search, and
//! the live copy is dropped. Only records that the collector received after the first request can arrive twice, or
//! shortly before it (they may have waited for a commit). So only their ids are remembered.
//!
//! While the archive is shown, live records wait here, at most [`HELD`]. Beyond that they wait in the readers and then
//! in their writers, as for every slow reader.

use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};

use tampu_archive::query::Query;
use tampu_log::collector::ask::Kept;
use tampu_types::{LogRecord, RecordId, Time};

use crate::{
    failure::{Failure, Outcome},
    interrupt::Interrupt,
    keeper::Keeper,
    live::{Live, News},
};

/// Records that wait while the archive is shown.
const HELD: usize = 100_000;
/// Longest time from the receipt of a record to its commit, ns.
const UNCOMMITTED: i64 = 60_000_000_000;

/// The part of the archive that is shown first.
#[derive(Debug, Clone, Copy)]
pub enum Before {
    /// The last records, of this number.
    Last(u64),
    /// All from this time on.
    Since(Time),
}

/// Records shown from the archive that may also arrive live.
pub struct Recall {
    /// Reception time before which no record arrives live.
    from: Time,
    shown: HashSet<RecordId>,
    waiting: VecDeque<News>,
    /// Records in them.
    held: usize,
}

impl Recall {
    /// Begins with the positions that a collector has kept; the live readers begin there.
    pub fn new(kept: &Kept) -> Recall {
        let from = Time(kept.now.0.saturating_sub(UNCOMMITTED));
        Recall { from, shown: HashSet::new(), waiting: VecDeque::new(), held: 0 }
    }

    /// Shows the records of the archive, the oldest first; returns whether all were shown.
    pub fn show(
        &mut self,
        keeper: &Keeper,
        query: &Query,
        before: Before,
        live: &mut Live,
        interrupt: &Interrupt,
        show: &mut dyn FnMut(&LogRecord) -> Outcome,
    ) -> Result<bool, Failure> {
        keeper.commit()?;
        match before {
            Before::Since(since) => {
                let wanted = Query { since: Some(since), newest_first: false, ..query.clone() };
                keeper.search_quietly(&wanted, interrupt, &mut |record| {
                    self.note(&record);
                    self.take(live);
                    show(&record)
                })
            }
            Before::Last(last) => {
                let wanted = Query { newest_first: true, limit: Some(last), ..query.clone() };
                let mut found = Vec::new();
                let all = keeper.search_quietly(&wanted, interrupt, &mut |record| {
                    self.note(&record);
                    found.push(record);
                    Ok(())
                });
                found.iter().rev().try_for_each(show)?;
                all
            }
        }
    }

    /// Takes one piece of live news without waiting, if there is room for it.
    fn take(&mut self, live: &mut Live) {
        if self.held < HELD
            && let Some(news) = live.next(Duration::ZERO)
        {
            self.held += if let News::Records(records) = &news { records.len() } else { 1 };
            self.waiting.push_back(news);
        }
    }

    /// Returns the next live item that has waited.
    pub fn waiting(&mut self) -> Option<News> {
        self.waiting.pop_front()
    }

    fn note(&mut self, record: &LogRecord) {
        if let Some(id) = record.id
            && record.received.is_none_or(|received| received >= self.from)
        {
            self.shown.insert(id);
        }
    }

    /// Returns true if a live record has not been shown yet. Each live record is checked once.
    pub fn is_new(&mut self, record: &LogRecord) -> bool {
        record.id.is_none_or(|id| !self.shown.remove(&id))
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::{Incarnation, Level};

    use super::*;

    #[test]
    fn what_was_shown_of_the_archive_is_not_shown_again_live() {
        let record = |number: u64, received: i64| LogRecord {
            id: Some(RecordId { incarnation: Incarnation { boot: 1, pid: 2, start: 3 }, ring: 0, number }),
            received: Some(Time(received)),
            ..LogRecord::new(Level::Info, "x")
        };
        let now = 1_000_000_000_000_000_000;
        let mut recall = Recall::new(&Kept { now: Time(now), streams: Vec::new() });
        recall.note(&record(1, now - 2 * UNCOMMITTED));
        recall.note(&record(2, now + 5));
        assert!(!recall.is_new(&record(2, now + 9)), "it was committed between the two questions");
        assert!(recall.is_new(&record(3, now + 9)));
        assert!(recall.shown.is_empty(), "what cannot come live is not remembered, and what came is forgotten");
        assert!(recall.is_new(&LogRecord::new(Level::Info, "without an id")));
    }
}
