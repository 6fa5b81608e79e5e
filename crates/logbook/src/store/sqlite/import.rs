//! Imports: a larger cache meanwhile, and a tidy index afterwards.

use super::{IMPORT_CACHE, Result, SqliteStore, WRITER_CACHE, rows::book_row};
use crate::{
    attachment::Upload,
    store::{ImportOutcome, Imported, Imports, import::Import},
};

impl Imports for SqliteStore {
    fn import(&self, book: &str, entries: Vec<Imported>, uploads: Vec<Upload>, by: &str) -> Result<Vec<ImportOutcome>> {
        self.writer.lock().db.pragma_update(None, "cache_size", -IMPORT_CACHE)?;
        let done = self.write(|writing| writing.take_over_all(book, entries, uploads, by));
        self.writer.lock().db.pragma_update(None, "cache_size", -WRITER_CACHE)?;
        done
    }

    fn imported(&self) -> Result<()> {
        let writer = self.writer.lock();
        writer.db.execute("INSERT INTO words(words) VALUES ('optimize')", [])?;
        writer.db.execute_batch("ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)")?;
        Ok(())
    }

    fn digests(&self, book: &str) -> Result<Vec<(u32, [u8; 16])>> {
        self.read(|db| {
            let book_row = book_row(db, book)?;
            let mut query = db.prepare(
                "SELECT id, digest FROM imported AS known WHERE book = ?1 AND NOT EXISTS \
                 (SELECT 1 FROM tombstone AS gone WHERE gone.book = known.book AND gone.id = known.id) ORDER BY id",
            )?;
            let rows = query.query_map([book_row.num], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn all_imports(&self, book: &str) -> Result<Vec<(u32, [u8; 16])>> {
        self.read(|db| {
            let book_row = book_row(db, book)?;
            let mut query = db.prepare("SELECT id, digest FROM imported WHERE book = ?1 ORDER BY id")?;
            let rows = query.query_map([book_row.num], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}
