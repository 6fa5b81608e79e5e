//! Waits of stream workers for the program, which reads a value in its server's memory.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::{Condvar, Mutex};
use tampu_bus::LentBytes;
use tampu_types::event::{EventView, Quality};

use crate::event::value::{Layout, layout};

/// Waits of stream workers for the program. Once they are ended, no worker waits any more.
#[derive(Default)]
pub struct Holds {
    ended: Mutex<bool>,
    changed: Condvar,
    /// Values that the program has got.
    taken: Mutex<Vec<Weak<HeldValue>>>,
}

impl Holds {
    /// Ends all waits, also later ones.
    pub fn end(&self) {
        *self.ended.lock() = true;
        self.changed.notify_all();
    }

    /// Notes that the program gets these values.
    pub fn note_taken<'a>(&self, values: impl Iterator<Item = &'a Arc<HeldValue>>) {
        let mut held = values.peekable();
        if held.peek().is_some() {
            self.taken.lock().extend(held.map(Arc::downgrade));
        }
    }

    /// Releases the values that the program has got and that no block uses: it asks for further events, and may still have a
    /// name for the one before.
    pub fn release_unused(&self) {
        self.taken.lock().retain(|held| {
            let Some(held) = held.upgrade() else { return false };
            let is_used = held.is_used.load(Ordering::Acquire);
            if !is_used {
                held.release();
            }
            is_used
        });
    }

    /// Waits until a value is released, or all waits are ended.
    pub fn wait_for(&self, value: &AtomicBool) {
        let mut ended = self.ended.lock();
        while !*ended && !value.load(Ordering::Acquire) {
            self.changed.wait(&mut ended);
        }
    }

    fn release(&self, value: &AtomicBool) {
        let ended = self.ended.lock();
        value.store(true, Ordering::Release);
        drop(ended);
        self.changed.notify_all();
    }
}

/// A value in its server's memory. Its worker waits until [`HeldValue::release`], or until this is dropped, or until the
/// program asks for further events outside a block that uses it.
pub struct HeldValue {
    bytes: LentBytes,
    /// Place of the elements, type and dimensions. The memory stays mapped as long as `bytes`.
    pub layout: Layout,
    pub quality: Quality,
    pub time: i64,
    holds: Arc<Holds>,
    is_released: Arc<AtomicBool>,
    is_used: AtomicBool,
}

impl HeldValue {
    /// Makes it of a reading of numbers, with the flag that tells of its release; `None` for other readings.
    pub fn of(bytes: &LentBytes, reading: &EventView<'_>, holds: &Arc<Holds>) -> Option<(Arc<HeldValue>, Arc<AtomicBool>)> {
        let layout = layout(reading.value.as_ref()?, reading.shape)?;
        let is_released = Arc::new(AtomicBool::new(false));
        let held = HeldValue {
            bytes: bytes.clone(),
            layout,
            quality: reading.quality,
            time: reading.time.0,
            holds: holds.clone(),
            is_released: is_released.clone(),
            is_used: AtomicBool::new(false),
        };
        Some((Arc::new(held), is_released))
    }

    /// Notes that a block uses the value.
    pub fn begin_use(&self) {
        self.is_used.store(true, Ordering::Release);
    }

    /// Returns whether the server has not reused the memory: what was read until now is whole.
    pub fn is_whole(&self) -> bool {
        self.bytes.is_whole()
    }

    /// Ends the worker's wait. The server may reuse the memory from now on.
    pub fn release(&self) {
        self.is_used.store(false, Ordering::Release);
        if !self.is_released.load(Ordering::Acquire) {
            self.holds.release(&self.is_released);
        }
    }
}

impl Drop for HeldValue {
    fn drop(&mut self) {
        self.release();
    }
}
