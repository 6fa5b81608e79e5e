//! Numbers about a store in PostgreSQL.

use super::{PostgresStore, Result, rows::number};
use crate::store::report::{Reports, StoreReport, StoreSizes};

impl Reports for PostgresStore {
    fn report(&self) -> StoreReport {
        let (writers, readers, searchers) = (&self.0.writers, &self.0.readers, &self.0.searchers);
        let connections = vec![writers.report("write"), readers.report("read"), searchers.report("search")];
        self.0.counts.report(connections, || self.sizes())
    }
}

impl PostgresStore {
    fn sizes(&self) -> Result<StoreSizes> {
        let session = self.0.readers.get()?;
        let sql = "SELECT (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class \
                   WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace), pg_total_relation_size('word'::regclass)";
        let Some(row) = session.one(sql, &[])? else { return Ok(StoreSizes::default()) };
        Ok(StoreSizes { bytes: number(&row, 0)?, index_bytes: number(&row, 1)?, index_parts: None })
    }
}
