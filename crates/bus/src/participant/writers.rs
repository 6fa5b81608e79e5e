//! The writers of a participant, and the settings of their topics.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tampu_types::{Partition, TopicName};

use super::{Participant, Shared};
use crate::{
    clock::Gate,
    error::BusError,
    links::lock,
    qos::Qos,
    topic_settings::{QosTable, Subject},
    writer::{Start, Stream, Tuned, TypeTag, Writer},
};

/// Pause between two looks for settings of the site, in ns.
const LOOK_AGAIN: u64 = 10_000_000;

impl Participant {
    /// Returns the settings of topics that hold for this participant.
    pub fn topic_settings(&self) -> Arc<QosTable> {
        self.shared.follow_settings();
        self.shared.tuning.table()
    }

    /// Waits until settings of the site are known, at most this long. Returns whether they are. Only a process without a node
    /// on its host has to wait for them.
    pub fn await_topic_settings(&self, timeout: Duration) -> bool {
        let clock = &self.shared.links.clock;
        let until = clock.monotonic().saturating_add(timeout.as_nanos() as u64);
        let pause = Gate::default();
        loop {
            self.shared.follow_settings();
            let now = clock.monotonic();
            if self.shared.tuning.has_site() || now >= until {
                return self.shared.tuning.has_site();
            }
            clock.wait(&pause, pause.openings(), until.min(now + LOOK_AGAIN));
        }
    }

    /// Returns the quality of service of a topic's stream for everybody, with the default that the settings override.
    pub fn qos(&self, topic: &TopicName) -> Qos {
        self.qos_over(Qos::default(), &Subject::new(topic, &Partition::everybody()))
    }

    /// Returns the quality of service of a stream with its own default, which the settings override.
    pub fn qos_over(&self, default: Qos, subject: &Subject<'_>) -> Qos {
        self.topic_settings().over(default, subject)
    }

    /// Opens a writer of a topic and partition with this quality of service. Settings of the topic do not apply.
    pub fn writer(&self, topic: &TopicName, partition: &Partition, tag: TypeTag, qos: Qos) -> Result<Writer, BusError> {
        Ok(Writer::new(self.shared.open_stream(topic, partition, tag, qos, None)?))
    }

    /// Opens a writer by the settings of its topic, and with this quality of service where they are silent. The writer
    /// follows settings that change while it lives.
    pub fn writer_for(&self, subject: &Subject<'_>, tag: TypeTag, default: Qos) -> Result<Writer, BusError> {
        let table = self.topic_settings();
        let qos = table.over(default.clone(), subject);
        let tuned = Tuned { default, attribute: subject.attribute.map(Into::into), part_of: subject.part_of.cloned() };
        let stream = self.shared.open_stream(subject.topic, subject.partition, tag, qos, Some(tuned))?;
        // The heartbeat worker tunes the streams that it finds. Settings may have changed before this one was there.
        let current = self.shared.tuning.table();
        if !Arc::ptr_eq(&table, &current) {
            stream.retune(&current);
        }
        Ok(Writer::new(stream))
    }
}

impl Shared {
    fn open_stream(
        &self,
        topic: &TopicName,
        partition: &Partition,
        tag: TypeTag,
        qos: Qos,
        tuned: Option<Tuned>,
    ) -> Result<Arc<Stream>, BusError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut stream = Stream::open(id, topic, partition, tag, qos, self.links.clone())?;
        stream.tuned = tuned;
        let stream = Arc::new(stream);
        let mut registry = lock(&self.registry);
        for remote in registry.remote.values_mut() {
            remote.reads |= self.introduce(&stream, &remote.card, Start::Beginning);
        }
        stream.await_readers(!registry.knows_first_readers);
        registry.streams.insert(id, stream.clone());
        drop(registry);
        self.links.beat_soon();
        Ok(stream)
    }

    /// Makes open streams follow the site's settings if they have changed.
    pub(super) fn follow_settings(&self) {
        if self.tuning.refresh(&*self.links.engine) {
            let table = self.tuning.table();
            self.streams().iter().for_each(|stream| stream.retune(&table));
        }
    }
}
