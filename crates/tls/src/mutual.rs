//! TLS in which both ends show a certificate of the same authority: the protocol between hosts of a domain.
//!
//! Both ends speak TLS 1.3 only. The connecting end also checks that the certificate names the address. The accepting end
//! cannot know the caller's name: it accepts every valid certificate of the authority.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    server::WebPkiClientVerifier,
    version::TLS13,
};

use crate::{
    client::certificates,
    directory::{CertificateDir, read},
    error::TlsError,
};

/// The three files, in PEM, with which a host proves itself and checks others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// Certificates of the authorities that are trusted.
    pub authority: PathBuf,
    /// Certificate of this host.
    pub certificate: PathBuf,
    /// Private key of this host.
    pub key: PathBuf,
}

impl From<&CertificateDir> for Files {
    fn from(directory: &CertificateDir) -> Files {
        Files { authority: directory.authority(), certificate: directory.host(), key: directory.host_key() }
    }
}

impl Files {
    /// Reads the files and makes the settings of a connecting end.
    pub fn client_config(&self) -> Result<ClientConfig, TlsError> {
        let (chain, key) = self.identity()?;
        ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(setup)?
            .with_root_certificates(self.roots()?)
            .with_client_auth_cert(chain, key)
            .map_err(|why| self.mismatch(&why))
    }

    /// Reads the files and makes the settings of an accepting end.
    pub fn server_config(&self) -> Result<ServerConfig, TlsError> {
        let (chain, key) = self.identity()?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(self.roots()?), provider()).build();
        let verifier = verifier.map_err(|why| TlsError::invalid(&self.authority, why))?;
        ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(setup)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(|why| self.mismatch(&why))
    }

    fn roots(&self) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates(&self.authority)?);
        Ok(roots)
    }

    fn identity(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        let key = PrivateKeyDer::from_pem_slice(read(&self.key)?.as_bytes())
            .map_err(|why| TlsError::invalid(&self.key, format!("no private key in PEM: {why}")))?;
        Ok((certificates(&self.certificate)?, key))
    }

    fn mismatch(&self, why: &rustls::Error) -> TlsError {
        let certificate: &Path = &self.certificate;
        TlsError::invalid(&self.key, format!("it does not belong to {}: {why}", certificate.display()))
    }
}

/// Returns the name that the certificate at an address `host:port` or `[IPv6]:port` must have.
pub fn server_name(address: &str) -> Result<ServerName<'static>, TlsError> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    ServerName::try_from(host.to_owned()).map_err(|_| TlsError::Name { name: host.to_owned() })
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn setup(why: rustls::Error) -> TlsError {
    TlsError::Setup(why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_addresses_are_those_that_certificates_have() {
        for (address, name) in [("10.0.0.5:7447", "10.0.0.5"), ("[fe80::1]:7447", "fe80::1"), ("hub.site:1", "hub.site")] {
            assert_eq!(server_name(address).unwrap().to_str(), name);
        }
        assert!(server_name("no host:1").unwrap_err().to_string().contains("'no host' is not a host's name"));
    }

    #[test]
    fn a_file_that_is_missing_or_wrong_is_named() {
        let place = tempfile::tempdir().unwrap();
        let files = Files::from(&CertificateDir::new(place.path()));
        assert!(files.client_config().unwrap_err().to_string().contains("host.key"));
        std::fs::write(&files.key, "no key").unwrap();
        let why = files.server_config().unwrap_err().to_string();
        assert!(why.contains("host.key") && why.contains("no private key in PEM"), "{why}");
    }
}
