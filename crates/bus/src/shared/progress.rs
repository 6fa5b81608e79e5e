//! A reader's page: how far it is, and who has news for it, told in shared memory to and by writers on the same host.
//!
//! An acknowledgement by message costs its reader, the node and the writer 40 us together; ten readers of one stream then cost
//! more than the samples themselves. Here it is one store, and a look. Messages still say the same, only seldom: they are
//! what a writer on another host has, and what repeats itself should a page be lost.
//!
//! A page belongs to a reader: `<incarnation>-<reader>.progress`, one slot for each stream it reads.
//!
//! ```text
//! 0         8          16                 24     64           128
//! +---------+----------+--------+---------+------+------------+------------+--
//! | magic   | slots    | asleep | bell    | news | slot 1     | slot 2     |      in the host's byte order
//! | u64     | u64      | u32    | u32     | u64 4|            |            |
//! +---------+----------+--------+---------+------+------------+------------+--
//! slot: u64 next (written by the reader) | u64 wake_at | u64 whose | u32 bell | zeros to 64 bytes
//! ```
//! `whose` names the stream (see [`whose`]): a slot may be used again while a writer the reader gave up still looks.
//!
//! A writer that waits for a reader puts the sample it waits for into `wake_at`, looks once more, and sleeps at the bell (a
//! futex); the reader rings when it has come that far. The other way round, a writer that has put a batch on its board sets its
//! slot's bit in `news` and rings the page's bell if the reader is asleep. All sides store before they look, so none misses another.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use memmap2::{MmapOptions, MmapRaw};
use rustix::thread::futex;
use tampu_types::Incarnation;

use crate::links::lock;

const MAGIC: u64 = u64::from_le_bytes(*b"tampuprg");
const SLOT: usize = 64;
const SLOTS: u32 = 255;
const SIZE: usize = SLOT * (1 + SLOTS as usize);

/// Nobody waits.
const NEVER: u64 = u64::MAX;

/// What stands before the slots.
#[repr(C, align(64))]
struct Front {
    magic: AtomicU64,
    slots: AtomicU64,
    asleep: AtomicU32,
    bell: AtomicU32,
    news: [AtomicU64; 4],
}

/// One reader's place in one stream.
#[repr(C, align(64))]
struct Place {
    next: AtomicU64,
    wake_at: AtomicU64,
    whose: AtomicU64,
    bell: AtomicU32,
}

/// Names a stream in a slot: its writer's start and number, mixed. Never 0, which is nobody's.
pub(crate) fn whose(writer: Incarnation, stream: u32) -> u64 {
    let mixed = (writer.start ^ u64::from(writer.pid) << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(stream);
    mixed.max(1)
}

struct Page {
    memory: MmapRaw,
}

impl Page {
    fn front(&self) -> &Front {
        // SAFETY: every page is mapped with SIZE bytes, of which these are the first 64; `Front` is atomics, for which any bytes
        // are valid; page alignment covers its own; it lives as long as `self`.
        unsafe { &*self.memory.as_mut_ptr().cast::<Front>() }
    }

    /// Wakes the reader if it is asleep.
    fn ring(&self) {
        let front = self.front();
        if front.asleep.load(Ordering::SeqCst) != 0 && front.asleep.swap(0, Ordering::SeqCst) != 0 {
            front.bell.fetch_add(1, Ordering::SeqCst);
            // Should it fail, the reader wakes by its timeout.
            let _ = futex::wake(&front.bell, futex::Flags::empty(), i32::MAX as u32);
        }
    }

    fn place(&self, slot: u32) -> &Place {
        let slot = slot.clamp(1, SLOTS) as usize;
        // SAFETY: slots 1 to SLOTS lie within SIZE; `Place` is 64 bytes of atomics, for which any bytes are valid, at a
        // multiple of 64; it lives as long as `self`.
        unsafe { &*self.memory.as_mut_ptr().cast::<Place>().add(slot) }
    }
}

/// A reader's page. The file goes with it.
pub(crate) struct ProgressPage {
    page: Page,
    path: PathBuf,
    free: Mutex<Vec<u32>>,
}

impl ProgressPage {
    pub fn create(path: PathBuf) -> io::Result<Arc<ProgressPage>> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        // Reserving now turns a full file system into an error here instead of a SIGBUS at the first write.
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, SIZE as u64)?;
        let page = Page { memory: MmapOptions::new().len(SIZE).map_raw(&file)? };
        page.front().slots.store(u64::from(SLOTS), Ordering::Relaxed);
        page.front().magic.store(MAGIC, Ordering::Release);
        Ok(Arc::new(ProgressPage { page, path, free: Mutex::new((1..=SLOTS).rev().collect()) }))
    }

    /// A slot for one more stream, if there is one.
    pub fn slot(self: &Arc<ProgressPage>, whose: u64) -> Option<Progress> {
        let number = lock(&self.free).pop()?;
        let place = self.page.place(number);
        place.whose.store(whose, Ordering::SeqCst);
        place.next.store(0, Ordering::SeqCst);
        place.wake_at.store(NEVER, Ordering::SeqCst);
        Some(Progress { page: self.clone(), number })
    }

    /// The slots whose writers have put something on their boards since the last call.
    pub fn news(&self) -> impl Iterator<Item = u32> + use<> {
        // Most calls find nothing; looking leaves the line with its other users.
        let take = |word: &AtomicU64| if word.load(Ordering::SeqCst) == 0 { 0 } else { word.swap(0, Ordering::SeqCst) };
        let words = self.page.front().news.each_ref().map(take);
        (0..256).filter(move |slot| words[slot / 64] >> (slot % 64) & 1 != 0).map(|slot| slot as u32)
    }

    /// Wakes whoever sleeps here.
    pub fn ring(&self) {
        self.page.ring();
    }

    /// Sleeps until the bell rings, at most this long; not at all where `has_news` finds some after everybody was told.
    pub fn sleep(&self, timeout: Duration, has_news: impl FnOnce() -> bool) {
        let front = self.page.front();
        let bell = front.bell.load(Ordering::SeqCst);
        front.asleep.store(1, Ordering::SeqCst);
        let news = || front.news.iter().any(|word| word.load(Ordering::SeqCst) != 0);
        if !news() && !has_news() {
            let timeout = timespec(timeout);
            // It returns early when the bell was rung meanwhile, or for a signal; the caller looks again.
            let _ = futex::wait(&front.bell, futex::Flags::empty(), bell, Some(&timeout));
        }
        front.asleep.store(0, Ordering::SeqCst);
    }
}

fn timespec(time: Duration) -> futex::Timespec {
    futex::Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) }
}

impl Drop for ProgressPage {
    fn drop(&mut self) {
        // Writers keep what they mapped.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A reader's side of a slot.
pub(crate) struct Progress {
    page: Arc<ProgressPage>,
    /// Which slot, from 1.
    pub number: u32,
}

impl Progress {
    /// The reader has done with all samples before `next`.
    pub fn reach(&self, next: u64) {
        let place = self.page.page.place(self.number);
        let reached = place.next.fetch_max(next, Ordering::SeqCst).max(next);
        if reached >= place.wake_at.load(Ordering::SeqCst) {
            place.wake_at.store(NEVER, Ordering::SeqCst);
            place.bell.fetch_add(1, Ordering::SeqCst);
            // Should it fail, the writer wakes by its timeout.
            let _ = futex::wake(&place.bell, futex::Flags::empty(), i32::MAX as u32);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        lock(&self.page.free).push(self.number);
    }
}

/// A writer's side of a slot.
#[derive(Clone)]
pub(crate) struct Watch {
    page: Arc<Page>,
    slot: u32,
    whose: u64,
}

impl Watch {
    /// Maps the page another process made.
    pub fn open(path: &Path, slot: u32, whose: u64) -> io::Result<Watch> {
        let file: File = OpenOptions::new().read(true).write(true).open(path)?;
        let foreign = || io::Error::new(io::ErrorKind::InvalidData, "not a page of progress");
        if file.metadata()?.len() != SIZE as u64 || !(1..=SLOTS).contains(&slot) {
            return Err(foreign());
        }
        let page = Page { memory: MmapOptions::new().len(SIZE).map_raw(&file)? };
        let front = page.front();
        if front.magic.load(Ordering::Acquire) != MAGIC || front.slots.load(Ordering::Relaxed) != u64::from(SLOTS) {
            return Err(foreign());
        }
        Ok(Watch { page: Arc::new(page), slot, whose })
    }

    /// The first sample the reader has not done with; `None` where the slot is not this stream's any more.
    pub fn next(&self) -> Option<u64> {
        let place = self.page.place(self.slot);
        let next = place.next.load(Ordering::SeqCst);
        // Looked at after the number: a slot gets its new name before it counts for the new stream.
        (place.whose.load(Ordering::SeqCst) == self.whose).then_some(next)
    }

    /// There is something on this writer's board.
    pub fn tell(&self) {
        let slot = self.slot as usize;
        self.page.front().news[slot / 64].fetch_or(1 << (slot % 64), Ordering::SeqCst);
        self.page.ring();
    }

    /// Waits until the reader has come to `target`, at most this long.
    pub fn wait_for(&self, target: u64, timeout: Duration) {
        let place = self.page.place(self.slot);
        let bell = place.bell.load(Ordering::SeqCst);
        place.wake_at.store(target, Ordering::SeqCst);
        if place.next.load(Ordering::SeqCst) >= target {
            return;
        }
        let timeout = timespec(timeout);
        // It returns early when the bell was rung meanwhile, or for a signal; the caller looks again.
        let _ = futex::wait(&place.bell, futex::Flags::empty(), bell, Some(&timeout));
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
        // Nobody asleep, and news that came by another way: neither is waited for.
        page.ring();
        page.sleep(Duration::from_secs(3600), || true);
        assert_eq!(page.news().count(), 0);
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
