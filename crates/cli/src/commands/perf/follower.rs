//! A client that follows the log, checks every record and takes the time of immediate ones.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tampu_bus::{Event, QosTable, ReaderQos};
use tampu_types::{PartitionFilter, TopicFilter, log_batch::LogBatchView};

use crate::{
    commands::perf::{
        process::{cpu_s, join},
        producer::PRODUCER,
        verify::{Texts, urgent},
    },
    context::Context,
    failure::Failure,
    measure,
};

/// Number of first immediate records, which find cold caches; their time does not count.
const WARM_UP: usize = 10;

/// Follows until it is told to end and no more records arrive.
pub fn follow(context: &Context, name: &str, size: usize, ended: &AtomicBool) -> Result<Value, Failure> {
    let participant = join(context, name, QosTable::default())?;
    let topics = TopicFilter::new("log/*").map_err(|error| Failure::Failed(error.to_string()))?;
    let mut reader = participant
        .reader(&topics, &PartitionFilter::All, ReaderQos::default())
        .map_err(|error| Failure::Failed(error.to_string()))?;
    let mut count = Count::new(Texts::for_record_size(size));
    let mut told_lost = 0u64;
    let (mut first, mut last) = (None, Instant::now());
    let own = || measure::usage(std::process::id()).unwrap_or_default();
    let cpu = cpu_s();
    loop {
        match reader.next(Duration::from_millis(100)) {
            // Hubs log too, for instance about hosts that join.
            Some(Event::Sample(sample)) if sample.stream.source.as_str() != PRODUCER => {}
            Some(Event::Sample(sample)) => {
                if sample.payload.with(|bytes| count.take(bytes)).is_err() {
                    count.wrong += 1;
                }
                first.get_or_insert_with(Instant::now);
                last = Instant::now();
            }
            Some(Event::Gap(gap)) => told_lost += gap.to.map_or(0, |to| to - gap.from),
            Some(Event::Source(_)) => {}
            None if ended.load(Ordering::Acquire) => break,
            None => {}
        }
    }
    let elapsed = first.map_or(0.0, |first| (last - first).as_secs_f64());
    let used = own();
    Ok(json!({
        "received": count.received,
        "wrong": count.wrong,
        "gap_packets": told_lost,
        "elapsed_s": elapsed,
        "immediate": count.immediate(),
        "rss": used.rss,
        "cpu_s": cpu_s() - cpu,
    }))
}

/// Counts of received records.
struct Count {
    texts: Texts,
    received: u64,
    wrong: u64,
    /// The number that is due next, of the many records and of the immediate ones.
    next: u64,
    next_urgent: u64,
    /// Delays of immediate records, ns.
    latencies: Vec<u64>,
}

impl Count {
    fn new(texts: Texts) -> Count {
        Count { texts, received: 0, wrong: 0, next: 0, next_urgent: 0, latencies: Vec::new() }
    }

    /// Counts a batch: each record must be right in every byte and follow the one before.
    fn take(&mut self, bytes: &[u8]) {
        let Ok(view) = LogBatchView::parse(bytes) else {
            self.wrong += 1;
            return;
        };
        for record in view.records() {
            let message = record.as_ref().map(|record| record.message()).unwrap_or_default();
            let (found, next) = match urgent::read(message) {
                Some((number, made)) => {
                    self.latencies.push(urgent::now().saturating_sub(made));
                    (Some(number), &mut self.next_urgent)
                }
                None => (self.texts.check(message), &mut self.next),
            };
            match found {
                Some(number) if number >= *next => {
                    *next = number + 1;
                    self.received += 1;
                }
                _ => self.wrong += 1,
            }
        }
    }

    /// Microseconds from the call until the record was checked here.
    fn immediate(&self) -> Value {
        let mut sorted = self.latencies.get(WARM_UP..).unwrap_or_default().to_vec();
        sorted.sort_unstable();
        let at = |part: f64| sorted.get(((sorted.len().max(1) - 1) as f64 * part).round() as usize).map(|ns| *ns as f64 / 1e3);
        json!({ "count": self.latencies.len(), "p50_us": at(0.5), "p99_us": at(0.99), "max_us": at(1.0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_hundredth_is_told_without_the_first_ones() {
        let mut count = Count::new(Texts::for_record_size(250));
        assert_eq!(count.immediate()["p99_us"], Value::Null);
        count.latencies = vec![9_000_000; WARM_UP];
        count.latencies.extend((1..=101).map(|us| us * 1000));
        let told = count.immediate();
        assert_eq!(
            (&told["count"], &told["p50_us"], &told["p99_us"], &told["max_us"]),
            (&json!(111), &json!(51.0), &json!(100.0), &json!(101.0))
        );
    }
}
