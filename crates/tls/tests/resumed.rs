//! Clients that come back go on with the keys of their last connection, however many others came meanwhile.

use std::{sync::Arc, time::SystemTime};

use rustls::{ClientConfig, ClientConnection, HandshakeKind, ServerConfig, ServerConnection, pki_types::ServerName};
use tampu_tls::{
    Authority, CertificateDir, HostNames, KeyPairChoice, ServerCertificate,
    client::{certificates, client_config},
};

/// Number of clients: more than a server's memory of sessions would hold.
const CLIENTS: usize = 300;

/// Shakes hands in memory, and returns how.
fn shake_hands(client: &Arc<ClientConfig>, server: Arc<ServerConfig>) -> HandshakeKind {
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = ClientConnection::new(client.clone(), name).unwrap();
    let mut server = ServerConnection::new(server).unwrap();
    let mut bytes = Vec::new();
    while client.is_handshaking() || server.is_handshaking() || client.wants_write() || server.wants_write() {
        bytes.clear();
        client.write_tls(&mut bytes).unwrap();
        server.read_tls(&mut bytes.as_slice()).unwrap();
        server.process_new_packets().unwrap();
        bytes.clear();
        // The tickets come after the handshake.
        server.write_tls(&mut bytes).unwrap();
        client.read_tls(&mut bytes.as_slice()).unwrap();
        client.process_new_packets().unwrap();
    }
    assert_eq!(client.handshake_kind(), server.handshake_kind());
    client.handshake_kind().unwrap()
}

#[test]
fn connections_are_resumed_after_many_others_and_not_with_a_new_certificate() {
    let place = tempfile::tempdir().unwrap();
    let directory = CertificateDir::new(place.path().join("cert"));
    let now = SystemTime::now();
    let names = HostNames::new("localhost", &[]).unwrap();
    let authority = Authority::create(&directory, "lab", now).unwrap();
    authority.issue(&directory, &names, KeyPairChoice::New, now).unwrap();
    let open = || ServerCertificate::open(&directory.host(), &directory.host_key()).unwrap();
    let certificate = open();
    let clients: Vec<Arc<ClientConfig>> =
        (0..CLIENTS).map(|_| Arc::new(client_config(certificates(&directory.authority()).unwrap()).unwrap())).collect();
    for client in &clients {
        assert_eq!(shake_hands(client, certificate.config()), HandshakeKind::Full);
    }
    for client in &clients {
        assert_eq!(shake_hands(client, certificate.config()), HandshakeKind::Resumed);
    }
    // Another certificate is shown to everybody.
    assert_eq!(shake_hands(&clients[0], open().config()), HandshakeKind::Full);
}
