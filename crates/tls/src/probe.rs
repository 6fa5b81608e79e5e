//! A trial handshake that names the other host, or the reason of a refusal.

use std::{
    io::{self, Read},
    net::{TcpStream, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};

use rustls::{ClientConnection, StreamOwned};

use crate::{certificate::CertificateInfo, directory::CertificateDir, mutual};

/// Time limit of each step.
const STEP: Duration = Duration::from_secs(2);

type Tls = StreamOwned<ClientConnection, TcpStream>;

fn text(why: impl std::fmt::Display) -> String {
    why.to_string()
}

/// Behaviour of a server after a trial handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// It closes the connection.
    Closes,
    /// It waits for the client.
    Waits,
}

/// Shakes hands with a server that asks for a certificate of the authority, and looks at it for this time. Returns the
/// reason of a failure.
pub fn probe(address: &str, directory: &CertificateDir, time: Duration) -> Result<After, String> {
    let mut tls = shake_hands(address, directory)?;
    tls.sock.set_read_timeout(Some(time)).map_err(text)?;
    // With TLS 1.3 a server refuses the client's certificate after the client has finished.
    match tls.read(&mut [0]) {
        Ok(1..) => Ok(After::Waits),
        Err(why) if why.kind() == io::ErrorKind::InvalidData => Err(text(why)),
        Err(why) if matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Ok(After::Waits),
        _ => Ok(After::Closes),
    }
}

/// Returns the name in the certificate of the server at an address, or the reason of a failure.
pub fn host_at(address: &str, directory: &CertificateDir) -> Result<String, String> {
    let tls = shake_hands(address, directory)?;
    let shown = tls.conn.peer_certificates().and_then(|chain| chain.first()).ok_or("it shows no certificate")?;
    let name = CertificateInfo::parse(shown)?.common_name;
    if name.is_empty() { Err("its certificate names no host".to_owned()) } else { Ok(name) }
}

fn shake_hands(address: &str, directory: &CertificateDir) -> Result<Tls, String> {
    let name = mutual::server_name(address).map_err(text)?;
    let config = mutual::Files::from(directory).client_config().map_err(text)?;
    let to = address.to_socket_addrs().ok().and_then(|mut found| found.next()).ok_or("its name is unknown")?;
    let stream = TcpStream::connect_timeout(&to, STEP).map_err(text)?;
    stream.set_read_timeout(Some(STEP)).map_err(text)?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(text)?;
    let mut tls = StreamOwned::new(connection, stream);
    while tls.conn.is_handshaking() {
        tls.conn.complete_io(&mut tls.sock).map_err(text)?;
    }
    Ok(tls)
}
