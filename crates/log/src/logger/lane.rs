//! One level for one set of audiences: the packet that is filling.

use std::collections::{HashMap, VecDeque};

use tampu_types::{Incarnation, Level, LogRecord, Partition};

use crate::logger::packet::{Called, Packet};

/// Whether records leave the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reach {
    /// Published (and printed, where the local threshold says so).
    Central,
    /// Published for attached readers alone.
    Attached,
    /// Only printed, so in no lane.
    Local,
}

/// What distinguishes lanes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LaneKey {
    pub level: Level,
    pub partition: Partition,
    pub reach: Reach,
}

/// How large packets get.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketSize {
    pub records: usize,
    pub bytes: usize,
}

/// A packet that is complete.
pub(crate) struct Sealed {
    /// Which lane, as [`Lanes::key`] takes it.
    pub lane: usize,
    pub bytes: Vec<u8>,
    pub records: u32,
}

/// All lanes of a process, and the packets that wait to be published.
pub(crate) struct Lanes {
    life: Incarnation,
    size: PacketSize,
    by_key: HashMap<LaneKey, usize>,
    lanes: Vec<(LaneKey, Packet)>,
    sealed: VecDeque<Sealed>,
    /// Buffers of packets that have gone out, to be filled again.
    spare: Vec<Vec<u8>>,
}

/// A process that logs 100 levels and audiences at once still keeps few buffers.
const SPARE_BUFFERS: usize = 32;

impl Lanes {
    pub fn new(life: Incarnation, size: PacketSize) -> Lanes {
        Lanes { life, size, by_key: HashMap::new(), lanes: Vec::new(), sealed: VecDeque::new(), spare: Vec::new() }
    }

    /// The number of the lane with this key.
    pub fn find(&mut self, key: LaneKey) -> usize {
        if let Some(&found) = self.by_key.get(&key) {
            return found;
        }
        self.lanes.push((key.clone(), Packet::new(self.life)));
        self.by_key.insert(key, self.lanes.len() - 1);
        self.lanes.len() - 1
    }

    pub fn key(&self, lane: usize) -> &LaneKey {
        &self.lanes[lane].0
    }

    /// Adds the record of a log statement; false where it is too large for any packet.
    pub fn push_call(&mut self, lane: usize, called: &Called<'_>) -> bool {
        let pushed = self.lanes[lane].1.push_call(called);
        self.seal_if_full(lane);
        pushed
    }

    /// Adds a record made by hand; false where it is too large for any packet.
    pub fn push_record(&mut self, lane: usize, record: &LogRecord) -> bool {
        let pushed = self.lanes[lane].1.push_record(record);
        self.seal_if_full(lane);
        pushed
    }

    fn seal_if_full(&mut self, lane: usize) {
        if self.lanes[lane].1.is_full(self.size) {
            self.seal(lane);
        }
    }

    /// Completes a lane's packet.
    pub fn seal(&mut self, lane: usize) {
        let packet = &mut self.lanes[lane].1;
        if !packet.is_empty() {
            let (bytes, records) = packet.seal(self.spare.pop().unwrap_or_default());
            self.sealed.push_back(Sealed { lane, bytes, records });
        }
    }

    /// Completes all packets.
    pub fn seal_all(&mut self) {
        (0..self.lanes.len()).for_each(|lane| self.seal(lane));
    }

    /// Whether a packet is filling.
    pub fn is_filling(&self) -> bool {
        self.lanes.iter().any(|(_, packet)| !packet.is_empty())
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
