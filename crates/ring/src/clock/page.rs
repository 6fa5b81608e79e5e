//! The file `clock`: the anchors that convert ticks to UTC, and the futex word that wakes the drainer and can request
//! its end.
//!
//! ```text
//!  0  u8[8] 'TAMPULCK'   u32 mark 0x01020304   u16 version 1   u16 0
//! 16  u32 counter        1 the processor's, 2 ns of UTC      u32 0
//! 24  u64 count          anchors ever written; the last is at (count - 1) modulo 126
//! 32  u32 futex word     1 while the drainer sleeps on it
//! 36  u32 wanted         1 while the process itself wants to drain and somebody else does
//! 64  126 anchors, 32 bytes each: u64 ticks, i64 UTC ns, i64 monotonic ns, u64 1 if UTC was set before it, else 0
//! ```
//! Only the holder of the lease adds anchors. It overwrites the oldest anchor, so a reader skips the anchor that may be
//! half written.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use tampu_shm::{Mapping, futex_wait, futex_wait_any, futex_wake};

use crate::{
    clock::{Anchor, Conversion, Counter},
    files::ring_file::{MARK, VERSION},
};

pub(crate) const LENGTH: usize = 4096;
const MAGIC: [u8; 8] = *b"TAMPULCK";
const COUNT_AT: usize = 24;
const BELL_AT: usize = 32;
const WANTED_AT: usize = 36;
const ANCHORS_AT: usize = 64;
const ANCHORS: u64 = 126;
/// Longest sleep beside other words where the kernel cannot wait for several.
const BESIDE: Duration = Duration::from_millis(1);

/// Error of bytes that are not a clock page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadClock {
    /// Something else, another host's or a later release's.
    #[error("byte 0: it does not begin as a clock page of this release does")]
    Header,
    /// No counter of this release.
    #[error("byte 16: unknown counter {0}")]
    Counter(u32),
}

/// The shared page.
pub(crate) struct ClockPage {
    map: Mapping,
    counter: Counter,
}

impl ClockPage {
    /// Fills a new file of [`LENGTH`] bytes and takes the first anchor.
    pub fn begin(file: &File) -> io::Result<ClockPage> {
        let counter = Counter::of_this_host();
        let mut header = [0; COUNT_AT];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&MARK.to_ne_bytes());
        header[12..14].copy_from_slice(&VERSION.to_ne_bytes());
        header[16..20].copy_from_slice(&counter.number().to_ne_bytes());
        file.write_all_at(&header, 0)?;
        let page = ClockPage { map: Mapping::read_write(file, LENGTH)?, counter };
        page.add(Anchor::take(counter));
        Ok(page)
    }

    /// Maps another process's page, which has [`LENGTH`] bytes.
    pub fn open(file: &File, bytes: &[u8]) -> Result<io::Result<ClockPage>, BadClock> {
        let counter = decode_header(bytes)?;
        Ok(Mapping::read_write(file, LENGTH).map(|map| ClockPage { map, counter }))
    }

    pub fn counter(&self) -> Counter {
        self.counter
    }

    /// Takes a new anchor. Only the holder of the lease calls this.
    pub fn anchor(&self) {
        let before = self.anchors().last().copied();
        let now = Anchor::take(self.counter);
        self.add(before.map_or(now, |before| now.after(&before)));
    }

    fn add(&self, anchor: Anchor) {
        let count = self.map.word(COUNT_AT);
        let index = count.load(Ordering::Relaxed);
        let at = place(index);
        let words = [anchor.ticks, anchor.utc as u64, anchor.monotonic as u64, u64::from(anchor.step)];
        for (index, word) in words.into_iter().enumerate() {
            self.map.word(at + 8 * index).store(word, Ordering::Relaxed);
        }
        count.store(index + 1, Ordering::Release);
    }

    fn anchors(&self) -> Vec<Anchor> {
        let count = self.map.word(COUNT_AT).load(Ordering::Acquire);
        read_anchors(count, |at| self.map.word(at).load(Ordering::Relaxed))
    }

    pub fn conversion(&self) -> Conversion {
        Conversion::new(self.counter, self.anchors())
    }

    fn futex_word(&self) -> &AtomicU32 {
        self.map.half_word(BELL_AT)
    }

    /// Wakes the drainer if it sleeps.
    pub fn wake_drainer(&self) {
        if self.futex_word().load(Ordering::Relaxed) != 0 && self.futex_word().swap(0, Ordering::AcqRel) != 0 {
            // If this fails, the drainer wakes by its timeout.
            futex_wake(self.futex_word(), 1);
        }
    }

    /// Stores whether the process itself wants to drain.
    pub fn want(&self, wanted: bool) {
        self.map.half_word(WANTED_AT).store(u32::from(wanted), Ordering::Relaxed);
        if wanted {
            self.wake_drainer();
        }
    }

    /// Returns true if the process wants to drain its rings itself.
    pub fn is_wanted(&self) -> bool {
        self.map.half_word(WANTED_AT).load(Ordering::Relaxed) != 0
    }

    /// Sleeps until the drainer is woken, at most so long.
    pub fn sleep(&self, at_most: Duration) {
        self.futex_word().store(1, Ordering::SeqCst);
        // A wake-up, a timeout and a signal are all reasons to check the rings.
        futex_wait(self.futex_word(), 1, at_most);
        self.futex_word().store(0, Ordering::Relaxed);
    }

    /// Sleeps until the drainer is woken or one of these words no longer has the value beside it, at most so long. Does
    /// not sleep if `has_news` returns true: it is asked after wake-ups have begun to count.
    pub fn sleep_beside(&self, words: &[(&AtomicU32, u32)], at_most: Duration, has_news: impl FnOnce() -> bool) {
        let own = self.futex_word();
        own.store(1, Ordering::SeqCst);
        if !has_news() {
            let all: Vec<_> = words.iter().copied().chain([(own, 1)]).collect();
            if words.is_empty() || !futex_wait_any(&all, at_most) {
                let at_most = if words.is_empty() { at_most } else { at_most.min(BESIDE) };
                futex_wait(own, 1, at_most);
            }
        }
        own.store(0, Ordering::Relaxed);
    }
}

fn place(index: u64) -> usize {
    ANCHORS_AT + 32 * (index % ANCHORS) as usize
}

fn read_anchors(count: u64, word: impl Fn(usize) -> u64) -> Vec<Anchor> {
    // One less than the number of slots: the oldest may be in use by the writer.
    let first = count.saturating_sub(ANCHORS - 1);
    let anchor = |index| {
        let [ticks, utc, monotonic, step] = std::array::from_fn(|part| word(place(index) + 8 * part));
        Anchor { ticks, utc: utc as i64, monotonic: monotonic as i64, step: step != 0 }
    };
    (first..count).map(anchor).collect()
}

fn decode_header(bytes: &[u8]) -> Result<Counter, BadClock> {
    let mut expected = [0; 16];
    expected[..8].copy_from_slice(&MAGIC);
    expected[8..12].copy_from_slice(&MARK.to_ne_bytes());
    expected[12..14].copy_from_slice(&VERSION.to_ne_bytes());
    let counter = bytes.get(16..20).filter(|_| bytes.len() == LENGTH && bytes[..16] == expected).ok_or(BadClock::Header)?;
    let number = u32::from_ne_bytes([counter[0], counter[1], counter[2], counter[3]]);
    Counter::from_number(number).ok_or(BadClock::Counter(number))
}

impl Conversion {
    /// Reads a whole clock page.
    pub fn parse(bytes: &[u8]) -> Result<Conversion, BadClock> {
        let (counter, anchors) = decode(bytes)?;
        Ok(Conversion::new(counter, anchors))
    }
}

/// The counter and the anchors of a page.
pub(crate) fn decode(bytes: &[u8]) -> Result<(Counter, Vec<Anchor>), BadClock> {
    let counter = decode_header(bytes)?;
    let words = bytes.as_chunks::<8>().0;
    let word = |at: usize| words.get(at / 8).map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    Ok((counter, read_anchors(word(COUNT_AT), word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_outlive_the_page_and_the_oldest_go() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(LENGTH as u64).unwrap();
        let page = ClockPage::begin(&file).unwrap();
        for _ in 0..200 {
            page.anchor();
        }
        let anchors = page.anchors();
        assert_eq!(anchors.len(), 125);
        assert!(anchors.is_sorted_by_key(|anchor| anchor.ticks));
        let bytes = crate::files::directory::read_at(&file, 0, LENGTH).unwrap();
        assert_eq!(decode(&bytes), Ok((page.counter(), anchors)));
        assert_eq!(Conversion::parse(&bytes), Ok(page.conversion()));
        assert_eq!(Conversion::parse(&bytes[1..]), Err(BadClock::Header));
    }

    #[test]
    fn a_sleeping_drainer_is_woken() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(LENGTH as u64).unwrap();
        let page = std::sync::Arc::new(ClockPage::begin(&file).unwrap());
        let sleeper = std::thread::spawn({
            let page = page.clone();
            move || page.sleep(Duration::from_secs(3600))
        });
        while !sleeper.is_finished() {
            page.wake_drainer();
            std::thread::yield_now();
        }
        sleeper.join().unwrap();
    }
}
