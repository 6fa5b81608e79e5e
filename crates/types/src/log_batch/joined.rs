//! Batches of one writer as one batch: their tables are equal, so their records can follow each other as they are.

use super::view::LogBatchView;
use crate::cdr::{self, encode};

/// Consecutive batches with equal tables, which are written as one batch.
#[derive(Debug, Clone)]
pub struct JoinedBatch<'a> {
    /// Encoded records of each batch.
    records: Vec<&'a [u8]>,
    count: u32,
    tables: &'a [u8],
    length: usize,
}

/// Encapsulation header, the batch's DHEADER, the records' DHEADER and count.
const HEAD: usize = 16;

impl<'a> JoinedBatch<'a> {
    /// Begins with this batch. Returns `None` if it has content that is not understood: members of a later release may be
    /// about the batch as a whole.
    pub fn begin(view: &LogBatchView<'a>) -> Option<JoinedBatch<'a>> {
        let records = view.encoded_records()?;
        let (count, tables) = (view.count() as u32, view.tables());
        let length = HEAD + records.len().next_multiple_of(4) + tables.len();
        view.unknown().is_empty().then(|| JoinedBatch { records: vec![records], count, tables, length })
    }

    /// Adds a batch; returns false if it cannot be joined with those before.
    pub fn add(&mut self, view: &LogBatchView<'a>) -> bool {
        let Some(records) = view.encoded_records().filter(|_| view.tables() == self.tables) else { return false };
        let Some(count) = self.count.checked_add(view.count() as u32) else { return false };
        self.length += records.len().next_multiple_of(4);
        self.count = count;
        self.records.push(records);
        true
    }

    /// Length of the batch that is written, in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Appends the batch. It has to begin at a multiple of 4.
    pub fn put(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&cdr::ENCAPSULATION);
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&self.count.to_le_bytes());
        for records in &self.records {
            encode::align(out);
            out.extend_from_slice(records);
        }
        encode::end(out, start + 12);
        encode::align(out);
        out.extend_from_slice(self.tables);
        encode::end(out, start + 8);
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::{
        Level, arbitrary,
        log_batch::{decode_records, encode_records},
        record::LogRecord,
    };

    proptest! {
        #[test]
        fn joined_batches_hold_the_records_of_all(
            templates in vec(arbitrary::record(), 2), messages in vec(("[a-z]{0,9}", 0u8..8, 1usize..3), 1..9),
        ) {
            let of = |(message, which, count): &(String, u8, usize)| {
                let template = templates[usize::from(*which == 0)].clone();
                vec![LogRecord { message: message.clone(), ..template }; *count]
            };
            let batches: Vec<Vec<LogRecord>> = messages.iter().map(of).collect();
            let encoded: Vec<Vec<u8>> = batches.iter().map(|records| encode_records(records).unwrap()).collect();
            let views: Vec<LogBatchView<'_>> = encoded.iter().map(|bytes| LogBatchView::parse(bytes).unwrap()).collect();
            let mut joined: Vec<JoinedBatch<'_>> = Vec::new();
            for view in &views {
                if !joined.last_mut().is_some_and(|last| last.add(view)) {
                    joined.push(JoinedBatch::begin(view).unwrap());
                }
            }
            let mut out = vec![9; 12];
            let mut found = Vec::new();
            for batch in &joined {
                let start = out.len();
                batch.put(&mut out);
                prop_assert_eq!(out.len() - start, batch.length());
                found.extend(decode_records(&out[start..]).unwrap());
                encode::align(&mut out);
            }
            prop_assert_eq!(found, batches.concat());
        }
    }

    #[test]
    fn batches_of_one_place_become_one_and_each_joined_one_reads_as_if_encoded_so() {
        let records: Vec<LogRecord> = (0..20).map(|length| LogRecord::new(Level::Info, "x".repeat(length))).collect();
        let encoded: Vec<Vec<u8>> = records.iter().map(|record| encode_records(std::slice::from_ref(record)).unwrap()).collect();
        let views: Vec<LogBatchView<'_>> = encoded.iter().map(|bytes| LogBatchView::parse(bytes).unwrap()).collect();
        let mut joined = JoinedBatch::begin(&views[0]).unwrap();
        assert!(views[1..].iter().all(|view| joined.add(view)));
        let mut out = Vec::new();
        joined.put(&mut out);
        assert_eq!(out, encode_records(&records).unwrap());
    }

    #[test]
    fn what_is_not_understood_is_not_joined() {
        let plain = encode_records(&[LogRecord::new(Level::Info, "one")]).unwrap();
        let mut later = plain.clone();
        // A member behind the tables, as a later release may add one.
        later.extend_from_slice(&[1, 2, 3, 4]);
        let length = (later.len() - 8) as u32;
        later[4..8].copy_from_slice(&length.to_le_bytes());
        let (plain, later) = (LogBatchView::parse(&plain).unwrap(), LogBatchView::parse(&later).unwrap());
        assert_eq!(later.unknown(), [1, 2, 3, 4]);
        assert!(JoinedBatch::begin(&later).is_none() && !JoinedBatch::begin(&plain).unwrap().add(&later));
    }

    #[test]
    fn bytes_behind_the_last_record_are_not_joined() {
        // One record fewer than there are.
        let two = ["one", "two"].map(|text| LogRecord::new(Level::Info, text));
        let mut bytes = encode_records(&two).unwrap();
        bytes[12] = 1;
        let view = LogBatchView::parse(&bytes).unwrap();
        assert_eq!(view.records().filter(Result::is_ok).count(), 1);
        assert!(JoinedBatch::begin(&view).is_none());
    }
}
