//! Sending and receiving messages.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use zenoh::{
    Wait,
    key_expr::KeyExpr,
    pubsub::{Publisher, Subscriber},
    qos::{CongestionControl, Priority},
};

use super::{
    declaration::{Declaration, Registry, Retired, Slot, Withdraw},
    link::Link,
    payload, settings,
};
use crate::engine::{Class, Deliver, EngineError, Outlet};

/// Key of sent messages.
pub(super) struct Publication {
    key: KeyExpr<'static>,
    class: Class,
    publisher: Slot<Publisher<'static>>,
}

impl Publication {
    pub fn new(key: KeyExpr<'static>, class: Class) -> Publication {
        Publication { key, class, publisher: Slot::default() }
    }
}

impl Declaration for Publication {
    fn attach(&self, link: &Link) -> Result<Option<Retired>, EngineError> {
        let (priority, express) = match self.class {
            // Heartbeats have the priority of samples: with one of their own they overtook them, and gaps looked real.
            Class::Data | Class::Control => (Priority::Data, false),
            // Immediate records do not wait until a frame is full.
            Class::Urgent => (Priority::DataHigh, true),
        };
        let declare = || {
            link.session
                .declare_publisher(link.key(&self.key))
                .congestion_control(CongestionControl::Drop)
                .priority(priority)
                .express(express)
                .wait()
        };
        self.publisher.attach(link, || format!("declaring the outlet {}", self.key), declare)
    }

    fn withdraw(&self) {
        self.publisher.withdraw();
    }
}

/// Outlet for callers; withdrawn with its last use.
pub(super) struct ZenohOutlet {
    pub publication: Arc<Publication>,
    pub _withdraw: Withdraw,
}

impl Outlet for ZenohOutlet {
    fn send(&self, message: Bytes) -> Result<(), EngineError> {
        if message.len() > settings::MESSAGE {
            return Err(EngineError::TooLong { engine: super::settings::NAME, limit: settings::MESSAGE, length: message.len() });
        }
        let refused = |why: String| EngineError::Refused {
            engine: super::settings::NAME,
            doing: format!("sending to {}", self.publication.key),
            why,
        };
        let sent = self.publication.publisher.with(|publisher| publisher.put(payload::to_engine(message)).wait());
        sent.ok_or_else(|| refused("the engine is closed".to_owned()))?.map_err(|why| refused(why.to_string()))
    }
}

/// Pattern of received messages.
pub(super) struct Subscription {
    pattern: KeyExpr<'static>,
    deliver: Deliver,
    subscriber: Slot<Subscriber<()>>,
}

impl Subscription {
    pub fn new(pattern: KeyExpr<'static>, deliver: Deliver) -> Subscription {
        Subscription { pattern, deliver, subscriber: Slot::default() }
    }
}

impl Declaration for Subscription {
    fn attach(&self, link: &Link) -> Result<Option<Retired>, EngineError> {
        let declare = || {
            let deliver = self.deliver.clone();
            link.session
                .declare_subscriber(link.key(&self.pattern))
                .callback(move |sample| deliver(payload::from_engine(sample.payload()), sample.key_expr().as_str()))
                .wait()
        };
        self.subscriber.attach(link, || format!("subscribing to {}", self.pattern), declare)
    }

    fn withdraw(&self) {
        self.subscriber.withdraw();
    }
}

/// Keeps a declaration in the registry during its lifetime.
pub(super) fn kept(registry: &Arc<Registry>, declaration: Arc<dyn Declaration>) -> Withdraw {
    let weak: Weak<Registry> = Arc::downgrade(registry);
    Withdraw { number: registry.keep(declaration), registry: weak }
}
