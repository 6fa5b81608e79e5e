//! Quotas: the bytes of files that the site, a book and a user may have.
//!
//! A file counts for the user who brought it and for the book of its entry, also after the entry is deleted, because the
//! history keeps it. A file that several entries have counts for each. Triggers of the database keep the sums, so that
//! no way of writing forgets them. Imports have no quota: they bring what a site has already.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of files that there may be; 0 for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Quota {
    /// Bytes of all books.
    pub site: u64,
    /// Bytes of one book.
    pub book: u64,
    /// Bytes of one user in all books.
    pub user: u64,
}

/// The files of a user in a book.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsedSpace {
    /// The book's name.
    pub book: String,
    /// The user who brought the files.
    pub by: String,
    /// The number of files.
    pub files: u64,
    /// The bytes of these files.
    pub bytes: u64,
}

/// The owner of a quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuotaOf {
    /// All books together.
    Site,
    /// A book, by its name.
    Book(String),
    /// A user, by the login.
    User(String),
}

/// A rejected change: its files do not fit a quota.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the files of {of} may take {} in all, and take {}; {} more do not fit. 'tampu book purge' frees space, or an administrator raises \
     '{}' of [book]", bytes(*.limit), bytes(*.used), bytes(*.more), .of.setting()
)]
pub struct OverQuota {
    pub of: QuotaOf,
    /// The limit in bytes.
    pub limit: u64,
    /// The bytes that are used.
    pub used: u64,
    /// The bytes of the change.
    pub more: u64,
}

impl fmt::Display for QuotaOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QuotaOf::Site => f.write_str("all logbooks"),
            QuotaOf::Book(name) => write!(f, "the logbook '{name}'"),
            QuotaOf::User(login) => write!(f, "the user '{login}'"),
        }
    }
}

impl QuotaOf {
    fn setting(&self) -> &'static str {
        match self {
            QuotaOf::Site => "site_gb",
            QuotaOf::Book(_) => "book_gb",
            QuotaOf::User(_) => "user_gb",
        }
    }
}

/// Writes a size for people.
fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{bytes} B"),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        bytes => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// Bytes that are used, of all books, of one book and of one user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    pub site: u64,
    pub book: u64,
    pub user: u64,
}

impl Used {
    /// Adds up rows for a book and a user.
    pub fn of(rows: &[UsedSpace], book: Option<&str>, by: &str) -> Used {
        let sum = |such: &dyn Fn(&UsedSpace) -> bool| rows.iter().filter(|row| such(row)).map(|row| row.bytes).sum();
        Used { site: sum(&|_| true), book: sum(&|row| Some(&*row.book) == book), user: sum(&|row| row.by == by) }
    }
}

impl Quota {
    /// Checks that more bytes of a user in a book fit.
    pub fn check(&self, used: Used, more: u64, book: &str, by: &str) -> std::result::Result<(), OverQuota> {
        let of = [
            (QuotaOf::User(by.to_owned()), self.user, used.user),
            (QuotaOf::Book(book.to_owned()), self.book, used.book),
            (QuotaOf::Site, self.site, used.site),
        ];
        for (of, limit, used) in of {
            if limit > 0 && used.saturating_add(more) > limit {
                return Err(OverQuota { of, limit, used, more });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_quota_and_the_way_out() {
        let quota = Quota { site: 0, book: 10_000_000, user: 4_000_000 };
        let used = Used { site: 90_000_000, book: 9_000_000, user: 3_500_000 };
        assert_eq!(quota.check(used, 400_000, "Shift", "zoe"), Ok(()));
        let text = |more: u64, used: Used| quota.check(used, more, "Shift", "zoe").unwrap_err().to_string();
        for part in ["the user 'zoe' may take 4.0 MB", "take 3.5 MB", "600000 B more", "book purge", "'user_gb'"] {
            assert!(text(600_000, used).contains(part), "{}", text(600_000, used));
        }
        assert!(text(2_000_000, Used { user: 0, ..used }).contains("the logbook 'Shift' may take 10.0 MB"));
    }
}
