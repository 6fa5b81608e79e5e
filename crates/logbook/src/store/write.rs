//! Posting, editing, deleting, copying and moving: each one transaction with its index.

use std::collections::{HashMap, HashSet};

use super::{
    Result, StoreError,
    index::Tables,
    now,
    shelf::{Shelf, first_row},
};
use crate::{
    attachment::{Attachment, Upload},
    book::{Book, Invalid, same_name},
    elog::written::{another, stored_name},
    entry::{Change, Content, Entry, EntryRef, NewEntry, check_zone},
};
use tampu_types::Time;

/// Nanoseconds after a file was added in which an entry with another one of its name is looked for: a file is added when its entry is written.
const SAME_NAME: i64 = 10_000_000_000;

impl<T: Tables> Write for T {}

/// What is written, in terms of tables.
pub trait Write: Tables + Sized {
    fn put_book(&mut self, book: &Book) -> Result<()> {
        book.check()?;
        let before = match self.shelf(&book.name) {
            Ok(shelf) => shelf,
            Err(StoreError::NoBook(_)) => return self.new_book(book),
            Err(other) => return Err(other),
        };
        self.set_book(before.num, book)?;
        for old in &before.book.attributes {
            if book.attribute(&old.name).is_none() {
                self.reorder(&before, &old.name, None)?;
            }
        }
        for new in &book.attributes {
            let old = before.book.attribute(&new.name);
            if old.is_none_or(|old| old.kind.is_number() != new.kind.is_number()) {
                self.reorder(&before, &new.name, Some(new.kind))?;
            }
        }
        Ok(())
    }

    fn post(&mut self, new: NewEntry, uploads: Vec<Upload>, by: &str) -> Result<EntryRef> {
        let mut shelf = self.shelf(&new.book)?;
        self.post_to(&mut shelf, new, uploads, by)
    }

    fn post_all(&mut self, new: Vec<(NewEntry, Option<usize>)>, by: &str) -> Result<Vec<EntryRef>> {
        let Some((first, _)) = new.first() else { return Ok(Vec::new()) };
        let mut shelf = self.shelf(&first.book)?;
        let mut posted: Vec<EntryRef> = Vec::with_capacity(new.len());
        for (new, parent) in new {
            let parent = parent.and_then(|place| posted.get(place)).map(|at| at.id).or(new.parent);
            posted.push(self.post_to(&mut shelf, NewEntry { parent, ..new }, vec![], by)?);
        }
        Ok(posted)
    }

    fn post_to(&mut self, shelf: &mut Shelf, new: NewEntry, mut uploads: Vec<Upload>, by: &str) -> Result<EntryRef> {
        new.content.check()?;
        check_zone(new.zone)?;
        shelf.book.accepts(&new.content.attributes)?;
        let id = self.next_id(shelf)?;
        let thread = match new.parent {
            None => id,
            Some(parent) => {
                let row = self.find(shelf, parent)?;
                self.load(shelf, row)?.map_or(id, |parent| parent.thread)
            }
        };
        let at = EntryRef::new(&shelf.book.name, id);
        let date = new.date.unwrap_or_else(now);
        let mut content = canonical(&shelf.book, new.content);
        self.name_files(shelf, &mut content, &[])?;
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
        };
        self.place(&entry.content, &mut uploads)?;
        self.extend(shelf, &entry.content)?;
        self.add(shelf, &entry)?;
        self.revise(shelf, id, 0, now(), by, Change::Posted)?;
        Ok(entry.at)
    }

    /// ELOG's name of an attachment is its address in the book. A new one whose name another has, of this entry or of one that was written
    /// soon after that time, gets a name of its own.
    fn name_files(&mut self, shelf: &Shelf, content: &mut Content, old: &[Attachment]) -> Result<()> {
        let is_new = |file: &Attachment| !old.iter().any(|old| (&old.sha, old.added) == (&file.sha, file.added));
        let mut taken: HashSet<String> = content.attachments.iter().filter(|file| !is_new(file)).map(stored_name).collect();
        let mut looked_at = None;
        for file in content.attachments.iter_mut().filter(|file| is_new(file)) {
            let from = first_row(shelf.num, file.added);
            if looked_at.replace(from) != Some(from) {
                let end = first_row(shelf.num, Time(file.added.0.saturating_add(SAME_NAME)));
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
        Ok(())
    }

    /// Writes a new entry at a place of its own.
    fn add(&mut self, shelf: &Shelf, entry: &Entry) -> Result<()> {
        let row = self.free_row(shelf.num, entry.date)?;
        self.put(shelf, row, entry)?;
        self.count(shelf.num, 1)
    }

    fn next_id(&mut self, shelf: &mut Shelf) -> Result<u32> {
        let id = shelf.next_id;
        shelf.next_id = id.checked_add(1).ok_or_else(|| StoreError::Full(format!("'{}' has no more ids", shelf.book.name)))?;
        self.set_next_id(shelf.num, shelf.next_id)?;
        Ok(id)
    }

    /// New options of extendable attributes become options.
    fn extend(&mut self, shelf: &mut Shelf, content: &Content) -> Result<()> {
        if shelf.book.extend(&content.attributes) {
            self.set_book(shelf.num, &shelf.book)?;
        }
        Ok(())
    }

    /// An entry that is there, with its place.
    fn present(&mut self, shelf: &Shelf, id: u32) -> Result<(i64, Entry)> {
        let row = self.find(shelf, id)?;
        let entry = self.load(shelf, row)?;
        entry.map(|entry| (row, entry)).ok_or_else(|| StoreError::NoEntry(EntryRef::new(&shelf.book.name, id)))
    }

    fn edit(
        &mut self,
        at: &EntryRef,
        content: Content,
        mut uploads: Vec<Upload>,
        by: &str,
        expected: Option<u32>,
    ) -> Result<u32> {
        let mut shelf = self.shelf(&at.book)?;
        let (row, entry) = self.present(&shelf, at.id)?;
        if let Some(expected) = expected.filter(|expected| *expected != entry.revision) {
            return Err(StoreError::Changed { at: entry.at, expected, is: entry.revision });
        }
        self.refuse_if_locked(&shelf, &entry.at, by)?;
        content.check()?;
        let mut content = canonical(&shelf.book, content);
        shelf.book.accepts_change(&entry.content.attributes, &content.attributes)?;
        for locked in shelf.book.attributes.iter().filter(|attribute| attribute.locked) {
            let (was, is) = (entry.content.attribute(&locked.name), content.attribute(&locked.name));
            if was.map(|was| &was.values) != is.map(|is| &is.values) {
                return Err(Invalid::Locked(locked.name.clone()).into());
            }
        }
        if content == entry.content {
            return Ok(entry.revision);
        }
        self.name_files(&shelf, &mut content, &entry.content.attachments)?;
        self.place(&content, &mut uploads)?;
        self.extend(&mut shelf, &content)?;
        self.replace(&shelf, row, entry, content, by, Change::Edited)
    }

    /// The entry says something else from now on.
    fn replace(&mut self, shelf: &Shelf, row: i64, entry: Entry, content: Content, by: &str, what: Change) -> Result<u32> {
        self.remember(shelf, &entry)?;
        self.take(shelf, row, &entry)?;
        let changed = now();
        let entry = Entry { revision: entry.revision + 1, changed, content, ..entry };
        self.put(shelf, row, &entry)?;
        self.revise(shelf, entry.at.id, entry.revision, changed, by, what)?;
        Ok(entry.revision)
    }

    fn refuse_if_locked(&mut self, shelf: &Shelf, at: &EntryRef, by: &str) -> Result<()> {
        match self.lock_of(shelf.num, at.id, now())? {
            Some(lock) if lock.by != by => Err(StoreError::Locked { at: at.clone(), lock: Box::new(lock) }),
            _ => Ok(()),
        }
    }

    /// An entry and, where they are wanted, all answers to it: parents before their answers.
    fn family(&mut self, shelf: &Shelf, id: u32, replies: bool) -> Result<Vec<u32>> {
        self.find(shelf, id)?;
        let mut family = vec![id];
        let mut at = 0;
        while replies && at < family.len() {
            for child in self.children(shelf.num, family[at])? {
                if !family.contains(&child) {
                    family.push(child);
                }
            }
            at += 1;
        }
        Ok(family)
    }

    /// Where it is said which were `seen`, there are no others.
    fn delete(&mut self, at: &EntryRef, by: &str, replies: bool, seen: Option<&[u32]>) -> Result<u64> {
        let shelf = self.shelf(&at.book)?;
        let family = self.family(&shelf, at.id, replies)?;
        refuse_unseen(&shelf, at.id, &family, seen)?;
        for &id in &family {
            let (row, entry) = self.present(&shelf, id)?;
            self.refuse_if_locked(&shelf, &entry.at, by)?;
            self.remember(&shelf, &entry)?;
            self.take(&shelf, row, &entry)?;
            self.bury(shelf.num, id, by, None)?;
            self.count(shelf.num, -1)?;
            self.revise(&shelf, id, entry.revision + 1, now(), by, Change::Deleted)?;
        }
        self.part(&shelf, at.id, &family)?;
        Ok(family.len() as u64)
    }

    /// Answers to what is no longer here begin threads of their own.
    fn part(&mut self, shelf: &Shelf, id: u32, gone: &[u32]) -> Result<()> {
        if gone.len() > 1 {
            return Ok(());
        }
        for child in self.children(shelf.num, id)? {
            for (nth, member) in self.family(shelf, child, true)?.into_iter().enumerate() {
                let (row, mut entry) = self.present(shelf, member)?;
                self.take(shelf, row, &entry)?;
                entry.thread = child;
                entry.parent = entry.parent.filter(|_| nth > 0);
                self.put(shelf, row, &entry)?;
            }
        }
        Ok(())
    }

    fn move_to(&mut self, at: &EntryRef, to: &str, by: &str, replies: bool, seen: Option<&[u32]>) -> Result<EntryRef> {
        let from = self.shelf(&at.book)?;
        let family = self.family(&from, at.id, replies)?;
        refuse_unseen(&from, at.id, &family, seen)?;
        self.copy(at, to, by, replies, true)
    }

    fn copy(&mut self, at: &EntryRef, to: &str, by: &str, replies: bool, moving: bool) -> Result<EntryRef> {
        let (from, mut target) = self.two_shelves(&at.book, to)?;
        if moving && from.num == target.num {
            self.find(&from, at.id)?;
            return Ok(EntryRef::new(&from.book.name, at.id));
        }
        let family = self.family(&from, at.id, replies)?;
        let mut new_ids: HashMap<u32, u32> = HashMap::new();
        for &id in &family {
            let (row, entry) = self.present(&from, id)?;
            let new = self.next_id(&mut target)?;
            new_ids.insert(id, new);
            let parent = entry.parent.filter(|_| id != at.id).and_then(|parent| new_ids.get(&parent).copied());
            let copy = Entry {
                at: EntryRef::new(&target.book.name, new),
                parent,
                thread: new_ids[&at.id],
                revision: if moving { entry.revision + 1 } else { 0 },
                changed: now(),
                ..entry.clone()
            };
            if moving {
                self.refuse_if_locked(&from, &entry.at, by)?;
                self.remember(&from, &entry)?;
                self.take(&from, row, &entry)?;
                self.carry((from.num, id), (target.num, new))?;
                self.bury(from.num, id, by, Some((target.num, new)))?;
                self.count(from.num, -1)?;
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

/// An answer that nobody had seen stops what is done to all of them.
fn refuse_unseen(shelf: &Shelf, id: u32, family: &[u32], seen: Option<&[u32]>) -> Result<()> {
    let is_new = |id: &u32| seen.is_some_and(|seen| !seen.contains(id));
    if family.iter().any(is_new) { Err(StoreError::Answered(EntryRef::new(&shelf.book.name, id))) } else { Ok(()) }
}

/// Attributes in the book's order and spelling, the ones it does not have after them.
pub fn canonical(book: &Book, mut content: Content) -> Content {
    for said in &mut content.attributes {
        if let Some(known) = book.attribute(&said.name) {
            said.name.clone_from(&known.name);
        }
        said.values.retain(|value| !value.is_empty());
    }
    let place = |name: &str| book.attributes.iter().position(|known| same_name(&known.name, name)).unwrap_or(usize::MAX);
    content.attributes.sort_by_key(|said| place(&said.name));
    content
}
