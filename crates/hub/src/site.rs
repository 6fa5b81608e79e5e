//! The hosts of a site: each hub's node reports its host, clock, disk and links with the service `site/host`.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use tampu_bus::{
    BusError, CallError, Participant,
    access::Verb,
    clock::discipline,
    connect::Node,
    engine::{Guard, LinkTraffic},
    service::{Limits, Permission, Request, call, serve},
};
use tampu_types::{ClockState, Incarnation, TopicName};
use tampu_workers::host::host_name;

use crate::clock;

pub mod gather;
pub mod health;
pub mod streams;

/// The service that reports a host.
pub const SERVICE: &str = "site/host";

/// Questions from which the one with the shortest way is taken for the offset of a clock.
const TRIES: usize = 4;

/// A host as its own node sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostReport {
    /// Name of the host in its system.
    pub host: String,
    /// Name that its certificate proves, if certificates prove names.
    pub proved: Option<String>,
    /// Identity of the running system, which changes with each boot, as 8 hexadecimal digits.
    pub boot: String,
    /// Release of its hub.
    pub version: String,
    /// Number of the node's process.
    pub pid: u32,
    /// Time since the node's start, s.
    pub up: u64,
    /// Time of the host's clock when it answered, in ns since 1970 (UTC).
    pub time_ns: i64,
    /// State of the clock: `synchronised`, `free`, `stepped` or `unknown`.
    pub clock: String,
    /// Error of the clock as its kernel reports it, ns.
    pub clock_error_ns: Option<u64>,
    /// Processes of this host that are connected to the node.
    pub processes: usize,
    /// Other nodes that are connected to it.
    pub nodes: usize,
    /// Network addresses at which it listens.
    pub listens: Vec<String>,
    /// Engine of its bus; empty in reports of earlier releases.
    pub engine: String,
    /// Its links to other hosts.
    pub links: Vec<LinkReport>,
    /// Disk of the hub's data; `None` in reports of other releases, or if the kernel does not report it.
    pub disk: Option<DiskReport>,
}

/// The disk of a hub's data.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskReport {
    /// Directory of the data.
    pub path: String,
    /// Bytes that programs may still write.
    pub free: u64,
    /// Size in bytes.
    pub size: u64,
}

impl DiskReport {
    /// Looks at the disk where this directory is, or would be made.
    fn of(path: &Path) -> Option<DiskReport> {
        let there = path.ancestors().find(|above| above.is_dir())?;
        let stat = rustix::fs::statvfs(there).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        Some(DiskReport { path: path.display().to_string(), free: bytes(stat.f_bavail), size: bytes(stat.f_blocks) })
    }
}

/// A link between two hosts as one end sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkReport {
    /// Name in the other end's certificate.
    pub host: Option<String>,
    /// Address of this end.
    pub own: String,
    /// Address of the other end.
    pub other: String,
    /// Bytes sent so far, before encryption.
    pub sent: u64,
    /// Bytes received so far, after decryption.
    pub received: u64,
    /// Age of the link, ms.
    pub age_ms: u64,
}

impl From<LinkTraffic> for LinkReport {
    fn from(link: LinkTraffic) -> LinkReport {
        LinkReport {
            host: link.host,
            own: link.own.to_string(),
            other: link.other.to_string(),
            sent: link.sent,
            received: link.received,
            age_ms: link.age.as_millis() as u64,
        }
    }
}

/// The answer of a host, with what the question measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenHost {
    /// The answering process.
    pub from: Incarnation,
    /// Report of the host.
    pub report: HostReport,
    /// Time that the host's clock is ahead of this one's, ns.
    pub offset_ns: i64,
    /// Time of the question and its answer together, ns. The offset is within half of it.
    pub way_ns: u64,
}

/// Answers the service for this node, whose hub keeps its data in this directory.
pub(crate) fn serve_report(participant: &Participant, node: &Arc<Node>, data: PathBuf) -> Result<Guard, BusError> {
    let (node, boot, started) = (Arc::downgrade(node), participant.incarnation().boot, Instant::now());
    let answer = move |request: Request| {
        // A node that has ended answers no more.
        let Some(node) = node.upgrade() else { return };
        let discipline = discipline::of_this_host();
        let (processes, nodes) = node.connections();
        request.answer(&HostReport {
            host: host_name(),
            proved: node.host().map(str::to_owned),
            boot: format!("{boot:08x}"),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            up: started.elapsed().as_secs(),
            time_ns: clock::now().0,
            clock: clock_word(discipline.state).to_owned(),
            clock_error_ns: discipline.error.map(|error| error.as_nanos() as u64),
            processes,
            nodes,
            listens: node.addresses(),
            engine: node.engine_name().to_owned(),
            links: node.links().into_iter().map(LinkReport::from).collect(),
            disk: DiskReport::of(&data),
        });
    };
    let permission = Permission::Verb(participant.access(), Verb::Read);
    serve(participant, &TopicName::new(SERVICE)?, permission, &Limits::inline(), answer)
}

fn clock_word(state: ClockState) -> &'static str {
    match state {
        ClockState::Synchronised => "synchronised",
        ClockState::Free => "free",
        ClockState::Stepped => "stepped",
        ClockState::Unknown => "unknown",
    }
}

/// Asks all nodes for their hosts, several times for the offsets of their clocks. Nodes that do not answer in time are
/// missing.
pub fn ask(participant: &Participant, timeout: Duration) -> Result<Vec<SeenHost>, CallError> {
    let mut seen: Vec<SeenHost> = Vec::new();
    for _ in 0..TRIES {
        let (asked, asked_at) = (Instant::now(), clock::now());
        for part in call(participant, SERVICE, "", timeout)? {
            let way = asked.elapsed();
            // A node of another release, or the end of a question that somebody did not answer.
            let Ok(part) = part else { continue };
            let Some(report) = part.content.ok().and_then(|content| serde_json::from_slice::<HostReport>(&content).ok()) else {
                continue;
            };
            let middle = asked_at.0 + (way.as_nanos() / 2) as i64;
            let host = SeenHost { from: part.from, offset_ns: report.time_ns - middle, way_ns: way.as_nanos() as u64, report };
            match seen.iter_mut().find(|known| known.from == host.from) {
                Some(known) if known.way_ns <= host.way_ns => known.report = host.report,
                Some(known) => *known = host,
                None => seen.push(host),
            }
        }
    }
    seen.sort_by(|a, b| (&a.report.host, a.from).cmp(&(&b.report.host, b.from)));
    Ok(seen)
}
