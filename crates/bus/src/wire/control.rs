//! Heartbeats and acknowledgements: what keeps a writer's and a reader's view of a stream together.
//!
//! Both are addressed to one participant and may be lost; the next one says everything again. A heartbeat is also the offer
//! of a stream: where the reader's part of it begins, what the writer still has, and what it has written. Layouts are in
//! `spec/wire/control.md`.

use tampu_types::Incarnation;

use super::cursor::{BadMessage, Cursor, put_text};

const HEARTBEAT: [u8; 3] = [b'T', b'H', 1];
const ACKNOWLEDGEMENT: [u8; 3] = [b'T', b'A', 1];

/// What a writer's participant says to a reader's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heartbeat {
    /// Who says it.
    pub from: Incarnation,
    /// Its stable name.
    pub source: String,
    /// Where direct links to it go; empty if there are none.
    pub direct: String,
    /// Whether it is leaving in order: there will be no unknown tail.
    pub leaving: bool,
    /// Its streams that concern the addressee.
    pub offers: Vec<Offer>,
}

/// One stream, for one reader.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Offer {
    /// Which of the addressee's readers.
    pub reader: u32,
    /// Which stream.
    pub stream: u32,
    /// The first sample that is the reader's by right; earlier ones are history.
    pub start: u64,
    /// The oldest sample the writer still has.
    pub lowest: u64,
    /// The number after the last sample sent.
    pub next: u64,
    /// How far the writer runs ahead, in bytes: the reader acknowledges several times within it.
    pub credit: u32,
    /// What its samples are.
    pub type_id: u32,
    /// Which release of that type.
    pub type_version: u16,
    /// Whether the writer wants to be answered now.
    pub answer_now: bool,
    /// Whether the writer sees in shared memory how far the reader is, so that messages about it may be rare.
    pub watches: bool,
    /// Whether the writer puts its batches on a board in shared memory.
    pub board: bool,
    /// Its topic.
    pub topic: String,
    /// The key of its partition.
    pub partition: String,
}

/// What a reader's participant answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Acknowledgement {
    /// Who says it.
    pub from: Incarnation,
    /// How far its readers are.
    pub marks: Vec<Mark>,
}

/// How far one reader is in one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// Which of the sender's readers.
    pub reader: u32,
    /// Which of the addressee's streams.
    pub stream: u32,
    /// The first sample it has not acknowledged: all before it are, or were told lost.
    pub next: u64,
    /// Whether it cannot map the writer's shared memory and needs copies.
    pub needs_copies: bool,
    /// Whether it is leaving in order and need not be waited for.
    pub leaving: bool,
    /// Whether it has a direct link and needs nothing through the node.
    pub linked: bool,
    /// Whether it takes the batches from the writer's board, by this slot's news, and need not be sent them.
    pub attached: bool,
    /// The slot of its progress page that says the same; 0 where there is none.
    pub slot: u32,
}

/// A control message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// From a writer.
    Heartbeat(Heartbeat),
    /// From a reader.
    Acknowledgement(Acknowledgement),
}

impl Heartbeat {
    /// Writes it down.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + 80 * self.offers.len());
        out.extend_from_slice(&HEARTBEAT);
        out.push(u8::from(self.leaving));
        out.extend_from_slice(&self.from.to_bytes());
        put_text(&mut out, &self.source);
        put_text(&mut out, &self.direct);
        out.extend_from_slice(&(self.offers.len() as u32).to_le_bytes());
        for offer in &self.offers {
            out.extend_from_slice(&offer.reader.to_le_bytes());
            out.extend_from_slice(&offer.stream.to_le_bytes());
            out.extend_from_slice(&offer.start.to_le_bytes());
            out.extend_from_slice(&offer.lowest.to_le_bytes());
            out.extend_from_slice(&offer.next.to_le_bytes());
            out.extend_from_slice(&offer.credit.to_le_bytes());
            out.extend_from_slice(&offer.type_id.to_le_bytes());
            out.extend_from_slice(&offer.type_version.to_le_bytes());
            out.push(u8::from(offer.answer_now) | u8::from(offer.watches) << 1 | u8::from(offer.board) << 2);
            put_text(&mut out, &offer.topic);
            put_text(&mut out, &offer.partition);
        }
        out
    }
}

impl Acknowledgement {
    /// Writes it down.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24 + 21 * self.marks.len());
        out.extend_from_slice(&ACKNOWLEDGEMENT);
        out.push(0);
        out.extend_from_slice(&self.from.to_bytes());
        out.extend_from_slice(&(self.marks.len() as u32).to_le_bytes());
        for mark in &self.marks {
            out.extend_from_slice(&mark.reader.to_le_bytes());
            out.extend_from_slice(&mark.stream.to_le_bytes());
            out.extend_from_slice(&mark.next.to_le_bytes());
            let (low, high) = (u8::from(mark.needs_copies) | u8::from(mark.leaving) << 1, u8::from(mark.linked) << 2);
            out.push(low | high | u8::from(mark.attached) << 3);
            out.extend_from_slice(&mark.slot.to_le_bytes());
        }
        out
    }
}

impl Control {
    /// Reads either; bytes behind the last entry are a later release's and are not looked at.
    pub fn decode(bytes: &[u8]) -> Result<Control, BadMessage> {
        let mut cursor = Cursor::new(bytes);
        let kind = cursor.bytes(3, "kind")?;
        let flag = cursor.u8("flag")? != 0;
        let from = cursor.incarnation("sender")?;
        if kind == HEARTBEAT {
            let source = cursor.text("source")?.to_owned();
            let direct = cursor.text("direct endpoint")?.to_owned();
            let count = cursor.u32("count")?;
            // Entries are read one by one, so a count beyond the bytes ends in an error and not in an allocation.
            let offers = (0..count).map(|_| decode_offer(&mut cursor)).collect::<Result<Vec<_>, _>>()?;
            return Ok(Control::Heartbeat(Heartbeat { from, source, direct, leaving: flag, offers }));
        }
        if kind == ACKNOWLEDGEMENT {
            let count = cursor.u32("count")?;
            let marks = (0..count).map(|_| decode_mark(&mut cursor)).collect::<Result<Vec<_>, _>>()?;
            return Ok(Control::Acknowledgement(Acknowledgement { from, marks }));
        }
        Err(BadMessage::Senseless("kind"))
    }
}

fn decode_offer(cursor: &mut Cursor<'_>) -> Result<Offer, BadMessage> {
    let mut offer = Offer {
        reader: cursor.u32("offer's reader")?,
        stream: cursor.u32("offer's stream")?,
        start: cursor.u64("offer's start")?,
        lowest: cursor.u64("offer's lowest")?,
        next: cursor.u64("offer's next")?,
        credit: cursor.u32("offer's credit")?,
        type_id: cursor.u32("offer's type")?,
        type_version: cursor.u16("offer's type version")?,
        ..Offer::default()
    };
    let flags = cursor.u8("offer's flags")?;
    (offer.answer_now, offer.watches, offer.board) = (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0);
    offer.topic = cursor.text("offer's topic")?.to_owned();
    offer.partition = cursor.text("offer's partition")?.to_owned();
    let ordered = offer.lowest <= offer.next && offer.start <= offer.next;
    if ordered { Ok(offer) } else { Err(BadMessage::Senseless("offer's range")) }
}

fn decode_mark(cursor: &mut Cursor<'_>) -> Result<Mark, BadMessage> {
    let (reader, stream) = (cursor.u32("mark's reader")?, cursor.u32("mark's stream")?);
    let (next, flags) = (cursor.u64("mark's next")?, cursor.u8("mark's flags")?);
    let slot = cursor.u32("mark's slot")?;
    let [needs_copies, leaving, linked, attached] = [1, 2, 4, 8].map(|bit| flags & bit != 0);
    Ok(Mark { reader, stream, next, needs_copies, leaving, linked, attached, slot })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn heartbeat() -> Heartbeat {
        let offer = Offer {
            reader: 1,
            stream: 2,
            start: 3,
            lowest: 0,
            next: 5,
            credit: 6,
            type_id: 1,
            type_version: 1,
            answer_now: true,
            watches: true,
            board: true,
            topic: "log/info".to_owned(),
            partition: ".operator.".to_owned(),
        };
        let from = Incarnation { boot: 7, pid: 8, start: 9 };
        Heartbeat { from, source: "DV01".to_owned(), direct: String::new(), leaving: true, offers: vec![offer.clone(), offer] }
    }

    #[test]
    fn messages_lead_back() {
        assert_eq!(Control::decode(&heartbeat().encode()), Ok(Control::Heartbeat(heartbeat())));
        let mark =
            Mark { reader: 1, stream: 2, next: 3, needs_copies: true, leaving: false, linked: true, attached: true, slot: 4 };
        let acknowledgement = Acknowledgement { from: heartbeat().from, marks: vec![mark; 3] };
        assert_eq!(Control::decode(&acknowledgement.encode()), Ok(Control::Acknowledgement(acknowledgement)));
    }

    proptest! {
        #[test]
        fn hostile_messages_are_errors(at in 0usize..200, byte: u8, cut in 0usize..200) {
            let mut bytes = heartbeat().encode();
            let place = at % bytes.len();
            bytes[place] = byte;
            bytes.truncate(cut);
            let _ = Control::decode(&bytes);
        }
    }
}
