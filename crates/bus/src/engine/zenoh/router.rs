//! A node's router.
//!
//! The engine's rules about links cannot change while a session runs. So the router opens its session anew when they do:
//! a host connects for the first time, or the policy changes what a host may do. Processes and other nodes connect again
//! by themselves, and the layer above fetches again what was sent meanwhile. A host without rules is refused until its
//! rules are in force; it tries again.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Weak, mpsc::channel},
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use tampu_tls::{CertificateDir, probe};
use zenoh::{Session, Wait};

use super::{
    connection::Connection,
    credentials::{Credentials, UsersFile},
    gate::{self, Gate, Passage},
    held_session::{HeldSession, Open, TROUBLE},
    host_name::HostName,
    host_rule::{self, HeldRule},
    inbox::{Inbox, Note},
    lease::Lease,
    link::{self, Link},
    process::ZenohEngine,
    settings::{NAME, Role},
    table::AnnouncementTable,
    worker::worker,
};
use crate::{
    access::{Policy, Principal, TopicRights, Verb},
    connect::{Encryption, Endpoint, Settings},
    engine::{AskForHost, Engine, EngineError, LinkTraffic, Router, RouterSettings, with_host},
    host,
    run_dir::DomainDir,
    wire::keys::Keys,
};

/// Time in which the hosts that a node connects to may tell their names before its session is opened.
const MEETING: Duration = Duration::from_secs(1);
/// Time in which further new hosts may appear before the session is opened anew.
const GATHER: Duration = Duration::from_millis(50);
/// Pause before another attempt to open the session. The addresses were in use by this process a moment ago.
const AGAIN: Duration = Duration::from_millis(50);
/// Pause between closing a session and opening the next. The engine's routers work out their paths at most every 100 ms.
/// If another one leaves and comes back in between, they take it for the same as before, and never tell it of their
/// subscriptions.
const ABSENCE: Duration = Duration::from_millis(400);
/// Time for connections that are just being made, before a session is closed. The engine leaves a connection that is made
/// while it closes open for ever, and nobody answers there.
const QUIET: Duration = Duration::from_millis(200);
/// Shortest life of a session that rules have ended, so that hosts which come one by one do not end one after another.
const STAY: Duration = Duration::from_secs(1);
/// Longest time for closing a session at the end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest time for closing a session before the next one. One that is not closed keeps its connections.
const CLOSE_ANEW_TIMEOUT: Duration = Duration::from_secs(10);

/// A running router.
pub(super) struct ZenohRouter {
    /// Dropped before the session closes.
    announced: Option<AnnouncementTable>,
    running: Arc<Running>,
    /// Held here: listeners ask them as long as they live.
    hosts: Mutex<Option<HeldRule>>,
    _names: Option<HeldRule>,
}

struct Running {
    settings: Settings,
    dir: DomainDir,
    listen: Mutex<Vec<Endpoint>>,
    connect: Vec<Endpoint>,
    credentials: Option<Credentials>,
    relays: Option<Vec<String>>,
    own: HostName,
    /// Certificates of this host, if its name is proved by them.
    certificates: Option<CertificateDir>,
    /// Socket files to remove with it.
    sockets: Vec<PathBuf>,
    session: HeldSession,
    /// Engines on the router, which move to a new session.
    engines: Mutex<Vec<Weak<Inbox>>>,
    hosts: Mutex<Hosts>,
    news: Condvar,
}

/// Hosts that the session has rules for.
#[derive(Default)]
struct Hosts {
    /// Hosts by the name in their certificate. True if this node connects to them.
    known: BTreeMap<String, bool>,
    policy: Arc<Policy>,
    /// Rules of the session.
    in_force: Option<Gate>,
    has_news: bool,
    /// True if the policy has changed. That does not wait for further hosts.
    is_urgent: bool,
    is_over: bool,
}

impl ZenohRouter {
    pub fn start(settings: RouterSettings) -> Result<ZenohRouter, EngineError> {
        let RouterSettings { process, dir, listen, connect, key, relays, policy } = settings;
        let is_open = listen.iter().chain(&connect).any(|endpoint| matches!(endpoint, Endpoint::Tcp(_)));
        let is_socket = |endpoint: &Endpoint| match endpoint {
            Endpoint::Unix(path) => Some(path.clone()),
            Endpoint::Tcp(_) => None,
        };
        let sockets: Vec<PathBuf> = listen.iter().filter_map(is_socket).collect();
        let credentials = key.map(|key| match &process.lan {
            Some(lan) if is_open => Credentials::on_network(&process.domain, lan),
            _ => Credentials::of(&process.domain, key),
        });
        let certificates = match process.lan.as_ref().map(|lan| &lan.encryption) {
            Some(Encryption::Tls(directory)) if is_open => Some(directory.clone()),
            _ => None,
        };
        let own = certificates.as_ref().map(HostName::of_certificate).unwrap_or_default();
        // What is known before the session is opened needs no other one. The host with the authority knows the names of all
        // hosts, and a host that connects to others asks them for theirs.
        let mut known = BTreeMap::new();
        if let Some(directory) = &certificates {
            known.extend(directory.hosts().into_iter().map(|name| (name, false)));
            known.extend(dialed_hosts(directory, &connect)?.into_iter().map(|name| (name, true)));
        }
        let running = Arc::new(Running {
            settings: process,
            dir,
            listen: Mutex::new(listen),
            connect,
            credentials,
            relays,
            own,
            certificates,
            sockets,
            session: HeldSession::default(),
            engines: Mutex::default(),
            hosts: Mutex::new(Hosts { known, policy, ..Hosts::default() }),
            news: Condvar::new(),
        });
        if running.own.name().is_none() {
            running.session.put(running.open(None, 0)?, |_| {});
            return ZenohRouter { announced: None, running, hosts: Mutex::default(), _names: None }.announcing();
        }
        let asked = Arc::downgrade(&running);
        let names: AskForHost =
            Arc::new(move |host, _, dialed| asked.upgrade().and_then(|running| running.refusal(host, dialed)));
        let names = host_rule::ask_for_hosts(running.settings.lan.as_ref(), names);
        let gate = running.gate();
        running.hosts.lock().in_force = Some(gate.clone());
        running.session.put(running.open(Some(&gate), 0)?, |_| {});
        let of_worker = running.clone();
        worker("tampu-gate", move || of_worker.run())?;
        ZenohRouter { announced: None, running, hosts: Mutex::default(), _names: names }.announcing()
    }

    /// Passes on announced keys to the processes of this host. They find out where by a file of the node.
    fn announcing(mut self) -> Result<ZenohRouter, EngineError> {
        if let Some(place) = self.running.dir.place() {
            let keys = Keys::new(&self.running.settings.domain);
            self.announced = Some(AnnouncementTable::start(self.own_engine()?, keys, &place)?);
        }
        Ok(self)
    }

    fn own_engine(&self) -> Result<ZenohEngine, EngineError> {
        let running = &self.running;
        // Held, so that an engine is either made on the new session or moved to it.
        let open = running.session.opened()?;
        let link = running.borrow(&open);
        let inbox = Arc::new(Inbox::default());
        running.engines.lock().push(Arc::downgrade(&inbox));
        ZenohEngine::over(running.settings.clone(), running.dir.clone(), inbox, Connection::Fixed, link)
    }
}

/// Returns the names of the hosts that answer at these addresses. A host that does not is met later.
fn dialed_hosts(directory: &CertificateDir, addresses: &[Endpoint]) -> Result<Vec<String>, EngineError> {
    let (found, names) = channel();
    for address in addresses {
        let Endpoint::Tcp(address) = address else { continue };
        let (found, directory, address) = (found.clone(), directory.clone(), address.clone());
        worker("tampu-ask-host", move || {
            if let Ok(name) = probe::host_at(&address, &directory) {
                // Nobody listens any more if this took too long.
                let _ = found.send(name);
            }
        })?;
    }
    drop(found);
    let until = Instant::now() + MEETING;
    Ok(std::iter::from_fn(|| names.recv_timeout(until.saturating_duration_since(Instant::now())).ok()).collect())
}

/// Closes a session once the node's own engines have ended their calls to it.
fn close(open: Open, timeout: Duration) {
    let close = || _ = open.session.close().timeout(timeout).wait();
    match &open.lease {
        Some(lease) => lease.end(close),
        None => close(),
    }
}

fn refused(doing: &str, why: &dyn std::fmt::Display) -> EngineError {
    EngineError::Refused { engine: NAME, doing: doing.to_owned(), why: why.to_string() }
}

impl Running {
    /// Opens the session.
    fn open(&self, gate: Option<&Gate>, number: u64) -> Result<Open, EngineError> {
        // The node's lock decides. The engine's own lock would outlive this process in child processes, which inherit it.
        self.sockets.iter().for_each(|socket| link::remove_socket(socket));
        // The engine reads the file once, while it opens.
        let users = self.credentials.as_ref().map(|credentials| UsersFile::create(&self.dir, credentials)).transpose();
        let users = users.map_err(|why| refused("writing the users' file", &why))?;
        let credentials = self.credentials.clone().zip(users.as_ref().map(|file| file.path().to_owned()));
        let (mut listen, connect) = (self.listen.lock().clone(), self.connect.clone());
        // The engine listens in this order, and leaves connections of an earlier place open for ever if a later place fails.
        // Sockets of this host do not fail.
        listen.sort_by_key(|endpoint| matches!(endpoint, Endpoint::Unix(_)));
        let is_open = listen.iter().chain(&connect).any(|endpoint| matches!(endpoint, Endpoint::Tcp(_)));
        let keys = Keys::new(&self.settings.domain);
        let local = || is_open.then(|| gate::local_declarations(keys.root(), &self.own));
        let access = gate.map(Gate::access).or_else(local);
        let session = link::open_session(&Role::Router { listen, connect, credentials, access })?;
        self.keep_ports(&session);
        let own = |key: &str| with_host(key, &self.own.chunk());
        // Other hosts know of no single process's control messages and refetches. They send those of all of them here, where
        // the process itself answers.
        let declare = || {
            let controls = session.declare_subscriber(own(&keys.controls_of_host(host::boot()))).callback(|_| {}).wait()?;
            let refetches = session.declare_queryable(own(&keys.refetches_of_host(host::boot()))).callback(|_| {}).wait()?;
            Ok((controls, refetches))
        };
        let declared: Option<zenoh::Result<_>> = is_open.then(declare);
        let of_processes = declared.transpose().map_err(|why| refused("declaring what processes receive", &why))?;
        // While this host's node is announced, an unannounced process of the host has died. Without the node, the host is
        // unreachable.
        let here = session
            .liveliness()
            .declare_token(own(&keys.node(host::boot())))
            .wait()
            .map_err(|why| refused("announcing the node", &why))?;
        let lease = gate.map(|_| Lease::new(&self.session.promise));
        Ok(Open { session, lease, number, _here: here, _of_processes: of_processes })
    }

    /// Notes the ports that were assigned, for the next opening.
    fn keep_ports(&self, session: &Session) {
        let mut places: Vec<String> = session.info().locators().wait().iter().map(ToString::to_string).collect();
        for endpoint in &mut *self.listen.lock() {
            let Endpoint::Tcp(address) = endpoint else { continue };
            let Some(host) = address.strip_suffix(":0").map(str::to_owned) else { continue };
            let is_its = |place: &String| {
                place.split_once('/').is_some_and(|(_, at)| at.rsplit_once(':').is_some_and(|(of, _)| of == host))
            };
            if let Some(index) = places.iter().position(is_its)
                && let Some((_, at)) = places.swap_remove(index).split_once('/')
            {
                *address = at.to_owned();
            }
        }
    }

    /// Returns the rules for the hosts that are known.
    fn gate(&self) -> Gate {
        let hosts = self.hosts.lock();
        let mut passages = BTreeMap::new();
        let names = hosts.known.iter().map(|(name, dialed)| (name.clone(), *dialed));
        for (name, dialed) in names.chain(self.own_name()) {
            let host = Principal::Host(name.to_lowercase());
            let passage = Passage {
                is_relay: match &self.relays {
                    Some(relays) => relays.iter().any(|relay| relay.eq_ignore_ascii_case(&name)),
                    None => dialed,
                },
                read: TopicRights::of(&hosts.policy, &host, Verb::Read),
                write: TopicRights::of(&hosts.policy, &host, Verb::Write),
            };
            passages.insert(name, passage);
        }
        let root = Keys::new(&self.settings.domain).root().to_owned();
        Gate { root, own: self.own.clone(), hosts: passages }
    }

    /// Returns the name of this host, for processes with its certificate that connect over the network.
    fn own_name(&self) -> Option<(String, bool)> {
        Some((self.own.name()?.to_string(), false))
    }

    /// Returns the reason for which a host may not connect yet.
    fn refusal(&self, host: &str, dialed: bool) -> Option<String> {
        if host.is_empty() {
            return Some("its certificate names no host".to_owned());
        }
        let mut hosts = self.hosts.lock();
        let is_own = self.own.name().is_some_and(|own| own.eq_ignore_ascii_case(host));
        if !is_own && hosts.known.get(host).is_none_or(|known| dialed && !known) {
            hosts.known.insert(host.to_owned(), dialed);
            hosts.has_news = true;
            self.news.notify_all();
        }
        let is_in_force = hosts.in_force.as_ref().is_some_and(|gate| {
            let passage = gate.hosts.get(host);
            is_own || passage.is_some_and(|passage| !dialed || self.relays.is_some() || passage.is_relay)
        });
        (!is_in_force).then(|| "the rules for it are being prepared; it is connected in a moment".to_owned())
    }

    /// Opens the session anew when its rules have changed, until the end.
    fn run(&self) {
        let mut opened = Instant::now();
        loop {
            {
                let mut hosts = self.hosts.lock();
                while !hosts.has_news && !hosts.is_over {
                    self.news.wait(&mut hosts);
                }
                if !hosts.is_over {
                    self.news.wait_for(&mut hosts, GATHER);
                }
                if hosts.is_over {
                    return;
                }
                hosts.has_news = false;
            }
            let gate = self.gate();
            if self.hosts.lock().in_force.as_ref() != Some(&gate) {
                if !self.stay(opened + STAY) {
                    return;
                }
                self.open_anew(&self.gate());
                opened = Instant::now();
            }
        }
    }

    fn open_anew(&self, gate: &Gate) {
        let Some(earlier) = self.session.take() else { return };
        let number = earlier.number + 1;
        // Nobody comes in from here on.
        self.hosts.lock().in_force = None;
        self.sockets.iter().for_each(|socket| link::remove_socket(socket));
        let goes_on = self.pause(QUIET);
        close(earlier, CLOSE_ANEW_TIMEOUT);
        self.cut_links();
        if !goes_on {
            return self.session.give_up();
        }
        let open = self.pause(ABSENCE).then(|| self.open_until_it_works(gate, number)).flatten();
        let Some(open) = open else { return self.session.give_up() };
        self.session.put(open, |open| {
            let mut engines = self.engines.lock();
            engines.retain(|engine| engine.strong_count() > 0);
            for inbox in engines.iter().filter_map(Weak::upgrade) {
                inbox.put(Note::Opened(Connection::Fixed, Box::new(Ok(self.borrow(open)))));
            }
        });
    }

    /// Cuts links to other hosts that a closed session has left.
    fn cut_links(&self) {
        if let Some(directory) = &self.certificates {
            zenoh_link_tls::cut_links(&directory.host());
        }
    }

    /// Opens the session with other rules. Returns none if the router ends.
    fn open_until_it_works(&self, gate: &Gate, number: u64) -> Option<Open> {
        let until = Instant::now() + TROUBLE;
        loop {
            // The next session has these rules from its first link on.
            self.hosts.lock().in_force = Some(gate.clone());
            let refused = match self.open(Some(gate), number) {
                Ok(open) => return Some(open),
                Err(refused) => refused,
            };
            // One of its addresses may have let hosts in before another one failed.
            self.hosts.lock().in_force = None;
            self.cut_links();
            if until <= Instant::now() {
                self.session.fail(refused.to_string());
            }
            if !self.pause(AGAIN) {
                return None;
            }
        }
    }

    fn borrow(&self, open: &Open) -> Link {
        Link::borrow(open.session.clone(), self.own.clone(), open.lease.clone())
    }

    /// Waits for further hosts, or for a changed policy. Returns false if the router ends.
    fn stay(&self, until: Instant) -> bool {
        let mut hosts = self.hosts.lock();
        while !hosts.is_over && !hosts.is_urgent && !self.news.wait_until(&mut hosts, until).timed_out() {}
        hosts.is_urgent = false;
        !hosts.is_over
    }

    /// Waits. Returns false if the router ends.
    fn pause(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut hosts = self.hosts.lock();
        while !hosts.is_over && !self.news.wait_until(&mut hosts, until).timed_out() {}
        !hosts.is_over
    }

    fn with_session<T: Default>(&self, work: impl FnOnce(&Session) -> T) -> T {
        self.session.opened().map(|open| work(&open.session)).unwrap_or_default()
    }
}

impl Router for ZenohRouter {
    fn engine(&self) -> Result<Arc<dyn Engine>, EngineError> {
        Ok(Arc::new(self.own_engine()?))
    }

    fn addresses(&self) -> Vec<String> {
        let address = |place: String| place.strip_prefix("tcp/").or(place.strip_prefix("tls/")).map(str::to_owned);
        self.running.with_session(|session| {
            session.info().locators().wait().iter().filter_map(|place| address(place.to_string())).collect()
        })
    }

    fn connections(&self) -> (usize, usize) {
        self.running.with_session(|session| {
            let mut counts = (0, 0);
            for transport in session.info().transports().wait() {
                match transport.whatami() {
                    zenoh::config::WhatAmI::Router => counts.1 += 1,
                    _ => counts.0 += 1,
                }
            }
            counts
        })
    }

    fn links(&self) -> Vec<LinkTraffic> {
        let traffic = |link: zenoh_link_tls::LinkTraffic| LinkTraffic {
            host: link.host,
            own: link.own,
            other: link.other,
            sent: link.sent,
            received: link.received,
            age: link.age,
        };
        zenoh_link_tls::open_links().into_iter().map(traffic).collect()
    }

    fn at_rest(&self, work: &mut dyn FnMut(u64)) -> Result<(), EngineError> {
        let open = self.running.session.opened()?;
        work(open.number);
        Ok(())
    }

    fn ask_for_hosts(&self, rule: AskForHost) {
        *self.hosts.lock() = host_rule::ask_for_hosts(self.running.settings.lan.as_ref(), rule);
    }

    fn dialed_hosts(&self) -> Vec<String> {
        let hosts = self.running.hosts.lock();
        hosts.known.iter().filter(|(_, dialed)| **dialed).map(|(name, _)| name.clone()).collect()
    }

    fn hold_to(&self, policy: &Arc<Policy>) {
        let mut hosts = self.running.hosts.lock();
        hosts.policy = policy.clone();
        hosts.has_news = true;
        hosts.is_urgent = true;
        self.running.news.notify_all();
    }
}

impl Drop for ZenohRouter {
    fn drop(&mut self) {
        self.announced = None;
        self.running.hosts.lock().is_over = true;
        self.running.news.notify_all();
        if let Some(open) = self.running.session.end() {
            close(open, CLOSE_TIMEOUT);
        }
        self.running.sockets.iter().for_each(|socket| link::remove_socket(socket));
    }
}
