//! Stores of logbooks: [`sqlite::SqliteStore`], which is built in, and [`postgres::PostgresStore`].
//!
//! A store is a set of small traits, and a caller names those that it needs. [`Logbook`] has the operations of a user;
//! the HTTP client implements it as well. [`Store`] adds the operations that need the data themselves: transactions
//! over several entries, records, the journal of changes, imports and maintenance. Rejected: one trait whose client
//! returns "not supported" for half of its methods.
//!
//! The conformance suite in `tests/conformance.rs` is generic over the store and holds both to the same behaviour.

use std::time::{SystemTime, UNIX_EPOCH};

use tampu_types::Time;

pub use error::StoreError;
pub use looks::{EntryLooks, LookCount, Looks, LooksOnDay};
pub use model::{
    BookInfo, CHANGES_KEPT, EntryChange, EntryEdit, ImportOutcome, Imported, MAX_ATTACHMENT, Progress, Record, Result,
};
pub use page::PageStart;
pub use part::{HistoryPage, PAGE_BYTES, PagePart, ThreadPage};
pub use report::{Reports, StoreReport};
pub use signing::{ChainRecord, is_locked};
pub use traits::{
    Attachments, Changes, Drafts, Entries, Imports, Logbook, Maintenance, PeopleStore, Records, Signatures, Store, Templates,
    Transactions,
};

use model::MAX_DRAFTS;

mod book_changes;
mod book_row;
mod error;
mod import;
mod index;
mod looks;
mod memory;
mod model;
pub mod naming;
mod page;
pub mod pages;
mod part;
mod pool;
pub mod postgres;
pub mod purge;
pub mod quota;
mod quota_tables;
mod rank;
pub mod report;
mod sign_entry;
mod signing;
pub mod sqlite;
mod stream;
mod tally;
mod templates;
mod traits;
mod verdicts;
mod write;

/// The current time.
pub fn now() -> Time {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_unix(since_1970.as_secs() as i64, since_1970.subsec_nanos())
}
