//! One measured cell: the same figures for every system, as far as they are available.

use serde_json::{Map, Value, json};

use crate::{
    cell::Outcome,
    log_line::plan::{Cell, Part},
    perf_log::{Backlog, Immediate, Said},
};

#[derive(Debug, Clone)]
pub struct Row {
    /// Part of the run that it belongs to.
    pub part: Part,
    /// Name of the cell.
    pub name: &'static str,
    /// Number of clients.
    pub clients: usize,
    /// Bytes of a record.
    pub size: usize,
    /// Seconds of writing.
    pub seconds: f64,
    /// Records a second at the slowest receiver.
    pub records_per_s: f64,
    /// Records that did not arrive.
    pub lost: u64,
    /// Records that arrived changed or twice.
    pub wrong: u64,
    /// Processor microseconds of a record, by process.
    pub cpu_us: Vec<(String, f64)>,
    /// Processor seconds of the processes for each second of the run.
    pub load: Vec<(String, f64)>,
    /// Memory by process, 10^6 bytes.
    pub rss_mb: Vec<(String, f64)>,
    /// Bytes of a record through sockets, the writer's and every client's added up.
    pub sockets: Option<f64>,
    /// Bytes of a record on the bus.
    pub bus: Option<f64>,
    /// Bytes of a record on disk.
    pub disk: Option<f64>,
    /// Time of immediate records to a client, in microseconds.
    pub immediate: Option<Immediate>,
    /// Time of acknowledged calls, in microseconds.
    pub acknowledged: Option<Immediate>,
    /// Records that waited for the commit.
    pub backlog: Option<Backlog>,
    /// True if the requested rate was kept.
    pub rate_kept: Option<bool>,
}

/// Names of processes between writer and clients.
const BETWEEN: [&str; 3] = ["collector", "server", "node"];

impl Row {
    /// Makes the row from the output of `tampu perf log`.
    pub fn ours(cell: &Cell, said: &Said) -> Row {
        let (records, seconds) = said.records();
        let scaled = |scale: f64| said.cpu().into_iter().map(|(name, cpu)| (name, cpu * scale)).collect();
        Row {
            records_per_s: said.per_second(),
            lost: said.lost(),
            wrong: said.wrong(),
            cpu_us: scaled(1e6 / records.max(1.0)),
            load: scaled(1.0 / seconds.max(1e-9)),
            rss_mb: said.rss_mb(),
            // On one host packets go through shared memory; the kernel does not count the other bytes of the sockets.
            sockets: None,
            bus: said.bytes("bus"),
            disk: said.bytes("disk"),
            immediate: said.immediate(),
            acknowledged: said.acknowledged(),
            backlog: said.backlog(),
            rate_kept: said.rate_kept(),
            ..Row::of(cell)
        }
    }

    /// Makes the row of a peer.
    pub fn peer(cell: &Cell, outcome: &Outcome) -> Row {
        let cpu = [outcome.cpu_writer, outcome.cpu_server, outcome.cpu_readers];
        let named = |values: [f64; 3], scale: f64| -> Vec<(String, f64)> {
            let all = ["producer", "server", "clients"].map(str::to_owned).into_iter().zip(values.map(|value| value * scale));
            all.filter(|(name, _)| name != "clients" || cell.clients > 0).collect()
        };
        let records = outcome.sent.max(1) as f64;
        Row {
            records_per_s: outcome.per_second,
            lost: outcome.lost,
            wrong: outcome.wrong,
            cpu_us: named(cpu, 1e6 / records),
            load: named(cpu, outcome.per_second / records),
            rss_mb: named(outcome.rss_mb, 1.0),
            sockets: outcome.wire.map(|bytes| bytes as f64 / records),
            ..Row::of(cell)
        }
    }

    fn of(cell: &Cell) -> Row {
        Row {
            part: cell.part,
            name: cell.name,
            clients: cell.clients,
            size: cell.size,
            seconds: cell.seconds,
            records_per_s: 0.0,
            lost: 0,
            wrong: 0,
            cpu_us: Vec::new(),
            load: Vec::new(),
            rss_mb: Vec::new(),
            sockets: None,
            bus: None,
            disk: None,
            immediate: None,
            acknowledged: None,
            backlog: None,
            rate_kept: None,
        }
    }

    /// Returns the processor microseconds of a record between writer and clients. These are the collector's if records
    /// are stored, else the node's or the server's.
    pub fn between_us(&self) -> Option<f64> {
        BETWEEN.iter().find_map(|name| find(&self.cpu_us, name))
    }

    /// Returns the same as a fraction of one processor's time.
    pub fn between_load(&self) -> Option<f64> {
        BETWEEN.iter().find_map(|name| find(&self.load, name))
    }

    /// Returns the defects that invalidate its rate, in words.
    pub fn bad(&self) -> String {
        let lost = (self.lost > 0).then(|| format!("LOST {}", self.lost));
        let wrong = (self.wrong > 0).then(|| format!("WRONG {}", self.wrong));
        lost.into_iter().chain(wrong).collect::<Vec<_>>().join(" ")
    }

    /// Returns true if nothing was lost or wrong.
    pub fn whole(&self) -> bool {
        self.lost == 0 && self.wrong == 0
    }

    /// Returns one line for programs.
    pub fn json(&self) -> Value {
        let map = |list: &[(String, f64)]| list.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<Map<_, _>>();
        json!({
            "part": self.part.name(),
            "system": self.name,
            "clients": self.clients,
            "size": self.size,
            "seconds": self.seconds,
            "records_per_s": self.records_per_s,
            "lost": self.lost,
            "wrong": self.wrong,
            "cpu_us_per_record": map(&self.cpu_us),
            "between_us_per_record": self.between_us(),
            "load": map(&self.load),
            "rss_mb": map(&self.rss_mb),
            "socket_bytes_per_record": self.sockets,
            "bus_bytes_per_record": self.bus,
            "disk_bytes_per_record": self.disk,
            "immediate": self.immediate,
            "acknowledged": self.acknowledged,
            "backlog": self.backlog,
            "rate_kept": self.rate_kept,
        })
    }
}

fn find(list: &[(String, f64)], wanted: &str) -> Option<f64> {
    list.iter().find(|(name, _)| name == wanted).map(|(_, value)| *value)
}
