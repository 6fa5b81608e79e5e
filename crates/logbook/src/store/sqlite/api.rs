//! The store as others see it.

use std::{io::Read, path::Path, time::Duration};

use super::{
    Result, SqliteStore, StoreError, now,
    rows::{find, shelf},
};
use crate::{
    attachment::{Bytes, Sha, Upload},
    book::Book,
    entry::{Content, Draft, Entry, EntryRef, Lock, NewEntry, Revision},
    search::{Page, Search, Stop},
    store::{BookInfo, EntryChange, ImportOutcome, Imported, Progress, Record, Store, write::Write},
};

impl Store for SqliteStore {
    fn books(&self) -> Result<Vec<BookInfo>> {
        self.all_books()
    }

    fn book(&self, name: &str) -> Result<Book> {
        self.read(|db| Ok(shelf(db, name)?.book))
    }

    fn put_book(&self, book: &Book) -> Result<()> {
        self.write(|writing| writing.put_book(book))
    }

    fn upload(&self, from: &mut dyn Read, limit: u64) -> Result<Upload> {
        self.blobs.upload(from, limit).map_err(|error| self.io(error))
    }

    fn attachment(&self, sha: &Sha) -> Result<Bytes> {
        let open = || self.blobs.read(sha).and_then(|file| Ok(Bytes::new(file.metadata()?.len(), file)));
        open().map_err(|error| StoreError::Io { path: self.blobs.path(sha), error })
    }

    fn post(&self, new: NewEntry, uploads: Vec<Upload>, by: &str) -> Result<EntryRef> {
        self.write(|writing| writing.post(new, uploads, by))
    }

    fn post_all(&self, new: Vec<(NewEntry, Option<usize>)>, by: &str) -> Result<Vec<EntryRef>> {
        self.write(|writing| writing.post_all(new, by))
    }

    fn entry(&self, at: &EntryRef) -> Result<Entry> {
        self.one_entry(at)
    }

    fn edit(&self, at: &EntryRef, content: Content, uploads: Vec<Upload>, by: &str, expected: Option<u32>) -> Result<u32> {
        self.write(|writing| writing.edit(at, content, uploads, by, expected))
    }

    fn delete(&self, at: &EntryRef, by: &str, replies: bool) -> Result<u64> {
        self.write(|writing| writing.delete(at, by, replies, None))
    }

    fn delete_seen(&self, at: &EntryRef, by: &str, seen: &[u32]) -> Result<u64> {
        self.write(|writing| writing.delete(at, by, true, Some(seen)))
    }

    fn copy(&self, at: &EntryRef, to: &str, by: &str, replies: bool) -> Result<EntryRef> {
        self.write(|writing| writing.copy(at, to, by, replies, false))
    }

    fn move_to(&self, at: &EntryRef, to: &str, by: &str, replies: bool) -> Result<EntryRef> {
        self.write(|writing| writing.move_to(at, to, by, replies, None))
    }

    fn move_seen(&self, at: &EntryRef, to: &str, by: &str, seen: &[u32]) -> Result<EntryRef> {
        self.write(|writing| writing.move_to(at, to, by, true, Some(seen)))
    }

    fn history(&self, at: &EntryRef) -> Result<Vec<Revision>> {
        self.whole_history(at)
    }

    fn thread(&self, at: &EntryRef) -> Result<Vec<Entry>> {
        self.whole_thread(at)
    }

    fn answers(&self, book: &str, to: &[u32]) -> Result<Vec<(u32, u32)>> {
        self.answers_to(book, to)
    }

    fn lock(&self, at: &EntryRef, by: &str, host: &str, time: Duration) -> Result<Lock> {
        self.take_lock(at, by, host, time)
    }

    fn unlock(&self, at: &EntryRef, by: &str) -> Result<()> {
        self.give_lock_back(at, by)
    }

    fn hand_lock(&self, at: &EntryRef, from: &str, to: (&str, &str), time: Duration) -> Result<bool> {
        self.make_lock(at, from, to, time)
    }

    fn locked(&self, at: &EntryRef) -> Result<Option<Lock>> {
        self.read(|db| {
            let shelf = shelf(db, &at.book)?;
            find(db, &shelf, at.id)?;
            super::desk::lock_of(db, shelf.num, at.id, now())
        })
    }

    fn save_draft(&self, draft: &Draft) -> Result<i64> {
        self.save(draft)
    }

    fn drafts(&self, owner: &str) -> Result<Vec<Draft>> {
        self.drafts_of(owner)
    }

    fn drop_draft(&self, owner: &str, number: i64) -> Result<bool> {
        self.write(|writing| {
            let sql = "DELETE FROM draft WHERE owner = ?1 AND number = ?2";
            Ok(writing.db.execute(sql, rusqlite::params![owner, number])? == 1)
        })
    }

    fn search(&self, search: &Search, stop: &Stop) -> Result<Page> {
        self.find_page(search, stop)
    }

    fn save_search(&self, owner: &str, name: &str, query: &str) -> Result<()> {
        self.save_query(owner, name, query)
    }

    fn saved_searches(&self, owner: &str) -> Result<Vec<(String, String)>> {
        self.saved_queries(owner)
    }

    fn drop_search(&self, owner: &str, name: &str) -> Result<bool> {
        self.write(|writing| {
            Ok(writing.db.execute("DELETE FROM saved_search WHERE owner = ?1 AND name = ?2", [owner, name])? == 1)
        })
    }

    fn record(&self, kind: &str, name: &str) -> Result<Option<Record>> {
        self.one_record(kind, name)
    }

    fn records(&self, kind: &str) -> Result<Vec<(String, Record)>> {
        self.all_records(kind)
    }

    fn put_record(&self, kind: &str, name: &str, value: &serde_json::Value, expected: Option<u64>) -> Result<u64> {
        self.write_record(kind, name, value, expected)
    }

    fn drop_record(&self, kind: &str, name: &str) -> Result<bool> {
        self.remove_record(kind, name)
    }

    fn last_change(&self) -> Result<u64> {
        self.number_of_last_change()
    }

    fn changes(&self, after: u64, most: usize) -> Result<Vec<EntryChange>> {
        self.changes_after(after, most)
    }

    fn wait_for_change(&self, after: u64, time: Duration) -> Result<u64> {
        self.wait_for_next_change(after, time)
    }

    fn import(&self, book: &str, entries: Vec<Imported>, uploads: Vec<Upload>, by: &str) -> Result<Vec<ImportOutcome>> {
        self.take_over(book, entries, uploads, by)
    }

    fn imported(&self) -> Result<()> {
        self.settle_index()
    }

    fn digests(&self, book: &str) -> Result<Vec<(u32, [u8; 16])>> {
        self.all_digests(book)
    }

    fn check(&self, progress: Progress<'_>) -> Result<Vec<String>> {
        self.find_faults(progress)
    }

    fn backup(&self, to: &Path, progress: Progress<'_>) -> Result<()> {
        self.copy_to(to, progress)
    }
}
