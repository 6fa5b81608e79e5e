//! The engine's interface for making links and listeners.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use tampu_tls::mutual;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, TlsStream};
use zenoh_link_commons::{
    BIND_INTERFACE, BIND_SOCKET, LinkManagerUnicastTrait, LinkUnicast, ListenersUnicastIP, LocatorInspector, NewLinkChannelSender,
};
use zenoh_protocol::core::{EndPoint, Locator, Metadata, Reliability, endpoint::Config};
use zenoh_result::{ZResult, bail, zerror};

use crate::{
    TLS_LOCATOR_PREFIX,
    admission::admit,
    listener::{self, Identity},
    settings,
};

/// Properties of an address of this protocol.
#[derive(Debug, Default, Clone, Copy)]
pub struct TlsLocatorInspector;

#[async_trait]
impl LocatorInspector for TlsLocatorInspector {
    fn protocol(&self) -> &str {
        TLS_LOCATOR_PREFIX
    }

    async fn is_multicast(&self, _: &Locator) -> ZResult<bool> {
        Ok(false)
    }

    fn is_reliable(&self, locator: &Locator) -> ZResult<bool> {
        let stated = locator.metadata().get(Metadata::RELIABILITY).map(str::parse::<Reliability>).transpose()?;
        Ok(stated.is_none_or(|stated| stated == Reliability::Reliable))
    }
}

/// Makes links and listeners of one session.
pub struct LinkManagerUnicastTls {
    accepted: NewLinkChannelSender,
    listeners: ListenersUnicastIP,
}

impl fmt::Debug for LinkManagerUnicastTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkManagerUnicastTls").field("listeners", &self.listeners).finish_non_exhaustive()
    }
}

impl LinkManagerUnicastTls {
    /// Makes a manager that sends accepted links to the session.
    pub fn new(accepted: NewLinkChannelSender) -> LinkManagerUnicastTls {
        LinkManagerUnicastTls { accepted, listeners: ListenersUnicastIP::new() }
    }
}

/// Refuses what an address asks for and this link does not have.
fn check(config: &Config<'_>) -> ZResult<()> {
    for option in [BIND_INTERFACE, BIND_SOCKET] {
        if config.get(option).is_some() {
            bail!("links over TLS have no option '{option}'");
        }
    }
    Ok(())
}

#[async_trait]
impl LinkManagerUnicastTrait for LinkManagerUnicastTls {
    async fn new_link(&self, endpoint: EndPoint) -> ZResult<LinkUnicast> {
        let config = endpoint.config();
        check(&config)?;
        let address = endpoint.address().as_str().to_owned();
        let name = mutual::server_name(&address)?;
        let files = settings::files(&config)?;
        let client = files.client_config()?;
        let failed = |why: &dyn fmt::Display| zerror!("connecting to tls/{address}: {why}");
        let tcp = TcpStream::connect(&address).await.map_err(|why| failed(&why))?;
        let stream = TlsConnector::from(Arc::new(client)).connect(name, tcp).await.map_err(|why| failed(&why))?;
        admit(TlsStream::Client(stream), files.certificate)
    }

    async fn new_listener(&self, endpoint: EndPoint) -> ZResult<Locator> {
        let config = endpoint.config();
        check(&config)?;
        let address = endpoint.address().as_str().to_owned();
        let identity = Identity::read(settings::files(&config)?)?;
        let bound = listener::listen(&address).await.map_err(|why| zerror!("listening at tls/{address}: {why}"))?;
        let (listener, local) = bound;
        // The host stays as it was written: certificates name it so. The port is the one that was assigned.
        let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
        let locator = Locator::new(endpoint.protocol(), format!("{host}:{}", local.port()), endpoint.metadata())?;
        let kept = EndPoint::new(locator.protocol(), locator.address(), locator.metadata(), endpoint.config())?;
        let token = self.listeners.token.child_token();
        let accepting = listener::accept(listener, identity, token.clone(), self.accepted.clone());
        self.listeners.add_listener(kept, local, accepting, token).await?;
        Ok(locator)
    }

    async fn del_listener(&self, endpoint: &EndPoint) -> ZResult<()> {
        let address = endpoint.address().as_str().to_owned();
        let found = tokio::net::lookup_host(&address).await?.next();
        let found = found.ok_or_else(|| zerror!("tls/{address}: its name is unknown"))?;
        self.listeners.del_listener(found).await
    }

    async fn get_listeners(&self) -> Vec<EndPoint> {
        self.listeners.get_endpoints()
    }

    async fn get_locators(&self) -> Vec<Locator> {
        self.listeners.get_locators()
    }

    async fn get_locators_noloopback(&self) -> Vec<Locator> {
        self.listeners.get_locators_noloopback()
    }
}
