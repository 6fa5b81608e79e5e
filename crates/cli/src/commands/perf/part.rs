//! The parts of a measurement, each a process of its own; started by `tampu perf`, not by people.

use std::{
    io::{BufRead, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use clap::{Args, Subcommand};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tampu_bus::{Event, Participant, Qos, QosTable, ReaderQos, ReaderState, TypeTag, engine::zenoh::ZenohEngine};
use tampu_types::{Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

use crate::{
    commands::{
        Context,
        perf::{
            bulk::{
                giver::{self, Giving},
                passer::{self, Passing},
                taker::{self, Taking},
            },
            event::{
                Way,
                publisher::{self, Publishing},
                subscriber,
            },
            follower, members, producer,
        },
    },
    failure::{Failure, Outcome, written},
};

/// A part of a measurement
#[derive(Debug, Args)]
pub struct Part {
    #[command(subcommand)]
    part: Which,
}

#[derive(Debug, Subcommand)]
enum Which {
    /// Logs as fast as it can, or at a rate
    Producer(producer::Asked),
    /// Follows the log and checks every record
    Client { name: String, size: usize },
    /// Writes samples as fast as it can
    Writer {
        seconds: f64,
        size: usize,
        readers: usize,
        #[arg(action = clap::ArgAction::Set)]
        loans: bool,
        #[arg(action = clap::ArgAction::Set)]
        direct: bool,
    },
    /// Reads samples and checks them
    Reader {
        name: String,
        size: usize,
        #[arg(action = clap::ArgAction::Set)]
        direct: bool,
    },
    /// Pushes attributes
    Publisher {
        seconds: f64,
        size: usize,
        clients: usize,
        rate: f64,
        attributes: usize,
        #[arg(value_enum)]
        way: Way,
    },
    /// Subscribes to them and checks every element
    Subscriber {
        name: String,
        attributes: usize,
        #[arg(value_enum)]
        way: Way,
    },
    /// Sends blocks
    Giver(Giving),
    /// Takes them and checks every byte
    Taker(Taking),
    /// Gives them on
    Passer(Passing),
    /// Joins and stays
    Member { name: String, members: usize },
}

/// How long parts wait for one another at the beginning, and for the last acknowledgement at the end.
pub const PATIENCE: Duration = Duration::from_secs(60);

impl Part {
    pub fn run(self, context: &Context) -> Outcome {
        let input = input();
        let ended = &input.ended;
        let report = match self.part {
            Which::Producer(asked) => producer::produce(context, &asked)?,
            Which::Client { name, size } => follower::follow(context, &name, size, ended)?,
            Which::Writer { seconds, size, readers, loans, direct } => {
                writer(context, &Writing { seconds, size, readers, loans, direct })?
            }
            Which::Reader { name, size, direct } => reader(context, &name, size, direct, ended)?,
            Which::Publisher { seconds, size, clients, rate, attributes, way } => {
                publisher::publish(context, &Publishing { seconds, size, clients, rate, attributes, way }, &input)?
            }
            Which::Subscriber { name, attributes, way } => subscriber::subscribe(context, &name, attributes, way, ended)?,
            Which::Giver(how) => giver::giver(context, &how)?,
            Which::Taker(how) => taker::taker(context, &how, ended)?,
            Which::Passer(how) => passer::passer(context, &how, ended)?,
            Which::Member { name, members } => members::member(context, &name, members, ended)?,
        };
        say(&report)
    }
}

/// Prints one line at once.
pub fn say(report: &Value) -> Outcome {
    let mut out = std::io::stdout().lock();
    written(writeln!(out, "{report}").and_then(|()| out.flush()))
}

/// What this part is told by its standard input.
#[derive(Debug, Default)]
pub struct Input {
    /// A line has come: it may begin.
    pub begun: AtomicBool,
    /// It has been closed.
    pub ended: AtomicBool,
}

/// Listens to it.
fn input() -> Arc<Input> {
    let input = Arc::new(Input::default());
    let told = input.clone();
    std::thread::spawn(move || {
        for _ in std::io::stdin().lock().lines().map_while(Result::ok) {
            told.begun.store(true, Ordering::Release);
        }
        told.ended.store(true, Ordering::Release);
    });
    input
}

/// Joins the scene's domain under this name.
pub fn join(context: &Context, name: &str, qos: QosTable) -> Result<Participant, Failure> {
    let config = context.common.connect.config()?;
    let domain = config.domain.clone();
    let failed = |error: String| Failure::Unreachable(error);
    let engine = ZenohEngine::open(config).map_err(|error| failed(error.to_string()))?;
    let source = SourceName::new(name).map_err(|error| failed(error.to_string()))?;
    Participant::on(Arc::new(engine), domain, source, qos).map_err(|error| failed(error.to_string()))
}

/// Processor time of this process so far.
pub fn cpu_s() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

/// Waits until this many readers of the topic are matched.
pub fn await_readers(writer: &tampu_bus::Writer, readers: usize) -> Result<(), Failure> {
    let until = Instant::now() + PATIENCE;
    let here = || writer.readers().iter().filter(|reader| reader.state != ReaderState::Gone).count();
    while here() < readers {
        if Instant::now() > until {
            return Err(Failure::Failed(format!("{} of {readers} readers came within {PATIENCE:?}", here())));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

struct Writing {
    seconds: f64,
    size: usize,
    readers: usize,
    loans: bool,
    direct: bool,
}

const BUS_TOPIC: &str = "perf/samples";

fn writer(context: &Context, how: &Writing) -> Result<Value, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Failed(error.to_string());
    let participant = join(context, "perf-writer", QosTable::default())?;
    let topic = TopicName::new(BUS_TOPIC).map_err(|error| failed(&error))?;
    let qos = Qos {
        max_wait: Duration::from_secs(10),
        wait_period: Duration::from_secs(10),
        direct: how.direct,
        ..participant.qos(&topic)
    };
    let writer = participant.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, qos).map_err(|error| failed(&error))?;
    await_readers(&writer, how.readers)?;
    let (begun, cpu) = (Instant::now(), cpu_s());
    let length = Duration::from_secs_f64(how.seconds);
    let mut sample = vec![0u8; how.size.max(8)];
    let mut number = 0u64;
    while begun.elapsed() < length && !context.interrupt.asked() {
        for _ in 0..if how.size > 65_536 { 1 } else { 64 } {
            if how.loans {
                let mut loan = writer.loan(how.size.max(8)).map_err(|error| failed(&error))?;
                fill(&mut loan, number);
                loan.publish().map_err(|error| failed(&error))?;
            } else {
                fill(&mut sample, number);
                writer.write(&sample).map_err(|error| failed(&error))?;
            }
            number += 1;
        }
    }
    let receipt = writer.flush(PATIENCE);
    let stats = writer.stats();
    Ok(json!({
        "written": number,
        "elapsed_s": begun.elapsed().as_secs_f64(),
        "confirmed": receipt.complete(),
        "lost": stats.lost,
        "waited_s": stats.waited_ns as f64 / 1e9,
        "copied_loans": stats.copied_loans,
        "cpu_s": cpu_s() - cpu,
    }))
}

/// Every eight bytes follow from the number and their place.
fn fill(sample: &mut [u8], number: u64) {
    for (place, word) in sample.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&(number.wrapping_mul(31).wrapping_add(place as u64)).to_le_bytes());
    }
    sample[..8].copy_from_slice(&number.to_le_bytes());
}

fn is_right(sample: &[u8], expected: u64) -> bool {
    let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    word(sample) == expected
        && sample
            .chunks_exact(8)
            .enumerate()
            .skip(1)
            .all(|(place, bytes)| word(bytes) == expected.wrapping_mul(31).wrapping_add(place as u64))
}

fn reader(context: &Context, name: &str, size: usize, direct: bool, ended: &AtomicBool) -> Result<Value, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Failed(error.to_string());
    let participant = join(context, name, QosTable::default())?;
    let topics = TopicFilter::new(BUS_TOPIC).map_err(|error| failed(&error))?;
    let qos = ReaderQos { direct, ..ReaderQos::default() };
    let mut reader = participant.reader(&topics, &PartitionFilter::All, qos).map_err(|error| failed(&error))?;
    let (mut received, mut wrong, mut lost) = (0u64, 0u64, 0u64);
    let (mut first, mut last) = (None, Instant::now());
    let mut latencies = Vec::new();
    let cpu = cpu_s();
    loop {
        match reader.next(Duration::from_millis(100)) {
            Some(Event::Sample(sample)) => {
                let right = sample.payload.len() == size.max(8)
                    && sample.payload.with(|bytes| is_right(bytes, sample.sequence)).unwrap_or(false);
                if right {
                    received += 1
                } else {
                    wrong += 1
                }
                if received % 64 == 0 {
                    latencies.push((sample.received.0 - sample.acquired.0).max(0));
                }
                first.get_or_insert_with(Instant::now);
                last = Instant::now();
            }
            Some(Event::Gap(gap)) => lost += gap.to.map_or(0, |to| to - gap.from),
            Some(Event::Source(_)) => {}
            None if ended.load(Ordering::Acquire) => break,
            None => {}
        }
    }
    latencies.sort_unstable();
    let at = |part: f64| latencies.get((latencies.len() as f64 * part) as usize).map_or(0.0, |ns| *ns as f64 / 1000.0);
    let elapsed = first.map_or(0.0, |first| (last - first).as_secs_f64());
    Ok(json!({
        "received": received,
        "wrong": wrong,
        "lost": lost,
        "elapsed_s": elapsed,
        "batch_latency_us_p50": at(0.5),
        "batch_latency_us_p99": at(0.99),
        "cpu_s": cpu_s() - cpu,
    }))
}
