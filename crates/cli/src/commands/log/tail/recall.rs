//! The last records before the live ones.
//!
//! They come from the collector, after the live readers are there, so what is logged meanwhile may come both ways and is shown
//! once. What was logged before the readers were known to its writer and not yet committed when the collector was asked comes
//! neither way: a moment later the collector is asked once more for what follows, and that is shown as well.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use tampu_log::query::{Cursor, Query};
use tampu_types::{LogRecord, RecordId};

use crate::{failure::Outcome, interrupt::Interrupt, keeper::Keeper};

/// When the collector is asked the second time: by then the readers are known and what was on its way is committed.
const MOMENT: Duration = Duration::from_secs(1);

/// What has been shown since the tail began, until nothing can come twice any more.
pub struct Recall {
    keeper: Keeper,
    query: Query,
    shown: HashSet<RecordId>,
    newest: Option<Cursor>,
    again: Instant,
}

impl Recall {
    /// Shows the last records of a query, the oldest of them first.
    pub fn begin(
        keeper: Keeper,
        query: &Query,
        last: u64,
        interrupt: &Interrupt,
        show: &mut dyn FnMut(&LogRecord) -> Outcome,
    ) -> Result<Recall, crate::failure::Failure> {
        let mut found = Vec::new();
        let wanted = Query { newest_first: true, limit: Some(last), ..query.clone() };
        keeper.search(&wanted, interrupt, &mut |record| {
            found.push(record);
            Ok(())
        })?;
        let shown = found.iter().filter_map(|record| record.id).collect();
        let newest = found.first().map(Cursor::of);
        found.iter().rev().try_for_each(show)?;
        Ok(Recall { keeper, query: query.clone(), shown, newest, again: Instant::now() + MOMENT })
    }

    /// Whether a record has not been shown yet; it is now.
    pub fn is_new(&mut self, record: &LogRecord) -> bool {
        record.id.is_none_or(|id| self.shown.insert(id))
    }

    /// Whether the collector is to be asked again.
    pub fn is_due(&self) -> bool {
        Instant::now() >= self.again
    }

    /// Shows what came neither way.
    pub fn end(mut self, interrupt: &Interrupt, show: &mut dyn FnMut(&LogRecord) -> Outcome) -> Outcome {
        let after = Query { newest_first: false, after: self.newest.take(), ..self.query.clone() };
        let shown = &mut self.shown;
        self.keeper.search(&after, interrupt, &mut |record| {
            if record.id.is_some_and(|id| shown.insert(id)) { show(&record) } else { Ok(()) }
        })
    }
}
