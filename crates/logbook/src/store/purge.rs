//! Purges: they remove texts and files of an entry for good, and keep the fact, its author and its reason.
//!
//! A deleted entry keeps its text in its history. A purge removes the text also there, from drafts, from the search
//! index and its vocabulary, and the bytes of files that no other entry has. The lines of the history stay, without
//! their content, and one more line says who purged what, and why. Afterwards each store overwrites the freed space of
//! its files (`Maintenance::purge`). Rejected: marks that hide a text, because a text that must go must also leave the disk.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tampu_types::Time;

use super::{Result, StoreError, book_row::BookRow, now, quota_tables::QuotaTables, signing::Signing, write::Write};
use crate::{
    attachment::Sha,
    book::{Invalid, same_name},
    entry::{Change, Content, Draft, Entry, EntryRef},
    plain::plain,
    text::words,
};

/// Characters of the reason for a purge.
pub const MAX_REASON: usize = 1000;
/// The note of a line of a history whose content was purged.
const PURGED: &str = "purged";

/// A request to purge an entry, or the part of it that one field names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Purge {
    /// Only the content of this former revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    /// Only the contents of all former revisions.
    #[serde(default)]
    pub all_but_last: bool,
    /// Only the attachments of this name, in all revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachment: Option<String>,
    /// The reason, which the history keeps: one line of at most 1000 characters.
    pub reason: String,
}

/// The part of an entry that a purge removes.
enum Part<'a> {
    Entry,
    Revision(u32),
    AllButLast,
    Attachment(&'a str),
}

/// A purge that was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Purged {
    #[serde(flatten)]
    pub at: EntryRef,
    /// The number of the line in the history that records the purge.
    pub revision: u32,
    /// The number of contents that were removed.
    pub contents: u64,
    /// The number of files whose bytes were removed, because no other entry has them.
    pub files: u64,
    /// The number of drafts that were removed or changed.
    pub drafts: u64,
}

impl Purge {
    fn part(&self) -> std::result::Result<Part<'_>, Invalid> {
        let reason = self.reason.trim();
        if reason.is_empty() || reason.chars().count() > MAX_REASON || reason.chars().any(char::is_control) {
            return Err(Invalid::Purge(format!("its reason is missing, or is not one line of at most {MAX_REASON} characters")));
        }
        match (self.revision, self.all_but_last, &self.attachment) {
            (None, false, None) => Ok(Part::Entry),
            (Some(number), false, None) => Ok(Part::Revision(number)),
            (None, true, None) => Ok(Part::AllButLast),
            (None, false, Some(name)) => Ok(Part::Attachment(name)),
            _ => Err(Invalid::Purge("it names several parts; name a revision, all but the last, or an attachment".to_owned())),
        }
    }

    /// Checks the reason and the part.
    pub(super) fn check(&self) -> std::result::Result<(), Invalid> {
        self.part().map(drop)
    }

    /// Returns a text about the part and the reason, for the history and for logs.
    pub fn told(&self) -> String {
        let part = match self.part() {
            Ok(Part::Revision(number)) => format!("revision {number}"),
            Ok(Part::AllButLast) => "all former revisions".to_owned(),
            Ok(Part::Attachment(name)) => format!("attachment '{}'", name.escape_debug()),
            Ok(Part::Entry) | Err(_) => "the entry".to_owned(),
        };
        format!("{PURGED} {part}: {}", self.reason.trim())
    }
}

/// The operations that a purge needs, beside those of a writer.
pub trait PurgeTables: QuotaTables {
    /// Prevents posts and changes of all books until the transaction ends, so that no entry begins to use a word or a
    /// file that the purge removes.
    fn lock_all(&mut self) -> Result<()>;
    /// Returns the numbers of an entry's revisions, in order.
    fn revision_numbers(&mut self, num: i64, id: u32) -> Result<Vec<u32>>;
    /// Returns the stored content of a revision; `None` for the last one of an entry that exists.
    fn stored_content(&mut self, num: i64, id: u32, number: u32) -> Result<Option<Content>>;
    /// Replaces the stored content of a revision.
    fn set_content(&mut self, num: i64, id: u32, number: u32, content: &Content) -> Result<()>;
    /// Adds to the note of a revision.
    fn add_note(&mut self, num: i64, id: u32, number: u32, note: &str) -> Result<()>;
    /// Returns the drafts that may change the entry of this number in some book, or answer it.
    fn drafts_about(&mut self, id: u32) -> Result<Vec<Draft>>;
    /// Replaces a draft, or deletes it.
    fn change_draft(&mut self, number: i64, draft: Option<&Draft>) -> Result<()>;
    /// Removes those words from the vocabulary that no entry has.
    fn unlearn(&mut self, words: &HashSet<Box<str>>) -> Result<()>;
    /// Removes an entry's references to files. Returns the files that no entry has any longer, whose bytes the store removes.
    fn unattach(&mut self, num: i64, id: u32, shas: &HashSet<Sha>) -> Result<Vec<Sha>>;
}

impl<T: PurgeTables> PurgeEntry for T {}

/// A purge, in terms of tables.
pub trait PurgeEntry: PurgeTables + Write {
    /// Purges an entry or a part of it. An entry that was moved is purged at its new place.
    fn purge(&mut self, at: &EntryRef, purge: &Purge, by: &str) -> Result<Purged> {
        purge.check()?;
        self.lock_all()?;
        let book_row = self.book_row(&at.book)?;
        self.purge_in(&book_row, at.id, purge, by)
    }

    /// Purges an entry of a book, or a part of it. The caller has locked all books.
    fn purge_in(&mut self, book_row: &BookRow, id: u32, purge: &Purge, by: &str) -> Result<Purged> {
        let (part, at) = (purge.part()?, EntryRef::new(&book_row.book.name, id));
        let current = match self.row_of(book_row.num, at.id)? {
            Some(row) => self.load(book_row, row)?.map(|entry| (row, entry)),
            None => None,
        };
        if current.is_none() {
            match self.tombstone(book_row, at.id)? {
                None => return Err(StoreError::NoEntry(at.clone())),
                Some(gone) if gone.moved_to.is_some() => return Err(StoreError::Gone(Box::new(gone))),
                Some(_) => {}
            }
        }
        let numbers = self.revision_numbers(book_row.num, at.id)?;
        let last = numbers.last().copied().unwrap_or_default();
        let kept = match part {
            Part::Revision(number) if !numbers.contains(&number) => {
                return Err(Invalid::Purge(format!("entry {at} has no revision {number}")).into());
            }
            Part::Revision(number) if number == last && current.is_some() => {
                let why =
                    format!("revision {number} is the current text of entry {at}; edit the entry first, or purge all of it");
                return Err(Invalid::Purge(why).into());
            }
            Part::Attachment(name) => return self.purge_files(book_row, current, (&at, &numbers), name, purge, by),
            Part::AllButLast | Part::Revision(_) if current.is_none() => None,
            Part::AllButLast | Part::Revision(_) => current,
            Part::Entry => {
                if let Some((row, entry)) = current {
                    self.remember(book_row, &entry)?;
                    self.take(book_row, row, &entry)?;
                    self.bury(book_row.num, at.id, by, None)?;
                    self.count(book_row.num, -1)?;
                    self.part(book_row, at.id, &[])?;
                }
                None
            }
        };
        let wanted = |number: &u32| match part {
            Part::Revision(one) => *number == one,
            Part::AllButLast => *number != last || kept.is_none(),
            _ => true,
        };
        let (mut removed, mut contents) = (Removed::default(), 0);
        for number in numbers.iter().copied().filter(wanted) {
            let Some(content) = self.stored_content(book_row.num, at.id, number)? else { continue };
            if content == Content::default() {
                continue;
            }
            removed.add(&content);
            self.set_content(book_row.num, at.id, number, &Content::default())?;
            self.add_note(book_row.num, at.id, number, PURGED)?;
            contents += 1;
        }
        self.keep_other_files(book_row, kept.as_ref().map(|(_, entry)| entry), (&at, &numbers), &mut removed.files)?;
        let drafts = self.purge_drafts(&at, &mut removed)?;
        let changed = kept.as_ref().map(|(_, entry)| entry.changed);
        self.record(book_row, &at, kept, (last + 1, purge, by), changed)?;
        self.record_signed(book_row, at.id, by, purge)?;
        self.unlearn(&removed.words)?;
        let files = self.unattach(book_row.num, at.id, &removed.files)?.len() as u64;
        Ok(Purged { at, revision: last + 1, contents, files, drafts })
    }

    /// Purges the attachments of a name.
    fn purge_files(
        &mut self,
        book_row: &BookRow,
        current: Option<(i64, Entry)>,
        (at, numbers): (&EntryRef, &[u32]),
        name: &str,
        purge: &Purge,
        by: &str,
    ) -> Result<Purged> {
        let (mut removed, mut contents) = (Removed::default(), 0);
        let mut without = |content: &mut Content| {
            let before = content.attachments.len();
            content.attachments.retain(|file| {
                let is_other = file.name != name && file.elog.as_deref() != Some(name);
                if !is_other {
                    removed.add_words(&file.name);
                    removed.files.extend(file.sha.clone());
                }
                is_other
            });
            content.attachments.len() < before
        };
        for number in numbers.iter().copied() {
            let Some(mut content) = self.stored_content(book_row.num, at.id, number)? else { continue };
            if without(&mut content) {
                self.set_content(book_row.num, at.id, number, &content)?;
                contents += 1;
            }
        }
        let last = numbers.last().copied().unwrap_or_default();
        let mut kept = None;
        if let Some((row, entry)) = current {
            let mut cleaned = entry.clone();
            if without(&mut cleaned.content) {
                self.take(book_row, row, &entry)?;
                self.put(book_row, row, &cleaned)?;
                contents += 1;
            }
            kept = Some((row, cleaned));
        }
        let mut drafts = 0;
        for mut draft in self.drafts_about(at.id)? {
            if is_about(&draft, at) && without(&mut draft.content) {
                self.change_draft(draft.number, Some(&draft))?;
                drafts += 1;
            }
        }
        if contents + drafts == 0 {
            return Err(Invalid::Purge(format!("entry {at} has no attachment '{}'", name.escape_debug())).into());
        }
        self.keep_other_files(book_row, kept.as_ref().map(|(_, entry)| entry), (at, numbers), &mut removed.files)?;
        self.record(book_row, at, kept, (last + 1, purge, by), None)?;
        self.record_signed(book_row, at.id, by, purge)?;
        self.unlearn(&removed.words)?;
        let files = self.unattach(book_row.num, at.id, &removed.files)?.len() as u64;
        Ok(Purged { at: at.clone(), revision: last + 1, contents, files, drafts })
    }

    /// Leaves out the files that the entry still has in a content that stays.
    fn keep_other_files(
        &mut self,
        book_row: &BookRow,
        entry: Option<&Entry>,
        (at, numbers): (&EntryRef, &[u32]),
        files: &mut HashSet<Sha>,
    ) -> Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let mut keep = |content: &Content| {
            for sha in content.attachments.iter().filter_map(|file| file.sha.as_ref()) {
                files.remove(sha);
            }
        };
        entry.iter().for_each(|entry| keep(&entry.content));
        for number in numbers {
            if let Some(content) = self.stored_content(book_row.num, at.id, *number)? {
                keep(&content);
            }
        }
        Ok(())
    }

    /// Deletes the drafts of changes of an entry and of replies to it, which may quote it.
    fn purge_drafts(&mut self, at: &EntryRef, removed: &mut Removed) -> Result<u64> {
        let mut count = 0;
        for draft in self.drafts_about(at.id)? {
            if is_about(&draft, at) {
                removed.add_words_of(&draft.content);
                self.change_draft(draft.number, None)?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Records what a purge has changed of signed contents.
    fn record_signed(&mut self, book_row: &BookRow, id: u32, by: &str, purge: &Purge) -> Result<()> {
        self.record_purge(book_row, id, (by, &purge.told()), |tables, revision| tables.stored_content(book_row.num, id, revision))
    }

    /// Writes the line of the history that records a purge. An entry that stays gets its number as its revision.
    fn record(
        &mut self,
        book_row: &BookRow,
        at: &EntryRef,
        kept: Option<(i64, Entry)>,
        (number, purge, by): (u32, &Purge, &str),
        changed: Option<Time>,
    ) -> Result<()> {
        if let Some((row, entry)) = kept {
            let before = i64::from(entry.revision);
            self.remember(book_row, &entry)?;
            self.take(book_row, row, &entry)?;
            let entry = Entry { revision: number, changed: changed.unwrap_or_else(now), ..entry };
            self.put(book_row, row, &entry)?;
            // An entry that is as ELOG has it goes on following ELOG.
            if let Some((digest, imported)) = self.imported_as(book_row.num, at.id)?
                && imported == before
                && let Ok(digest) = <[u8; 16]>::try_from(digest)
            {
                self.set_imported(book_row.num, at.id, &digest, i64::from(number))?;
            }
        }
        self.revise(book_row, at.id, number, now(), by, Change::Purged)?;
        self.add_note(book_row.num, at.id, number, &purge.told())
    }
}

/// Returns whether a draft changes an entry or answers it.
fn is_about(draft: &Draft, at: &EntryRef) -> bool {
    same_name(&draft.book, &at.book) && (draft.edits == Some(at.id) || draft.parent == Some(at.id))
}

/// The words and files of the removed contents.
#[derive(Debug, Default)]
pub struct Removed {
    words: HashSet<Box<str>>,
    files: HashSet<Sha>,
}

impl Removed {
    fn add(&mut self, content: &Content) {
        self.add_words_of(content);
        self.files.extend(content.attachments.iter().filter_map(|file| file.sha.clone()));
    }

    fn add_words_of(&mut self, content: &Content) {
        self.add_words(&plain(content.encoding, &content.text));
        content.attributes.iter().flat_map(|attribute| &attribute.values).for_each(|value| self.add_words(value));
        content.attachments.iter().for_each(|file| self.add_words(&file.name));
        content.links.iter().for_each(|link| self.add_words(&link.to_string()));
    }

    fn add_words(&mut self, text: &str) {
        words(text, |_, word| {
            if !self.words.contains(word) {
                self.words.insert(word.into());
            }
        });
    }
}
