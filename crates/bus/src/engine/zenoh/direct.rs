//! Links between two processes that do not go through the node.
//!
//! A process that accepts direct links opens a second session, a small router of its own. Readers that need the lowest
//! latency connect to it as clients. Its endpoint is written `boot;auth;place;place...`. On the same boot of the same
//! host, readers use the socket; elsewhere, they use the first address that answers.

use std::sync::{Arc, Weak};

use zenoh::Wait;

use super::{
    connection::Connection,
    core::Core,
    credentials::{Credentials, UsersFile},
    inbox::Inbox,
    process::ZenohEngine,
    settings::{NAME, Role},
};
use crate::{
    connect::Endpoint,
    engine::{Engine, EngineError},
    host,
};

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
            listen.push(Endpoint::Tcp(format!("{address}:0")));
            credentials = Some(Credentials::of(&self.settings.domain, lan.key.clone()));
        }
        let users = credentials.as_ref().map(|credentials| UsersFile::create(&self.dir, credentials)).transpose();
        let users = users.map_err(|why| refused(DOING, why))?;
        let with_users = credentials.zip(users.as_ref().map(|file| file.path().to_owned()));
        let needs_key = with_users.is_some();
        let inbox = Arc::new(Inbox::default());
        let link = inbox.open_link(&Role::Router { listen, connect: Vec::new(), credentials: with_users })?;
        drop(users);
        let mut places = vec![format!("unixsock-stream/{}", socket.display())];
        let locators = link.session.info().locators().wait();
        places.extend(locators.iter().map(ToString::to_string).filter(|place| place.starts_with("tcp/")));
        let auth = if needs_key { "key" } else { "open" };
        let endpoint = format!("{:08x};{auth};{}", host::boot(), places.join(";"));
        let engine = ZenohEngine::over(self.settings.clone(), self.dir.clone(), inbox, Connection::Fixed, link)?;
        let engine: Arc<dyn Engine> = Arc::new(engine);
        directs.listening = Some((endpoint.clone(), engine.clone()));
        Ok((endpoint, engine))
    }

    pub(super) fn connect_direct(&self, endpoint: &str) -> Result<Arc<dyn Engine>, EngineError> {
        let mut directs = self.directs.lock();
        if let Some(engine) = directs.connected.get(endpoint).and_then(Weak::upgrade) {
            return Ok(engine);
        }
        directs.connected.retain(|_, engine| engine.strong_count() > 0);
        let engine: Arc<dyn Engine> = Arc::new(self.open_direct(endpoint)?);
        directs.connected.insert(endpoint.to_owned(), Arc::downgrade(&engine));
        Ok(engine)
    }

    fn open_direct(&self, endpoint: &str) -> Result<ZenohEngine, EngineError> {
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
        let credentials =
            self.settings.lan.as_ref().filter(|_| needs_key).map(|lan| Credentials::of(&self.settings.domain, lan.key.clone()));
        let mut last = bad();
        for place in parts {
            let to: Endpoint = place.parse().map_err(|_| bad())?;
            if boot != host::boot() && matches!(to, Endpoint::Unix(_)) {
                continue;
            }
            let inbox = Arc::new(Inbox::default());
            match inbox.open_link(&Role::Client { to, credentials: credentials.clone() }) {
                Ok(link) => return ZenohEngine::over(self.settings.clone(), self.dir.clone(), inbox, Connection::Fixed, link),
                Err(why) => last = why,
            }
        }
        Err(last)
    }
}
