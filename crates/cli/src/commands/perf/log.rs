//! `tampu perf log`.

use std::{path::PathBuf, thread, time::Duration};

use clap::Args;
use rustix::process::Signal;

use crate::{
    commands::{
        Context,
        perf::{
            account::{self, Run},
            producer::Asked,
            scene::{Scene, Worker},
        },
    },
    failure::{Failure, Outcome},
    keeper::Keeper,
    measure::{self, Usage},
};

/// Measure the log line: a process that logs, a node, a collector that keeps, clients that follow and check every record
///
/// Each is a process of its own, so that what one costs does not hide in another: the node's way to many clients is not the
/// collector's work.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  tampu perf log --clients 10 --seconds 30 --json\n  tampu perf log --rate 200000 --seconds 600"
)]
pub struct PerfLog {
    /// Clients that follow the log
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub clients: usize,
    /// How long to log
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = super::a_time)]
    pub seconds: f64,
    /// Bytes a record takes
    #[arg(long, value_name = "BYTES", default_value_t = 250)]
    pub size: usize,
    /// Records a second; as many as it can without
    #[arg(long, value_name = "N", value_parser = a_rate)]
    pub rate: Option<f64>,
    /// Records a packet: 1 is one by one
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub packet: usize,
    /// So many immediate records a second beside the others; how long they take to a client is told
    #[arg(long, value_name = "N", value_parser = a_rate)]
    pub immediate: Option<f64>,
    /// So many of the clients are stopped (SIGSTOP) while it logs; it waits for them no longer than an application does
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub stopped: usize,
    /// Wait for slow clients no longer than an application does by default; they lose what is beyond its cache
    #[arg(long)]
    pub bounded: bool,
    /// Without a collector: live clients only
    #[arg(long)]
    pub live: bool,
    /// Where the measurement's data is kept and removed afterwards; a disk like the archive's
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Do not measure the disk first
    #[arg(long)]
    pub no_disk: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// What a disk is measured with, bytes.
const PROBE: usize = 256 << 20;
/// When clients are stopped, counted from the producer's start, as a part of the time it logs.
const STOP_AFTER: f64 = 0.2;

fn a_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
        _ => Err("not a number above 0".to_owned()),
    }
}

impl PerfLog {
    pub fn run(self, context: &Context) -> Outcome {
        if self.stopped > self.clients {
            return Err(Failure::Usage(format!("{} of {} clients cannot be stopped", self.stopped, self.clients)));
        }
        let scene = Scene::new(self.data.as_deref())?;
        let disk = if self.live || self.no_disk {
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
        let asked = Asked {
            seconds: self.seconds,
            size: self.size,
            readers: self.clients + usize::from(!self.live),
            rate: self.rate,
            packet: self.packet,
            immediate: self.immediate,
            bounded: self.bounded || self.stopped > 0,
            kept: !self.live && (self.bounded || self.stopped > 0),
        };
        let arguments = asked.arguments();
        let meters = [Some(&node), collector.as_ref()].map(|hub| hub.map(Meter::start));
        let mut producer = scene.start("producer", &arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
        let stopped = Stopped::after(&clients[self.clients - self.stopped..], self.seconds * STOP_AFTER);
        let produced = producer.report()?;
        let [node_used, collector_used] = meters.map(|meter| meter.map(Meter::read));
        drop(stopped);
        clients.iter_mut().for_each(|client| client.finish());
        let mut received = clients.iter_mut().map(|client| client.report()).collect::<Result<Vec<_>, _>>()?;
        let stopped = received.split_off(self.clients - self.stopped);
        let kept = if self.live { None } else { Some(self.watch(&scene, context)?.status()?) };

        let run = Run { produced, received, stopped, kept, node: node_used, collector: collector_used, disk };
        let report = account::report(&self, &run);
        drop((producer, clients, collector, node));
        account::show(&self, &report)
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
}

/// Clients that do not run, until this is dropped.
struct Stopped<'a>(&'a [Worker]);

impl Stopped<'_> {
    fn after(clients: &[Worker], seconds: f64) -> Stopped<'_> {
        if !clients.is_empty() {
            thread::sleep(Duration::from_secs_f64(seconds));
        }
        clients.iter().for_each(|client| client.signal(Signal::STOP));
        Stopped(clients)
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|client| client.signal(Signal::CONT));
    }
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

    /// Processor time and written bytes since the start; everything else as it is now.
    fn read(self) -> Usage {
        let now = self.worker.usage();
        Usage { cpu: now.cpu.saturating_sub(self.before.cpu), ..now }
    }
}
