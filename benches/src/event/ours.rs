//! Tampu's own events, through the user's command `tampu perf event`.

use std::{path::Path, process::Command};

use serde::Deserialize;

use crate::event::{
    plan::{Cell, MANY, MANY_HZ, PACED, Part},
    row::{Figures, Subscribing},
};

#[derive(Debug, Deserialize)]
struct Cpu {
    server: f64,
    node: f64,
    clients: Vec<f64>,
}

#[derive(Debug, Deserialize)]
struct Took {
    calls_s: f64,
    first_values_s: f64,
    bytes_each: f64,
}

/// Output of the command.
#[derive(Debug, Deserialize)]
struct Said {
    events_per_s: f64,
    pushed: f64,
    lost: f64,
    told: f64,
    wrong: f64,
    twice: f64,
    seconds: f64,
    latency_us_p50: f64,
    latency_us_p99: f64,
    latency_us_max: f64,
    subscribing: Took,
    cpu_s: Cpu,
}

/// Runs one cell.
pub fn run(tampu: &Path, delivery: &str, cell: &Cell) -> Result<Figures, String> {
    let mut command = Command::new(tampu);
    command.args(["perf", "event", "--json", "--delivery", delivery]);
    let mut add = |name: &str, value: String| {
        command.args([name, &value]);
    };
    add("--clients", cell.clients.to_string());
    add("--size", cell.bytes().to_string());
    add("--for", format!("{}s", cell.seconds));
    match cell.part {
        Part::Table | Part::Small => {}
        Part::Latency => add("--rate", PACED.to_string()),
        Part::Many => {
            add("--attributes", MANY.to_string());
            add("--rate", (MANY as f64 * MANY_HZ).to_string());
        }
    }
    let output = command.output().map_err(|e| format!("{}: {e}", tampu.display()))?;
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()));
    }
    let said = serde_json::from_slice(&output.stdout).map_err(|e| format!("invalid output of tampu perf event: {e}"))?;
    Ok(figures(said, cell.part))
}

fn figures(said: Said, part: Part) -> Figures {
    let Took { calls_s, first_values_s, bytes_each } = said.subscribing;
    Figures {
        pushed: said.pushed,
        events_per_s: said.events_per_s,
        lost: said.lost,
        told: Some(said.told),
        wrong: said.wrong,
        twice: said.twice,
        seconds: said.seconds,
        cpu_s: [Some(said.cpu_s.server), Some(said.cpu_s.node), Some(said.cpu_s.clients.iter().fold(0.0, |sum, one| sum + one))],
        // At full speed the latency would be the time in the queues.
        latency_us: (part == Part::Latency).then_some([said.latency_us_p50, said.latency_us_p99, said.latency_us_max]),
        lossless_per_s: None,
        subscribing: (part == Part::Many).then_some(Subscribing { calls_s, first_values_s, bytes_each }),
        version: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_command_says_is_understood() -> serde_json::Result<()> {
        let text = r#"{"attributes":1,"clients":2,"cpu_s":{"clients":[0.5,0.25],"node":0.1,"server":0.3},"delivery":"streamed",
            "events_per_s":1000.0,"latency_us_max":9.0,"latency_us_p50":1.0,"latency_us_p99":2.0,"lost":3.0,"pushed":1000.0,
            "pushed_per_s":1001.0,"rate":null,"seconds":1.0,"size":4,"told":2.0,"twice":0.0,"wrong":0.0,
            "subscribing":{"bytes_each":100.0,"calls_s":0.1,"first_values_s":0.2}}"#;
        let figures = figures(serde_json::from_str(text)?, Part::Latency);
        assert_eq!((figures.lost, figures.told, figures.cpu_s), (3.0, Some(2.0), [Some(0.3), Some(0.1), Some(0.75)]));
        assert_eq!((figures.latency_us, figures.subscribing), (Some([1.0, 2.0, 9.0]), None));
        Ok(())
    }
}
