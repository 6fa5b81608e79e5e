//! DrainBatches: the records drained from the rings between two moments at which no packet was half full.
//!
//! The room in the rings is released when all packets of a batch are delivered. While no receiver is known, batches
//! wait in the rings until one is half full. Then their packets go into the overflow files beside the rings. However
//! the process ends, a record is in a ring, in an overflow file, or with a receiver that keeps it.

use std::{collections::VecDeque, ops::Range};

use tampu_ring::{Cursor, Drainer, OverflowFiles};

use crate::logger::{packet_builder::PacketBuilder, packet_sink::PacketSink, stream::Reach};

/// The last packet of each stream, by its number there.
type Packets = Vec<(usize, u64)>;

/// Drained, on its way.
pub(crate) struct DrainBatch {
    /// Position of each ring at that time.
    pub marks: Vec<(u32, Cursor)>,
    pub packets: Packets,
    /// Records too long for a ring: their files are removed when the batch is delivered.
    pub longs: Vec<(u32, u64)>,
    /// Its packets themselves, and the places of those that keepers get.
    pub bytes: Vec<u8>,
    pub places: Vec<Range<usize>>,
}

/// All that is on its way.
pub(crate) struct DrainBatches {
    under_way: VecDeque<DrainBatch>,
    overflow: OverflowFiles,
    in_overflow: VecDeque<Packets>,
    /// Bytes waiting in a ring from which on it counts as half full.
    half: u64,
    /// True if a reader is about to acknowledge the batches under way.
    is_awaited: bool,
}

#[derive(PartialEq, Eq)]
enum Delivery {
    Done,
    UnderWay,
    /// No receiver is known.
    Unwanted,
}

impl DrainBatches {
    pub fn new(overflow: OverflowFiles, half: u64) -> DrainBatches {
        DrainBatches { under_way: VecDeque::new(), overflow, in_overflow: VecDeque::new(), half, is_awaited: false }
    }

    pub fn push(&mut self, batch: DrainBatch) {
        self.under_way.push_back(batch);
    }

    /// Returns whether no batch is under way.
    pub fn are_over(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Returns whether a reader is about to acknowledge the batches under way, so that it is worth checking often.
    pub fn are_awaited(&self) -> bool {
        self.is_awaited
    }

    /// Releases the room of delivered batches. Also releases batches without a receiver if the rings fill, or if the
    /// process ends without a node to take over.
    pub fn settle(&mut self, drainer: &mut Drainer, builder: &mut PacketBuilder, sink: &mut dyn PacketSink, ends: bool) {
        self.is_awaited = false;
        // At the end of the process, records without a reader stay for the host's node, if there is one.
        let gives_up = ends && !sink.has_heir();
        while let Some(batch) = self.under_way.front() {
            match delivery(&batch.packets, builder, sink) {
                Delivery::Done => {}
                Delivery::Unwanted if gives_up => {}
                Delivery::Unwanted if self.is_half_full(drainer) => {
                    // Without overflow files, only the writer's cache holds them.
                    if self.overflow.take(batch.places.iter().map(|place| &batch.bytes[place.clone()])).unwrap_or(false) {
                        self.in_overflow.push_back(batch.packets.clone());
                    }
                }
                Delivery::UnderWay => {
                    self.is_awaited = true;
                    break;
                }
                Delivery::Unwanted => break,
            }
            let Some(batch) = self.under_way.pop_front() else { break };
            for ring in drainer.rings() {
                if let Some((_, mark)) = batch.marks.iter().find(|(number, _)| *number == ring.number()) {
                    ring.commit(mark);
                }
            }
            let files = drainer.longs();
            batch.longs.iter().for_each(|&(ring, position)| files.remove(ring, position));
            builder.recycle(batch.bytes);
        }
        while self.in_overflow.front().is_some_and(|packets| delivery(packets, builder, sink) == Delivery::Done) {
            self.in_overflow.pop_front();
            if self.in_overflow.is_empty() {
                self.overflow.clear();
            }
        }
        if gives_up {
            self.in_overflow.clear();
            self.overflow.clear();
        }
    }

    fn is_half_full(&self, drainer: &mut Drainer) -> bool {
        drainer.rings().iter().any(|ring| ring.stats().waiting > self.half)
    }
}

fn delivery(packets: &Packets, builder: &PacketBuilder, sink: &mut dyn PacketSink) -> Delivery {
    let mut delivery = Delivery::Done;
    for &(stream, number) in packets {
        match sink.delivered(builder.key(stream)) {
            Some(next) if next > number => {}
            Some(_) => return Delivery::UnderWay,
            // The attached reader has left, and no other reader wants the packet.
            None if builder.key(stream).reach == Reach::Attached => {}
            None => delivery = Delivery::Unwanted,
        }
    }
    delivery
}
