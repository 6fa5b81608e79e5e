//! Our own log line end to end, through the command everybody has: `tampu perf log`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;
use serde_json::Value;

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
    records_per_s: f64,
    lost: f64,
    /// Processor seconds by process; a list where there are several of a kind.
    cpu_s: BTreeMap<String, Value>,
    #[serde(default)]
    records: f64,
    #[serde(default)]
    wrong: f64,
    #[serde(default)]
    slowest_client_per_s: Option<f64>,
}

impl Said {
    /// Records a second at the slowest of all.
    pub fn per_second(&self) -> f64 {
        self.slowest_client_per_s.map_or(self.records_per_s, |slowest| slowest.min(self.records_per_s))
    }

    /// Records that did not arrive where they should.
    pub fn lost(&self) -> u64 {
        self.lost.ceil() as u64
    }

    /// Records that came with other content than they were written with.
    pub fn wrong(&self) -> u64 {
        self.wrong.ceil() as u64
    }

    /// Processor seconds by process, those of a kind added up.
    pub fn cpu(&self) -> Vec<(String, f64)> {
        self.cpu_s.iter().map(|(name, seconds)| (name.clone(), sum(seconds))).collect()
    }

    /// What a record costs in processor time between writer and clients, in microseconds: the collector's where records are
    /// kept, else the node's.
    pub fn between_us(&self) -> Option<f64> {
        let seconds = ["collector", "node"].iter().find_map(|name| self.cpu_s.get(*name)).map(sum)?;
        (self.records > 0.0).then(|| seconds * 1e6 / self.records)
    }
}

fn sum(seconds: &Value) -> f64 {
    match seconds {
        Value::Array(list) => list.iter().map(sum).fold(0.0, |all, one| all + one),
        one => one.as_f64().unwrap_or_default(),
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
    fn the_agreed_fields_are_enough_and_others_do_not_disturb() -> serde_json::Result<()> {
        let text = r#"{"records_per_s": 1e6, "lost": 0.0, "records": 2000000.0, "slowest_client_per_s": 9e5, "wrong": 0.0,
            "cpu_s": {"collector": 0.5, "node": 0.1, "producer": 0.2, "clients": [0.25, 0.5]}, "more": [1]}"#;
        let said: Said = serde_json::from_str(text)?;
        assert_eq!((said.per_second(), said.lost(), said.between_us()), (9e5, 0, Some(0.25)));
        let cpu = [("clients", 0.75), ("collector", 0.5), ("node", 0.1), ("producer", 0.2)];
        assert_eq!(said.cpu(), cpu.map(|(name, seconds)| (name.to_owned(), seconds)));
        let said: Said = serde_json::from_str(
            r#"{"records_per_s": 1e6, "lost": 3, "cpu_s": {"node": 1.5}, "records": 1000000, "slowest_client_per_s": null}"#,
        )?;
        assert_eq!((said.per_second(), said.lost(), said.between_us()), (1e6, 3, Some(1.5)));
        Ok(())
    }
}
