//! Encryption of the client's connections: the certificates that it trusts, and the address behind a name.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use tampu_tls::client::{certificates, system_roots};
use ureq::{
    Agent,
    config::Config,
    tls::{Certificate, RootCerts, TlsConfig},
    unversioned::{
        resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver},
        transport::{DefaultConnector, NextTimeout},
    },
};

use super::error::ClientError;

/// Time that a hub has to begin a response, uploads aside.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// Trust in a hub that is reached by https. Authorities of the system are always trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    /// A file of further certificates (PEM), such as `authority.crt` of the hub's domain.
    pub certificates: Option<PathBuf>,
    /// The address to connect to, whatever the name in the URL means elsewhere. The name is still checked.
    pub address: Option<SocketAddr>,
}

impl Trust {
    /// Makes an agent for a hub's URL.
    pub(super) fn agent(&self, url: &str) -> Result<Agent, ClientError> {
        let mut config =
            Agent::config_builder().http_status_as_error(false).max_redirects(0).timeout_recv_response(Some(RESPONSE_TIMEOUT));
        if url.starts_with("https://") {
            let mut roots = system_roots();
            if let Some(path) = &self.certificates {
                roots.extend(certificates(path).map_err(|why| ClientError::Certificates(why.to_string()))?);
            }
            let roots: Vec<Certificate<'static>> = roots.iter().map(|root| Certificate::from_der(root).to_owned()).collect();
            let tls = TlsConfig::builder()
                .root_certs(RootCerts::Specific(Arc::new(roots)))
                .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()));
            config = config.tls_config(tls.build());
        }
        let config = config.build();
        Ok(match self.address {
            None => config.into(),
            Some(address) => Agent::with_parts(config, DefaultConnector::default(), At(address)),
        })
    }
}

/// A resolver that leads every name to one address.
#[derive(Debug)]
struct At(SocketAddr);

impl Resolver for At {
    fn resolve(&self, _: &http::Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut found = DefaultResolver::default().empty();
        found.push(self.0);
        Ok(found)
    }
}

/// Adds the way out to the reason of a failed connection.
pub(super) fn advise(why: &str) -> String {
    let way_out = if why.contains("UnknownIssuer") || why.contains("BadSignature") {
        "the hub's certificate is of an authority that is not trusted here; name the directory with the domain's authority.crt \
         (--certificates DIR, TAMPU_CERTIFICATES)"
    } else if why.contains("Expired") {
        "the hub's certificate has expired; renew it there with 'tampu cert renew'"
    } else if why.contains("NotValidForName") || why.contains("not valid for name") {
        "the hub's certificate does not name this address; use a name that it has, or add the name with 'tampu cert host'"
    } else if why.contains("InvalidContentType") || why.contains("corrupt message") {
        "no https is spoken there; try http://"
    } else {
        return why.to_owned();
    };
    format!("{why}; {way_out}")
}
