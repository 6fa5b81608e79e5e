//! `tampu perf log`.

use std::{io::Write, path::PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};

use crate::{
    commands::{
        Context,
        perf::scene::{Scene, Worker},
    },
    failure::{Failure, Outcome, written},
    keeper::Keeper,
    measure::{self, Usage},
};

/// Measure the log line: a process that logs, a node, a collector that keeps, clients that follow and check every record
///
/// Each is a process of its own, so that what one costs does not hide in another: the node's way to many clients is not the
/// collector's work.
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
        let node = scene.hub("node")?;
        let collector = if self.live { None } else { Some(self.collector(&scene, context)?) };
        let size = self.size.to_string();
        let mut clients = Vec::new();
        for number in 0..self.clients {
            let name = format!("perf-client-{number}");
            clients.push(scene.start(&name, &["perf", "part", "client", &name, &size])?);
        }
        let readers = (self.clients + usize::from(!self.live)).to_string();
        let meters = [Some(&node), collector.as_ref()].map(|hub| hub.map(Meter::start));
        let mut producer = scene.start("producer", &["perf", "part", "producer", &self.seconds.to_string(), &size, &readers])?;
        let produced = producer.report()?;
        let [node_used, collector_used] = meters.map(|meter| meter.map(Meter::read));
        clients.iter_mut().for_each(|client| client.finish());
        let received = clients.iter_mut().map(|client| client.report()).collect::<Result<Vec<_>, _>>()?;
        let kept = if self.live { None } else { Some(self.watch(&scene, context)?.status()?) };

        let run = Run { produced, received, kept, node: node_used, collector: collector_used, disk };
        let report = self.report(&run);
        drop((producer, clients, collector, node));
        self.show(&report)
    }

    /// Starts the collector and waits until it answers: what it costs to come up is not part of the measurement.
    fn collector(&self, scene: &Scene, context: &Context) -> Result<Worker, Failure> {
        let mut collector = scene.start_hub("collector")?;
        let watch = self.watch(scene, context)?;
        collector.await_work(|| watch.status().is_ok())?;
        Ok(collector)
    }

    /// A way to ask the collector what it has.
    fn watch(&self, scene: &Scene, context: &Context) -> Result<Keeper, Failure> {
        let mut connect = context.common.connect.clone();
        connect.domain = Some(scene.domain.clone());
        Keeper::at(scene.config(), &connect, "perf-watch")
    }

    fn report(&self, run: &Run) -> Value {
        let number = |value: &Value, name: &str| value[name].as_f64().unwrap_or(0.0);
        let records = number(&run.produced, "produced") - number(&run.produced, "dropped");
        let elapsed = number(&run.produced, "elapsed_s").max(1e-9);
        let clients: Vec<f64> = run.received.iter().map(|client| number(client, "received")).collect();
        let lost_live: f64 = clients.iter().map(|count| (records - count).max(0.0)).sum();
        let stored = run.kept.as_ref().map(|status| number(&status["archive"], "records"));
        let lost = number(&run.produced, "dropped") + lost_live + stored.map_or(0.0, |stored| (records - stored).max(0.0));
        let rate = |client: &Value| number(client, "received") / number(client, "elapsed_s").max(1e-9);
        let slowest = run.received.iter().map(rate).fold(f64::INFINITY, f64::min);
        let archive = |name: &str| run.kept.as_ref().map(|status| number(&status["archive"], name));
        let clients_cpu: Vec<f64> = run.received.iter().map(|client| number(client, "cpu_s")).collect();
        let cpu = [
            ("producer", Some(number(&run.produced, "cpu_s"))),
            ("node", run.node.map(|used| used.cpu.as_secs_f64())),
            ("collector", run.collector.map(|used| used.cpu.as_secs_f64())),
        ];
        // A process that does not take part has no entry.
        let by_process = |scale: f64| -> Map<String, Value> {
            let processes = cpu.iter().filter_map(|(name, seconds)| Some(((*name).to_owned(), json!((*seconds)? * scale))));
            let clients = clients_cpu.iter().map(|seconds| seconds * scale).collect::<Vec<_>>();
            processes.chain([("clients".to_owned(), json!(clients))]).collect()
        };
        json!({
            "records_per_s": (records / elapsed).round(),
            "lost": lost,
            "cpu_s": by_process(1.0),
            "cpu_us_per_record": by_process(1e6 / records.max(1.0)),
            "clients": self.clients,
            "seconds": elapsed,
            "size": self.size,
            "live_only": self.live,
            "records": records,
            "stored": stored,
            "received": clients,
            "wrong": run.received.iter().map(|client| number(client, "wrong")).sum::<f64>(),
            "slowest_client_per_s": if run.received.is_empty() { Value::Null } else { json!(slowest.round()) },
            "confirmed": run.produced["confirmed"],
            "node_rss_mb": run.node.map(|used| used.rss as f64 / 1e6),
            "collector_rss_mb": run.collector.map(|used| used.rss as f64 / 1e6),
            "wal_mb_per_s": archive("bytes").map(|bytes| bytes / elapsed / 1e6),
            "disk_mb_per_s": run.disk.map(|speed| speed / 1e6),
            "slowest_commit_ms": archive("slowest_commit_us").map(|us| us / 1e3),
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
        let cpu = &report["cpu_us_per_record"];
        let mut parts = Vec::new();
        for name in ["producer", "node", "collector"] {
            parts.extend(cpu[name].as_f64().map(|us| format!("{name} {us:.2}")));
        }
        let clients = cpu["clients"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !clients.is_empty() {
            parts.push(format!("clients {:.2} together", clients.iter().map(number).sum::<f64>()));
        }
        written(writeln!(out, "CPU a record, us: {}", parts.join(", ")))
    }
}

/// What the processes of one run said and used.
struct Run {
    produced: Value,
    received: Vec<Value>,
    kept: Option<Value>,
    node: Option<Usage>,
    collector: Option<Usage>,
    disk: Option<f64>,
}

/// What a process uses from a moment on.
struct Meter<'a> {
    worker: &'a Worker,
    before: Usage,
}

impl Meter<'_> {
    fn start(worker: &Worker) -> Meter<'_> {
        Meter { worker, before: worker.usage() }
    }

    /// The processor time since the start; everything else as it is now.
    fn read(self) -> Usage {
        let now = self.worker.usage();
        Usage { cpu: now.cpu.saturating_sub(self.before.cpu), ..now }
    }
}
