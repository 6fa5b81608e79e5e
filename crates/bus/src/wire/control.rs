//! Heartbeats and acknowledgements, which keep a writer's and a reader's view of a stream consistent.
//!
//! Both are addressed to one participant and may be lost; the next one repeats everything. A heartbeat is also the
//! offer of a stream: the start of the reader's part, the samples that the writer still has, and the samples written.
//! Layouts are in `spec/wire/control.md`.

use tampu_types::Incarnation;

use super::cursor::{BadMessage, Cursor, put_text};

const HEARTBEAT: [u8; 3] = [b'T', b'H', 1];
const ACKNOWLEDGEMENT: [u8; 3] = [b'T', b'A', 1];

/// Message of a writer's participant to a reader's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heartbeat {
    /// Incarnation of the sender.
    pub from: Incarnation,
    /// Stable name of the sender.
    pub source: String,
    /// Endpoint for direct links to it; empty if there is none.
    pub direct: String,
    /// State of the sender.
    pub state: SenderState,
    /// Its streams that concern the addressee.
    pub offers: Vec<Offer>,
}

/// State of a writer's participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SenderState {
    /// The process works.
    #[default]
    Present,
    /// It leaves in order, so that there is no unknown tail.
    Left,
    /// It stands for a program that it cannot reach at present.
    Absent,
    /// It stood for a program that counts as dead, and ends.
    Died,
}

impl SenderState {
    fn of(byte: u8) -> SenderState {
        match byte {
            1 => SenderState::Left,
            2 => SenderState::Absent,
            3 => SenderState::Died,
            // A state of a later release: it sends, so it is there.
            _ => SenderState::Present,
        }
    }

    /// Returns true if this is its last heartbeat.
    pub fn is_end(self) -> bool {
        matches!(self, SenderState::Left | SenderState::Died)
    }
}

/// Offer of one stream to one reader.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Offer {
    /// Number of the addressee's reader.
    pub reader: u32,
    /// Number of the stream.
    pub stream: u32,
    /// First sample of the reader's own part; earlier ones are history.
    pub start: u64,
    /// Oldest sample that the writer still has.
    pub lowest: u64,
    /// Number after the last sample sent.
    pub next: u64,
    /// Lead of the writer in bytes: the reader acknowledges several times within it.
    pub credit: u32,
    /// Type of the samples.
    pub type_id: u32,
    /// Version of that type.
    pub type_version: u16,
    /// True if the writer wants an acknowledgement at once.
    pub answer_now: bool,
    /// True if the writer sees the reader's progress in shared memory, so that acknowledgements may be rare.
    pub watches: bool,
    /// True if the writer announces its batches in shared memory.
    pub announces: bool,
    /// True if the writer is about to end: what is missing cannot be requested for long.
    pub ends: bool,
    /// Topic of the stream.
    pub topic: String,
    /// The key of its partition.
    pub partition: String,
}

/// Answer of a reader's participant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Acknowledgement {
    /// Incarnation of the sender.
    pub from: Incarnation,
    /// Positions of its readers.
    pub marks: Vec<Mark>,
}

/// Position of one reader in one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// Number of the sender's reader.
    pub reader: u32,
    /// Number of the addressee's stream.
    pub stream: u32,
    /// First sample that it has not acknowledged. All earlier ones are acknowledged or reported as lost.
    pub next: u64,
    /// True if it cannot map the writer's shared memory and needs copies.
    pub needs_copies: bool,
    /// True if it leaves in order, so that no wait for it is necessary.
    pub leaving: bool,
    /// True if it has a direct link and needs nothing through the node.
    pub linked: bool,
    /// True if it follows the writer's announcements through this slot's news, and needs no batches by message.
    pub attached: bool,
    /// True if the reader gets what a multicast group brings to its host.
    pub grouped: bool,
    /// Slot of its progress page with the same position; 0 without a page.
    pub slot: u32,
    /// First sample that its application has not taken into its memory. A position up to `next` says nothing more than
    /// `next` does.
    pub received: u64,
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
    /// Encodes the heartbeat.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + 80 * self.offers.len());
        out.extend_from_slice(&HEARTBEAT);
        out.push(match self.state {
            SenderState::Present => 0,
            SenderState::Left => 1,
            SenderState::Absent => 2,
            SenderState::Died => 3,
        });
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
            let (low, high) = (u8::from(offer.answer_now) | u8::from(offer.watches) << 1, u8::from(offer.announces) << 2);
            out.push(low | high | u8::from(offer.ends) << 3);
            put_text(&mut out, &offer.topic);
            put_text(&mut out, &offer.partition);
        }
        out
    }
}

impl Acknowledgement {
    /// Encodes the acknowledgement.
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
            out.push(low | high | u8::from(mark.attached) << 3 | u8::from(mark.grouped) << 4);
            out.extend_from_slice(&mark.slot.to_le_bytes());
        }
        if self.marks.iter().any(|mark| mark.received > mark.next) {
            self.marks.iter().for_each(|mark| out.extend_from_slice(&mark.received.to_le_bytes()));
        }
        out
    }
}

impl Control {
    /// Decodes either message. Bytes after the last entry belong to a later release and are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Control, BadMessage> {
        let mut cursor = Cursor::new(bytes);
        let kind = cursor.bytes(3, "kind")?;
        let state = SenderState::of(cursor.u8("state")?);
        let from = cursor.incarnation("sender")?;
        if kind == HEARTBEAT {
            let source = cursor.text("source")?.to_owned();
            let direct = cursor.text("direct endpoint")?.to_owned();
            let count = cursor.u32("count")?;
            // Entries are read one by one, so a count beyond the bytes ends in an error and not in an allocation.
            let offers = (0..count).map(|_| decode_offer(&mut cursor)).collect::<Result<Vec<_>, _>>()?;
            return Ok(Control::Heartbeat(Heartbeat { from, source, direct, state, offers }));
        }
        if kind == ACKNOWLEDGEMENT {
            let count = cursor.u32("count")?;
            let mut marks = (0..count).map(|_| decode_mark(&mut cursor)).collect::<Result<Vec<_>, _>>()?;
            // Earlier releases do not send these positions, and nobody sends them while they say nothing.
            for mark in &mut marks {
                let Ok(received) = cursor.u64("mark's received") else { break };
                mark.received = received;
            }
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
    [offer.answer_now, offer.watches, offer.announces, offer.ends] = [1, 2, 4, 8].map(|bit| flags & bit != 0);
    offer.topic = cursor.text("offer's topic")?.to_owned();
    offer.partition = cursor.text("offer's partition")?.to_owned();
    let ordered = offer.lowest <= offer.next && offer.start <= offer.next;
    if ordered { Ok(offer) } else { Err(BadMessage::Senseless("offer's range")) }
}

fn decode_mark(cursor: &mut Cursor<'_>) -> Result<Mark, BadMessage> {
    let (reader, stream) = (cursor.u32("mark's reader")?, cursor.u32("mark's stream")?);
    let (next, flags) = (cursor.u64("mark's next")?, cursor.u8("mark's flags")?);
    let slot = cursor.u32("mark's slot")?;
    let [needs_copies, leaving, linked, attached, grouped] = [1, 2, 4, 8, 16].map(|bit| flags & bit != 0);
    Ok(Mark { reader, stream, next, needs_copies, leaving, linked, attached, grouped, slot, received: 0 })
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
            announces: true,
            ends: true,
            topic: "log/info".to_owned(),
            partition: ".operator.".to_owned(),
        };
        let from = Incarnation { boot: 7, pid: 8, start: 9 };
        Heartbeat {
            from,
            source: "DV01".to_owned(),
            direct: String::new(),
            state: SenderState::Absent,
            offers: vec![offer.clone(), offer],
        }
    }

    #[test]
    fn messages_lead_back() {
        assert_eq!(Control::decode(&heartbeat().encode()), Ok(Control::Heartbeat(heartbeat())));
        let mark =
            Mark { reader: 1, stream: 2, next: 3, needs_copies: true, linked: true, attached: true, slot: 4, ..Mark::default() };
        let mark = Mark { grouped: true, ..mark };
        let acknowledgement = Acknowledgement { from: heartbeat().from, marks: vec![mark; 3] };
        let short = acknowledgement.encode();
        assert_eq!(Control::decode(&short), Ok(Control::Acknowledgement(acknowledgement.clone())));
        let marks = vec![mark, Mark { received: 9, ..mark }, Mark { received: 3, ..mark }];
        let longer = Acknowledgement { marks, ..acknowledgement };
        assert_eq!(longer.encode().len(), short.len() + 3 * 8, "an earlier release ignores what follows its marks");
        assert_eq!(Control::decode(&longer.encode()), Ok(Control::Acknowledgement(longer)));
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
