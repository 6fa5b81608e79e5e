//! Looks at entries in PostgreSQL.

use super::{PostgresStore, Result, rows::number};
use crate::{
    entry::EntryRef,
    store::looks::{EntryLooks, LookCount, Looks, LooksOnDay, MOST_DAYS},
};

impl Looks for PostgresStore {
    fn add_looks(&self, looks: &[LookCount]) -> Result<()> {
        // In order, so that two hubs that count the same entries wait for one another in one direction only.
        let mut looks: Vec<(String, i64, i64, i64)> = looks
            .iter()
            .map(|one| (one.at.book.to_lowercase(), i64::from(one.at.id), i64::from(one.day), one.looks as i64))
            .collect();
        looks.sort_unstable();
        self.write(|writing| {
            let books: Vec<&str> = looks.iter().map(|one| one.0.as_str()).collect();
            let column = |of: fn(&(String, i64, i64, i64)) -> i64| looks.iter().map(of).collect::<Vec<i64>>();
            let sql = "INSERT INTO look SELECT entry.book, entry.id, said.day, sum(said.looks)::bigint \
                       FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) AS said(folded, id, day, looks) \
                       JOIN book ON book.folded = said.folded JOIN entry ON entry.book = book.num AND entry.id = said.id \
                       GROUP BY entry.book, entry.id, said.day ORDER BY entry.book, entry.id, said.day \
                       ON CONFLICT (book, id, day) DO UPDATE SET looks = look.looks + excluded.looks";
            writing.session.execute(sql, &[&books, &column(|one| one.1), &column(|one| one.2), &column(|one| one.3)])?;
            Ok(())
        })
    }

    fn look_count(&self, at: &EntryRef) -> Result<u64> {
        let session = self.0.readers.get()?;
        let sql =
            "SELECT coalesce(sum(looks), 0)::bigint FROM look JOIN book ON book.num = look.book WHERE folded = $1 AND id = $2";
        let found = session.one(sql, &[&at.book.to_lowercase(), &i64::from(at.id)])?;
        found.map_or(Ok(0), |row| number(&row, 0))
    }

    fn looks(&self, at: &EntryRef) -> Result<EntryLooks> {
        let looks = self.look_count(at)?;
        let session = self.0.readers.get()?;
        let sql = "SELECT day, looks FROM look JOIN book ON book.num = look.book WHERE folded = $1 AND id = $2 \
                   ORDER BY day DESC LIMIT $3";
        let rows = session.query(sql, &[&at.book.to_lowercase(), &i64::from(at.id), &i64::from(MOST_DAYS)])?;
        let one = |row: &postgres::Row| Ok(LooksOnDay { day: number(row, 0)?, looks: number(row, 1)? });
        Ok(EntryLooks { looks, days: rows.iter().map(one).collect::<Result<_>>()? })
    }
}
