//! An authority, its hosts, their files, and TLS made of them.

use std::{
    fs,
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustls::{ClientConnection, ServerConnection, pki_types::ServerName};
use tampu_tls::{Authority, CertificateDir, CertificateInfo, HostNames, KeyPairChoice, ServerCertificate, TlsError, client};

struct Site {
    _place: tempfile::TempDir,
    directory: CertificateDir,
    authority: Authority,
}

fn site() -> Site {
    let place = tempfile::tempdir().unwrap();
    let directory = CertificateDir::new(place.path().join("cert"));
    let authority = Authority::create(&directory, "lab", SystemTime::now()).unwrap();
    let names = HostNames::new("archive", &["archive.example.org".to_owned(), "10.0.0.5".to_owned()]).unwrap();
    authority.issue(&directory, &names, KeyPairChoice::New, SystemTime::now()).unwrap();
    Site { _place: place, directory, authority }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn open(directory: &CertificateDir) -> Result<ServerCertificate, TlsError> {
    ServerCertificate::open(&directory.host(), &directory.host_key())
}

/// Shakes hands between a server and a client that trusts these authorities, and expects the server under this name.
fn handshake(server: &ServerCertificate, trusted: &Path, name: &str) -> Result<(), rustls::Error> {
    let config = client::client_config(client::certificates(trusted).unwrap()).unwrap();
    let mut client = ClientConnection::new(Arc::new(config), ServerName::try_from(name.to_owned()).unwrap())?;
    let mut server = ServerConnection::new(server.config())?;
    for _ in 0..10 {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        deliver(&bytes, |from| server.read_tls(from));
        server.process_new_packets()?;
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        deliver(&bytes, |from| client.read_tls(from));
        client.process_new_packets()?;
        if !client.is_handshaking() && !server.is_handshaking() {
            return Ok(());
        }
    }
    panic!("the handshake does not end");
}

fn deliver(mut bytes: &[u8], mut read: impl FnMut(&mut dyn Read) -> io::Result<usize>) {
    while !bytes.is_empty() {
        read(&mut bytes).unwrap();
    }
}

#[test]
fn a_host_gets_three_files_and_only_its_owner_reads_the_keys() {
    let site = site();
    let mast = site.directory.of_host("mast");
    site.authority.issue(&mast, &HostNames::new("mast", &[]).unwrap(), KeyPairChoice::New, SystemTime::now()).unwrap();
    for directory in [&site.directory, &mast] {
        assert_eq!(mode(directory.path()), 0o700);
        assert_eq!(mode(&directory.host_key()), 0o600);
        assert_eq!((mode(&directory.host()), mode(&directory.authority())), (0o644, 0o644));
        directory.check().unwrap();
    }
    assert_eq!(mode(&site.directory.authority_key()), 0o600);
    assert!(!mast.authority_key().exists(), "the authority's key stays on its host");
    assert_eq!(site.directory.hosts(), ["mast"]);

    let info = CertificateInfo::read(&site.directory.host()).unwrap();
    assert_eq!((info.common_name.as_str(), info.issuer.as_str()), ("archive", "Tampu domain lab"));
    for name in ["archive", "archive.example.org", "localhost", "10.0.0.5", "127.0.0.1", "::1"] {
        assert!(info.names.iter().any(|known| known == name), "{name} in {:?}", info.names);
    }
    let days = info.seconds_left(SystemTime::now()) / 86_400;
    assert!((364..=365).contains(&days), "{days}");
    let authority = CertificateInfo::read(&site.directory.authority()).unwrap();
    assert!(authority.is_authority && !info.is_authority);
    assert!(authority.seconds_left(SystemTime::now()) > 3649 * 86_400);
}

#[test]
fn an_authority_is_not_replaced_and_is_needed_to_sign() {
    let site = site();
    let before = fs::read(site.directory.authority_key()).unwrap();
    let again = Authority::create(&site.directory, "lab", SystemTime::now());
    assert!(matches!(again, Err(TlsError::Exists { .. })));
    assert_eq!(fs::read(site.directory.authority_key()).unwrap(), before);
    let empty = tempfile::tempdir().unwrap();
    let error = Authority::open(&CertificateDir::new(empty.path())).err().unwrap().to_string();
    assert!(error.contains("'tampu cert init'"), "{error}");
    let error = CertificateDir::new(empty.path()).check().unwrap_err().to_string();
    assert!(error.contains("'tampu cert init'") && error.contains("'tampu cert host NAME'"), "{error}");
    fs::set_permissions(site.directory.authority_key(), fs::Permissions::from_mode(0o644)).unwrap();
    let error = Authority::open(&site.directory).err().unwrap().to_string();
    assert!(error.contains("run chmod 600"), "{error}");
    fs::set_permissions(site.directory.host_key(), fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(site.directory.check(), Err(TlsError::Open { mode: 0o640, .. })));
}

#[test]
fn renewing_keeps_the_key_or_makes_a_new_one() {
    let site = site();
    let (earlier, later) = (SystemTime::now() - Duration::from_secs(300 * 86_400), SystemTime::now());
    site.authority.renew_host(&site.directory, KeyPairChoice::Keep, earlier).unwrap();
    let (key, first) = (fs::read(site.directory.host_key()).unwrap(), CertificateInfo::read(&site.directory.host()).unwrap());
    let kept = site.authority.renew_host(&site.directory, KeyPairChoice::Keep, later).unwrap();
    assert_eq!(fs::read(site.directory.host_key()).unwrap(), key);
    assert!(kept.not_after > first.not_after && kept.fingerprint != first.fingerprint);
    assert_eq!((&kept.common_name, &kept.names), (&first.common_name, &first.names));
    handshake(&open(&site.directory).unwrap(), &site.directory.authority(), "archive").unwrap();
    site.authority.renew_host(&site.directory, KeyPairChoice::New, later).unwrap();
    assert_ne!(fs::read(site.directory.host_key()).unwrap(), key);
    handshake(&open(&site.directory).unwrap(), &site.directory.authority(), "archive").unwrap();

    // Hosts with either certificate of a renewed authority trust each other.
    let old = site.directory.path().join("old.crt");
    fs::copy(site.directory.authority(), &old).unwrap();
    Authority::renew(&site.directory, SystemTime::now()).unwrap();
    assert_ne!(fs::read(&old).unwrap(), fs::read(site.directory.authority()).unwrap());
    for trusted in [&old, &site.directory.authority()] {
        handshake(&open(&site.directory).unwrap(), trusted, "archive").unwrap();
    }
}

#[test]
fn a_client_refuses_a_foreign_an_expired_and_a_misnamed_server() {
    let (site, other) = (site(), site());
    let server = open(&site.directory).unwrap();
    for name in ["archive", "archive.example.org", "10.0.0.5", "127.0.0.1", "localhost"] {
        handshake(&server, &site.directory.authority(), name).unwrap();
    }
    let refused =
        |server: &ServerCertificate, trusted: &Path, name: &str| handshake(server, trusted, name).unwrap_err().to_string();
    let misnamed = refused(&server, &site.directory.authority(), "elsewhere");
    assert!(misnamed.contains("not valid for name"), "{misnamed}");
    let foreign = refused(&server, &other.directory.authority(), "archive");
    assert!(foreign.contains("BadSignature") || foreign.contains("UnknownIssuer"), "{foreign}");
    let expired = site.directory.of_host("expired");
    let past = SystemTime::now() - Duration::from_secs(400 * 86_400);
    site.authority.issue(&expired, &HostNames::new("expired", &[]).unwrap(), KeyPairChoice::New, past).unwrap();
    let expired = refused(&open(&expired).unwrap(), &site.directory.authority(), "expired");
    assert!(expired.contains("expired"), "{expired}");
}

#[test]
fn changed_files_are_read_again_and_a_broken_one_keeps_the_earlier() {
    let site = site();
    let server = open(&site.directory).unwrap();
    let first = server.info();
    assert_eq!(server.refresh().unwrap(), None);
    let touch = |path: &Path, text: &[u8], ahead: u64| {
        fs::write(path, text).unwrap();
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(ahead)).unwrap();
    };
    touch(&site.directory.host(), b"no certificate", 10);
    let error = server.refresh().unwrap_err().to_string();
    assert!(error.contains("host.crt"), "{error}");
    assert_eq!(server.info(), first);
    handshake(&server, &site.directory.authority(), "archive").unwrap();
    assert_eq!(server.refresh().unwrap(), None, "an invalid file is reported once");
    // A certificate of another key is an error too.
    let mast = site.directory.of_host("mast");
    site.authority.issue(&mast, &HostNames::new("mast", &[]).unwrap(), KeyPairChoice::New, SystemTime::now()).unwrap();
    touch(&site.directory.host(), &fs::read(mast.host()).unwrap(), 20);
    let error = server.refresh().unwrap_err().to_string();
    assert!(error.contains("does not belong to"), "{error}");
    touch(&site.directory.host_key(), &fs::read(mast.host_key()).unwrap(), 30);
    assert_eq!(server.refresh().unwrap().unwrap().common_name, "mast");
    handshake(&server, &site.directory.authority(), "mast").unwrap();
}
