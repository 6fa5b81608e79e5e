//! The packet that is being filled for one level and one set of audiences.

use std::{
    collections::{HashMap, VecDeque},
    ops::Range,
};

use tampu_types::{Incarnation, LogRecord};

use crate::logger::{
    packet::{Called, Packet},
    stream::{PacketSize, StreamKey},
};

/// A packet that is complete.
pub(crate) struct Sealed {
    /// Index of the stream, for [`PacketBuilder::key`].
    pub stream: usize,
    /// Its place in the memory of packets.
    pub place: Range<usize>,
    pub records: u32,
}

/// All streams of a process, and the packets that wait to be published.
///
/// Complete packets lie one after the other in one memory, which a caller takes as a whole. A packet may hold one record,
/// so memory of its own for each would cost more than its bytes.
pub(crate) struct PacketBuilder {
    life: Incarnation,
    size: PacketSize,
    by_key: HashMap<StreamKey, usize>,
    streams: Vec<(StreamKey, Packet)>,
    sealed: VecDeque<Sealed>,
    /// Bytes of the packets in `sealed`.
    waiting: usize,
    memory: Vec<u8>,
    /// Memories whose packets have gone out, to be filled again.
    spare: Vec<Vec<u8>>,
}

/// Bytes of complete packets that are published before more records are taken: they are still in a processor's cache. With
/// fewer, readers would fall asleep between them.
const AT_ONCE: usize = 512 << 10;
/// Bytes of a memory that is made for packets.
const MEMORY: usize = AT_ONCE + AT_ONCE / 4;
/// Largest number of spare memories, and most bytes of one.
const SPARE: usize = 8;
const LONGEST_SPARE: usize = 2 * AT_ONCE;

impl PacketBuilder {
    pub fn new(life: Incarnation, size: PacketSize) -> PacketBuilder {
        PacketBuilder {
            life,
            size,
            by_key: HashMap::new(),
            streams: Vec::new(),
            sealed: VecDeque::new(),
            waiting: 0,
            memory: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// The number of the stream with this key.
    pub fn find(&mut self, key: StreamKey) -> usize {
        if let Some(&found) = self.by_key.get(&key) {
            return found;
        }
        self.streams.push((key.clone(), Packet::new(self.life)));
        self.by_key.insert(key, self.streams.len() - 1);
        self.streams.len() - 1
    }

    pub fn key(&self, stream: usize) -> &StreamKey {
        &self.streams[stream].0
    }

    /// Adds the record of a log statement; false where it is too large for any packet.
    pub fn push_call(&mut self, stream: usize, called: &Called<'_>) -> bool {
        let pushed = self.streams[stream].1.push_call(called);
        self.seal_if_full(stream);
        pushed
    }

    /// Adds a record made by hand; returns false if it is too large for any packet.
    pub fn push_record(&mut self, stream: usize, record: &LogRecord) -> bool {
        let pushed = self.streams[stream].1.push_record(record);
        self.seal_if_full(stream);
        pushed
    }

    fn seal_if_full(&mut self, stream: usize) {
        if self.streams[stream].1.is_full(self.size) {
            self.seal(stream);
        }
    }

    /// Completes a stream's packet.
    pub fn seal(&mut self, stream: usize) {
        let packet = &mut self.streams[stream].1;
        if packet.is_empty() {
            return;
        }
        if self.memory.capacity() == 0 {
            self.memory = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(MEMORY));
        }
        let start = self.memory.len();
        let records = packet.seal_into(&mut self.memory);
        self.waiting += self.memory.len() - start;
        self.sealed.push_back(Sealed { stream, place: start..self.memory.len(), records });
    }

    /// Completes all packets.
    pub fn seal_all(&mut self) {
        (0..self.streams.len()).for_each(|stream| self.seal(stream));
    }

    /// Returns whether a packet is being filled.
    pub fn is_filling(&self) -> bool {
        self.streams.iter().any(|(_, packet)| !packet.is_empty())
    }

    /// Returns whether the complete packets should be published before more records are added.
    #[inline]
    pub fn are_due(&self) -> bool {
        self.waiting >= AT_ONCE
    }

    /// Returns whether the memory of packets is full, so that it should be taken.
    pub fn is_full(&self) -> bool {
        self.memory.len() >= AT_ONCE
    }

    /// The oldest complete packet.
    pub fn next_sealed(&mut self) -> Option<Sealed> {
        let sealed = self.sealed.pop_front()?;
        self.waiting -= sealed.place.len();
        Some(sealed)
    }

    /// Returns the bytes of a packet, until the memory is taken.
    pub fn bytes(&self, sealed: &Sealed) -> &[u8] {
        &self.memory[sealed.place.clone()]
    }

    /// Takes the memory with all packets since the last time. None of them may wait to be published.
    pub fn take_memory(&mut self) -> Vec<u8> {
        debug_assert!(self.sealed.is_empty(), "a packet would lose its bytes");
        let memory = std::mem::take(&mut self.memory);
        if memory.len() > MEMORY / 8 {
            return memory;
        }
        // It may wait for long, beside many others: a few records hold no more than their bytes.
        let few = memory.as_slice().to_vec();
        self.recycle(memory);
        few
    }

    /// Gives a memory back.
    pub fn recycle(&mut self, mut memory: Vec<u8>) {
        if self.spare.len() < SPARE && (MEMORY..=LONGEST_SPARE).contains(&memory.capacity()) {
            memory.clear();
            self.spare.push(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::{Level, Partition, log_batch::decode_records};

    use super::*;
    use crate::logger::stream::Reach;

    fn builder(records: usize) -> (PacketBuilder, usize) {
        let mut builder = PacketBuilder::new(Incarnation::default(), PacketSize { records, bytes: 60_000 });
        let key = StreamKey { level: Level::Info, partition: Partition::everybody(), reach: Reach::Central };
        let stream = builder.find(key);
        (builder, stream)
    }

    #[test]
    fn packets_lie_in_memory_that_is_used_again() {
        let (mut builder, stream) = builder(1);
        let mut memories = std::collections::HashSet::new();
        for round in 0..100 {
            let messages: Vec<String> = (0..50).map(|number| format!("{round} {number} {}", "x".repeat(4000))).collect();
            for message in &messages {
                assert!(builder.push_record(stream, &LogRecord::new(Level::Info, &**message)));
            }
            let sealed: Vec<Sealed> = std::iter::from_fn(|| builder.next_sealed()).collect();
            let found: Vec<LogRecord> = sealed.iter().flat_map(|sealed| decode_records(builder.bytes(sealed)).unwrap()).collect();
            assert_eq!(found.iter().map(|record| &record.message).collect::<Vec<_>>(), messages.iter().collect::<Vec<_>>());
            assert!(sealed.iter().all(|sealed| sealed.records == 1) && builder.waiting == 0);
            let memory = builder.take_memory();
            memories.insert(memory.as_ptr());
            builder.recycle(memory);
        }
        assert_eq!(memories.len(), 1);
        builder.recycle(Vec::with_capacity(2 * LONGEST_SPARE));
        (0..100).for_each(|_| builder.recycle(Vec::with_capacity(MEMORY)));
        assert_eq!(builder.spare.len(), SPARE);
        assert!(builder.spare.iter().all(|memory| memory.capacity() <= LONGEST_SPARE), "a long packet leaves nothing behind");
    }

    #[test]
    fn a_few_records_that_wait_hold_no_more_than_their_bytes() {
        let (mut builder, stream) = builder(1);
        let made = std::iter::repeat_with(|| {
            assert!(builder.push_record(stream, &LogRecord::new(Level::Info, "one")));
            while builder.next_sealed().is_some() {}
            builder.take_memory()
        });
        let waiting: Vec<Vec<u8>> = made.take(1000).collect();
        assert!(waiting.iter().all(|memory| memory.capacity() == memory.len() && memory.len() < 1000));
    }

    #[test]
    fn packets_are_due_before_much_of_them_waits() {
        let (mut builder, stream) = builder(1);
        let record = LogRecord::new(Level::Info, "x".repeat(1000));
        let mut count = 0;
        while !builder.are_due() {
            builder.push_record(stream, &record);
            count += 1;
        }
        assert!((AT_ONCE / 1200..=AT_ONCE / 1000 + 1).contains(&count), "{count}");
        while builder.next_sealed().is_some() {}
        assert!(!builder.are_due() && builder.is_full(), "what is published stays until it is taken");
        let memory = builder.take_memory();
        builder.recycle(memory);
        assert!(!builder.is_full());
    }
}
