//! Posting, editing, deleting, copying and moving entries: each is one transaction, index included.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use super::{
    Result, StoreError,
    book_row::{BookRow, first_row},
    model::EntryEdit,
    now,
    quota_tables::{KeepQuota, QuotaTables},
    signing::Signing,
};
use crate::{
    attachment::{
        Attachment, Upload,
        reference::resolved,
        stored_name::{another, stored_name},
    },
    book::{
        Book,
        change::{BookChange, BookEdit},
        computing::compute,
        elog_options::preserves_ids,
        locked::{LockedBy, keeps_locked},
        same_name,
    },
    entry::{Change, Content, Entry, EntryRef, NewEntry, check_zone},
};
use tampu_types::Time;

/// Time span, in nanoseconds, after a file was added. Entries of this span are searched for a file of the same name,
/// because a file is added when its entry is written.
const SAME_NAME: i64 = 10_000_000_000;

impl<T: QuotaTables> Write for T {}

/// The operations of a writer, in terms of tables.
pub trait Write: QuotaTables + Sized {
    fn change_book(&mut self, edit: BookEdit<'_>) -> Result<bool> {
        let BookEdit { book, by, what, expected } = edit;
        book.check()?;
        let before = match self.book_row(&book.name) {
            Ok(book_row) => Some(book_row),
            Err(StoreError::NoBook(_)) => None,
            Err(other) => return Err(other),
        };
        let version = before.as_ref().map(|before| before.book.version()).unwrap_or_default();
        match expected {
            Some("") if before.is_some() => return Err(StoreError::BookExists(book.name.clone())),
            Some(expected) if expected != version => return Err(StoreError::BookChanged(book.name.clone())),
            _ => {}
        }
        let usual = if before.is_some() { "changed" } else { "made" };
        let num = match &before {
            Some(before) if before.book == *book => return Ok(false),
            Some(before) => {
                self.replace_book(before, book)?;
                before.num
            }
            None => {
                self.new_book(book)?;
                self.book_row(&book.name)?.num
            }
        };
        let change = BookChange {
            number: self.last_book_change(num)? + 1,
            at: now(),
            by: by.to_owned(),
            what: if what.is_empty() { usual } else { what }.to_owned(),
            before: before.map(|before| before.book),
            after: book.clone(),
        };
        self.keep_book_change(num, &change)?;
        Ok(true)
    }

    /// Updates a book, and the orders of its attributes.
    fn replace_book(&mut self, before: &BookRow, book: &Book) -> Result<()> {
        self.set_book(before.num, book)?;
        for old in &before.book.attributes {
            if book.attribute(&old.name).is_none() {
                self.reorder(before, &old.name, None)?;
            }
        }
        for new in &book.attributes {
            let old = before.book.attribute(&new.name);
            if old.is_none_or(|old| old.kind.is_number() != new.kind.is_number()) {
                self.reorder(before, &new.name, Some(new.kind))?;
            }
        }
        Ok(())
    }

    fn post(&mut self, new: NewEntry, uploads: Vec<Upload>, by: &str) -> Result<EntryRef> {
        let mut book_row = self.book_row(&new.book)?;
        self.post_to(&mut book_row, new, uploads, by)
    }

    fn post_all(&mut self, new: Vec<(NewEntry, Option<usize>)>, by: &str) -> Result<Vec<EntryRef>> {
        let Some((first, _)) = new.first() else { return Ok(Vec::new()) };
        let mut book_row = self.book_row(&first.book)?;
        let mut posted: Vec<EntryRef> = Vec::with_capacity(new.len());
        for (new, parent) in new {
            let parent = parent.and_then(|place| posted.get(place)).map(|at| at.id).or(new.parent);
            posted.push(self.post_to(&mut book_row, NewEntry { parent, ..new }, vec![], by)?);
        }
        Ok(posted)
    }

    fn post_to(&mut self, book_row: &mut BookRow, new: NewEntry, mut uploads: Vec<Upload>, by: &str) -> Result<EntryRef> {
        new.content.check()?;
        check_zone(new.zone)?;
        let content = canonical(&book_row.book, new.content);
        book_row.book.accepts(&content.attributes)?;
        let id = self.next_id(book_row)?;
        let thread = match new.parent {
            None => id,
            Some(parent) => {
                let row = self.find(book_row, parent)?;
                self.load(book_row, row)?.map_or(id, |parent| parent.thread)
            }
        };
        let at = EntryRef::new(&book_row.book.name, id);
        let date = new.date.unwrap_or_else(now);
        let mut content = content;
        self.name_files(book_row, &mut content, &[])?;
        let entry = Entry {
            at,
            date,
            zone: new.zone,
            by: by.to_owned(),
            revision: 0,
            changed: date,
            parent: new.parent,
            thread,
            content,
            signatures: vec![],
        };
        self.place(&entry.content, &mut uploads)?;
        self.charge_within_quota(book_row, id, &entry.content, by)?;
        self.extend(book_row, &entry.content)?;
        self.add(book_row, &entry)?;
        self.revise(book_row, id, 0, now(), by, Change::Posted)?;
        Ok(entry.at)
    }

    /// Gives new attachments their ELOG names, which are their addresses in the book. A name gets a suffix if a file of
    /// this entry, or of one written soon after that time, already has it. References in the text become these names.
    fn name_files(&mut self, book_row: &BookRow, content: &mut Content, old: &[Attachment]) -> Result<()> {
        let is_new = |file: &Attachment| !old.iter().any(|old| (&old.sha, old.added) == (&file.sha, file.added));
        let mut taken: HashSet<String> = content.attachments.iter().filter(|file| !is_new(file)).map(stored_name).collect();
        let mut looked_at = None;
        for file in content.attachments.iter_mut().filter(|file| is_new(file)) {
            let from = first_row(book_row.num, file.added);
            if looked_at.replace(from) != Some(from) {
                let end = first_row(book_row.num, Time(file.added.0.saturating_add(SAME_NAME)));
                taken.extend(self.files_between(from, end - 1)?.iter().map(stored_name));
            }
            let (plain, mut name) = (stored_name(file), stored_name(file));
            while !taken.insert(name.clone()) {
                name = another(&name);
            }
            if name != plain {
                file.elog = Some(name);
            }
        }
        let text = match resolved(&content.text, &content.attachments) {
            Cow::Owned(text) => text,
            Cow::Borrowed(_) => return Ok(()),
        };
        content.text = text;
        Ok(content.check()?)
    }

    /// Writes a new entry at a place of its own.
    fn add(&mut self, book_row: &BookRow, entry: &Entry) -> Result<()> {
        let row = self.free_row(book_row.num, entry.date)?;
        self.put(book_row, row, entry)?;
        self.count(book_row.num, 1)
    }

    fn next_id(&mut self, book_row: &mut BookRow) -> Result<u32> {
        let id = book_row.next_id;
        book_row.next_id =
            id.checked_add(1).ok_or_else(|| StoreError::Full(format!("'{}' has no more ids", book_row.book.name)))?;
        self.set_next_id(book_row.num, book_row.next_id)?;
        Ok(id)
    }

    /// Gives a copy the id of its entry, if the configuration of ELOG asks for it and no entry ever had the id here.
    fn id_of_copy(&mut self, from: &BookRow, target: &mut BookRow, id: u32) -> Result<u32> {
        if !preserves_ids(&from.book) || !matches!(self.find(target, id), Err(StoreError::NoEntry(_))) {
            return self.next_id(target);
        }
        if id >= target.next_id {
            target.next_id = id;
            return self.next_id(target);
        }
        Ok(id)
    }

    /// Adds new options of extendable attributes to the book.
    fn extend(&mut self, book_row: &mut BookRow, content: &Content) -> Result<()> {
        if book_row.book.extend(&content.attributes) {
            self.set_book(book_row.num, &book_row.book)?;
        }
        Ok(())
    }

    /// Returns an existing entry with its row.
    fn present(&mut self, book_row: &BookRow, id: u32) -> Result<(i64, Entry)> {
        let row = self.find(book_row, id)?;
        let entry = self.load(book_row, row)?;
        entry.map(|entry| (row, entry)).ok_or_else(|| StoreError::NoEntry(EntryRef::new(&book_row.book.name, id)))
    }

    fn edit(
        &mut self,
        at: &EntryRef,
        content: Content,
        mut uploads: Vec<Upload>,
        by: &str,
        expected: Option<u32>,
    ) -> Result<u32> {
        let mut book_row = self.book_row(&at.book)?;
        let (row, entry) = self.present(&book_row, at.id)?;
        if let Some(expected) = expected.filter(|expected| *expected != entry.revision) {
            return Err(StoreError::Changed { at: entry.at, expected, is: entry.revision });
        }
        self.refuse_if_locked(&book_row, &entry.at, by)?;
        content.check()?;
        let mut content = canonical(&book_row.book, content);
        book_row.book.accepts_change(&entry.content.attributes, &content.attributes)?;
        keeps_locked(&book_row.book, &entry.content.attributes, &content.attributes, LockedBy::Everybody)?;
        if content == entry.content {
            return Ok(entry.revision);
        }
        self.refuse_if_signed(&entry)?;
        self.name_files(&book_row, &mut content, &entry.content.attachments)?;
        self.place(&content, &mut uploads)?;
        self.charge_within_quota(&book_row, at.id, &content, by)?;
        self.extend(&mut book_row, &content)?;
        self.replace(&book_row, row, entry, content, by, Change::Edited)
    }

    fn edit_all(&mut self, changes: Vec<EntryEdit>, by: &str) -> Result<Vec<u32>> {
        changes.into_iter().map(|one| self.edit(&one.at, one.content, vec![], by, Some(one.expected))).collect()
    }

    /// Replaces the content of an entry.
    fn replace(&mut self, book_row: &BookRow, row: i64, entry: Entry, content: Content, by: &str, what: Change) -> Result<u32> {
        self.remember(book_row, &entry)?;
        self.take(book_row, row, &entry)?;
        let changed = now();
        let entry = Entry { revision: entry.revision + 1, changed, content, ..entry };
        self.put(book_row, row, &entry)?;
        self.revise(book_row, entry.at.id, entry.revision, changed, by, what)?;
        Ok(entry.revision)
    }

    fn refuse_if_locked(&mut self, book_row: &BookRow, at: &EntryRef, by: &str) -> Result<()> {
        match self.lock_of(book_row.num, at.id, now())? {
            Some(lock) if lock.by != by => Err(StoreError::Locked { at: at.clone(), lock: Box::new(lock) }),
            _ => Ok(()),
        }
    }

    /// Returns an entry and, on request, all replies to it: parents before their replies.
    fn family(&mut self, book_row: &BookRow, id: u32, replies: bool) -> Result<Vec<u32>> {
        self.find(book_row, id)?;
        let (mut family, mut known, mut at) = (vec![id], HashSet::from([id]), 0);
        while replies && at < family.len() {
            let children = self.children(book_row.num, family[at])?;
            family.extend(children.into_iter().filter(|child| known.insert(*child)));
            at += 1;
        }
        Ok(family)
    }

    /// Deletes an entry. With `seen`, it fails if there are other replies.
    fn delete(&mut self, at: &EntryRef, by: &str, replies: bool, seen: Option<&[u32]>) -> Result<u64> {
        let book_row = self.book_row(&at.book)?;
        let family = self.family(&book_row, at.id, replies)?;
        refuse_unseen(&book_row, at.id, &family, seen)?;
        for &id in &family {
            let (row, entry) = self.present(&book_row, id)?;
            self.refuse_if_locked(&book_row, &entry.at, by)?;
            self.refuse_if_signed(&entry)?;
            self.remember(&book_row, &entry)?;
            self.take(&book_row, row, &entry)?;
            self.bury(book_row.num, id, by, None)?;
            self.count(book_row.num, -1)?;
            self.revise(&book_row, id, entry.revision + 1, now(), by, Change::Deleted)?;
        }
        self.part(&book_row, at.id, &family)?;
        Ok(family.len() as u64)
    }

    /// Makes replies to a removed entry the first entries of their own threads.
    fn part(&mut self, book_row: &BookRow, id: u32, gone: &[u32]) -> Result<()> {
        if gone.len() > 1 {
            return Ok(());
        }
        for child in self.children(book_row.num, id)? {
            for (nth, member) in self.family(book_row, child, true)?.into_iter().enumerate() {
                let (row, mut entry) = self.present(book_row, member)?;
                self.take(book_row, row, &entry)?;
                entry.thread = child;
                entry.parent = entry.parent.filter(|_| nth > 0);
                self.put(book_row, row, &entry)?;
            }
        }
        Ok(())
    }

    fn move_to(&mut self, at: &EntryRef, to: &str, by: &str, replies: bool, seen: Option<&[u32]>) -> Result<EntryRef> {
        // Both books at once: two opposite moves that each hold one would wait for each other.
        let (from, _) = self.two_book_rows(&at.book, to)?;
        let family = self.family(&from, at.id, replies)?;
        refuse_unseen(&from, at.id, &family, seen)?;
        self.copy(at, to, by, replies, true)
    }

    fn copy(&mut self, at: &EntryRef, to: &str, by: &str, replies: bool, moving: bool) -> Result<EntryRef> {
        let (from, mut target) = self.two_book_rows(&at.book, to)?;
        if moving && from.num == target.num {
            self.find(&from, at.id)?;
            return Ok(EntryRef::new(&from.book.name, at.id));
        }
        let family = self.family(&from, at.id, replies)?;
        let mut new_ids: HashMap<u32, u32> = HashMap::new();
        for &id in &family {
            let (row, entry) = self.present(&from, id)?;
            let new = self.id_of_copy(&from, &mut target, id)?;
            new_ids.insert(id, new);
            let parent = entry.parent.filter(|_| id != at.id).and_then(|parent| new_ids.get(&parent).copied());
            let copy = Entry {
                at: EntryRef::new(&target.book.name, new),
                parent,
                thread: new_ids[&at.id],
                revision: if moving { entry.revision + 1 } else { 0 },
                changed: now(),
                // A signature is one of the entry, and not of its copies.
                signatures: if moving { entry.signatures.clone() } else { vec![] },
                ..entry.clone()
            };
            if moving {
                self.refuse_if_locked(&from, &entry.at, by)?;
                self.refuse_if_signed(&entry)?;
                self.remember(&from, &entry)?;
                self.take(&from, row, &entry)?;
                self.carry((from.num, id), (target.num, new))?;
                self.bury(from.num, id, by, Some((target.num, new)))?;
                self.count(from.num, -1)?;
            }
            if !moving {
                self.charge_within_quota(&target, new, &copy.content, by)?;
            }
            self.add(&target, &copy)?;
            self.revise(&target, new, copy.revision, copy.changed, by, if moving { Change::Moved } else { Change::Copied })?;
        }
        if moving {
            self.part(&from, at.id, &family)?;
        }
        Ok(EntryRef::new(&target.book.name, new_ids[&at.id]))
    }
}

/// Fails if the family has an entry that is not in `seen`.
fn refuse_unseen(book_row: &BookRow, id: u32, family: &[u32], seen: Option<&[u32]>) -> Result<()> {
    let Some(seen) = seen else { return Ok(()) };
    let seen: HashSet<u32> = seen.iter().copied().collect();
    if family.iter().any(|id| !seen.contains(id)) {
        Err(StoreError::Answered(EntryRef::new(&book_row.book.name, id)))
    } else {
        Ok(())
    }
}

/// Returns the attributes in the book's order and spelling, with the computed ones, followed by the attributes that the
/// book does not have.
pub fn canonical(book: &Book, mut content: Content) -> Content {
    for said in &mut content.attributes {
        if let Some(known) = book.attribute(&said.name) {
            said.name.clone_from(&known.name);
        }
        said.values.retain(|value| !value.is_empty());
    }
    compute(book, &mut content.attributes);
    let place = |name: &str| book.attributes.iter().position(|known| same_name(&known.name, name)).unwrap_or(usize::MAX);
    content.attributes.sort_by_key(|said| place(&said.name));
    content
}
