//! The journal of changes, for subscribers in this hub and in others.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::{Duration, Instant},
};

use tampu_workers::WorkerThread;

use super::{Database, PostgresStore, rows::number, session::Session, tables::PostgresTransaction};
use crate::{
    entry::EntryRef,
    store::{
        CHANGES_KEPT, Changes, EntryChange, Result,
        book_row::{damaged, json},
    },
};

/// The poll interval for changes while the listening connection is broken.
const LOOK: Duration = Duration::from_secs(1);
/// Number of changes between two removals of old changes.
const TIDY: i64 = 1024;

impl PostgresTransaction<'_> {
    /// Writes the changes into the journal and notifies subscribers, as the last step before the commit. A lock, taken
    /// by the statement before, lets one transaction do so at a time. So no subscriber sees a change before one with a
    /// lower number.
    pub(super) fn write_changes(&mut self) -> Result<()> {
        if self.changes.is_empty() {
            return Ok(());
        }
        let (mut books, mut ids, mut whats) = (Vec::new(), Vec::new(), Vec::new());
        for (book, id, what) in self.changes.drain(..) {
            books.push(book);
            ids.push(i64::from(id));
            whats.push(json(&what)?);
        }
        let sql = "WITH told AS (INSERT INTO change(book, id, what) \
                   SELECT book, id, what FROM unnest($1::bigint[], $2::bigint[], $3::text[]) WITH ORDINALITY AS new(book, id, what, nth) \
                   ORDER BY nth RETURNING number) SELECT min(number), max(number), pg_notify($4, '')::text FROM told";
        let Some(row) = self.session.one(sql, &[&books, &ids, &whats, &self.inner.channel])? else { return Ok(()) };
        let (first, last): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        if first / TIDY != last / TIDY || last % TIDY == 0 {
            self.session.execute("DELETE FROM change WHERE number <= $1", &[&(last - CHANGES_KEPT as i64)])?;
        }
        Ok(())
    }
}

fn last(session: &Session) -> Result<u64> {
    session.one("SELECT coalesce(max(number), 0) FROM change", &[])?.map_or(Ok(0), |row| number(&row, 0))
}

impl PostgresStore {
    /// Starts the thread that listens for other hubs' notifications, if it does not run yet.
    fn listen(&self) {
        if self.0.listens.swap(true, Ordering::Relaxed) {
            return;
        }
        let inner = Arc::downgrade(&self.0);
        let thread = WorkerThread::named("book-listen").spawn_restarting(LOOK, move || listen(&inner));
        // Without the thread, the store polls for changes.
        self.0.listens.store(thread.is_ok(), Ordering::Relaxed);
    }
}

impl Changes for PostgresStore {
    fn last_change(&self) -> Result<u64> {
        last(&*self.0.readers.get()?)
    }

    fn changes(&self, after: u64, most: usize) -> Result<Vec<EntryChange>> {
        let sql = "SELECT change.number, book.name, change.id, change.what FROM change JOIN book ON book.num = change.book \
                   WHERE change.number > $1 ORDER BY change.number LIMIT $2";
        let (after, most) = (i64::try_from(after).unwrap_or(i64::MAX), i64::try_from(most).unwrap_or(i64::MAX));
        let rows = self.0.readers.get()?.query(sql, &[&after, &most])?;
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            let at = EntryRef { book: row.try_get(1)?, id: number(row, 2)? };
            let what = serde_json::from_str(row.try_get(3)?).map_err(|error| damaged(&at.book, at.id, error))?;
            found.push(EntryChange { number: number(row, 0)?, at, what });
        }
        Ok(found)
    }

    fn wait_for_change(&self, after: u64, time: Duration) -> Result<u64> {
        self.listen();
        let until = Instant::now() + time;
        loop {
            let seen = *self.0.notified.0.lock();
            let last = self.last_change()?;
            let left = until.saturating_duration_since(Instant::now());
            if last > after || left.is_zero() {
                return Ok(last);
            }
            let mut state = self.0.notified.0.lock();
            self.0.notified.1.wait_while_for(&mut state, |now| *now == seen, left.min(LOOK));
        }
    }
}

/// Listens until the store is closed, and reconnects after a pause when the connection breaks.
fn listen(inner: &Weak<Database>) {
    while let Some(store) = inner.upgrade() {
        let listening = Session::open(&store.address, &store.schema, &format!("LISTEN \"{}\"", store.channel), &Arc::default());
        store.notify();
        drop(store);
        let Ok(session) = listening else {
            std::thread::sleep(LOOK);
            continue;
        };
        while let Ok(told) = session.wait(LOOK) {
            let Some(store) = inner.upgrade() else { return };
            if told {
                store.notify();
            }
            drop(store);
            if session.health() != crate::store::pool::ConnectionHealth::Good {
                break;
            }
        }
    }
}

impl Database {
    /// Wakes the threads that wait for changes.
    fn notify(&self) {
        *self.notified.0.lock() += 1;
        self.notified.1.notify_all();
    }
}
