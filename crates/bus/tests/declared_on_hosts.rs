//! Declarations of a host's processes that the router of another host hears of.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use tampu_bus::{
    Participant, QosTable, Reader, ReaderQos,
    clock::Gate,
    connect::{Encryption, Key, Node, NodeSettings, Settings},
};
use tampu_tls::{Authority, CertificateDir, HostNames, KeyPairChoice};
use tampu_types::{Domain, PartitionFilter, SourceName, TopicFilter};
use zenoh::{Config, Session, Wait};

/// Longer than what it waits for ever takes, because machines are busy.
const PATIENCE: Duration = Duration::from_secs(60);
const KEY: &str = "between the hosts";

fn domain() -> Domain {
    Domain::new("lab").unwrap()
}

fn node(run: &Path, encryption: Encryption) -> Node {
    let settings = NodeSettings {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        key: Some(Key::new(KEY).unwrap()),
        encryption,
        ..NodeSettings::new(Settings::isolated(run).in_domain(domain()))
    };
    Node::start(settings).unwrap()
}

/// Opens the bare router of another host, which shows the declarations that it knows.
fn other_router(node: &Node, certificates: Option<&CertificateDir>) -> Session {
    let quoted = |text: &str| format!("\"{text}\"");
    let scheme = if certificates.is_some() { "tls" } else { "tcp" };
    let mut settings = vec![
        ("mode", quoted("router")),
        ("listen/endpoints", "[]".to_owned()),
        ("connect/endpoints", format!("[\"{scheme}/{}\"]", node.addresses()[0])),
        ("connect/timeout_ms", "-1".to_owned()),
        ("connect/exit_on_failure", "false".to_owned()),
        ("scouting/multicast/enabled", "false".to_owned()),
        ("adminspace/enabled", "true".to_owned()),
        ("transport/auth/usrpwd/user", quoted("lab")),
        ("transport/auth/usrpwd/password", quoted(KEY)),
    ];
    if let Some(directory) = certificates {
        let path = |path: PathBuf| quoted(path.to_str().unwrap());
        let (certificate, key) = (path(directory.host()), path(directory.host_key()));
        settings.extend([
            ("transport/link/tls/root_ca_certificate", path(directory.authority())),
            ("transport/link/tls/enable_mtls", "true".to_owned()),
            ("transport/link/tls/listen_certificate", certificate.clone()),
            ("transport/link/tls/listen_private_key", key.clone()),
            ("transport/link/tls/connect_certificate", certificate),
            ("transport/link/tls/connect_private_key", key),
            ("transport/link/tls/verify_name_on_connect", "true".to_owned()),
            ("transport/link/tls/close_link_on_expiration", "false".to_owned()),
        ]);
    }
    let mut config = Config::default();
    settings.iter().for_each(|(name, value)| config.insert_json5(name, value).unwrap());
    zenoh::open(config).wait().unwrap()
}

/// Returns the subscriptions and services that it has heard of, without the start of all keys.
fn heard(router: &Session) -> BTreeSet<String> {
    let of_kind = |kind: &str| {
        let replies = router.get(format!("@/{}/router/{kind}/**", router.zid())).wait().unwrap();
        let start = format!("/{kind}/tampu/lab/");
        let key = |reply: zenoh::query::Reply| {
            let key = reply.result().ok()?.key_expr().as_str().split_once(&start)?.1.to_owned();
            Some(key)
        };
        std::iter::from_fn(|| replies.recv().ok()).filter_map(key).collect::<Vec<_>>()
    };
    ["subscriber", "queryable"].into_iter().flat_map(of_kind).collect()
}

/// Starts this many processes that read the same topics, and one topic each.
fn processes(node: &Node, numbers: std::ops::Range<u32>) -> Vec<(Participant, [Reader; 2])> {
    let start = |number: u32| {
        let engine = node.client_settings().open().unwrap();
        let source = SourceName::new(format!("process {number}")).unwrap();
        let participant = Participant::on(engine, domain(), source, QosTable::default()).unwrap();
        let readers = ["log/**".to_owned(), format!("last/{number}")].map(|topics| {
            let filter = TopicFilter::new(topics).unwrap();
            participant.reader(&filter, &PartitionFilter::All, ReaderQos::default()).unwrap()
        });
        (participant, readers)
    };
    numbers.map(start).collect()
}

/// Waits until the router has heard of everything of these processes, and returns what is not of one alone.
fn common(router: &Session, processes: u32) -> BTreeSet<String> {
    let end = Instant::now() + PATIENCE;
    loop {
        let heard = heard(router);
        let (last, rest): (BTreeSet<String>, _) = heard.into_iter().partition(|key| key.starts_with("d/*/last/"));
        if last.len() == processes as usize {
            return rest;
        }
        assert!(Instant::now() < end, "heard of {} processes: {last:?}", last.len());
        Gate::default().wait_host(0, Duration::from_millis(20));
    }
}

fn check(node: &Node, certificates: Option<&CertificateDir>, host: &str) {
    let router = other_router(node, certificates);
    let _two = processes(node, 0..2);
    let of_two = common(&router, 2);
    let _ten = processes(node, 2..12);
    assert_eq!(common(&router, 12), of_two, "further processes with the same wishes declare nothing there");
    let boot = tampu_bus::host::boot();
    for of_all in [format!("c/*/{host}/{boot:08x}$*"), format!("q/*/{host}/{boot:08x}$*/**")] {
        assert!(of_two.contains(&of_all), "{of_two:?}");
    }
    let kinds: BTreeSet<&str> = of_two.iter().filter_map(|key| key.split('/').next()).collect();
    assert_eq!(kinds, BTreeSet::from(["c", "d", "q"]), "{of_two:?}");
}

#[test]
fn processes_declare_nothing_of_their_own_on_other_hosts() {
    let directory = tempfile::tempdir().unwrap();
    check(&node(directory.path(), Encryption::None), None, "-");
}

#[test]
fn processes_declare_nothing_of_their_own_on_hosts_with_certificates() {
    let directory = tempfile::tempdir().unwrap();
    let authority = CertificateDir::new(directory.path().join("authority"));
    let authority = Authority::create(&authority, "lab", SystemTime::now()).unwrap();
    let [hub, mast] = ["hub", "mast"].map(|name| {
        let certificates = CertificateDir::new(directory.path().join(name));
        let names = HostNames::new(name, &["127.0.0.1".to_owned()]).unwrap();
        authority.issue(&certificates, &names, KeyPairChoice::New, SystemTime::now()).unwrap();
        certificates
    });
    let run = directory.path().join("run");
    check(&node(&run, Encryption::Tls(hub)), Some(&mast), "hub");
}
