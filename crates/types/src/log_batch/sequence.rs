//! Reading batches that follow each other.

use super::view::LogBatchView;
use crate::cdr::BadCdr;

/// Reads batches that follow each other. Batches of one writer that hold a record each mostly have equal tables, which are
/// decoded once.
#[derive(Debug, Default)]
pub struct BatchSequence<'a> {
    last: Option<LogBatchView<'a>>,
    decoded: u64,
}

impl<'a> BatchSequence<'a> {
    /// Reads the next batch, as [`LogBatchView::parse`] does.
    pub fn parse(&mut self, bytes: &'a [u8]) -> Result<&LogBatchView<'a>, BadCdr> {
        let (records, count, batch) = LogBatchView::records_of(bytes)?;
        let view = match self.last.take() {
            Some(last) if last.tables() == batch.rest() => last.with_records(records, count),
            _ => {
                self.decoded += 1;
                LogBatchView::with_tables(records, count, batch)?
            }
        };
        Ok(self.last.insert(view))
    }

    /// Number of batches whose tables were decoded.
    pub fn decoded(&self) -> u64 {
        self.decoded
    }
}
