//! The last changes of entries, for whoever waits for them, here or on another hub.

use std::{
    sync::{Arc, PoisonError, Weak, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{Inner, PostgresStore, lock, rows::number, session::Session, tables::Writing};
use crate::{
    entry::EntryRef,
    store::{
        CHANGES_KEPT, EntryChange, Result,
        shelf::{damaged, json},
    },
};

/// How often changes are looked for where nobody tells them: while the connection that listens is broken.
const LOOK: Duration = Duration::from_secs(1);
/// Changes between two times that old ones go.
const TIDY: i64 = 1024;

impl Writing<'_> {
    /// Writes the changes and tells them: the last thing before the transaction is committed. One at a time, which the statement before has seen to,
    /// so that nobody sees a change before one of a lower number.
    pub(super) fn tell_changes(&mut self) -> Result<()> {
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
    pub(super) fn number_of_last_change(&self) -> Result<u64> {
        last(&*self.0.readers.get()?)
    }

    pub(super) fn changes_after(&self, after: u64, most: usize) -> Result<Vec<EntryChange>> {
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

    pub(super) fn wait_for_next_change(&self, after: u64, time: Duration) -> Result<u64> {
        self.listen();
        let until = Instant::now() + time;
        loop {
            let seen = *lock(&self.0.told.0);
            let last = self.number_of_last_change()?;
            let left = until.saturating_duration_since(Instant::now());
            if last > after || left.is_zero() {
                return Ok(last);
            }
            let state = lock(&self.0.told.0);
            let wait = self.0.told.1.wait_timeout_while(state, left.min(LOOK), |now| *now == seen);
            drop(wait.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Starts to listen for what other hubs tell, if nobody does yet.
    fn listen(&self) {
        if self.0.listens.swap(true, Ordering::Relaxed) {
            return;
        }
        let inner = Arc::downgrade(&self.0);
        let thread = std::thread::Builder::new().name("book-listen".to_owned()).spawn(move || listen(&inner));
        // Without it changes are still looked for.
        self.0.listens.store(thread.is_ok(), Ordering::Relaxed);
    }
}

/// Listens until the store is closed; again after a while when the connection broke.
fn listen(inner: &Weak<Inner>) {
    while let Some(store) = inner.upgrade() {
        let listening = Session::open(&store.config, &store.schema, &format!("LISTEN \"{}\"", store.channel), &Arc::default());
        store.tell();
        drop(store);
        let Ok(session) = listening else {
            std::thread::sleep(LOOK);
            continue;
        };
        while let Ok(told) = session.wait(LOOK) {
            let Some(store) = inner.upgrade() else { return };
            if told {
                store.tell();
            }
            drop(store);
            if session.health() != crate::store::pool::Health::Good {
                break;
            }
        }
    }
}

impl Inner {
    /// Something was told.
    fn tell(&self) {
        *lock(&self.told.0) += 1;
        self.told.1.notify_all();
    }
}
