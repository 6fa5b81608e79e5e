//! ACS's published statistics of log calls: its rows, with their numbers, and its results.
//!
//! 10 000 logs in all, as fast as possible, by one thread or ten; by a client program, or within a component. A row is
//! a method of logging; several lines may share a number, as in the original. Components were never measured.

use serde::{Deserialize, Serialize};

/// Program that logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    Client,
    /// A thread of a container, on behalf of one of its components.
    Component,
}

/// Destination of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Sink {
    /// The program's terminal; here `/dev/null`.
    Stdout,
    File,
}

/// Kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// A logger that only prints.
    Log,
    /// A logger on the bus, with nobody that keeps records.
    Proxy,
    /// A logger on the bus, and each call waits until the collector has committed its record.
    Acknowledged,
    /// A logger on the bus with a collector; the call returns when the record is in the logger's hands.
    Oneway,
    /// No logger: the text is written, a system call each.
    Raw,
    /// A logger whose level is off.
    Noop,
}

/// Published microseconds: of all calls together, and the average, minimum and maximum of one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figures {
    /// All calls added up.
    pub total: f64,
    /// Average of one call.
    pub average: f64,
    pub min: f64,
    pub max: f64,
}

/// A line of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Its published number.
    pub number: u32,
    /// Program that logs.
    pub place: Place,
    /// Number of threads that share the calls.
    pub threads: usize,
    /// Destination of the text; `None` if nothing is logged.
    pub sink: Option<Sink>,
    /// Kind of call.
    pub what: What,
    /// Figures that were published.
    pub published: Option<Figures>,
}

/// The lines of a program and a number of threads, in the published order.
const LINES: [(u32, Option<Sink>, What); 11] = [
    (0, Some(Sink::Stdout), What::Log),
    (0, Some(Sink::Stdout), What::Proxy),
    (1, Some(Sink::Stdout), What::Acknowledged),
    (2, Some(Sink::Stdout), What::Oneway),
    (3, Some(Sink::File), What::Log),
    (3, Some(Sink::File), What::Proxy),
    (4, Some(Sink::File), What::Acknowledged),
    (5, Some(Sink::File), What::Oneway),
    (6, Some(Sink::Stdout), What::Raw),
    (7, Some(Sink::File), What::Raw),
    (8, None, What::Noop),
];

/// Components: a number each for proxy off, on, and with the collector, which is measured both ways here.
const COMPONENT_NUMBERS: [u32; 11] = [0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8];

const fn us(total: f64, average: f64, min: f64, max: f64) -> Figures {
    Figures { total, average, min, max }
}

/// Published figures of clients, in the order of [`LINES`].
const PUBLISHED: [[Figures; 11]; 2] = [
    [
        us(18380.0, 1.8, 1.6, 308.0),
        us(601_893.0, 60.1, 5.9, 525.8),
        us(681_522.0, 68.1, 52.8, 531.7),
        us(337_458.0, 33.7, 19.2, 353.4),
        us(18639.0, 1.8, 1.6, 295.0),
        us(548_046.0, 54.8, 6.3, 783.2),
        us(619_841.0, 61.9, 52.5, 946.9),
        us(320_333.0, 32.0, 16.8, 393.5),
        us(18841.0, 1.8, 0.8, 447.9),
        us(21358.0, 2.1, 1.4, 332.8),
        us(834.0, 0.1, 0.02, 95.2),
    ],
    [
        us(64520.4, 6.4, 1.7, 610.9),
        us(1_415_860.0, 141.5, 4.9, 12617.4),
        us(2_950_060.0, 294.902, 66.257, 5005.26),
        us(958_351.0, 95.75, 16.7, 65872.4),
        us(63096.3, 6.2, 1.7, 1007.8),
        us(930_486.0, 93.0, 6.8, 15150.4),
        us(2_319_040.0, 231.8, 54.7, 5164.8),
        us(660_748.0, 66.0, 15.3, 67563.6),
        us(301_182.0, 30.1, 0.8, 1655.3),
        us(210_906.0, 21.06, 1.5, 285.3),
        us(2409.0, 0.2, 0.02, 257.84),
    ],
];

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (place, first) in [(Place::Client, 1), (Place::Component, 19)] {
        for (many, threads) in [1, 10].into_iter().enumerate() {
            for (line, (offset, sink, what)) in LINES.into_iter().enumerate() {
                let offset = if place == Place::Client { offset } else { COMPONENT_NUMBERS[line] };
                let published = (place == Place::Client).then_some(PUBLISHED[many][line]);
                rows.push(Row { number: first + 9 * many as u32 + offset, place, threads, sink, what, published });
            }
        }
    }
    rows
}

impl Row {
    /// Returns true if the logger speaks to the bus.
    pub fn proxied(&self) -> bool {
        matches!(self.what, What::Proxy | What::Acknowledged | What::Oneway)
    }

    /// Returns true if a collector keeps the records.
    pub fn kept(&self) -> bool {
        matches!(self.what, What::Acknowledged | What::Oneway)
    }

    /// Returns the name of the row.
    pub fn name(&self) -> String {
        let sink = match self.sink {
            Some(Sink::Stdout) => "stdout",
            Some(Sink::File) => "file",
            None => "",
        };
        match self.what {
            What::Log => format!("Log ({sink})"),
            What::Proxy => format!("Log ({sink}), proxy"),
            What::Acknowledged => format!("Log ({sink}), proxy, central acknowledged"),
            What::Oneway => format!("Log ({sink}), proxy, central one-way"),
            What::Raw => sink.to_owned(),
            What::Noop => "no-op".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_36_numbers_are_there_and_only_they() {
        let numbers: std::collections::BTreeSet<u32> = rows().iter().map(|row| row.number).collect();
        assert!(numbers.into_iter().eq(1..=36));
        assert!(rows().is_sorted_by_key(|row| row.number));
    }

    #[test]
    fn a_number_means_what_it_meant() {
        let named = |number| {
            rows().into_iter().filter(|row| row.number == number).map(|row| (row.threads, row.name())).collect::<Vec<_>>()
        };
        assert_eq!(named(9), [(1, "no-op".to_owned())]);
        assert_eq!(named(15), [(10, "Log (file), proxy, central one-way".to_owned())]);
        assert_eq!(named(30)[0], (10, "Log (stdout), proxy, central acknowledged".to_owned()));
        assert_eq!(named(32), [(10, "Log (file), proxy".to_owned())]);
    }

    #[test]
    fn published_averages_and_totals_belong_together() {
        for row in rows() {
            let Some(was) = row.published else { continue };
            assert!((was.total / 1e4 - was.average).abs() <= 0.11, "{}: {was:?}", row.number);
            assert!(was.min < was.average && was.average < was.max, "{}: {was:?}", row.number);
        }
    }
}
