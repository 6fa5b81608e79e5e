//! `tampu perf bus`.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use crate::{
    commands::perf::{members, scene::Scene},
    context::Context,
    failure::Outcome,
};

/// Measure the bus: a writer and readers that check every sample, or many idle processes
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu perf bus --readers 10 --size 4096 --loans\n  tampu perf bus --members 200 --json")]
pub struct PerfBus {
    /// Number of readers
    #[arg(long, value_name = "N", default_value_t = 1)]
    readers: usize,
    /// Size of a sample
    #[arg(long, value_name = "SIZE", default_value = "92", value_parser = super::options::bytes)]
    size: usize,
    /// Duration of the measurement
    #[arg(long = "for", value_name = "DURATION", default_value = "5s", value_parser = super::options::seconds)]
    seconds: f64,
    /// Lend shared memory instead of copying samples
    #[arg(long)]
    loans: bool,
    /// Connect readers to the writer's process instead of through the node
    #[arg(long)]
    direct: bool,
    /// Measure N processes that only join: time to connect, memory, sockets, idle CPU
    #[arg(long, value_name = "N")]
    members: Option<usize>,
    /// With --members: each process has a logger, and logs one record
    #[arg(long, requires = "members")]
    logs: bool,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

impl PerfBus {
    pub fn run(self, context: &Context) -> Outcome {
        let scene = Scene::new(None)?;
        let hub = scene.hub("node")?;
        let report = match self.members {
            Some(count) => members::measure(&scene, &hub, (count, self.logs), Duration::from_secs_f64(self.seconds), context)?,
            None => {
                let size = self.size.to_string();
                let direct = self.direct.to_string();
                let mut readers = Vec::new();
                for number in 0..self.readers {
                    let name = format!("perf-reader-{number}");
                    readers.push(scene.start(&name, &["perf", "part", "reader", &name, &size, &direct])?);
                }
                let (seconds, count, loans) = (self.seconds.to_string(), self.readers.to_string(), self.loans.to_string());
                let arguments = ["perf", "part", "writer", &seconds, &size, &count, &loans, &direct];
                let mut writer = scene.start("writer", &arguments)?;
                let wrote = writer.report()?;
                readers.iter_mut().for_each(|reader| reader.finish());
                let read = readers.iter_mut().map(|reader| reader.report()).collect::<Result<Vec<_>, _>>()?;
                self.report(&wrote, &read, hub.usage().cpu.as_secs_f64())
            }
        };
        drop(hub);
        super::report::show(&report, self.json)
    }

    fn report(&self, wrote: &Value, read: &[Value], hub_cpu: f64) -> Value {
        let number = |value: &Value, name: &str| value[name].as_f64().unwrap_or(0.0);
        let written = number(wrote, "written");
        let elapsed = number(wrote, "elapsed_s").max(1e-9);
        let sum = |name: &str| read.iter().map(|reader| number(reader, name)).sum::<f64>();
        json!({
            "samples_per_s": (written / elapsed).round(),
            "mb_per_s": written * self.size as f64 / elapsed / 1e6,
            "lost": (written * read.len() as f64 - sum("received")).max(0.0),
            "told_lost": sum("lost"),
            "wrong": sum("wrong"),
            "readers": self.readers,
            "size": self.size,
            "loans": self.loans,
            "direct": self.direct,
            "seconds": elapsed,
            "confirmed": wrote["confirmed"],
            "waited_s": wrote["waited_s"],
            "copied_loans": wrote["copied_loans"],
            "cpu_s": {
                "writer": wrote["cpu_s"],
                "node": hub_cpu,
                "readers": read.iter().map(|reader| reader["cpu_s"].clone()).collect::<Vec<_>>(),
            },
        })
    }
}
