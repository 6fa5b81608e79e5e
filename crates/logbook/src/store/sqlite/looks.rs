//! Looks at entries in SQLite.

use rusqlite::params;

use super::{Result, SqliteStore, rows::book_row};
use crate::{
    entry::EntryRef,
    store::looks::{EntryLooks, LookCount, Looks, LooksOnDay, MOST_DAYS},
};

impl Looks for SqliteStore {
    fn add_looks(&self, looks: &[LookCount]) -> Result<()> {
        self.write(|writing| {
            let sql = "INSERT INTO look SELECT entry.book, entry.id, ?3, ?4 FROM book JOIN entry ON entry.book = book.num \
                       WHERE book.folded = ?1 AND entry.id = ?2 \
                       ON CONFLICT (book, id, day) DO UPDATE SET looks = looks + excluded.looks";
            let mut insert = writing.db.prepare_cached(sql)?;
            for one in looks {
                insert.execute(params![one.at.book.to_lowercase(), one.at.id, one.day, one.looks as i64])?;
            }
            Ok(())
        })
    }

    fn look_count(&self, at: &EntryRef) -> Result<u64> {
        self.read(|db| {
            let num = book_row(db, &at.book)?.num;
            let mut query = db.prepare_cached("SELECT coalesce(sum(looks), 0) FROM look WHERE book = ?1 AND id = ?2")?;
            Ok(query.query_row(params![num, at.id], |row| row.get::<_, i64>(0))?.unsigned_abs())
        })
    }

    fn looks(&self, at: &EntryRef) -> Result<EntryLooks> {
        let looks = self.look_count(at)?;
        self.read(|db| {
            let num = book_row(db, &at.book)?.num;
            let sql = "SELECT day, looks FROM look WHERE book = ?1 AND id = ?2 ORDER BY day DESC LIMIT ?3";
            let mut query = db.prepare_cached(sql)?;
            let one = |row: &rusqlite::Row<'_>| Ok(LooksOnDay { day: row.get(0)?, looks: row.get::<_, i64>(1)?.unsigned_abs() });
            let days = query.query_map(params![num, at.id, MOST_DAYS], one)?.collect::<rusqlite::Result<_>>()?;
            Ok(EntryLooks { looks, days })
        })
    }
}
