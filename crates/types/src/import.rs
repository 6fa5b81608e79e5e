//! Ids of records from files, computed from the content of the records.
//!
//! Such a record had no number when it was written. So its id is a hash of its content and of the number of equal
//! records before it in the same file. Reading a file twice gives the same ids, and an archive that keeps each id once
//! gains nothing the second time. Two equal lines of one file stay two records.
//!
//! The hash is SHA-256, cut to 96 bits. Faster ones (XXH3, BLAKE3) were rejected: a record made to collide with another
//! would keep that one out of the archive. Every language and shell can compute SHA-256 decades from now. Where the
//! processor has instructions for it, it costs a fraction of parsing the record. Layout and vectors:
//! `spec/wire/import-id.md`.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use crate::{
    identity::{Incarnation, RecordId},
    record::LogRecord,
};

/// First bytes of the hash; another layout would begin with others.
const LAYOUT: &[u8; 16] = b"tampu import 1\0\0";

/// The id of an imported record that is equal to `occurrence` records before it in its file.
pub fn import_id(record: &LogRecord, occurrence: u64) -> RecordId {
    id_of(content(record), occurrence)
}

fn id_of(content: Sha256, occurrence: u64) -> RecordId {
    let hash = content.chain_update(occurrence.to_le_bytes()).finalize();
    let mut ring = [0; 4];
    let mut number = [0; 8];
    ring.copy_from_slice(&hash[..4]);
    number.copy_from_slice(&hash[4..12]);
    RecordId { incarnation: Incarnation::default(), ring: u32::from_le_bytes(ring), number: u64::from_le_bytes(number) }
}

/// Everything of a record that ACS XML holds, with the time to the millisecond as there.
fn content(record: &LogRecord) -> Sha256 {
    let mut bytes = Vec::with_capacity(1024);
    bytes.extend_from_slice(LAYOUT);
    bytes.extend_from_slice(&record.time.rounded_to_ms().0.to_le_bytes());
    bytes.extend_from_slice(&[record.level.number(), record.priority.unwrap_or(0)]);
    for number in [record.line.map(i64::from), record.stack_level.map(i64::from)] {
        bytes.extend_from_slice(&number.unwrap_or(i64::MIN).to_le_bytes());
    }
    let mut text = |text: &str| {
        bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    };
    for field in [
        &record.message,
        &record.logger,
        &record.file,
        &record.routine,
        &record.host,
        &record.process,
        &record.thread,
        &record.context,
        &record.source_object,
        &record.array,
        &record.antenna,
        &record.stack_id,
        &record.log_id,
        &record.uri,
        &record.run_id,
    ] {
        text(field);
    }
    for id in [record.trace_id.as_ref().map(<[u8; 16]>::as_slice), record.span_id.as_ref().map(<[u8; 8]>::as_slice)] {
        text(&id.unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    }
    match &record.archive {
        Some(archive) => [&archive.object, &archive.parameter, &archive.r#type].into_iter().for_each(|field| text(field)),
        None => text(""),
    }
    // A text with its count stands before a list, so that two different lists never give the same bytes.
    text(&record.audiences.len().to_string());
    record.audiences.iter().for_each(|name| text(name));
    for list in [&record.data, &record.attributes] {
        text(&list.len().to_string());
        for datum in list {
            text(&datum.name);
            text(&datum.value);
        }
    }
    Sha256::new().chain_update(bytes)
}

/// Gives the records of one file their ids, in order.
#[derive(Debug, Default)]
pub struct ImportIds {
    seen: HashMap<(u32, u64), u64>,
}

impl ImportIds {
    /// Makes the ids of one file.
    pub fn new() -> ImportIds {
        ImportIds::default()
    }

    /// Sets the record's id; one that has an id of a writer's (see `RecordId` in `spec/wire/acs-xml.md`) keeps it.
    ///
    /// Remembers 24 bytes for each different record of the file.
    pub fn assign(&mut self, record: &mut LogRecord) {
        if record.id.is_some_and(|id| id.incarnation != Incarnation::default()) {
            return;
        }
        let content = content(record);
        let first = id_of(content.clone(), 0);
        let occurrence = self.seen.entry((first.ring, first.number)).or_insert(0);
        record.id = Some(if *occurrence == 0 { first } else { id_of(content, *occurrence) });
        *occurrence += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Level, Time, arbitrary, record::Datum};

    #[test]
    fn equal_records_of_a_file_differ_and_files_do_not() {
        let ids = || {
            let mut ids = ImportIds::new();
            let mut records =
                vec![LogRecord::new(Level::Info, "a"), LogRecord::new(Level::Info, "b"), LogRecord::new(Level::Info, "a")];
            records.iter_mut().for_each(|record| ids.assign(record));
            records.into_iter().map(|record| record.id.unwrap()).collect::<Vec<_>>()
        };
        let first = ids();
        assert_eq!(first, ids());
        assert_eq!(first[2], import_id(&LogRecord::new(Level::Info, "a"), 1));
        let different: std::collections::HashSet<_> = first.iter().collect();
        assert_eq!(different.len(), 3);
    }

    #[test]
    fn what_xml_does_not_hold_does_not_count() {
        let mut record = LogRecord::new(Level::Info, "a");
        record.time = Time(1_000_000);
        let id = import_id(&record, 0);
        record.time = Time(1_400_000);
        record.received = Some(Time(7));
        record.unknown = vec![1];
        record.id = Some(id);
        assert_eq!(import_id(&record, 0), id);
        record.time = Time(1_500_000);
        assert_ne!(import_id(&record, 0), id);
    }

    #[test]
    fn every_field_counts() {
        let plain = LogRecord::default();
        let changes: [fn(&mut LogRecord); 8] = [
            |record| record.logger = "x".into(),
            |record| record.file = "x".into(),
            |record| record.line = Some(0),
            |record| record.stack_level = Some(0),
            |record| record.audiences = vec!["x".into()],
            |record| record.data = vec![Datum::new("x", "")],
            |record| record.attributes = vec![Datum::new("x", "")],
            |record| record.archive = Some(crate::record::ArchiveParameter::default()),
        ];
        let mut ids = std::collections::HashSet::from([import_id(&plain, 0)]);
        for change in changes {
            let mut record = plain.clone();
            change(&mut record);
            assert!(ids.insert(import_id(&record, 0)));
        }
    }

    proptest! {
        #[test]
        fn a_file_written_and_read_again_has_the_same_ids(record in arbitrary::record()) {
            let mut text = String::new();
            crate::xml::write_record(&mut text, &record, crate::xml::AcsXmlOptions::default());
            let again = crate::xml::AcsXmlReader::new(text.as_bytes(), "f").next().unwrap().unwrap();
            prop_assert_eq!(import_id(&again, 0), import_id(&record, 0));
        }
    }
}
