//! The certificate of a server, read again when its files change.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use parking_lot::Mutex;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use crate::{
    certificate::CertificateInfo,
    directory::{check_key_mode, read},
    error::TlsError,
};

/// Modification times of the two files.
type Stamps = [Option<SystemTime>; 2];

/// A server's certificate and key, from two PEM files.
pub struct ServerCertificate {
    certificate: PathBuf,
    key: PathBuf,
    state: Mutex<State>,
}

struct State {
    config: Arc<ServerConfig>,
    info: CertificateInfo,
    stamps: Stamps,
}

impl ServerCertificate {
    /// Reads both files. Other users must not be able to read the key; a group may.
    pub fn open(certificate: &Path, key: &Path) -> Result<ServerCertificate, TlsError> {
        let stamps = stamps(certificate, key);
        let (config, info) = load(certificate, key)?;
        let state = Mutex::new(State { config, info, stamps });
        Ok(ServerCertificate { certificate: certificate.to_owned(), key: key.to_owned(), state })
    }

    /// Returns the TLS settings for a new connection.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.state.lock().config.clone()
    }

    /// Returns the facts about the certificate.
    pub fn info(&self) -> CertificateInfo {
        self.state.lock().info.clone()
    }

    /// Returns the file of the certificate.
    pub fn path(&self) -> &Path {
        &self.certificate
    }

    /// Reads the files again if they have changed since the last look. Returns the new certificate. After an error the
    /// earlier certificate stays in use.
    pub fn refresh(&self) -> Result<Option<CertificateInfo>, TlsError> {
        let stamps = stamps(&self.certificate, &self.key);
        {
            let mut state = self.state.lock();
            if state.stamps == stamps {
                return Ok(None);
            }
            // Noted first: an invalid file is reported once, and not at every look.
            state.stamps = stamps;
        }
        let (config, info) = load(&self.certificate, &self.key)?;
        let mut state = self.state.lock();
        (state.config, state.info) = (config, info.clone());
        Ok(Some(info))
    }
}

fn stamps(certificate: &Path, key: &Path) -> Stamps {
    [certificate, key].map(|path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok())
}

fn load(certificate: &Path, key: &Path) -> Result<(Arc<ServerConfig>, CertificateInfo), TlsError> {
    check_key_mode(key, 0o007)?;
    let text = read(certificate)?;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(text.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|why| TlsError::invalid(certificate, format!("no certificate in PEM: {why}")))?;
    let Some(first) = chain.first() else { return Err(TlsError::invalid(certificate, "it holds no certificate in PEM")) };
    let info = CertificateInfo::parse(first).map_err(|why| TlsError::invalid(certificate, why))?;
    let private = PrivateKeyDer::from_pem_slice(read(key)?.as_bytes())
        .map_err(|why| TlsError::invalid(key, format!("no private key in PEM: {why}")))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|why| TlsError::Setup(why.to_string()))?;
    let mut config = builder
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|why| TlsError::invalid(key, format!("it does not belong to {}: {why}", certificate.display())))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // A client that comes back goes on with a ticket, so the server keeps nothing of it: rustls' own memory would hold the
    // last 128 connections. A new certificate comes with new keys of tickets, and is shown to everybody.
    config.ticketer = rustls::crypto::ring::Ticketer::new().map_err(|why| TlsError::Setup(why.to_string()))?;
    Ok((Arc::new(config), info))
}
