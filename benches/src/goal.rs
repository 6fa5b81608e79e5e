//! Goals on a machine of two cores, as a catalogue. Each run is checked against it.

use crate::{
    cell::{Cell, Outcome},
    role::Speed,
    table::{Table, count, size},
};

/// A finished cell.
pub type Done = (Cell, Outcome);

#[derive(Debug, Clone, Copy)]
enum Want {
    /// Messages a second.
    Rate(f64),
    /// A multiple of the rate of another system, with the same size and readers.
    Times(f64, &'static str),
    /// Median and 99 % one-way latency in microseconds.
    Latency(f64, f64),
}

#[derive(Debug, Clone, Copy)]
struct Goal {
    system: &'static str,
    size: usize,
    readers: usize,
    want: Want,
}

const KB4: usize = 4 << 10;
const MB: usize = 1 << 20;

const fn goal(system: &'static str, size: usize, readers: usize, want: Want) -> Goal {
    Goal { system, size, readers, want }
}

const GOALS: &[Goal] = &[
    goal("tampu-direct", 92, 1, Want::Rate(4e6)),
    goal("tampu-node", 92, 1, Want::Rate(4e6)),
    goal("tampu-direct", 92, 10, Want::Rate(1e6)),
    goal("tampu-node", 92, 10, Want::Rate(1e6)),
    goal("tampu-direct", 92, 1, Want::Times(3.0, "zenoh-unix")),
    goal("tampu-node", 92, 1, Want::Times(3.0, "zenoh-router")),
    goal("tampu-direct", 92, 10, Want::Times(3.0, "zenoh-unix")),
    goal("tampu-node", 92, 10, Want::Times(3.0, "zenoh-router")),
    goal("tampu-direct-loan", KB4, 1, Want::Rate(350e3)),
    goal("tampu-direct-loan", KB4, 2, Want::Rate(350e3)),
    goal("tampu-direct-loan", KB4, 5, Want::Rate(300e3)),
    goal("tampu-direct-loan", KB4, 10, Want::Rate(200e3)),
    goal("tampu-node-loan", KB4, 1, Want::Rate(350e3)),
    goal("tampu-node-loan", KB4, 2, Want::Rate(350e3)),
    goal("tampu-node-loan", KB4, 5, Want::Rate(300e3)),
    goal("tampu-node-loan", KB4, 10, Want::Rate(200e3)),
    goal("tampu-direct", KB4, 1, Want::Rate(150e3)),
    goal("tampu-direct", KB4, 2, Want::Rate(140e3)),
    goal("tampu-direct", KB4, 5, Want::Rate(70e3)),
    goal("tampu-direct", KB4, 10, Want::Rate(28e3)),
    goal("tampu-node", KB4, 1, Want::Rate(150e3)),
    goal("tampu-node", KB4, 2, Want::Rate(140e3)),
    goal("tampu-node", KB4, 5, Want::Rate(70e3)),
    goal("tampu-node", KB4, 10, Want::Rate(28e3)),
    goal("tampu-direct-loan", MB, 1, Want::Rate(10e3)),
    goal("tampu-direct-loan", MB, 2, Want::Rate(8e3)),
    goal("tampu-direct-loan", MB, 5, Want::Rate(4e3)),
    goal("tampu-direct-loan", MB, 10, Want::Rate(2.5e3)),
    goal("tampu-node-loan", MB, 1, Want::Rate(10e3)),
    goal("tampu-node-loan", MB, 2, Want::Rate(8e3)),
    goal("tampu-node-loan", MB, 5, Want::Rate(4e3)),
    goal("tampu-node-loan", MB, 10, Want::Rate(2.5e3)),
    goal("tampu-direct-loan", MB, 10, Want::Times(2.0, "raw-tcp")),
    goal("tampu-direct-loan", MB, 10, Want::Times(2.0, "raw-unix")),
    goal("tampu-direct", 92, 1, Want::Latency(130.0, 400.0)),
    goal("tampu-node", 92, 1, Want::Latency(150.0, 400.0)),
];

impl Goal {
    /// Returns goal and result in words, and whether the goal was reached. Returns `None` if the cells were not run.
    fn judge(&self, done: &[Done]) -> Option<(String, String, bool)> {
        let speed = if matches!(self.want, Want::Latency(..)) { Speed::Paced } else { Speed::Full };
        let find = |system: &str| {
            let wanted = |cell: &Cell| {
                cell.system.name == system && cell.size == self.size && cell.readers == self.readers && cell.speed == speed
            };
            done.iter().find(|(cell, _)| wanted(cell)).map(|(_, outcome)| outcome)
        };
        let outcome = find(self.system)?;
        let (wanted, measured, reached) = match self.want {
            Want::Rate(rate) => {
                (format!(">= {}/s", count(rate)), format!("{}/s", count(outcome.per_second)), outcome.per_second >= rate)
            }
            Want::Times(times, peer) => {
                let ratio = outcome.per_second / find(peer)?.per_second;
                (format!(">= {times:.0} x {peer}"), format!("{ratio:.2} x"), ratio >= times)
            }
            Want::Latency(p50, p99) => {
                let [got50, got99, _] = outcome.latency?;
                (format!("<= {p50:.0}/{p99:.0} us"), format!("{got50:.0}/{got99:.0} us"), got50 <= p50 && got99 <= p99)
            }
        };
        let measured = if outcome.lost > 0 { format!("{measured}, LOST {}", outcome.lost) } else { measured };
        Some((wanted, measured, reached && outcome.lost == 0 && outcome.wrong == 0))
    }
}

/// Returns all goals whose cells were run, as a table.
pub fn table(done: &[Done]) -> Option<Table> {
    let mut table = Table::new(&["goal", "size", "readers", "wanted", "measured", ""]);
    let mut any = false;
    for goal in GOALS {
        if let Some((wanted, measured, reached)) = goal.judge(done) {
            any = true;
            let verdict = if reached { "reached" } else { "MISSED" };
            let place = [goal.system.to_owned(), size(goal.size), goal.readers.to_string()];
            table.row(place.into_iter().chain([wanted, measured, verdict.to_owned()]).collect());
        }
    }
    any.then_some(table)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::system::{SYSTEMS, System};

    fn done(per_second: f64, lost: u64) -> Done {
        let system = System { name: "tampu-direct", about: "", ours: true, server: false, from_size: 0, latency: true };
        let cell = Cell { system, size: 92, readers: 1, speed: Speed::Full, time: Duration::from_secs(1) };
        (cell, Outcome { per_second, lost, ..Outcome::default() })
    }

    #[test]
    fn every_goal_names_known_systems() {
        for goal in GOALS {
            let peer = if let Want::Times(_, peer) = goal.want { peer } else { goal.system };
            for name in [goal.system, peer] {
                assert!(SYSTEMS.iter().any(|system| system.name == name), "{name}");
            }
        }
    }

    #[test]
    fn a_lossy_cell_reaches_nothing() {
        let judged = |lost| GOALS[0].judge(&[done(5e6, lost)]).map(|(_, _, reached)| reached);
        assert_eq!((judged(0), judged(3)), (Some(true), Some(false)));
    }
}
