//! One measured cell: the same figures for everybody, as far as they can be had.

use serde_json::{Value, json};

use crate::event::plan::{Cell, Who};

/// What subscribing took.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Subscribing {
    /// Seconds in the calls.
    pub calls_s: f64,
    /// Seconds until all first values were there.
    pub first_values_s: f64,
    /// Memory of a subscription, bytes.
    pub bytes_each: f64,
}

/// The figures.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Events that were pushed.
    pub pushed: f64,
    /// Events a second at the slowest client.
    pub events_per_s: f64,
    /// Events that did not come, added over the clients.
    pub lost: f64,
    /// Of these, how many the clients were told of.
    pub told: Option<f64>,
    /// Events that came with other elements than they were pushed with.
    pub wrong: f64,
    /// Events that came twice.
    pub twice: f64,
    /// How long it took, seconds.
    pub seconds: f64,
    /// Processor seconds: of the server, of what stands between, of all clients together.
    pub cpu_s: [Option<f64>; 3],
    /// Of single events at their slowest client, us: median, 99 %, longest.
    pub latency_us: Option<[f64; 3]>,
    /// The highest rate found at which nothing was lost, where it was looked for.
    pub lossless_per_s: Option<f64>,
    /// What subscribing took.
    pub subscribing: Option<Subscribing>,
    /// Of what release it is.
    pub version: Option<String>,
}

/// A cell with its figures.
#[derive(Debug, Clone)]
pub struct Row {
    /// What was asked.
    pub cell: Cell,
    /// What came.
    pub figures: Figures,
}

impl Row {
    /// Whether a value that did not come is a loss: with latest values newer ones stand for it.
    pub fn may_replace(&self) -> bool {
        self.cell.player.who == Who::Ours("latest")
    }

    /// Whether its rate counts.
    pub fn is_whole(&self) -> bool {
        (self.figures.lost == 0.0 || self.may_replace()) && self.figures.wrong + self.figures.twice == 0.0
    }

    /// The share of the events that did not come, per cent.
    pub fn lost_percent(&self) -> f64 {
        100.0 * self.figures.lost / (self.figures.pushed * self.cell.clients.max(1) as f64).max(1.0)
    }

    /// What nobody may overlook, in words.
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

    /// One line for programs.
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
