//! One cell of a table: one system, one payload size and a number of readers, measured for a few seconds in separate
//! processes.

use std::time::Duration;

use serde::Serialize;

use crate::{
    payload::SHORTEST,
    process::{RoleCommand, RoleMessage, Stage},
    role::Speed,
    system::{Part, Role, System},
    tally::Report,
};

const START: Duration = Duration::from_secs(20);
/// Extra time at the end: a writer may be delayed after its time, and a reader may have a backlog.
const GRACE: Duration = Duration::from_secs(30);
/// Number of first samples whose latency is ignored, because they find cold caches and connections.
const WARM_UP: usize = 100;

/// One measurement to make.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    /// System that carries the messages.
    pub system: System,
    pub size: usize,
    /// Number of readers.
    pub readers: usize,
    /// Rate or latency.
    pub speed: Speed,
    /// Duration of the measurement.
    pub time: Duration,
}

/// Results of a measurement.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Outcome {
    pub sent: u64,
    /// Messages a second: all that were sent, over the time from the first write to the last arrival at the slowest
    /// reader.
    pub per_second: f64,
    /// Messages that did not reach a reader, added over the readers.
    pub lost: u64,
    /// Lost messages that the system itself reported to the reader.
    pub told: u64,
    /// Wrong payloads, and messages that arrived twice.
    pub wrong: u64,
    /// Processor seconds of the writer.
    pub cpu_writer: f64,
    /// Processor seconds of the process between writer and readers.
    pub cpu_server: f64,
    /// Processor seconds of all readers together.
    pub cpu_readers: f64,
    /// One-way latency in microseconds, over all readers' samples: median, 99 %, longest.
    pub latency: Option<[f64; 3]>,
    /// Resident memory at the end in 10^6 bytes: of the writer, of the process between, and of all readers together.
    pub rss_mb: [f64; 3],
    /// Bytes through sockets, the writer's and the readers' added up, if the roles count them.
    pub wire: Option<u64>,
    /// Message of the system, if it had one.
    pub note: Option<String>,
}

impl Cell {
    pub fn run(&self) -> Result<Outcome, String> {
        let dir = tempfile::tempdir().map_err(|e| format!("a directory for sockets: {e}"))?;
        let role = |part, number, at: &str| Role {
            system: self.system.name.to_owned(),
            part,
            dir: dir.path().to_owned(),
            size: self.size.max(SHORTEST),
            readers: self.readers,
            number,
            paced: self.speed == Speed::Paced,
            at: at.to_owned(),
        };
        let environment = [("TAMPU_RUN_DIR", dir.path())];
        let mut stage = Stage::default();
        let mut at = String::new();
        let mut server = None;
        if self.system.server {
            let actor = stage.enter("server", &role(Part::Server, 0, "").arguments(), &environment)?;
            at = stage.hear("the server's endpoint", START, |_, said| place(said))?;
            server = Some(actor);
        }
        let writer = stage.enter("writer", &role(Part::Writer, 0, &at).arguments(), &environment)?;
        at = stage.hear("the writer's endpoint", START, |_, said| place(said))?;
        let mut readers = Vec::new();
        for number in 0..self.readers {
            readers.push(stage.enter(&format!("reader {number}"), &role(Part::Reader, number, &at).arguments(), &environment)?);
        }
        for _ in 0..self.readers {
            stage.hear("a reader's first message", START, |_, said| matches!(said, RoleMessage::Connected).then_some(()))?;
        }

        let everybody: Vec<usize> = readers.iter().copied().chain([writer]).chain(server).collect();
        let before: Vec<f64> = everybody.iter().map(|actor| stage.cpu(*actor)).collect();
        stage.order(writer, &RoleCommand::Go { nanoseconds: self.time.as_nanos() as u64 })?;
        let (sent, begun, ended, note, audit, wire) =
            stage.hear("the writer's end", self.time + GRACE, |_, said| match said {
                RoleMessage::Wrote { count, begun, ended, note, audit, wire } => {
                    Some((*count, *begun, *ended, note.clone(), *audit, *wire))
                }
                _ => None,
            })?;
        for reader in &readers {
            stage.order(*reader, &RoleCommand::WriterDone)?;
        }
        let mut reports = Vec::new();
        for _ in &readers {
            reports.push(stage.hear("a reader's report", GRACE, |_, said| match said {
                RoleMessage::Got(report) => Some(report.clone()),
                _ => None,
            })?);
        }
        let used: Vec<f64> = everybody.iter().zip(before).map(|(actor, before)| stage.cpu(*actor) - before).collect();
        let memory: Vec<f64> = everybody.iter().map(|actor| stage.rss_mb(*actor)).collect();
        drop(stage);

        let (cpu_readers, others) = used.split_at(readers.len());
        let mut outcome = account(sent, begun, ended, &reports);
        outcome.cpu_readers = cpu_readers.iter().fold(0.0, |sum, seconds| sum + seconds);
        outcome.cpu_writer = others.first().copied().unwrap_or_default();
        outcome.cpu_server = others.get(1).copied().unwrap_or_default();
        let (rss_readers, others) = memory.split_at(readers.len());
        let readers_mb = rss_readers.iter().fold(0.0, |sum, mb| sum + mb);
        outcome.rss_mb = [others.first().copied().unwrap_or_default(), others.get(1).copied().unwrap_or_default(), readers_mb];
        outcome.lost += audit.kept.map_or(0, |kept| sent.saturating_sub(kept));
        outcome.wrong += audit.wrong;
        outcome.wire = wire.map(|bytes| bytes + reports.iter().filter_map(|report| report.wire).sum::<u64>());
        outcome.note = reports.iter().find_map(|report| report.error.clone()).or(note);
        Ok(outcome)
    }
}

fn place(said: &RoleMessage) -> Option<String> {
    if let RoleMessage::At(at) = said { Some(at.clone()) } else { None }
}

/// Returns the results. Without readers, the end of the writer counts.
fn account(sent: u64, begun: u64, ended: u64, reports: &[Report]) -> Outcome {
    let slowest = reports.iter().map(|report| report.last).max().unwrap_or(ended);
    let seconds = slowest.saturating_sub(begun) as f64 / 1e9;
    let mut latencies: Vec<u64> = reports.iter().flat_map(|report| report.latencies.iter().skip(WARM_UP)).copied().collect();
    latencies.sort_unstable();
    let at = |part: f64| latencies[((latencies.len() - 1) as f64 * part).round() as usize] as f64 / 1e3;
    Outcome {
        sent,
        per_second: if seconds > 0.0 { sent as f64 / seconds } else { 0.0 },
        lost: reports.iter().map(|report| sent.saturating_sub(report.received)).sum(),
        told: reports.iter().map(|report| report.told).sum(),
        wrong: reports.iter().map(|report| report.corrupt + report.repeated).sum(),
        latency: (!latencies.is_empty()).then(|| [at(0.5), at(0.99), at(1.0)]),
        ..Outcome::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_reader_makes_the_rate_and_everybody_s_loss_counts() {
        let report = |received, last| Report { received, last, ..Report::default() };
        let outcome = account(1000, 5_000_000_000, 5_500_000_000, &[report(1000, 6_000_000_000), report(990, 7_000_000_000)]);
        assert!((outcome.per_second - 500.0).abs() < 1e-9);
        assert_eq!((outcome.lost, outcome.latency), (10, None));
    }

    #[test]
    fn latencies_leave_out_the_warm_up() {
        let mut latencies = vec![9_000_000; WARM_UP];
        latencies.extend((1..=101).map(|us| us * 1000));
        let outcome = account(201, 0, 0, &[Report { received: 201, last: 1, latencies, ..Report::default() }]);
        assert_eq!(outcome.latency, Some([51.0, 100.0, 101.0]));
    }
}
