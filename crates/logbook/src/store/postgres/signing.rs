//! Signatures of entries in PostgreSQL.

use tampu_types::Time;

use super::{
    PostgresStore,
    rows::{book_name, book_row, number},
    tables::PostgresTransaction,
};
use crate::{
    entry::EntryRef,
    signature::{NewSignature, Signature, keys::SigningKeys},
    store::{
        Result, Signatures,
        sign_entry::SignEntry,
        signing::{ChainRecord, SigningTables, record_of},
    },
};

/// The records about an entry, in order.
const RECORDS: &str = "SELECT record FROM signature WHERE book = $1 AND id = $2 ORDER BY chain, number";

impl Signatures for PostgresStore {
    fn sign(&self, new: &NewSignature) -> Result<Signature> {
        let signed = self.write(|writing| SignEntry::sign(writing, new))?;
        self.0.keys.note_head(self.chain_number(&signed.entry.book)?, &signed)?;
        Ok(signed)
    }

    fn signatures(&self, at: &EntryRef) -> Result<Vec<Signature>> {
        self.read(|session| {
            let book_row = book_row(session, &at.book)?;
            let rows = session.query(RECORDS, &[&book_row.num, &i64::from(at.id)])?;
            rows.iter().map(|row| record_of(&book_row.book.name, at.id, row.try_get(0)?)).collect()
        })
    }

    fn chain(&self, book: &str, after: u64, most: usize) -> Result<Vec<ChainRecord>> {
        self.read(|session| {
            let num = book_row(session, book)?.num;
            let sql = "SELECT number, book, id, record FROM signature WHERE chain = $1 AND number > $2 ORDER BY number LIMIT $3";
            let one = |row: &postgres::Row| {
                let at = EntryRef { book: book_name(session, row.try_get(1)?)?, id: number(row, 2)? };
                Ok(ChainRecord { number: number(row, 0)?, at, text: row.try_get(3)? })
            };
            session.query(sql, &[&num, &(after as i64), &(most as i64)])?.iter().map(one).collect()
        })
    }

    fn wrongly_signed(&self, book: &str) -> Result<Vec<(EntryRef, u64, u64)>> {
        self.read(|session| {
            let book_row = book_row(session, book)?;
            let sql = "SELECT id, signed, (SELECT count(*) FROM signature WHERE signature.book = entry.book AND signature.id = entry.id) \
                       FROM entry WHERE book = $1 AND signed > 0 ORDER BY id";
            let mut found = Vec::new();
            for row in &session.query(sql, &[&book_row.num])? {
                let (signed, is): (u64, u64) = (number(row, 1)?, number(row, 2)?);
                if signed != is {
                    found.push((EntryRef::new(&book_row.book.name, number(row, 0)?), signed, is));
                }
            }
            Ok(found)
        })
    }

    fn chain_number(&self, book: &str) -> Result<i64> {
        self.read(|session| Ok(book_row(session, book)?.num))
    }

    fn signing_keys(&self) -> &SigningKeys {
        &self.0.keys
    }
}

impl SigningTables for PostgresTransaction<'_> {
    fn signing_keys(&self) -> &SigningKeys {
        &self.inner.keys
    }

    fn last_record(&mut self, chain: i64) -> Result<Option<String>> {
        let sql = "SELECT record FROM signature WHERE chain = $1 ORDER BY number DESC LIMIT 1";
        self.session.one(sql, &[&chain])?.map(|row| Ok(row.try_get(0)?)).transpose()
    }

    fn add_record(&mut self, chain: i64, number: u64, at: (i64, u32), record: &str) -> Result<()> {
        let sql = "INSERT INTO signature(chain, number, book, id, record) VALUES ($1, $2, $3, $4, $5)";
        self.session.execute(sql, &[&chain, &(number as i64), &at.0, &i64::from(at.1), &record])?;
        Ok(())
    }

    fn records_of(&mut self, num: i64, id: u32) -> Result<Vec<String>> {
        self.session.query(RECORDS, &[&num, &i64::from(id)])?.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    fn set_signed(&mut self, num: i64, id: u32, count: usize) -> Result<()> {
        let sql = "UPDATE entry SET signed = $3 WHERE book = $1 AND id = $2";
        self.session.execute(sql, &[&num, &i64::from(id), &(count as i64)])?;
        Ok(())
    }

    fn revision_line(&mut self, num: i64, id: u32, revision: u32) -> Result<Option<(Time, String)>> {
        self.write_revisions(false)?;
        let sql = "SELECT at, by FROM revision WHERE book = $1 AND id = $2 AND number = $3";
        let found = self.session.one(sql, &[&num, &i64::from(id), &i64::from(revision)])?;
        found.map(|row| Ok((Time(row.try_get(0)?), row.try_get(1)?))).transpose()
    }
}
