//! What a run measures: cells, each somebody with so many clients and so many elements.

use crate::system::{SYSTEMS, System};

/// Bytes of an element, a DevLong.
pub const DEV_LONG: usize = 4;
/// What an event of one DevLong amounts to on Tango's wire, with its name, times and quality. The paper sent as much where it
/// tried other carriers, and so do the raw ones here: they have no such things.
pub const SMALL_EVENT: usize = 92;
/// Attributes of the cell with many.
pub const MANY: usize = 10_000;
/// How often each of them is pushed, a second.
pub const MANY_HZ: f64 = 10.0;
/// Events a second where single events are timed.
pub const PACED: f64 = 1000.0;

/// What a cell belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The paper's table: clients and elements.
    Table,
    /// Values of 92 bytes.
    Small,
    /// Single events.
    Latency,
    /// Ten thousand attributes.
    Many,
}

impl Part {
    /// As `--only` and tables name it.
    pub fn name(self) -> &'static str {
        match self {
            Part::Table => "table",
            Part::Small => "small",
            Part::Latency => "latency",
            Part::Many => "many",
        }
    }

    /// Whether one is called so.
    pub fn is_name(word: &str) -> bool {
        [Part::Table, Part::Small, Part::Latency, Part::Many].iter().any(|part| part.name() == word)
    }
}

/// Who carries the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// `tampu perf event` with this delivery.
    Ours(&'static str),
    /// A peer of `tango_table.py`.
    Tango(&'static str),
    /// A carrier of the bus bench: one message an event, no attributes.
    Raw(System),
}

/// Somebody who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Player {
    /// In tables and for `--only`.
    pub name: &'static str,
    /// One line on it.
    pub about: &'static str,
    /// How.
    pub who: Who,
}

const fn ours(name: &'static str, delivery: &'static str, about: &'static str) -> Player {
    Player { name, about, who: Who::Ours(delivery) }
}

/// C++ Tango's name, to which ours are compared.
pub const TANGO: &str = "tango-c++";
/// Those of the bus bench that take part.
const RAW: [&str; 3] = ["zmq-ipc", "zenoh-unix", "zenoh-router"];

/// Everybody.
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
        ours("tampu-latest", "latest", "Tampu: newer values replace what is lost, nobody is waited for"),
    ])
    .collect()
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// Where it belongs.
    pub part: Part,
    /// Who.
    pub player: Player,
    /// Elements of a value.
    pub elements: usize,
    /// How many clients.
    pub clients: usize,
    /// For how long events are pushed.
    pub seconds: f64,
}

impl Cell {
    /// Bytes of a value.
    pub fn bytes(&self) -> usize {
        self.elements * DEV_LONG
    }

    /// Bytes a raw carrier is given.
    pub fn raw_bytes(&self) -> usize {
        self.bytes().max(SMALL_EVENT)
    }

    /// One line's beginning.
    pub fn title(&self) -> String {
        format!("{:<8} {:<18} {:>6} DevLong to {:<2}", self.part.name(), self.player.name, self.elements, self.clients)
    }

    /// Whether one of the patterns means it: the part, the whole name of somebody, or a part of a name. No patterns mean all.
    pub fn is_meant_by(&self, patterns: &[String]) -> bool {
        let name = self.player.name;
        patterns.is_empty() || patterns.iter().any(|pattern| pattern == self.part.name() || name.contains(pattern.as_str()))
    }
}

/// All cells, those that are compared next to one another.
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
