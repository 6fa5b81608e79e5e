//! Links between two processes that do not go through the node.
//!
//! A process that accepts direct links opens a second session, a small router of its own. Readers that need the lowest
//! latency connect to it as clients. Its endpoint is written `boot;auth;place;place...`. On the same boot of the same
//! host, readers use the socket; elsewhere, they use the first address that answers.
//!
//! A caller only listens: what it sends is dropped, because the router would pass it on to the other callers.
//!
//! A heartbeat names the endpoint, and every member of the domain sends heartbeats. So a reader connects to few places:
//! a socket in its own run-time directory, an address whose certificate names it, and without encryption the other end
//! of one of its own connections.

use std::{
    net::SocketAddr,
    sync::{Arc, Weak},
};

use zenoh::Wait;

use super::{
    connection::Connection,
    core::{Core, Directs},
    credentials::{Credentials, UsersFile},
    gate,
    host_name::HostName,
    host_rule,
    inbox::Inbox,
    link::Link,
    process::ZenohEngine,
    settings::{NAME, Role},
};
use crate::{
    access::rule_for_hosts,
    connect::Endpoint,
    engine::{Engine, EngineError},
    host,
};

/// Returns true if the certificate at the other end of the link's connections has this name.
fn leads_to(link: &Link, host: &str) -> bool {
    let is_its = |end: zenoh::session::Link| end.auth_identifier().is_some_and(|name| HostName::new(name) == HostName::new(host));
    let mut ends = link.session.info().links().wait().peekable();
    ends.peek().is_some() && ends.all(is_its)
}

fn refused(doing: &str, why: impl ToString) -> EngineError {
    EngineError::Refused { engine: NAME, doing: doing.to_owned(), why: why.to_string() }
}

impl Core {
    pub(super) fn listen_direct(&self) -> Result<(String, Arc<dyn Engine>), EngineError> {
        // Held while opening, so that two concurrent callers get the same listener.
        let mut directs = self.directs.lock();
        if let Some((endpoint, engine)) = &directs.listening {
            return Ok((endpoint.clone(), engine.clone()));
        }
        const DOING: &str = "listening for direct links";
        let socket = self.dir.direct_socket(host::incarnation()).map_err(|why| refused(DOING, why))?;
        let mut listen = vec![Endpoint::Unix(socket.clone())];
        let mut credentials = None;
        if let Some(lan) = &self.settings.lan
            && let Some(address) = &lan.direct
        {
            let address = format!("{address}:0");
            lan.encryption.for_address(&address).map_err(|why| refused(DOING, why))?;
            listen.push(Endpoint::Tcp(address));
            credentials = Some(Credentials::on_network(&self.settings.domain, lan));
        }
        let users = credentials.as_ref().map(|credentials| UsersFile::create(&self.dir, credentials)).transpose();
        let users = users.map_err(|why| refused(DOING, why))?;
        let with_users = credentials.zip(users.as_ref().map(|file| file.path().to_owned()));
        let needs_key = with_users.is_some();
        self.ask_for_hosts(&mut directs);
        let inbox = Arc::new(Inbox::default());
        // The key on a direct link has no meaning: the link has two ends only.
        let access = Some(gate::silent_callers());
        let role = Role::Router { listen, connect: Vec::new(), credentials: with_users, access };
        let link = inbox.open_link(&role, HostName::default())?;
        drop(users);
        let mut places = vec![format!("unixsock-stream/{}", socket.display())];
        let locators = link.session.info().locators().wait();
        let is_address = |place: &String| place.starts_with("tcp/") || place.starts_with("tls/");
        places.extend(locators.iter().map(ToString::to_string).filter(is_address));
        let auth = if needs_key { "key" } else { "open" };
        let endpoint = format!("{:08x};{auth};{}", host::boot(), places.join(";"));
        let engine = ZenohEngine::over(self.settings.clone(), self.dir.clone(), inbox, Connection::Fixed, link)?;
        let engine: Arc<dyn Engine> = Arc::new(engine);
        directs.listening = Some((endpoint.clone(), engine.clone()));
        Ok((endpoint, engine))
    }

    pub(super) fn connect_direct(&self, endpoint: &str, host: Option<&str>) -> Result<Arc<dyn Engine>, EngineError> {
        let mut directs = self.directs.lock();
        if let Some(engine) = directs.connected.get(endpoint).and_then(Weak::upgrade) {
            return Ok(engine);
        }
        directs.connected.retain(|_, engine| engine.strong_count() > 0);
        self.ask_for_hosts(&mut directs);
        let engine: Arc<dyn Engine> = Arc::new(self.open_direct(endpoint, host)?);
        directs.connected.insert(endpoint.to_owned(), Arc::downgrade(&engine));
        Ok(engine)
    }

    /// Makes direct links ask the rules of this host about the host at their other end.
    fn ask_for_hosts(&self, directs: &mut Directs) {
        if directs.hosts.is_none() {
            let rule = rule_for_hosts(self.dir.path(), &self.settings.domain);
            directs.hosts = host_rule::ask_for_hosts(self.settings.lan.as_ref(), rule);
        }
    }

    fn open_direct(&self, endpoint: &str, host: Option<&str>) -> Result<ZenohEngine, EngineError> {
        let bad = || EngineError::Unreachable {
            engine: NAME,
            place: endpoint.to_owned(),
            why: "invalid direct endpoint for this release".to_owned(),
        };
        let mut parts = endpoint.split(';');
        let boot = parts.next().and_then(|boot| u32::from_str_radix(boot, 16).ok()).ok_or_else(bad)?;
        let needs_key = match parts.next() {
            Some("key") => true,
            Some("open") => false,
            _ => return Err(bad()),
        };
        let mut last = bad();
        for place in parts {
            let Some((to, credentials)) = self.trusted(boot, needs_key, place) else {
                last = EngineError::Unreachable {
                    engine: NAME,
                    place: place.to_owned(),
                    why: "a direct link leads to this host's own sockets, or to an address whose certificate names it".to_owned(),
                };
                continue;
            };
            let inbox = Arc::new(Inbox::default());
            let is_elsewhere = matches!(to, Endpoint::Tcp(_));
            match inbox.open_link(&Role::Client { to, credentials }, HostName::default()) {
                // The name in the certificate at the other end is that of the writer's host.
                Ok(link) if is_elsewhere && host.is_some_and(|host| !leads_to(&link, host)) => {
                    last = EngineError::Unreachable {
                        engine: NAME,
                        place: place.to_owned(),
                        why: "another host answers there than the one that the writer is on".to_owned(),
                    };
                }
                Ok(link) => return ZenohEngine::over(self.settings.clone(), self.dir.clone(), inbox, Connection::Fixed, link),
                Err(why) => last = why,
            }
        }
        Err(last)
    }

    /// Returns the place of a direct link with the credentials for it, if it may be connected to.
    fn trusted(&self, boot: u32, needs_key: bool, place: &str) -> Option<(Endpoint, Option<Credentials>)> {
        let lan = self.settings.lan.as_ref().filter(|_| needs_key);
        let credentials = lan.map(|lan| Credentials::on_network(&self.settings.domain, lan));
        let is_encrypted = credentials.as_ref().is_some_and(|credentials| credentials.certificates.is_some());
        if let Some(address) = place.strip_prefix("tls/") {
            let to = format!("tcp/{address}").parse().ok()?;
            return is_encrypted.then_some((to, credentials));
        }
        match place.parse().ok()? {
            Endpoint::Unix(path) => {
                // A key is asked for at the socket too, and nothing is encrypted there.
                let credentials = lan.map(|lan| Credentials::of(&self.settings.domain, lan.key.clone()));
                let is_ours = boot == host::boot() && self.dir.has_direct_socket(&path);
                is_ours.then_some((Endpoint::Unix(path), credentials))
            }
            Endpoint::Tcp(address) => {
                let is_known = lan.is_some() && !is_encrypted && self.is_connected_to(&address);
                is_known.then_some((Endpoint::Tcp(address), credentials))
            }
        }
    }

    /// Returns true if the other end of one of this process's connections has this IP address.
    fn is_connected_to(&self, address: &str) -> bool {
        let Ok(address) = address.parse::<SocketAddr>() else { return false };
        let other_end = |link: zenoh::session::Link| link.dst().address().as_str().parse::<SocketAddr>().ok();
        self.current().1.session.info().links().wait().filter_map(other_end).any(|end| end.ip() == address.ip())
    }
}
