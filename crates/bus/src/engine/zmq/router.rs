//! A node's router.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tampu_types::Domain;
use tampu_workers::{OnPanic, WorkerThread};

use super::{
    super::zenoh,
    far::{self, Credentials},
    lanes::{FarNodes, Lanes, Order},
    neighbours::Neighbours,
    process::{IN, OWN, ZmqEngine, follow},
    publisher,
    socket::NAME,
};
use crate::{
    access::Policy,
    connect::Endpoint,
    engine::{AskForHost, Engine, EngineError, Guard, LinkTraffic, Presence, Router, RouterSettings},
    host,
    run_dir::DomainDir,
    wire::keys::Keys,
};

/// Pause between two looks for an address of this host.
const AGAIN: Duration = Duration::from_secs(1);

/// A running router.
pub(super) struct ZmqRouter {
    /// Empty while this host has no address for other hosts. Dropped before the router on which it is announced.
    forwarding: Arc<Mutex<Option<Forwarding>>>,
    neighbours: Neighbours,
    beside: Arc<dyn Router>,
    domain: Domain,
    dir: DomainDir,
}

impl ZmqRouter {
    pub fn start(settings: RouterSettings) -> Result<ZmqRouter, EngineError> {
        let (domain, dir) = (settings.process.domain.clone(), settings.dir.clone());
        let (listen, connect) = (settings.listen.clone(), settings.connect.clone());
        let is_open = listen.iter().chain(&connect).any(|endpoint| matches!(endpoint, Endpoint::Tcp(_)));
        let credentials = settings.key.as_ref().filter(|_| is_open).map(|key| Credentials::of(&domain, key));
        if let (Some(lan), true) = (&settings.process.lan, is_open) {
            far::check(&lan.encryption)?;
        }
        let beside: Arc<dyn Router> = Arc::from((zenoh::DRIVER.route)(settings)?);
        let forwarding = Arc::<Mutex<Option<Forwarding>>>::default();
        if let Some(credentials) = credentials {
            let router = Arc::downgrade(&beside);
            let (domain, dir, place) = (domain.clone(), dir.clone(), Arc::downgrade(&forwarding));
            // Returns true if there is nothing left to do.
            let attempt = move || -> Result<bool, EngineError> {
                let (Some(router), Some(place)) = (router.upgrade(), place.upgrade()) else { return Ok(true) };
                let hosts = far::own_hosts(&listen, &connect, &router.addresses());
                if hosts.is_empty() {
                    return Ok(false);
                }
                *place.lock() = Some(Forwarding::start(router.engine()?, &domain, &dir, &hosts, &credentials)?);
                Ok(true)
            };
            if !attempt()? {
                start_later(attempt)?;
            }
        }
        let neighbours = Neighbours::watch(beside.engine()?, &domain)?;
        Ok(ZmqRouter { forwarding, neighbours, beside, domain, dir })
    }
}

/// Goes on trying, as at the boot of a host whose network comes later than its hub.
fn start_later(attempt: impl Fn() -> Result<bool, EngineError> + Send + 'static) -> Result<(), EngineError> {
    let started = WorkerThread::named("tampu-zmq-later").spawn(OnPanic::ReportOnly, move || {
        while !attempt().unwrap_or(false) {
            std::thread::sleep(AGAIN);
        }
    });
    started.map(drop).map_err(|why| EngineError::Refused {
        engine: NAME,
        doing: "starting the worker tampu-zmq-later".to_owned(),
        why: why.to_string(),
    })
}

/// Forwarding of samples between this host and others.
struct Forwarding {
    // Dropped first: others leave before the sockets close.
    _guards: Vec<Guard>,
    _lanes: Arc<Lanes>,
    nodes: Arc<FarNodes>,
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
        let (seen_keys, seen_dir, seen_lanes, seen_nodes) = (keys.clone(), dir.clone(), lanes.clone(), nodes.clone());
        let seen = Arc::new(move |presence: Presence| {
            let Some((other, kind)) = seen_keys.parse_publisher(&presence.key) else { return };
            match kind.split_once('/') {
                None if kind == OWN => follow(&seen_dir, other, presence.here, &mut |addresses, is_here| {
                    seen_lanes.order(Order::Near(addresses, is_here));
                }),
                Some(("out", chunk)) if other != own => match presence.here {
                    true => seen_nodes.come(&seen_lanes, &presence.key, chunk),
                    false => seen_nodes.go(&seen_lanes, &presence.key),
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
        Ok(Forwarding { _guards: guards, _lanes: lanes, nodes, _engine: engine, inward })
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

    fn trouble(&self) -> Vec<String> {
        let forwarding = self.forwarding.lock();
        let unreached = forwarding.iter().flat_map(|forwarding| forwarding.nodes.unreached()).map(|addresses| {
            format!("no samples come from another hub: nobody answers at {addresses}; a firewall between the hosts must let these ports pass")
        });
        unreached.chain(self.neighbours.trouble()).collect()
    }

    fn hold_to(&self, policy: &Arc<Policy>) {
        self.beside.hold_to(policy);
    }
}
