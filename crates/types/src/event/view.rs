//! An event at its receiver. It copies and allocates nothing but the list of errors, if there is one.

use super::{
    data::{DataType, Format, Shape},
    elements::{Elements, Number, Strings, ValueView},
    failure::{Failure, STACK_LIMIT, Severity, TEXT_LIMIT},
    kind::Kinds,
    quality::Quality,
    sample::{FLAG_REFRESH, GENERIC_NAME_LIMIT, append_members},
    value::{Value, Values},
};
use crate::{
    Time,
    cdr::{BadCdr, Decoder},
};

/// An event, read in place.
#[derive(Debug, Clone)]
pub struct EventView<'a> {
    /// Number of the attribute, as in [`super::EventSample`].
    pub attribute: u32,
    /// The configuration's epoch.
    pub epoch: u32,
    /// Time of the reading.
    pub time: Time,
    /// The event's number among those of its attribute.
    pub number: u64,
    /// Kinds of this event; bits of later releases are kept.
    pub kinds: Kinds,
    /// Quality of the reading.
    pub quality: Quality,
    /// Flags; those of later releases are kept.
    pub flags: u8,
    /// Arrangement of the value.
    pub shape: Shape,
    /// Value that was read.
    pub value: Option<ValueView<'a>>,
    /// Value written to the attribute last.
    pub set_point: Option<ValueView<'a>>,
    /// Errors because of which there is no reading.
    pub errors: Vec<Failure>,
    /// Token of the question that this event answers.
    pub token: Option<u64>,
    /// The name of a generic event.
    pub name: &'a str,
    /// Number of the events left out before it, as in [`super::EventSample`].
    pub left_out: u64,
    /// Age of the attribute, as in [`super::EventSample`]; 0 if it is not told.
    pub age: u64,
    /// Members of a later release, unchanged.
    pub unknown: &'a [u8],
}

/// Members needed for routing: attribute, number and kinds, without looking at the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Routing {
    /// The attribute's number in this life of its server.
    pub attribute: u32,
    /// The event's number among those of its attribute.
    pub number: u64,
    /// Kinds of this event.
    pub kinds: Kinds,
    /// Bits such as [`FLAG_REFRESH`].
    pub flags: u8,
}

impl Routing {
    /// Reads it from the head of a sample.
    #[inline]
    pub fn of(bytes: &[u8]) -> Option<Routing> {
        let head: &[u8; 40] = bytes.first_chunk()?;
        if head[..2] != [0, 9] {
            return None;
        }
        let four = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
        let number = u64::from(u32::from_le_bytes(four(24))) | u64::from(u32::from_le_bytes(four(28))) << 32;
        Some(Routing {
            attribute: u32::from_le_bytes(four(8)),
            number,
            kinds: Kinds(u32::from_le_bytes(four(32))),
            flags: head[38],
        })
    }
}

impl<'a> EventView<'a> {
    /// Reads an event and checks all of it.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<EventView<'a>, BadCdr> {
        let mut all = Decoder::new(bytes)?;
        let mut at = all.delimited()?;
        let [attribute, epoch, time_low, time_high, number_low, number_high, kinds] = at.u32s()?;
        let [quality, format, flags, _] = [at.u8()?, at.u8()?, at.u8()?, at.u8()?];
        let [x, y] = at.u32s()?;
        let wide = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let format = Format::from_number(format).ok_or(BadCdr { at: 37, what: "unknown format" })?;
        let value = read_value(&mut at)?;
        let shape = match &value {
            Some(value) => {
                let shape = Shape { format, x, y };
                if value.len() as u64 != shape.elements() {
                    return Err(BadCdr { at: 40, what: "the shape is not that of the elements" });
                }
                shape
            }
            None => Shape::NOTHING,
        };
        let set_point = if at.present()? { read_value(&mut at)? } else { None };
        let errors = if at.present()? { failures(at.delimited()?)? } else { Vec::new() };
        let token = if at.present()? { Some(at.u64()?) } else { None };
        let name = if at.present()? { at.string()? } else { "" };
        if name.len() > GENERIC_NAME_LIMIT {
            return Err(at.bad("a name is too long"));
        }
        let rest = unknown(at);
        let member = |rest: &'a [u8]| match rest.split_first_chunk() {
            Some((member, rest)) => (u64::from_le_bytes(*member), rest),
            None => (0, rest),
        };
        let (left_out, rest) = member(rest);
        let (age, unknown) = member(rest);
        Ok(EventView {
            attribute,
            epoch,
            time: Time(wide(time_low, time_high).cast_signed()),
            number: wide(number_low, number_high),
            kinds: Kinds(kinds),
            quality: Quality::from_number(quality),
            flags,
            shape,
            value,
            set_point,
            errors,
            token,
            name,
            left_out,
            age,
            unknown,
        })
    }

    /// Returns true if this is the current value, sent because a subscriber asked for it.
    pub fn is_refresh(&self) -> bool {
        self.flags & FLAG_REFRESH != 0
    }

    /// Copies the event.
    pub fn to_event(&self) -> OwnedEvent {
        OwnedEvent {
            attribute: self.attribute,
            epoch: self.epoch,
            time: self.time,
            number: self.number,
            kinds: self.kinds,
            quality: self.quality,
            flags: self.flags,
            shape: self.shape,
            value: self.value.map(|value| value.to_values()),
            set_point: self.set_point.map(|value| value.to_values()),
            errors: self.errors.clone(),
            token: self.token,
            name: self.name.to_owned(),
            left_out: self.left_out,
            age: self.age,
            unknown: self.unknown.to_vec(),
        }
    }
}

/// An event, owned.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the members are those of EventView")]
pub struct OwnedEvent {
    pub attribute: u32,
    pub epoch: u32,
    pub time: Time,
    pub number: u64,
    pub kinds: Kinds,
    pub quality: Quality,
    pub flags: u8,
    pub shape: Shape,
    pub value: Option<Values>,
    pub set_point: Option<Values>,
    pub errors: Vec<Failure>,
    pub token: Option<u64>,
    pub name: String,
    pub left_out: u64,
    pub age: u64,
    pub unknown: Vec<u8>,
}

impl OwnedEvent {
    /// Returns the event for writing; members of a later release are omitted.
    pub fn as_sample(&self) -> super::EventSample<'_> {
        super::EventSample {
            attribute: self.attribute,
            epoch: self.epoch,
            time: self.time,
            number: self.number,
            kinds: self.kinds,
            quality: self.quality,
            flags: self.flags,
            value: self.value.as_ref().map(|values| Value { data: values.as_data(), shape: self.shape }),
            set_point: self.set_point.as_ref().map(Values::as_data),
            errors: &self.errors,
            token: self.token,
            name: &self.name,
            left_out: self.left_out,
            age: self.age,
        }
    }

    /// Writes the event, with the members of a later release unchanged.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), super::BadValue> {
        if self.unknown.is_empty() {
            return self.as_sample().encode(out);
        }
        super::EventSample { left_out: 0, age: 0, ..self.as_sample() }.encode(out)?;
        append_members(out, self.left_out, Some(self.age));
        out.extend_from_slice(&self.unknown);
        let length = (out.len() - 8) as u32;
        out[4..8].copy_from_slice(&length.to_le_bytes());
        Ok(())
    }
}

/// Bytes that a later release has put behind the known members: from the next multiple of 4.
pub(super) fn unknown(at: Decoder<'_>) -> &[u8] {
    let padding = at.position().next_multiple_of(4) - at.position();
    at.rest().get(padding..).unwrap_or_default()
}

#[inline]
fn read_value<'a>(at: &mut Decoder<'a>) -> Result<Option<ValueView<'a>>, BadCdr> {
    fn numbers<'a, T: Number>(at: &mut Decoder<'a>) -> Result<Elements<'a, T>, BadCdr> {
        let count = at.count(size_of::<T>())?;
        Ok(Elements::new(at.octets(count * size_of::<T>())?))
    }
    fn octets<'a>(at: &mut Decoder<'a>) -> Result<&'a [u8], BadCdr> {
        let count = at.count(1)?;
        at.octets(count)
    }
    // The discriminator is an octet, and the padding behind it is ignored.
    let number = (at.u32()? & 0xff) as u8;
    if number == 0 {
        return Ok(None);
    }
    let data_type = DataType::from_number(number).ok_or_else(|| at.bad("unknown data type"))?;
    Ok(Some(match data_type {
        DataType::Boolean => ValueView::Boolean(octets(at)?),
        DataType::UChar => ValueView::UChar(octets(at)?),
        DataType::Short => ValueView::Short(numbers(at)?),
        DataType::UShort => ValueView::UShort(numbers(at)?),
        DataType::Long => ValueView::Long(numbers(at)?),
        DataType::ULong => ValueView::ULong(numbers(at)?),
        DataType::Long64 => ValueView::Long64(numbers(at)?),
        DataType::ULong64 => ValueView::ULong64(numbers(at)?),
        DataType::Float => ValueView::Float(numbers(at)?),
        DataType::Double => ValueView::Double(numbers(at)?),
        DataType::Enum => ValueView::Enum(numbers(at)?),
        DataType::State => ValueView::State(octets(at)?),
        DataType::Encoded => ValueView::Encoded { format: at.string()?, data: octets(at)? },
        DataType::String => {
            let mut texts = at.delimited()?;
            // A length, and the closing zero.
            let count = texts.count(5)?;
            ValueView::String(Strings::checked(texts, count)?)
        }
    }))
}

fn failures(mut at: Decoder<'_>) -> Result<Vec<Failure>, BadCdr> {
    let count = at.count(16)?;
    if count > STACK_LIMIT {
        return Err(at.bad("too many errors"));
    }
    let text = |at: &mut Decoder<'_>| match at.string()? {
        long if long.len() > TEXT_LIMIT => Err(at.bad("an error's text is too long")),
        text => Ok(text.to_owned()),
    };
    let read = |at: &mut Decoder<'_>| {
        Ok(Failure { reason: text(at)?, description: text(at)?, origin: text(at)?, severity: Severity::from_number(at.u8()?) })
    };
    (0..count).map(|_| read(&mut at)).collect()
}
