//! Measurements of a run: cells, each a system with a number of clients, a size of records, and its other conditions.

use crate::{
    perf_log::Ask,
    system::{LOG_PEERS, System, has_no_readers},
    table::size,
};

/// Default size of a record in bytes, as in the paper.
pub const RECORD: usize = 250;
/// Sizes of records. In the paper they had no effect.
pub const SIZES: [usize; 5] = [50, 250, 1 << 10, 4 << 10, 10 << 10];
/// The shortest and the longest of them.
pub const EXTREMES: [usize; 2] = [SIZES[0], SIZES[SIZES.len() - 1]];
/// Number of clients if one of them is stopped.
const FOLLOWERS: usize = 3;
/// A rate that every system sustains on two cores, so that missing capacity does not hide the cost of a stopped client.
const CALM: f64 = 100e3;
/// Immediate records a second.
const IMMEDIATE: f64 = 200.0;
/// The rate of the long run.
pub const SUSTAINED: f64 = 200e3;

/// Part of the run that a cell belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Different numbers of clients.
    Clients,
    /// Records of all sizes, without clients.
    Sizes,
    /// Immediate records under load.
    Immediate,
    /// One client stopped.
    Stopped,
    /// Calls that return when the collector has the record.
    Acknowledged,
    /// Half a minute as fast as possible, and ten minutes at a rate.
    Sustained,
}

impl Part {
    /// Returns the name in `--only` and `--json`.
    pub fn name(self) -> &'static str {
        match self {
            Part::Clients => "clients",
            Part::Sizes => "sizes",
            Part::Immediate => "immediate",
            Part::Stopped => "stopped",
            Part::Acknowledged => "acknowledged",
            Part::Sustained => "sustained",
        }
    }
}

/// Durations of cells.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Duration of each cell, unless it is one of the following.
    pub seconds: f64,
    /// Duration of the goals for half a minute, in seconds.
    pub long: f64,
    /// Duration of the goals for ten minutes, in seconds.
    pub sustained: f64,
}

/// Tampu, in one of its uses.
#[derive(Debug, Clone, Copy)]
pub struct Ours {
    /// True if a collector keeps the records.
    pub stored: bool,
    /// Records in each packet.
    pub packet: usize,
    /// Number of stopped clients.
    pub stopped: usize,
    /// Records a second; without it as many as possible.
    pub rate: Option<f64>,
    /// Immediate records a second.
    pub immediate: Option<f64>,
    /// True if a stopped client is waited for only as long as in an application.
    pub bounded: bool,
    /// Grade that each call waits for, and the number of threads that make such calls.
    pub acknowledged: Option<(&'static str, u16)>,
    /// True if the collector's disk is the host's memory.
    pub in_memory: bool,
}

/// Packets of a hundred, stored, as fast as possible.
const STORED: Ours = Ours {
    stored: true,
    packet: 100,
    stopped: 0,
    rate: None,
    immediate: None,
    bounded: false,
    acknowledged: None,
    in_memory: false,
};

/// System that is measured.
#[derive(Debug, Clone, Copy)]
pub enum What {
    Ours(Ours),
    Peer(System),
}

#[derive(Debug, Clone)]
pub struct Cell {
    /// Part of the run that it belongs to.
    pub part: Part,
    /// Name in the tables.
    pub name: &'static str,
    /// System that is measured.
    pub what: What,
    /// Number of clients that receive everything.
    pub clients: usize,
    /// Bytes of a record.
    pub size: usize,
    /// Seconds of writing.
    pub seconds: f64,
}

impl Cell {
    /// Returns true if one of the patterns is a part of its name, or the name of its part of the run. An empty list
    /// matches every cell.
    pub fn is_meant_by(&self, patterns: &[String]) -> bool {
        let meant = |pattern: &String| self.name.contains(pattern.as_str()) || self.part.name() == pattern;
        patterns.is_empty() || patterns.iter().any(meant)
    }

    /// Returns the title for messages during the run.
    pub fn title(&self) -> String {
        format!("{:<10} {:<20} {:>2} clients  {:>6}", self.part.name(), self.name, self.clients, size(self.size))
    }
}

impl Ours {
    /// Returns the arguments of `tampu perf log`.
    pub fn ask(self, cell: &Cell) -> Ask<'static> {
        Ask {
            data: None,
            clients: cell.clients,
            stopped: self.stopped,
            seconds: cell.seconds,
            size: cell.size,
            packet: self.packet,
            rate: self.rate,
            immediate: self.immediate,
            bounded: self.bounded,
            acknowledged: self.acknowledged,
        }
    }
}

/// Returns all cells of a run except the long ones.
pub fn cells(clients: &[usize], sizes: &[usize], times: Times) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &clients in clients {
        let mut add = |name, what, seconds| {
            cells.push(Cell { part: Part::Clients, name, what, clients, size: RECORD, seconds });
        };
        let long = if clients == 1 { times.long } else { times.seconds };
        add("tampu-stored", What::Ours(STORED), long);
        add("tampu-stored-1", What::Ours(Ours { packet: 1, ..STORED }), times.seconds);
        add("tampu-live", What::Ours(Ours { stored: false, ..STORED }), times.seconds);
        for peer in LOG_PEERS.iter().filter(|peer| clients == 0 || !has_no_readers(peer)) {
            add(peer.name, What::Peer(*peer), times.seconds);
        }
    }
    for &size in sizes {
        let mut add = |name, what| {
            cells.push(Cell { part: Part::Sizes, name, what, clients: 0, size, seconds: times.seconds });
        };
        add("tampu-stored", What::Ours(STORED));
        add("tampu-stored-1", What::Ours(Ours { packet: 1, ..STORED }));
        for peer in LOG_PEERS {
            add(peer.name, What::Peer(*peer));
        }
    }
    let loaded = Ours { immediate: Some(IMMEDIATE), ..STORED };
    let paced = Ours { rate: Some(CALM), ..loaded };
    let more = [
        (Part::Immediate, "tampu-at-100k/s", paced, 1),
        (Part::Immediate, "tampu-full-load", loaded, 1),
        (Part::Stopped, "tampu-all-run", Ours { bounded: true, ..paced }, FOLLOWERS),
        (Part::Stopped, "tampu-one-stopped", Ours { stopped: 1, bounded: true, ..paced }, FOLLOWERS),
    ];
    cells.extend(more.map(|(part, name, ours, clients)| Cell {
        part,
        name,
        what: What::Ours(ours),
        clients,
        size: RECORD,
        seconds: times.seconds * 2.0,
    }));
    let calls = |grade, callers, in_memory| Ours { acknowledged: Some((grade, callers)), in_memory, ..STORED };
    let calls = [
        ("kept", calls("kept", 1, false)),
        ("kept-16-threads", calls("kept", 16, false)),
        ("kept-in-memory", calls("kept", 1, true)),
        ("received", calls("received", 1, false)),
    ];
    cells.extend(calls.map(|(name, ours)| Cell {
        part: Part::Acknowledged,
        name,
        what: What::Ours(ours),
        clients: 0,
        size: RECORD,
        seconds: times.seconds,
    }));
    cells
}

/// Returns the long cells.
pub fn sustained(times: Times) -> Vec<Cell> {
    let cell = |name, ours, clients, seconds| Cell {
        part: Part::Sustained,
        name,
        what: What::Ours(ours),
        clients,
        size: RECORD,
        seconds,
    };
    vec![
        cell("tampu-unbounded", STORED, 0, times.long),
        cell("tampu-at-200k/s", Ours { rate: Some(SUSTAINED), immediate: Some(IMMEDIATE), ..STORED }, 1, times.sustained),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times { seconds: 1.0, long: 2.0, sustained: 3.0 };

    #[test]
    fn a_collector_without_readers_is_measured_without_clients_only() {
        let cells = cells(&[0, 2], &SIZES, TIMES);
        let rsyslog: Vec<_> = cells.iter().filter(|cell| cell.name == "rsyslog").map(|cell| (cell.part, cell.clients)).collect();
        assert_eq!(rsyslog.iter().filter(|(part, _)| *part == Part::Clients).count(), 1);
        assert!(rsyslog.iter().all(|(_, clients)| *clients == 0) && rsyslog.len() == 1 + SIZES.len());
    }

    #[test]
    fn parts_and_parts_of_names_are_chosen() {
        let cells = cells(&[0, 1], &[50], TIMES);
        let meant = |pattern: &str| cells.iter().filter(|cell| cell.is_meant_by(&[pattern.to_owned()])).count();
        assert_eq!((meant("sizes"), meant("nats-100"), meant("stopped"), meant("nobody")), (5, 3, 2, 0));
        assert!(cells.iter().all(|cell| cell.is_meant_by(&[])));
    }
}
