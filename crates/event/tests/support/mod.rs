//! A simulated network with servers and clients on it, which the test moves.

#![allow(dead_code)]

use std::{
    mem::ManuallyDrop,
    sync::{Arc, Mutex},
    time::Duration,
};

use tampu_bus::{
    Participant, QosPatch, QosTable,
    engine::memory::{MemoryEngine, MemoryNet},
};
use tampu_event::{
    client::{Client, ClientSettings, SubscribeOptions, Update},
    server::{Server, ServerSettings, Workers},
};
use tampu_types::{
    Domain, SourceName,
    event::{AttributeConfig, AttributePattern, Criteria, DataType, Format, Missed, Reason, Thresholds, ValueView},
};

pub const MS: Duration = Duration::from_millis(1);

/// A network, and all that is turned on it.
pub struct Scene {
    pub net: MemoryNet,
    memory: tempfile::TempDir,
}

/// A process that publishes. It does not leave in order: that waits for readers, which nobody turns meanwhile.
pub struct Publisher {
    pub server: ManuallyDrop<Server>,
    pub engine: Arc<MemoryEngine>,
}

/// A process that subscribes.
pub struct Subscriber {
    pub client: ManuallyDrop<Client>,
    pub engine: Arc<MemoryEngine>,
}

impl Scene {
    pub fn new() -> Scene {
        Scene::seeded(1)
    }

    pub fn seeded(seed: u64) -> Scene {
        let (net, memory) = (MemoryNet::new(seed), tempfile::tempdir().unwrap());
        net.share_memory(memory.path());
        Scene { net, memory }
    }

    pub fn join(&self, host: &str, name: &str, patches: Vec<QosPatch>) -> (Participant, Arc<MemoryEngine>) {
        let engine = self.net.engine(host);
        let (domain, source) = (Domain::new("test").unwrap(), SourceName::new(name).unwrap());
        (Participant::on(engine.clone(), domain, source, QosTable::new(patches).unwrap()).unwrap(), engine)
    }

    pub fn publisher(&self, host: &str, name: &str) -> Publisher {
        self.publisher_with(host, name, Vec::new())
    }

    pub fn publisher_with(&self, host: &str, name: &str, patches: Vec<QosPatch>) -> Publisher {
        let (participant, engine) = self.join(host, name, patches);
        let settings = ServerSettings { workers: Workers::Caller, ..ServerSettings::default() };
        Publisher { server: ManuallyDrop::new(Server::start(participant, settings).unwrap()), engine }
    }

    pub fn subscriber(&self, host: &str, name: &str) -> Subscriber {
        self.subscriber_with(host, name, ClientSettings::default())
    }

    pub fn subscriber_with(&self, host: &str, name: &str, settings: ClientSettings) -> Subscriber {
        let (participant, engine) = self.join(host, name, Vec::new());
        let settings = ClientSettings { workers: Workers::Caller, ..settings };
        Subscriber { client: ManuallyDrop::new(Client::start(participant, settings).unwrap()), engine }
    }

    /// Lets this much time pass; everybody works.
    pub fn pass(&self, time: Duration, publishers: &[&Publisher], subscribers: &[&Subscriber]) {
        let end = self.net.now() + time.as_nanos() as u64;
        while self.net.now() < end {
            // Short times are simulated in small steps; long ones have few events.
            let step = if time > 500 * MS { 5 * MS } else { MS };
            publishers.iter().for_each(|publisher| publisher.server.turn());
            subscribers.iter().for_each(|subscriber| subscriber.client.turn());
            self.net.advance(step);
        }
        subscribers.iter().for_each(|subscriber| subscriber.client.turn());
    }
}

pub fn wish(patterns: &[&str]) -> SubscribeOptions {
    SubscribeOptions::of(patterns.iter().map(|pattern| AttributePattern::new(*pattern).unwrap()))
}

/// A scalar of doubles that tells every change.
pub fn scalar(name: &str) -> AttributeConfig {
    AttributeConfig {
        criteria: Criteria {
            change: Thresholds { abs: Some("0.001".parse().unwrap()), rel: None },
            period_ms: 1_000_000_000,
            ..Criteria::default()
        },
        ..AttributeConfig::new(name.parse().unwrap(), DataType::Double, Format::Scalar)
    }
}

/// An event as a test compares it: reason, number, value, missed events.
pub type Told = (Reason, u64, Option<f64>, Missed);

pub fn told(update: &Update) -> Told {
    let value = update.reading().and_then(|reading| reading.value.and_then(|value: ValueView<'_>| value.number(0)));
    (update.reason, update.number, value, update.missed)
}

/// A callback that keeps what it is told.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Update>>>);

impl Log {
    pub fn call(&self) -> impl FnMut(&tampu_event::client::Event<'_>) + Send + 'static {
        let log = self.0.clone();
        move |event| log.lock().unwrap().push(event.to_update())
    }

    pub fn take(&self) -> Vec<Update> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    pub fn told(&self) -> Vec<Told> {
        self.take().iter().map(told).collect()
    }

    pub fn reasons(&self) -> Vec<Reason> {
        self.take().iter().map(|update| update.reason).collect()
    }
}
