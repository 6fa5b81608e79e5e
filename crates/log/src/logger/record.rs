//! Whole records in a ring, without a statement: records made by hand, of error chains, and of calls for whose
//! statement there is no room in the dictionary.
//!
//! ```text
//!  0  u32 flags     1: it does not leave its process; 2: it is for attached readers alone
//!  4  u32 0
//!  8  a log batch of this record alone, without its id: that is its place in the ring
//! ```
//! Decision: the whole record, in the layout of the wire. Rejected: a dictionary entry for the common parts of such
//! records. An error chain has a name of its own, and a dictionary only grows.

use tampu_types::{
    LogRecord,
    log_batch::{LogBatchView, PushError, encode_records},
};

// The fuzz target includes this file alone, and resolves this path to its own module.
use super::stream::Reach;

/// First ring number that is not a ring in memory: whole records outside the rings have numbers of their own.
pub(crate) const RECORD_RINGS: u32 = 1 << 31;

const HEAD: usize = 8;
const LOCAL: u32 = 1;
const ATTACHED: u32 = 2;

/// The payload of a record.
pub(crate) fn encode(record: &LogRecord, reach: Reach) -> Result<Vec<u8>, PushError> {
    let flags = match reach {
        Reach::Central => 0,
        Reach::Local => LOCAL,
        Reach::Attached => ATTACHED,
    };
    let mut bytes = Vec::with_capacity(HEAD + record.message.len() + 256);
    bytes.extend(flags.to_le_bytes());
    bytes.extend(0u32.to_le_bytes());
    bytes.extend(encode_records(std::slice::from_ref(record))?);
    Ok(bytes)
}

/// Decodes the record of a payload; `None` if it is invalid. Flags of a later release are ignored.
pub(crate) fn decode(payload: &[u8]) -> Option<(LogRecord, Reach)> {
    /// Largest decoded record: shared texts can expand far beyond the received bytes.
    const LARGEST: usize = 64 << 20;
    let (head, batch) = payload.split_first_chunk::<HEAD>()?;
    let flags = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    let view = LogBatchView::parse(batch).ok()?;
    let record = view.records().next()?.ok().filter(|record| record.expanded_len() <= LARGEST)?;
    let reach = match flags {
        _ if flags & LOCAL != 0 => Reach::Local,
        _ if flags & ATTACHED != 0 => Reach::Attached,
        _ => Reach::Central,
    };
    Some((record.to_record(), reach))
}

#[cfg(test)]
mod tests {
    use tampu_types::Level;

    use super::*;

    #[test]
    fn what_was_written_is_read_and_damage_is_nothing() {
        let mut record = LogRecord::new(Level::Error, "no data");
        record.stack_id = "chain-1".into();
        for reach in [Reach::Central, Reach::Local, Reach::Attached] {
            let bytes = encode(&record, reach).unwrap();
            assert_eq!(decode(&bytes), Some((record.clone(), reach)));
            // A ring adds no padding, but truncated or changed bytes must be rejected.
            for length in 0..bytes.len() {
                let _ = decode(&bytes[..length]);
            }
            assert_eq!(decode(&bytes[..HEAD + 3]), None);
        }
    }
}
