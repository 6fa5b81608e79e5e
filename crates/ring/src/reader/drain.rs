//! Draining: walking over published records, and releasing room once they have been handed off.
//!
//! Decision: reading and releasing are two steps. Entries are lent from the ring. [`RingDrain::mark`] returns the
//! position of the walk. [`RingDrain::commit`] moves the cursor there once the caller has handed every entry before it
//! to a receiver that will not lose it. If a drainer dies in between, the next one gets the same entries with the same
//! numbers again.
//!
//! Rings are walked one by one. A caller that wants one order over all of them takes from the ring with the lowest
//! [`RingDrain::peek`]. It waits for the empty ones according to its watermark.

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use crate::{
    clock::{
        Conversion,
        page::{self, ClockPage},
    },
    files::{
        dictionary::{self, Reader},
        directory::{RingDirectory, read_at},
        lock::{self, Busy, LockedFile, has_mapped, take_lease},
        long::LongPayloads,
        names::{CLOCK, DICTIONARY, LEASE, SOURCE, ring_name, ring_number},
        overflow::OverflowFiles,
        ring_file::{BadRing, LARGEST},
        source::{self, Source},
    },
    header::{Cursor, HEADER_LEN, RingHeader, RingMap},
    reader::snapshot::Header,
    record::{Entry, Walk},
    stats::{RingStats, ring_stats},
    system,
    writer::{fork::Generation, incarnation::IncarnationRings, producer::Ring},
};

/// Drainer of the rings of one incarnation: a thread of its own process, or another process of the same user.
pub struct Drainer {
    rings: Vec<RingDrain>,
    dictionary: Reader,
    scope: Scope,
    generation: Generation,
    _lease: Option<LockedFile>,
}

enum Scope {
    Inside(Arc<IncarnationRings>),
    Outside { place: Arc<RingDirectory>, clock: ClockPage, source: Source },
}

impl Drainer {
    pub(crate) fn inside(life: Arc<IncarnationRings>) -> Result<Drainer, Busy> {
        let lease = life.place().map(|place| take_lease(place)).transpose()?;
        if life.drained.swap(true, Ordering::AcqRel) {
            return Err(Busy::Taken);
        }
        life.clock.want(false);
        let dictionary = life.dictionary.reader();
        let generation = Generation::now();
        let mut drainer = Drainer { rings: Vec::new(), dictionary, scope: Scope::Inside(life), generation, _lease: lease };
        drainer.begin()?;
        Ok(drainer)
    }

    /// Drains another process's rings while it lives, until the process wants to drain itself ([`Drainer::is_wanted`]).
    /// Entries left at its death belong to [`crate::reader::recover()`], which also knows the unreported losses.
    pub fn attach(directory: &Path) -> Result<Drainer, Busy> {
        let place = RingDirectory::open(directory)?;
        let bad = |name: &str, why: String| Busy::File(directory.join(name), why);
        let text = place.read_file(SOURCE, source::LONGEST)?;
        let source = Source::parse(&text).map_err(|why| bad(SOURCE, why.to_string()))?;
        let lease = take_lease(&place)?;
        let (file, length) = place.open_file(CLOCK, page::LENGTH as u64)?;
        let bytes = read_at(&file, 0, length as usize)?;
        let clock = ClockPage::open(&file, &bytes).map_err(|why| bad(CLOCK, why.to_string()))??;
        // A process that requested the lease did not take it; one that still waits requests it again.
        clock.want(false);
        let (file, _) = place.open_file(DICTIONARY, dictionary::LONGEST)?;
        let mut drainer = Drainer {
            rings: Vec::new(),
            dictionary: Reader::new(Arc::new(file)),
            scope: Scope::Outside { place: Arc::new(place), clock, source },
            generation: Generation::now(),
            _lease: Some(lease),
        };
        drainer.begin()?;
        Ok(drainer)
    }

    fn begin(&mut self) -> Result<(), Busy> {
        self.refresh()?;
        let cursors: Vec<(u32, u64)> = self.rings.iter().map(|ring| (ring.number, ring.committed.position)).collect();
        self.longs().remove_before(&cursors);
        Ok(())
    }

    /// The payloads that are too long for the rings.
    pub fn longs(&self) -> LongPayloads {
        match &self.scope {
            Scope::Inside(life) => LongPayloads::of(life.place().cloned()),
            Scope::Outside { place, .. } => LongPayloads::of(Some(place.clone())),
        }
    }

    /// Overflow files for packets that leave the rings before a receiver has them. Only the drainer of the own process
    /// has them.
    pub fn overflow_files(&self) -> OverflowFiles {
        match &self.scope {
            Scope::Inside(life) => OverflowFiles::of(life.place().cloned()),
            Scope::Outside { .. } => OverflowFiles::of(None),
        }
    }

    /// Finds new rings, and takes an anchor of the clock: about once a second.
    pub fn refresh(&mut self) -> Result<(), Busy> {
        if !self.generation.is_now() {
            return Ok(());
        }
        self.clock().anchor();
        if let Scope::Inside(life) = &self.scope {
            life.drop_surplus();
        }
        self.find_rings()
    }

    /// Looks for rings that are new.
    pub fn find_rings(&mut self) -> Result<(), Busy> {
        let known = |rings: &[RingDrain], number| rings.iter().any(|ring| ring.number == number);
        match &self.scope {
            Scope::Inside(life) => {
                for ring in life.rings() {
                    if !known(&self.rings, ring.number) {
                        self.rings.push(RingDrain::new(ring.number, Memory::Own(ring)));
                    }
                }
            }
            Scope::Outside { place, .. } => {
                let mut numbers: Vec<u32> = place.names()?.iter().filter_map(|name| ring_number(name)).collect();
                numbers.sort_unstable();
                for number in numbers {
                    if !known(&self.rings, number) {
                        self.rings.push(RingDrain::new(number, Memory::Foreign(map_ring(place, number)?, Copied::default())));
                    }
                }
            }
        }
        Ok(())
    }

    /// Does one piece of work ahead of threads of this process that will begin to log: makes a ring for the next of
    /// them, or makes memory of a ring present that a thread has made in a hurry. Returns false if there was nothing to
    /// do. The drainer calls it between passes. There is nothing to do for another process.
    pub fn make_ahead(&self) -> bool {
        match &self.scope {
            Scope::Inside(life) if self.generation.is_now() => life.make_ahead(),
            Scope::Inside(_) | Scope::Outside { .. } => false,
        }
    }

    /// The rings known so far.
    pub fn rings(&mut self) -> &mut [RingDrain] {
        &mut self.rings
    }

    /// Returns the rings, and the meaning of the numbers in their records.
    pub fn parts(&mut self) -> (&mut [RingDrain], &mut Reader) {
        (&mut self.rings, &mut self.dictionary)
    }

    /// Identity of the process that logs, if it is another process.
    pub fn source(&self) -> Option<&Source> {
        match &self.scope {
            Scope::Inside(_) => None,
            Scope::Outside { source, .. } => Some(source),
        }
    }

    /// Turns ticks into UTC.
    pub fn conversion(&self) -> Conversion {
        self.clock().conversion()
    }

    /// Returns true if the process itself wants to drain. An outside drainer then hands off its entries, commits them,
    /// and is dropped. For a while after that it leaves the lease to the process.
    pub fn is_wanted(&self) -> bool {
        matches!(self.scope, Scope::Outside { .. }) && self.clock().is_wanted()
    }

    /// Returns true if the directory still exists: a process that ends in order removes it.
    pub fn is_there(&self) -> bool {
        match (&self.scope, &self._lease) {
            (Scope::Outside { place, .. }, Some(lease)) => place.is_current(LEASE, lease.file()),
            _ => true,
        }
    }

    /// Returns true if the process lives, by the rule of [`crate::reader::recover()`].
    pub fn lives(&self) -> bool {
        match &self.scope {
            Scope::Inside(_) => true,
            Scope::Outside { place, source, .. } => {
                let is_over = place.open_file(SOURCE, source::LONGEST).is_ok_and(|(file, _)| lock::is_free(&file));
                !is_over || has_mapped(source.incarnation.pid, place.path())
            }
        }
    }

    /// Sleeps until a ring is more than half full or a thread wakes the drainer, at most so long.
    pub fn sleep(&self, at_most: Duration) {
        self.clock().sleep(at_most);
    }

    /// Sleeps as [`Drainer::sleep`] does, and also until one of these words no longer has the value beside it. Does not
    /// sleep if `has_news` returns true: it is asked after wake-ups have begun to count, so none is missed.
    pub fn sleep_beside(&self, words: &[(&AtomicU32, u32)], at_most: Duration, has_news: impl FnOnce() -> bool) {
        self.clock().sleep_beside(words, at_most, has_news);
    }

    fn clock(&self) -> &ClockPage {
        match &self.scope {
            Scope::Inside(life) => &life.clock,
            Scope::Outside { clock, .. } => clock,
        }
    }
}

impl Drop for Drainer {
    fn drop(&mut self) {
        if let Scope::Inside(life) = &self.scope
            && self.generation.is_now()
        {
            life.drained.store(false, Ordering::Release);
        }
    }
}

fn map_ring(place: &RingDirectory, number: u32) -> Result<RingMap, Busy> {
    let name = ring_name(number);
    let bad = |why: BadRing| Busy::File(place.path().join(&name), why.to_string());
    let (file, length) = place.open_file(&name, LARGEST + (1 << 20))?;
    let bytes = read_at(&file, 0, HEADER_LEN)?;
    let found = Header::decode(&bytes, length).map_err(bad)?.file;
    let page = system::page_size();
    if found.number != number || !(found.header as usize).is_multiple_of(page) || !(found.size as usize).is_multiple_of(page) {
        return Err(bad(BadRing::Size { header: found.header, size: found.size, length }));
    }
    Ok(RingMap::new(&file, found.header as usize, found.size as usize).map_err(place.about::<io::Error>(&name))?)
}

enum Memory {
    Own(Arc<Ring>),
    /// The ring of another process, which may be alive and may write anything at any time.
    Foreign(RingMap, Copied),
}

/// Unread bytes of a foreign ring, copied before they are decoded: a text that was checked does not change any more.
#[derive(Default)]
struct Copied {
    /// Position of the first byte.
    from: u64,
    bytes: Vec<u8>,
}

impl Copied {
    /// Returns the bytes between two positions. Each byte is copied once, unless the walk is rewound.
    fn unread(&mut self, map: &RingMap, position: u64, head: u64) -> &[u8] {
        let length = (head - position) as usize;
        let skipped = position.wrapping_sub(self.from) as usize;
        if position < self.from || self.bytes.len().checked_sub(skipped) != Some(length) {
            self.bytes.clear();
            // SAFETY: as in `unread`. The slice ends with this statement, and no text is made of it.
            self.bytes.extend_from_slice(unsafe { map.published(position, length) });
            self.from = position;
            return &self.bytes;
        }
        &self.bytes[skipped..]
    }
}

impl Memory {
    fn map(&self) -> &RingMap {
        match self {
            Memory::Own(ring) => &ring.map,
            Memory::Foreign(map, _) => map,
        }
    }
}

/// One ring being drained.
pub struct RingDrain {
    number: u32,
    memory: Memory,
    generation: Generation,
    walk: Walk,
    committed: Cursor,
    /// Up to where records are known to be complete; looked for again when the walk is there.
    head: u64,
    broken: bool,
}

impl RingDrain {
    fn new(number: u32, memory: Memory) -> RingDrain {
        let header = memory.map().header();
        // The cursor is stable: this drainer holds the lease.
        let cursor = header.cursor().unwrap_or(Cursor::START);
        header.restore_tail(&cursor);
        let walk = Walk::new(cursor, &header.losses(), header.early());
        RingDrain { number, memory, generation: Generation::now(), walk, committed: cursor, head: cursor.position, broken: false }
    }

    fn header(&self) -> &RingHeader {
        self.memory.map().header()
    }

    /// Number of the ring in its incarnation.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The next entry, or nothing for now. An error is returned once: the ring's memory is damaged, and entries behind
    /// it cannot be found.
    pub fn next_entry(&mut self) -> Option<Result<Entry<'_>, BadRing>> {
        self.next_entry_until(u64::MAX)
    }

    /// Returns the next entry unless it was made later than `latest`, in ticks.
    #[inline]
    pub fn next_entry_until(&mut self, latest: u64) -> Option<Result<Entry<'_>, BadRing>> {
        if self.broken || !self.generation.is_now() {
            return None;
        }
        if let Err(bad) = self.look() {
            self.broken = true;
            return Some(Err(bad));
        }
        let map = self.memory.map();
        let (size, header_length) = (map.size() as u64, map.header_length() as u64);
        let bytes = unread(&mut self.memory, &self.walk, self.head);
        let length = bytes.len() as u64;
        match self.walk.next_until(bytes, latest) {
            Ok(found) => found.map(|found| Ok(found.by(&self.walk.cursor.thread))),
            Err(flaw) => {
                self.broken = true;
                let offset = (self.walk.cursor.position & (size - 1)) + header_length;
                Some(Err(BadRing::Record { offset, flaw, unread: length }))
            }
        }
    }

    /// Returns losses that the ring itself has not reported, because no record followed them: an *early* entry. Returns
    /// `None` while there is another entry, or while earlier losses are not committed. So the next drainer gets the
    /// same losses under the same number if this one dies before its commit.
    pub fn unreported(&mut self) -> Option<Entry<'_>> {
        let is_busy = self.peek().is_some() || self.walk.cursor.reported != self.committed.reported;
        if is_busy || self.broken || !self.generation.is_now() {
            return None;
        }
        let losses = self.header().losses();
        if losses.dropped != self.walk.cursor.reported {
            self.header().report_early(&losses.dropped);
        }
        let found = self.walk.early(&losses)?;
        Some(found.by(&self.walk.cursor.thread))
    }

    /// Finds the end of the complete records, when the walk has reached the known end.
    fn look(&mut self) -> Result<(), BadRing> {
        if self.walk.cursor.position == self.head {
            let (head, size) = (self.header().published(), self.memory.map().size() as u64);
            let position = self.walk.cursor.position;
            let waiting = head.wrapping_sub(self.committed.position);
            if waiting > size || head < position {
                return Err(BadRing::Words { head, position, size });
            }
            self.header().drainer_saw(waiting);
            self.head = head;
        }
        Ok(())
    }

    /// Time of the next entry, in ticks; `None` if the ring is empty.
    pub fn peek(&mut self) -> Option<u64> {
        if self.broken || !self.generation.is_now() || self.look().is_err() {
            return None;
        }
        self.walk.peek(unread(&mut self.memory, &self.walk, self.head))
    }

    /// Call site of the next entry, by its number in the dictionary, 0 for a note; `None` if the ring is empty.
    pub fn peek_site(&mut self) -> Option<u32> {
        if self.broken || !self.generation.is_now() || self.look().is_err() {
            return None;
        }
        self.walk.peek_site(unread(&mut self.memory, &self.walk, self.head))
    }

    /// Position of the walk: the cursor to commit once everything before it has been handed off.
    pub fn mark(&self) -> Cursor {
        self.walk.cursor
    }

    /// Gives back the room of everything before a mark of this ring: it has been handed off. Marks go forward.
    pub fn commit(&mut self, mark: &Cursor) {
        let ahead = mark.position > self.committed.position
            || mark.position == self.committed.position && mark.reported != self.committed.reported;
        let moves = ahead && mark.position <= self.walk.cursor.position;
        if moves && self.generation.is_now() {
            self.header().move_cursor(mark);
            self.committed = *mark;
        }
    }

    /// Rewinds to the last commit: the entries since then are returned again.
    pub fn rewind(&mut self) {
        self.walk = Walk::new(self.committed, &self.header().losses(), self.header().early());
        self.head = self.committed.position;
    }

    /// Statistics of the ring.
    pub fn stats(&self) -> RingStats {
        ring_stats(self.number, self.header())
    }
}

fn unread<'a>(memory: &'a mut Memory, walk: &Walk, head: u64) -> &'a [u8] {
    let position = walk.cursor.position;
    match memory {
        // SAFETY: the bytes are published up to `head`, at most one round behind it. Only `commit` releases them. It needs the
        // ring exclusively, so no slice outlives it.
        Memory::Own(ring) => unsafe { ring.map.published(position, (head - position) as usize) },
        Memory::Foreign(map, copied) => copied.unread(map, position, head),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_foreign_ring_do_not_change_after_they_were_copied() {
        let page = system::page_size();
        let header = HEADER_LEN.next_multiple_of(page);
        let file = tampu_shm::create_unnamed("test", (header + 4096) as u64).unwrap();
        let (writer, map) = (RingMap::new(&file, header, 4096).unwrap(), RingMap::new(&file, header, 4096).unwrap());
        // SAFETY: the data have 2 x 4096 bytes, and no slice of them lives.
        let write =
            |at: usize, bytes: &[u8]| unsafe { writer.data().add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        write(0, b"a text that is read");
        let mut copied = Copied::default();
        assert_eq!(copied.unread(&map, 0, 19), b"a text that is read");
        // The owner writes where it must not.
        write(0, &[0xff; 19]);
        assert_eq!(copied.unread(&map, 2, 19), b"text that is read");
        assert_eq!(copied.unread(&map, 19, 19), b"");
        // The head moves on, and a walk that is rewound reads again.
        write(19, b", and more");
        assert_eq!(copied.unread(&map, 19, 29), b", and more");
        write(0, b"a text");
        assert_eq!(copied.unread(&map, 0, 6), b"a text");
        // Round the end of the ring.
        write(4090, b"at the");
        write(0, b" end");
        assert_eq!(copied.unread(&map, 4090, 4100), b"at the end");
    }
}
