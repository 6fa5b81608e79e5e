//! Reading a batch in place.

use std::fmt;

use crate::{
    cdr::{BadCdr, Decoder},
    identity::{Incarnation, RecordId},
    level::Level,
    record::{
        ArchiveParameter, Datum, LogRecord,
        field::{FieldPart, RecordField},
    },
    time::Time,
};

/// Number of string indexes of an origin besides its audiences.
const ORIGIN_STRINGS: usize = RecordField::ORIGIN_TEXTS;

/// The fewest bytes of each element; bounds the allocation for a count.
const LEAST_STRING: usize = 5;
const LEAST_ORIGIN: usize = 4 + 4 + 4 + 4 * ORIGIN_STRINGS + 4;
const LEAST_RECORD: usize = 4 + 8 + 8 + 4 + 4 + 3 + 1 + 5 + 3 + 8;
const LEAST_DATUM: usize = 4 + 1 + 3 + 4;

/// Limit in bytes of the expanded shared texts of one origin, or of the data of one record. A few bytes can refer to a
/// long text many times, and a caller that makes its own records holds each copy.
const LONGEST_EXPANSION: usize = 64 << 20;

/// A batch with decoded tables and records that are not decoded yet.
///
/// For any bytes, it takes at most a small multiple of the batch's own bytes.
#[derive(Debug)]
pub struct LogBatchView<'a> {
    records: Decoder<'a>,
    count: usize,
    incarnations: Vec<Incarnation>,
    /// The shared texts, the empty one first, so that an index is a position.
    strings: Vec<&'a str>,
    origins: Vec<Origin<'a>>,
    /// Bytes of the tables and of all that follows them, in their encoding.
    tables: &'a [u8],
    unknown: &'a [u8],
}

/// An origin in its encoding; its indexes are checked.
#[derive(Debug)]
struct Origin<'a> {
    line: Option<u32>,
    incarnation: u32,
    strings: [u32; ORIGIN_STRINGS],
    audiences: &'a [u8],
    unknown: &'a [u8],
}

impl<'a> LogBatchView<'a> {
    /// Reads the tables and finds the records; each record is checked when it is read.
    pub fn parse(bytes: &'a [u8]) -> Result<LogBatchView<'a>, BadCdr> {
        let (records, count, batch) = LogBatchView::records_of(bytes)?;
        LogBatchView::with_tables(records, count, batch)
    }

    /// Finds the records and their number; returns the decoder of the tables behind them, too.
    pub(super) fn records_of(bytes: &'a [u8]) -> Result<(Decoder<'a>, usize, Decoder<'a>), BadCdr> {
        let mut batch = Decoder::new(bytes)?.delimited()?;
        let mut records = batch.delimited()?;
        let count = records.count(LEAST_RECORD)?;
        // From here on equal bytes have equal meanings.
        batch.align();
        Ok((records, count, batch))
    }

    pub(super) fn with_tables(records: Decoder<'a>, count: usize, mut batch: Decoder<'a>) -> Result<LogBatchView<'a>, BadCdr> {
        let tables = batch.rest();
        let incarnations = {
            let mut table = batch.delimited()?;
            let count = table.count(16)?;
            let read = |_| Ok(Incarnation { boot: table.u32()?, pid: table.u32()?, start: table.u64()? });
            (0..count).map(read).collect::<Result<Vec<_>, BadCdr>>()?
        };
        let strings = {
            let mut table = batch.delimited()?;
            let count = table.count(LEAST_STRING)?;
            let mut strings = Vec::with_capacity(count + 1);
            strings.push("");
            for _ in 0..count {
                strings.push(table.string()?);
            }
            strings
        };
        let mut view = LogBatchView { records, count, incarnations, strings, origins: Vec::new(), tables, unknown: &[] };
        let mut table = batch.delimited()?;
        let count = table.count(LEAST_ORIGIN)?;
        view.origins.reserve_exact(count);
        for _ in 0..count {
            let origin = view.origin(&mut table)?;
            view.origins.push(origin);
        }
        view.unknown = batch.rest();
        Ok(view)
    }

    fn origin(&self, table: &mut Decoder<'a>) -> Result<Origin<'a>, BadCdr> {
        let mut part = table.delimited()?;
        let line = if part.present()? { Some(part.u32()?) } else { None };
        let incarnation = part.u32()?;
        if incarnation as usize > self.incarnations.len() {
            return Err(part.bad("an origin's incarnation is not in the table"));
        }
        let strings = part.u32s::<ORIGIN_STRINGS>()?;
        if strings.iter().any(|&index| index as usize >= self.strings.len()) {
            return Err(part.bad("a string's index is not in the table"));
        }
        let count = part.count(4)?;
        let mut check = part;
        let audiences = part.octets(4 * count)?;
        let mut expanded: usize = strings.iter().map(|&index| self.strings[index as usize].len()).sum();
        for _ in 0..count {
            let index = check.u32()?;
            expanded += self.string(index, &check)?.len();
        }
        if expanded > LONGEST_EXPANSION {
            return Err(part.bad("an origin's texts take more than 64 MiB"));
        }
        Ok(Origin { line, incarnation, strings, audiences, unknown: part.rest() })
    }

    #[inline]
    fn string(&self, index: u32, at: &Decoder<'a>) -> Result<&'a str, BadCdr> {
        self.strings.get(index as usize).copied().ok_or(at.bad("a string's index is not in the table"))
    }

    /// Reads a batch whose tables are equal to those of this one.
    pub(super) fn with_records(self, records: Decoder<'a>, count: usize) -> LogBatchView<'a> {
        LogBatchView { records, count, ..self }
    }

    /// Returns the bytes of the tables, and of all that follows them.
    pub(super) fn tables(&self) -> &'a [u8] {
        self.tables
    }

    /// Returns the encoded records; `None` if their lengths do not lead to the end of their part of the batch.
    pub(super) fn encoded_records(&self) -> Option<&'a [u8]> {
        let mut rest = self.records;
        for _ in 0..self.count {
            rest.delimited().ok()?;
        }
        (rest.remaining() == 0).then(|| self.records.rest())
    }

    /// Returns the shared texts, the empty one first; the indexes of origins refer to them.
    pub fn strings(&self) -> &[&'a str] {
        &self.strings
    }

    /// Returns the number of records that the batch in `bytes` claims to hold. Neither its tables nor its records are read.
    pub fn claimed(bytes: &'a [u8]) -> Result<usize, BadCdr> {
        LogBatchView::records_of(bytes).map(|(_, count, _)| count)
    }

    /// Number of records that the batch claims to hold.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the members of the batch that a later release has added, unchanged.
    pub fn unknown(&self) -> &'a [u8] {
        self.unknown
    }

    /// The records in order. A record that cannot be read is an error, and the next one is tried as long as lengths
    /// agree.
    pub fn records(&self) -> Records<'_> {
        Records { batch: self, rest: self.records, left: self.count }
    }
}

/// The records of a batch, one by one.
#[derive(Debug, Clone)]
pub struct Records<'v> {
    batch: &'v LogBatchView<'v>,
    rest: Decoder<'v>,
    left: usize,
}

impl<'v> Records<'v> {
    fn read(&mut self) -> Result<RecordView<'v>, BadCdr> {
        let batch = self.batch;
        let mut part = self.rest.delimited().inspect_err(|_| self.left = 0)?;
        // Time, number, ring, origin: six words at fixed places.
        let [time_low, time_high, number_low, number_high, ring, index] = part.u32s()?;
        let time = Time(u64_of(time_low, time_high) as i64);
        let number = u64_of(number_low, number_high);
        let origin = batch.origins.get(index as usize).ok_or(part.bad("a record's origin is not in the table"))?;
        let origin = OriginView { batch, index, origin };
        let given = part.u8()?;
        let level = Level::from_acs(given).ok_or(part.bad("a number that is not a level (1 to 11)"))?;
        let priority = if part.present()? { Some(part.u8()?) } else { None };
        // ACS never defined 7; it is read as Error and the number is kept, as from XML.
        let priority = priority.or((given != level.number()).then_some(given));
        let extras = if part.present()? {
            let start = part;
            Extras::read(batch, &mut part)?;
            Some(start)
        } else {
            None
        };
        let message = part.string()?;
        let data = Data::read(batch, &mut part)?;
        let unknown = part.rest();
        Ok(RecordView { time, number, ring, origin, level, priority, extras, message, data, unknown })
    }
}

#[inline]
fn u64_of(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

impl<'v> Iterator for Records<'v> {
    type Item = Result<RecordView<'v>, BadCdr>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        Some(self.read())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

/// One record, its texts lying in the batch. All of it has been checked.
#[derive(Clone, Copy)]
pub struct RecordView<'v> {
    time: Time,
    number: u64,
    ring: u32,
    origin: OriginView<'v>,
    level: Level,
    priority: Option<u8>,
    /// Position of the extras. They were checked once; reading them again on demand keeps this struct small to move.
    extras: Option<Decoder<'v>>,
    message: &'v str,
    data: Data<'v>,
    unknown: &'v [u8],
}

#[derive(Debug, Clone, Copy)]
struct Extras<'v> {
    received: Option<Time>,
    stack_level: Option<i32>,
    stack_id: &'v str,
    log_id: &'v str,
    trace_id: Option<[u8; 16]>,
    span_id: Option<[u8; 8]>,
    archive: Option<ArchiveView<'v>>,
    attributes: Data<'v>,
}

/// Parameter that an `Archive` record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveView<'v> {
    /// The object (component) the parameter belongs to.
    pub object: &'v str,
    /// Name of the parameter.
    pub parameter: &'v str,
    /// The type of its value.
    pub r#type: &'v str,
}

impl<'v> Extras<'v> {
    fn read(batch: &'v LogBatchView<'v>, part: &mut Decoder<'v>) -> Result<Extras<'v>, BadCdr> {
        let received = if part.present()? { Some(Time(part.u64()? as i64)) } else { None };
        let stack_level = if part.present()? { Some(part.u32()? as i32) } else { None };
        let stack_id = part.string()?;
        let log_id = part.string()?;
        let trace_id = identifier(part)?;
        let span_id = identifier(part)?;
        let archive = if part.present()? {
            let mut name = || part.u32().and_then(|index| batch.string(index, part));
            Some(ArchiveView { object: name()?, parameter: name()?, r#type: name()? })
        } else {
            None
        };
        let attributes = Data::read(batch, part)?;
        Ok(Extras { received, stack_level, stack_id, log_id, trace_id, span_id, archive, attributes })
    }
}

/// `N` octets or none.
fn identifier<const N: usize>(part: &mut Decoder<'_>) -> Result<Option<[u8; N]>, BadCdr> {
    let count = part.u32()? as usize;
    let wrong = part.bad("a trace or span id of a wrong length");
    if count != 0 && count != N {
        return Err(wrong);
    }
    Ok(part.octets(count)?.first_chunk::<N>().copied())
}

/// Named values, in order.
#[derive(Clone, Copy)]
pub struct Data<'v> {
    strings: &'v [&'v str],
    rest: Option<Decoder<'v>>,
    left: usize,
}

impl<'v> Data<'v> {
    /// Checks a `sequence<Datum>` and stands at its first element.
    #[inline]
    fn read(batch: &'v LogBatchView<'v>, part: &mut Decoder<'v>) -> Result<Data<'v>, BadCdr> {
        let mut elements = part.delimited()?;
        let count = elements.count(LEAST_DATUM)?;
        let data = Data { strings: &batch.strings, rest: Some(elements), left: count };
        let mut expanded = 0;
        for _ in 0..count {
            expanded += data.datum(&mut elements)?.0.len();
        }
        if expanded > LONGEST_EXPANSION {
            return Err(elements.bad("the names of a record's data take more than 64 MiB"));
        }
        Ok(data)
    }

    fn none() -> Data<'v> {
        Data { strings: &[], rest: None, left: 0 }
    }

    #[inline]
    fn datum(&self, elements: &mut Decoder<'v>) -> Result<(&'v str, &'v str), BadCdr> {
        let value = elements.string()?;
        let name = elements.u32()? as usize;
        let name = self.strings.get(name).copied().ok_or(elements.bad("a name's index is not in the table"))?;
        Ok((name, value))
    }

    fn to_owned(self) -> Vec<Datum> {
        self.map(|(name, value)| Datum::new(name, value)).collect()
    }
}

impl<'v> Iterator for Data<'v> {
    type Item = (&'v str, &'v str);

    fn next(&mut self) -> Option<(&'v str, &'v str)> {
        self.left = self.left.checked_sub(1)?;
        let mut rest = self.rest?;
        // The reader of the record has checked it, so there is no error to report.
        let datum = self.datum(&mut rest).ok()?;
        self.rest = Some(rest);
        Some(datum)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Data<'_> {}

impl fmt::Debug for Data<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(*self).finish()
    }
}

#[allow(missing_docs)] // Each is the field of LogRecord of the same name.
impl<'v> RecordView<'v> {
    pub fn time(&self) -> Time {
        self.time
    }

    /// Returns the record's id, unless the records of its origin have none.
    pub fn id(&self) -> Option<RecordId> {
        let incarnation = self.origin.incarnation()?;
        Some(RecordId { incarnation, ring: self.ring, number: self.number })
    }

    pub fn ring(&self) -> u32 {
        self.ring
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn level(&self) -> Level {
        self.level
    }

    pub fn priority(&self) -> Option<u8> {
        self.priority
    }

    pub fn message(&self) -> &'v str {
        self.message
    }

    /// Values that the record shares with others: logger, file, host, audiences...
    pub fn origin(&self) -> OriginView<'v> {
        self.origin
    }

    pub fn data(&self) -> Data<'v> {
        self.data
    }

    /// Returns true if the record has a value that most records lack: reception, stack, log id, trace, archive,
    /// attributes.
    pub fn has_extras(&self) -> bool {
        self.extras.is_some()
    }

    fn extras(&self) -> Option<Extras<'v>> {
        let mut part = self.extras?;
        Extras::read(self.origin.batch, &mut part).ok()
    }

    pub fn received(&self) -> Option<Time> {
        self.extras().and_then(|extras| extras.received)
    }

    pub fn stack_id(&self) -> &'v str {
        self.extras().map_or("", |extras| extras.stack_id)
    }

    pub fn stack_level(&self) -> Option<i32> {
        self.extras().and_then(|extras| extras.stack_level)
    }

    pub fn log_id(&self) -> &'v str {
        self.extras().map_or("", |extras| extras.log_id)
    }

    pub fn trace_id(&self) -> Option<[u8; 16]> {
        self.extras().and_then(|extras| extras.trace_id)
    }

    pub fn span_id(&self) -> Option<[u8; 8]> {
        self.extras().and_then(|extras| extras.span_id)
    }

    pub fn archive(&self) -> Option<ArchiveView<'v>> {
        self.extras().and_then(|extras| extras.archive)
    }

    pub fn attributes(&self) -> Data<'v> {
        self.extras().map_or(Data::none(), |extras| extras.attributes)
    }

    /// Returns the members of the record that a later release has added, unchanged.
    pub fn unknown(&self) -> &'v [u8] {
        self.unknown
    }

    /// Returns the bytes of text of the record as a value of its own; a batch may hold far fewer.
    pub fn expanded_len(&self) -> usize {
        let data = |data: Data<'_>| data.map(|(name, value)| name.len() + value.len()).sum::<usize>();
        let origin = self.origin.expanded_len();
        origin + self.message.len() + data(self.data) + data(self.attributes()) + self.stack_id().len() + self.log_id().len()
    }

    /// The record as a value of its own.
    pub fn to_record(&self) -> LogRecord {
        let origin = self.origin;
        let extras = self.extras();
        let extras = extras.as_ref();
        let mut record = LogRecord {
            id: self.id(),
            time: self.time,
            received: extras.and_then(|extras| extras.received),
            level: self.level,
            priority: self.priority,
            message: self.message.to_owned(),
            line: origin.line(),
            audiences: origin.audiences().map(str::to_owned).collect(),
            stack_id: extras.map_or("", |extras| extras.stack_id).to_owned(),
            stack_level: extras.and_then(|extras| extras.stack_level),
            log_id: extras.map_or("", |extras| extras.log_id).to_owned(),
            trace_id: extras.and_then(|extras| extras.trace_id),
            span_id: extras.and_then(|extras| extras.span_id),
            data: self.data.to_owned(),
            archive: extras.and_then(|extras| extras.archive).map(|archive| ArchiveParameter {
                object: archive.object.to_owned(),
                parameter: archive.parameter.to_owned(),
                r#type: archive.r#type.to_owned(),
            }),
            attributes: extras.map_or(Data::none(), |extras| extras.attributes).to_owned(),
            unknown: self.unknown.to_vec(),
            unknown_origin: origin.unknown().to_vec(),
            ..LogRecord::default()
        };
        for field in RecordField::ALL {
            if let (Some(text), Some(member)) = (origin.text(field), field.text_mut(&mut record)) {
                text.clone_into(member);
            }
        }
        record
    }

    /// The text of this field; `None` if it is not a text.
    #[inline]
    pub fn text(&self, field: RecordField) -> Option<&'v str> {
        match field {
            RecordField::Message => Some(self.message),
            RecordField::StackId => Some(self.stack_id()),
            RecordField::LogId => Some(self.log_id()),
            other => self.origin.text(other),
        }
    }
}

impl fmt::Debug for RecordView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_record().fmt(f)
    }
}

/// Values that records of one place have in common. A view is cheap to copy; two records have equal ones exactly if
/// [`OriginView::index`] is equal.
#[derive(Clone, Copy)]
pub struct OriginView<'v> {
    batch: &'v LogBatchView<'v>,
    index: u32,
    origin: &'v Origin<'v>,
}

macro_rules! origin_strings {
    ($($place:literal $name:ident)*) => {
        #[allow(missing_docs)] // Each is the field of LogRecord of the same name.
        impl<'v> OriginView<'v> {
            $(
                pub fn $name(&self) -> &'v str {
                    // Checked when the tables were read.
                    self.batch.strings.get(self.origin.strings[$place] as usize).copied().unwrap_or_default()
                }
            )*
        }
    };
}
origin_strings! {
    0 logger 1 file 2 routine 3 host 4 process 5 thread 6 context 7 source_object 8 array 9 antenna 10 uri 11 run_id
}

impl<'v> OriginView<'v> {
    /// The text of this field; `None` if the field is not a text, or each record has its own.
    #[inline]
    pub fn text(&self, field: RecordField) -> Option<&'v str> {
        let FieldPart::OriginText(place) = field.part() else { return None };
        // Checked when the tables were read.
        let index = *self.origin.strings.get(place)?;
        Some(self.batch.strings.get(index as usize).copied().unwrap_or_default())
    }

    /// Returns its position in the batch's table, from 0: a key for values that a reader computes once an origin.
    pub fn index(&self) -> usize {
        self.index as usize
    }

    /// Places of its texts in [`LogBatchView::strings`], in the order of the IDL ([`FieldPart::OriginText`]).
    pub fn text_indexes(&self) -> &'v [u32; ORIGIN_STRINGS] {
        &self.origin.strings
    }

    /// Returns the indexes of its audiences.
    pub fn audience_indexes(&self) -> impl ExactSizeIterator<Item = u32> + use<'v> {
        self.origin.audiences.chunks_exact(4).map(|index| index.first_chunk().map_or(0, |index| u32::from_le_bytes(*index)))
    }

    /// Line in the source file.
    pub fn line(&self) -> Option<u32> {
        self.origin.line
    }

    /// Incarnation of the writer; `None` if the records have no ids.
    pub fn incarnation(&self) -> Option<Incarnation> {
        let place = (self.origin.incarnation as usize).checked_sub(1)?;
        self.batch.incarnations.get(place).copied()
    }

    /// Returns the audiences; a record without audiences is for everybody.
    pub fn audiences(&self) -> impl ExactSizeIterator<Item = &'v str> + use<'v> {
        let strings = &self.batch.strings;
        self.audience_indexes().map(move |index| strings.get(index as usize).copied().unwrap_or_default())
    }

    fn expanded_len(&self) -> usize {
        let strings =
            self.origin.strings.iter().map(|&index| self.batch.strings.get(index as usize).map_or(0, |text| text.len()));
        strings.sum::<usize>() + self.audiences().map(str::len).sum::<usize>() + self.origin.unknown.len()
    }

    /// Returns the members of the origin that a later release has added, unchanged.
    pub fn unknown(&self) -> &'v [u8] {
        self.origin.unknown
    }
}

impl fmt::Debug for OriginView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.origin.fmt(f)
    }
}
