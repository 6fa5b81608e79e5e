//! One level for one set of audiences: the packet that is filling, and where its packets go.
//!
//! The mutex is held while one record is encoded (tens of ns) and while a full packet is queued, never while anything is
//! formatted: formatting runs the application's code, which may log itself.

use std::sync::{
    Mutex, MutexGuard, PoisonError, TryLockError,
    atomic::{AtomicBool, Ordering},
};

use tampu_types::{Level, Partition};

use crate::logger::packet::Packet;

/// Whether a lane's records leave the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reach {
    /// Published (and printed, where the local threshold says so).
    Central,
    /// Only printed.
    Local,
}

/// What distinguishes lanes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LaneKey {
    pub level: Level,
    pub partition: Partition,
    pub reach: Reach,
}

/// One lane.
pub(crate) struct Lane {
    pub key: LaneKey,
    packet: Mutex<Packet>,
    /// Whether its packet holds records that should not wait.
    urgent: AtomicBool,
}

impl Lane {
    pub fn new(key: LaneKey, packet: Packet) -> Lane {
        Lane { key, packet: Mutex::new(packet), urgent: AtomicBool::new(false) }
    }

    pub fn lock(&self) -> MutexGuard<'_, Packet> {
        self.packet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The packet, unless somebody else has it now.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, Packet>> {
        match self.packet.try_lock() {
            Ok(packet) => Some(packet),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Marks the packet as urgent; true if it was not yet.
    pub fn mark_urgent(&self) -> bool {
        !self.urgent.swap(true, Ordering::AcqRel)
    }

    /// Takes the mark back; whether it was there.
    pub fn take_urgent(&self) -> bool {
        self.urgent.swap(false, Ordering::AcqRel)
    }
}
