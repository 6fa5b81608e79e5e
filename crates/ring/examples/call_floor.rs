//! Cost of a log call to the calling thread, beside the floor: a loop that only reads the time-stamp counter and stores
//! 40 bytes into a buffer of 1 MiB. `cargo run -p tampu-ring --release --example call_floor [-- --instructions CALLS]`.
//!
//! A call is what a macro makes of two integers and a short string. A drainer empties the rings meanwhile. Costs are
//! the thread's own processor time; time in which other threads ran is not counted.
//!
//! With `--instructions CALLS` the program makes that many calls and nothing else. The counts of `valgrind
//! --tool=callgrind` for two numbers of calls differ by the calls' instructions.

use std::{
    hint::black_box,
    path::PathBuf,
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use tampu_ring::{Counter, Kind, Rings, Settings, Source};
use tampu_types::{Domain, Incarnation, SourceName};

const CALLS: u64 = 10_000;
const ROUNDS: usize = 20;
const WAIT: Duration = Duration::from_millis(20);

fn thread_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The call as a macro would write it.
#[inline(always)]
fn call(rings: &Rings, site: u32, voice: u32, number: u64, axis: &str) {
    let length = 16 + 4 + axis.len();
    // SAFETY: the rings are borrowed, and the length counts the bytes written: 8, 8, 4 and the text.
    unsafe {
        let Some(room) = rings.pool().room(length) else { return call_slowly(rings, site, voice, number, axis) };
        let place = room.place();
        place.cast::<[u8; 8]>().write(number.to_ne_bytes());
        place.add(8).cast::<[u8; 8]>().write((number + 1).to_ne_bytes());
        place.add(16).cast::<[u8; 4]>().write((axis.len() as u32).to_ne_bytes());
        std::ptr::copy_nonoverlapping(axis.as_ptr(), place.add(20), axis.len());
        room.commit(site, voice);
    }
}

#[cold]
#[inline(never)]
fn call_slowly(rings: &Rings, site: u32, voice: u32, number: u64, axis: &str) {
    if let Ok(mut slot) = rings.claim(16 + 4 + axis.len(), 4, WAIT) {
        slot.put_array(number.to_ne_bytes());
        slot.put_array((number + 1).to_ne_bytes());
        slot.put_array((axis.len() as u32).to_ne_bytes());
        slot.put(axis.as_bytes());
        slot.commit(site, voice);
    }
}

#[inline(never)]
fn calls(rings: &Rings, site: u32, voice: u32, count: u64, axis: &str) {
    for number in 0..count {
        call(rings, site, voice, black_box(number), axis);
    }
}

/// The loop to compare with: counter and stores alone.
#[inline(never)]
fn floor(buffer: &mut [u64], at: &mut usize, count: u64) {
    for number in 0..count {
        let number = black_box(number);
        let place = &mut buffer[*at..*at + 5];
        place.copy_from_slice(&[Counter::Processor.ticks(), number, number + 1, number, number]);
        *at = (*at + 5) % (131_072 - 8);
    }
}

type Round<'a> = &'a mut dyn FnMut();

/// ns a call, round by round, of `threads` threads that begin each round together: of one kind of work and of another.
fn measure(threads: usize, work: impl Fn(&mut dyn FnMut(Round<'_>, Round<'_>)) + Sync) -> (Vec<f64>, Vec<f64>) {
    let barrier = Barrier::new(threads);
    let costs = Mutex::new(Vec::new());
    let timed = |round: Round<'_>| {
        barrier.wait();
        let before = thread_ns();
        round();
        (thread_ns() - before) as f64 / CALLS as f64
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                work(&mut |one, other| {
                    one();
                    other();
                    for _ in 0..ROUNDS {
                        let pair = (timed(one), timed(other));
                        costs.lock().unwrap().push(pair);
                    }
                });
            });
        }
    });
    costs.into_inner().unwrap().into_iter().unzip()
}

fn print(name: &str, mut costs: Vec<f64>) {
    costs.sort_by(f64::total_cmp);
    let (mean, median) = (costs.iter().sum::<f64>() / costs.len() as f64, costs[costs.len() / 2]);
    println!(
        "{name:<28} mean {mean:>6.2}  median {median:>6.2}  best {:>6.2}  worst {:>7.2} ns",
        costs[0],
        costs[costs.len() - 1]
    );
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let base = if PathBuf::from("/dev/shm").is_dir() { PathBuf::from("/dev/shm") } else { std::env::temp_dir() };
    let directory = base.join(format!("tampu-call-floor-{}", std::process::id()));
    let source = Source {
        domain: Domain::new("floor")?,
        name: SourceName::new("caller")?,
        process: "call_floor".into(),
        host: "here".into(),
        incarnation: Incarnation { boot: 1, pid: std::process::id(), start: 1 },
    };
    let rings = Arc::new(Rings::open(Settings::new(Some(directory.clone()), source))?);
    let (site, voice) = (rings.define(Kind::Site, b"site")?, rings.define(Kind::Voice, b"voice")?);
    if let [flag, count] = &arguments[..]
        && flag == "--instructions"
    {
        calls(&rings, site, voice, 1, "DV01");
        // The records fit into the ring. So a call takes the slow path once a quarter, and no drainer is needed.
        calls(&rings, site, voice, count.parse::<u64>()?.min(15_000), "DV01");
        let _ = std::fs::remove_dir_all(&directory);
        return Ok(());
    }
    println!("{:?}, {:?}", rings.storage(), Counter::of_this_host());

    let stop = Arc::new(AtomicBool::new(false));
    let drainer = thread::spawn({
        let (mut drainer, stop) = (rings.drainer()?, stop.clone());
        move || {
            let mut records = 0u64;
            while !stop.load(Ordering::Relaxed) {
                drainer.find_rings().unwrap();
                let mut drained = 0;
                for ring in drainer.rings() {
                    while let Some(entry) = ring.next_entry() {
                        black_box(entry.unwrap());
                        drained += 1;
                        if drained % 256 == 0 {
                            let mark = ring.mark();
                            ring.commit(&mark);
                        }
                    }
                    let mark = ring.mark();
                    ring.commit(&mark);
                }
                records += drained;
                // Not directly behind the writers: each of their stores would then wait for memory that this core has just read.
                drainer.sleep(Duration::from_millis(1));
            }
            records
        }
    });

    for threads in [1, 10] {
        println!("{threads} thread(s), {CALLS} calls x {ROUNDS}");
        // One after the other in each round, so that other load of the host affects both.
        let (floors, costs) = measure(threads, |run| {
            let (mut buffer, mut at) = (vec![1u64; 131_072], 0);
            run(&mut || floor(&mut buffer, &mut at, CALLS), &mut || calls(&rings, site, voice, CALLS, black_box("DV01")));
            black_box(&buffer);
        });
        let mut ratios: Vec<f64> = floors.iter().zip(&costs).map(|(floor, cost)| cost / floor).collect();
        ratios.sort_by(f64::total_cmp);
        print("  floor: counter + 40 bytes", floors);
        print("  claim, 28 bytes, commit", costs);
        println!("  median of the ratios         {:.2}", ratios[ratios.len() / 2]);
    }

    // Single calls, each between two readings of the counter. The first line is the cost of the readings alone.
    let counter = Counter::Processor;
    let rate = {
        let (begun, ticks) = (std::time::Instant::now(), counter.ticks());
        while begun.elapsed() < Duration::from_millis(50) {}
        (counter.ticks() - ticks) as f64 / begun.elapsed().as_nanos() as f64
    };
    let percentiles = |name: &str, mut ticks: Vec<u64>| {
        ticks.sort_unstable();
        let at = |part: f64| ticks[((ticks.len() - 1) as f64 * part) as usize] as f64 / rate;
        println!("  {name:<26} p50 {:>5.1}  p99 {:>5.1}  p99.9 {:>6.1}  worst {:>9.1} ns", at(0.5), at(0.99), at(0.999), at(1.0));
    };
    let timed = |work: &mut dyn FnMut(u64)| -> Vec<u64> {
        let count = CALLS * ROUNDS as u64;
        (0..count)
            .map(|number| {
                let before = counter.ticks();
                work(number);
                counter.ticks() - before
            })
            .collect()
    };
    println!("single calls, {} of them, one thread", CALLS * ROUNDS as u64);
    percentiles("nothing (reading twice)", timed(&mut |number| _ = black_box(number)));
    percentiles("claim, 28 bytes, commit", timed(&mut |number| call(&rings, site, voice, black_box(number), black_box("DV01"))));

    stop.store(true, Ordering::Relaxed);
    rings.wake_drainer();
    let drained = drainer.join().unwrap();
    let stats = rings.stats();
    let dropped: u64 = stats.iter().flat_map(|ring| ring.dropped).sum();
    let high_water = stats.iter().map(|ring| ring.high_water).max().unwrap_or(0);
    let waited: u64 = stats.iter().map(|ring| ring.waited).sum();
    println!(
        "{drained} records drained, {dropped} dropped, {waited} calls waited, {} rings, high water {high_water} B",
        stats.len()
    );
    drop(rings);
    let _ = std::fs::remove_dir_all(&directory);
    Ok(())
}
