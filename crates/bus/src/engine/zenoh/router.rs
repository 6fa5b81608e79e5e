//! A node's router.

use std::{path::PathBuf, sync::Arc, time::Duration};

use parking_lot::Mutex;
use zenoh::{Session, Wait, liveliness::LivelinessToken};

use super::{
    connection::Connection,
    credentials::{Credentials, UsersFile},
    host_rule::{self, HeldRule},
    inbox::Inbox,
    link::{self, Link},
    process::ZenohEngine,
    settings::{NAME, Role},
};
use crate::{
    connect::{Endpoint, Settings},
    engine::{AskForHost, Engine, EngineError, Router, RouterSettings},
    host,
    run_dir::DomainDir,
    wire::keys::Keys,
};

/// A running router.
pub(super) struct ZenohRouter {
    session: Session,
    settings: Settings,
    dir: DomainDir,
    /// Socket files to remove with it.
    sockets: Vec<PathBuf>,
    /// Held here: listeners ask it as long as it lives.
    hosts: Mutex<Option<HeldRule>>,
    _here: LivelinessToken,
}

impl ZenohRouter {
    pub fn start(settings: RouterSettings) -> Result<ZenohRouter, EngineError> {
        let RouterSettings { process, dir, listen, connect, key } = settings;
        let is_open = listen.iter().chain(&connect).any(|endpoint| matches!(endpoint, Endpoint::Tcp(_)));
        let is_socket = |endpoint: &Endpoint| match endpoint {
            Endpoint::Unix(path) => Some(path.clone()),
            Endpoint::Tcp(_) => None,
        };
        let sockets: Vec<PathBuf> = listen.iter().filter_map(is_socket).collect();
        // The node's lock decides. The engine's own lock would outlive this process in child processes, which inherit it.
        sockets.iter().for_each(|socket| link::remove_socket(socket));
        let credentials = key.map(|key| match &process.lan {
            Some(lan) if is_open => Credentials::on_network(&process.domain, lan),
            _ => Credentials::of(&process.domain, key),
        });
        let users = credentials.as_ref().map(|credentials| UsersFile::create(&dir, credentials)).transpose();
        let users = users.map_err(|why| refused("writing the users' file", &why))?;
        let credentials = credentials.zip(users.as_ref().map(|file| file.path().to_owned()));
        let session = link::open_session(&Role::Router { listen, connect, credentials })?;
        // While this host's node is announced, an unannounced process of the host has died. Without the node, the host is
        // unreachable.
        let here = Keys::new(&process.domain).node(host::boot());
        let here = session.liveliness().declare_token(here).wait().map_err(|why| refused("announcing the node", &why))?;
        Ok(ZenohRouter { session, settings: process, dir, sockets, hosts: Mutex::default(), _here: here })
    }
}

fn refused(doing: &str, why: &dyn std::fmt::Display) -> EngineError {
    EngineError::Refused { engine: NAME, doing: doing.to_owned(), why: why.to_string() }
}

impl Router for ZenohRouter {
    fn engine(&self) -> Result<Arc<dyn Engine>, EngineError> {
        let link = Link::borrow(self.session.clone());
        let inbox = Arc::new(Inbox::default());
        Ok(Arc::new(ZenohEngine::over(self.settings.clone(), self.dir.clone(), inbox, Connection::Fixed, link)?))
    }

    fn addresses(&self) -> Vec<String> {
        let locators = self.session.info().locators().wait();
        let address = |place: String| place.strip_prefix("tcp/").or(place.strip_prefix("tls/")).map(str::to_owned);
        locators.iter().filter_map(|place| address(place.to_string())).collect()
    }

    fn connections(&self) -> (usize, usize) {
        let mut counts = (0, 0);
        for transport in self.session.info().transports().wait() {
            match transport.whatami() {
                zenoh::config::WhatAmI::Router => counts.1 += 1,
                _ => counts.0 += 1,
            }
        }
        counts
    }

    fn ask_for_hosts(&self, rule: AskForHost) {
        *self.hosts.lock() = host_rule::ask_for_hosts(self.settings.lan.as_ref(), rule);
    }
}

impl Drop for ZenohRouter {
    fn drop(&mut self) {
        let _ = self.session.close().timeout(Duration::from_secs(1)).wait();
        self.sockets.iter().for_each(|socket| link::remove_socket(socket));
    }
}
