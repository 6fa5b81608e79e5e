//! The tables of `tampu site`: rows made of the picture, for people and as JSON.

use std::collections::{BTreeMap, BTreeSet};

use indicatif::DecimalBytes;
use serde::Serialize;
use tampu_hub::site::{
    SeenHost,
    gather::{self, Picture},
    health::{is_worth_a_look, milliseconds},
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

/// A topic, with all its streams together.
#[derive(Debug, Default, Serialize)]
pub struct TopicRow {
    topic: String,
    /// Partitions, each with its names joined by a comma; an empty one is everybody's.
    partitions: BTreeSet<String>,
    writers: usize,
    /// Readers of different processes and numbers.
    readers: usize,
    samples: u64,
    bytes: u64,
    samples_per_s: f64,
    bytes_per_s: f64,
}

impl Row for TopicRow {
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
            format!("{:.0}", self.samples_per_s),
            DecimalBytes(self.bytes_per_s as u64).to_string(),
            partitions.join(" "),
        ]
    }
}

/// Readers of a topic: their processes, and their numbers there.
type Readers = BTreeSet<(Option<Incarnation>, u32)>;

pub fn topics(picture: &Picture) -> Vec<TopicRow> {
    let mut topics: BTreeMap<&str, (TopicRow, Readers)> = BTreeMap::new();
    for process in &picture.processes {
        for writer in &process.state.writers {
            let (row, readers) = topics.entry(&writer.topic).or_default();
            row.partitions.insert(writer.partition.join(","));
            row.writers += 1;
            row.samples += writer.samples;
            row.bytes += writer.bytes;
            let rate = picture.rate(process.info.incarnation, writer.stream, writer.samples, writer.bytes);
            let (samples, bytes) = rate.unwrap_or_default();
            row.samples_per_s += samples;
            row.bytes_per_s += bytes;
            readers.extend(writer.readers.iter().map(|reader| (reader.process, reader.reader)));
        }
    }
    let row = |(topic, (row, readers)): (&str, (TopicRow, Readers))| TopicRow {
        topic: topic.to_owned(),
        readers: readers.len(),
        ..row
    };
    topics.into_iter().map(row).collect()
}

/// A reader of one stream, as the stream's writer sees it.
#[derive(Debug, Serialize)]
pub struct ReaderRow {
    /// Name of the reading process, in lower case.
    reader: String,
    process: Option<Incarnation>,
    topic: String,
    writer: String,
    stream: u32,
    state: String,
    reliable: bool,
    /// Samples sent that it has not acknowledged.
    behind: u64,
    /// Samples that it can no longer get.
    lost: u64,
}

impl Row for ReaderRow {
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

/// Returns the readers that are behind or lost something, or all.
pub fn readers(picture: &Picture, all: bool) -> Vec<ReaderRow> {
    let mut rows = Vec::new();
    for process in &picture.processes {
        for writer in &process.state.writers {
            let shown = writer.readers.iter().filter(|reader| all || is_worth_a_look(reader));
            rows.extend(shown.map(|reader| ReaderRow {
                reader: reader.source.clone(),
                process: reader.process,
                topic: writer.topic.clone(),
                writer: process.info.source.to_string(),
                stream: writer.stream,
                state: reader.state.clone(),
                reliable: reader.reliable,
                behind: reader.behind,
                lost: reader.lost,
            }));
        }
    }
    rows.sort_by(|a, b| (&a.reader, &a.topic, &a.writer).cmp(&(&b.reader, &b.topic, &b.writer)));
    rows
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
    use tampu_bus::{FollowerReport, ParticipantState, SourceInfo, WriterReport};
    use tampu_types::SourceName;

    use super::{gather::Process, *};

    fn reader(number: u32, state: &str, behind: u64, lost: u64) -> FollowerReport {
        FollowerReport { reader: number, state: state.to_owned(), reliable: true, behind, lost, ..FollowerReport::default() }
    }

    fn picture() -> Picture {
        let writer = |partition: &[&str], readers| WriterReport {
            topic: "log/info".to_owned(),
            partition: partition.iter().map(|&name| name.to_owned()).collect(),
            samples: 5,
            readers,
            ..WriterReport::default()
        };
        let writers = vec![
            writer(&[], vec![reader(1, "live", 0, 0), reader(2, "lagging", 4, 0)]),
            writer(&["operator"], vec![reader(1, "live", 0, 3)]),
        ];
        let info = SourceInfo { source: SourceName::new("DV01").unwrap(), incarnation: Incarnation::default() };
        let state = ParticipantState { writers, ..ParticipantState::default() };
        Picture { processes: vec![Process { info, host: Some("control".to_owned()), state }], ..Picture::default() }
    }

    #[test]
    fn a_topic_has_all_its_streams_and_each_reader_once() {
        let picture = picture();
        let rows = topics(&picture);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].writers, rows[0].readers, rows[0].samples), (2, 2, 10));
        assert_eq!(rows[0].cells().last().unwrap(), "everybody operator");
    }

    #[test]
    fn readers_that_keep_up_are_not_in_the_way() {
        let picture = picture();
        let shown: Vec<(u64, u64)> = readers(&picture, false).iter().map(|row| (row.behind, row.lost)).collect();
        assert_eq!(shown, [(4, 0), (0, 3)]);
        assert_eq!(readers(&picture, true).len(), 3);
    }

    #[test]
    fn times_have_two_units() {
        let shown = [59, 61, 3_661, 90_061].map(span);
        assert_eq!(shown, ["59 s", "1 min", "1 h 1 min", "1 d 1 h"]);
    }
}
