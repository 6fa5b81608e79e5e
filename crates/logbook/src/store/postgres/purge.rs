//! Purges in PostgreSQL: they also write those tables anew that had the texts, so that the server's files lose them.
//!
//! The server's own write-ahead log keeps them until it reuses its segments. Pieces of attachments are freed and not
//! overwritten, because the table of all attachments may be too large to write anew.

use std::collections::HashSet;

use super::{
    PostgresStore,
    rows::number,
    session::Session,
    tables::PostgresTransaction,
    tokens::{has_word, of_tag},
};
use crate::{
    attachment::Sha,
    entry::{Content, Draft, EntryRef},
    query::candidates::{ATTACHMENTS, BY, LINKS, tag},
    store::{
        Result, StoreError,
        book_row::{damaged, json},
        naming::{DeletedBook, Naming},
        purge::{Purge, PurgeEntry, PurgeTables, Purged},
    },
};

/// The tables that had a text, or words of it.
const WITH_TEXTS: [&str; 7] = ["entry", "revision", "sorting", "stored_name", "term", "ending", "draft"];
/// The tables with numbers and bytes, whose space is freed.
const WITHOUT_TEXTS: [&str; 2] = ["word", "piece"];

impl PostgresStore {
    /// Purges an entry or a part of it.
    pub(super) fn purge_entry(&self, at: &EntryRef, purge: &Purge, by: &str) -> Result<Purged> {
        self.purge_with(|writing| PurgeEntry::purge(writing, at, purge, by))
    }

    /// Purges a deleted book.
    pub(super) fn purge_whole_book(&self, number: u32, reason: &str, by: &str) -> Result<DeletedBook> {
        self.purge_with(|writing| Naming::purge_book(writing, number, reason, by))
    }

    /// Runs a purge, and removes what it leaves in the files.
    fn purge_with<T>(&self, act: impl FnOnce(&mut PostgresTransaction<'_>) -> Result<T>) -> Result<T> {
        let purged = self.write(act)?;
        self.drop_unused()?;
        let session = self.0.writers.get()?;
        for table in WITH_TEXTS {
            session.batch(&format!("VACUUM (FULL) {table}"))?;
        }
        for table in WITHOUT_TEXTS {
            session.batch(&format!("VACUUM {table}"))?;
        }
        // The server removes the old files with its next checkpoint. Only some users may ask for one.
        let _ = session.batch("CHECKPOINT");
        Ok(purged)
    }

    /// Removes the bytes of attachments that no entry has. A post that is about to use them has locked them.
    fn drop_unused(&self) -> Result<()> {
        self.write(|writing| {
            let sql = "SELECT sha FROM blob WHERE NOT EXISTS (SELECT 1 FROM attached WHERE attached.sha = blob.sha) ORDER BY sha FOR UPDATE";
            let rows = writing.session.query(sql, &[])?;
            for row in &rows {
                writing.brought.push(super::sha(row.try_get(0)?)?);
            }
            writing.drop_unwanted()
        })
    }
}

impl Session {
    /// Returns whether an entry has one of these numbers.
    fn has_numbers(&self, numbers: &[i64]) -> Result<bool> {
        Ok(self.one("SELECT 1 FROM word WHERE words && $1::bigint[] LIMIT 1", &[&numbers])?.is_some())
    }
}

impl PurgeTables for PostgresTransaction<'_> {
    fn lock_all(&mut self) -> Result<()> {
        // In the order in which a move locks its two books.
        self.session.query("SELECT num FROM book ORDER BY folded FOR UPDATE", &[])?;
        // Hubs forget the words that they know when they see the new number.
        self.session.execute("UPDATE book SET purges = purges + 1", &[])?;
        self.session.batch("SET LOCAL enable_seqscan = off")
    }

    fn revision_numbers(&mut self, num: i64, id: u32) -> Result<Vec<u32>> {
        let sql = "SELECT number FROM revision WHERE book = $1 AND id = $2 ORDER BY number";
        self.session.query(sql, &[&num, &i64::from(id)])?.iter().map(|row| number(row, 0)).collect()
    }

    fn stored_content(&mut self, num: i64, id: u32, number: u32) -> Result<Option<Content>> {
        let sql = "SELECT content FROM revision WHERE book = $1 AND id = $2 AND number = $3";
        let Some(row) = self.session.one(sql, &[&num, &i64::from(id), &i64::from(number)])? else { return Ok(None) };
        let text: Option<&str> = row.try_get(0)?;
        text.map(|text| serde_json::from_str(text).map_err(|error| damaged("", id, error))).transpose()
    }

    fn set_content(&mut self, num: i64, id: u32, number: u32, content: &Content) -> Result<()> {
        let sql = "UPDATE revision SET content = $4 WHERE book = $1 AND id = $2 AND number = $3";
        self.session.execute(sql, &[&num, &i64::from(id), &i64::from(number), &json(content)?])?;
        Ok(())
    }

    fn add_note(&mut self, num: i64, id: u32, number: u32, note: &str) -> Result<()> {
        self.write_revisions(false)?;
        let sql = "UPDATE revision SET note = coalesce(note || '; ', '') || $4 WHERE book = $1 AND id = $2 AND number = $3";
        self.session.execute(sql, &[&num, &i64::from(id), &i64::from(number), &note])?;
        Ok(())
    }

    fn drafts_about(&mut self, id: u32) -> Result<Vec<Draft>> {
        let sql = "SELECT number, draft FROM draft WHERE draft LIKE $1 OR draft LIKE $2";
        let one = |row: &postgres::Row| {
            let number: i64 = row.try_get(0)?;
            let draft = serde_json::from_str(row.try_get(1)?);
            let draft: Draft = draft.map_err(|error| StoreError::Damaged(format!("draft {number}: {error}")))?;
            Ok(Draft { number, ..draft })
        };
        let rows = self.session.query(sql, &[&format!("%\"edits\":{id}%"), &format!("%\"parent\":{id}%")])?;
        rows.iter().map(one).collect()
    }

    fn change_draft(&mut self, number: i64, draft: Option<&Draft>) -> Result<()> {
        match draft {
            Some(draft) => self.session.execute("UPDATE draft SET draft = $2 WHERE number = $1", &[&number, &json(draft)?])?,
            None => self.session.execute("DELETE FROM draft WHERE number = $1", &[&number])?,
        };
        Ok(())
    }

    fn unlearn(&mut self, words: &HashSet<Box<str>>) -> Result<()> {
        let mut scopes = vec![BY, ATTACHMENTS, LINKS];
        for row in &self.session.query("SELECT num FROM attribute", &[])? {
            scopes.push(number(row, 0)?);
        }
        let (mut terms, mut ending_terms, mut endings) = (Vec::new(), Vec::new(), Vec::new());
        for word in words {
            // Most words stand in the text of another entry, too.
            if self.session.has_numbers(&has_word(word))?
                || self.session.has_numbers(&scopes.iter().map(|scope| of_tag(&tag(*scope, word))).collect::<Vec<_>>())?
            {
                continue;
            }
            terms.push(&**word);
            for (at, _) in word.char_indices().skip(1) {
                ending_terms.push(&**word);
                endings.push(&word[at..]);
            }
        }
        self.session.execute("DELETE FROM term WHERE term = ANY($1::text[])", &[&terms])?;
        let sql = "DELETE FROM ending USING unnest($1::text[], $2::text[]) AS old(ending, term) \
                   WHERE ending.ending = old.ending AND ending.term = old.term";
        self.session.execute(sql, &[&endings, &ending_terms])?;
        Ok(())
    }

    fn unattach(&mut self, num: i64, id: u32, shas: &HashSet<Sha>) -> Result<Vec<Sha>> {
        // An entry that was moved is counted at its former places, too.
        let sql = "WITH RECURSIVE place(book, id) AS (SELECT $1::bigint, $2::bigint UNION \
                   SELECT tombstone.book, tombstone.id FROM tombstone JOIN place ON to_book = place.book AND to_id = place.id) \
                   DELETE FROM attached USING place WHERE attached.sha = ANY($3) AND attached.book = place.book AND attached.id = place.id";
        let list: Vec<&str> = shas.iter().map(Sha::as_str).collect();
        self.session.execute(sql, &[&num, &i64::from(id), &list])?;
        let sql = "SELECT sha FROM unnest($1::text[]) AS old(sha) WHERE NOT EXISTS (SELECT 1 FROM attached WHERE attached.sha = old.sha)";
        self.session.query(sql, &[&list])?.iter().map(|row| super::sha(row.try_get(0)?)).collect()
    }
}
