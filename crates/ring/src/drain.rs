//! The reading side: walking over what was published, and giving room back once it has been handed off.
//!
//! Decision: reading and giving back are two steps. Entries are lent from the ring; [`RingDrain::mark`] says where the walk
//! stands, and [`RingDrain::commit`] moves the cursor there when, and only when, the caller has handed everything before it to
//! somebody who will not lose it. A drainer that dies in between is followed by one that gets the same entries with the same
//! numbers again.
//!
//! Rings are walked one by one. Who wants one order over all of them takes from the ring whose [`RingDrain::peek`] is lowest,
//! and waits as long as its watermark says for the ones that are empty.

use std::{
    io,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use crate::{
    clock::Conversion,
    clock_page::{self, ClockPage},
    dictionary::{self, Reader},
    fork::Generation,
    image::Header,
    lease::{self, Held},
    life::{CLOCK, DICTIONARY, LEASE, Life, SOURCE, ring_name, ring_number},
    lines::{Cursor, LINES_LEN, Lines},
    long::Longs,
    map::RingMap,
    place::{Place, PlaceError, read_at},
    producer::Ring,
    record::{Entry, Walk},
    recover::has_mapped,
    refuge::Refuge,
    ring_file::{BadRing, LARGEST},
    rings::{RingStats, ring_stats},
    source::{self, Source},
    system,
};

/// Why one cannot drain just now.
#[derive(Debug, thiserror::Error)]
pub enum Busy {
    /// Somebody does.
    #[error("somebody else drains these rings")]
    Taken,
    /// A file cannot be used.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A file is not what its name says.
    #[error("{0}: {1}")]
    File(std::path::PathBuf, String),
    /// The system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The one who drains the rings of one life: its own process's thread, or another process of the same user.
pub struct Drainer {
    rings: Vec<RingDrain>,
    dictionary: Reader,
    scope: Scope,
    generation: Generation,
    _lease: Option<Held>,
}

enum Scope {
    Inside(Arc<Life>),
    Outside { place: Arc<Place>, clock: ClockPage, source: Source },
}

impl Drainer {
    pub(crate) fn inside(life: Arc<Life>) -> Result<Drainer, Busy> {
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

    /// Drains another process's rings while it lives, as long as it does not want to by itself ([`Drainer::is_wanted`]). What is in
    /// them when it dies is for [`crate::recover()`], which also knows what the process could no longer tell.
    pub fn attach(directory: &Path) -> Result<Drainer, Busy> {
        let place = Place::open(directory)?;
        let bad = |name: &str, why: String| Busy::File(directory.join(name), why);
        let text = place.read_file(SOURCE, source::LONGEST)?;
        let source = Source::parse(&text).map_err(|why| bad(SOURCE, why.to_string()))?;
        let lease = take_lease(&place)?;
        let (file, length) = place.open_file(CLOCK, clock_page::LENGTH as u64)?;
        let bytes = read_at(&file, 0, length as usize)?;
        let clock = ClockPage::open(&file, &bytes).map_err(|why| bad(CLOCK, why.to_string()))??;
        // Whoever wanted it did not come for it; who still waits says so again.
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
    pub fn longs(&self) -> Longs {
        match &self.scope {
            Scope::Inside(life) => Longs::in_life(life),
            Scope::Outside { place, .. } => Longs::of(Some(place.clone())),
        }
    }

    /// Where packets go that leave the rings and that nobody has yet; of a process's own drainer only.
    pub fn refuge(&self) -> Refuge {
        match &self.scope {
            Scope::Inside(life) => Refuge::of(life.place().cloned()),
            Scope::Outside { .. } => Refuge::of(None),
        }
    }

    /// Looks for rings that are new, and takes an anchor of the clock: about once a second.
    pub fn refresh(&mut self) -> Result<(), Busy> {
        if !self.generation.is_now() {
            return Ok(());
        }
        self.clock().anchor();
        if let Scope::Inside(life) = &self.scope {
            life.thin_stock();
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
                        self.rings.push(RingDrain::new(number, Memory::Foreign(map_ring(place, number)?)));
                    }
                }
            }
        }
        Ok(())
    }

    /// Does one thing ahead of threads of this process that will begin to log, if there is any to do: makes a ring for the next of
    /// them, or makes memory of one present that a thread has made in a hurry. Says whether there was any; whoever drains calls it
    /// between passes. Nothing is to be done for another process.
    pub fn stock_up(&self) -> bool {
        match &self.scope {
            Scope::Inside(life) if self.generation.is_now() => life.stock_up(),
            Scope::Inside(_) | Scope::Outside { .. } => false,
        }
    }

    /// The rings known so far.
    pub fn rings(&mut self) -> &mut [RingDrain] {
        &mut self.rings
    }

    /// The rings, and what the numbers in their records stand for.
    pub fn parts(&mut self) -> (&mut [RingDrain], &mut Reader) {
        (&mut self.rings, &mut self.dictionary)
    }

    /// Who logs, where it is another process.
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

    /// Whether the process itself wants to drain: who does so from outside hands off what it has taken, commits that, and is
    /// dropped. For a while after that it leaves the lease to the process.
    pub fn is_wanted(&self) -> bool {
        matches!(self.scope, Scope::Outside { .. }) && self.clock().is_wanted()
    }

    /// Whether the directory is still there: a process that ends in order removes it.
    pub fn is_there(&self) -> bool {
        match (&self.scope, &self._lease) {
            (Scope::Outside { place, .. }, Some(lease)) => place.is_current(LEASE, lease.file()),
            _ => true,
        }
    }

    /// Whether the process lives, as [`crate::recover()`] sees it.
    pub fn lives(&self) -> bool {
        match &self.scope {
            Scope::Inside(_) => true,
            Scope::Outside { place, source, .. } => {
                let is_over = place.open_file(SOURCE, source::LONGEST).is_ok_and(|(file, _)| lease::is_free(&file));
                !is_over || has_mapped(source.incarnation.pid, place.path())
            }
        }
    }

    /// Sleeps until a ring is more than half full or somebody rings the bell, at most so long.
    pub fn sleep(&self, at_most: Duration) {
        self.clock().sleep(at_most);
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

pub(crate) fn take_lease(place: &Place) -> Result<Held, Busy> {
    let (file, _) = place.open_file(LEASE, 0)?;
    Held::take(file)?.ok_or(Busy::Taken)
}

fn map_ring(place: &Place, number: u32) -> Result<RingMap, Busy> {
    let name = ring_name(number);
    let bad = |why: BadRing| Busy::File(place.path().join(&name), why.to_string());
    let (file, length) = place.open_file(&name, LARGEST + (1 << 20))?;
    let bytes = read_at(&file, 0, LINES_LEN)?;
    let found = Header::decode(&bytes, length).map_err(bad)?.file;
    let page = system::page_size();
    if found.number != number || !(found.header as usize).is_multiple_of(page) || !(found.size as usize).is_multiple_of(page) {
        return Err(bad(BadRing::Size { header: found.header, size: found.size, length }));
    }
    Ok(RingMap::new(&file, found.header as usize, found.size as usize).map_err(place.about::<io::Error>(&name))?)
}

enum Memory {
    Own(Arc<Ring>),
    Foreign(RingMap),
}

impl Memory {
    fn map(&self) -> &RingMap {
        match self {
            Memory::Own(ring) => &ring.map,
            Memory::Foreign(map) => map,
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
        let lines = memory.map().lines();
        // Nobody moves it: we have the lease.
        let cursor = lines.cursor().unwrap_or(Cursor::START);
        lines.restore_tail(&cursor);
        let walk = Walk::new(cursor, &lines.losses(), lines.early());
        RingDrain { number, memory, generation: Generation::now(), walk, committed: cursor, head: cursor.position, broken: false }
    }

    fn lines(&self) -> &Lines {
        self.memory.map().lines()
    }

    /// The ring's number within its life.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The next entry, or nothing for now. An error is told once: the ring's memory is damaged, and what follows in it
    /// cannot be found any more.
    pub fn next_entry(&mut self) -> Option<Result<Entry<'_>, BadRing>> {
        self.next_entry_until(u64::MAX)
    }

    /// The same, but nothing that was made later than `latest`, in ticks.
    #[inline]
    pub fn next_entry_until(&mut self, latest: u64) -> Option<Result<Entry<'_>, BadRing>> {
        if self.broken || !self.generation.is_now() {
            return None;
        }
        if let Err(bad) = self.look() {
            self.broken = true;
            return Some(Err(bad));
        }
        let bytes = unread(&self.memory, &self.walk, self.head);
        match self.walk.next_until(bytes, latest) {
            Ok(found) => found.map(|found| Ok(found.by(&self.walk.cursor.thread))),
            Err(flaw) => {
                self.broken = true;
                let map = self.memory.map();
                let offset = (self.walk.cursor.position & (map.size() as u64 - 1)) + map.header() as u64;
                Some(Err(BadRing::Record { offset, flaw, unread: bytes.len() as u64 }))
            }
        }
    }

    /// Losses that the ring itself has not told yet, because nothing came after them: an *early* entry. Nothing while there is
    /// something else to take, or while losses told before are not committed: so whoever takes over before the next commit
    /// gets the same under the same number.
    pub fn untold(&mut self) -> Option<Entry<'_>> {
        let is_busy = self.peek().is_some() || self.walk.cursor.told != self.committed.told;
        if is_busy || self.broken || !self.generation.is_now() {
            return None;
        }
        let losses = self.lines().losses();
        if losses.dropped != self.walk.cursor.told {
            self.lines().tell_early(&losses.dropped);
        }
        let found = self.walk.early(&losses)?;
        Some(found.by(&self.walk.cursor.thread))
    }

    /// Looks how far records are complete, where the walk has come to what was known of it.
    fn look(&mut self) -> Result<(), BadRing> {
        if self.walk.cursor.position == self.head {
            let (head, size) = (self.lines().published(), self.memory.map().size() as u64);
            let position = self.walk.cursor.position;
            let waiting = head.wrapping_sub(self.committed.position);
            if waiting > size || head < position {
                return Err(BadRing::Words { head, position, size });
            }
            self.lines().drainer_saw(waiting);
            self.head = head;
        }
        Ok(())
    }

    /// When the next entry was made, in ticks; nothing where the ring is empty.
    pub fn peek(&mut self) -> Option<u64> {
        if self.broken || !self.generation.is_now() || self.look().is_err() {
            return None;
        }
        self.walk.peek(unread(&self.memory, &self.walk, self.head))
    }

    /// What made the next entry: its number in the dictionary, 0 for a note; nothing where the ring is empty.
    pub fn peek_site(&mut self) -> Option<u32> {
        if self.broken || !self.generation.is_now() || self.look().is_err() {
            return None;
        }
        self.walk.peek_site(unread(&self.memory, &self.walk, self.head))
    }

    /// Where the walk stands: what to commit once everything up to here has been handed off.
    pub fn mark(&self) -> Cursor {
        self.walk.cursor
    }

    /// Gives back the room of everything before a mark of this ring: it has been handed off. Marks go forward.
    pub fn commit(&mut self, mark: &Cursor) {
        let ahead = mark.position > self.committed.position
            || mark.position == self.committed.position && mark.told != self.committed.told;
        let moves = ahead && mark.position <= self.walk.cursor.position;
        if moves && self.generation.is_now() {
            self.lines().move_cursor(mark);
            self.committed = *mark;
        }
    }

    /// Goes back to what was committed last: the entries since then come again.
    pub fn rewind(&mut self) {
        self.walk = Walk::new(self.committed, &self.lines().losses(), self.lines().early());
        self.head = self.committed.position;
    }

    /// What the ring has seen.
    pub fn stats(&self) -> RingStats {
        ring_stats(self.number, self.lines())
    }
}

fn unread<'a>(memory: &'a Memory, walk: &Walk, head: u64) -> &'a [u8] {
    let position = walk.cursor.position;
    // SAFETY: published up to `head`, at most one round behind it, and given back only by `commit`, which needs the ring
    // exclusively and so outlives no slice.
    unsafe { memory.map().published(position, (head - position) as usize) }
}
