//! The space of files in SQLite, by book and user.

use rusqlite::params;

use super::{Result, SqliteStore, SqliteTransaction};
use crate::{
    entry::Content,
    store::{
        quota::{Quota, Used, UsedSpace},
        quota_tables::QuotaTables,
    },
};

impl SqliteStore {
    /// Returns the files of each user in each book, by book.
    pub(super) fn used_by_all(&self) -> Result<Vec<UsedSpace>> {
        self.read(|db| {
            let sql = "SELECT book.name, used.by, files, bytes FROM used JOIN book ON book.num = used.book WHERE files > 0 \
                       ORDER BY book.folded, used.by";
            let mut query = db.prepare_cached(sql)?;
            let rows = query.query_map([], |row| {
                let (files, bytes): (i64, i64) = (row.get(2)?, row.get(3)?);
                Ok(UsedSpace { book: row.get(0)?, by: row.get(1)?, files: files.unsigned_abs(), bytes: bytes.unsigned_abs() })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}

impl QuotaTables for SqliteTransaction<'_> {
    fn quota(&self) -> Quota {
        self.quota
    }

    fn used(&mut self, num: i64, by: &str) -> Result<Used> {
        let sql = "SELECT coalesce(sum(bytes), 0), coalesce(sum(bytes) FILTER (WHERE book = ?1), 0), \
                   coalesce(sum(bytes) FILTER (WHERE by = ?2), 0) FROM used";
        let sums = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
        let (site, book, user) = self.db.prepare_cached(sql)?.query_row(params![num, by], sums)?;
        Ok(Used { site: site.unsigned_abs(), book: book.unsigned_abs(), user: user.unsigned_abs() })
    }

    fn charge(&mut self, num: i64, id: u32, content: &Content, by: &str) -> Result<()> {
        for file in &content.attachments {
            let Some(sha) = &file.sha else { continue };
            let mut insert =
                self.db.prepare_cached("INSERT OR IGNORE INTO attached(sha, book, id, by, size) VALUES (?1, ?2, ?3, ?4, ?5)")?;
            insert.execute(params![sha.as_str(), num, id, by, i64::try_from(file.size).unwrap_or(i64::MAX)])?;
        }
        Ok(())
    }
}
