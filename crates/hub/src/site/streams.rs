//! Streams of a site: its topics, and the readers of their streams, for tables and for the API.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use tampu_types::Incarnation;

use super::{gather::Picture, health::is_worth_a_look};

/// A topic, with all its streams together.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct TopicTotals {
    /// Name of the topic.
    pub topic: String,
    /// Names of partitions, joined by commas; an empty text is everybody's.
    pub partitions: BTreeSet<String>,
    /// Streams that are written.
    pub writers: usize,
    /// Readers of different processes and numbers.
    pub readers: usize,
    /// Samples written so far.
    pub samples: u64,
    /// Bytes written so far.
    pub bytes: u64,
    /// Samples a second; missing if the picture has no rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples_per_s: Option<f64>,
    /// Bytes a second; missing if the picture has no rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<f64>,
}

/// A reader of one stream, as the stream's writer sees it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StreamReader {
    /// Name of the reading process, in lower case.
    pub reader: String,
    /// The reading process, if the writer knows it.
    #[schemars(with = "Option<String>")]
    pub process: Option<Incarnation>,
    /// Name of the topic.
    pub topic: String,
    /// Name of the writing process.
    pub writer: String,
    /// Number of the stream at its writer.
    pub stream: u32,
    /// Its state at the writer.
    pub state: String,
    /// False if it takes losses.
    pub reliable: bool,
    /// Samples sent that it has not acknowledged.
    pub behind: u64,
    /// Samples that it can no longer get.
    pub lost: u64,
}

/// Readers of a topic: their processes, and their numbers there.
type Readers = BTreeSet<(Option<Incarnation>, u32)>;

/// Returns the topics, by name; `with_rates` if the picture has rates.
pub fn topics(picture: &Picture, with_rates: bool) -> Vec<TopicTotals> {
    let mut topics: BTreeMap<&str, (TopicTotals, Readers)> = BTreeMap::new();
    for process in &picture.processes {
        for writer in &process.state.writers {
            let (totals, readers) = topics.entry(&writer.topic).or_default();
            totals.partitions.insert(writer.partition.join(","));
            totals.writers += 1;
            totals.samples += writer.samples;
            totals.bytes += writer.bytes;
            if with_rates {
                let rate = picture.rate(process.info.incarnation, writer.stream, writer.samples, writer.bytes);
                let (samples, bytes) = rate.unwrap_or_default();
                *totals.samples_per_s.get_or_insert_default() += samples;
                *totals.bytes_per_s.get_or_insert_default() += bytes;
            }
            readers.extend(writer.readers.iter().map(|reader| (reader.process, reader.reader)));
        }
    }
    let whole = |(topic, (totals, readers)): (&str, (TopicTotals, Readers))| TopicTotals {
        topic: topic.to_owned(),
        readers: readers.len(),
        ..totals
    };
    topics.into_iter().map(whole).collect()
}

/// Returns the readers that are behind or lost something, or all.
pub fn readers(picture: &Picture, all: bool) -> Vec<StreamReader> {
    let mut rows = Vec::new();
    for process in &picture.processes {
        for writer in &process.state.writers {
            let shown = writer.readers.iter().filter(|reader| all || is_worth_a_look(reader));
            rows.extend(shown.map(|reader| StreamReader {
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

#[cfg(test)]
mod tests {
    use tampu_bus::{FollowerReport, ParticipantState, SourceInfo, WriterReport};
    use tampu_types::SourceName;

    use super::*;
    use crate::site::gather::Process;

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
        let rows = topics(&picture, false);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].writers, rows[0].readers, rows[0].samples), (2, 2, 10));
        assert_eq!(rows[0].partitions.iter().collect::<Vec<_>>(), ["", "operator"]);
        assert_eq!(rows[0].samples_per_s, None);
    }

    #[test]
    fn readers_that_keep_up_are_not_in_the_way() {
        let picture = picture();
        let shown: Vec<(u64, u64)> = readers(&picture, false).iter().map(|row| (row.behind, row.lost)).collect();
        assert_eq!(shown, [(4, 0), (0, 3)]);
        assert_eq!(readers(&picture, true).len(), 3);
    }
}
