//! Imports of entries with their ids, many in one transaction.

use super::{
    Result,
    book_row::BookRow,
    now,
    quota_tables::QuotaTables,
    signing::{Signing, is_locked},
    write::{Write, canonical},
};
use crate::{
    attachment::Upload,
    book::Invalid,
    entry::{Change, Draft, Entry, EntryRef, MAX_ID, check_zone},
    store::{ImportOutcome, Imported},
};

impl<T: QuotaTables> Import for T {}

/// An import, in terms of tables.
pub trait Import: Write {
    /// Imports a batch of entries.
    fn take_over_all(
        &mut self,
        book: &str,
        entries: Vec<Imported>,
        mut uploads: Vec<Upload>,
        by: &str,
    ) -> Result<Vec<ImportOutcome>> {
        let mut book_row = self.book_row(book)?;
        let mut outcomes = Vec::with_capacity(entries.len());
        for imported in entries {
            // Passes all uploads for each entry: several entries can have the same bytes, and only this step shows which uploads an
            // entry takes.
            outcomes.push(self.take_over(&mut book_row, imported, &mut uploads, by)?);
        }
        self.set_next_id(book_row.num, book_row.next_id)?;
        Ok(outcomes)
    }

    fn take_over(
        &mut self,
        book_row: &mut BookRow,
        imported: Imported,
        uploads: &mut [Upload],
        by: &str,
    ) -> Result<ImportOutcome> {
        let Imported { id, entry: new, thread: of_source, digest, draft, author } = imported;
        new.content.check()?;
        check_zone(new.zone)?;
        if !(1..=MAX_ID).contains(&id) {
            return Err(Invalid::TooLarge(format!("invalid entry number {id}; use 1 to {MAX_ID}")).into());
        }
        let before = self.imported_as(book_row.num, id)?;
        let gone = self.tombstone(book_row, id)?;
        // An entry that the source deleted can return in it: ELOG reuses the number of a deleted last entry.
        if gone.as_ref().is_some_and(|gone| gone.by != by || gone.moved_to.is_some()) {
            return Ok(ImportOutcome::Gone);
        }
        if gone.is_none() && before.as_ref().is_some_and(|(known, _)| *known == digest) {
            return Ok(ImportOutcome::Same);
        }
        let content = canonical(&book_row.book, new.content);
        let current = match self.row_of(book_row.num, id)? {
            Some(row) => self.load(book_row, row)?.map(|entry| (row, entry)),
            None => None,
        };
        book_row.next_id = book_row.next_id.max(id + 1);
        let date = new.date.unwrap_or_else(now);
        let revision_before = before.as_ref().map(|(_, revision)| *revision);
        if let Some(owner) = draft {
            if current.is_some() {
                return Ok(ImportOutcome::Same);
            }
            let book = book_row.book.name.clone();
            let draft = Draft { number: 0, owner, book, edits: None, parent: new.parent, saved: date, content };
            let number = revision_before.map(|revision| -revision).filter(|number| *number > 0);
            let (outcome, number) = self.take_draft(&draft, number)?;
            if matches!(outcome, ImportOutcome::New | ImportOutcome::Changed) {
                self.set_imported(book_row.num, id, &digest, -number)?;
            }
            return Ok(outcome);
        }
        let (parent, thread) = self.thread_for(book_row, id, new.parent, of_source)?;
        let (outcome, revision) = match current {
            None => {
                self.place(&content, uploads)?;
                let at = EntryRef::new(&book_row.book.name, id);
                let revision = if gone.is_some() { self.lift_tombstone(book_row.num, id)? } else { 0 };
                let entry = Entry {
                    at,
                    date,
                    zone: new.zone,
                    by: author.unwrap_or_else(|| by.to_owned()),
                    revision,
                    changed: if revision > 0 { now() } else { date },
                    parent,
                    thread,
                    content,
                    signatures: self.signatures_of(book_row, id)?,
                };
                self.add(book_row, &entry)?;
                self.revise(book_row, id, revision, now(), by, Change::Imported)?;
                if let Some(number) = revision_before.filter(|revision| *revision < 0) {
                    // The entry was submitted in the source: its draft is deleted, unless its owner has continued it here.
                    self.drop_taken_draft(-number)?;
                }
                if thread != of_source {
                    self.rethread(book_row, id, thread)?;
                }
                (ImportOutcome::New, revision)
            }
            Some((_, entry))
                if entry.content == content && (entry.date, entry.zone, entry.parent) == (date, new.zone, parent) =>
            {
                // Both sides are the same, or only the other side's fields have changed.
                self.rethread(book_row, id, thread)?;
                (ImportOutcome::Same, entry.revision)
            }
            // Only an entry that is unchanged since its import follows the source.
            Some((row, entry)) if revision_before == Some(i64::from(entry.revision)) && !is_locked(&entry) => {
                self.place(&content, uploads)?;
                let moved = Entry { date, zone: new.zone, parent, thread, ..entry.clone() };
                self.take(book_row, row, &entry)?;
                let same_second = date.0.div_euclid(1_000_000_000) == entry.date.0.div_euclid(1_000_000_000);
                let row = if same_second { row } else { self.free_row(book_row.num, date)? };
                self.put(book_row, row, &moved)?;
                let revision = self.replace(book_row, row, moved, content, by, Change::Imported)?;
                self.rethread(book_row, id, thread)?;
                (ImportOutcome::Changed, revision)
            }
            Some(_) => return Ok(ImportOutcome::Conflict),
        };
        self.set_imported(book_row.num, id, &digest, i64::from(revision))?;
        Ok(outcome)
    }

    /// Returns the parent and the first entry of the thread in this store. A parent that was deleted here has no
    /// replies.
    fn thread_for(&mut self, book_row: &BookRow, id: u32, parent: Option<u32>, of_source: u32) -> Result<(Option<u32>, u32)> {
        let Some(parent) = parent.filter(|parent| *parent != id) else { return Ok((None, id)) };
        if let Some(row) = self.row_of(book_row.num, parent)? {
            let thread = self.load(book_row, row)?.map_or(of_source, |parent| parent.thread);
            return Ok((Some(parent), thread));
        }
        let is_gone = self.tombstone(book_row, parent)?.is_some();
        Ok(if is_gone { (None, id) } else { (Some(parent), of_source) })
    }

    /// Assigns an entry and all replies to it to this thread.
    fn rethread(&mut self, book_row: &BookRow, id: u32, thread: u32) -> Result<()> {
        for member in self.family(book_row, id, true)? {
            let (row, entry) = self.present(book_row, member)?;
            if entry.thread != thread {
                self.take(book_row, row, &entry)?;
                self.put(book_row, row, &Entry { thread, ..entry })?;
            }
        }
        Ok(())
    }
}
