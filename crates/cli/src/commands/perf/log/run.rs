//! One run of `tampu perf log`.

use std::{thread, time::Duration};

use rustix::process::Signal;

use super::{
    PerfLog,
    account::{self, Run},
};
use crate::{
    commands::perf::{
        producer::Asked,
        scene::{Scene, Worker},
    },
    context::Context,
    failure::{Failure, Outcome},
    keeper::Keeper,
    measure::{self, Usage},
};

/// Bytes written to measure a disk.
const PROBE: usize = 256 << 20;
/// Time from the beginning of the logging to the stop of clients, as a part of its time.
const STOP_AFTER: f64 = 0.2;

impl PerfLog {
    pub fn run(self, context: &Context) -> Outcome {
        if self.stopped > self.clients {
            return Err(Failure::Usage(format!("{} of {} clients cannot be stopped", self.stopped, self.clients)));
        }
        let scene = Scene::new(self.scratch.as_deref())?;
        let scene = if self.live { scene.without_spool() } else { scene };
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
            acknowledged: self.acknowledged,
            callers: self.callers,
        };
        let arguments = asked.arguments();
        let meters = [Some(&node), collector.as_ref()].map(|hub| hub.map(Meter::start));
        let mut producer = scene.start("producer", &arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
        // A client that is stopped before the producer knows it is never known.
        producer.report()?;
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

    /// Starts the collector and waits until it answers: the start is not part of the measurement.
    fn collector(&self, scene: &Scene, context: &Context) -> Result<Worker, Failure> {
        let mut collector = scene.start_hub("collector")?;
        let watch = self.watch(scene, context)?;
        collector.await_work(|| watch.status().is_ok())?;
        Ok(collector)
    }

    /// Returns a client of the collector, to read its state.
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

/// Resource usage of a process from a moment on.
struct Meter<'a> {
    worker: &'a Worker,
    before: Usage,
}

impl Meter<'_> {
    fn start(worker: &Worker) -> Meter<'_> {
        Meter { worker, before: worker.usage() }
    }

    /// Returns processor time and written bytes since the start; everything else at its present value.
    fn read(self) -> Usage {
        let now = self.worker.usage();
        Usage { cpu: now.cpu.saturating_sub(self.before.cpu), ..now }
    }
}
