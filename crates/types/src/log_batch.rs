//! Many log records in one sample of the bus: type id 2, [`VERSION`] 1, the encoding of `spec/log.idl`.
//!
//! Records of one process repeat nearly everything but time, number and text, so a batch holds each repeated value
//! once. One table holds strings; another holds *origins*, the sets of strings that belong to one place of the code. A
//! record refers to its origin by number. Rejected: compression of the whole batch on the live path, which costs more
//! than the log call itself. The tables give most of its gain for nothing, because a writer that keeps its [`OriginId`]
//! pays four bytes a record.
//!
//! Writing allocates nothing per record once its origin is known ([`LogBatchBuilder`]). Reading borrows:
//! [`LogBatchView`] decodes the tables once and gives [`RecordView`]s whose texts lie in the batch. [`LogRecord`]s are
//! made only for callers that keep them.
//!
//! ```
//! use tampu_types::{LogRecord, Level, log_batch::{LogBatchView, OriginParts, LogBatchBuilder, RecordParts}};
//!
//! let mut batch = LogBatchBuilder::new();
//! let origin = batch.origin(&OriginParts { logger: "mount", file: "Mount.cpp", line: Some(52), ..OriginParts::default() });
//! let record = RecordParts { number: 1, level: Level::Warning, message: "cable wrap at limit", ..RecordParts::default() };
//! batch.push(origin, &record, [("angle", "269.9")])?;
//! let bytes = batch.finish();
//!
//! let view = LogBatchView::parse(&bytes)?;
//! for record in view.records() {
//!     let record = record?;
//!     assert_eq!((record.origin().logger(), record.message()), ("mount", "cable wrap at limit"));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::{cdr::BadCdr, record::LogRecord};

mod builder;
mod intern;
mod joined;
mod parts;
mod sequence;
mod view;

pub use builder::{LARGEST, LogBatchBuilder, OriginId, PushError};
pub use joined::JoinedBatch;
pub use parts::{OriginParts, RecordParts};
pub use sequence::BatchSequence;
pub use view::{ArchiveView, Data, LogBatchView, OriginView, RecordView, Records};

/// The type id of a LogBatch in a batch header.
pub const TYPE_ID: u32 = 2;

/// The type version of this release.
pub const VERSION: u16 = 1;

/// Encodes these records as one batch. A record beyond [`LARGEST`] is refused with its position in `records`.
pub fn encode_records(records: &[LogRecord]) -> Result<Vec<u8>, PushError> {
    let mut builder = LogBatchBuilder::new();
    for record in records {
        builder.push_record(record)?;
    }
    Ok(builder.finish())
}

/// Decodes all records of one batch; the first bad one ends it with an error.
///
/// Shared texts are copied into each record, so records can take far more memory than their batch. A batch that would
/// take more than 64 MiB and 64 times its length is an error; [`LogBatchView`] reads it without copies.
pub fn decode_records(bytes: &[u8]) -> Result<Vec<LogRecord>, BadCdr> {
    let view = LogBatchView::parse(bytes)?;
    let mut left = (64 << 20) + bytes.len().saturating_mul(64);
    let mut records = Vec::new();
    for record in view.records() {
        let record = record?;
        let too_much = BadCdr { at: 0, what: "the records take more than 64 times the batch" };
        left = left.checked_sub(record.expanded_len()).ok_or(too_much)?;
        records.push(record.to_record());
    }
    Ok(records)
}

#[cfg(test)]
mod tests;
