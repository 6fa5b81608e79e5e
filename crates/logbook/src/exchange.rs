//! Ways between this logbook and others: archives of the ELN consortium, and exports of other logbooks.
//!
//! | format | module | direction |
//! |-|-|-|
//! | `.eln`, a zipped RO-Crate, also of SciLog and eLabFTW | [`eln`] | both |
//! | Olog's JSON | [`olog`] | in |
//! | SciLog's JSON | [`scilog`] | in |
//! | eLabFTW's JSON and CSV | [`elabftw`] | in |
//!
//! A source gives its entries as [`ForeignEntry`] values, twice and in any order. [`import_foreign`] chooses numbers and
//! threads in the first pass, and stores the entries in the second. The key of an entry stays the same in every export,
//! so the same file again changes nothing. Rejected: posting the entries, because that loses dates and authors, and
//! makes every entry again at the next import.

pub mod csv_table;
pub mod date;
pub mod elabftw;
pub mod eln;
pub mod foreign;
pub mod import;
pub mod json_items;
pub mod olog;
pub mod scilog;

pub use foreign::{ForeignEntry, ForeignFile, ForeignSource, SourceError, SourceFault};
pub use import::{ForeignReport, import_foreign};
