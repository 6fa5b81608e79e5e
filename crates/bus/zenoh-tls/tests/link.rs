//! Links between two managers on loopback, with certificates of a real authority.

use std::{
    fs,
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex},
    time::SystemTime,
};

use tampu_tls::{Authority, CertificateDir, HostNames, KeyPairChoice};
use zenoh_config::Config;
use zenoh_link_commons::{ConfigurationInspector, LinkManagerUnicastTrait, LinkUnicast};
use zenoh_link_tls::{HostRule, LinkManagerUnicastTls, TlsConfigurator, ask_for_hosts};
use zenoh_protocol::core::EndPoint;

fn certify(place: &Path) -> CertificateDir {
    let directory = CertificateDir::new(place.join("cert"));
    let authority = Authority::create(&directory, "lab", SystemTime::now()).unwrap();
    let names = HostNames::new("localhost", &["127.0.0.1".to_owned(), "::1".to_owned()]).unwrap();
    authority.issue(&directory, &names, KeyPairChoice::New, SystemTime::now()).unwrap();
    directory
}

fn settings(directory: &CertificateDir, changes: &[(&str, &str)]) -> Config {
    let path = |path: std::path::PathBuf| format!("{path:?}");
    let mut config = Config::default();
    let mut set = |key: &str, value: &str| config.insert_json5(&format!("transport/link/tls/{key}"), value).unwrap();
    set("root_ca_certificate", &path(directory.authority()));
    for end in ["listen", "connect"] {
        set(&format!("{end}_certificate"), &path(directory.host()));
        set(&format!("{end}_private_key"), &path(directory.host_key()));
    }
    set("enable_mtls", "true");
    changes.iter().for_each(|(key, value)| set(key, value));
    config
}

fn endpoint(address: &str, options: &str) -> EndPoint {
    EndPoint::new("tls", address, "", options).unwrap()
}

/// Opens both ends of a link at an address of this host.
async fn pair(address: &str, directory: &CertificateDir) -> (LinkUnicast, LinkUnicast) {
    let options = TlsConfigurator.inspect_config(&settings(directory, &[])).unwrap();
    let (accepted, links) = flume::bounded(1);
    let manager = LinkManagerUnicastTls::new(accepted);
    let locator = manager.new_listener(endpoint(address, &options)).await.unwrap();
    let near = manager.new_link(endpoint(locator.address().as_str(), &options)).await.unwrap();
    (near, links.recv_async().await.unwrap())
}

/// Sends blocks whose bytes count up; both ends do it at the same time.
async fn send(link: Arc<LinkUnicast>, blocks: usize) {
    for block in 0..blocks {
        let bytes: Vec<u8> = (0..1 + block * 7919 % 60_000).map(|at| (at + block) as u8).collect();
        link.write_all(&bytes, None).await.unwrap();
    }
}

async fn receive(link: Arc<LinkUnicast>, blocks: usize) {
    for block in 0..blocks {
        let mut bytes = vec![0; 1 + block * 7919 % 60_000];
        link.read_exact(&mut bytes, None).await.unwrap();
        assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == (at + block) as u8), "block {block}");
    }
}

/// The fault of the engine's own link: a write failed while the other thread handled an incoming record.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn both_ends_read_and_write_at_the_same_time() {
    const BLOCKS: usize = 500;
    let place = tempfile::tempdir().unwrap();
    let (near, far) = pair("127.0.0.1:0", &certify(place.path())).await;
    let (near, far) = (Arc::new(near), Arc::new(far));
    let tasks = [
        tokio::spawn(send(near.clone(), BLOCKS)),
        tokio::spawn(send(far.clone(), BLOCKS)),
        tokio::spawn(receive(near.clone(), BLOCKS)),
        tokio::spawn(receive(far.clone(), BLOCKS)),
    ];
    for task in tasks {
        task.await.unwrap();
    }
    near.close().await.unwrap();
    assert!(far.read_exact(&mut [0], None).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_ipv6_addresses_are_checked_like_ipv4_addresses() {
    let place = tempfile::tempdir().unwrap();
    let directory = certify(place.path());
    for address in ["localhost:0", "[::1]:0"] {
        let (near, far) = pair(address, &directory).await;
        near.write_all(b"a", None).await.unwrap();
        far.read_exact(&mut [0], None).await.unwrap();
        assert_eq!(far.get_auth_id().get_cert_common_name(), Some("localhost"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_of_another_authority_is_refused_and_a_renewed_certificate_is_used() {
    let place = tempfile::tempdir().unwrap();
    let (ours, other) = (certify(&place.path().join("ours")), certify(&place.path().join("other")));
    let options = |directory: &CertificateDir| TlsConfigurator.inspect_config(&settings(directory, &[])).unwrap();
    let (accepted, links) = flume::bounded(1);
    let manager = LinkManagerUnicastTls::new(accepted);
    let locator = manager.new_listener(endpoint("127.0.0.1:0", &options(&ours))).await.unwrap();
    let address = locator.address().as_str().to_owned();
    let why = manager.new_link(endpoint(&address, &options(&other))).await.unwrap_err().to_string();
    assert!(why.contains(&address) && why.contains("certificate"), "{why}");
    // The listener's files become those of the other authority.
    for (from, to) in [(other.authority(), ours.authority()), (other.host(), ours.host()), (other.host_key(), ours.host_key())] {
        fs::copy(from, to).unwrap();
    }
    // Held: a caller that is gone before the end of its handshake is not accepted.
    let _near = manager.new_link(endpoint(&address, &options(&other))).await.unwrap();
    links.recv_async().await.unwrap();
    // Invalid files change nothing.
    fs::write(ours.host(), "no certificate").unwrap();
    manager.new_link(endpoint(&address, &options(&other))).await.unwrap();
}

#[test]
fn settings_that_would_weaken_it_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let directory = certify(place.path());
    for change in [
        ("enable_mtls", "false"),
        ("verify_name_on_connect", "false"),
        ("close_link_on_expiration", "true"),
        ("connect_certificate", "\"/elsewhere\""),
    ] {
        let why = TlsConfigurator.inspect_config(&settings(&directory, &[change])).unwrap_err().to_string();
        assert!(why.contains("enable_mtls is true"), "{change:?}: {why}");
    }
    let why = TlsConfigurator.inspect_config(&settings(&CertificateDir::new("/etc/a;b"), &[])).unwrap_err().to_string();
    assert!(why.contains("'/etc/a;b"), "{why}");
    assert_eq!(TlsConfigurator.inspect_config(&Config::default()).unwrap(), "");
}

struct Without(Mutex<Option<&'static str>>);

impl HostRule for Without {
    fn refusal(&self, host: &str, _: SocketAddr, _: bool) -> Option<String> {
        (*self.0.lock().unwrap() == Some(host)).then(|| "as the test wants".to_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_shut_out_loses_its_link_and_gets_no_other() {
    let place = tempfile::tempdir().unwrap();
    let directory = certify(place.path());
    let rule = Arc::new(Without(Mutex::new(None)));
    let asked: Arc<dyn HostRule> = rule.clone();
    ask_for_hosts(&directory.host(), &asked);
    let (near, far) = pair("127.0.0.1:0", &directory).await;
    near.write_all(b"a", None).await.unwrap();
    far.read_exact(&mut [0], None).await.unwrap();
    *rule.0.lock().unwrap() = Some("localhost");
    // Nothing more is sent: the link ends by itself.
    let why = far.read_exact(&mut [0], None).await.unwrap_err().to_string();
    assert!(why.contains("shut out"), "{why}");
    drop(far);
    let (accepted, links) = flume::bounded(1);
    let manager = LinkManagerUnicastTls::new(accepted);
    let options = TlsConfigurator.inspect_config(&settings(&directory, &[])).unwrap();
    let locator = manager.new_listener(endpoint("127.0.0.1:0", &options)).await.unwrap();
    let refused = manager.new_link(endpoint(locator.address().as_str(), &options)).await;
    // Both ends refuse, because both show this certificate.
    assert!(refused.unwrap_err().to_string().contains("as the test wants") && links.is_empty());
}
