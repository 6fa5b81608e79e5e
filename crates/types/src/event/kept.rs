//! An event as a history stores it: with all data that a subscriber receives beside it, so that it can be read alone.
//!
//! ```text
//!  0  00 09 00 00      D_CDR2_LE
//!  4  u32  DHEADER     bytes that follow
//!  8  u8   reason, u8 clock state, u8 0, u8 0
//! 12  u32  attribute   its number in this incarnation of its server
//! 16  u64  from        the first number it stands for, 0 for none
//! 24  u64  number      the last: that of the event
//! 32  i64  time        of the reading, ns UTC; of a message without a reading, when it was received
//! 40  i64  received    by whom it is kept, ns UTC
//! 48  u8[16] incarnation
//! 64       source, name, unit, note: strings; event: u32 length, octets
//! ```
//! An event represents the numbers since the previous stored one: those between were of kinds that are not stored. A
//! gap represents lost numbers. So every number of a subscribed attribute is accounted for, and missing ones are
//! visible. Rejected: a batch of samples with a header each, because a query asks for rows of many sources at a time.

use super::reason::Reason;
use crate::{
    ClockState, Incarnation, Time,
    cdr::{BadCdr, Decoder, ENCAPSULATION, encode},
};

/// The longest text of one.
pub const TEXT_LIMIT: usize = 65_536;

/// A stored event, or a message about its source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeptEvent<'a> {
    /// Reason of the event.
    pub reason: Reason,
    /// Trust in the source's clock.
    pub clock: ClockState,
    /// The attribute's number in this life of its server.
    pub attribute: u32,
    /// The first of the attribute's events that it represents; 0 if it represents none.
    pub from: u64,
    /// The last of them: its own.
    pub number: u64,
    /// Time of the reading; of a message without a reading, the time of its arrival.
    pub time: Time,
    /// Time at which the event was received.
    pub received: Time,
    /// Incarnation of the source.
    pub incarnation: Incarnation,
    /// Name of the source.
    pub source: &'a str,
    /// The attribute's name.
    pub name: &'a str,
    /// The unit that held.
    pub unit: &'a str,
    /// The label of a DevEnum; of a gap, the reason; otherwise a remark, mostly empty.
    pub note: &'a str,
    /// The event as it was received; empty without an event.
    pub event: &'a [u8],
}

impl<'a> KeptEvent<'a> {
    /// Writes the event into `out`, whose content is replaced. Texts are cut at [`TEXT_LIMIT`].
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&ENCAPSULATION);
        let start = encode::begin(out);
        let reason = self.reason as u8;
        out.extend([reason, self.clock as u8, 0, 0]);
        encode::u32(out, self.attribute);
        for number in [self.from, self.number, self.time.0.cast_unsigned(), self.received.0.cast_unsigned()] {
            encode::u64(out, number);
        }
        out.extend_from_slice(&self.incarnation.to_bytes());
        for text in [self.source, self.name, self.unit, self.note] {
            encode::string(out, &text[..text.floor_char_boundary(TEXT_LIMIT)]);
        }
        encode::u32(out, self.event.len() as u32);
        out.extend_from_slice(self.event);
        encode::align(out);
        encode::end(out, start);
    }

    /// Reads one. Members of a later release are passed over.
    pub fn parse(bytes: &'a [u8]) -> Result<KeptEvent<'a>, BadCdr> {
        let mut at = Decoder::new(bytes)?.delimited()?;
        let reason = Reason::ALL.get(usize::from(at.u8()?)).copied().ok_or_else(|| at.bad("unknown reason"))?;
        let clock = ClockState::from_number(at.u8()?);
        at.octets(2)?;
        let attribute = at.u32()?;
        let (from, number) = (at.u64()?, at.u64()?);
        let (time, received) = (Time(at.u64()?.cast_signed()), Time(at.u64()?.cast_signed()));
        let incarnation = at.octets(16)?.first_chunk::<16>().copied().ok_or_else(|| at.bad("a life is cut off"))?;
        let text = |at: &mut Decoder<'a>| match at.string()? {
            long if long.len() > TEXT_LIMIT => Err(at.bad("a text is too long")),
            text => Ok(text),
        };
        let (source, name, unit, note) = (text(&mut at)?, text(&mut at)?, text(&mut at)?, text(&mut at)?);
        let count = at.count(1)?;
        let event = at.octets(count)?;
        let incarnation = Incarnation::from_bytes(incarnation);
        Ok(KeptEvent { reason, clock, attribute, from, number, time, received, incarnation, source, name, unit, note, event })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_leads_back_and_what_is_cut_off_is_an_error(
            (reason, attribute, from, number) in (0usize..10, any::<u32>(), any::<u64>(), any::<u64>()),
            (time, received, start) in (any::<i64>(), any::<i64>(), any::<u64>()),
            texts in proptest::array::uniform4("\\PC{0,12}"),
            event in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let kept = KeptEvent {
                reason: Reason::ALL[reason],
                clock: ClockState::Free,
                attribute,
                from,
                number,
                time: Time(time),
                received: Time(received),
                incarnation: Incarnation { boot: 1, pid: 2, start },
                source: &texts[0],
                name: &texts[1],
                unit: &texts[2],
                note: &texts[3],
                event: &event,
            };
            let mut bytes = Vec::new();
            kept.encode(&mut bytes);
            prop_assert_eq!(KeptEvent::parse(&bytes), Ok(kept));
            for cut in 0..bytes.len() {
                prop_assert!(KeptEvent::parse(&bytes[..cut]).is_err());
            }
        }

        #[test]
        fn hostile_bytes_end(mut bytes in proptest::collection::vec(any::<u8>(), 8..120)) {
            let length = bytes.len() as u32 - 8;
            bytes[..4].copy_from_slice(&ENCAPSULATION);
            bytes[4..8].copy_from_slice(&length.to_le_bytes());
            let _ = KeptEvent::parse(&bytes);
        }
    }
}
