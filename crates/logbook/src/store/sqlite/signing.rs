//! Signatures of entries in SQLite.

use rusqlite::{OptionalExtension, params};
use tampu_types::Time;

use super::{
    Result, SqliteStore, SqliteTransaction,
    rows::{book_name, book_row, records_of},
};
use crate::{
    entry::EntryRef,
    signature::{NewSignature, Signature, keys::SigningKeys},
    store::{
        Signatures,
        sign_entry::SignEntry,
        signing::{ChainRecord, SigningTables, record_of},
    },
};

impl Signatures for SqliteStore {
    fn sign(&self, new: &NewSignature) -> Result<Signature> {
        let signed = self.write(|writing| SignEntry::sign(writing, new))?;
        self.keys.note_head(self.chain_number(&signed.entry.book)?, &signed)?;
        Ok(signed)
    }

    fn signatures(&self, at: &EntryRef) -> Result<Vec<Signature>> {
        self.read(|db| {
            let book_row = book_row(db, &at.book)?;
            let records = records_of(db, book_row.num, at.id)?;
            records.iter().map(|text| record_of(&book_row.book.name, at.id, text)).collect()
        })
    }

    fn chain(&self, book: &str, after: u64, most: usize) -> Result<Vec<ChainRecord>> {
        self.read(|db| {
            let num = book_row(db, book)?.num;
            let sql = "SELECT number, book, id, record FROM signature WHERE chain = ?1 AND number > ?2 ORDER BY number LIMIT ?3";
            let mut query = db.prepare_cached(sql)?;
            let mut rows = query.query(params![num, after as i64, most as i64])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let at = EntryRef { book: book_name(db, row.get(1)?)?, id: row.get(2)? };
                found.push(ChainRecord { number: row.get::<_, i64>(0)?.unsigned_abs(), at, text: row.get(3)? });
            }
            Ok(found)
        })
    }

    fn wrongly_signed(&self, book: &str) -> Result<Vec<(EntryRef, u64, u64)>> {
        self.read(|db| {
            let book_row = book_row(db, book)?;
            let sql = "SELECT id, signed, (SELECT count(*) FROM signature WHERE signature.book = entry.book AND signature.id = entry.id) \
                       FROM entry WHERE book = ?1 AND signed > 0 ORDER BY id";
            let mut query = db.prepare_cached(sql)?;
            let rows = query.query_map([book_row.num], |row| {
                let (signed, is): (i64, i64) = (row.get(1)?, row.get(2)?);
                Ok((EntryRef::new(&book_row.book.name, row.get(0)?), signed.unsigned_abs(), is.unsigned_abs()))
            })?;
            let found = rows.collect::<rusqlite::Result<Vec<_>>>()?;
            Ok(found.into_iter().filter(|(_, signed, is)| signed != is).collect())
        })
    }

    fn chain_number(&self, book: &str) -> Result<i64> {
        self.read(|db| Ok(book_row(db, book)?.num))
    }

    fn signing_keys(&self) -> &SigningKeys {
        &self.keys
    }
}

impl SigningTables for SqliteTransaction<'_> {
    fn signing_keys(&self) -> &SigningKeys {
        self.keys
    }

    fn last_record(&mut self, chain: i64) -> Result<Option<String>> {
        let sql = "SELECT record FROM signature WHERE chain = ?1 ORDER BY number DESC LIMIT 1";
        Ok(self.db.prepare_cached(sql)?.query_row([chain], |row| row.get(0)).optional()?)
    }

    fn add_record(&mut self, chain: i64, number: u64, at: (i64, u32), record: &str) -> Result<()> {
        let sql = "INSERT INTO signature(chain, number, book, id, record) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.db.prepare_cached(sql)?.execute(params![chain, number as i64, at.0, at.1, record])?;
        Ok(())
    }

    fn records_of(&mut self, num: i64, id: u32) -> Result<Vec<String>> {
        records_of(&self.db, num, id)
    }

    fn set_signed(&mut self, num: i64, id: u32, count: usize) -> Result<()> {
        let sql = "UPDATE entry SET signed = ?3 WHERE book = ?1 AND id = ?2";
        self.db.prepare_cached(sql)?.execute(params![num, id, count as i64])?;
        Ok(())
    }

    fn revision_line(&mut self, num: i64, id: u32, number: u32) -> Result<Option<(Time, String)>> {
        let sql = "SELECT at, by FROM revision WHERE book = ?1 AND id = ?2 AND number = ?3";
        let mut query = self.db.prepare_cached(sql)?;
        Ok(query.query_row(params![num, id, number], |row| Ok((Time(row.get(0)?), row.get(1)?))).optional()?)
    }
}
