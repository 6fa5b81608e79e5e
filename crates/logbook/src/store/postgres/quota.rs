//! The space of files in PostgreSQL, by book and user.

use super::{
    PostgresStore,
    rows::number,
    tables::{PostgresTransaction, files_of},
};
use crate::{
    entry::Content,
    store::{
        Result,
        quota::{Quota, Used, UsedSpace},
        quota_tables::QuotaTables,
    },
};

impl PostgresStore {
    /// Returns the files of each user in each book, by book.
    pub(super) fn used_by_all(&self) -> Result<Vec<UsedSpace>> {
        self.read(|session| {
            let sql = "SELECT book.name, used.by, files, bytes FROM used JOIN book ON book.num = used.book WHERE files > 0 \
                       ORDER BY book.folded, used.by";
            let one = |row: &postgres::Row| {
                Ok(UsedSpace { book: row.try_get(0)?, by: row.try_get(1)?, files: number(row, 2)?, bytes: number(row, 3)? })
            };
            session.query(sql, &[])?.iter().map(one).collect()
        })
    }
}

impl QuotaTables for PostgresTransaction<'_> {
    fn quota(&self) -> Quota {
        *self.inner.quota.lock()
    }

    fn used(&mut self, num: i64, by: &str) -> Result<Used> {
        let sql = "SELECT coalesce(sum(bytes), 0)::bigint, coalesce(sum(bytes) FILTER (WHERE book = $1), 0)::bigint, \
                   coalesce(sum(bytes) FILTER (WHERE by = $2), 0)::bigint FROM used";
        let Some(row) = self.session.one(sql, &[&num, &by])? else { return Ok(Used::default()) };
        Ok(Used { site: number(&row, 0)?, book: number(&row, 1)?, user: number(&row, 2)? })
    }

    fn charge(&mut self, num: i64, id: u32, content: &Content, by: &str) -> Result<()> {
        let (shas, sizes) = files_of(content);
        let sql = "INSERT INTO attached SELECT sha, $3, $4, $5, size FROM unnest($1::text[], $2::bigint[]) AS new(sha, size) ON CONFLICT DO NOTHING";
        self.session.execute(sql, &[&shas, &sizes, &num, &i64::from(id), &by])?;
        Ok(())
    }
}
