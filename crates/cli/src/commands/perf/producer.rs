//! The process that logs: at full speed or at a rate, with occasional immediate records, and samples of the backlog.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tampu_bus::{Participant, QosPatch, QosTable};
use tampu_log::{LogSettings, Logger, Threshold, error, info};
use tampu_types::{Level, Partition};

use crate::{
    commands::perf::{
        log::AckGrade,
        process::{PATIENCE, await_readers, cpu_s, join, say},
        producer::calls::{Calls, Plan},
        verify::{Texts, urgent},
    },
    context::Context,
    failure::Failure,
    interrupt::Interrupt,
    measure,
};

mod calls;

/// Name of the source that logs.
pub const PRODUCER: &str = "perf-producer";
/// Bytes of the ring of each thread. Records stay in it until the collector has committed them: at full rate that is several
/// milliseconds of them.
pub const RING: usize = 8 << 20;
/// Records between two checks of the clock.
const AT_ONCE: u64 = 100;
/// Sleep of a producer that is ahead of its rate.
const AHEAD: Duration = Duration::from_micros(500);
/// Time between two samples of the backlog.
const LOOK: Duration = Duration::from_millis(20);

/// Options of the producer.
#[derive(Debug, Clone, Args)]
pub struct Asked {
    /// Duration of the logging
    pub seconds: f64,
    /// Bytes a record takes
    pub size: usize,
    /// Readers to wait for
    pub readers: usize,
    /// Records a second; as many as it can without
    #[arg(long)]
    pub rate: Option<f64>,
    /// Records a packet
    #[arg(long, default_value_t = 100)]
    pub packet: usize,
    /// Immediate records a second beside the others
    #[arg(long)]
    pub immediate: Option<f64>,
    /// Waits for readers only as long as an application does by default
    #[arg(long)]
    pub bounded: bool,
    /// Is done when a collector has committed everything, not when all readers have it
    #[arg(long)]
    pub kept: bool,
    /// Waits in each call for this
    #[arg(long)]
    pub acknowledged: Option<AckGrade>,
    /// Threads that make such calls
    #[arg(long, default_value_t = 1)]
    pub callers: u16,
}

impl Asked {
    /// The arguments that ask for this.
    pub fn arguments(&self) -> Vec<String> {
        let mut list = ["perf", "part", "producer"].map(str::to_owned).to_vec();
        list.extend([self.seconds.to_string(), self.size.to_string(), self.readers.to_string()]);
        list.extend(["--packet".to_owned(), self.packet.to_string()]);
        for (name, value) in [("--rate", self.rate), ("--immediate", self.immediate)] {
            list.extend(value.into_iter().flat_map(|value| [name.to_owned(), value.to_string()]));
        }
        list.extend(self.bounded.then(|| "--bounded".to_owned()));
        list.extend(self.kept.then(|| "--kept".to_owned()));
        if let Some(grade) = self.acknowledged.and_then(|grade| grade.to_possible_value()) {
            let callers = self.callers.to_string();
            list.extend(["--acknowledged".to_owned(), grade.get_name().to_owned(), "--callers".to_owned(), callers]);
        }
        list
    }
}

/// Reports that all readers are there, logs, and returns the result.
pub fn produce(context: &Context, asked: &Asked) -> Result<Value, Failure> {
    let participant = join(context, PRODUCER, qos(asked.bounded)?)?;
    await_everybody(&participant, asked.readers)?;
    say(&json!({"readers": asked.readers}))?;
    let mut settings = LogSettings::isolated(participant.domain().clone(), participant.source().clone());
    settings.rings = participant.log_rings();
    settings.ring_bytes = RING;
    settings.packet_records = asked.packet.max(1);
    settings.full_wait = Duration::from_secs(10);
    settings.full_wait_grave = settings.full_wait;
    if !asked.bounded {
        settings.close_wait = PATIENCE;
    }
    let close_wait = settings.close_wait;
    let logger = Logger::on(participant, settings).map_err(|error| Failure::failed("the logger", error))?;

    let own = || measure::usage(std::process::id()).unwrap_or_default();
    let (begun, cpu) = (Instant::now(), cpu_s());
    let over = AtomicBool::new(false);
    let mut calls = Calls::default();
    let (number, urgent_number, backlog) = thread::scope(|scope| {
        let (logger, over) = (&logger, &over);
        let urgent = asked.immediate.map(|rate| scope.spawn(move || log_urgent(logger, rate, over)));
        let watch = scope.spawn(move || Backlog::watch(logger, over));
        let number = match asked.acknowledged {
            Some(grade) => {
                let plan = Plan { grade: grade.into(), callers: asked.callers, size: asked.size, seconds: asked.seconds };
                calls = calls::log(logger, plan, &context.interrupt);
                calls.count() as u64
            }
            None => log(logger, asked, begun, &context.interrupt),
        };
        over.store(true, Ordering::Release);
        let joined = |thread: thread::ScopedJoinHandle<'_, u64>| thread.join().unwrap_or_default();
        (number, urgent.map_or(0, joined), watch.join().unwrap_or_default())
    });
    let logging_s = begun.elapsed().as_secs_f64();
    // A reader without flow control may never receive everything.
    let confirmed = if asked.kept { logger.flush_to_archive(PATIENCE) } else { logger.flush(close_wait) };
    let elapsed_s = begun.elapsed().as_secs_f64();
    let (stats, used) = (logger.stats(), own());
    Ok(json!({
        "produced": number + urgent_number,
        "immediate": urgent_number,
        "dropped": stats.dropped,
        "confirmed": confirmed,
        "logging_s": logging_s,
        "elapsed_s": elapsed_s,
        "bytes": stats.bytes,
        "waited": stats.waited,
        "backlog": backlog.report(stats.high_water),
        "acknowledged": asked.acknowledged.map(|_| calls.report()),
        "rss": used.rss,
        "cpu_s": cpu_s() - cpu,
    }))
}

fn qos(bounded: bool) -> Result<QosTable, Failure> {
    if bounded {
        return Ok(QosTable::default());
    }
    // Every record of this application matters: the bus may slow it down, which is the measured value.
    let patch =
        QosPatch { topics: "log/*".to_owned(), max_wait_ms: Some(10_000), wait_period_ms: Some(10_000), ..QosPatch::default() };
    QosTable::new(vec![patch]).map_err(|error| Failure::Failed(error.to_string()))
}

/// Waits until all expected readers are there; a writer of the same topics serves only for this check.
fn await_everybody(participant: &Participant, readers: usize) -> Result<(), Failure> {
    for level in [Level::Info, Level::Error] {
        let topic = tampu_log::logger::topic_of(level).map_err(|error| Failure::Failed(error.to_string()))?;
        let qos = tampu_log::logger::default_qos(level, Threshold::From(Level::Error));
        let scout = participant
            .writer(&topic, &Partition::of(["nobody"]), tampu_log::logger::LOG_BATCH, qos)
            .map_err(|error| Failure::Failed(error.to_string()))?;
        await_readers(&scout, readers)?;
    }
    Ok(())
}

/// Makes the records; returns how many.
fn log(logger: &Logger, asked: &Asked, begun: Instant, interrupt: &Interrupt) -> u64 {
    let texts = Texts::for_record_size(asked.size);
    let length = Duration::from_secs_f64(asked.seconds);
    let mut number = 0;
    while !interrupt.asked() {
        let elapsed = begun.elapsed();
        if elapsed >= length {
            break;
        }
        let due = asked.rate.map_or(u64::MAX, |rate| (elapsed.as_secs_f64() * rate) as u64);
        if due <= number {
            thread::sleep(AHEAD);
            continue;
        }
        for _ in 0..AT_ONCE.min(due - number) {
            info!(logger, "{number:016} {}", texts.of(number));
            number += 1;
        }
    }
    number
}

/// Makes immediate records at a rate, each with the time it was made; returns how many.
fn log_urgent(logger: &Logger, rate: f64, over: &AtomicBool) -> u64 {
    let every = Duration::try_from_secs_f64(1.0 / rate).unwrap_or(Duration::from_secs(1));
    let (mut number, mut due) = (0, Instant::now());
    while !over.load(Ordering::Acquire) {
        error!(logger, "{}", urgent::message(number));
        number += 1;
        due += every;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    number
}

/// Backlog between this process's calls and the commit: bytes in the log rings, whose room is released after the
/// collector's commit.
#[derive(Default)]
struct Backlog {
    samples: Vec<u64>,
}

impl Backlog {
    fn watch(logger: &Logger, over: &AtomicBool) -> Backlog {
        let mut backlog = Backlog::default();
        while !over.load(Ordering::Acquire) {
            backlog.samples.push(logger.stats().waiting);
            thread::sleep(LOOK);
        }
        backlog
    }

    /// Reports the backlog. `high_water`: the largest value seen by the writers and the drainer, which check more
    /// often.
    fn report(&self, high_water: u64) -> Value {
        let quarter = self.samples.len().div_ceil(4);
        let mean = |samples: &[u64]| samples.iter().sum::<u64>() as f64 / samples.len().max(1) as f64;
        json!({
            "max": high_water.max(self.samples.iter().copied().max().unwrap_or(0)),
            "bound": RING,
            "mean": mean(&self.samples).round(),
            "first_quarter": mean(&self.samples[..quarter]).round(),
            "last_quarter": mean(&self.samples[self.samples.len() - quarter..]).round(),
            "samples": self.samples.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_that_grows_shows_in_its_quarters() {
        let backlog = Backlog { samples: (0..100).collect() };
        let report = backlog.report(500);
        assert_eq!(
            (&report["max"], &report["first_quarter"], &report["last_quarter"]),
            (&json!(500), &json!(12.0), &json!(87.0))
        );
        assert_eq!(Backlog::default().report(0)["mean"], json!(0.0));
    }

    #[test]
    fn what_is_asked_is_understood() {
        #[derive(Debug, clap::Parser)]
        struct Line {
            #[command(flatten)]
            asked: Asked,
        }
        let asked = Asked {
            seconds: 0.5,
            size: 250,
            readers: 3,
            rate: Some(2e5),
            packet: 1,
            immediate: Some(100.0),
            bounded: true,
            kept: true,
            acknowledged: Some(AckGrade::Received),
            callers: 4,
        };
        let arguments = asked.arguments();
        let line = <Line as clap::Parser>::try_parse_from(&arguments[2..]).unwrap();
        assert_eq!(format!("{:?}", line.asked), format!("{asked:?}"));
    }
}
