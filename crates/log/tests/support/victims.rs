//! Kills processes that log and counts what the archive has of them: a real node, collector and ring keeper in this process,
//! victims in processes of their own.
//!
//! A victim's threads each store, after every call that returned, how many did; that page outlives them and is the witness. What
//! the archive has of a victim, together with what it was told was lost, must be at least the witnessed calls and at most one
//! call a thread more (the one it was in), and nothing may be there twice.

#![allow(dead_code)]

#[path = "host.rs"]
mod host;

use std::{
    collections::HashMap,
    fs::{self, OpenOptions},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use host::{Host, PATIENCE};
use tampu_log::{LogSettings, Logger, info, recovery::News};
use tampu_types::{Level, LogRecord, SourceName};

/// Tells the process that is to be killed where its witness is.
const VICTIM: &str = "TAMPU_LOG_VICTIM";
const THREADS: usize = 2;

/// Sums over all kills.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    pub kills: u64,
    /// Calls that had returned.
    pub produced: u64,
    /// Of these calls, those whose record the archive has.
    pub recovered: u64,
    /// Records that were still in the rings when their process died.
    pub unread: u64,
    /// Calls of which the log itself tells that they found no room.
    pub told: u64,
    /// Calls that had returned and of which nothing is known.
    pub lost: u64,
    /// Records that are there twice.
    pub doubled: u64,
    /// Calls in the watched time, for the rate.
    pub ns: u64,
}

/// In the process that is to be killed, if this is one: logs until then.
pub fn be_the_victim() {
    let Some(witness) = std::env::var_os(VICTIM) else { return };
    let witness = OpenOptions::new().read(true).write(true).open(witness).unwrap();
    let mut settings = LogSettings::from_env(SourceName::new("victim").unwrap()).unwrap();
    settings.full_wait = Duration::from_millis(50);
    let logger = Logger::open(settings).unwrap();
    assert!(logger.storage().is_crash_safe(), "{:?}", logger.storage());
    let witness = &witness;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let logger = logger.clone();
            scope.spawn(move || {
                let mut page = Page::default();
                let text = "x".repeat(60_000);
                for number in 0_u64.. {
                    one_call(&logger, number, thread, &text);
                    page.count(witness, thread, number + 1);
                }
            });
        }
    });
}

/// Mostly a statement; now and then one of those that a ring takes another way.
fn one_call(logger: &Logger, number: u64, thread: usize, text: &str) {
    match number {
        // Longer than a quarter of a ring: a call, and a record made by hand.
        _ if number % 20_000 == 100 => info!(logger, "call {number} of {thread} at {}{}{}{}{}", text, text, text, text, text),
        _ if number % 20_000 == 200 => {
            let message = format!("call {number} of {thread} at {}", text.repeat(6));
            logger.record(LogRecord::new(Level::Info, message));
        }
        _ if number % 16 == 3 => logger.record(LogRecord::new(Level::Info, format!("call {number} of {thread} by hand"))),
        _ if number % 16 == 9 => info!(logger.in_stack("chain", 1), "call {number} of {thread} at {}", "DV01"),
        _ => info!(logger, "call {number} of {thread} at {}", "DV01"),
    }
}

/// The witness: a word a thread, in a file.
#[derive(Default)]
struct Page {
    map: Option<memory::Words>,
}

impl Page {
    fn count(&mut self, file: &fs::File, thread: usize, calls: u64) {
        self.map.get_or_insert_with(|| memory::Words::map(file)).word(thread).store(calls, Ordering::Release);
    }
}

mod memory {
    //! Words in a file.

    use std::{fs::File, sync::atomic::AtomicU64};

    use rustix::mm::{MapFlags, ProtFlags, mmap};

    pub const LENGTH: usize = 4096;

    /// Mapped until the process ends, which for a victim is soon.
    pub struct Words(*const AtomicU64);

    impl Words {
        pub fn map(file: &File) -> Words {
            // SAFETY: a new mapping at a place that the kernel chooses; the file has LENGTH bytes.
            let start =
                unsafe { mmap(std::ptr::null_mut(), LENGTH, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, 0) };
            Words(start.unwrap().cast())
        }

        pub fn word(&self, thread: usize) -> &AtomicU64 {
            assert!(thread < LENGTH / 128);
            // SAFETY: within the mapping, aligned, and never unmapped.
            unsafe { &*self.0.add(thread * 16) }
        }
    }
}

fn witnessed(path: &Path) -> [u64; THREADS] {
    let file = fs::File::open(path).unwrap();
    std::array::from_fn(|thread| {
        let mut word = [0; 8];
        file.read_exact_at(&mut word, thread as u64 * 128).unwrap();
        u64::from_ne_bytes(word)
    })
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

fn start(program: &Command, host: &Host, witness: &Path) -> Child {
    fs::write(witness, vec![0; memory::LENGTH]).unwrap();
    host.command(program).env(VICTIM, witness).spawn().unwrap()
}

/// Kills this many victims, at moments that follow from the seed.
pub fn kill(kills: u64, seed: u64, program: &Command) -> Totals {
    let mut host = Host::start();
    let mut chance = Chance(seed);
    let mut totals = Totals { kills, ..Totals::default() };
    let mut victims: HashMap<u32, [u64; THREADS]> = HashMap::new();
    for number in 0..kills {
        let witness: PathBuf = host.dir.path().join(format!("witness-{number}"));
        let mut victim = start(program, &host, &witness);
        let begun = Instant::now();
        while witnessed(&witness).contains(&0) {
            assert!(victim.try_wait().unwrap().is_none(), "seed {seed}: a victim ended by itself");
            assert!(begun.elapsed() < PATIENCE, "seed {seed}: a victim does not begin");
            std::thread::sleep(Duration::from_micros(200));
        }
        let (watched, before) = (Instant::now(), witnessed(&witness));
        // Half of the kills come before any acknowledgement is possible, half under full load.
        let longest = if number % 2 == 0 { 30_000 } else { 500_000 };
        std::thread::sleep(Duration::from_micros(chance.below(longest)));
        victim.kill().unwrap();
        totals.ns += watched.elapsed().as_nanos() as u64;
        victim.wait().unwrap();
        let calls = witnessed(&witness);
        assert!(calls.iter().zip(before).all(|(after, before)| *after >= before));
        victims.insert(victim.id(), calls);
        fs::remove_file(&witness).unwrap();
    }
    host.settle();
    let recovered = |news: &News| if let News::Recovered(recovered) = news { recovered.records } else { 0 };
    totals.unread = host.news.lock().unwrap().iter().map(recovered).sum();
    count(&host, &victims, &mut totals, seed);
    totals
}

/// Records of one victim in the archive.
#[derive(Default)]
struct Kept {
    /// A bit for each call, of each thread.
    calls: [Vec<u64>; THREADS],
    told: u64,
}

fn count(host: &Host, victims: &HashMap<u32, [u64; THREADS]>, totals: &mut Totals, seed: u64) {
    let mut kept: HashMap<u32, Kept> = HashMap::new();
    let take = |record: &LogRecord| {
        let Some(id) = record.id.filter(|id| victims.contains_key(&id.incarnation.pid)) else { return };
        let kept = kept.entry(id.incarnation.pid).or_default();
        if let Some((number, thread)) = parse(&record.message) {
            let words = &mut kept.calls[thread];
            let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
            if words.len() <= word {
                words.resize(word + 1, 0);
            }
            totals.doubled += u64::from(words[word] & bit != 0);
            words[word] |= bit;
        } else if record.message.contains("lost here") {
            kept.told += record.data[0].value.parse::<u64>().unwrap();
        }
    };
    host.each(take);
    for (pid, calls) in victims {
        let kept = kept.remove(pid).unwrap_or_default();
        let mut missing = 0;
        for (completed, words) in calls.iter().zip(&kept.calls) {
            let there =
                (0..*completed).filter(|n| words.get((n / 64) as usize).is_some_and(|word| word >> (n % 64) & 1 != 0)).count();
            missing += completed - there as u64;
            if (there as u64) < *completed {
                let missing = |n: &u64| words.get((n / 64) as usize).is_none_or(|word| word >> (n % 64) & 1 == 0);
                let (first, last) = ((0..*completed).find(missing), (0..*completed).rfind(missing));
                eprintln!("victim {pid}: {} of {completed} calls are missing, {first:?} to {last:?}", completed - there as u64);
            }
            totals.produced += completed;
            totals.recovered += there as u64;
            let beyond: u64 = words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>() - there as u64;
            assert!(beyond <= 1, "seed {seed}: {beyond} records of calls that never were");
        }
        if missing > 0 {
            eprintln!("victim {pid}: {missing} missing, {} told", kept.told);
        }
        totals.told += kept.told;
        totals.lost += missing.saturating_sub(kept.told);
    }
}

fn parse(message: &str) -> Option<(u64, usize)> {
    let mut words = message.strip_prefix("call ")?.split(' ');
    let number = words.next()?.parse().ok()?;
    let thread = words.nth(1)?.parse().ok()?;
    Some((number, thread))
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Totals { kills, produced, recovered, unread, told, lost, doubled, .. } = self;
        write!(
            f,
            "kills={kills} unread={unread} told={told} produced={produced} recovered={recovered} lost={lost} doubled={doubled}"
        )
    }
}
