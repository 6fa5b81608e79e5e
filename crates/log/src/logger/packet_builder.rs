//! The packet that is being filled for one level and one set of audiences.

use std::collections::{HashMap, VecDeque};

use tampu_types::{Incarnation, LogRecord};

use crate::logger::{
    packet::{Called, Packet},
    stream::{PacketSize, StreamKey},
};

/// A packet that is complete.
pub(crate) struct Sealed {
    /// Index of the stream, for [`PacketBuilder::key`].
    pub stream: usize,
    pub bytes: Vec<u8>,
    pub records: u32,
}

/// All streams of a process, and the packets that wait to be published.
pub(crate) struct PacketBuilder {
    life: Incarnation,
    size: PacketSize,
    by_key: HashMap<StreamKey, usize>,
    streams: Vec<(StreamKey, Packet)>,
    sealed: VecDeque<Sealed>,
    /// Buffers of packets that have gone out, to be filled again.
    spare: Vec<Vec<u8>>,
}

/// Largest number of spare buffers: a process that logs 100 levels and audiences at once still keeps few.
const SPARE_BUFFERS: usize = 32;

impl PacketBuilder {
    pub fn new(life: Incarnation, size: PacketSize) -> PacketBuilder {
        PacketBuilder { life, size, by_key: HashMap::new(), streams: Vec::new(), sealed: VecDeque::new(), spare: Vec::new() }
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
        if !packet.is_empty() {
            let (bytes, records) = packet.seal(self.spare.pop().unwrap_or_default());
            self.sealed.push_back(Sealed { stream, bytes, records });
        }
    }

    /// Completes all packets.
    pub fn seal_all(&mut self) {
        (0..self.streams.len()).for_each(|stream| self.seal(stream));
    }

    /// Returns whether a packet is being filled.
    pub fn is_filling(&self) -> bool {
        self.streams.iter().any(|(_, packet)| !packet.is_empty())
    }

    /// The oldest complete packet.
    pub fn next_sealed(&mut self) -> Option<Sealed> {
        self.sealed.pop_front()
    }

    /// Gives a packet's buffer back.
    pub fn recycle(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < SPARE_BUFFERS && buffer.capacity() <= 4 * self.size.bytes {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}
