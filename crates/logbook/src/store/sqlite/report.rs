//! Numbers about the built-in store.

use std::fs;

use super::{Result, SqliteStore};
use crate::store::report::{ConnectionReport, Reports, StoreReport, StoreSizes};

/// Bytes of a page of the index, as FTS5 makes them.
const INDEX_PAGE: u64 = 4050;

impl Reports for SqliteStore {
    fn report(&self) -> StoreReport {
        let busy = usize::from(self.writer.is_locked());
        let writer = ConnectionReport { used_to: "write", open: 1, busy, waiting: 0 };
        let connections = vec![writer, self.readers.report("read"), self.searchers.report("search")];
        self.counts.report(connections, || self.sizes())
    }
}

impl SqliteStore {
    fn sizes(&self) -> Result<StoreSizes> {
        let size = |name: &str| fs::metadata(self.dir.join(name)).map_or(0, |file| file.len());
        let bytes = size("book.db") + size("book.db-wal");
        self.read(|db| {
            // It has a short row for each page of the index.
            let mut query = db.prepare_cached("SELECT count(*), count(DISTINCT segid) FROM words_idx")?;
            let (pages, parts): (i64, i64) = query.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(StoreSizes { bytes, index_bytes: pages.unsigned_abs() * INDEX_PAGE, index_parts: Some(parts.unsigned_abs()) })
        })
    }
}
