//! Writing a batch, record by record.

use super::{
    intern::Interner,
    parts::{OriginParts, RecordParts},
};
use crate::{
    cdr::{self, encode},
    identity::Incarnation,
    record::LogRecord,
    time::Time,
};

/// Encapsulation header, the batch's DHEADER, the records' DHEADER and count.
const HEAD: usize = 4 + 4 + 4 + 4;

/// A table's DHEADER and count.
const TABLE_HEAD: usize = 8;

/// The largest batch, tables included, in bytes: lengths in CDR have 32 bits, and no reader should be asked for more.
pub const LARGEST: usize = 1 << 30;

/// Limit in bytes of texts and origins remembered over batches; beyond it all are forgotten at the next reset.
const REMEMBERED: usize = 8 << 20;

/// Number of an origin, from [`LogBatchBuilder::origin`]. It is valid for its builder alone, over many batches, until
/// the builder forgets ([`PushError::StaleOrigin`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OriginId {
    age: u32,
    number: u32,
}

/// Reason for which a record was refused. The records before it are still in the batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The builder has forgotten this origin, or never knew it: ask for it again.
    #[error("the builder has forgotten the origin; give it again")]
    StaleOrigin,
    /// The batch would be too large: send it first.
    #[error("the batch would take {length} bytes with record {record}; {limit} are allowed")]
    Full {
        /// Number of the record in the batch, from 0.
        record: u32,
        /// Its length with the record.
        length: usize,
        /// The largest allowed.
        limit: usize,
    },
}

/// Encodes records in order. One builder serves one writer for many batches: [`LogBatchBuilder::reset`] keeps memory,
/// and the known origins.
#[derive(Debug, Clone)]
pub struct LogBatchBuilder {
    /// The largest batch in bytes.
    limit: usize,
    /// The batch up to its records' end; behind that, once sealed, the tables.
    out: Vec<u8>,
    /// End of the records, if the tables follow.
    sealed: Option<usize>,
    count: u32,
    /// Number of the batch of this builder, from 1.
    batch: u32,
    /// The tables of this batch, each with room for its DHEADER and count.
    incarnations: Vec<u8>,
    strings: Vec<u8>,
    string_count: u32,
    origins: Vec<u8>,
    origin_count: u32,
    /// Strings in the table after its first origin was placed.
    first_strings: u32,
    /// True while the tables are those of the batch before: the one origin of that batch, and no record yet.
    carried: bool,
    /// Texts remembered over batches.
    known_strings: Interner,
    known_origins: Interner,
    origin_values: Vec<Origin>,
    /// Number of times everything was forgotten.
    age: u32,
    /// Buffer in which an origin is put together to be looked up.
    scratch: Vec<u8>,
}

/// A known origin: the data to write when a batch first uses it.
#[derive(Debug, Clone)]
struct Origin {
    incarnation: Option<Incarnation>,
    line: Option<u32>,
    /// Numbers of its strings, then of its audiences, and the texts themselves.
    strings: Box<[u32]>,
    texts: Box<[Box<str>]>,
    unknown: Box<[u8]>,
}

/// The number of the empty string, which is in no table.
const EMPTY: u32 = u32::MAX;

impl Default for LogBatchBuilder {
    fn default() -> LogBatchBuilder {
        LogBatchBuilder::new()
    }
}

impl LogBatchBuilder {
    /// An empty batch, of at most [`LARGEST`] bytes.
    pub fn new() -> LogBatchBuilder {
        LogBatchBuilder::with_limit(LARGEST)
    }

    /// An empty batch that refuses records beyond this many bytes (and beyond [`LARGEST`]).
    pub fn with_limit(limit: usize) -> LogBatchBuilder {
        let mut builder = LogBatchBuilder {
            limit: limit.min(LARGEST),
            out: Vec::new(),
            sealed: None,
            count: 0,
            batch: 0,
            incarnations: Vec::new(),
            strings: Vec::new(),
            string_count: 0,
            origins: Vec::new(),
            origin_count: 0,
            first_strings: 0,
            carried: false,
            known_strings: Interner::default(),
            known_origins: Interner::default(),
            origin_values: Vec::new(),
            age: 0,
            scratch: Vec::new(),
        };
        builder.reset();
        builder
    }

    /// Number of records in the batch.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Returns true if the batch has no records.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of bytes of the batch, including the tables.
    pub fn len(&self) -> usize {
        let tables = [&self.incarnations, &self.strings, &self.origins];
        let length_of = |table: &Vec<u8>| if self.carried { TABLE_HEAD } else { table.len() };
        tables.iter().fold(self.sealed.unwrap_or(self.out.len()), |length, table| length.next_multiple_of(4) + length_of(table))
    }

    /// Returns a number for this origin, to push records with. It takes no room in a batch without a record of it.
    pub fn origin(&mut self, parts: &OriginParts<'_>) -> OriginId {
        self.origin_with(parts, parts.audiences.iter().copied())
    }

    fn origin_with<'n>(&mut self, parts: &OriginParts<'n>, audiences: impl Iterator<Item = &'n str> + Clone) -> OriginId {
        // All fields of the origin, one after the other with lengths: equal bytes are equal origins.
        let mut key = std::mem::take(&mut self.scratch);
        key.clear();
        match parts.incarnation {
            Some(incarnation) => key.extend_from_slice(&incarnation.to_bytes()),
            None => key.push(0),
        }
        key.extend_from_slice(&parts.line.map_or(u64::MAX, u64::from).to_le_bytes());
        for text in parts.strings().into_iter().chain(audiences.clone()) {
            key.extend_from_slice(&(text.len() as u32).to_le_bytes());
            key.extend_from_slice(text.as_bytes());
        }
        key.extend_from_slice(&u32::MAX.to_le_bytes());
        key.extend_from_slice(parts.unknown);
        let (number, new) = self.known_origins.number(&key);
        self.scratch = key;
        if new {
            let texts: Box<[Box<str>]> = parts.strings().into_iter().chain(audiences).map(Box::from).collect();
            let strings = texts.iter().map(|text| self.string_number(text)).collect();
            let unknown = parts.unknown.into();
            self.origin_values.push(Origin { incarnation: parts.incarnation, line: parts.line, strings, texts, unknown });
        }
        OriginId { age: self.age, number }
    }

    fn string_number(&mut self, text: &str) -> u32 {
        if text.is_empty() { EMPTY } else { self.known_strings.number(text.as_bytes()).0 }
    }

    /// Appends a record of a known origin. `data` are its named values in order.
    pub fn push<'d>(
        &mut self,
        origin: OriginId,
        record: &RecordParts<'_>,
        data: impl IntoIterator<Item = (&'d str, &'d str)>,
    ) -> Result<(), PushError> {
        if origin.age != self.age || origin.number as usize >= self.known_origins.count() {
            return Err(PushError::StaleOrigin);
        }
        if let Some(records_end) = self.sealed.take() {
            self.out.truncate(records_end);
        }
        let before = self.out.len();
        let origin = match self.known_origins.place(origin.number, self.batch) {
            Some(index) => index,
            None => {
                self.drop_carried();
                self.place_origin(origin.number)
            }
        };
        self.carried = false;
        self.write_record(origin, record, data);
        let length = self.len();
        if length > self.limit {
            self.out.truncate(before);
            return Err(PushError::Full { record: self.count, length, limit: self.limit });
        }
        self.count += 1;
        Ok(())
    }

    /// Appends a record and learns its origin.
    pub fn append<'d>(
        &mut self,
        origin: &OriginParts<'_>,
        record: &RecordParts<'_>,
        data: impl IntoIterator<Item = (&'d str, &'d str)>,
    ) -> Result<(), PushError> {
        let origin = self.origin(origin);
        self.push(origin, record, data)
    }

    /// Appends a record unchanged.
    pub fn push_record(&mut self, record: &LogRecord) -> Result<(), PushError> {
        let origin = self.origin_with(&OriginParts::of(record), record.audiences.iter().map(String::as_str));
        let data = record.data.iter().map(|datum| (datum.name.as_str(), datum.value.as_str()));
        self.push(origin, &RecordParts::of(record), data)
    }

    fn write_record<'d>(&mut self, origin: u32, record: &RecordParts<'_>, data: impl IntoIterator<Item = (&'d str, &'d str)>) {
        encode::align(&mut self.out);
        self.out.reserve(64 + record.message.len());
        let start = self.out.len() + 4;
        // DHEADER, time, number, ring, origin and level. In nearly every record then follow no priority, no extras, padding and the
        // message's length: fixed places, so one copy.
        let mut head = [0; 36];
        head[4..12].copy_from_slice(&record.time.0.to_le_bytes());
        head[12..20].copy_from_slice(&record.number.to_le_bytes());
        head[20..24].copy_from_slice(&record.ring.to_le_bytes());
        head[24..28].copy_from_slice(&origin.to_le_bytes());
        head[28] = record.level.number();
        if record.priority.is_none() && !record.has_extras() {
            head[32..].copy_from_slice(&(record.message.len() as u32 + 1).to_le_bytes());
            self.out.extend_from_slice(&head);
            self.out.extend_from_slice(record.message.as_bytes());
            self.out.push(0);
        } else {
            self.out.extend_from_slice(&head[..29]);
            self.write_optional(record);
            encode::string(&mut self.out, record.message);
        }
        self.write_data(data);
        self.out.extend_from_slice(record.unknown);
        encode::end(&mut self.out, start);
    }

    /// Priority and extras, each behind its flag.
    fn write_optional(&mut self, record: &RecordParts<'_>) {
        match record.priority {
            Some(priority) => self.out.extend_from_slice(&[1, priority]),
            None => self.out.push(0),
        }
        self.out.push(u8::from(record.has_extras()));
        if record.has_extras() {
            self.write_extras(record);
        }
    }

    fn write_extras(&mut self, record: &RecordParts<'_>) {
        self.out.push(u8::from(record.received.is_some()));
        if let Some(Time(received)) = record.received {
            encode::u64(&mut self.out, received as u64);
        }
        self.out.push(u8::from(record.stack_level.is_some()));
        if let Some(level) = record.stack_level {
            encode::u32(&mut self.out, level as u32);
        }
        encode::string(&mut self.out, record.stack_id);
        encode::string(&mut self.out, record.log_id);
        for id in [record.trace_id.as_ref().map(<[u8; 16]>::as_slice), record.span_id.as_ref().map(<[u8; 8]>::as_slice)] {
            let id = id.unwrap_or_default();
            encode::u32(&mut self.out, id.len() as u32);
            self.out.extend_from_slice(id);
        }
        self.out.push(u8::from(record.archive.is_some()));
        if let Some(archive) = record.archive {
            for text in [archive.object, archive.parameter, archive.r#type] {
                let index = self.string_index(text);
                encode::u32(&mut self.out, index);
            }
        }
        self.write_data(record.attributes.iter().map(|datum| (datum.name.as_str(), datum.value.as_str())));
    }

    #[inline]
    fn write_data<'d>(&mut self, data: impl IntoIterator<Item = (&'d str, &'d str)>) {
        encode::align(&mut self.out);
        let start = self.out.len() + 4;
        self.out.extend_from_slice(&[0; 8]);
        let mut count = 0u32;
        for (name, value) in data {
            encode::string(&mut self.out, value);
            let name = self.string_index(name);
            encode::u32(&mut self.out, name);
            count += 1;
        }
        self.out[start..start + 4].copy_from_slice(&count.to_le_bytes());
        encode::end(&mut self.out, start);
    }

    /// Index of this text in the batch's table; adds the text if it is not there.
    #[inline]
    fn string_index(&mut self, text: &str) -> u32 {
        let number = self.string_number(text);
        self.place_string(number, text)
    }

    #[inline]
    fn place_string(&mut self, number: u32, text: &str) -> u32 {
        if number == EMPTY {
            return 0;
        }
        if let Some(index) = self.known_strings.place(number, self.batch) {
            return index;
        }
        encode::string(&mut self.strings, text);
        self.string_count += 1;
        self.known_strings.set_place(number, self.batch, self.string_count);
        self.string_count
    }

    fn place_origin(&mut self, number: u32) -> u32 {
        // Taken out temporarily, because placing its strings needs the rest of the builder.
        let values = std::mem::take(&mut self.origin_values);
        let origin = &values[number as usize];
        let incarnation = origin.incarnation.map_or(0, |incarnation| self.place_incarnation(incarnation));

        let start = encode::begin(&mut self.origins);
        self.origins.push(u8::from(origin.line.is_some()));
        if let Some(line) = origin.line {
            encode::u32(&mut self.origins, line);
        }
        // The incarnation and twelve strings, then the audiences with their count: words without padding.
        let (strings, audiences) = origin.strings.split_at(12);
        let (texts, audience_texts) = origin.texts.split_at(12);
        let mut words = [0; 4 * 14];
        words[..4].copy_from_slice(&incarnation.to_le_bytes());
        for ((word, &number), text) in words[4..].chunks_exact_mut(4).zip(strings).zip(texts) {
            word.copy_from_slice(&self.place_string(number, text).to_le_bytes());
        }
        words[4 * 13..].copy_from_slice(&(audiences.len() as u32).to_le_bytes());
        encode::align(&mut self.origins);
        self.origins.extend_from_slice(&words);
        for (&number, text) in audiences.iter().zip(audience_texts) {
            let index = self.place_string(number, text);
            encode::u32(&mut self.origins, index);
        }
        self.origins.extend_from_slice(&origin.unknown);
        encode::end(&mut self.origins, start);

        self.origin_values = values;
        let index = self.origin_count;
        self.known_origins.set_place(number, self.batch, index);
        self.origin_count += 1;
        if index == 0 {
            self.first_strings = self.string_count;
        }
        index
    }

    /// A batch has one incarnation, or the few of a query's answer: looking through them is the fastest way.
    fn place_incarnation(&mut self, incarnation: Incarnation) -> u32 {
        let bytes = incarnation.to_bytes();
        let table = &mut self.incarnations;
        let found = table[TABLE_HEAD..].chunks_exact(16).rposition(|known| known == bytes);
        let place = found.unwrap_or_else(|| {
            table.extend_from_slice(&bytes);
            (table.len() - TABLE_HEAD) / 16 - 1
        });
        place as u32 + 1
    }

    /// Completes the batch and lends its bytes. More records may follow; then it has to be sealed again.
    pub fn seal(&mut self) -> &[u8] {
        self.drop_carried();
        if self.sealed.is_none() {
            let out = &mut self.out;
            self.sealed = Some(out.len());
            encode::end(out, 12);
            out[12..16].copy_from_slice(&self.count.to_le_bytes());
            let incarnations = (self.incarnations.len() - TABLE_HEAD) / 16;
            for (table, count) in [
                (&mut self.incarnations, incarnations as u32),
                (&mut self.strings, self.string_count),
                (&mut self.origins, self.origin_count),
            ] {
                table[4..8].copy_from_slice(&count.to_le_bytes());
                encode::end(table, 4);
                encode::align(out);
                out.extend_from_slice(table);
            }
            encode::end(out, 8);
        }
        &self.out
    }

    /// Completes the batch, hands its bytes over and begins the next.
    pub fn finish(&mut self) -> Vec<u8> {
        let bytes = self.seal().to_vec();
        self.reset();
        bytes
    }

    /// Begins the next batch: clears the records, and keeps memory and origins.
    ///
    /// Tables with one origin and nothing else are kept until the first record shows whether it has the same one: batches
    /// of a record each would otherwise spend most of their time on equal tables.
    pub fn reset(&mut self) {
        self.sealed = None;
        self.count = 0;
        self.out.clear();
        self.out.extend_from_slice(&cdr::ENCAPSULATION);
        self.out.resize(HEAD, 0);
        let is_full = self.known_strings.bytes() + self.known_origins.bytes() > REMEMBERED;
        self.carried = !is_full && self.origin_count == 1 && self.string_count == self.first_strings;
        if !self.carried {
            self.begin_tables();
        }
    }

    /// Begins empty tables if those of the batch before are not wanted.
    fn drop_carried(&mut self) {
        if std::mem::take(&mut self.carried) {
            self.begin_tables();
        }
    }

    fn begin_tables(&mut self) {
        for table in [&mut self.incarnations, &mut self.strings, &mut self.origins] {
            table.clear();
            table.resize(TABLE_HEAD, 0);
        }
        self.string_count = 0;
        self.origin_count = 0;
        let tired = self.batch == u32::MAX;
        if tired || self.known_strings.bytes() + self.known_origins.bytes() > REMEMBERED {
            self.known_strings.clear();
            self.known_origins.clear();
            self.origin_values.clear();
            self.age = self.age.wrapping_add(1);
            self.batch = 0;
        }
        self.batch += 1;
    }
}
