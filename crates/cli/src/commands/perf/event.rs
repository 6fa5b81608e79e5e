//! `tampu perf event`: a server that pushes attributes as fast as it can, or at a pace, and clients that check every element.
//!
//! ```text
//! clients: join, wait for the declarations, subscribe, wait for all first values -> say so
//! server:  declare, wait for the clients; when all have said so it is told to begin
//! ```
//! So no counted event happens before all processes are ready, and the cost of subscribing is measured separately.

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Value as Json, json};

use crate::{
    commands::perf::scene::Scene,
    failure::{Failure, Outcome},
};

pub mod publisher;
pub mod subscriber;

/// Time limit of one side for the other.
const PATIENCE: Duration = Duration::from_secs(60);

/// The attribute of this number.
fn name(number: usize) -> String {
    format!("perf/event/{number}/value")
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Failed(error.to_string())
}

/// Ways of delivery.
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
#[command(after_help = "Examples:\n  tampu perf event --clients 10 --size 4096\n  tampu perf event --rate 1000 --json\n  \
    tampu perf event --attributes 10000 --rate 100000")]
pub struct PerfEvent {
    /// Number of clients
    #[arg(long, value_name = "N", default_value_t = 1)]
    clients: usize,
    /// Size of a value: 4 is one DevLong
    #[arg(long, value_name = "SIZE", default_value = "4", value_parser = super::options::bytes)]
    size: usize,
    /// Number of attributes, pushed in turn; every client subscribes to each of them
    #[arg(long, value_name = "N", default_value_t = 1)]
    attributes: usize,
    /// Duration of the measurement
    #[arg(long = "for", value_name = "DURATION", default_value = "5s", value_parser = super::options::seconds)]
    seconds: f64,
    /// Push this many events a second, over all attributes, instead of as many as possible
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// Delivery of events
    #[arg(long, value_enum, value_name = "DELIVERY", default_value = "streamed")]
    delivery: Way,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

impl PerfEvent {
    pub fn run(self) -> Outcome {
        let scene = Scene::new(None)?;
        let hub = scene.hub("node")?;
        let way = self.delivery.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let attributes = self.attributes.max(1).to_string();
        let mut clients = Vec::new();
        for number in 0..self.clients {
            let name = format!("perf-client-{number}");
            clients.push(scene.start(&name, &["perf", "part", "subscriber", &name, &attributes, &way])?);
        }
        let (seconds, size, count) = (self.seconds.to_string(), self.size.to_string(), self.clients.to_string());
        let rate = self.rate.unwrap_or(0.0).to_string();
        let arguments = ["perf", "part", "publisher", &seconds, &size, &count, &rate, &attributes, &way];
        let mut server = scene.start("server", &arguments)?;
        let subscribed = clients.iter_mut().map(|client| client.report()).collect::<Result<Vec<_>, _>>()?;
        let cpu = || hub.usage().cpu.as_secs_f64();
        let before = cpu();
        server.begin();
        let pushed = server.report()?;
        clients.iter_mut().for_each(|client| client.finish());
        let received = clients.iter_mut().map(|client| client.report()).collect::<Result<Vec<_>, _>>()?;
        let report = self.report(&way, &pushed, &subscribed, &received, cpu() - before);
        super::report::show(&report, self.json)
    }

    fn report(&self, way: &str, pushed: &Json, subscribed: &[Json], received: &[Json], node_cpu: f64) -> Json {
        let number = |value: &Json, name: &str| value[name].as_f64().unwrap_or(0.0);
        let slowest = |name: &str, worst: fn(f64, f64) -> f64| received.iter().map(|client| number(client, name)).reduce(worst);
        let sum = |name: &str| received.iter().map(|client| number(client, name)).sum::<f64>();
        let longest = |name: &str| subscribed.iter().map(|client| number(client, name)).reduce(f64::max);
        let count = number(pushed, "pushed");
        let elapsed = number(pushed, "elapsed_s").max(slowest("elapsed_s", f64::max).unwrap_or(0.0)).max(1e-9);
        let least = slowest("received", f64::min).unwrap_or(0.0);
        json!({
            "events_per_s": (least / elapsed).round(),
            "pushed": count,
            "pushed_per_s": (count / number(pushed, "pushing_s").max(1e-9)).round(),
            "lost": received.iter().map(|client| (count - number(client, "received")).max(0.0)).sum::<f64>(),
            "told": sum("told"),
            "wrong": sum("wrong"),
            "twice": sum("twice"),
            "clients": self.clients,
            "size": self.size,
            "attributes": self.attributes.max(1),
            "rate": self.rate,
            "delivery": way,
            "seconds": elapsed,
            "latency_us_p50": slowest("latency_us_p50", f64::max),
            "latency_us_p99": slowest("latency_us_p99", f64::max),
            "latency_us_max": slowest("latency_us_max", f64::max),
            "subscribing": {
                "calls_s": longest("calls_s"),
                "first_values_s": longest("first_values_s"),
                "bytes_each": longest("bytes_each"),
            },
            "cpu_s": {
                "server": pushed["cpu_s"],
                "node": node_cpu,
                "clients": received.iter().map(|client| client["cpu_s"].clone()).collect::<Vec<_>>(),
            },
        })
    }
}
