//! The paper's figures for device server and clients on the same host. The paper is "Tango event system", 2010/2011,
//! section 5.3.2; the machine is a Pentium 4. It compares Tango 7, the proposed group calls, DDS, and ZeroMQ, which
//! Tango chose.

/// Numbers of clients.
pub const CLIENTS: [usize; 4] = [1, 2, 5, 10];

/// One carrier with one length of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Its name in the paper.
    pub system: &'static str,
    /// DevLong of a value.
    pub elements: usize,
    /// Events a second, by [`CLIENTS`].
    pub per_s: [f64; 4],
}

const fn line(system: &'static str, elements: usize, per_s: [f64; 4]) -> Line {
    Line { system, elements, per_s }
}

/// All published lines.
pub const LINES: [Line; 12] = [
    line("Tango 7", 1, [620.0, 420.0, 230.0, 170.0]),
    line("group calls", 1, [2500.0, 1250.0, 520.0, 250.0]),
    line("DDS", 1, [5300.0, 3200.0, 1500.0, 770.0]),
    line("ZeroMQ", 1, [16000.0, 9800.0, 3900.0, 1600.0]),
    line("Tango 7", 1024, [600.0, 400.0, 210.0, 160.0]),
    line("group calls", 1024, [1830.0, 930.0, 380.0, 190.0]),
    line("DDS", 1024, [4500.0, 3200.0, 1350.0, 700.0]),
    line("ZeroMQ", 1024, [15000.0, 7300.0, 2700.0, 1200.0]),
    line("Tango 7", 262_144, [40.0, 30.0, 15.0, 8.5]),
    line("group calls", 262_144, [33.0, 16.0, 7.0, 3.3]),
    line("DDS", 262_144, [91.0, 35.0, 32.0, 17.0]),
    line("ZeroMQ", 262_144, [100.0, 60.0, 26.0, 13.5]),
];

impl Line {
    /// Returns its figure for a number of clients.
    pub fn of(&self, clients: usize) -> Option<f64> {
        CLIENTS.iter().position(|&known| known == clients).map(|at| self.per_s[at])
    }
}
