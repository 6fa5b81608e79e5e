//! Tampu's log line end to end, through the user's command `tampu perf log`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Arguments of one run.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// Directory of write-ahead segments; without it nothing is stored.
    pub data: Option<&'a Path>,
    /// Number of clients that receive everything.
    pub clients: usize,
    /// Number of of that them are stopped meanwhile.
    pub stopped: usize,
    /// Duration of writing, in seconds.
    pub seconds: f64,
    /// Bytes of a record.
    pub size: usize,
    /// Records in each packet.
    pub packet: usize,
    /// Records a second; without it as many as possible.
    pub rate: Option<f64>,
    /// Immediate records a second.
    pub immediate: Option<f64>,
    /// True if a stopped client is waited for only as long as in an application.
    pub bounded: bool,
    /// Grade that each call waits for, and the number of threads that make such calls.
    pub acknowledged: Option<(&'a str, u16)>,
}

impl Default for Ask<'_> {
    fn default() -> Self {
        Ask {
            data: None,
            clients: 0,
            stopped: 0,
            seconds: 3.0,
            size: 250,
            packet: 100,
            rate: None,
            immediate: None,
            bounded: false,
            acknowledged: None,
        }
    }
}

/// Output of the command.
#[derive(Debug, Clone, Deserialize)]
pub struct Said {
    records_per_s: f64,
    lost: f64,
    /// Processor seconds by process; a list if there are several of a kind.
    cpu_s: BTreeMap<String, Value>,
    /// Resident memory, in 10^6 bytes.
    #[serde(default)]
    rss_mb: BTreeMap<String, Value>,
    #[serde(default)]
    bytes_per_record: BTreeMap<String, Value>,
    #[serde(default)]
    records: f64,
    /// Seconds until everything was acknowledged.
    #[serde(default)]
    seconds: f64,
    #[serde(default)]
    wrong: f64,
    #[serde(default)]
    slowest_client_per_s: Option<f64>,
    #[serde(default)]
    immediate: Option<Immediate>,
    #[serde(default)]
    acknowledged: Option<Immediate>,
    #[serde(default)]
    backlog: Option<Backlog>,
    #[serde(default)]
    rate_kept: Option<bool>,
}

/// Time of immediate records to a client, or of acknowledged calls, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Immediate {
    pub p50_us: Option<f64>,
    /// Slowest hundredth of the records.
    pub p99_us: Option<f64>,
    pub max_us: Option<f64>,
}

/// Bytes that waited between the producer's calls and the commit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Backlog {
    pub max: f64,
    /// Capacity in bytes.
    pub bound: f64,
    pub mean: f64,
    /// In the first quarter of the run.
    pub first_quarter: f64,
    /// In the last quarter.
    pub last_quarter: f64,
}

impl Said {
    /// Returns the records a second at the slowest receiver.
    pub fn per_second(&self) -> f64 {
        self.slowest_client_per_s.map_or(self.records_per_s, |slowest| slowest.min(self.records_per_s))
    }

    /// Returns the number of records that did not arrive at their destination.
    pub fn lost(&self) -> u64 {
        self.lost.ceil() as u64
    }

    /// Returns the number of records that arrived with other content.
    pub fn wrong(&self) -> u64 {
        self.wrong.ceil() as u64
    }

    /// Number of records, and seconds until all were where they should be.
    pub fn records(&self) -> (f64, f64) {
        (self.records, self.seconds)
    }

    /// Returns processor seconds by process, added up for each kind.
    pub fn cpu(&self) -> Vec<(String, f64)> {
        self.cpu_s.iter().map(|(name, seconds)| (name.clone(), sum(seconds))).collect()
    }

    /// Returns memory by process in 10^6 bytes, added up for each kind.
    pub fn rss_mb(&self) -> Vec<(String, f64)> {
        self.rss_mb.iter().map(|(name, mb)| (name.clone(), sum(mb))).collect()
    }

    /// Returns the bytes of a record. `bus`: of packets on the bus; `disk`: of the segment.
    pub fn bytes(&self, way: &str) -> Option<f64> {
        self.bytes_per_record.get(way)?.as_f64()
    }

    /// Returns the time of immediate records to a client, in microseconds.
    pub fn immediate(&self) -> Option<Immediate> {
        self.immediate
    }

    /// Returns the time of acknowledged calls, in microseconds.
    pub fn acknowledged(&self) -> Option<Immediate> {
        self.acknowledged
    }

    /// Returns the bytes that waited for the commit.
    pub fn backlog(&self) -> Option<Backlog> {
        self.backlog
    }

    /// True if the requested rate was kept.
    pub fn rate_kept(&self) -> Option<bool> {
        self.rate_kept
    }
}

/// Returns a number, or the sum of a list.
pub fn sum(seconds: &Value) -> f64 {
    match seconds {
        Value::Array(list) => list.iter().map(sum).fold(0.0, |all, one| all + one),
        one => one.as_f64().unwrap_or_default(),
    }
}

/// Returns the default path of the program, beside this one.
pub fn beside() -> PathBuf {
    let here = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join("tampu")));
    here.unwrap_or_else(|| PathBuf::from("tampu"))
}

/// Runs the command in directories of its own.
pub fn run(tampu: &Path, ask: Ask) -> Result<Said, String> {
    let dir = tempfile::tempdir().map_err(|e| format!("a directory: {e}"))?;
    let mut command = Command::new(tampu);
    command.args(["perf", "log", "--json", "--no-disk"]).env("TAMPU_RUN_DIR", dir.path());
    let mut add = |name: &str, value: String| {
        command.args([name, &value]);
    };
    add("--clients", ask.clients.to_string());
    if ask.stopped > 0 {
        add("--stopped", ask.stopped.to_string());
    }
    add("--for", format!("{}s", ask.seconds));
    add("--size", ask.size.to_string());
    add("--packet", ask.packet.to_string());
    if let Some(rate) = ask.rate {
        add("--rate", rate.to_string());
    }
    if let Some(rate) = ask.immediate {
        add("--immediate", rate.to_string());
    }
    if let Some((grade, callers)) = ask.acknowledged {
        command.args(["--acknowledged", grade, "--callers", &callers.to_string()]);
    }
    if ask.bounded {
        command.arg("--bounded");
    }
    match ask.data {
        Some(data) => command.arg("--scratch").arg(data),
        None => command.arg("--live"),
    };
    let output = command.output().map_err(|e| format!("{}: {e}", tampu.display()))?;
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("invalid output of tampu perf log: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agreed_fields_are_enough_and_others_do_not_disturb() -> serde_json::Result<()> {
        let text = r#"{"records_per_s": 1e6, "lost": 0.0, "records": 2000000.0, "slowest_client_per_s": 9e5, "wrong": 0.0,
            "cpu_s": {"collector": 0.5, "node": 0.1, "producer": 0.2, "clients": [0.25, 0.5]}, "more": [1], "seconds": 2.0,
            "bytes_per_record": {"bus": 251.5, "disk": null}, "rss_mb": {"node": 9.5, "clients": [1, 2]},
            "immediate": {"count": 9, "p50_us": 10.0, "p99_us": null, "max_us": 12}, "rate_kept": null,
            "backlog": {"max": 5, "bound": 8, "mean": 3, "first_quarter": 1, "last_quarter": 2, "samples": 7}}"#;
        let said: Said = serde_json::from_str(text)?;
        assert_eq!((said.per_second(), said.lost(), said.records()), (9e5, 0, (2e6, 2.0)));
        let named = |list: &[(&str, f64)]| list.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect::<Vec<_>>();
        assert_eq!(said.cpu(), named(&[("clients", 0.75), ("collector", 0.5), ("node", 0.1), ("producer", 0.2)]));
        assert_eq!(said.rss_mb(), named(&[("clients", 3.0), ("node", 9.5)]));
        assert_eq!((said.bytes("bus"), said.bytes("disk"), said.bytes("none")), (Some(251.5), None, None));
        assert_eq!(said.immediate(), Some(Immediate { p50_us: Some(10.0), p99_us: None, max_us: Some(12.0) }));
        assert_eq!(said.backlog().map(|backlog| (backlog.max, backlog.bound)), Some((5.0, 8.0)));
        let said: Said = serde_json::from_str(
            r#"{"records_per_s": 1e6, "lost": 3, "cpu_s": {"node": 1.5}, "records": 1000000, "slowest_client_per_s": null}"#,
        )?;
        assert_eq!((said.per_second(), said.lost(), said.immediate()), (1e6, 3, None));
        Ok(())
    }
}
