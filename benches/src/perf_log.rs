//! Our own log line end to end, through the command everybody has: `tampu perf log`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;

/// What one run is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// Where write-ahead segments go; nothing is stored without it.
    pub data: Option<&'a Path>,
    /// How many clients receive everything.
    pub clients: usize,
    /// For how long records are written.
    pub seconds: f64,
}

/// What the command says.
#[derive(Debug, Clone, Deserialize)]
pub struct Said {
    /// Records a second at the slowest of collector and clients.
    pub records_per_s: f64,
    /// Records that did not arrive where they should.
    pub lost: u64,
    /// Processor seconds by process.
    pub cpu_s: BTreeMap<String, f64>,
    /// How many records were written.
    #[serde(default)]
    pub records: u64,
}

impl Said {
    /// The collector's processor time for one record, in microseconds.
    pub fn collector_us(&self) -> Option<f64> {
        let collector = self.cpu_s.iter().find(|(name, _)| name.contains("collector") || name.contains("hub"))?.1;
        (self.records > 0).then(|| collector * 1e6 / self.records as f64)
    }
}

/// The program beside this one, if nothing else is said.
pub fn beside() -> PathBuf {
    let here = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join("tampu")));
    here.unwrap_or_else(|| PathBuf::from("tampu"))
}

/// Runs the command in directories of its own.
pub fn run(tampu: &Path, ask: Ask) -> Result<Said, String> {
    let dir = tempfile::tempdir().map_err(|e| format!("a directory: {e}"))?;
    let mut command = Command::new(tampu);
    command.args(["perf", "log", "--json", "--clients", &ask.clients.to_string(), "--seconds", &ask.seconds.to_string()]);
    command.env("TAMPU_RUN_DIR", dir.path());
    match ask.data {
        Some(data) => command.arg("--data").arg(data),
        None => command.arg("--live"),
    };
    let output = command.output().map_err(|e| format!("{}: {e}", tampu.display()))?;
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("what tampu perf log says cannot be read: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agreed_fields_are_enough_and_others_do_not_disturb() {
        let text =
            r#"{"records_per_s": 1e6, "lost": 0, "records": 2000000, "cpu_s": {"collector": 0.5, "writer": 0.2}, "more": [1]}"#;
        let said: Result<Said, _> = serde_json::from_str(text);
        assert_eq!(said.ok().and_then(|said| said.collector_us()), Some(0.25));
        let said: Result<Said, _> = serde_json::from_str(r#"{"records_per_s": 1e6, "lost": 0, "cpu_s": {}}"#);
        assert_eq!(said.map(|said| said.collector_us()).ok(), Some(None));
    }
}
