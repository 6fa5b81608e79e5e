//! What an import needs beside the tables: room while it lasts, and order after it.

use super::{IMPORT_CACHE, Result, SqliteStore, WRITER_CACHE, rows::shelf};
use crate::{
    attachment::Upload,
    store::{ImportOutcome, Imported, import::Import, pool::lock},
};

impl SqliteStore {
    pub(super) fn take_over(
        &self,
        book: &str,
        entries: Vec<Imported>,
        uploads: Vec<Upload>,
        by: &str,
    ) -> Result<Vec<ImportOutcome>> {
        lock(&self.writer).db.pragma_update(None, "cache_size", -IMPORT_CACHE)?;
        let done = self.write(|writing| writing.take_over_all(book, entries, uploads, by));
        lock(&self.writer).db.pragma_update(None, "cache_size", -WRITER_CACHE)?;
        done
    }

    pub(super) fn settle_index(&self) -> Result<()> {
        let writer = lock(&self.writer);
        writer.db.execute("INSERT INTO words(words) VALUES ('optimize')", [])?;
        writer.db.execute_batch("ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)")?;
        Ok(())
    }

    pub(super) fn all_digests(&self, book: &str) -> Result<Vec<(u32, [u8; 16])>> {
        self.read(|db| {
            let shelf = shelf(db, book)?;
            let mut query = db.prepare(
                "SELECT id, digest FROM imported AS known WHERE book = ?1 AND NOT EXISTS \
                 (SELECT 1 FROM tombstone AS gone WHERE gone.book = known.book AND gone.id = known.id) ORDER BY id",
            )?;
            let rows = query.query_map([shelf.num], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}
