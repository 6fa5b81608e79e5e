//! The operations that a database provides: [`Index`] for searches (`page.rs`, `stream.rs`), [`Tables`] for writing
//! (`write.rs`, `import.rs`). So the logic of a search and of a post is written once, and a store only translates these
//! operations.

use std::sync::Arc;

use tampu_types::Time;

use super::{
    Result, StoreError,
    book_row::{BookRow, OrderKey, damaged, first_row, last_of_second},
    memory::Remembered,
    verdicts::Verdicts,
};
use crate::{
    attachment::{Attachment, Upload},
    book::{AttributeKind, Book, change::BookChange},
    entry::{Change, Content, Draft, Entry, EntryRef, Lock, Tombstone},
    query::{
        candidates::{Vocabulary, Want},
        eval::StoredEntry,
    },
    search::{Stop, Stopped},
    store::ImportOutcome,
};

/// The early end of a search: an error or a stop.
pub enum SearchEnd {
    /// The search failed.
    Failed(StoreError),
    /// The search was stopped; its results until then are valid.
    Stopped(Stopped),
}

impl From<StoreError> for SearchEnd {
    fn from(error: StoreError) -> SearchEnd {
        SearchEnd::Failed(error)
    }
}

/// A callback for each row; `false` ends the loop.
pub type EachRow<'a> = &'a mut dyn FnMut(i64) -> std::result::Result<bool, SearchEnd>;
/// A callback for each place; `false` ends the loop.
pub type EachKey<'a> = &'a mut dyn FnMut(OrderKey) -> std::result::Result<bool, SearchEnd>;

/// A callback for each entry that is read; `false` ends the loop.
pub type EachEntry<'a> = &'a mut dyn FnMut(i64, StoredEntry<'_>) -> std::result::Result<bool, SearchEnd>;

/// An order other than by date.
#[derive(Debug, Clone, Copy)]
pub enum Along {
    /// By the number within the book.
    Id,
    /// By the keys of the attribute of this number.
    Key(u32),
    /// The first entries of threads, by the newest entry of each. Their keys are [`WHEN`](super::book_row::WHEN) of its row.
    Thread,
}

/// A snapshot of a database, as a search needs it.
pub trait SearchIndex {
    /// Maximum number of entries that are read at the same time.
    const TOGETHER: usize;
    /// Maximum number of index rows in memory for an order other than by date.
    const HELD: usize;
    /// Number of entries along an order that are read before all matching rows of the index are fetched. If most entries
    /// match, these few already fill a page.
    const TRIED: usize;
    /// Number of those that are read together.
    const TRIED_TOGETHER: usize;
    /// Number of matching rows in the index above which they are tried: 0 if that is always cheaper than to fetch rows.
    const TRIED_FROM: usize;

    /// True if a page and its count are found in one pass. A stop of such a pass must leave the index usable: an index
    /// whose statements are cancelled from outside may lose the page.
    const COUNTS_WITH_PAGE: bool;

    /// The book of this name.
    fn book_row(&self, name: &str) -> Result<Arc<BookRow>>;
    /// All books, by name.
    fn book_rows(&self) -> Result<Vec<BookRow>>;
    /// The vocabulary, for one query.
    fn vocabulary(&self) -> impl Vocabulary<Error = StoreError>;
    /// The number of an attribute's folded name.
    fn number(&self, folded: &str) -> Result<Option<u32>>;
    /// Reads entries of a book, with their texts on request, in the order of the rows. Missing entries are left out.
    fn load(&self, book_row: &BookRow, rows: &[i64], text: bool) -> Result<Vec<(i64, Entry)>>;
    /// Calls back for each of these entries of a book, in the order of the rows. Missing entries are left out, and the
    /// text is empty if it is not requested.
    fn each_entry(&self, book_row: &BookRow, rows: &[i64], text: bool, act: EachEntry<'_>) -> std::result::Result<(), SearchEnd>;
    /// Calls back for each row of a book between two that the index finds, in order.
    fn each_row(
        &self,
        book_row: &BookRow,
        want: &Want,
        rows: (i64, i64),
        descending: bool,
        stop: &Stop,
        act: EachRow<'_>,
    ) -> std::result::Result<(), SearchEnd>;
    /// Returns the number of entries between two rows of a book.
    fn count_rows(&self, rows: (i64, i64)) -> Result<u64>;
    /// Calls back for each entry of a book in an order, from a position on. Entries of that position may be repeated.
    fn along(
        &self,
        book_row: &BookRow,
        order: Along,
        after: Option<&OrderKey>,
        descending: bool,
        act: EachKey<'_>,
    ) -> std::result::Result<(), SearchEnd>;
    /// Returns the number of entries of a book after a position in an order. The position may be that of an entry of
    /// another book.
    fn count_along(&self, book_row: &BookRow, order: Along, after: &OrderKey, descending: bool) -> Result<u64>;
    /// Returns the row of an entry and, if a thread begins with it, the row of the thread's newest entry.
    fn row_of(&self, book_row: &BookRow, id: u32) -> Result<Option<(i64, Option<i64>)>>;
    /// Returns the last row of a book's entries that are *late* (`book_row.rs`) and were written before a time.
    fn last_late(&self, book_row: &BookRow, before: Time) -> Result<Option<i64>>;
    /// Returns the known verdicts on a book's entries for a part of a query, named by a text.
    fn verdicts(&self, book_row: &BookRow, part: &str) -> Arc<Verdicts>;
    /// Returns a result of a search in this snapshot, if it is remembered.
    fn remembered(&self, key: &str) -> Option<Remembered>;
    /// Remembers a result of a search in this snapshot.
    fn remember(&self, key: String, result: Remembered);
    /// Returns whether the error says that a statement was cancelled from outside. Then the index can be used again.
    fn is_interrupted(&self, error: &StoreError) -> bool;
}

/// The tables, in a transaction that writes.
pub trait Tables {
    /// Returns the book of this name, locked until the transaction ends.
    fn book_row(&mut self, name: &str) -> Result<BookRow>;
    /// Returns the rows of two books.
    fn two_book_rows(&mut self, one: &str, other: &str) -> Result<(BookRow, BookRow)>;
    /// Makes a book.
    fn new_book(&mut self, book: &Book) -> Result<()>;
    /// Updates a book.
    fn set_book(&mut self, num: i64, book: &Book) -> Result<()>;
    /// Returns the number of the last change of a book's configuration; 0 if there is none.
    fn last_book_change(&mut self, num: i64) -> Result<u32>;
    /// Keeps a change of a book's configuration, and drops the one that is [`MAX_CHANGES`](crate::book::change::MAX_CHANGES) older.
    fn keep_book_change(&mut self, num: i64, change: &BookChange) -> Result<()>;
    /// Writes the order of an attribute for all entries of a book, or takes it away.
    fn reorder(&mut self, book_row: &BookRow, name: &str, kind: Option<AttributeKind>) -> Result<()>;
    /// Raises the next id of a book to at least this one.
    fn set_next_id(&mut self, num: i64, next: u32) -> Result<()>;
    /// Changes the number of entries of a book.
    fn count(&mut self, num: i64, change: i64) -> Result<()>;
    /// The row of an entry.
    fn row_of(&mut self, num: i64, id: u32) -> Result<Option<i64>>;
    /// Returns the last used row between two.
    fn last_row(&mut self, first: i64, last: i64) -> Result<Option<i64>>;
    /// The attachments of the entries between two rows.
    fn files_between(&mut self, first: i64, last: i64) -> Result<Vec<Attachment>>;
    /// Returns the tombstone of an entry that was deleted or moved.
    fn tombstone(&mut self, book_row: &BookRow, id: u32) -> Result<Option<Tombstone>>;
    /// Reads an entry with its text.
    fn load(&mut self, book_row: &BookRow, row: i64) -> Result<Option<Entry>>;
    /// Writes an entry's row, text and index. The row is free.
    fn put(&mut self, book_row: &BookRow, row: i64, entry: &Entry) -> Result<()>;
    /// Removes an entry's row, text and index.
    fn take(&mut self, book_row: &BookRow, row: i64, entry: &Entry) -> Result<()>;
    /// Returns the replies to an entry, by date.
    fn children(&mut self, num: i64, id: u32) -> Result<Vec<u32>>;
    /// Appends a line to an entry's history.
    fn revise(&mut self, book_row: &BookRow, id: u32, number: u32, at: Time, by: &str, what: Change) -> Result<()>;
    /// Writes an entry's content into the line of its revision; returns whether there is such a line.
    fn keep(&mut self, book_row: &BookRow, entry: &Entry) -> Result<bool>;
    /// Moves the history of an entry to another entry.
    fn carry(&mut self, from: (i64, u32), to: (i64, u32)) -> Result<()>;
    /// Writes a tombstone for an entry and drops its lock.
    fn bury(&mut self, num: i64, id: u32, by: &str, to: Option<(i64, u32)>) -> Result<()>;
    /// Returns the lock of an entry at this time.
    fn lock_of(&mut self, num: i64, id: u32, at: Time) -> Result<Option<Lock>>;
    /// Moves the blobs of an entry to their final places, and checks that all its blobs exist.
    fn place(&mut self, content: &Content, uploads: &mut [Upload]) -> Result<()>;
    /// Returns the digest with which an entry was imported, and its revision at that time. For a draft, the revision is
    /// its negated number.
    fn imported_as(&mut self, num: i64, id: u32) -> Result<Option<(Vec<u8>, i64)>>;
    /// Records the import of an entry or a draft.
    fn set_imported(&mut self, num: i64, id: u32, digest: &[u8; 16], revision: i64) -> Result<()>;
    /// Removes an entry's tombstone, so that the entry can be written again. Its history stays; revisions from the time
    /// of its absence have no content. Returns the revision that it begins with.
    fn lift_tombstone(&mut self, num: i64, id: u32) -> Result<u32>;
    /// Writes an imported draft with a mark, which is removed when its owner saves it. It is a new draft, or replaces
    /// the one with this number if that still has the mark. Returns the outcome and the number.
    fn take_draft(&mut self, draft: &Draft, number: Option<i64>) -> Result<(ImportOutcome, i64)>;
    /// Deletes a draft that has the mark.
    fn drop_taken_draft(&mut self, number: i64) -> Result<()>;

    /// Returns the row of an entry, or the error that says where it went.
    fn find(&mut self, book_row: &BookRow, id: u32) -> Result<i64> {
        if let Some(row) = self.row_of(book_row.num, id)? {
            return Ok(row);
        }
        match self.tombstone(book_row, id)? {
            Some(tombstone) => Err(StoreError::Gone(Box::new(tombstone))),
            None => Err(StoreError::NoEntry(EntryRef::new(&book_row.book.name, id))),
        }
    }

    /// Returns a free row for an entry of this date.
    fn free_row(&mut self, num: i64, date: Time) -> Result<i64> {
        let mut first = first_row(num, date);
        loop {
            let end = last_of_second(first);
            match self.last_row(first, end)? {
                None => return Ok(first),
                Some(row) if row < end => return Ok(row + 1),
                Some(_) => first = end + 1,
            }
        }
    }

    /// Stores the current content in the line of its revision, before the content changes.
    fn remember(&mut self, book_row: &BookRow, entry: &Entry) -> Result<()> {
        let done = self.keep(book_row, entry)?;
        if done { Ok(()) } else { Err(damaged(&entry.at.book, entry.at.id, "its history has no last line")) }
    }
}
