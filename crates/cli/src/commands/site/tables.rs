//! The tables of `tampu site`: rows made of the picture, for people and as JSON.

use indicatif::DecimalBytes;
use serde::Serialize;
use tampu_hub::site::{
    SeenHost,
    gather::{self, Picture},
    health::milliseconds,
    streams::{StreamReader, TopicTotals},
};
use tampu_types::Incarnation;

/// A row of a table.
pub trait Row: Serialize {
    /// Titles of the columns; `>` marks numbers.
    const TITLES: &'static [&'static str];
    /// Text instead of an empty table.
    const NONE: &'static str;
    /// The cells for people.
    fn cells(&self) -> Vec<String>;
}

/// A host with a node.
#[derive(Debug, Serialize)]
pub struct HostRow<'a> {
    #[serde(flatten)]
    seen: &'a tampu_hub::site::HostReport,
    /// Time that its clock is ahead of this host's, ns.
    offset_ns: i64,
    /// The offset is within this, ns.
    offset_error_ns: u64,
}

impl HostRow<'_> {
    fn of(host: &SeenHost) -> HostRow<'_> {
        HostRow { seen: &host.report, offset_ns: host.offset_ns, offset_error_ns: host.way_ns / 2 }
    }
}

impl Row for HostRow<'_> {
    const TITLES: &'static [&'static str] =
        &["host", "version", ">up", ">processes", ">nodes", "clock", ">ahead", "within", "listens at"];
    const NONE: &'static str = "no host has a node";

    fn cells(&self) -> Vec<String> {
        let host = self.seen;
        vec![
            host.proved.clone().unwrap_or_else(|| host.host.clone()),
            host.version.clone(),
            span(host.up),
            host.processes.to_string(),
            host.nodes.to_string(),
            host.clock.clone(),
            milliseconds(self.offset_ns as f64),
            milliseconds(self.offset_error_ns as f64),
            if host.listens.is_empty() { "this host only".to_owned() } else { host.listens.join(", ") },
        ]
    }
}

pub fn hosts(picture: &Picture) -> Vec<HostRow<'_>> {
    picture.hosts.iter().map(HostRow::of).collect()
}

/// A process on the bus.
#[derive(Debug, Serialize)]
pub struct ProcessRow {
    host: String,
    source: String,
    incarnation: Incarnation,
    pid: u32,
    version: String,
    writes: usize,
    reads: usize,
    /// Samples that its readers reported as lost.
    lost: u64,
    /// Time for which its writes have waited for readers, ns.
    waited_ns: u64,
}

impl Row for ProcessRow {
    const TITLES: &'static [&'static str] = &["host", "process", ">pid", "version", ">streams", ">readers", ">lost", ">waited"];
    const NONE: &'static str = "no other process is on the bus";

    fn cells(&self) -> Vec<String> {
        vec![
            self.host.clone(),
            self.source.clone(),
            self.pid.to_string(),
            self.version.clone(),
            self.writes.to_string(),
            self.reads.to_string(),
            self.lost.to_string(),
            milliseconds(self.waited_ns as f64),
        ]
    }
}

pub fn processes(picture: &Picture) -> Vec<ProcessRow> {
    let row = |process: &gather::Process| ProcessRow {
        host: picture.host_of(process),
        source: process.info.source.to_string(),
        incarnation: process.info.incarnation,
        pid: process.state.pid,
        version: process.state.version.clone(),
        writes: process.state.writers.len(),
        reads: process.state.readers.len(),
        lost: process.state.readers.iter().map(|reader| reader.lost).sum(),
        waited_ns: process.state.writers.iter().map(|writer| writer.waited_ns).sum(),
    };
    picture.processes.iter().map(row).collect()
}

impl Row for TopicTotals {
    const TITLES: &'static [&'static str] =
        &["topic", ">writers", ">readers", ">samples", ">samples/s", ">bytes/s", "partitions"];
    const NONE: &'static str = "no process writes a topic";

    fn cells(&self) -> Vec<String> {
        let partitions: Vec<&str> =
            self.partitions.iter().map(|names| if names.is_empty() { "everybody" } else { names }).collect();
        vec![
            self.topic.clone(),
            self.writers.to_string(),
            self.readers.to_string(),
            self.samples.to_string(),
            format!("{:.0}", self.samples_per_s.unwrap_or_default()),
            DecimalBytes(self.bytes_per_s.unwrap_or_default() as u64).to_string(),
            partitions.join(" "),
        ]
    }
}

impl Row for StreamReader {
    const TITLES: &'static [&'static str] = &["reader", "topic", "writer", "state", ">behind", ">lost"];
    const NONE: &'static str = "no reader is behind, and none has lost anything";

    fn cells(&self) -> Vec<String> {
        let state = self.state.replace('_', " ");
        vec![
            self.reader.clone(),
            self.topic.clone(),
            self.writer.clone(),
            if self.reliable { state } else { format!("{state}, takes losses") },
            self.behind.to_string(),
            self.lost.to_string(),
        ]
    }
}

/// A link between two hosts, as one end sees it.
#[derive(Debug, Serialize)]
pub struct LinkRow<'a> {
    host: &'a str,
    #[serde(flatten)]
    link: &'a tampu_hub::site::LinkReport,
    sent_per_s: f64,
    received_per_s: f64,
}

impl Row for LinkRow<'_> {
    const TITLES: &'static [&'static str] = &["host", "to", "address", ">age", ">sent", ">received", ">sent/s", ">received/s"];
    const NONE: &'static str = "no host has an encrypted link to another one";

    fn cells(&self) -> Vec<String> {
        let bytes = |count: u64| DecimalBytes(count).to_string();
        vec![
            self.host.to_owned(),
            self.link.host.clone().unwrap_or_default(),
            self.link.other.clone(),
            span(self.link.age_ms / 1000),
            bytes(self.link.sent),
            bytes(self.link.received),
            bytes(self.sent_per_s as u64),
            bytes(self.received_per_s as u64),
        ]
    }
}

pub fn links(picture: &Picture) -> Vec<LinkRow<'_>> {
    let mut rows = Vec::new();
    for seen in &picture.hosts {
        let host = seen.report.proved.as_deref().unwrap_or(&seen.report.host);
        for link in &seen.report.links {
            let (sent_per_s, received_per_s) = picture.link_rate(seen, link).unwrap_or_default();
            rows.push(LinkRow { host, link, sent_per_s, received_per_s });
        }
    }
    rows
}

/// Writes a number of seconds with its largest two units.
fn span(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min"),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_without_a_name_are_everybodys() {
        let partitions = [String::new(), "operator".to_owned()].into();
        let row = TopicTotals { partitions, ..TopicTotals::default() };
        assert_eq!(row.cells().last().unwrap(), "everybody operator");
    }

    #[test]
    fn times_have_two_units() {
        let shown = [59, 61, 3_661, 90_061].map(span);
        assert_eq!(shown, ["59 s", "1 min", "1 h 1 min", "1 d 1 h"]);
    }
}
