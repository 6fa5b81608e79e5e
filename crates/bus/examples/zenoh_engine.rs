//! Rates and latencies of the zenoh engine alone, under the layer that keeps the promises, between processes.
//!
//! ```text
//! cargo run --release --example zenoh_engine -- rate 61440 1       bytes a message, readers
//! cargo run --release --example zenoh_engine -- latency 100 1
//! ```
//! The writer keeps a window of what the slowest reader has confirmed, but nothing that was dropped is sent again as the
//! layer above would: what is lost is counted, and how often the writer waited for a confirmation that did not come.
//! Through the node, then over direct links.

use std::{
    env,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use tampu_bus::{
    clock::Gate,
    connect::{Node, NodeSettings, Settings},
    engine::{Class, Engine},
    run_dir::RunDir,
};

type Failure = Box<dyn std::error::Error>;

const SECONDS: u64 = 3;
/// Bytes under way to the slowest reader.
const WINDOW: u64 = 1 << 20;
/// A confirmation later than this was lost, or what it would confirm was.
const STALL: Duration = Duration::from_millis(20);

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |at: usize, default: u64| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    match arguments.first().map(String::as_str) {
        Some("node") => {
            let _node = Node::start(NodeSettings::new(Settings::from_env()?))?;
            wait_for_the_end()
        }
        Some("reader") => reader(number(1, 0), arguments.get(2).map(String::as_str)),
        Some(what @ ("rate" | "latency")) => {
            let directory = env::temp_dir().join(format!("tampu-engine-{}", std::process::id()));
            let measured = measure(&directory, what == "latency", number(1, 61_440) as usize, number(2, 1));
            std::fs::remove_dir_all(&directory)?;
            measured
        }
        _ => Err("say rate or latency, the bytes a message and the number of readers".into()),
    }
}

fn wait_for_the_end() -> Result<(), Failure> {
    std::io::stdin().lines().for_each(drop);
    Ok(())
}

/// A child that ends when we do.
struct Process(Child);

impl Process {
    fn start(directory: &std::path::Path, arguments: &[String]) -> Result<Process, Failure> {
        let mut command = Command::new(env::current_exe()?);
        command.args(arguments).env("TAMPU_RUN_DIR", directory).stdin(Stdio::piped());
        Ok(Process(command.spawn()?))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn monotonic() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Confirms what it has, and prints what it measured when it is told the end.
fn reader(number: u64, direct: Option<&str>) -> Result<(), Failure> {
    let home: Arc<dyn Engine> = Settings::from_env()?.open()?;
    let engine = match direct {
        Some(endpoint) => home.connect_direct(endpoint, None)?,
        None => home.clone(),
    };
    let confirm = home.outlet(&format!("confirm/{number}"), Class::Control)?;
    let state = Mutex::new((0_u64, 0_u64, Vec::<u64>::new(), 0_u64));
    let _guard = engine.subscribe(
        "data",
        Arc::new(move |message: Bytes, _: &str| {
            let now = monotonic();
            let Ok(mut state) = state.lock() else { return };
            let field = |at: usize| {
                message.get(at..at + 8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default())).unwrap_or_default()
            };
            let (next, lost, times, confirmed) = &mut *state;
            let sequence = field(0);
            if sequence == u64::MAX {
                times.sort_unstable();
                let at = |part: f64| times.get((times.len() as f64 * part) as usize).copied().unwrap_or_default() / 1000;
                println!("  reader {number}: {next} messages, {lost} lost, p50 {} us, p99 {} us", at(0.5), at(0.99));
                *state = (0, 0, Vec::new(), 0);
                return;
            }
            *lost += sequence.saturating_sub(*next);
            *next = sequence + 1;
            times.push(now.saturating_sub(field(8)));
            let due = (WINDOW / 8 / message.len() as u64).max(1);
            if *next - *confirmed >= due || sequence == 0 {
                *confirmed = *next;
                let _ = confirm.send(Bytes::from(next.to_le_bytes().to_vec()));
            }
        }),
    )?;
    wait_for_the_end()
}

fn measure(directory: &std::path::Path, latency: bool, bytes: usize, readers: u64) -> Result<(), Failure> {
    let _node = Process::start(directory, &["node".to_owned()])?;
    let config = Settings::isolated(directory);
    let dir = RunDir::at(directory).domain(&config.domain)?;
    while !dir.node_answers() {
        Gate::default().wait_host(0, Duration::from_millis(5));
    }
    let home: Arc<dyn Engine> = config.open()?;
    let (endpoint, direct) = home.listen_direct()?;
    for (way, engine, endpoint) in [("through the node", home.clone(), None), ("direct", direct, Some(endpoint))] {
        let processes: Vec<Process> = (0..readers)
            .map(|number| {
                let mut arguments = vec!["reader".to_owned(), number.to_string()];
                arguments.extend(endpoint.clone());
                Process::start(directory, &arguments)
            })
            .collect::<Result<_, _>>()?;
        let (sent, elapsed) = write((&*home, &*engine), latency, bytes, readers)?;
        let rate = sent as f64 / elapsed.as_secs_f64();
        println!("{way}: {bytes} B to {readers}: {rate:.0} messages/s, {:.0} MB/s", rate * bytes as f64 / 1e6);
        drop(processes);
    }
    Ok(())
}

fn write(
    (home, engine): (&dyn Engine, &dyn Engine),
    latency: bool,
    bytes: usize,
    readers: u64,
) -> Result<(u64, Duration), Failure> {
    let confirmed: Arc<Vec<AtomicU64>> = Arc::new((0..readers).map(|_| AtomicU64::new(0)).collect());
    let gate = Arc::new(Gate::default());
    let mut guards = Vec::new();
    for number in 0..readers as usize {
        let (confirmed, gate) = (confirmed.clone(), gate.clone());
        let deliver = Arc::new(move |message: Bytes, _: &str| {
            let next = message.get(..8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
            confirmed[number].fetch_max(next.unwrap_or_default(), Ordering::Relaxed);
            gate.open();
        });
        guards.push(home.subscribe(&format!("confirm/{number}"), deliver)?);
    }
    let outlet = engine.outlet("data", Class::Data)?;
    let message = |sequence: u64| {
        let mut message = vec![0; bytes.max(16)];
        message[..8].copy_from_slice(&sequence.to_le_bytes());
        message[8..16].copy_from_slice(&monotonic().to_le_bytes());
        Bytes::from(message)
    };
    let slowest = || confirmed.iter().map(|next| next.load(Ordering::Relaxed)).min().unwrap_or_default();
    // The first message is repeated until every receiver has it.
    while slowest() == 0 {
        outlet.send(message(0))?;
        gate.wait_host(gate.openings(), Duration::from_millis(20));
    }
    let window = if latency { u64::MAX } else { (WINDOW / bytes as u64).max(2) };
    let (begin, mut next, mut given_up, mut stalls) = (Instant::now(), 1, 0, 0);
    while begin.elapsed() < Duration::from_secs(SECONDS) {
        let openings = gate.openings();
        if next - slowest().max(given_up) >= window {
            let waited = Instant::now();
            gate.wait_host(openings, STALL);
            if waited.elapsed() >= STALL {
                (given_up, stalls) = (next, stalls + 1);
            }
            continue;
        }
        outlet.send(message(next))?;
        next += 1;
        if latency {
            Gate::default().wait_host(0, Duration::from_millis(1));
        }
    }
    let elapsed = begin.elapsed();
    println!("  the writer waited in vain {stalls} times");
    Gate::default().wait_host(0, Duration::from_millis(200));
    outlet.send(message(u64::MAX))?;
    Gate::default().wait_host(0, Duration::from_millis(200));
    Ok((next, elapsed))
}
