//! A trial handshake that names the reason of a refusal.

use std::{
    io::{self, Read},
    net::{TcpStream, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{PrivateKeyDer, ServerName, pem::PemObject},
};

use crate::{client::certificates, directory::CertificateDir, directory::read};

/// Time limit of each step.
const STEP: Duration = Duration::from_secs(2);

/// Shakes hands with a server that asks for a certificate of the authority, and returns the reason of a failure.
pub fn probe(address: &str, directory: &CertificateDir) -> Result<(), String> {
    let text = |why: &dyn std::fmt::Display| why.to_string();
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host).to_owned();
    let name = ServerName::try_from(host).map_err(|why| text(&why))?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(&directory.authority()).map_err(|why| text(&why))?);
    let chain = certificates(&directory.host()).map_err(|why| text(&why))?;
    let key = read(&directory.host_key()).map_err(|why| text(&why))?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|why| text(&why))?;
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|why| text(&why))?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .map_err(|why| text(&why))?;
    let to = address.to_socket_addrs().ok().and_then(|mut found| found.next()).ok_or("its name is unknown")?;
    let stream = TcpStream::connect_timeout(&to, STEP).map_err(|why| text(&why))?;
    stream.set_read_timeout(Some(STEP)).map_err(|why| text(&why))?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(|why| text(&why))?;
    let mut tls = StreamOwned::new(connection, stream);
    while tls.conn.is_handshaking() {
        tls.conn.complete_io(&mut tls.sock).map_err(|why| text(&why))?;
    }
    // With TLS 1.3 a server refuses the client's certificate after the client has finished.
    match tls.read(&mut [0]) {
        Err(why) if why.kind() == io::ErrorKind::InvalidData => Err(text(&why)),
        _ => Ok(()),
    }
}
