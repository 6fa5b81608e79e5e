//! Real Tango, in C++ and PyTango. The script `peers/tango_table.py` starts and controls its processes.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;

use crate::event::{
    plan::{Cell, PACED, Part},
    row::Figures,
};

/// Set-up of Tango.
#[derive(Debug, Clone)]
pub struct Tango {
    /// The Python that has PyTango.
    pub python: PathBuf,
    /// True if the highest rate without loss is looked for.
    pub lossless: bool,
}

/// A line of the script.
#[derive(Debug, Deserialize)]
struct Said {
    failed: Option<String>,
    #[serde(default)]
    tango: String,
    #[serde(default)]
    sent: f64,
    #[serde(default)]
    events_per_s: f64,
    #[serde(default)]
    lost: f64,
    #[serde(default)]
    wrong: f64,
    #[serde(default)]
    twice: f64,
    #[serde(default)]
    server_cpu_s: f64,
    #[serde(default)]
    clients_cpu_s: f64,
    lossless_per_s: Option<f64>,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    longest_us: Option<f64>,
}

impl Tango {
    /// Runs one cell.
    pub fn run(&self, peer: &str, cell: &Cell) -> Result<Figures, String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/tango_table.py");
        let mut command = Command::new(&self.python);
        command.arg(script).args(["--json", "--peers", peer]);
        command.args(["--clients", &cell.clients.to_string(), "--elements", &cell.elements.to_string()]);
        command.args(["--seconds", &cell.seconds.to_string()]);
        if cell.part == Part::Latency {
            command.args(["--latency", "--no-rates"]);
        } else if self.lossless {
            command.arg("--lossless");
        }
        if let Some(program) = beside() {
            command.env("BENCH_TANGO", program);
        }
        let output = command.output().map_err(|e| format!("{}: {e}", self.python.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find(|line| line.starts_with('{'));
        let line = line.ok_or_else(|| format!("{}: {}", output.status, last_line(&output.stderr)))?;
        figures(line, cell)
    }
}

fn last_line(text: &[u8]) -> String {
    String::from_utf8_lossy(text).lines().last().unwrap_or_default().to_owned()
}

/// Returns the path of the C++ peer, which `make bench-tango` builds beside the benches.
fn beside() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?.parent()?.join("bench-tango");
    program.is_file().then_some(program)
}

fn figures(line: &str, cell: &Cell) -> Result<Figures, String> {
    let said: Said = serde_json::from_str(line).map_err(|e| format!("invalid output of tango_table.py: {e}"))?;
    if let Some(why) = said.failed {
        return Err(why);
    }
    let latency = said.p50_us.zip(said.p99_us).zip(said.longest_us).map(|((p50, p99), max)| [p50, p99, max]);
    Ok(Figures {
        pushed: said.sent,
        events_per_s: said.events_per_s,
        lost: said.lost,
        told: None,
        wrong: said.wrong,
        // Tango is known to repeat an event after a client has connected; the measurement is not at fault.
        twice: said.twice,
        seconds: if cell.part == Part::Latency { said.sent / PACED } else { cell.seconds },
        cpu_s: [Some(said.server_cpu_s), None, Some(said.clients_cpu_s)],
        latency_us: latency,
        lossless_per_s: said.lossless_per_s,
        subscribing: None,
        version: (!said.tango.is_empty()).then_some(said.tango),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::plan::cells;

    #[test]
    fn what_the_script_says_is_understood() {
        let cell = cells(&[2], &[1], 1.0)[0];
        let line = r#"{"peer": "tango", "elements": 1, "clients": 2, "tango": "10.0.2", "sent": 100, "sent_per_s": 99.5, "events_per_s": 40.5,
            "lost": 12, "wrong": 0, "twice": 0, "errors": 3, "server_cpu_s": 0.5, "clients_cpu_s": 0.75, "lossless_per_s": 30.5}"#;
        let figures_of = figures(line, &cell);
        assert!(
            figures_of.as_ref().is_ok_and(|figures| (figures.lost, figures.lossless_per_s) == (12.0, Some(30.5))),
            "{figures_of:?}"
        );
        assert_eq!(figures(r#"{"failed": "no Tango"}"#, &cell).err().as_deref(), Some("no Tango"));
    }
}
