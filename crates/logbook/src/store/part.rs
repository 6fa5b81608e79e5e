//! Pages of threads and histories.
//!
//! A thread may have tens of thousands of entries, and an entry any number of revisions of 16 MiB. Nothing loads them whole: a page ends
//! with the entry or revision that reaches [`PAGE_BYTES`], and says where the next page begins.

use crate::{
    entry::{Entry, Revision},
    search::MAX_PAGE,
};

/// Bytes of the contents of a page. The page has one entry or revision at least.
pub const PAGE_BYTES: usize = 4 << 20;

/// The part of a thread or a history that a page has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PagePart {
    /// The `next` of the page before; `None` for the first page.
    pub after: Option<i64>,
    /// Entries or revisions of the page, at most [`MAX_PAGE`].
    pub limit: usize,
}

impl Default for PagePart {
    fn default() -> PagePart {
        PagePart { after: None, limit: MAX_PAGE }
    }
}

/// A page of a thread, by date.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadPage {
    /// The entries of the page.
    pub entries: Vec<Entry>,
    /// The place after which the next page begins; `None` at the end.
    pub next: Option<i64>,
}

/// A page of a history, the oldest revision first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HistoryPage {
    /// The revisions of the page.
    pub revisions: Vec<Revision>,
    /// The number after which the next page begins; `None` at the end.
    pub next: Option<i64>,
}

/// The room that is left in a page while it is filled.
#[derive(Debug)]
pub(crate) struct Room {
    rows: usize,
    bytes: usize,
}

impl Room {
    /// The room of an empty page.
    pub fn new(part: PagePart) -> Room {
        Room { rows: part.limit.clamp(1, MAX_PAGE), bytes: PAGE_BYTES }
    }

    /// Returns true if the page ends before a further row.
    pub fn is_full(&self) -> bool {
        self.rows == 0 || self.bytes == 0
    }

    /// Takes the room of a row.
    pub fn take(&mut self, bytes: usize) {
        self.rows -= 1;
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}
