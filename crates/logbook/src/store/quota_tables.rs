//! The quotas of a writer, in terms of tables.

use super::{
    Result, StoreError,
    book_row::BookRow,
    quota::{Quota, Used},
    signing::SigningTables,
};
use crate::entry::Content;

impl<T: QuotaTables> KeepQuota for T {}

/// The operations that quotas need, beside those of a writer.
pub trait QuotaTables: SigningTables {
    /// Returns the quota of the store.
    fn quota(&self) -> Quota;
    /// Returns the bytes that are used.
    fn used(&mut self, num: i64, by: &str) -> Result<Used>;
    /// Counts the files of an entry that it did not have for a user.
    fn charge(&mut self, num: i64, id: u32, content: &Content, by: &str) -> Result<()>;
}

/// Quotas, in terms of tables.
pub trait KeepQuota: QuotaTables {
    /// Counts the new files of an entry for a user, and checks that they fit.
    fn charge_within_quota(&mut self, book_row: &BookRow, id: u32, content: &Content, by: &str) -> Result<()> {
        if content.attachments.is_empty() {
            return Ok(());
        }
        let before = self.used(book_row.num, by)?;
        self.charge(book_row.num, id, content, by)?;
        let after = self.used(book_row.num, by)?;
        let more = after.site.saturating_sub(before.site);
        // A change without a new file is possible although the quota is exceeded.
        if more == 0 {
            return Ok(());
        }
        let over = |over| StoreError::OverQuota(Box::new(over));
        self.quota().check(before, more, &book_row.book.name, by).map_err(over)
    }
}
