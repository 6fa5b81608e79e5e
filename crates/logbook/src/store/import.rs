//! Entries taken over with the ids they have, many in one transaction.

use super::{
    Result,
    index::Tables,
    now,
    shelf::Shelf,
    write::{Write, canonical},
};
use crate::{
    attachment::Upload,
    book::Invalid,
    elog::entries::MAX_ID,
    entry::{Change, Draft, Entry, EntryRef, check_zone},
    store::{ImportOutcome, Imported},
};

impl<T: Tables> Import for T {}

/// What is taken over, in terms of tables.
pub trait Import: Write {
    /// Takes entries over that come together.
    fn take_over_all(
        &mut self,
        book: &str,
        entries: Vec<Imported>,
        mut uploads: Vec<Upload>,
        by: &str,
    ) -> Result<Vec<ImportOutcome>> {
        let mut shelf = self.shelf(book)?;
        let mut outcomes = Vec::with_capacity(entries.len());
        for imported in entries {
            // All of them for each: several entries can have the same bytes, and which of them are taken shows only now.
            outcomes.push(self.take_over(&mut shelf, imported, &mut uploads, by)?);
        }
        self.set_next_id(shelf.num, shelf.next_id)?;
        Ok(outcomes)
    }

    fn take_over(&mut self, shelf: &mut Shelf, imported: Imported, uploads: &mut [Upload], by: &str) -> Result<ImportOutcome> {
        let Imported { id, entry: new, thread: of_source, digest, draft } = imported;
        new.content.check()?;
        check_zone(new.zone)?;
        if !(1..=MAX_ID).contains(&id) {
            return Err(Invalid::TooLarge(format!("{id} is no number of an entry: 1 to {MAX_ID}")).into());
        }
        let before = self.imported_as(shelf.num, id)?;
        let gone = self.tombstone(shelf, id)?;
        // What the source itself took away can come back in it: ELOG gives the number of a deleted last entry again.
        if gone.as_ref().is_some_and(|gone| gone.by != by || gone.moved_to.is_some()) {
            return Ok(ImportOutcome::Gone);
        }
        if gone.is_none() && before.as_ref().is_some_and(|(known, _)| *known == digest) {
            return Ok(ImportOutcome::Same);
        }
        let content = canonical(&shelf.book, new.content);
        let current = match self.row_of(shelf.num, id)? {
            Some(row) => self.load(shelf, row)?.map(|entry| (row, entry)),
            None => None,
        };
        shelf.next_id = shelf.next_id.max(id + 1);
        let date = new.date.unwrap_or_else(now);
        let revision_before = before.as_ref().map(|(_, revision)| *revision);
        if let Some(owner) = draft {
            if current.is_some() {
                return Ok(ImportOutcome::Same);
            }
            let book = shelf.book.name.clone();
            let draft = Draft { number: 0, owner, book, edits: None, parent: new.parent, saved: date, content };
            let number = revision_before.map(|revision| -revision).filter(|number| *number > 0);
            let (outcome, number) = self.take_draft(&draft, number)?;
            if matches!(outcome, ImportOutcome::New | ImportOutcome::Changed) {
                self.set_imported(shelf.num, id, &digest, -number)?;
            }
            return Ok(outcome);
        }
        let (parent, thread) = self.thread_for(shelf, id, new.parent, of_source)?;
        let (outcome, revision) = match current {
            None => {
                self.place(&content, uploads)?;
                let at = EntryRef::new(&shelf.book.name, id);
                let revision = if gone.is_some() { self.lift_tombstone(shelf.num, id)? } else { 0 };
                let entry = Entry {
                    at,
                    date,
                    zone: new.zone,
                    by: by.to_owned(),
                    revision,
                    changed: if revision > 0 { now() } else { date },
                    parent,
                    thread,
                    content,
                };
                self.add(shelf, &entry)?;
                self.revise(shelf, id, revision, now(), &entry.by, Change::Imported)?;
                if let Some(number) = revision_before.filter(|revision| *revision < 0) {
                    // Submitted there: what was its draft goes, unless somebody has gone on with it here.
                    self.drop_taken_draft(-number)?;
                }
                if thread != of_source {
                    self.rethread(shelf, id, thread)?;
                }
                (ImportOutcome::New, revision)
            }
            Some((_, entry))
                if entry.content == content && (entry.date, entry.zone, entry.parent) == (date, new.zone, parent) =>
            {
                // Both have become the same, or only what is not ours has changed.
                self.rethread(shelf, id, thread)?;
                (ImportOutcome::Same, entry.revision)
            }
            // Only what is still as it was imported follows the source.
            Some((row, entry)) if revision_before == Some(i64::from(entry.revision)) => {
                self.place(&content, uploads)?;
                let moved = Entry { date, zone: new.zone, parent, thread, ..entry.clone() };
                self.take(shelf, row, &entry)?;
                let same_second = date.0.div_euclid(1_000_000_000) == entry.date.0.div_euclid(1_000_000_000);
                let row = if same_second { row } else { self.free_row(shelf.num, date)? };
                self.put(shelf, row, &moved)?;
                let revision = self.replace(shelf, row, moved, content, by, Change::Imported)?;
                self.rethread(shelf, id, thread)?;
                (ImportOutcome::Changed, revision)
            }
            Some(_) => return Ok(ImportOutcome::Conflict),
        };
        self.set_imported(shelf.num, id, &digest, i64::from(revision))?;
        Ok(outcome)
    }

    /// What it answers here, and the first entry of its thread here: what was deleted here is answered by nobody.
    fn thread_for(&mut self, shelf: &Shelf, id: u32, parent: Option<u32>, of_source: u32) -> Result<(Option<u32>, u32)> {
        let Some(parent) = parent.filter(|parent| *parent != id) else { return Ok((None, id)) };
        if let Some(row) = self.row_of(shelf.num, parent)? {
            let thread = self.load(shelf, row)?.map_or(of_source, |parent| parent.thread);
            return Ok((Some(parent), thread));
        }
        let is_gone = self.tombstone(shelf, parent)?.is_some();
        Ok(if is_gone { (None, id) } else { (Some(parent), of_source) })
    }

    /// An entry and all answers to it belong to this thread.
    fn rethread(&mut self, shelf: &Shelf, id: u32, thread: u32) -> Result<()> {
        for member in self.family(shelf, id, true)? {
            let (row, entry) = self.present(shelf, member)?;
            if entry.thread != thread {
                self.take(shelf, row, &entry)?;
                self.put(shelf, row, &Entry { thread, ..entry })?;
            }
        }
        Ok(())
    }
}
