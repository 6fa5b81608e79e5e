//! Measurements of a run: cells, each a system with a number of clients and a number of elements.

use crate::system::{SYSTEMS, System};

/// Bytes of an element, a DevLong.
pub const DEV_LONG: usize = 4;
/// Size in bytes of an event of one DevLong on Tango's wire, with its name, times and quality. The paper and this bench
/// send as many through other carriers, which have no such parts.
pub const SMALL_EVENT: usize = 92;
/// Number of attributes of the cell with many.
pub const MANY: usize = 10_000;
/// Rate at which each of them is pushed, in Hz.
pub const MANY_HZ: f64 = 10.0;
/// Events a second if single events are timed.
pub const PACED: f64 = 1000.0;

/// Part of the run that a cell belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The paper's table: clients and elements.
    Table,
    /// Values of 92 bytes.
    Small,
    Latency,
    /// Ten thousand attributes.
    Many,
}

impl Part {
    /// Returns the name in `--only` and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Part::Table => "table",
            Part::Small => "small",
            Part::Latency => "latency",
            Part::Many => "many",
        }
    }

    /// Returns true if a part has this name.
    pub fn is_name(word: &str) -> bool {
        [Part::Table, Part::Small, Part::Latency, Part::Many].iter().any(|part| part.name() == word)
    }
}

/// System that carries the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// `tampu perf event` with this delivery.
    Ours(&'static str),
    /// A peer of `tango_table.py`.
    Tango(&'static str),
    /// A carrier of the bus bench: one message an event, no attributes.
    Raw(System),
}

/// A system that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Player {
    /// Name in tables and in `--only`.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// System that carries the events.
    pub who: Who,
}

const fn ours(name: &'static str, delivery: &'static str, about: &'static str) -> Player {
    Player { name, about, who: Who::Ours(delivery) }
}

/// C++ Tango's name, with which Tampu is compared.
pub const TANGO: &str = "tango-c++";
/// The systems of the bus bench that are measured here.
const RAW: [&str; 3] = ["zmq-ipc", "zenoh-unix", "zenoh-router"];

pub fn players() -> Vec<Player> {
    let raw = SYSTEMS.iter().filter(|system| RAW.contains(&system.name));
    let raw = raw.map(|system| Player { name: system.name, about: system.about, who: Who::Raw(*system) });
    vec![
        Player { name: TANGO, about: "Tango's C++ library, push_change_event", who: Who::Tango("tango") },
        Player { name: "pytango", about: "PyTango, the same in Python", who: Who::Tango("pytango") },
    ]
    .into_iter()
    .chain(raw)
    .chain([
        ours("tampu-streamed", "streamed", "Tampu: as fast as they come, nothing lost"),
        ours("tampu-acknowledged", "acknowledged", "Tampu: the server waits after each event until everybody has it"),
        ours("tampu-latest", "latest", "Tampu: newer values replace lost ones, without waits for clients"),
    ])
    .collect()
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// Part of the run that it belongs to.
    pub part: Part,
    /// System that is measured.
    pub player: Player,
    /// Elements of a value.
    pub elements: usize,
    /// Number of clients.
    pub clients: usize,
    /// Duration of the pushes in seconds.
    pub seconds: f64,
}

impl Cell {
    /// Bytes of a value.
    pub fn bytes(&self) -> usize {
        self.elements * DEV_LONG
    }

    /// Returns the bytes of an event through a raw carrier.
    pub fn raw_bytes(&self) -> usize {
        self.bytes().max(SMALL_EVENT)
    }

    /// Returns the beginning of a line.
    pub fn title(&self) -> String {
        format!("{:<8} {:<18} {:>6} DevLong to {:<2}", self.part.name(), self.player.name, self.elements, self.clients)
    }

    /// Returns true if one of the patterns is the part, a system's whole name, or a part of a name. An empty list
    /// matches every system.
    pub fn is_meant_by(&self, patterns: &[String]) -> bool {
        let name = self.player.name;
        patterns.is_empty() || patterns.iter().any(|pattern| pattern == self.part.name() || name.contains(pattern.as_str()))
    }
}

/// Returns all cells. Cells that are compared are neighbours.
pub fn cells(clients: &[usize], elements: &[usize], seconds: f64) -> Vec<Cell> {
    let all = players();
    let (streamed, raw): (Vec<Player>, Vec<Player>) = {
        let is_raw = |player: &&Player| matches!(player.who, Who::Raw(_));
        let single = |player: &&Player| player.who != Who::Ours("acknowledged");
        let ours = all.iter().filter(|player| matches!(player.who, Who::Ours(_))).filter(single);
        (ours.copied().collect(), all.iter().filter(is_raw).copied().collect())
    };
    let mut cells = Vec::new();
    for &elements in elements {
        for &clients in clients {
            cells.extend(all.iter().map(|&player| Cell { part: Part::Table, player, elements, clients, seconds }));
        }
    }
    for &clients in clients {
        let elements = SMALL_EVENT / DEV_LONG;
        cells.extend(streamed.iter().map(|&player| Cell { part: Part::Small, player, elements, clients, seconds }));
    }
    let once = |part, player| Cell { part, player, elements: 1, clients: 1, seconds };
    let tango = all.iter().copied().filter(|player| matches!(player.who, Who::Tango(_)));
    cells.extend(tango.chain(raw).chain(streamed.iter().copied()).map(|player| once(Part::Latency, player)));
    cells.extend(streamed.iter().take(1).map(|&player| once(Part::Many, player)));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_a_place_in_the_table_and_patterns_choose() {
        let cells = cells(&[1, 10], &[1, 1024], 1.0);
        let meant = |pattern: &str| cells.iter().filter(|cell| cell.is_meant_by(&[pattern.to_owned()])).count();
        assert_eq!(players().len(), 8);
        assert_eq!((meant("table"), meant("small"), meant("latency"), meant("many")), (8 * 4, 4, 7, 1));
        assert_eq!((meant("zenoh-unix"), meant("nobody")), (5, 0));
        assert!(cells.iter().all(|cell| cell.is_meant_by(&[])));
    }

    #[test]
    fn raw_carriers_carry_as_much_as_an_event_is() {
        let sizes = |elements| {
            let cell = Cell { elements, ..cells(&[1], &[1], 1.0)[0] };
            (cell.bytes(), cell.raw_bytes())
        };
        assert_eq!((sizes(1), sizes(1024)), ((4, 92), (4096, 4096)));
    }
}
