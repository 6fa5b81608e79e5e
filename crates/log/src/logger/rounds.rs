//! Rounds: what was drained from the rings between two moments at which no packet was half full.
//!
//! Its room in the rings is given back when all its packets are delivered. Where nobody is known to have packets, rounds wait
//! in the rings until one is half full; then their packets go into the refuge beside the rings, so that whatever ends the
//! process a record is in a ring, in the refuge, or with somebody who keeps it.

use std::collections::VecDeque;

use tampu_ring::{Cursor, Drainer, Refuge};

use crate::logger::{
    lane::{Lanes, Reach},
    post::Post,
};

/// The last packet of each lane, by its number there.
type Packets = Vec<(usize, u64)>;

/// Drained, on its way.
pub(crate) struct Round {
    /// Where each ring stood then.
    pub marks: Vec<(u32, Cursor)>,
    pub packets: Packets,
    /// Records too long for a ring: their files are not needed any more when it is over.
    pub longs: Vec<(u32, u64)>,
    /// Its packets themselves.
    pub bytes: Vec<Vec<u8>>,
}

/// All that is on its way.
pub(crate) struct Rounds {
    under_way: VecDeque<Round>,
    refuge: Refuge,
    in_refuge: VecDeque<Packets>,
    /// Bytes waiting in a ring from which on it counts as half full.
    half: u64,
    /// Whether somebody is about to acknowledge what is under way.
    is_awaited: bool,
}

#[derive(PartialEq, Eq)]
enum Delivery {
    Done,
    UnderWay,
    /// Nobody is known who would have it.
    Unwanted,
}

impl Rounds {
    pub fn new(refuge: Refuge, half: u64) -> Rounds {
        Rounds { under_way: VecDeque::new(), refuge, in_refuge: VecDeque::new(), half, is_awaited: false }
    }

    pub fn push(&mut self, round: Round) {
        self.under_way.push_back(round);
    }

    /// Whether none is under way.
    pub fn are_over(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Whether somebody is about to acknowledge what is under way, so that it is worth looking often.
    pub fn are_awaited(&self) -> bool {
        self.is_awaited
    }

    /// Gives back the room of rounds that are delivered, or for which nobody is there and the rings fill, or the process ends and
    /// nobody comes after it.
    pub fn settle(&mut self, drainer: &mut Drainer, lanes: &mut Lanes, post: &mut dyn Post, ends: bool) {
        self.is_awaited = false;
        // What nobody has when the process ends stays for the host's node, where there is one.
        let gives_up = ends && !post.has_heir();
        while let Some(round) = self.under_way.front() {
            match delivery(&round.packets, lanes, post) {
                Delivery::Done => {}
                Delivery::Unwanted if gives_up => {}
                Delivery::Unwanted if self.is_half_full(drainer) => {
                    // Without a refuge the writer's cache has to do.
                    if self.refuge.take(round.bytes.iter().map(Vec::as_slice)).unwrap_or(false) {
                        self.in_refuge.push_back(round.packets.clone());
                    }
                }
                Delivery::UnderWay => {
                    self.is_awaited = true;
                    break;
                }
                Delivery::Unwanted => break,
            }
            let Some(round) = self.under_way.pop_front() else { break };
            for ring in drainer.rings() {
                if let Some((_, mark)) = round.marks.iter().find(|(number, _)| *number == ring.number()) {
                    ring.commit(mark);
                }
            }
            let files = drainer.longs();
            round.longs.iter().for_each(|&(ring, position)| files.remove(ring, position));
            round.bytes.into_iter().for_each(|buffer| lanes.recycle(buffer));
        }
        while self.in_refuge.front().is_some_and(|packets| delivery(packets, lanes, post) == Delivery::Done) {
            self.in_refuge.pop_front();
            if self.in_refuge.is_empty() {
                self.refuge.clear();
            }
        }
        if gives_up {
            self.in_refuge.clear();
            self.refuge.clear();
        }
    }

    fn is_half_full(&self, drainer: &mut Drainer) -> bool {
        drainer.rings().iter().any(|ring| ring.stats().waiting > self.half)
    }
}

fn delivery(packets: &Packets, lanes: &Lanes, post: &mut dyn Post) -> Delivery {
    let mut delivery = Delivery::Done;
    for &(lane, number) in packets {
        match post.delivered(lanes.key(lane)) {
            Some(next) if next > number => {}
            Some(_) => return Delivery::UnderWay,
            // Who was attached has gone, and nobody else wants it.
            None if lanes.key(lane).reach == Reach::Attached => {}
            None => delivery = Delivery::Unwanted,
        }
    }
    delivery
}
