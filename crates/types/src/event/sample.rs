//! An event in the encoding of the wire.
//!
//! ```text
//!  0  00 09 00 00     D_CDR2_LE
//!  4  u32  DHEADER    bytes that follow
//!  8  u32  attribute  its number in this life of its server
//! 12  u32  epoch      of the configuration that holds
//! 16  i64  time       of the reading, ns UTC
//! 24  u64  number     of the event: counts for each attribute
//! 32  u32  kinds      a bit each
//! 36  u8   quality, u8 format, u8 flags, u8 0
//! 40  u32  x, u32 y
//! 48  u32  data type, 0 for no value
//! 52  u32  count
//! 56       the elements
//!          set point, errors, token, name: an octet 0 each where there is none, an octet 1 before each that is there
//!          u64 left_out, u64 age, at the next multiple of 4; absent where they are 0
//! ```
//! The elements begin at a multiple of 8. Where the sample does too (in a loan), they are read and written as a slice.
//! Therefore everything of fixed length precedes them, and `x`, `y` take two words where one would do.

use zerocopy::{Immutable, IntoBytes};

use super::{
    data::{DataType, DevState, Shape},
    failure::{Failure, STACK_LIMIT, TEXT_LIMIT},
    kind::Kinds,
    quality::Quality,
    value::{Data, Value},
};
use crate::{
    Time,
    cdr::{ENCAPSULATION, encode},
};

/// Offset of the elements in bytes.
pub const ELEMENTS_AT: usize = 56;
/// The longest value, bytes of its elements.
pub const VALUE_LIMIT: usize = 512 << 20;
/// The longest name of a generic event, bytes.
pub const GENERIC_NAME_LIMIT: usize = 255;
/// Bytes behind the elements of an event that has nothing there.
const PLAIN_TAIL: usize = 4;

/// The current value, sent on request: not new to a subscriber that has its number.
pub const FLAG_REFRESH: u8 = 1;

/// With [`FLAG_REFRESH`]: the value is absent here. It is that of the event of this number, which is earlier in the
/// same stream.
pub const FLAG_IN_STREAM: u8 = 2;

/// A message instead of a reading, such as a report of missed events. It arrives like events of its kind, and the
/// current value does not change.
pub const FLAG_REMARK: u8 = 4;

/// Reason for which a value cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadValue {
    /// The number of elements is not the shape's.
    #[error("{elements} elements do not fit the shape {shape}")]
    Shape {
        /// Number of elements.
        elements: usize,
        /// Shape that was declared for them.
        shape: Shape,
    },
    /// A text that is too long.
    #[error("the {what} has {length} bytes; {limit} are allowed")]
    Long {
        /// Part that is too long.
        what: &'static str,
        /// Length of that part.
        length: usize,
        /// The longest allowed.
        limit: usize,
    },
    /// The stack of errors is too high.
    #[error("the stack has {0} errors; {STACK_LIMIT} are allowed")]
    Stack(usize),
}

/// An event to be written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EventSample<'a> {
    /// The attribute's number in this life of its server; see [`super::Declaration`].
    pub attribute: u32,
    /// The configuration's epoch.
    pub epoch: u32,
    /// Time of the reading.
    pub time: Time,
    /// Number of the event among those of its attribute, from 1; 0 before its first event.
    pub number: u64,
    /// Kinds of this event.
    pub kinds: Kinds,
    /// Quality of the reading.
    pub quality: Quality,
    /// Bits such as [`FLAG_REFRESH`].
    pub flags: u8,
    /// The reading; none where there is an error, or the quality is invalid.
    pub value: Option<Value<'a>>,
    /// Value written to the attribute last.
    pub set_point: Option<Data<'a>>,
    /// Errors because of which there is no reading, innermost first.
    pub errors: &'a [Failure],
    /// Token of the question that this event answers.
    pub token: Option<u64>,
    /// The name of a generic event.
    pub name: &'a str,
    /// Number of the attribute's events that were left out of this stream directly before this one, because no reader of
    /// the stream wants them. For a current value it counts the events up to its number.
    pub left_out: u64,
    /// Of a current value: time in ns since the attribute was declared in this life of its server, by a clock that no step
    /// moves; at least 1.
    pub age: u64,
}

impl<'a> EventSample<'a> {
    /// A good reading of an attribute; the rest is empty.
    pub fn of(attribute: u32, value: Value<'a>) -> EventSample<'a> {
        EventSample { value: Some(value), ..EventSample::without_value(attribute) }
    }

    /// An event of an attribute that has no reading.
    pub fn without_value(attribute: u32) -> EventSample<'a> {
        EventSample {
            attribute,
            epoch: 0,
            time: Time(0),
            number: 0,
            kinds: Kinds::NONE,
            quality: Quality::Valid,
            flags: 0,
            value: None,
            set_point: None,
            errors: &[],
            token: None,
            name: "",
            left_out: 0,
            age: 0,
        }
    }

    /// Writes the event into `out`, whose content is replaced.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), BadValue> {
        self.check()?;
        out.clear();
        self.put_head(out);
        if let Some(value) = self.value {
            put_value(out, value.data);
        } else {
            encode::u32(out, 0);
        }
        self.put_tail(out);
        end_sample(out);
        append_counts(out, self.left_out, self.age);
        Ok(())
    }

    fn check(&self) -> Result<(), BadValue> {
        if let Some(Value { data, shape }) = self.value {
            if data.len() as u64 != shape.elements() {
                return Err(BadValue::Shape { elements: data.len(), shape });
            }
            check_length("value", data)?;
        }
        if let Some(data) = self.set_point {
            check_length("set point", data)?;
        }
        let long = |what, text: &str, limit| match text.len() {
            length if length > limit => Err(BadValue::Long { what, length, limit }),
            _ => Ok(()),
        };
        long("name", self.name, GENERIC_NAME_LIMIT)?;
        if self.errors.len() > STACK_LIMIT {
            return Err(BadValue::Stack(self.errors.len()));
        }
        for failure in self.errors {
            long("reason", &failure.reason, TEXT_LIMIT)?;
            long("description", &failure.description, TEXT_LIMIT)?;
            long("origin", &failure.origin, TEXT_LIMIT)?;
        }
        Ok(())
    }

    /// Everything before the data type.
    #[inline]
    fn put_head(&self, out: &mut Vec<u8>) {
        let shape = self.value.map_or(Shape::NOTHING, |value| value.shape);
        let mut head = [0; 48];
        let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &ENCAPSULATION);
        put(8, &self.attribute.to_le_bytes());
        put(12, &self.epoch.to_le_bytes());
        put(16, &self.time.0.to_le_bytes());
        put(24, &self.number.to_le_bytes());
        put(32, &self.kinds.0.to_le_bytes());
        put(36, &[self.quality as u8, shape.format as u8, self.flags, 0]);
        put(40, &shape.x.to_le_bytes());
        put(44, &shape.y.to_le_bytes());
        out.extend_from_slice(&head);
    }

    /// Everything behind the elements.
    #[inline]
    fn put_tail(&self, out: &mut Vec<u8>) {
        match self.set_point {
            None => out.push(0),
            Some(data) => {
                out.push(1);
                encode::align(out);
                put_value(out, data);
            }
        }
        if self.errors.is_empty() {
            out.push(0);
        } else {
            out.push(1);
            let start = encode::begin(out);
            encode::u32(out, self.errors.len() as u32);
            for failure in self.errors {
                encode::string(out, &failure.reason);
                encode::string(out, &failure.description);
                encode::string(out, &failure.origin);
                out.push(failure.severity as u8);
            }
            encode::end(out, start);
        }
        match self.token {
            None => out.push(0),
            Some(token) => {
                out.push(1);
                encode::u64(out, token);
            }
        }
        if self.name.is_empty() {
            out.push(0);
        } else {
            out.push(1);
            encode::string(out, self.name);
        }
    }

    /// Writes everything but the elements into a sample with room for `bytes` of them, such as a loan. The caller fills
    /// the elements, at [`ELEMENTS_AT`]. `shape` and `data_type` describe them. The event's own value, set point,
    /// errors, token, name and `left_out` are ignored.
    pub fn encode_around(&self, into: &mut [u8], data_type: DataType, shape: Shape) -> Result<(), BadValue> {
        let bytes = shape.elements() as usize * data_type.width().unwrap_or(0);
        if into.len() != len_around(bytes) || data_type.width().is_none() {
            return Err(BadValue::Shape { elements: into.len(), shape });
        }
        let mut head = Vec::with_capacity(ELEMENTS_AT);
        self.put_head(&mut head);
        head[37] = shape.format as u8;
        head[40..44].copy_from_slice(&shape.x.to_le_bytes());
        head[44..48].copy_from_slice(&shape.y.to_le_bytes());
        encode::u32(&mut head, u32::from(data_type as u8));
        encode::u32(&mut head, shape.elements() as u32);
        let length = (into.len() - 8) as u32;
        head[4..8].copy_from_slice(&length.to_le_bytes());
        into[..ELEMENTS_AT].copy_from_slice(&head);
        into[ELEMENTS_AT + bytes..].fill(0);
        Ok(())
    }
}

/// Adds the members [`EventSample::left_out`] and [`EventSample::age`] to an encoded event without them, as far as they are not 0.
pub fn append_counts(event: &mut Vec<u8>, left_out: u64, age: u64) {
    if left_out == 0 && age == 0 {
        return;
    }
    append_members(event, left_out, Some(age).filter(|age| *age > 0));
}

pub(super) fn append_members(event: &mut Vec<u8>, left_out: u64, age: Option<u64>) {
    // The padding of an event ends where these members are aligned.
    event.extend_from_slice(&left_out.to_le_bytes());
    if let Some(age) = age {
        event.extend_from_slice(&age.to_le_bytes());
    }
    let length = (event.len() - 8) as u32;
    event[4..8].copy_from_slice(&length.to_le_bytes());
}

/// Length in bytes of a sample with this many bytes of elements and nothing behind them.
pub fn len_around(bytes: usize) -> usize {
    (ELEMENTS_AT + bytes + PLAIN_TAIL).next_multiple_of(4)
}

fn check_length(what: &'static str, data: Data<'_>) -> Result<(), BadValue> {
    let length = data.size();
    if length > VALUE_LIMIT { Err(BadValue::Long { what, length, limit: VALUE_LIMIT }) } else { Ok(()) }
}

/// The data type and the elements: a union in the IDL.
#[inline]
fn put_value(out: &mut Vec<u8>, data: Data<'_>) {
    fn numbers<T: IntoBytes + Immutable, const N: usize>(out: &mut Vec<u8>, all: &[T], le: fn(&T) -> [u8; N]) {
        encode::u32(out, all.len() as u32);
        if cfg!(target_endian = "little") {
            out.extend_from_slice(all.as_bytes());
        } else {
            all.iter().for_each(|number| out.extend_from_slice(&le(number)));
        }
    }
    encode::u32(out, u32::from(data.data_type() as u8));
    match data {
        Data::Boolean(all) => numbers(out, all, |&one| [u8::from(one)]),
        Data::UChar(all) => numbers(out, all, |&one| [one]),
        Data::Short(all) | Data::Enum(all) => numbers(out, all, |one| one.to_le_bytes()),
        Data::UShort(all) => numbers(out, all, |one| one.to_le_bytes()),
        Data::Long(all) => numbers(out, all, |one| one.to_le_bytes()),
        Data::ULong(all) => numbers(out, all, |one| one.to_le_bytes()),
        Data::Long64(all) => numbers(out, all, |one| one.to_le_bytes()),
        Data::ULong64(all) => numbers(out, all, |one| one.to_le_bytes()),
        Data::Float(all) => numbers(out, all, |one| one.to_le_bytes()),
        Data::Double(all) => numbers(out, all, |one| one.to_le_bytes()),
        Data::State(all) => {
            encode::u32(out, all.len() as u32);
            out.extend(all.iter().map(|&state: &DevState| state as u8));
        }
        Data::String(all) => {
            let start = encode::begin(out);
            encode::u32(out, all.len() as u32);
            all.iter().for_each(|text| encode::string(out, text));
            encode::end(out, start);
        }
        Data::Encoded { format, data } => {
            encode::string(out, format);
            encode::u32(out, data.len() as u32);
            out.extend_from_slice(data);
        }
    }
}

/// Pads the sample to where a later release's members may begin, and writes its length.
fn end_sample(out: &mut Vec<u8>) {
    encode::align(out);
    let length = (out.len() - 8) as u32;
    out[4..8].copy_from_slice(&length.to_le_bytes());
}
