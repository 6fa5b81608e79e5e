//! A node's router.

use std::sync::Arc;

use tampu_types::Domain;

use super::{
    super::zenoh,
    far::{self, Credentials},
    lanes::{FarNodes, Lanes, Order},
    process::{IN, OWN, ZmqEngine, follow},
    publisher,
};
use crate::{
    access::Policy,
    engine::{AskForHost, Engine, EngineError, Guard, LinkTraffic, Presence, Router, RouterSettings},
    host,
    run_dir::DomainDir,
    wire::keys::Keys,
};

/// A running router.
pub(super) struct ZmqRouter {
    /// Dropped before the router on which it is announced.
    _forwarding: Option<Forwarding>,
    beside: Box<dyn Router>,
    domain: Domain,
    dir: DomainDir,
}

impl ZmqRouter {
    pub fn start(settings: RouterSettings) -> Result<ZmqRouter, EngineError> {
        let (domain, dir) = (settings.process.domain.clone(), settings.dir.clone());
        let hosts = far::own_hosts(&settings.listen, &settings.connect);
        let credentials = settings.key.as_ref().map(|key| Credentials::of(&domain, key));
        if let (Some(lan), false) = (&settings.process.lan, hosts.is_empty()) {
            far::check(&lan.encryption)?;
        }
        let beside = (zenoh::DRIVER.route)(settings)?;
        let forwarding = match credentials {
            Some(credentials) if !hosts.is_empty() => {
                Some(Forwarding::start(beside.engine()?, &domain, &dir, &hosts, &credentials)?)
            }
            _ => None,
        };
        Ok(ZmqRouter { _forwarding: forwarding, beside, domain, dir })
    }
}

/// Forwarding of samples between this host and others.
struct Forwarding {
    // Dropped first: others leave before the sockets close.
    _guards: Vec<Guard>,
    _lanes: Arc<Lanes>,
    _engine: Arc<dyn Engine>,
    inward: [String; 2],
}

impl Forwarding {
    fn start(
        engine: Arc<dyn Engine>,
        domain: &Domain,
        dir: &DomainDir,
        hosts: &[String],
        credentials: &Credentials,
    ) -> Result<Forwarding, EngineError> {
        let (keys, own) = (Keys::new(domain), host::incarnation());
        let inward = publisher::addresses(dir, own)?;
        let lanes = Arc::new(Lanes::start(&inward, hosts, credentials, engine.limits().message)?);
        let nodes = Arc::new(FarNodes::default());
        let (seen_keys, seen_dir, seen_lanes) = (keys.clone(), dir.clone(), lanes.clone());
        let seen = Arc::new(move |presence: Presence| {
            let Some((other, kind)) = seen_keys.parse_publisher(&presence.key) else { return };
            match kind.split_once('/') {
                None if kind == OWN => follow(&seen_dir, other, presence.here, &mut |addresses, is_here| {
                    seen_lanes.order(Order::Near(addresses, is_here));
                }),
                Some(("out", chunk)) if other != own => match presence.here {
                    true => nodes.come(&seen_lanes, &presence.key, chunk),
                    false => nodes.go(&seen_lanes, &presence.key),
                },
                _ => {}
            }
        });
        let out = format!("out/{}", far::to_chunk(&lanes.addresses));
        let guards = vec![
            engine.announce(&keys.publisher(own, IN))?,
            engine.announce(&keys.publisher(own, &out))?,
            engine.watch(&keys.publishers(), seen, None)?,
        ];
        Ok(Forwarding { _guards: guards, _lanes: lanes, _engine: engine, inward })
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        publisher::remove(&self.inward);
    }
}

impl Router for ZmqRouter {
    fn engine(&self) -> Result<Arc<dyn Engine>, EngineError> {
        Ok(Arc::new(ZmqEngine::over(self.beside.engine()?, &self.domain, &self.dir)?))
    }

    fn addresses(&self) -> Vec<String> {
        self.beside.addresses()
    }

    fn connections(&self) -> (usize, usize) {
        self.beside.connections()
    }

    fn links(&self) -> Vec<LinkTraffic> {
        self.beside.links()
    }

    fn at_rest(&self, work: &mut dyn FnMut(u64)) -> Result<(), EngineError> {
        self.beside.at_rest(work)
    }

    fn ask_for_hosts(&self, rule: AskForHost) {
        self.beside.ask_for_hosts(rule);
    }

    fn dialed_hosts(&self) -> Vec<String> {
        self.beside.dialed_hosts()
    }

    fn hold_to(&self, policy: &Arc<Policy>) {
        self.beside.hold_to(policy);
    }
}
