//! Shared memory between a sender and receivers on one host: the sender writes a block once, and all receivers read it
//! in place.
//!
//! The sender lends regions of the memory for blocks ([`Ring::block`]). A frame's header and position go into an entry
//! that all readers watch. A reader publishes its progress in its slot. Idle threads sleep: readers at a futex, and the
//! sender in its wait for sockets, where a reader's acknowledgement wakes it.
//!
//! A region is used again when all readers have finished with it or were skipped. After each frame a reader checks
//! whether it was skipped. If so, it may have read a torn frame, and reports the frame as lost.
//!
//! Rejected: a ring whose newest block overwrites the oldest. It cycles through all of its memory, and so stays in no
//! cache.

use std::{
    fs::File,
    io,
    ops::{Deref, DerefMut},
    os::fd::AsRawFd,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering, fence},
    },
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use tampu_shm::{futex_wait, futex_wake};

use crate::window::{FRAMES_LIMIT, Framed};
use map::{Map, SLOTS, Slot};
use regions::Regions;

mod map;
mod memory_file;
mod regions;

const NEVER: u64 = u64::MAX;

// The window never reuses the entry of a frame that it holds.
const _: () = assert!(FRAMES_LIMIT as u64 <= map::ENTRIES);

/// Sender's side of the memory.
pub(crate) struct Ring {
    map: Map,
    file: File,
    token: [u64; 2],
    regions: Mutex<Regions>,
    /// Reserve that is never lent for blocks: one frame always finds room when nothing is in flight.
    spare: Mutex<Regions>,
    spare_at: usize,
    next_slot: AtomicU32,
    slots_in_use: AtomicU64,
    /// Bytes passed to `send` from other memory, which had to be copied.
    pub copied: AtomicU64,
}

impl Ring {
    /// Creates memory for so many bytes of blocks, with room for the longest frame besides.
    pub fn create(size: usize, frame: usize, token: [u8; 16]) -> io::Result<Arc<Ring>> {
        let [low, high] = token.as_chunks::<8>().0 else { return Err(io::ErrorKind::InvalidInput.into()) };
        let token = [u64::from_le_bytes(*low), u64::from_le_bytes(*high)];
        let (size, spare) = (size.next_multiple_of(4096), frame.next_multiple_of(4096));
        let (map, file) = Map::create(size + spare, token)?;
        Ok(Arc::new(Ring {
            map,
            file,
            token,
            regions: Mutex::new(Regions::new(0, size)),
            spare: Mutex::new(Regions::new(size, spare)),
            spare_at: size,
            next_slot: AtomicU32::new(0),
            slots_in_use: AtomicU64::new(0),
            copied: AtomicU64::new(0),
        }))
    }

    /// Assigns a slot to a reader, with its notation for the Hello.
    pub fn slot(self: &Arc<Ring>) -> Option<Seat> {
        // Slots are used in turn, so that a reader that still polls a lost slot does not share it with the next.
        for _ in 0..SLOTS {
            let number = self.next_slot.fetch_add(1, Ordering::Relaxed) % SLOTS;
            if self.slots_in_use.fetch_or(1 << number, Ordering::AcqRel) >> number & 1 == 0 {
                let slot = self.map.slot(number);
                slot.begin.store(NEVER, Ordering::SeqCst);
                slot.wake_at.store(NEVER, Ordering::SeqCst);
                slot.done.store(0, Ordering::SeqCst);
                return Some(Seat { ring: self.clone(), number });
            }
        }
        None
    }

    /// Lends memory for a block; `None` without room.
    pub fn block(self: &Arc<Ring>, length: usize) -> Option<Region> {
        self.region(&self.regions, length)
    }

    fn region(self: &Arc<Ring>, of: &Mutex<Regions>, length: usize) -> Option<Region> {
        let position = of.lock().lend(length)?;
        Some(Region { ring: self.clone(), position, lent: length, length })
    }

    /// Returns true if these bytes lie in the memory.
    pub fn holds(&self, bytes: &[u8]) -> bool {
        bytes.is_empty() || self.map.position_of(bytes).is_some()
    }

    /// Copies a frame's bytes into the memory. One copy always fits while no other is in use.
    pub fn copy(self: &Arc<Ring>, bytes: &[u8]) -> Option<Bytes> {
        let mut region = self.block(bytes.len()).or_else(|| self.region(&self.spare, bytes.len()))?;
        region.copy_from_slice(bytes);
        self.copied.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Some(Bytes::from_owner(region))
    }

    /// Announces a frame to all readers. If the payload is not in this memory, the announced position is outside, which
    /// no reader reads.
    pub fn publish(&self, framed: &Framed) {
        let sequence = framed.header.sequence;
        let position = match self.map.position_of(&framed.bytes) {
            Some(position) => position as u64,
            None if framed.bytes.is_empty() => 0,
            None => NEVER,
        };
        self.map.put_entry(sequence, &framed.head, position);
        self.map.head().store(sequence + 1, Ordering::SeqCst);
        let mut slots = self.slots_in_use.load(Ordering::Relaxed);
        while slots != 0 {
            wake(self.map.slot(slots.trailing_zeros()));
            slots &= slots - 1;
        }
    }
}

fn wake(slot: &Slot) {
    if slot.asleep.load(Ordering::SeqCst) != 0 && slot.asleep.swap(0, Ordering::SeqCst) != 0 {
        slot.futex.fetch_add(1, Ordering::SeqCst);
        // If this fails, the reader wakes by its timeout.
        futex_wake(&slot.futex, i32::MAX as u32);
    }
}

/// Region of memory to fill and send.
pub(crate) struct Region {
    ring: Arc<Ring>,
    position: usize,
    lent: usize,
    length: usize,
}

impl Region {
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }
}

impl Deref for Region {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the region is lent to this value alone, and is written only while it is borrowed mutably.
        unsafe { self.ring.map.bytes(self.position, self.length) }
    }
}

impl DerefMut for Region {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { self.ring.map.bytes_mut(self.position, self.length) }
    }
}

impl AsRef<[u8]> for Region {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl std::fmt::Debug for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Region({} bytes at {})", self.length, self.position)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let ring = &self.ring;
        let of = if self.position < ring.spare_at { &ring.regions } else { &ring.spare };
        of.lock().take_back(self.position, self.lent);
    }
}

/// Reader's slot, as its sender sees it.
pub(crate) struct Seat {
    ring: Arc<Ring>,
    number: u32,
}

impl Seat {
    /// Returns its description for the Hello.
    pub fn place(&self) -> String {
        let [low, high] = self.ring.token;
        let fd = self.ring.file.as_raw_fd();
        format!("/proc/{}/fd/{fd} {} {low:016x}{high:016x}", std::process::id(), self.number)
    }

    fn slot(&self) -> &Slot {
        self.ring.map.slot(self.number)
    }

    /// Makes the reader begin or continue with this frame. Earlier frames may be overwritten.
    pub fn begin_at(&self, sequence: u64) {
        self.slot().begin.store(sequence, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        wake(self.slot());
    }

    /// Returns the reader's position; 0 before its first frame.
    pub fn done(&self) -> u64 {
        self.slot().done.load(Ordering::Acquire)
    }

    /// Requests a wake-up when the reader reaches this frame. Returns whether it has reached it already.
    pub fn wake_at(&self, sequence: u64) -> bool {
        self.slot().wake_at.store(sequence, Ordering::SeqCst);
        self.slot().done.load(Ordering::SeqCst) >= sequence
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.begin_at(NEVER);
        self.ring.slots_in_use.fetch_and(!(1 << self.number), Ordering::AcqRel);
    }
}

/// Reader's side of the memory.
pub(crate) struct View {
    map: Map,
    number: u32,
    cursor: u64,
}

/// The result of a reader's look.
pub(crate) enum Look<R> {
    /// A frame was used; true if it may have been overwritten meanwhile.
    Used(R, bool),
    /// No frame is announced.
    Nothing,
    /// The entry is invalid.
    Senseless,
}

impl View {
    /// Maps the memory that a Hello names.
    pub fn open(place: &str) -> io::Result<View> {
        let senseless = || io::Error::new(io::ErrorKind::InvalidData, "the place of the shared memory is invalid");
        let mut words = place.split(' ');
        let (Some(path), Some(number), Some(token)) = (words.next(), words.next(), words.next()) else { return Err(senseless()) };
        // The path must be a descriptor of a process; a caller cannot name any other file.
        let mut parts = path.split('/');
        let digits =
            |part: Option<&str>| part.is_some_and(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
        let is_open_file = parts.next() == Some("")
            && parts.next() == Some("proc")
            && digits(parts.next())
            && parts.next() == Some("fd")
            && digits(parts.next())
            && parts.next().is_none();
        let number: u32 = number.parse().map_err(|_| senseless())?;
        if !is_open_file || number >= SLOTS || token.len() != 32 || !token.is_ascii() {
            return Err(senseless());
        }
        let half = |part: &str| u64::from_str_radix(part, 16).map_err(|_| senseless());
        let token = [half(&token[..16])?, half(&token[16..])?];
        let file = memory_file::open(path)?;
        Ok(View { map: Map::open(&file, token)?, number, cursor: 0 })
    }

    fn slot(&self) -> &Slot {
        self.map.slot(self.number)
    }

    /// Passes the next frame, if there is one, to `used`: its header and payload, which are untrusted until they are
    /// checked.
    pub fn next<R>(&mut self, used: impl FnOnce(&[u8; crate::frame::HEADER_LEN], &Map, u64) -> R) -> Look<R> {
        let begin = self.slot().begin.load(Ordering::Acquire);
        if begin == NEVER {
            return Look::Nothing;
        }
        self.cursor = self.cursor.max(begin);
        if self.cursor >= self.map.head().load(Ordering::Acquire) {
            return Look::Nothing;
        }
        let Some((head, position)) = self.map.get_entry(self.cursor) else {
            // The sender moved this reader on meanwhile: the next look begins there.
            let moved = self.slot().begin.load(Ordering::SeqCst) > self.cursor;
            return if moved { Look::Nothing } else { Look::Senseless };
        };
        let result = used(&head, &self.map, position);
        fence(Ordering::SeqCst);
        let overwritten = self.slot().begin.load(Ordering::SeqCst) > self.cursor;
        self.cursor += 1;
        Look::Used(result, overwritten)
    }

    /// Acknowledges all frames so far. Returns whether the sender wants a notice.
    pub fn done(&self) -> bool {
        let slot = self.slot();
        slot.done.store(self.cursor, Ordering::SeqCst);
        let wanted = self.cursor >= slot.wake_at.load(Ordering::SeqCst);
        if wanted {
            slot.wake_at.store(NEVER, Ordering::SeqCst);
        }
        wanted
    }

    /// Sleeps until a frame is announced, at most this long.
    pub fn sleep(&self, timeout: Duration) {
        let slot = self.slot();
        let futex = slot.futex.load(Ordering::SeqCst);
        slot.asleep.store(1, Ordering::SeqCst);
        let begin = slot.begin.load(Ordering::SeqCst);
        let nothing = begin == NEVER || self.cursor.max(begin) >= self.map.head().load(Ordering::SeqCst);
        if nothing {
            // The wait returns early if the word was changed, or for a signal; the caller checks again.
            futex_wait(&slot.futex, futex, timeout);
        }
        slot.asleep.store(0, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{frame::HEADER_LEN, sending::Numbering};

    #[test]
    fn places_that_are_no_open_files_are_refused() {
        let token = "0".repeat(32);
        for place in ["", "/etc/passwd 0 x", "/proc/1/fd/3 64 0", "/proc/self/fd/1 0 0", "/proc/1/../fd/1 0 0"] {
            assert!(View::open(&format!("{place} {token}")).is_err() && View::open(place).is_err(), "{place}");
        }
    }

    #[test]
    fn a_frame_is_read_where_it_was_written_and_one_written_over_is_told() {
        let ring = Ring::create(1 << 16, 1000, [5; 16]).unwrap();
        let seat = ring.slot().unwrap();
        let mut view = View::open(&seat.place()).unwrap();
        let mut flow = Numbering::new(1, 1000);
        let start = Framed::new(flow.start(0).unwrap(), Bytes::new(), false);
        ring.publish(&start);
        assert!(matches!(view.next(|_, _, _| ()), Look::Nothing), "nothing is for it yet");
        seat.begin_at(1);
        assert!(matches!(view.next(|_, _, _| ()), Look::Used((), false)));
        assert!(!view.done());
        assert!(!seat.wake_at(3));
        let mut region = ring.block(100).unwrap();
        region.fill(7);
        let framed = Framed::new(flow.data(100).unwrap().0, Bytes::from_owner(region), false);
        ring.publish(&framed);
        let looked = view.next(|head: &[u8; HEADER_LEN], map, position| {
            assert_eq!(head, &framed.head);
            let all_sevens = map.with(position, 100, |bytes| bytes.iter().all(|&byte| byte == 7));
            seat.begin_at(9);
            all_sevens
        });
        assert!(matches!(looked, Look::Used(Some(true), true)), "it was moved on while it looked");
        assert!(view.done(), "and the sender wanted to hear of it");
        assert_eq!(seat.done(), 3);
        assert!(!ring.holds(b"elsewhere") && ring.holds(&framed.bytes[3..5]));
        drop((framed, seat));
        assert!(matches!(view.next(|_, _, _| ()), Look::Nothing));
    }

    #[test]
    fn a_frame_finds_room_beside_blocks_that_have_all_of_the_rest() {
        let ring = Ring::create(1 << 16, 1000, [5; 16]).unwrap();
        let blocks: Vec<Region> = std::iter::from_fn(|| ring.block(1 << 12)).collect();
        assert_eq!(blocks.len(), 16);
        for _ in 0..10 {
            let copy = ring.copy(&[7; 1000]).unwrap();
            assert!(ring.holds(&copy) && copy[..] == [7; 1000]);
            assert!(ring.block(1).is_none(), "no block has the spare room");
        }
        drop(blocks);
        assert!(ring.block(1 << 16).is_some(), "and all comes back");
    }
}
