//! The writer and the reader of `tampu perf bus`.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tampu_bus::{Event, Qos, QosTable, ReaderQos, TypeTag};
use tampu_types::{Partition, PartitionFilter, TopicFilter, TopicName};

use super::process::{PATIENCE, await_readers, cpu_s, join};
use crate::{context::Context, failure::Failure};

/// The options of a writer.
pub struct Writing {
    pub seconds: f64,
    pub size: usize,
    pub readers: usize,
    pub loans: bool,
    pub direct: bool,
}

const BUS_TOPIC: &str = "perf/samples";

/// Writes samples until the time is over.
pub fn writer(context: &Context, how: &Writing) -> Result<Value, Failure> {
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

/// Reads samples and checks every byte.
pub fn reader(context: &Context, name: &str, size: usize, direct: bool, ended: &AtomicBool) -> Result<Value, Failure> {
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
