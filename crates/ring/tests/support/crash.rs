//! Killing a process that logs, at random moments, and counting what is left of it.
//!
//! The victim's threads each bump a counter in a file after every call that returned. The file is the witness: it is no
//! part of what is tested, and it is read only after the kill. What was recovered must be exactly the calls of which it
//! tells; the one call a thread was in when it was killed may be there or not.

#![allow(dead_code)]

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use tampu_ring::{Drainer, Entry, EntryContent, Kind, Rings, Settings, Source, recover};
use tampu_types::{Domain, Incarnation, SourceName};

/// Tells the process that is to be killed where it works and who drains.
pub const VICTIM: &str = "TAMPU_RING_VICTIM";

const THREADS: usize = 2;
const LEVEL: u8 = 4;
/// Words of the witness: completed and refused calls of each thread, 128 bytes apart.
const WITNESS_LEN: u64 = 4096;

/// Drainer that works while the victim lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Drained {
    /// Nobody: everything is found after the death.
    Never,
    /// A process that is not killed.
    FromOutside,
    /// The victim itself, by a thread that dies with it.
    FromInside,
}

impl Drained {
    const ALL: [Drained; 3] = [Drained::Never, Drained::FromOutside, Drained::FromInside];
}

/// Totals over all kills.
#[derive(Debug, Default, Clone, Copy)]
pub struct Totals {
    pub kills: u64,
    /// Calls that had returned with the record taken.
    pub produced: u64,
    /// Records that were found, each counted once.
    pub recovered: u64,
    /// Of these, those that nobody had read when the process died.
    pub unread: u64,
    /// Calls that had returned and whose record was not found.
    pub lost: u64,
    /// Records that were found under two names.
    pub doubled: u64,
    /// Records that were found twice under one name, by which the second is recognised: the drainer died before its
    /// commit.
    pub again: u64,
    /// Calls that returned saying that there was no room, and how many of these the rings tell.
    pub refused: u64,
    pub reported: u64,
    /// Time for which victims were watched; `calls` has the calls they made meanwhile.
    pub watched: Duration,
    pub watched_calls: u64,
}

impl Totals {
    /// Calls of the victims per second of watching.
    pub fn calls_a_second(&self) -> u64 {
        (self.watched_calls as f64 / self.watched.as_secs_f64().max(1e-9)) as u64
    }
}

/// A small generator whose whole state is a seed (Steele's SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }
}

/// The witness as its threads see it.
struct Witness(memory::Words);

impl Witness {
    fn open(directory: &Path) -> Witness {
        let file = fs::OpenOptions::new().read(true).write(true).open(directory.join("witness")).unwrap();
        Witness(memory::Words::map(&file, WITNESS_LEN as usize))
    }

    fn completed(&self, thread: usize) -> &AtomicU64 {
        self.0.word(32 * thread)
    }

    /// All completed calls.
    fn all(&self) -> u64 {
        (0..THREADS).map(|thread| self.completed(thread).load(Ordering::Acquire)).sum()
    }

    fn refused(&self, thread: usize) -> &AtomicU64 {
        self.0.word(32 * thread + 16)
    }
}

mod memory {
    //! Words in a file.

    use std::{fs::File, sync::atomic::AtomicU64};

    use rustix::mm::{MapFlags, ProtFlags, mmap};

    /// Mapped until the process ends, which for a victim is soon.
    pub struct Words(*const AtomicU64, usize);

    // SAFETY: the memory holds only atomics.
    unsafe impl Sync for Words {}
    // SAFETY: as above.
    unsafe impl Send for Words {}

    impl Words {
        pub fn map(file: &File, length: usize) -> Words {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: a new mapping at a place that the kernel chooses; the file has `length` bytes.
            let start = unsafe { mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, file, 0) };
            Words(start.unwrap().cast(), length / 8)
        }

        pub fn word(&self, index: usize) -> &AtomicU64 {
            assert!(index < self.1);
            // SAFETY: within the mapping, aligned, and never unmapped.
            unsafe { &*self.0.add(index) }
        }
    }
}

/// In the process that is to be killed, if this is one: logs until then.
pub fn be_the_victim() {
    let Some(what) = std::env::var_os(VICTIM) else { return };
    let what = what.to_string_lossy().into_owned();
    let (drained, directory) = what.split_once(' ').unwrap();
    let drained = Drained::ALL.into_iter().find(|one| format!("{one:?}") == drained).unwrap();
    log_for_ever(Path::new(directory), drained);
}

fn log_for_ever(directory: &Path, drained: Drained) -> ! {
    let source = Source {
        domain: Domain::new("crash").unwrap(),
        name: SourceName::new("victim").unwrap(),
        process: "victim".to_owned(),
        host: "here".to_owned(),
        incarnation: Incarnation { boot: 7, pid: std::process::id(), start: 1 },
    };
    // Without a drainer the ring has to hold all records until the kill.
    let ring_bytes = if drained == Drained::Never { 64 << 20 } else { 1 << 20 };
    let settings = Settings { ring_bytes, ..Settings::new(Some(directory.join("rings")), source) };
    let rings = Rings::open(settings).unwrap();
    assert!(rings.storage().is_crash_safe());
    let site = rings.define(Kind::Site, b"site").unwrap();
    let voice = rings.define(Kind::Voice, b"voice").unwrap();
    let witness = Witness::open(directory);
    thread::scope(|scope| {
        if drained == Drained::FromInside {
            scope.spawn(|| hand_off_for_ever(&rings, directory));
        }
        for thread in 0..THREADS {
            let (rings, witness) = (&rings, &witness);
            scope.spawn(move || {
                let begun = Instant::now();
                for call in 0u64.. {
                    let number = witness.completed(thread).load(Ordering::Relaxed);
                    let filler = [number as u8; 40];
                    let length = number as usize % 40;
                    match rings.claim(16 + length, LEVEL, Duration::from_micros(200)) {
                        Ok(mut slot) => {
                            slot.put_array((thread as u64).to_ne_bytes());
                            slot.put_array(number.to_ne_bytes());
                            slot.put(&filler[..length]);
                            slot.commit(site, voice);
                            witness.completed(thread).store(number + 1, Ordering::Release);
                        }
                        Err(_) => {
                            witness.refused(thread).fetch_add(1, Ordering::Release);
                        }
                    }
                    // Two million calls a second from both threads.
                    if drained == Drained::Never && call % 64 == 0 {
                        while begun.elapsed() < Duration::from_micros(call) {
                            std::hint::spin_loop();
                        }
                    }
                }
            });
        }
    });
    unreachable!("the threads log for ever")
}

/// A drainer that hands off to a file: (ring, number, thread, call), or (ring, number, u64::MAX, how many lost).
fn hand_off_for_ever(rings: &Rings, directory: &Path) {
    let mut file = File::create(directory.join("handed-off")).unwrap();
    let mut drainer = rings.drainer().unwrap();
    loop {
        drainer.find_rings().unwrap();
        for ring in drainer.rings() {
            let mut batch = Vec::new();
            while batch.len() < 2000 * 32 {
                let number = ring.number();
                let Some(entry) = ring.next_entry() else { break };
                let found = OwnRing::of(number, &entry.unwrap());
                batch.extend(
                    [u64::from(found.ring), found.number, found.thread, found.call].into_iter().flat_map(u64::to_ne_bytes),
                );
            }
            // First handed off, then committed. Several writes in between, so that many kills fall there.
            for part in batch.chunks(32 * 100) {
                file.write_all(part).unwrap();
            }
            let mark = ring.mark();
            ring.commit(&mark);
        }
        drainer.sleep(Duration::from_micros(200));
    }
}

const LOST: u64 = u64::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct OwnRing {
    ring: u32,
    number: u64,
    thread: u64,
    call: u64,
}

impl OwnRing {
    fn of(ring: u32, entry: &Entry<'_>) -> OwnRing {
        let number = entry.number;
        match entry.what {
            EntryContent::Record { site: 1, voice: 2, payload } => {
                let (thread, rest) = payload.split_first_chunk().unwrap();
                let (call, filler) = rest.split_first_chunk().unwrap();
                let call = u64::from_ne_bytes(*call);
                assert!(filler.len() == call as usize % 40 && filler.iter().all(|&byte| byte == call as u8), "a whole record");
                OwnRing { ring, number, thread: u64::from_ne_bytes(*thread), call }
            }
            EntryContent::Record { .. } | EntryContent::Long { .. } => panic!("{entry:?}"),
            EntryContent::Lost(lost) => {
                assert_eq!(lost.total(), lost.counts[usize::from(LEVEL)]);
                OwnRing { ring, number, thread: LOST, call: lost.total() }
            }
        }
    }
}

/// Kills so many victims. `victim` makes the command of a process that calls [`be_the_victim`].
pub fn kill(kills: u64, seed: u64, base: &Path, victim: impl Fn() -> Command) -> Totals {
    let (mut totals, mut chance) = (Totals::default(), Chance(seed));
    for round in 0..kills {
        let drained = Drained::ALL[round as usize % 3];
        let directory = base.join(format!("crash-{}-{round}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        kill_one(&directory, drained, &mut chance, &mut totals, victim());
        fs::remove_dir_all(&directory).unwrap();
    }
    totals.kills = kills;
    totals
}

fn kill_one(directory: &Path, drained: Drained, chance: &mut Chance, totals: &mut Totals, mut victim: Command) {
    File::create(directory.join("witness")).unwrap().set_len(WITNESS_LEN).unwrap();
    let witness = Witness::open(directory);
    let mut child = victim.env(VICTIM, format!("{drained:?} {}", directory.display())).spawn().unwrap();
    while (0..THREADS).any(|thread| witness.completed(thread).load(Ordering::Acquire) == 0) {
        assert!(child.try_wait().unwrap().is_none(), "the victim ended by itself");
        thread::yield_now();
    }
    let life = lives(directory).pop().unwrap();
    let mut found = Vec::new();
    let (begun, logged_before) = (Instant::now(), witness.all());
    // The moment is a number of calls, most often a small one.
    let magnitude = 8 + chance.below(12);
    let last = logged_before + chance.below(1 << magnitude);
    if drained == Drained::FromOutside {
        let mut drainer = Drainer::attach(&life).unwrap();
        while witness.all() < last {
            drainer.find_rings().unwrap();
            for ring in drainer.rings() {
                let number = ring.number();
                for _ in 0..2000 {
                    let Some(entry) = ring.next_entry() else { break };
                    found.push(OwnRing::of(number, &entry.unwrap()));
                }
                let mark = ring.mark();
                ring.commit(&mark);
            }
        }
    } else {
        while witness.all() < last {
            thread::yield_now();
        }
    }
    child.kill().unwrap();
    totals.watched += begun.elapsed();
    child.wait().unwrap();
    totals.watched_calls += witness.all() - logged_before;

    if let Ok(bytes) = fs::read(directory.join("handed-off")) {
        // The last write may be truncated: an incomplete tuple was not handed off.
        for tuple in bytes.as_chunks::<32>().0 {
            let word = |index: usize| u64::from_ne_bytes(tuple.as_chunks::<8>().0[index]);
            found.push(OwnRing { ring: word(0) as u32, number: word(1), thread: word(2), call: word(3) });
        }
    }
    let before = found.len() as u64;
    let mut recovery = recover(&life).unwrap();
    assert!(recovery.damage.is_empty(), "{:?}", recovery.damage);
    for ring in &mut recovery.rings {
        let number = ring.number();
        while let Some(entry) = ring.next_entry() {
            found.push(OwnRing::of(number, &entry.unwrap()));
        }
        let mark = ring.mark();
        ring.commit(&mark).unwrap();
    }
    assert!(recovery.remove().unwrap().is_empty() && !life.exists());
    totals.unread += found.len() as u64 - before;
    count(found, &witness, totals);
}

fn count(mut found: Vec<OwnRing>, witness: &Witness, totals: &mut Totals) {
    let all = found.len();
    found.sort_unstable();
    found.dedup();
    totals.again += (all - found.len()) as u64;
    assert!(
        found.windows(2).all(|pair| (pair[0].ring, pair[0].number) != (pair[1].ring, pair[1].number)),
        "one name, one record"
    );
    let mut in_rings: Vec<u32> = found.iter().map(|one| one.ring).collect();
    in_rings.dedup();
    for ring in in_rings {
        let numbers = found.iter().filter(|one| one.ring == ring).map(|one| one.number);
        assert!(numbers.eq(0..found.iter().filter(|one| one.ring == ring).count() as u64), "numbers have no holes");
    }
    let reported: u64 = found.iter().filter(|one| one.thread == LOST).map(|one| one.call).sum();
    let (mut produced, mut refused) = (0, 0);
    for thread in 0..THREADS {
        let mut calls: Vec<u64> = found.iter().filter(|one| one.thread == thread as u64).map(|one| one.call).collect();
        calls.sort_unstable();
        let before = calls.len();
        calls.dedup();
        totals.doubled += (before - calls.len()) as u64;
        let completed = witness.completed(thread).load(Ordering::Acquire);
        let kept = calls.iter().filter(|call| **call < completed).count() as u64;
        totals.lost += completed - kept;
        assert!(calls.len() as u64 - kept <= 1, "a thread is in one call at a time");
        produced += completed;
        refused += witness.refused(thread).load(Ordering::Acquire);
        totals.recovered += calls.len() as u64;
    }
    assert!((refused..=refused + THREADS as u64).contains(&reported), "{refused} refused, {reported} reported");
    totals.produced += produced;
    totals.refused += refused;
    totals.reported += reported;
}

fn lives(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory.join("rings")).unwrap().map(|life| life.unwrap().path()).collect()
}

/// Directory in memory for the rings, if there is one.
pub fn memory() -> PathBuf {
    let shared = PathBuf::from("/dev/shm");
    if shared.is_dir() { shared } else { std::env::temp_dir() }
}
