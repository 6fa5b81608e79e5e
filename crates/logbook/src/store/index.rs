//! What the search (`page.rs`, `stream.rs`) asks of a database, and what writing (`write.rs`, `import.rs`) does with its tables. So what
//! a search or a post is stands once, and a store is what its database is told.

use tampu_types::Time;

use super::{
    Result, StoreError,
    shelf::{Place, Shelf, damaged, first_row, last_of_second},
    stream::End,
};
use crate::{
    attachment::{Attachment, Upload},
    book::{AttributeKind, Book},
    entry::{Change, Content, Draft, Entry, EntryRef, Lock, Tombstone},
    query::candidates::{Vocabulary, Want},
    search::Stop,
    store::ImportOutcome,
};

/// What is done with each row; `false` ends it.
pub type EachRow<'a> = &'a mut dyn FnMut(i64) -> std::result::Result<bool, End>;
/// What is done with each place; `false` ends it.
pub type EachPlace<'a> = &'a mut dyn FnMut(Place) -> std::result::Result<bool, End>;

/// An order other than by date.
#[derive(Debug, Clone, Copy)]
pub enum Along {
    /// By id.
    Id,
    /// By the keys of the attribute of this number.
    Key(u32),
}

/// A snapshot of a database, as a search needs it.
pub trait Index {
    /// Entries that are read at the same time, at most: 1 where reading one costs no question to a server.
    const TOGETHER: usize;
    /// Rows of the index that are held at once for another order than by date.
    const HELD: usize;
    /// Entries along an order that are looked at before the index is asked which there are: of what most entries are, a page is among them.
    const TRIED: usize;

    /// The book of this name.
    fn shelf(&self, name: &str) -> Result<Shelf>;
    /// All books, by name.
    fn shelves(&self) -> Result<Vec<Shelf>>;
    /// The vocabulary, for one query.
    fn vocabulary(&self) -> impl Vocabulary<Error = StoreError>;
    /// The number of an attribute's folded name.
    fn number(&self, folded: &str) -> Result<Option<u32>>;
    /// Reads entries of a book, with their texts where those are wanted. In the order of the rows; one that is not there is left out.
    fn load(&self, shelf: &Shelf, rows: &[i64], text: bool) -> Result<Vec<(i64, Entry)>>;
    /// Each row of a book between two that the index finds, in order.
    fn each_row(
        &self,
        shelf: &Shelf,
        want: &Want,
        rows: (i64, i64),
        descending: bool,
        stop: &Stop,
        act: EachRow<'_>,
    ) -> std::result::Result<(), End>;
    /// How many entries stand between two rows of a book.
    fn count_rows(&self, rows: (i64, i64)) -> Result<u64>;
    /// Each entry of a book in an order, from a place on; those of that place may come again.
    fn along(
        &self,
        shelf: &Shelf,
        order: Along,
        after: Option<&Place>,
        descending: bool,
        act: EachPlace<'_>,
    ) -> std::result::Result<(), End>;
    /// The last row of a book's entries that are *late* (`shelf.rs`) and were written before a time.
    fn last_late(&self, shelf: &Shelf, before: Time) -> Result<Option<i64>>;
    /// Whether this says that a statement was ended from outside; if so the index can be asked again.
    fn is_interrupted(&self, error: &StoreError) -> bool;
}

/// The tables, in a transaction that writes.
pub trait Tables {
    /// The book of this name, which nobody else changes until the transaction ends.
    fn shelf(&mut self, name: &str) -> Result<Shelf>;
    /// Two books, likewise.
    fn two_shelves(&mut self, one: &str, other: &str) -> Result<(Shelf, Shelf)>;
    /// Makes a book.
    fn new_book(&mut self, book: &Book) -> Result<()>;
    /// A book is so from now on.
    fn set_book(&mut self, num: i64, book: &Book) -> Result<()>;
    /// Writes the order of an attribute for all entries of a book, or takes it away.
    fn reorder(&mut self, shelf: &Shelf, name: &str, kind: Option<AttributeKind>) -> Result<()>;
    /// The next id of a book is at least this.
    fn set_next_id(&mut self, num: i64, next: u32) -> Result<()>;
    /// A book has so many entries more.
    fn count(&mut self, num: i64, change: i64) -> Result<()>;
    /// The row of an entry.
    fn row_of(&mut self, num: i64, id: u32) -> Result<Option<i64>>;
    /// The last row between two that somebody has.
    fn last_row(&mut self, first: i64, last: i64) -> Result<Option<i64>>;
    /// The attachments of the entries between two rows.
    fn files_between(&mut self, first: i64, last: i64) -> Result<Vec<Attachment>>;
    /// What is left of an entry that went.
    fn tombstone(&mut self, shelf: &Shelf, id: u32) -> Result<Option<Tombstone>>;
    /// Reads an entry with its text.
    fn load(&mut self, shelf: &Shelf, row: i64) -> Result<Option<Entry>>;
    /// Writes an entry's row, text and index. The row is free.
    fn put(&mut self, shelf: &Shelf, row: i64, entry: &Entry) -> Result<()>;
    /// Takes an entry's row, text and index away.
    fn take(&mut self, shelf: &Shelf, row: i64, entry: &Entry) -> Result<()>;
    /// The entries that answer one, by date.
    fn children(&mut self, num: i64, id: u32) -> Result<Vec<u32>>;
    /// One more line of an entry's history.
    fn revise(&mut self, shelf: &Shelf, id: u32, number: u32, at: Time, by: &str, what: Change) -> Result<()>;
    /// Keeps what an entry says in the line of its revision; whether there is one.
    fn keep(&mut self, shelf: &Shelf, entry: &Entry) -> Result<bool>;
    /// An entry's history is another's from now on.
    fn carry(&mut self, from: (i64, u32), to: (i64, u32)) -> Result<()>;
    /// A tombstone for an entry, whose lock goes.
    fn bury(&mut self, num: i64, id: u32, by: &str, to: Option<(i64, u32)>) -> Result<()>;
    /// Who has locked an entry at this time.
    fn lock_of(&mut self, num: i64, id: u32, at: Time) -> Result<Option<Lock>>;
    /// Gives the blobs of an entry their places, and sees that it has no others than those that are there.
    fn place(&mut self, content: &Content, uploads: &mut [Upload]) -> Result<()>;
    /// The digest an entry was imported with, and the revision it had then; of a draft its number, below zero.
    fn imported_as(&mut self, num: i64, id: u32) -> Result<Option<(Vec<u8>, i64)>>;
    /// An entry was imported so, or a draft.
    fn set_imported(&mut self, num: i64, id: u32, digest: &[u8; 16], revision: i64) -> Result<()>;
    /// An entry is to be there again: its tombstone goes, its history stays, and what it said while it was gone is nothing. Returns the
    /// revision it begins with.
    fn lift_tombstone(&mut self, num: i64, id: u32) -> Result<u32>;
    /// A draft that is imported, with a mark that goes when somebody saves it: a new one, or in place of the one of this number, if that has
    /// the mark. What became of it, and its number.
    fn take_draft(&mut self, draft: &Draft, number: Option<i64>) -> Result<(ImportOutcome, i64)>;
    /// Throws a draft away that has the mark.
    fn drop_taken_draft(&mut self, number: i64) -> Result<()>;

    /// The row of an entry, or why there is none.
    fn find(&mut self, shelf: &Shelf, id: u32) -> Result<i64> {
        if let Some(row) = self.row_of(shelf.num, id)? {
            return Ok(row);
        }
        match self.tombstone(shelf, id)? {
            Some(tombstone) => Err(StoreError::Gone(Box::new(tombstone))),
            None => Err(StoreError::NoEntry(EntryRef::new(&shelf.book.name, id))),
        }
    }

    /// A row that nobody has, for an entry of this date.
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

    /// What the entry says now is kept in the line of its revision, because it is about to say something else.
    fn remember(&mut self, shelf: &Shelf, entry: &Entry) -> Result<()> {
        let done = self.keep(shelf, entry)?;
        if done { Ok(()) } else { Err(damaged(&entry.at.book, entry.at.id, "its history has no last line")) }
    }
}
