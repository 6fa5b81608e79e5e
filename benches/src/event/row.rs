//! One measured cell: the same figures for every system, as far as they are available.

use serde_json::{Value, json};

use crate::event::plan::{Cell, Who};

/// Cost of subscribing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Subscribing {
    /// Seconds in the calls.
    pub calls_s: f64,
    /// Seconds until all first values had arrived.
    pub first_values_s: f64,
    /// Memory of a subscription, bytes.
    pub bytes_each: f64,
}

#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Events that were pushed.
    pub pushed: f64,
    /// Events a second at the slowest client.
    pub events_per_s: f64,
    /// Events that did not arrive, added over the clients.
    pub lost: f64,
    /// Lost events that were reported to the clients.
    pub told: Option<f64>,
    /// Events that arrived with other elements.
    pub wrong: f64,
    /// Events that arrived twice.
    pub twice: f64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Processor seconds: of the server, of the process between, and of all clients together.
    pub cpu_s: [Option<f64>; 3],
    /// Latency of single events at their slowest client, us: median, 99 %, longest.
    pub latency_us: Option<[f64; 3]>,
    /// The highest rate without loss, if it was searched for.
    pub lossless_per_s: Option<f64>,
    /// Cost of subscribing.
    pub subscribing: Option<Subscribing>,
    /// Release of the measured system.
    pub version: Option<String>,
}

/// A cell with its figures.
#[derive(Debug, Clone)]
pub struct Row {
    /// Cell that was measured.
    pub cell: Cell,
    /// Figures that were measured.
    pub figures: Figures,
}

impl Row {
    /// Returns true if a value that did not come may be replaced by a newer one, and is not a loss.
    pub fn may_replace(&self) -> bool {
        self.cell.player.who == Who::Ours("latest")
    }

    /// Returns true if its rate counts.
    pub fn is_whole(&self) -> bool {
        (self.figures.lost == 0.0 || self.may_replace()) && self.figures.wrong + self.figures.twice == 0.0
    }

    /// Returns the share of the events that did not arrive, per cent.
    pub fn lost_percent(&self) -> f64 {
        100.0 * self.figures.lost / (self.figures.pushed * self.cell.clients.max(1) as f64).max(1.0)
    }

    /// Returns the defects of the result, in words.
    pub fn bad(&self) -> String {
        let Figures { lost, wrong, twice, .. } = self.figures;
        let percent = match self.lost_percent() {
            little if little < 0.5 => "< 1 %".to_owned(),
            share => format!("{share:.0} %"),
        };
        let what = if self.may_replace() { "replaced" } else { "LOST" };
        [
            (lost > 0.0).then(|| format!("{what} {percent}")),
            (wrong > 0.0).then(|| format!("WRONG {wrong}")),
            (twice > 0.0).then(|| format!("TWICE {twice}")),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
    }

    /// Returns one line for programs.
    pub fn json(&self) -> Value {
        let Row { cell, figures } = self;
        let [server, between, clients] = figures.cpu_s;
        json!({
            "part": cell.part.name(),
            "system": cell.player.name,
            "elements": cell.elements,
            "clients": cell.clients,
            "pushed": figures.pushed,
            "events_per_s": figures.events_per_s,
            "lost": figures.lost,
            "lost_percent": self.lost_percent(),
            "told": figures.told,
            "wrong": figures.wrong,
            "twice": figures.twice,
            "seconds": figures.seconds,
            "cpu_s": {"server": server, "between": between, "clients": clients},
            "latency_us": figures.latency_us.map(|[p50, p99, max]| json!({"p50": p50, "p99": p99, "max": max})),
            "lossless_per_s": figures.lossless_per_s,
            "subscribing": figures.subscribing.map(|took| {
                json!({"calls_s": took.calls_s, "first_values_s": took.first_values_s, "bytes_each": took.bytes_each})
            }),
            "version": figures.version,
        })
    }
}
