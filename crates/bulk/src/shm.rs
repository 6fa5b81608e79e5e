//! Shared memory between a sender and receivers on one host: a block is written once, and read where it lies by everybody.
//!
//! The sender lends regions of it for blocks ([`Ring::block`]); a frame's header and place go into an entry that all readers look at.
//! A reader says in its slot how far it is. Whoever has nothing to do sleeps: readers at a futex, the sender in its wait for sockets,
//! where a reader's acknowledgement wakes it. A region is used again when all readers have done with it or were moved on: a reader looks
//! whether it was, after each frame, so what it may have read torn is told as lost.
//!
//! Rejected: a ring where the oldest makes room for the newest. It goes round in all of its memory, and so in none of the caches.

use std::{
    fs::File,
    io,
    ops::{Deref, DerefMut},
    os::fd::AsRawFd,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, AtomicU64, Ordering, fence},
    },
    time::Duration,
};

use bytes::Bytes;
use rustix::thread::futex;

use crate::{
    receiver::lock,
    window::{FRAMES_LIMIT, Framed},
};
use map::{Map, SLOTS, Slot};
use regions::Regions;

mod map;
mod regions;

const NEVER: u64 = u64::MAX;

// The entry of a frame in the window is not used again.
const _: () = assert!(FRAMES_LIMIT as u64 <= map::ENTRIES);

/// The sender's side.
pub(crate) struct Ring {
    map: Map,
    file: File,
    token: [u64; 2],
    regions: Mutex<Regions>,
    /// Never lent for blocks that are filled elsewhere: one frame always finds room when nothing is under way.
    spare: Mutex<Regions>,
    spare_at: usize,
    next_slot: AtomicU32,
    slots_in_use: AtomicU64,
    /// Bytes that were given to `send` elsewhere and had to be copied.
    pub copied: AtomicU64,
}

impl Ring {
    /// So many bytes for blocks, and those of the longest frame beside them.
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

    /// A place for one more reader, and how a Hello names it.
    pub fn slot(self: &Arc<Ring>) -> Option<Seat> {
        // Round, so that a reader that still looks at a slot it has lost does not meet another in it.
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

    /// Memory for a block; `None` where there is no room now.
    pub fn block(self: &Arc<Ring>, length: usize) -> Option<Region> {
        self.region(&self.regions, length)
    }

    fn region(self: &Arc<Ring>, of: &Mutex<Regions>, length: usize) -> Option<Region> {
        let position = lock(of).lend(length)?;
        Some(Region { ring: self.clone(), position, lent: length, length })
    }

    /// Whether these bytes lie in it.
    pub fn holds(&self, bytes: &[u8]) -> bool {
        bytes.is_empty() || self.map.position_of(bytes).is_some()
    }

    /// A copy of a frame's bytes in it. There is room for one at least while no other is under way.
    pub fn copy(self: &Arc<Ring>, bytes: &[u8]) -> Option<Bytes> {
        let mut region = self.block(bytes.len()).or_else(|| self.region(&self.spare, bytes.len()))?;
        region.copy_from_slice(bytes);
        self.copied.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Some(Bytes::from_owner(region))
    }

    /// Tells all readers of a frame whose payload lies here. Of one that does not, the place is outside, where nobody reads.
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
        slot.bell.fetch_add(1, Ordering::SeqCst);
        // Should it fail, the reader wakes by its timeout.
        let _ = futex::wake(&slot.bell, futex::Flags::empty(), i32::MAX as u32);
    }
}

/// Memory that is filled and sent.
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
        // SAFETY: the region was lent to this value alone, and is written only through it while it can be borrowed mutably.
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
        lock(of).take_back(self.position, self.lent);
    }
}

/// A reader's place, as its sender has it.
pub(crate) struct Seat {
    ring: Arc<Ring>,
    number: u32,
}

impl Seat {
    /// What the Hello says of it.
    pub fn place(&self) -> String {
        let [low, high] = self.ring.token;
        let fd = self.ring.file.as_raw_fd();
        format!("/proc/{}/fd/{fd} {} {low:016x}{high:016x}", std::process::id(), self.number)
    }

    fn slot(&self) -> &Slot {
        self.ring.map.slot(self.number)
    }

    /// The reader begins, or goes on, with this frame; what is before may be written over.
    pub fn begin_at(&self, sequence: u64) {
        self.slot().begin.store(sequence, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        wake(self.slot());
    }

    /// How far the reader is; 0 before it has done anything.
    pub fn done(&self) -> u64 {
        self.slot().done.load(Ordering::Acquire)
    }

    /// The reader shall acknowledge when it has come to this frame. Says whether it has already.
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

/// A reader's side.
pub(crate) struct View {
    map: Map,
    number: u32,
    cursor: u64,
}

/// What a reader finds.
pub(crate) enum Look<R> {
    /// A frame was used. Whether it may have been written over meanwhile.
    Used(R, bool),
    /// Nothing is there.
    Nothing,
    /// What is there makes no sense.
    Senseless,
}

impl View {
    /// Maps what a Hello names.
    pub fn open(place: &str) -> io::Result<View> {
        let senseless = || io::Error::new(io::ErrorKind::InvalidData, "the place makes no sense");
        let mut words = place.split(' ');
        let (Some(path), Some(number), Some(token)) = (words.next(), words.next(), words.next()) else { return Err(senseless()) };
        // Only what a process has open; not any file somebody names.
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
        let file = File::options().read(true).write(true).open(path)?;
        Ok(View { map: Map::open(&file, token)?, number, cursor: 0 })
    }

    fn slot(&self) -> &Slot {
        self.map.slot(self.number)
    }

    /// The next frame, if there is one: `used` gets its header and payload, both only to be believed as far as checked.
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
            // Moved on meanwhile: the next look begins there.
            let moved = self.slot().begin.load(Ordering::SeqCst) > self.cursor;
            return if moved { Look::Nothing } else { Look::Senseless };
        };
        let result = used(&head, &self.map, position);
        fence(Ordering::SeqCst);
        let overwritten = self.slot().begin.load(Ordering::SeqCst) > self.cursor;
        self.cursor += 1;
        Look::Used(result, overwritten)
    }

    /// Says that all frames so far are done with. Says whether the sender wants to hear of it.
    pub fn done(&self) -> bool {
        let slot = self.slot();
        slot.done.store(self.cursor, Ordering::SeqCst);
        let wanted = self.cursor >= slot.wake_at.load(Ordering::SeqCst);
        if wanted {
            slot.wake_at.store(NEVER, Ordering::SeqCst);
        }
        wanted
    }

    /// Sleeps until there is something, at most this long.
    pub fn sleep(&self, timeout: Duration) {
        let slot = self.slot();
        let bell = slot.bell.load(Ordering::SeqCst);
        slot.asleep.store(1, Ordering::SeqCst);
        let begin = slot.begin.load(Ordering::SeqCst);
        let nothing = begin == NEVER || self.cursor.max(begin) >= self.map.head().load(Ordering::SeqCst);
        if nothing {
            let timeout = futex::Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
            // It returns early when the bell was rung meanwhile, or for a signal; the caller looks again.
            let _ = futex::wait(&slot.bell, futex::Flags::empty(), bell, Some(&timeout));
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
