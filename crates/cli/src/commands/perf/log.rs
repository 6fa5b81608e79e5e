//! `tampu perf log`.

use std::{io::Write, path::PathBuf};

use clap::Args;
use serde_json::{Value, json};

use crate::{
    commands::{Context, perf::scene::Scene},
    failure::{Failure, Outcome, written},
    keeper::Keeper,
    measure,
};

/// Measure the log line: one process that logs, a hub that keeps, clients that follow and check every record
#[derive(Debug, Args)]
#[command(after_help = "Example: tampu perf log --clients 10 --seconds 30 --json")]
pub struct PerfLog {
    /// Clients that follow the log
    #[arg(long, value_name = "N", default_value_t = 1)]
    clients: usize,
    /// How long to log
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    seconds: f64,
    /// Bytes a record takes
    #[arg(long, value_name = "BYTES", default_value_t = 250)]
    size: usize,
    /// Without a collector: live clients only
    #[arg(long)]
    live: bool,
    /// Where the measurement's data is kept and removed afterwards; a disk like the archive's
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// What a disk is measured with, bytes.
const PROBE: usize = 256 << 20;

impl PerfLog {
    pub fn run(self, context: &Context) -> Outcome {
        let scene = Scene::new(self.data.as_deref())?;
        let disk = if self.live {
            None
        } else {
            Some(measure::disk_speed(&scene.data(), PROBE).map_err(|error| Failure::failed(scene.data().display(), error))?)
        };
        let hub = scene.hub(if self.live { "node" } else { "node,collector" })?;
        let size = self.size.to_string();
        let mut clients = Vec::new();
        for number in 0..self.clients {
            let name = format!("perf-client-{number}");
            clients.push(scene.start(&name, &["perf", "part", "client", &name, &size])?);
        }
        let before = hub.usage();
        let readers = (self.clients + usize::from(!self.live)).to_string();
        let mut producer = scene.start("producer", &["perf", "part", "producer", &self.seconds.to_string(), &size, &readers])?;
        let produced = producer.report()?;
        let used = hub.usage();
        clients.iter_mut().for_each(|client| client.finish());
        let received = clients.iter_mut().map(|client| client.report()).collect::<Result<Vec<_>, _>>()?;
        let kept = if self.live { None } else { Some(self.kept(&scene, context)?) };

        let hub_cpu = used.cpu.saturating_sub(before.cpu).as_secs_f64();
        let report = self.report(&produced, &received, kept.as_ref(), hub_cpu, used.rss, disk);
        drop((producer, clients, hub));
        self.show(&report)
    }

    /// What the collector says it has.
    fn kept(&self, scene: &Scene, context: &Context) -> Result<Value, Failure> {
        let mut connect = context.common.connect.clone();
        connect.domain = Some(scene.domain.clone());
        let keeper = Keeper::at(scene.config(), &connect, "perf-watch")?;
        keeper.status()
    }

    fn report(
        &self,
        produced: &Value,
        received: &[Value],
        kept: Option<&Value>,
        hub_cpu: f64,
        rss: u64,
        disk: Option<f64>,
    ) -> Value {
        let number = |value: &Value, name: &str| value[name].as_f64().unwrap_or(0.0);
        let records = number(produced, "produced") - number(produced, "dropped");
        let elapsed = number(produced, "elapsed_s").max(1e-9);
        let clients: Vec<f64> = received.iter().map(|client| number(client, "received")).collect();
        let lost_live: f64 = clients.iter().map(|count| (records - count).max(0.0)).sum();
        let stored = kept.map(|status| number(&status["archive"], "records"));
        let lost = number(produced, "dropped") + lost_live + stored.map_or(0.0, |stored| (records - stored).max(0.0));
        let rate = |client: &Value| number(client, "received") / number(client, "elapsed_s").max(1e-9);
        let slowest = received.iter().map(rate).fold(f64::INFINITY, f64::min);
        json!({
            "records_per_s": (records / elapsed).round(),
            "lost": lost,
            "cpu_s": {
                "producer": produced["cpu_s"],
                "hub": hub_cpu,
                "clients": received.iter().map(|client| client["cpu_s"].clone()).collect::<Vec<_>>(),
            },
            "clients": self.clients,
            "seconds": elapsed,
            "size": self.size,
            "live_only": self.live,
            "records": records,
            "stored": stored,
            "received": clients,
            "wrong": received.iter().map(|client| number(client, "wrong")).sum::<f64>(),
            "slowest_client_per_s": if received.is_empty() { Value::Null } else { json!(slowest.round()) },
            "confirmed": produced["confirmed"],
            "hub_cpu_us_per_record": hub_cpu * 1e6 / records.max(1.0),
            "producer_cpu_us_per_record": number(produced, "cpu_s") * 1e6 / records.max(1.0),
            "hub_rss_mb": rss as f64 / 1e6,
            "wal_mb_per_s": kept.map(|status| number(&status["archive"], "bytes") / elapsed / 1e6),
            "disk_mb_per_s": disk.map(|speed| speed / 1e6),
            "slowest_commit_ms": kept.map(|status| number(&status["archive"], "slowest_commit_us") / 1e3),
        })
    }

    fn show(&self, report: &Value) -> Outcome {
        let mut out = std::io::stdout().lock();
        if self.json {
            return written(writeln!(out, "{report}"));
        }
        let number = |value: &Value| value.as_f64().unwrap_or(0.0);
        let what = if self.live { "to the clients" } else { "kept and to the clients" };
        written(writeln!(
            out,
            "{:.0} records/s of {} B {what}, {:.0} lost, {} clients, {:.1} s",
            number(&report["records_per_s"]),
            self.size,
            number(&report["lost"]),
            self.clients,
            number(&report["seconds"]),
        ))?;
        if !self.live {
            written(writeln!(
                out,
                "write-ahead {:.0} MB/s on a disk of {:.0} MB/s",
                number(&report["wal_mb_per_s"]),
                number(&report["disk_mb_per_s"]),
            ))?;
        }
        written(writeln!(
            out,
            "CPU a record: producer {:.2} us, hub {:.2} us",
            number(&report["producer_cpu_us_per_record"]),
            number(&report["hub_cpu_us_per_record"]),
        ))
    }
}
