//! `tampu perf event`: a server that pushes one attribute as fast as it can, or at a pace, and clients that check every element.

use std::{
    io::Write,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use clap::{Args, ValueEnum};
use serde_json::{Value as Json, json};
use tampu_bus::{QosPatch, QosTable};
use tampu_event::{
    Client, Server,
    client::{ClientSettings, Wish},
    criteria::Reading,
    server::{AttributeOptions, Delivery, ServerSettings},
};
use tampu_types::event::{AttributeConfig, AttributePattern, DataType, Format, Kinds, Quality, Reason, Shape, Value, ValueView};

use crate::{
    commands::{
        Context,
        perf::{
            part::{cpu_s, join},
            scene::Scene,
        },
    },
    failure::{Failure, Outcome, written},
    time_expression::now,
};

const NAME: &str = "perf/event/1/value";
/// How long the clients may take to come.
const PATIENCE: Duration = Duration::from_secs(60);
/// From this length on values are written into lent memory, bytes.
const LEND_FROM: usize = 16 << 10;

/// How events are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// As fast as they come; nothing is lost.
    Streamed,
    /// The server waits after each until everybody has it.
    Acknowledged,
    /// Newer values replace what is lost.
    Latest,
}

/// Measure attribute events: a server, and clients that check every element
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu perf event --clients 10 --size 4096\n  tampu perf event --rate 1000 --json")]
pub struct PerfEvent {
    /// Clients
    #[arg(long, value_name = "N", default_value_t = 1)]
    clients: usize,
    /// Bytes of a value: 4 is one DevLong
    #[arg(long, value_name = "BYTES", default_value_t = 4)]
    size: usize,
    /// How long to push
    #[arg(long, value_name = "S", default_value_t = 5.0)]
    seconds: f64,
    /// So many events a second instead of as many as can be
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// How events are delivered
    #[arg(long, value_enum, default_value = "streamed")]
    delivery: Way,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl PerfEvent {
    pub fn run(self) -> Outcome {
        let scene = Scene::new(None)?;
        let hub = scene.hub("node")?;
        let way = self.delivery.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let mut clients = Vec::new();
        for number in 0..self.clients {
            let name = format!("perf-client-{number}");
            clients.push(scene.start(&name, &["perf", "part", "subscriber", &name, &way])?);
        }
        let (seconds, size, count) = (self.seconds.to_string(), self.size.to_string(), self.clients.to_string());
        let rate = self.rate.unwrap_or(0.0).to_string();
        let mut server = scene.start("server", &["perf", "part", "publisher", &seconds, &size, &count, &rate, &way])?;
        let pushed = server.report()?;
        clients.iter_mut().for_each(|client| client.finish());
        let received = clients.iter_mut().map(|client| client.report()).collect::<Result<Vec<_>, _>>()?;
        let report = self.report(&way, &pushed, &received, hub.usage().cpu.as_secs_f64());
        let mut out = std::io::stdout().lock();
        if self.json { written(writeln!(out, "{report}")) } else { written(writeln!(out, "{report:#}")) }
    }

    fn report(&self, way: &str, pushed: &Json, received: &[Json], hub_cpu: f64) -> Json {
        let number = |value: &Json, name: &str| value[name].as_f64().unwrap_or(0.0);
        let slowest = |name: &str, worst: fn(f64, f64) -> f64| received.iter().map(|client| number(client, name)).reduce(worst);
        let count = number(pushed, "pushed");
        let elapsed = number(pushed, "elapsed_s").max(slowest("elapsed_s", f64::max).unwrap_or(0.0)).max(1e-9);
        let least = slowest("received", f64::min).unwrap_or(0.0);
        json!({
            "events_per_s": (least / elapsed).round(),
            "lost": count - least,
            "wrong": received.iter().map(|client| number(client, "wrong")).sum::<f64>(),
            "clients": self.clients,
            "size": self.size,
            "delivery": way,
            "seconds": elapsed,
            "latency_us_p50": slowest("latency_us_p50", f64::max),
            "latency_us_p99": slowest("latency_us_p99", f64::max),
            "cpu_s": {
                "server": pushed["cpu_s"],
                "node": hub_cpu,
                "clients": received.iter().map(|client| client["cpu_s"].clone()).collect::<Vec<_>>(),
            },
        })
    }
}

/// What the server is to do.
pub struct Publishing {
    pub seconds: f64,
    pub size: usize,
    pub clients: usize,
    pub rate: f64,
    pub way: Way,
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Failed(error.to_string())
}

/// The server.
pub fn publisher(context: &Context, how: &Publishing) -> Result<Json, Failure> {
    // Nothing is to be lost: the clients may hold the server, which is what is measured.
    let patch = |topics: &str| QosPatch {
        topics: topics.to_owned(),
        max_wait_ms: Some(10_000),
        wait_period_ms: Some(10_000),
        ..QosPatch::default()
    };
    let qos = QosTable::new(vec![patch("event/*"), patch("event-own/**")]).map_err(failed)?;
    let server = Server::start(join(context, "perf-server", qos)?, ServerSettings::default()).map_err(failed)?;
    let count = (how.size / 4).max(1);
    let mut config = AttributeConfig::new(NAME.parse().map_err(failed)?, DataType::Long, Format::Spectrum);
    config.max_x = count as u32;
    let acknowledged = how.way == Way::Acknowledged;
    let delivery = if acknowledged { Delivery::Acknowledged } else { Delivery::Streamed };
    let attribute = server.declare_with(config, AttributeOptions { delivery, redundant: false }).map_err(failed)?;
    let until = Instant::now() + PATIENCE;
    while attribute.readers() < how.clients {
        if Instant::now() > until {
            return Err(Failure::Failed(format!("{} of {} clients came within {PATIENCE:?}", attribute.readers(), how.clients)));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // Until all have had their first values.
    std::thread::sleep(Duration::from_millis(700));
    let (begun, cpu) = (Instant::now(), cpu_s());
    let length = Duration::from_secs_f64(how.seconds);
    let mut values = vec![0i32; count];
    let mut number = 0u64;
    let at_once = if how.rate > 0.0 || how.size > 65_536 { 1 } else { 64 };
    while begun.elapsed() < length && !context.interrupt.asked() {
        if how.rate > 0.0 {
            let at = Duration::from_secs_f64(number as f64 / how.rate);
            std::thread::sleep(at.saturating_sub(begun.elapsed()));
        }
        for _ in 0..at_once {
            number += 1;
            let shape = Shape::spectrum(count as u32);
            if how.size >= LEND_FROM {
                let mut lent = attribute.lend::<i32>(shape).map_err(failed)?;
                fill(&mut lent, number);
                lent.publish(Kinds::USER, Quality::Valid).map_err(failed)?;
                continue;
            }
            fill(&mut values, number);
            let reading = Reading::of(Value { data: tampu_types::event::Data::Long(&values), shape });
            if acknowledged {
                attribute.push_acknowledged(Kinds::USER, &reading, PATIENCE).map_err(failed)?;
            } else {
                attribute.push_as(Kinds::USER, &reading, None).map_err(failed)?;
            }
        }
    }
    server.send_now();
    let pushing = begun.elapsed().as_secs_f64();
    // What is under way is still read, and counts.
    let delivered = attribute.flush(PATIENCE);
    Ok(json!({
        "pushed": number,
        "pushing_s": pushing,
        "elapsed_s": begun.elapsed().as_secs_f64(),
        "delivered": delivered,
        "cpu_s": cpu_s() - cpu,
    }))
}

/// Every element follows from the event's number and its place.
fn fill(values: &mut [i32], number: u64) {
    values.iter_mut().enumerate().for_each(|(at, value)| *value = (number as i32).wrapping_add(at as i32));
}

#[derive(Default)]
struct Seen {
    received: u64,
    wrong: u64,
    first: Option<Instant>,
    last: Option<Instant>,
    latencies: Vec<i64>,
}

/// A client.
pub fn subscriber(context: &Context, name: &str, way: Way, ended: &AtomicBool) -> Result<Json, Failure> {
    let client = Client::start(join(context, name, QosTable::default())?, ClientSettings::default()).map_err(failed)?;
    let mut wish = Wish::of([AttributePattern::new(NAME).map_err(failed)?]).kinds(Kinds::USER);
    wish.reliable = way != Way::Latest;
    let seen = Arc::new(Mutex::new(Seen::default()));
    let into = seen.clone();
    let cpu = cpu_s();
    let subscription = client.subscribe(wish, move |event| {
        let (Reason::Update | Reason::Resumed, Some(reading)) = (event.reason, event.reading) else { return };
        let right = match reading.value {
            Some(ValueView::Long(values)) => {
                let begin = event.number as i32;
                let expected = |at: usize| begin.wrapping_add(at as i32);
                match values.as_slice() {
                    Some(slice) => slice.iter().enumerate().all(|(at, value)| *value == expected(at)),
                    None => values.iter().enumerate().all(|(at, value)| value == expected(at)),
                }
            }
            _ => false,
        };
        let mut seen = into.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if right {
            seen.received += 1;
        } else {
            seen.wrong += 1;
        }
        if seen.received % 16 == 0 || seen.received < 10_000 {
            seen.latencies.push((now().0 - reading.time.0).max(0));
        }
        let at = Instant::now();
        seen.first.get_or_insert(at);
        seen.last = Some(at);
    });
    while !ended.load(Ordering::Acquire) && !context.interrupt.asked() {
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(subscription);
    let mut seen = seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    seen.latencies.sort_unstable();
    let latencies = &seen.latencies;
    let at = |part: f64| latencies.get((latencies.len() as f64 * part) as usize).map_or(0.0, |ns| *ns as f64 / 1000.0);
    let elapsed = seen.first.zip(seen.last).map_or(0.0, |(first, last)| (last - first).as_secs_f64());
    let report = json!({
        "received": seen.received,
        "wrong": seen.wrong,
        "elapsed_s": elapsed,
        "latency_us_p50": at(0.5),
        "latency_us_p99": at(0.99),
        "cpu_s": cpu_s() - cpu,
    });
    Ok(report)
}
