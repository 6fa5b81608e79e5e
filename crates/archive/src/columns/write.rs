//! Batches as messages of Arrow's streaming format. <https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format>
//!
//! ```text
//! message:  u32 0xffffffff | i32 length of the metadata | metadata, a FlatBuffer, padded to 8 | buffers, each padded to 8
//! stream:   schema | for each name column a dictionary | batches; before one a dictionary again if it has changed | end
//! ```
//! Columns without a value share one region of zeros, so they take nearly no place.

use std::{ops::Range, sync::Arc};

use super::{
    batch::{Column, ColumnBatch, ColumnData, ColumnType, Names},
    flat::{Member, Writer},
};

/// `MetadataVersion` 5, of Arrow 1.0 and later.
pub(super) const VERSION: i16 = 4;
/// Kinds of `MessageHeader`.
pub(super) const SCHEMA: u8 = 1;
pub(super) const DICTIONARY: u8 = 2;
pub(super) const BATCH: u8 = 3;
/// Kinds of `Type`.
pub(super) const INT: u8 = 2;
pub(super) const FLOAT: u8 = 3;
pub(super) const UTF8: u8 = 5;
pub(super) const TIMESTAMP: u8 = 10;
pub(super) const LIST: u8 = 12;
/// `TimeUnit` and `Precision` of our times and numbers.
pub(super) const NANOSECOND: i16 = 3;
pub(super) const DOUBLE: i16 = 2;
/// Bits of an integer, and of a code.
pub(super) const LONG: i32 = 64;
pub(super) const CODE: i32 = 16;

/// Names of a dictionary, whose codes have 16 bits with a sign.
pub(super) const MOST_CODES: usize = i16::MAX as usize;

/// Begin of each message, and the end of a stream.
pub(super) const CONTINUATION: [u8; 4] = [0xff; 4];
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Dictionary that a reader has, of the column of this number.
type SentNames = (usize, Arc<Names>);

/// Makes the messages of one stream.
pub struct ColumnWriter {
    schema: Vec<(&'static str, ColumnType)>,
    /// Length in bytes that a message exceeds only for one row, or for the name of one row.
    limit: usize,
    /// The dictionary that the reader has of each column.
    sent: Vec<Option<Arc<Names>>>,
}

impl ColumnWriter {
    /// Makes a writer of such tables, with messages of at most `limit` bytes, or of one row. A dictionary is such a
    /// message, too.
    pub fn new(schema: Vec<(&'static str, ColumnType)>, limit: usize) -> ColumnWriter {
        let sent = vec![None; schema.len()];
        ColumnWriter { schema, limit, sent }
    }

    /// Returns the first message.
    pub fn begin(&self) -> Vec<u8> {
        let (mut out, mut header, root) = message(SCHEMA);
        let (schema, members) = out.table(&[Member::Short(0), Member::Reference]);
        out.refer(root[2], schema);
        let (fields, places) = out.references(self.schema.len());
        out.refer(members[1], fields);
        for (number, ((name, kind), place)) in self.schema.iter().zip(places).enumerate() {
            let field = write_field(&mut out, name, *kind, number as i64);
            out.refer(place, field);
        }
        finish(&mut header, out);
        header
    }

    /// Calls `send` with the messages of a batch until it returns false; returns whether it did not.
    pub fn batch(&mut self, batch: &ColumnBatch, send: &mut dyn FnMut(Vec<u8>) -> bool) -> bool {
        let mut from = 0;
        while from < batch.rows {
            let mut to = batch.rows;
            // Half the rows, until they fit. Most of the way the approximate length is enough.
            let messages = loop {
                let is_one = to - from == 1;
                if is_one || length(batch, from..to) <= self.limit {
                    match self.slice(batch, from..to) {
                        Some(messages) => break messages,
                        None if is_one => return false,
                        None => {}
                    }
                }
                to = from + (to - from) / 2;
            };
            for (message, dictionary) in messages {
                if !send(message) {
                    return false;
                }
                if let Some((column, names)) = dictionary {
                    self.sent[column] = Some(names);
                }
            }
            from = to;
        }
        true
    }

    /// Returns the last message.
    pub fn end() -> Vec<u8> {
        END.to_vec()
    }

    /// Returns the messages of these rows, each with the dictionary that it is, if it is one; `None` if one is longer
    /// than the limit and the rows can be divided.
    fn slice(&self, batch: &ColumnBatch, rows: Range<usize>) -> Option<Vec<(Vec<u8>, Option<SentNames>)>> {
        let fits = |message: &Message<'_>| message.length() <= self.limit || rows.len() == 1;
        let (mut messages, mut codes_of) = (Vec::new(), Vec::with_capacity(batch.columns.len()));
        for (number, (column, (_, kind))) in batch.columns.iter().zip(&self.schema).enumerate() {
            codes_of.push(None);
            let names = match &column.data {
                _ if *kind != ColumnType::Name => continue,
                ColumnData::Names(codes, names) => {
                    let is_sent = self.sent[number].as_ref().is_some_and(|sent| Arc::ptr_eq(sent, names));
                    let has_codes = names.len() <= MOST_CODES;
                    if has_codes && (is_sent || dictionary(number as i64, names).length() <= self.limit) {
                        names.clone()
                    } else {
                        let (codes, used) = used_names(&codes[rows.clone()], names);
                        if used.len() > MOST_CODES {
                            return None;
                        }
                        codes_of[number] = Some(codes);
                        Arc::new(used)
                    }
                }
                _ if self.sent[number].is_some() => continue,
                _ => Arc::default(),
            };
            if !self.sent[number].as_ref().is_some_and(|sent| Arc::ptr_eq(sent, &names)) {
                let message = Some(dictionary(number as i64, &names)).filter(fits)?.bytes();
                messages.push((message, Some((number, names))));
            }
        }
        let mut body = Body::new(rows.len());
        for ((column, codes), (_, kind)) in batch.columns.iter().zip(&codes_of).zip(&self.schema) {
            body.column(column, *kind, rows.clone(), codes.as_deref());
        }
        messages.push((Some(body.message(BATCH, None)).filter(fits)?.bytes(), None));
        Some(messages)
    }
}

/// Returns the codes and texts of only the names that these rows use. There are at most as many as rows.
fn used_names(codes: &[i32], names: &Names) -> (Vec<i32>, Names) {
    let (mut known, mut used) = (std::collections::HashMap::new(), Names::default());
    let codes = codes
        .iter()
        .map(|code| {
            *known.entry(*code).or_insert_with(|| {
                used.push(names.get(*code as usize));
                used.len() as i32 - 1
            })
        })
        .collect();
    (codes, used)
}

/// Returns the approximate length of these rows in a message.
fn length(batch: &ColumnBatch, rows: Range<usize>) -> usize {
    let texts = |ends: &[i32]| (ends[rows.end] - ends[rows.start]) as usize;
    let of = |column: &Column| match &column.data {
        ColumnData::Missing => 0,
        ColumnData::Texts(ends, _) => texts(ends) + 4 * rows.len(),
        ColumnData::Names(..) => 2 * rows.len(),
        ColumnData::Integers(_) | ColumnData::Numbers(_) => 8 * rows.len(),
        ColumnData::Rows(ends, _) => 8 * texts(ends) + 4 * rows.len(),
    };
    batch.columns.iter().map(of).sum()
}

fn write_field(out: &mut Writer, name: &str, kind: ColumnType, dictionary: i64) -> usize {
    let (number, type_members): (u8, &[Member]) = match kind {
        ColumnType::Text | ColumnType::Name => (UTF8, &[]),
        ColumnType::Time => (TIMESTAMP, &[Member::Short(NANOSECOND), Member::Reference]),
        ColumnType::Integer => (INT, &[Member::Int(LONG), Member::Byte(1)]),
        ColumnType::Number => (FLOAT, &[Member::Short(DOUBLE)]),
        ColumnType::Numbers => (LIST, &[]),
    };
    let encoding = if kind == ColumnType::Name { Member::Reference } else { Member::Absent };
    let (field, members) =
        out.table(&[Member::Reference, Member::Byte(1), Member::Byte(number), Member::Reference, encoding, Member::Reference]);
    let text = out.text(name);
    out.refer(members[0], text);
    let (of_type, places) = out.table(type_members);
    out.refer(members[3], of_type);
    if kind == ColumnType::Time {
        let zone = out.text("UTC");
        out.refer(places[1], zone);
    }
    if kind == ColumnType::Name {
        let (encoding, places) = out.table(&[Member::Long(dictionary), Member::Reference]);
        out.refer(members[4], encoding);
        let (index, _) = out.table(&[Member::Int(CODE), Member::Byte(1)]);
        out.refer(places[1], index);
    }
    let (children, places) = out.references(usize::from(kind == ColumnType::Numbers));
    out.refer(members[5], children);
    if let Some(place) = places.first() {
        let child = write_field(out, "item", ColumnType::Number, 0);
        out.refer(*place, child);
    }
    field
}

/// Begins a message: its metadata, the prefix, and the places of the root's members.
fn message(kind: u8) -> (Writer, Vec<u8>, Vec<usize>) {
    let mut out = Writer::begin();
    let (root, members) = out.table(&[Member::Short(VERSION), Member::Byte(kind), Member::Reference, Member::Long(0)]);
    out.refer(0, root);
    (out, CONTINUATION.to_vec(), members)
}

/// Completes the prefix and the metadata of a message.
fn finish(prefix: &mut Vec<u8>, mut metadata: Writer) {
    let length = metadata.bytes.len().next_multiple_of(8);
    metadata.bytes.resize(length, 0);
    prefix.extend_from_slice(&(length as i32).to_le_bytes());
    prefix.extend_from_slice(&metadata.bytes);
}

fn dictionary(id: i64, names: &Names) -> Message<'_> {
    let mut body = Body::new(names.len());
    body.nodes.push((names.len() as i64, 0));
    body.zeros(0);
    body.texts(&names.ends, &names.bytes);
    body.message(DICTIONARY, Some(id))
}

/// A message whose length is known before it is written.
struct Message<'b> {
    /// Prefix and metadata.
    head: Vec<u8>,
    zeros: usize,
    parts: Vec<Part<'b>>,
    /// Length of the buffers.
    body: usize,
}

impl Message<'_> {
    fn length(&self) -> usize {
        self.head.len() + self.body
    }

    fn bytes(self) -> Vec<u8> {
        let length = self.length();
        let mut out = self.head;
        out.reserve_exact(length - out.len());
        out.resize(out.len() + self.zeros, 0);
        for part in &self.parts {
            part.write(&mut out);
            out.resize(out.len().next_multiple_of(8), 0);
        }
        debug_assert_eq!(out.len(), length, "the length is that of the parts");
        out
    }
}

/// Content of a buffer.
enum Part<'b> {
    Bits(&'b [u8], Range<usize>),
    /// Ends counted from the first.
    Ends(&'b [i32]),
    Codes(&'b [i32]),
    Bytes(&'b [u8]),
    Longs(&'b [i64]),
    Doubles(&'b [f64]),
}

impl Part<'_> {
    fn length(&self) -> usize {
        match self {
            Part::Bits(_, rows) => rows.len().div_ceil(8),
            Part::Ends(all) => 4 * all.len(),
            Part::Codes(all) => 2 * all.len(),
            Part::Bytes(all) => all.len(),
            Part::Longs(all) => 8 * all.len(),
            Part::Doubles(all) => 8 * all.len(),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Part::Bits(bits, rows) if rows.start.is_multiple_of(8) => {
                out.extend_from_slice(&bits[rows.start / 8..rows.end.div_ceil(8)]);
            }
            Part::Bits(bits, rows) => {
                let bit = |row: usize| bits[row / 8] >> (row % 8) & 1;
                for first in rows.clone().step_by(8) {
                    let last = rows.end.min(first + 8);
                    out.push((first..last).fold(0, |byte, row| byte | bit(row) << (row - first)));
                }
            }
            Part::Ends(all) => {
                let first = all.first().copied().unwrap_or_default();
                put(out, all.iter().map(|end| (end - first).to_le_bytes()));
            }
            Part::Codes(all) => put(out, all.iter().map(|code| (*code as i16).to_le_bytes())),
            Part::Bytes(all) => out.extend_from_slice(all),
            Part::Longs(all) => put(out, all.iter().map(|number| number.to_le_bytes())),
            Part::Doubles(all) => put(out, all.iter().map(|number| number.to_le_bytes())),
        }
    }
}

/// Appends values of one width. Room is made once, so that the loop compiles to vector code.
fn put<const WIDTH: usize>(out: &mut Vec<u8>, values: impl ExactSizeIterator<Item = [u8; WIDTH]>) {
    let from = out.len();
    out.resize(from + WIDTH * values.len(), 0);
    out[from..].as_chunks_mut().0.iter_mut().zip(values).for_each(|(room, value)| *room = value);
}

/// Rows of a message.
struct Body<'b> {
    rows: usize,
    /// Rows and missing values of each column.
    nodes: Vec<(i64, i64)>,
    /// Place and length of each buffer.
    buffers: Vec<(i64, i64)>,
    parts: Vec<Part<'b>>,
    /// Length of the zeros at the begin of the body.
    zeros: usize,
    /// Length of the other buffers.
    length: usize,
}

impl<'b> Body<'b> {
    fn new(rows: usize) -> Body<'b> {
        Body { rows, nodes: Vec::new(), buffers: Vec::new(), parts: Vec::new(), zeros: 0, length: 0 }
    }

    fn part(&mut self, part: Part<'b>) {
        // Places count from the end of the zeros until the message is made.
        self.buffers.push((self.length as i64, part.length() as i64));
        self.length += part.length().next_multiple_of(8);
        self.parts.push(part);
    }

    /// Adds a buffer of zeros.
    fn zeros(&mut self, length: usize) {
        self.zeros = self.zeros.max(length.next_multiple_of(8));
        self.buffers.push((-1, length as i64));
    }

    /// Adds the ends and bytes of texts.
    fn texts(&mut self, ends: &'b [i32], bytes: &'b [u8]) {
        self.part(Part::Ends(ends));
        self.part(Part::Bytes(&bytes[ends[0] as usize..ends[ends.len() - 1] as usize]));
    }

    fn column(&mut self, column: &'b Column, kind: ColumnType, rows: Range<usize>, codes: Option<&'b [i32]>) {
        let count = rows.len();
        if column.data == ColumnData::Missing {
            self.nodes.push((count as i64, count as i64));
            self.zeros(count.div_ceil(8));
            match kind {
                ColumnType::Text => {
                    self.zeros(4 * (count + 1));
                    self.zeros(0);
                }
                ColumnType::Name => self.zeros(2 * count),
                ColumnType::Time | ColumnType::Integer | ColumnType::Number => self.zeros(8 * count),
                ColumnType::Numbers => {
                    self.zeros(4 * (count + 1));
                    self.nodes.push((0, 0));
                    self.zeros(0);
                    self.zeros(0);
                }
            }
            return;
        }
        if column.present.is_empty() {
            self.nodes.push((count as i64, 0));
            self.zeros(0);
        } else {
            let missing = rows.clone().filter(|row| column.present[row / 8] & (1 << (row % 8)) == 0).count();
            self.nodes.push((count as i64, missing as i64));
            self.part(Part::Bits(&column.present, rows.clone()));
        }
        match &column.data {
            ColumnData::Missing => {}
            ColumnData::Texts(ends, bytes) => self.texts(&ends[rows.start..=rows.end], bytes),
            ColumnData::Names(all, _) => self.part(Part::Codes(codes.unwrap_or(&all[rows]))),
            ColumnData::Integers(all) => self.part(Part::Longs(&all[rows])),
            ColumnData::Numbers(all) => self.part(Part::Doubles(&all[rows])),
            ColumnData::Rows(ends, all) => {
                let ends = &ends[rows.start..=rows.end];
                let numbers = &all[ends[0] as usize..ends[count] as usize];
                self.part(Part::Ends(ends));
                self.nodes.push((numbers.len() as i64, 0));
                self.zeros(0);
                self.part(Part::Doubles(numbers));
            }
        }
    }

    fn message(mut self, kind: u8, dictionary: Option<i64>) -> Message<'b> {
        for (place, _) in &mut self.buffers {
            *place = if *place < 0 { 0 } else { *place + self.zeros as i64 };
        }
        let body = self.zeros + self.length;
        let (mut metadata, mut out, root) = message(kind);
        metadata.set_long(root[3], body as i64);
        let mut target = root[2];
        if let Some(id) = dictionary {
            let (table, members) = metadata.table(&[Member::Long(id), Member::Reference]);
            metadata.refer(target, table);
            target = members[1];
        }
        let (table, members) = metadata.table(&[Member::Long(self.rows as i64), Member::Reference, Member::Reference]);
        metadata.refer(target, table);
        let nodes = metadata.pairs(&self.nodes);
        metadata.refer(members[1], nodes);
        let buffers = metadata.pairs(&self.buffers);
        metadata.refer(members[2], buffers);
        finish(&mut out, metadata);
        Message { head: out, zeros: self.zeros, parts: self.parts, body }
    }
}
