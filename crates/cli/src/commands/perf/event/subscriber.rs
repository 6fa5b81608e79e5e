//! A client of `tampu perf event`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tampu_bus::QosTable;
use tampu_event::{
    Client,
    client::{ClientSettings, Event, SubscribeOptions},
};
use tampu_types::event::{AttributePattern, EventView, Kinds, Missed, Reason, ValueView};

use super::{PATIENCE, Way, failed, name, publisher::first};
use crate::{
    commands::perf::process::{cpu_s, join, say},
    context::Context,
    failure::Failure,
    measure,
    time_expression::now,
};

/// Number of first events that are all timed; of later ones, one of [`TIMED`] is timed.
const TIMED_ALL: u64 = 10_000;
const TIMED: u64 = 16;
/// Silence after which no more events are expected.
const QUIET: Duration = Duration::from_millis(100);

/// Counts of received events. Attributes with streams of their own have workers of their own.
struct Seen {
    begun: Instant,
    firsts: AtomicU64,
    received: AtomicU64,
    wrong: AtomicU64,
    twice: AtomicU64,
    told: AtomicU64,
    /// Since `begun`, ns.
    first_at: AtomicU64,
    last_at: AtomicU64,
    latencies: Mutex<Vec<i64>>,
}

impl Seen {
    fn new() -> Seen {
        Seen {
            begun: Instant::now(),
            firsts: AtomicU64::new(0),
            received: AtomicU64::new(0),
            wrong: AtomicU64::new(0),
            twice: AtomicU64::new(0),
            told: AtomicU64::new(0),
            first_at: AtomicU64::new(u64::MAX),
            last_at: AtomicU64::new(0),
            latencies: Mutex::default(),
        }
    }

    /// Counts an event of an attribute after all events up to `last`.
    fn take(&self, event: &Event<'_>, attribute: usize, last: &mut u64) {
        let count = |counter: &AtomicU64, by: u64| counter.fetch_add(by, Ordering::Relaxed);
        if let Missed::Exactly(from, to) = event.missed {
            count(&self.told, to - from);
        }
        match (event.reason, event.reading) {
            (Reason::First, _) => {
                count(&self.firsts, 1);
            }
            // Memory that was lent again has no value: the answer has the number, and the value is reported as missed.
            (Reason::Resumed, Some(reading)) if reading.value.is_none() => *last = event.number.max(*last),
            (Reason::Update | Reason::Resumed, Some(reading)) if event.number > *last => {
                *last = event.number;
                if is_right(reading, first(attribute, event.number)) {
                    let before = count(&self.received, 1);
                    if before < TIMED_ALL || before % TIMED == 0 {
                        self.time(reading);
                    }
                } else {
                    count(&self.wrong, 1);
                }
            }
            (Reason::Update, Some(_)) => {
                count(&self.twice, 1);
            }
            _ => {}
        }
    }

    fn time(&self, reading: &EventView<'_>) {
        let latency = (now().0 - reading.time.0).max(0);
        self.latencies.lock().push(latency);
        let at = self.begun.elapsed().as_nanos() as u64;
        self.first_at.fetch_min(at, Ordering::Relaxed);
        self.last_at.fetch_max(at, Ordering::Relaxed);
    }
}

fn is_right(reading: &EventView<'_>, first: i32) -> bool {
    let Some(ValueView::Long(values)) = reading.value else { return false };
    let expected = |at: usize| first.wrapping_add(at as i32);
    match values.as_slice() {
        // The loop does not leave early, so that it compiles to vector code.
        Some(slice) => slice.iter().enumerate().fold(0, |all, (at, value)| all | (*value ^ expected(at))) == 0,
        None => values.iter().enumerate().all(|(at, value)| value == expected(at)),
    }
}

/// Subscribes, reports the time of the subscription, and counts until its input ends.
pub fn subscribe(context: &Context, source: &str, attributes: usize, way: Way, ended: &AtomicBool) -> Result<Json, Failure> {
    let client = Client::start(join(context, source, QosTable::default())?, ClientSettings::default()).map_err(failed)?;
    let until = Instant::now() + PATIENCE;
    let wait = |what: &str, done: &dyn Fn() -> bool| {
        while !done() {
            if Instant::now() > until || ended.load(Ordering::Acquire) || context.interrupt.asked() {
                return Err(Failure::Failed(format!("{source}: {what}: not within {PATIENCE:?}")));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    };
    client.know_all();
    wait("all declarations", &|| client.attributes().len() >= attributes)?;
    let (seen, before, called) = (Arc::new(Seen::new()), measure::resident(), Instant::now());
    let mut subscriptions = Vec::with_capacity(attributes);
    for attribute in 0..attributes {
        let mut wish = SubscribeOptions::of([AttributePattern::new(name(attribute)).map_err(failed)?]).kinds(Kinds::USER);
        wish.reliable = way != Way::Latest;
        // Without flow control the reader would see torn values, each with a report.
        wish.in_place = wish.reliable;
        let (seen, mut last) = (seen.clone(), 0);
        subscriptions.push(client.subscribe(wish, move |event| seen.take(event, attribute, &mut last)));
    }
    let calls = called.elapsed();
    wait("all first values", &|| seen.firsts.load(Ordering::Relaxed) >= attributes as u64)?;
    let took = called.elapsed();
    say(&json!({
        "calls_s": calls.as_secs_f64(),
        "first_values_s": took.as_secs_f64(),
        "bytes_each": measure::resident().saturating_sub(before) / attributes as u64,
    }))?;

    let cpu = cpu_s();
    let mut received = 0;
    loop {
        let over = ended.load(Ordering::Acquire) || context.interrupt.asked();
        std::thread::sleep(if over { QUIET } else { Duration::from_millis(20) });
        let now = seen.received.load(Ordering::Relaxed);
        if over && now == received {
            break;
        }
        received = now;
    }
    let cpu = cpu_s() - cpu;
    drop(subscriptions);
    let mut latencies = std::mem::take(&mut *seen.latencies.lock());
    latencies.sort_unstable();
    let at = |part: f64| latencies.get(((latencies.len() as f64 - 1.0) * part) as usize).map_or(0.0, |ns| *ns as f64 / 1000.0);
    let ns = |value: &AtomicU64| value.load(Ordering::Relaxed);
    Ok(json!({
        "received": ns(&seen.received),
        "wrong": ns(&seen.wrong),
        "twice": ns(&seen.twice),
        "told": ns(&seen.told),
        "elapsed_s": ns(&seen.last_at).saturating_sub(ns(&seen.first_at)) as f64 / 1e9,
        "latency_us_p50": at(0.5),
        "latency_us_p99": at(0.99),
        "latency_us_max": at(1.0),
        "cpu_s": cpu,
    }))
}
