//! The cost of TLS between hosts: samples from a node to a process that reaches it over TCP, plain and by TLS in turn.
//!
//! ```text
//! encryption_cost [SECONDS]
//! ```

use std::{
    net::TcpListener,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant, SystemTime},
};

use tampu_bus::{
    Event, Participant, Qos, QosTable, ReaderQos, TypeTag,
    connect::{Encryption, Endpoint, Key, Lan, Node, NodeSettings, Settings},
};
use tampu_tls::{Authority, CertificateDir, HostNames, KeyPairChoice};
use tampu_types::{Domain, Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Turns of each way; the best one counts, because other load can only cost time.
const TURNS: usize = 3;

fn main() -> Outcome<()> {
    let seconds: f64 = std::env::args().nth(1).map_or(Ok(2.0), |text| text.parse())?;
    let dir = tempfile::tempdir()?;
    let certificates = CertificateDir::new(dir.path().join("cert"));
    let authority = Authority::create(&certificates, "bench", SystemTime::now())?;
    authority.issue(&certificates, &HostNames::new("archive", &[])?, KeyPairChoice::New, SystemTime::now())?;
    println!("{:>8}  {:>12}  {:>12}  {:>5}", "bytes", "plain MB/s", "TLS MB/s", "ratio");
    for size in [200, 1_000, 10_000, 60_000] {
        let mut best = [0.0_f64; 2];
        for _ in 0..TURNS {
            for (best, encryption) in best.iter_mut().zip([Encryption::LoopbackOnly, Encryption::Tls(certificates.clone())]) {
                *best = best.max(measure(encryption, size, seconds)?);
            }
        }
        println!("{size:>8}  {:>12.1}  {:>12.1}  {:>5.2}", best[0] / 1e6, best[1] / 1e6, best[1] / best[0]);
    }
    Ok(())
}

/// Returns the bytes a second that arrive.
fn measure(encryption: Encryption, size: usize, seconds: f64) -> Outcome<f64> {
    let (here, there) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let (domain, key) = (Domain::new("bench")?, Key::new("a key of the bench")?);
    let address: Endpoint = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string().parse()?;
    let process = Settings::isolated(here.path()).in_domain(domain.clone());
    let node = Node::start(NodeSettings {
        listen: vec![address.clone()],
        key: Some(key.clone()),
        encryption: encryption.clone(),
        ..NodeSettings::new(process)
    })?;
    let lan = Some(Lan { key, direct: None, encryption });
    let elsewhere = Settings { hub: Some(address), lan, ..Settings::isolated(there.path()) }.in_domain(domain.clone());
    let writer = Participant::on(node.engine()?, domain, SourceName::new("writer")?, QosTable::default())?;
    let reader = Participant::open(elsewhere, SourceName::new("reader")?)?;
    let mut reader = reader.reader(&TopicFilter::new("flow")?, &PartitionFilter::All, ReaderQos::default())?;
    let wait = Duration::from_secs(1);
    let qos = Qos { credit: 1 << 20, max_wait: wait, wait_period: wait, ..Qos::default() };
    let writer = writer.writer(&TopicName::new("flow")?, &Partition::everybody(), TypeTag::OCTETS, qos)?;
    while writer.readers().is_empty() {
        std::thread::yield_now();
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let sample = vec![7; size];
            while !over.load(Ordering::Relaxed) {
                if writer.write(&sample).is_err() {
                    break;
                }
            }
        });
        let (mut count, mut begun) = (0_u64, None);
        loop {
            let now = Instant::now();
            if begun.is_some_and(|begun: Instant| (now - begun).as_secs_f64() >= seconds) {
                break;
            }
            if let Some(Event::Sample(_)) = reader.next(Duration::from_millis(200)) {
                begun.get_or_insert(now);
                count += 1;
            }
        }
        let took = begun.map_or(seconds, |begun| begun.elapsed().as_secs_f64());
        over.store(true, Ordering::Relaxed);
        // The writer may wait for room.
        while reader.next(Duration::from_millis(50)).is_some() {}
        Ok((count * size as u64) as f64 / took)
    })
}
