//! A trial handshake that names the reason of a refusal.

use std::{
    io::{self, Read},
    net::{TcpStream, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};

use rustls::{ClientConnection, StreamOwned};

use crate::{directory::CertificateDir, mutual};

/// Time limit of each step.
const STEP: Duration = Duration::from_secs(2);

/// Shakes hands with a server that asks for a certificate of the authority, and returns the reason of a failure.
pub fn probe(address: &str, directory: &CertificateDir) -> Result<(), String> {
    let text = |why: &dyn std::fmt::Display| why.to_string();
    let name = mutual::server_name(address).map_err(|why| text(&why))?;
    let config = mutual::Files::from(directory).client_config().map_err(|why| text(&why))?;
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
