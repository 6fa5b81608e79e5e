//! Sending and receiving messages.
//!
//! Decision: an outlet to a topic declares its key, so that the engine works out the way of its many messages once. An
//! outlet for control messages declares nothing. It sends a few messages a second to one process, whose key nobody uses
//! again, and the engine keeps 5 KB for each key that was ever declared: half of it at the sender, half at the node.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use zenoh::{
    Wait,
    key_expr::KeyExpr,
    pubsub::{Publisher, Subscriber},
    qos::{CongestionControl, Priority},
};

use super::{
    core::Core,
    declaration::{Declaration, Registry, Retired, Slot, Withdraw},
    lease::Lease,
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
        let (priority, express) = precedence(self.class);
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

/// Returns the priority of a class, and whether its messages do not wait until a frame is full.
fn precedence(class: Class) -> (Priority, bool) {
    match class {
        // Heartbeats have the priority of samples: with one of their own they overtook them, and gaps looked real.
        Class::Data | Class::Control => (Priority::Data, false),
        Class::Urgent | Class::UrgentUndeclared => (Priority::DataHigh, true),
    }
}

fn refused(key: &KeyExpr<'_>, why: String) -> EngineError {
    EngineError::Refused { engine: settings::NAME, doing: format!("sending to {key}"), why }
}

fn check_length(message: &Bytes) -> Result<(), EngineError> {
    if message.len() > settings::MESSAGE {
        return Err(EngineError::TooLong { engine: settings::NAME, limit: settings::MESSAGE, length: message.len() });
    }
    Ok(())
}

/// Outlet for callers; withdrawn with its last use.
pub(super) struct ZenohOutlet {
    pub publication: Arc<Publication>,
    pub _withdraw: Withdraw,
}

impl Outlet for ZenohOutlet {
    fn send(&self, message: Bytes) -> Result<(), EngineError> {
        check_length(&message)?;
        let key = &self.publication.key;
        let sent = self.publication.publisher.with(|publisher| publisher.put(payload::to_engine(message)).wait());
        sent.ok_or_else(|| refused(key, CLOSED.to_owned()))?.map_err(|why| refused(key, why.to_string()))
    }
}

const CLOSED: &str = "the engine is closed";

/// Outlet that declares nothing: for control messages to one process, and for samples to readers of the own host alone.
pub(super) struct UndeclaredOutlet {
    pub core: Weak<Core>,
    pub key: KeyExpr<'static>,
    pub class: Class,
}

impl Outlet for UndeclaredOutlet {
    fn send(&self, message: Bytes) -> Result<(), EngineError> {
        check_length(&message)?;
        let closed = || refused(&self.key, CLOSED.to_owned());
        let link = self.core.upgrade().ok_or_else(closed)?.current().1;
        let _in_use = Lease::of(link.lease.as_ref()).ok_or_else(closed)?;
        let (priority, express) = precedence(self.class);
        let put = link.session.put(link.key(&self.key), payload::to_engine(message));
        let put = put.congestion_control(CongestionControl::Drop).priority(priority).express(express);
        put.wait().map_err(|why| refused(&self.key, why.to_string()))
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
