//! A reader's page: its progress and its notices, exchanged in shared memory with writers on the same host.
//!
//! An acknowledgement by message costs its reader, the node and the writer 40 us together. With ten readers of one
//! stream that is more than the samples themselves. Here an acknowledgement is one store and one load. Messages still
//! carry the same information, but seldom: for writers on other hosts, and in case a page is lost.
//!
//! A page belongs to a reader: `<incarnation>-<reader>.progress`, with one slot for each of its streams.
//!
//! ```text
//! 0         8          16                 24     64           128
//! +---------+----------+--------+---------+------+------------+------------+--
//! | magic   | slots    | asleep | futex   | news | slot 1     | slot 2     |      in the host's byte order
//! | u64     | u64      | u32    | u32     | u64 4|            |            |
//! +---------+----------+--------+---------+------+------------+------------+--
//! slot: u64 next (written by the reader) | u64 wake_at | u64 whose | u32 futex | u32 0 | u64 received (written by the
//! reader) | u64 wake_at_received | zeros to 64 bytes
//! ```
//! `whose` names the stream (see [`whose`]): a slot may be reused while a former writer still reads it.
//!
//! A writer that waits for a reader stores the awaited sample in `wake_at`, checks once more, and sleeps on the slot's
//! futex word. The reader wakes it when it has reached that sample. In the other direction, a writer that has announced
//! a batch sets its slot's bit in `news`. If the reader is asleep, the writer wakes the page's futex word. All sides
//! store before they check, so no wake-up is missed.

use std::{
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use tampu_shm::{Mapping, create_reserved, futex_wait, futex_wake, shared_words};
use tampu_types::Incarnation;

use crate::{links::lock, qos::Grade};

const MAGIC: u64 = u64::from_le_bytes(*b"tampuprg");
const SLOT: usize = 64;
const SLOTS: u32 = 255;
const SIZE: usize = SLOT * (1 + SLOTS as usize);

/// Value of `wake_at` while no writer waits.
const NEVER: u64 = u64::MAX;

shared_words! {
    /// The words before the slots.
    struct Front {
        magic: AtomicU64,
        slots: AtomicU64,
        asleep: AtomicU32,
        futex: AtomicU32,
        news: [AtomicU64; 4],
    }
}

shared_words! {
    /// A reader's progress in one stream.
    struct Place {
        next: AtomicU64,
        wake_at: AtomicU64,
        whose: AtomicU64,
        futex: AtomicU32,
        received: AtomicU64,
        wake_at_received: AtomicU64,
    }
}

const _: () = assert!(size_of::<Front>() == SLOT && size_of::<Place>() == SLOT);

/// Returns the name of a stream in a slot: its writer's start and number, mixed. Never 0, which marks a free slot.
pub(crate) fn whose(writer: Incarnation, stream: u32) -> u64 {
    let mixed = (writer.start ^ u64::from(writer.pid) << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(stream);
    mixed.max(1)
}

struct Page {
    memory: Mapping,
}

impl Page {
    fn front(&self) -> &Front {
        self.memory.words(0)
    }

    /// Wakes the reader if it is asleep.
    fn ring(&self) {
        let front = self.front();
        if front.asleep.load(Ordering::SeqCst) != 0 && front.asleep.swap(0, Ordering::SeqCst) != 0 {
            front.futex.fetch_add(1, Ordering::SeqCst);
            // If this fails, the reader wakes by its timeout.
            futex_wake(&front.futex, i32::MAX as u32);
        }
    }

    fn place(&self, slot: u32) -> &Place {
        let slot = slot.clamp(1, SLOTS) as usize;
        self.memory.words(SLOT * slot)
    }
}

/// Reader's own page. Dropping it removes the file.
pub(crate) struct ProgressPage {
    page: Page,
    path: PathBuf,
    free: Mutex<Vec<u32>>,
}

impl ProgressPage {
    pub fn create(path: PathBuf) -> io::Result<Arc<ProgressPage>> {
        let page = Page { memory: Mapping::read_write(create_reserved(&path, SIZE)?, SIZE)? };
        page.front().slots.store(u64::from(SLOTS), Ordering::Relaxed);
        page.front().magic.store(MAGIC, Ordering::Release);
        Ok(Arc::new(ProgressPage { page, path, free: Mutex::new((1..=SLOTS).rev().collect()) }))
    }

    /// Assigns a slot to one more stream, if there is a free one.
    pub fn slot(self: &Arc<ProgressPage>, whose: u64) -> Option<Progress> {
        let number = lock(&self.free).pop()?;
        let place = self.page.place(number);
        place.whose.store(whose, Ordering::SeqCst);
        place.next.store(0, Ordering::SeqCst);
        place.wake_at.store(NEVER, Ordering::SeqCst);
        place.received.store(0, Ordering::SeqCst);
        place.wake_at_received.store(NEVER, Ordering::SeqCst);
        Some(Progress { page: self.clone(), number })
    }

    /// Reports if the file was shortened: no writer sees this page.
    pub fn is_lost(&self) -> bool {
        self.page.memory.is_lost()
    }

    /// Returns the slots whose writers have announced batches since the last call.
    pub fn news(&self) -> impl Iterator<Item = u32> + use<> {
        // Most calls find no news. A plain load leaves the cache line with its other users.
        let take = |word: &AtomicU64| if word.load(Ordering::SeqCst) == 0 { 0 } else { word.swap(0, Ordering::SeqCst) };
        let words = self.page.front().news.each_ref().map(take);
        (0..256).filter(move |slot| words[slot / 64] >> (slot % 64) & 1 != 0).map(|slot| slot as u32)
    }

    /// Wakes the thread that sleeps on this page.
    pub fn ring(&self) {
        self.page.ring();
    }

    /// Sleeps until a wake-up, at most this long. It does not sleep if `has_news` returns true after `asleep` was set.
    pub fn sleep(&self, timeout: Duration, has_news: impl FnOnce() -> bool) {
        let front = self.page.front();
        let futex = front.futex.load(Ordering::SeqCst);
        front.asleep.store(1, Ordering::SeqCst);
        let news = || front.news.iter().any(|word| word.load(Ordering::SeqCst) != 0);
        if !news() && !has_news() {
            // It returns early when the word changed meanwhile, or for a signal; the caller checks again.
            futex_wait(&front.futex, futex, timeout);
        }
        front.asleep.store(0, Ordering::SeqCst);
    }
}

impl Drop for ProgressPage {
    fn drop(&mut self) {
        // Writers keep their mappings.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Reader's side of a slot.
pub(crate) struct Progress {
    page: Arc<ProgressPage>,
    /// Number of the slot, from 1.
    pub number: u32,
}

impl Progress {
    /// Reports if the page's file was shortened: no writer sees this slot.
    pub fn is_lost(&self) -> bool {
        self.page.is_lost()
    }

    /// Notes that the reader has finished all samples before `next`.
    pub fn reach(&self, next: u64) {
        let place = self.page.page.place(self.number);
        let reached = place.next.fetch_max(next, Ordering::SeqCst).max(next);
        wake_at(&place.wake_at, reached, &place.futex);
    }

    /// Notes that the reader has all samples before `next` in its memory.
    pub fn receive(&self, next: u64) {
        let place = self.page.page.place(self.number);
        let received = place.received.fetch_max(next, Ordering::SeqCst).max(next);
        wake_at(&place.wake_at_received, received, &place.futex);
    }
}

/// Wakes the writer if it waits for a sample before `reached`.
fn wake_at(awaited: &AtomicU64, reached: u64, futex: &AtomicU32) {
    if reached >= awaited.load(Ordering::SeqCst) {
        awaited.store(NEVER, Ordering::SeqCst);
        futex.fetch_add(1, Ordering::SeqCst);
        // If this fails, the writer wakes by its timeout.
        futex_wake(futex, i32::MAX as u32);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        lock(&self.page.free).push(self.number);
    }
}

/// Writer's side of a slot.
#[derive(Clone)]
pub(crate) struct Watch {
    page: Arc<Page>,
    slot: u32,
    whose: u64,
}

impl Watch {
    /// Maps the page of another process.
    pub fn open(path: &Path, slot: u32, whose: u64) -> io::Result<Watch> {
        let file: File = OpenOptions::new().read(true).write(true).open(path)?;
        let foreign = || io::Error::new(io::ErrorKind::InvalidData, "not a page of progress");
        if file.metadata()?.len() != SIZE as u64 || !(1..=SLOTS).contains(&slot) {
            return Err(foreign());
        }
        let page = Page { memory: Mapping::read_write(&file, SIZE)? };
        let front = page.front();
        if front.magic.load(Ordering::Acquire) != MAGIC || front.slots.load(Ordering::Relaxed) != u64::from(SLOTS) {
            return Err(foreign());
        }
        Ok(Watch { page: Arc::new(page), slot, whose })
    }

    /// Returns the first sample that the reader has not finished; `None` if the slot belongs to another stream.
    pub fn next(&self) -> Option<u64> {
        let place = self.page.place(self.slot);
        let next = place.next.load(Ordering::SeqCst);
        // Read after the number: a slot gets its new name before it counts for the new stream. A page whose file was shortened
        // has no names.
        (place.whose.load(Ordering::SeqCst) == self.whose).then_some(next)
    }

    /// Returns the first sample that the reader does not have in its memory. An earlier release of the reader leaves it
    /// at 0.
    pub fn received(&self) -> u64 {
        self.page.place(self.slot).received.load(Ordering::SeqCst)
    }

    /// Begins a wait until the reader has `target` in its memory, or has finished it. Returns the word that changes
    /// then; `None` if it has.
    pub fn arm(&self, target: u64, grade: Grade) -> Option<Wake> {
        let place = self.page.place(self.slot);
        let expected = place.futex.load(Ordering::SeqCst);
        place.wake_at.store(target, Ordering::SeqCst);
        if grade == Grade::Received {
            place.wake_at_received.store(target, Ordering::SeqCst);
        }
        let reached = place.next.load(Ordering::SeqCst);
        let reached = if grade == Grade::Received { reached.max(self.received()) } else { reached };
        (reached < target).then(|| Wake { page: self.page.clone(), slot: self.slot, expected })
    }

    /// Notifies the reader of new announcements of this writer.
    pub fn tell(&self) {
        let slot = self.slot as usize;
        self.page.front().news[slot / 64].fetch_or(1 << (slot % 64), Ordering::SeqCst);
        self.page.ring();
    }

    /// Waits until the reader has reached `target`, at most this long.
    pub fn wait_for(&self, target: u64, timeout: Duration) {
        let place = self.page.place(self.slot);
        let futex = place.futex.load(Ordering::SeqCst);
        place.wake_at.store(target, Ordering::SeqCst);
        if place.next.load(Ordering::SeqCst) >= target {
            return;
        }
        // It returns early when the word changed meanwhile, or for a signal; the caller checks again.
        futex_wait(&place.futex, futex, timeout);
    }
}

/// Word in shared memory that changes when a reader has come as far as a writer waits for.
pub struct Wake {
    page: Arc<Page>,
    slot: u32,
    expected: u32,
}

impl Wake {
    /// Returns the word, and the value that it has until then.
    pub fn word(&self) -> (&AtomicU32, u32) {
        (&self.page.place(self.slot).futex, self.expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_sleeps_until_the_reader_has_come_far_enough() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p");
        let page = ProgressPage::create(path.clone()).unwrap();
        let (other, progress) = (page.slot(6).unwrap(), page.slot(7).unwrap());
        let watch = Watch::open(&path, progress.number, 7).unwrap();
        let reader = std::thread::spawn(move || {
            for next in 1..=1000 {
                progress.reach(next);
                if next % 100 == 0 {
                    std::thread::sleep(Duration::from_micros(100));
                }
            }
            progress
        });
        let mut waits = 0;
        for target in (50..=1000).step_by(50) {
            while watch.next() < Some(target) {
                watch.wait_for(target, Duration::from_secs(60));
                waits += 1;
            }
        }
        assert_eq!(watch.next(), Some(1000));
        assert!(waits < 60, "a writer that waits is woken for what it waits for: {waits}");
        let progress = reader.join().unwrap();
        progress.reach(7);
        assert_eq!(watch.next(), Some(1000), "what was done with stays done with");
        let number = progress.number;
        drop(progress);
        assert_eq!(page.slot(8).unwrap().number, number, "slots are used again");
        assert_eq!(watch.next(), None, "by another stream");
        drop(other);
    }

    #[test]
    fn a_writer_learns_what_a_reader_has_in_memory_before_it_is_finished() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p");
        let page = ProgressPage::create(path.clone()).unwrap();
        let progress = page.slot(7).unwrap();
        let watch = Watch::open(&path, progress.number, 7).unwrap();
        let received = watch.arm(5, Grade::Received).unwrap();
        let kept = watch.arm(5, Grade::Kept).unwrap();
        let has_changed = |wake: &Wake| wake.word().0.load(Ordering::SeqCst) != wake.word().1;
        progress.receive(4);
        assert!(!has_changed(&received), "not as far as that");
        progress.receive(5);
        assert!(has_changed(&received) && watch.received() == 5 && watch.next() == Some(0));
        // A further wait for what is finished is not ended by what is received.
        drop(kept);
        let kept = watch.arm(6, Grade::Kept).unwrap();
        progress.receive(6);
        assert!(!has_changed(&kept));
        progress.reach(6);
        assert!(has_changed(&kept) && watch.arm(6, Grade::Kept).is_none());
        assert!(watch.arm(6, Grade::Received).is_none() && watch.arm(7, Grade::Received).is_some());
        let number = progress.number;
        drop(progress);
        assert_eq!(page.slot(8).unwrap().number, number);
        assert_eq!(watch.received(), 0, "another stream begins anew");
    }

    #[test]
    fn a_reader_sleeps_until_somebody_has_news() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p");
        let page = ProgressPage::create(path.clone()).unwrap();
        let slots: Vec<Progress> = (0..100).filter_map(|stream| page.slot(stream)).collect();
        let numbers = [slots[3].number, slots[98].number];
        let writers = numbers.map(|number| Watch::open(&path, number, u64::from(number) - 1).unwrap());
        let teller = std::thread::spawn(move || {
            for _ in 0..500 {
                writers.iter().for_each(Watch::tell);
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        let mut told = std::collections::BTreeSet::new();
        while !teller.is_finished() {
            page.sleep(Duration::from_millis(100), || false);
            told.extend(page.news());
        }
        teller.join().unwrap();
        told.extend(page.news());
        assert_eq!(told.into_iter().collect::<Vec<_>>(), numbers);
        // No sleeper, and news that arrived by another path: neither call waits.
        page.ring();
        page.sleep(Duration::from_secs(3600), || true);
        assert_eq!(page.news().count(), 0);
    }

    #[test]
    fn a_page_whose_file_is_shortened_has_no_slots_for_either_side() {
        tampu_shm::survive_truncation().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p");
        let page = ProgressPage::create(path.clone()).unwrap();
        let progress = page.slot(7).unwrap();
        let watch = Watch::open(&path, progress.number, 7).unwrap();
        progress.reach(3);
        assert!(watch.next() == Some(3) && !progress.is_lost());
        File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        assert_eq!(watch.next(), None, "the writer asks for messages");
        progress.reach(4);
        assert!(progress.is_lost() && page.is_lost());
        // Nothing waits for the other side.
        watch.tell();
        watch.wait_for(5, Duration::from_millis(1));
        page.sleep(Duration::from_millis(1), || false);
        assert!(Watch::open(&path, progress.number, 7).is_err());
    }

    #[test]
    fn slots_run_out_and_foreign_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p");
        let page = ProgressPage::create(path.clone()).unwrap();
        let slots: Vec<Progress> = std::iter::from_fn(|| page.slot(1)).collect();
        assert_eq!(slots.len(), SLOTS as usize);
        assert!(Watch::open(&path, SLOTS, 1).is_ok());
        assert!(Watch::open(&path, 0, 1).is_err() && Watch::open(&path, SLOTS + 1, 1).is_err());
        drop((slots, page));
        assert!(!path.exists());
        std::fs::write(&path, vec![0; SIZE]).unwrap();
        assert!(Watch::open(&path, 1, 1).is_err());
    }
}
