//! Settings in order, and the explanation of the values that follow from them.

use std::sync::Arc;

use serde::Serialize;
use tampu_types::{Partition, TopicFilter, TopicName, glob};

use super::{
    field::FIELDS,
    patch::{BadTopicSetting, QosPatch},
};
use crate::qos::Qos;

/// The stream that a setting may be about.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Topic of the stream.
    pub topic: &'a TopicName,
    /// Audiences of the stream.
    pub partition: &'a Partition,
    /// Name of the attribute whose events alone it carries.
    pub attribute: Option<&'a str>,
    /// Topic of the stream that it is a part of. Settings of that topic hold for it as well.
    pub part_of: Option<&'a TopicName>,
}

impl<'a> Subject<'a> {
    /// Describes the whole stream of a topic and partition.
    pub fn new(topic: &'a TopicName, partition: &'a Partition) -> Subject<'a> {
        Subject { topic, partition, attribute: None, part_of: None }
    }
}

/// Settings of streams, in order; later ones beat earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QosTable {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    topics: TopicFilter,
    patch: QosPatch,
    /// The file or hub that it comes from, and its number there.
    ground: Arc<str>,
}

/// Value of one field, with its ground.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// Name of the field.
    pub field: &'static str,
    /// Unit of the value; empty for a flag.
    pub unit: &'static str,
    /// The value that holds.
    pub value: u64,
    /// The value without settings.
    pub default: u64,
    /// The setting that decides; `None` if it is the default of the service.
    pub ground: Option<String>,
    /// True if a change reaches streams that are open.
    pub is_live: bool,
}

impl Entry {
    fn applies(&self, subject: &Subject<'_>) -> bool {
        let QosPatch { audience, attributes, .. } = &self.patch;
        let is_for = |audience: &String| subject.partition.names().any(|name| glob::matches_ignoring_case(audience, name));
        let is_of = |pattern: &String| subject.attribute.is_some_and(|name| covers(pattern, name));
        let is_about = [Some(subject.topic), subject.part_of].into_iter().flatten().any(|topic| self.topics.matches(topic));
        is_about && audience.as_ref().is_none_or(is_for) && attributes.as_ref().is_none_or(is_of)
    }
}

/// Returns true if an attribute's name matches a pattern; case does not count.
fn covers(pattern: &str, name: &str) -> bool {
    glob::matches_path(pattern, name, glob::matches_ignoring_case)
}

impl QosTable {
    /// Makes a table of a program's own settings.
    pub fn new(patches: Vec<QosPatch>) -> Result<QosTable, BadTopicSetting> {
        QosTable::from_place("the program", patches).map_err(|(_, why)| why)
    }

    /// Makes a table of settings from this place, as explanations call it. An error has the number of the setting, from 1.
    pub fn from_place(place: &str, patches: Vec<QosPatch>) -> Result<QosTable, (usize, BadTopicSetting)> {
        let entry = |(index, patch): (usize, QosPatch)| -> Result<Entry, (usize, BadTopicSetting)> {
            let topics = patch.check().map_err(|why| (index + 1, why))?;
            Ok(Entry { topics, patch, ground: format!("{place}, [[topic]] {}", index + 1).into() })
        };
        let entries: Result<Vec<Entry>, _> = patches.into_iter().enumerate().map(entry).collect();
        Ok(QosTable { entries: entries? })
    }

    /// Adds settings that beat these.
    #[must_use]
    pub fn and(mut self, stronger: QosTable) -> QosTable {
        self.entries.extend(stronger.entries);
        self
    }

    /// Returns the quality of service of a topic's stream for everybody.
    pub fn of(&self, topic: &TopicName) -> Qos {
        self.over(Qos::default(), &Subject::new(topic, &Partition::everybody()))
    }

    /// Returns the quality of service of a stream with its own default.
    pub fn over(&self, mut qos: Qos, subject: &Subject<'_>) -> Qos {
        self.entries.iter().filter(|entry| entry.applies(subject)).for_each(|entry| entry.patch.apply(&mut qos));
        qos
    }

    /// Returns true if a setting names this attribute, which gets a stream of its own.
    pub fn names_attribute(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.patch.attributes.as_ref().is_some_and(|pattern| covers(pattern, name)))
    }

    /// Returns the value of each field of a stream, and the setting that decides.
    pub fn explain(&self, default: &Qos, subject: &Subject<'_>) -> Vec<Explained> {
        let applied: Vec<&Entry> = self.entries.iter().filter(|entry| entry.applies(subject)).collect();
        let explained = |field: &super::Field| {
            let set = applied.iter().rev().find_map(|entry| Some(((field.in_patch)(&entry.patch)?, entry.ground.to_string())));
            let default = (field.of)(default);
            let (value, ground) = set.map_or((default, None), |(value, ground)| (value, Some(ground)));
            Explained { field: field.name, unit: field.unit, value, default, ground, is_live: field.is_live }
        };
        FIELDS.iter().map(explained).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(text: &str) -> Result<QosTable, (usize, BadTopicSetting)> {
        #[derive(serde::Deserialize)]
        struct File {
            topic: Vec<QosPatch>,
        }
        QosTable::from_place("t.toml", toml::from_str::<File>(text).unwrap().topic)
    }

    fn over(table: &QosTable, topic: &str, audience: &[&str], attribute: Option<&str>) -> Qos {
        let (topic, partition) = (TopicName::new(topic).unwrap(), Partition::of(audience.iter().copied()));
        table.over(Qos::default(), &Subject { attribute, ..Subject::new(&topic, &partition) })
    }

    #[test]
    fn later_settings_beat_earlier_ones_and_leave_other_topics_alone() {
        let text =
            "[[topic]]\ntopics = 'log/*'\ncredit = 1\nkeep = 2\n[[topic]]\ntopics = 'log/error'\ncredit = 3\nurgent = true\n";
        let table = table(text).unwrap();
        let error = table.of(&TopicName::new("log/Error").unwrap());
        assert_eq!((error.credit, error.keep, error.urgent), (3, 2, true));
        assert_eq!(table.of(&TopicName::new("event/x").unwrap()), Qos::default());
    }

    #[test]
    fn an_audience_and_an_attribute_select_their_streams() {
        let text = "[[topic]]\ntopics = 'log/*'\naudience = 'Operator'\nlinger_us = 7\n\
                    [[topic]]\nattributes = 'LAB/psu/*/Volt*'\nkeep = 9\n[[topic]]\nattributes = 'lab/vacuum/**'\n";
        let table = table(text).unwrap();
        let linger = |audience: &[&str]| over(&table, "log/info", audience, None).linger.as_micros();
        assert_eq!((linger(&["science", "operator"]), linger(&["science"]), linger(&[])), (7, 200, 200));
        let keep = |topic, attribute| over(&table, topic, &[], attribute).keep;
        assert_eq!(keep("event-own/psu/3", Some("lab/PSU/1/voltage")), 9);
        assert_eq!(keep("event-own/psu/3", Some("lab/PSU/1/current")), Qos::default().keep);
        assert_eq!(keep("event/psu", None), Qos::default().keep);
        let named = |name| table.names_attribute(name);
        assert!(named("lab/psu/1/Voltage") && named("lab/vacuum/7/pressure") && !named("lab/psu/1/current"));
    }

    #[test]
    fn settings_of_a_stream_hold_for_its_parts() {
        let table = table("[[topic]]\ntopics = 'event/*'\nkeep = 1\n[[topic]]\ntopics = 'event/psu/*'\ncache = 2\n").unwrap();
        let (whole, part, everybody) =
            (TopicName::new("event/psu").unwrap(), TopicName::new("event/psu/7").unwrap(), Partition::everybody());
        let of = |subject: Subject<'_>| table.over(Qos::default(), &subject);
        let (alone, as_part) =
            (Subject::new(&part, &everybody), Subject { part_of: Some(&whole), ..Subject::new(&part, &everybody) });
        assert_eq!((of(alone).keep, of(alone).cache), (Qos::default().keep, 2));
        assert_eq!((of(as_part).keep, of(as_part).cache), (1, 2));
    }

    #[test]
    fn each_value_has_its_ground() {
        let weak = table("[[topic]]\ntopics = '**'\ncache = 5\nkeep = 6\n").unwrap();
        let strong = QosPatch { topics: "log/*".to_owned(), keep: Some(6), direct: Some(true), ..QosPatch::default() };
        let table = weak.and(QosTable::new(vec![strong]).unwrap());
        let topic = TopicName::new("log/info").unwrap();
        let everybody = Partition::everybody();
        let subject = Subject::new(&topic, &everybody);
        let explained = table.explain(&Qos::default(), &subject);
        let of = |field: &str| explained.iter().find(|one| one.field == field).unwrap();
        let ground = |field| of(field).ground.as_deref();
        assert_eq!((of("cache").value, ground("cache")), (5, Some("t.toml, [[topic]] 1")));
        assert_eq!((of("keep").value, ground("keep")), (6, Some("the program, [[topic]] 1")), "the last one decides");
        assert_eq!((of("direct").value, of("direct").is_live), (1, false));
        assert_eq!((of("credit").value, ground("credit")), (of("credit").default, None));
    }

    #[test]
    fn a_setting_without_effect_or_out_of_its_range_is_refused() {
        for (text, why) in [
            ("topics = 'log//x'", "topics: 'log//x' is not a topic"),
            ("keep = 1", "topics: '' is not a topic"),
            ("topics = 'log/*'\nmax_wait_ms = 60001", "max_wait_ms = 60001: it may be 0 to 60000 ms"),
            ("topics = 'log/*'\ncredit = 0", "credit = 0: it may be 1 to 4294967295 bytes"),
            ("topics = 'log/*'\naudience = ''", "audience: it is empty"),
            ("attributes = 'lab//x'", "attributes: 'lab//x' is no pattern"),
            ("attributes = 'lab/**'\ntopics = 'event/**'", "attributes cannot stand beside topics"),
            ("attributes = 'lab/**'\naudience = 'operator'", "attributes cannot stand beside audience"),
        ] {
            let (number, refused) = table(&format!("[[topic]]\ntopics = '**'\n[[topic]]\n{text}\n")).unwrap_err();
            assert!(number == 2 && refused.to_string().starts_with(why), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn the_explanation_is_what_holds(keeps in proptest::collection::vec(proptest::option::of(0..9_usize), 0..6), urgent: bool) {
            let patch = |keep| QosPatch { topics: "t".to_owned(), keep, urgent: keep.map(|_| urgent), ..QosPatch::default() };
            let table = QosTable::new(keeps.into_iter().map(patch).collect()).unwrap();
            let topic = TopicName::new("t").unwrap();
            let everybody = Partition::everybody();
            let subject = Subject::new(&topic, &everybody);
            let qos = table.over(Qos::default(), &subject);
            for (field, explained) in FIELDS.iter().zip(table.explain(&Qos::default(), &subject)) {
                prop_assert_eq!((field.of)(&qos), explained.value, "{}", field.name);
            }
        }
    }
}
