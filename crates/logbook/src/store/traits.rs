//! The traits that a store is made of.

use std::{io::Read, path::Path, time::Duration};

use serde_json::Value;
use tampu_types::Time;

use super::error::StoreError;
use super::looks::Looks;
use super::model::{BookInfo, DeletedBook, EntryChange, EntryEdit, ImportOutcome, Imported, Progress, Record, Result};
use super::page::PageStart;
use super::part::{HistoryPage, PagePart, ThreadPage};
use super::purge::{Purge, Purged};
use super::quota::{Quota, UsedSpace};
use super::report::Reports;
use super::signing::ChainRecord;
use crate::{
    attachment::{Attachment, Bytes, Sha, Upload},
    book::{
        Book,
        change::{BookChange, BookEdit},
    },
    entry::{Content, Draft, Entry, EntryRef, Lock, NewEntry},
    search::{Page, Search, Stop},
    signature::{NewSignature, Signature, keys::SigningKeys},
    template::Template,
};

/// Books and their entries: reading, writing and searching.
pub trait Entries: Send + Sync {
    /// Returns all books, by name.
    fn books(&self) -> Result<Vec<BookInfo>>;
    /// Returns one book.
    fn book(&self, name: &str) -> Result<Book>;
    /// Creates a book, or changes its settings. Its entries stay.
    fn put_book(&self, book: &Book) -> Result<()>;

    /// Posts an entry. When this returns, the entry is durable and in every search.
    fn post(&self, new: NewEntry, uploads: Vec<Upload>, by: &str) -> Result<EntryRef>;
    /// Returns an entry.
    fn entry(&self, at: &EntryRef) -> Result<Entry>;
    /// Changes an entry; `expected` is the revision that the caller has read. Returns the new revision.
    fn edit(&self, at: &EntryRef, content: Content, uploads: Vec<Upload>, by: &str, expected: Option<u32>) -> Result<u32>;
    /// Changes several entries, each at the revision that the caller has read, all of them or none. Returns the new
    /// revisions.
    fn edit_all(&self, changes: Vec<EntryEdit>, by: &str) -> Result<Vec<u32>>;
    /// Deletes an entry, and with `replies` all replies to it. Returns the number of deleted entries.
    fn delete(&self, at: &EntryRef, by: &str, replies: bool) -> Result<u64>;
    /// Copies an entry, and with `replies` all replies to it, to a book. Returns the first copy.
    fn copy(&self, at: &EntryRef, to: &str, by: &str, replies: bool) -> Result<EntryRef>;
    /// Moves an entry, and with `replies` all replies to it, to another book, with its history. Returns the first
    /// entry's new place.
    fn move_to(&self, at: &EntryRef, to: &str, by: &str, replies: bool) -> Result<EntryRef>;
    /// Returns a page of the revisions of an entry, the oldest first; also of one that was deleted.
    fn history_page(&self, at: &EntryRef, part: PagePart) -> Result<HistoryPage>;
    /// Returns the time of an entry's first revision; `None` if it has no history here.
    fn first_revision(&self, at: &EntryRef) -> Result<Option<Time>>;
    /// Returns a page of the thread of an entry, by date; with the texts of its entries if `text` is true.
    fn thread_page(&self, at: &EntryRef, part: PagePart, text: bool) -> Result<ThreadPage>;

    /// Returns one page of a search.
    fn search(&self, search: &Search, stop: &Stop) -> Result<Page>;
}

/// Files of entries.
pub trait Attachments: Send + Sync {
    /// Stores the bytes of an attachment, at most `limit`. [`Entries::post`] or [`Entries::edit`] makes them an entry's.
    fn upload(&self, from: &mut dyn Read, limit: u64) -> Result<Upload>;
    /// Returns the bytes of an attachment.
    fn attachment(&self, sha: &Sha) -> Result<Bytes>;
}

/// A user's work in progress: locks of entries, drafts, saved searches.
pub trait Drafts: Send + Sync {
    /// Locks an entry for editing, for `time`. A lock that `by` holds already is renewed.
    fn lock(&self, at: &EntryRef, by: &str, host: &str, time: Duration) -> Result<Lock>;
    /// Releases a lock that `by` holds; another user's lock stays.
    fn unlock(&self, at: &EntryRef, by: &str) -> Result<()>;
    /// Returns the current lock of an entry.
    fn locked(&self, at: &EntryRef) -> Result<Option<Lock>>;

    /// Saves a new draft, or overwrites the one with the same number. Returns the number.
    fn save_draft(&self, draft: &Draft) -> Result<i64>;
    /// Returns the owner's drafts, the last saved first.
    fn drafts(&self, owner: &str) -> Result<Vec<Draft>>;
    /// Deletes a draft; returns whether it existed.
    fn drop_draft(&self, owner: &str, number: i64) -> Result<bool>;

    /// Saves a query under a name.
    fn save_search(&self, owner: &str, name: &str, query: &str) -> Result<()>;
    /// Returns the owner's saved queries as (name, query), by name.
    fn saved_searches(&self, owner: &str) -> Result<Vec<(String, String)>>;
    /// Deletes a saved query; returns whether it existed.
    fn drop_search(&self, owner: &str, name: &str) -> Result<bool>;
}

/// Operations over several entries, or on another user's lock, that need one transaction. A client of a hub does not
/// offer them.
pub trait Transactions: Entries {
    /// Returns where the page begins on which an entry stands, or would stand, in a search whose pages have `limit`
    /// entries. `None` if the search has not such an entry's book, or has stopped before the answer.
    fn page_of(&self, search: &Search, at: &EntryRef, stop: &Stop) -> Result<Option<PageStart>>;
    /// Makes a book or changes its configuration, and keeps the change in the book's history. Returns false if the book
    /// is as it was; then nothing is kept.
    fn change_book(&self, edit: BookEdit<'_>) -> Result<bool>;
    /// Returns at most `most` changes of a book's configuration before a number, the last one first.
    fn book_changes(&self, book: &str, before: Option<u32>, most: usize) -> Result<Vec<BookChange>>;
    /// Returns one change of a book's configuration.
    fn book_change(&self, book: &str, number: u32) -> Result<BookChange> {
        let missing = || StoreError::NoBookChange { book: book.to_owned(), number };
        let after = number.checked_add(1).ok_or_else(missing)?;
        let found = self.book_changes(book, Some(after), 1)?.pop();
        found.filter(|change| change.number == number).ok_or_else(missing)
    }
    /// Gives a book another name, also in rights, rules, drafts and searches; its entries stay. Returns the book.
    fn rename_book(&self, name: &str, to: &str, by: &str) -> Result<Book>;
    /// Deletes a book with its entries, until [`Transactions::undelete_book`] restores it.
    fn delete_book(&self, name: &str, by: &str) -> Result<DeletedBook>;
    /// Restores a deleted book by its number, under its name or another one. Returns the book.
    fn undelete_book(&self, number: u32, to: Option<&str>, by: &str) -> Result<Book>;
    /// Posts entries of one book, all of them or none. A number beside an entry is the position in the list of the
    /// entry that it replies to, which comes before it.
    fn post_all(&self, new: Vec<(NewEntry, Option<usize>)>, by: &str) -> Result<Vec<EntryRef>>;
    /// Deletes an entry and all replies to it. Fails if there are other replies than `seen`, so that no reply is deleted unread.
    fn delete_seen(&self, at: &EntryRef, by: &str, seen: &[u32]) -> Result<u64>;
    /// Moves an entry and all replies to it to another book. Fails if there are other replies than `seen`.
    fn move_seen(&self, at: &EntryRef, to: &str, by: &str, seen: &[u32]) -> Result<EntryRef>;
    /// Returns the replies to these entries of a book as (entry, reply); those to one entry by date.
    fn answers(&self, book: &str, to: &[u32]) -> Result<Vec<(u32, u32)>>;
    /// Finds an attachment of a book by its name in ELOG's files, with one look-up in an index. Of several, it returns
    /// that of the last entry.
    fn attachment_named(&self, book: &str, name: &str) -> Result<Option<Attachment>>;
    /// Passes a lock from one user to another (name, host), for `time`, without a moment in which the entry is
    /// unlocked. Returns whether `from` still held it.
    fn hand_lock(&self, at: &EntryRef, from: &str, to: (&str, &str), time: Duration) -> Result<bool>;
}

/// Records beside the logbooks, under a kind and a name: users, access rules, sessions, templates.
pub trait Records: Send + Sync {
    /// Returns the record of a kind and a name.
    fn record(&self, kind: &str, name: &str) -> Result<Option<Record>>;
    /// Returns all records of a kind, by name.
    fn records(&self, kind: &str) -> Result<Vec<(String, Record)>>;
    /// Writes a record if it is at version `expected`; 0 means that there is no such record. Returns the new version.
    fn put_record(&self, kind: &str, name: &str, value: &Value, expected: Option<u64>) -> Result<u64>;
    /// Deletes a record; returns whether it existed.
    fn drop_record(&self, kind: &str, name: &str) -> Result<bool>;
}

/// The journal of changes, for subscribers.
pub trait Changes: Send + Sync {
    /// Returns the number of the last change of an entry; 0 before the first change.
    fn last_change(&self) -> Result<u64>;
    /// Returns at most `most` changes after one, in order. The last [`CHANGES_KEPT`](super::CHANGES_KEPT) are complete.
    fn changes(&self, after: u64, most: usize) -> Result<Vec<EntryChange>>;
    /// Waits at most `time` for a change after this one, made by any process. Returns the number of the last change.
    fn wait_for_change(&self, after: u64, time: Duration) -> Result<u64>;
}

/// Bulk import of entries with their ids.
pub trait Imports: Send + Sync {
    /// Imports entries of one book in one transaction. Returns an outcome for each, in their order. A reply to an entry
    /// that is missing here begins a thread.
    fn import(&self, book: &str, entries: Vec<Imported>, uploads: Vec<Upload>, by: &str) -> Result<Vec<ImportOutcome>>;
    /// Tidies the search index after the last import.
    fn imported(&self) -> Result<()>;
    /// Returns (id, digest) of all imported entries of a book that still exist.
    fn digests(&self, book: &str) -> Result<Vec<(u32, [u8; 16])>>;
    /// Returns (id, digest) of all entries of a book that were ever imported, also of those that are gone.
    fn all_imports(&self, book: &str) -> Result<Vec<(u32, [u8; 16])>>;
}

/// Maintenance of a whole store.
pub trait Maintenance: Send + Sync {
    /// Checks database, index, threads and the bytes of all attachments against each other. Returns one line for each fault.
    fn check(&self, progress: Progress<'_>) -> Result<Vec<String>>;
    /// Removes the texts and files of an entry, or of a part of it, for good: from the entry, its history, drafts, the
    /// index, and the freed space of the store's files. This takes the longer the more the store has. An error may come
    /// after the removal; the same purge again then finishes it.
    fn purge(&self, at: &EntryRef, purge: &Purge, by: &str) -> Result<Purged>;
    /// Removes the texts and files of a deleted book for good, as [`Maintenance::purge`] does for each of its entries.
    fn purge_book(&self, number: u32, reason: &str, by: &str) -> Result<DeletedBook>;
    /// Sets the quota for files of new entries and changes.
    fn set_quota(&self, quota: Quota);
    /// Returns the files of each user in each book, by book.
    fn used_space(&self) -> Result<Vec<UsedSpace>>;
    /// Copies a snapshot of everything into a directory that can be opened in place of this one. Others can write meanwhile.
    fn backup(&self, to: &Path, progress: Progress<'_>) -> Result<()>;
}

/// Signatures of entries, and the chains that hold them.
pub trait Signatures: Send + Sync {
    /// Signs the current revision of an entry for a person whom the caller has checked.
    fn sign(&self, new: &NewSignature) -> Result<Signature>;
    /// Returns the records about an entry, also about a deleted one.
    fn signatures(&self, at: &EntryRef) -> Result<Vec<Signature>>;
    /// Returns at most `most` records of a book's chain after a number, in order.
    fn chain(&self, book: &str, after: u64, most: usize) -> Result<Vec<ChainRecord>>;
    /// Returns the entries of a book that count another number of records than there are: the entry, the count, the
    /// number of records.
    fn wrongly_signed(&self, book: &str) -> Result<Vec<(EntryRef, u64, u64)>>;
    /// Returns the number of a book's chain, which stays when the book gets another name.
    fn chain_number(&self, book: &str) -> Result<i64>;
    /// Returns the signing key of the store.
    fn signing_keys(&self) -> &SigningKeys;
}

/// Templates of books: texts and attributes that entries begin with.
pub trait Templates: Send + Sync {
    /// Returns a template of a book, or [`StoreError::NoTemplate`](super::StoreError::NoTemplate).
    fn template(&self, book: &str, name: &str) -> Result<Template>;
    /// Saves a template of a book, in place of another of its name.
    fn save_template(&self, book: &str, name: &str, template: &Template) -> Result<()>;
    /// Returns the names of a book's templates, in order.
    fn templates(&self, book: &str) -> Result<Vec<String>>;
    /// Deletes a template, or returns [`StoreError::NoTemplate`](super::StoreError::NoTemplate).
    fn drop_template(&self, book: &str, name: &str) -> Result<()>;
}

/// A logbook in a store or behind a hub's API, with the operations of a user: entries, files, drafts, templates.
pub trait Logbook: Entries + Attachments + Drafts + Templates {}
impl<T: Entries + Attachments + Drafts + Templates + ?Sized> Logbook for T {}

/// The part of a store that keeps users and access rules: records, and the books that they are about.
pub trait PeopleStore: Entries + Records + Drafts {}
impl<T: Entries + Records + Drafts + ?Sized> PeopleStore for T {}

/// A whole store, with the operations that need the data themselves.
pub trait Store: Logbook + Transactions + PeopleStore + Changes + Imports + Maintenance + Looks + Reports + Signatures {}
impl<T: Logbook + Transactions + PeopleStore + Changes + Imports + Maintenance + Looks + Reports + Signatures + ?Sized> Store
    for T
{
}
