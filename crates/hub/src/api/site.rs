//! The site: hosts, processes, topics, readers, spools, and findings about them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tampu_bus::access::Verb;
use tampu_types::Time;

use super::{
    call::{Answer, Call, GET, Route, ok},
    on_bus::service,
};
use crate::{
    clock::now,
    http::{admission::WorkKind, problem::Problem, route::json_of},
    site::{
        SERVICE, SeenHost,
        gather::{Needs, Picture},
        health::{self, Grade},
        streams::{self, StreamReader, TopicTotals},
    },
};

/// The route of the site.
pub const ROUTES: &[Route] = &[Route {
    path: "/site",
    id: "showSite",
    what: "Asks all hosts and processes for their state, as 'tampu site' and 'tampu doctor --site' do",
    query: &[("all_readers", "boolean", "lists all readers of streams; without it those that are behind or have lost something")],
    gives: (200, json_of::<SiteView>()),
    work: WorkKind::Search,
    act: show,
    ..GET
}];

/// The state of the site.
#[derive(Debug, Serialize, JsonSchema)]
struct SiteView {
    /// Time of the answer by this hub's clock.
    time: String,
    hosts: Vec<SiteHost>,
    processes: Vec<SiteProcess>,
    topics: Vec<TopicTotals>,
    readers: Vec<StreamReader>,
    /// Processes that did not answer.
    silent: Vec<SilentProcess>,
    /// Reports of the nodes' spools (spec/log-spool.md).
    spools: Vec<Value>,
    findings: Vec<SiteFinding>,
}

/// A host with a node.
#[derive(Debug, Serialize, JsonSchema)]
struct SiteHost {
    host: String,
    /// Name that its certificate proves.
    #[serde(skip_serializing_if = "Option::is_none")]
    proved: Option<String>,
    boot: String,
    version: String,
    pid: u32,
    /// Seconds since the node's start.
    up: u64,
    /// Its clock when it answered.
    time: String,
    /// synchronised, free, stepped or unknown.
    clock: String,
    clock_error_ns: Option<u64>,
    /// Time that its clock is ahead of this hub's, ns, as text.
    offset_ns: String,
    /// The offset is within this, ns.
    offset_error_ns: u64,
    processes: usize,
    nodes: usize,
    listens: Vec<String>,
    links: Vec<SiteLink>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disk: Option<SiteDisk>,
}

/// A link to another host.
#[derive(Debug, Serialize, JsonSchema)]
struct SiteLink {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    own: String,
    other: String,
    sent: u64,
    received: u64,
    age_ms: u64,
}

/// The disk of a hub's data.
#[derive(Debug, Serialize, JsonSchema)]
struct SiteDisk {
    path: String,
    free: u64,
    size: u64,
}

/// A process on the bus.
#[derive(Debug, Serialize, JsonSchema)]
struct SiteProcess {
    source: String,
    incarnation: String,
    host: String,
    pid: u32,
    version: String,
    /// Number of its streams.
    writes: usize,
    /// Number of its readers.
    reads: usize,
    /// Samples that its readers have lost.
    lost: u64,
    /// Time that its writers have waited for readers, ns, as text.
    waited_ns: String,
}

/// A process that did not answer.
#[derive(Debug, Serialize, JsonSchema)]
struct SilentProcess {
    source: String,
    why: String,
}

/// A finding about the site.
#[derive(Debug, Serialize, JsonSchema)]
struct SiteFinding {
    /// hosts, versions, clocks, disks, spools, processes or readers.
    subject: &'static str,
    /// ok, warn or fail.
    grade: &'static str,
    text: String,
    #[serde(skip_serializing_if = "str::is_empty", default)]
    way_out: &'static str,
}

impl SiteHost {
    fn of(seen: SeenHost) -> SiteHost {
        let report = seen.report;
        let link = |link: crate::site::LinkReport| SiteLink {
            host: link.host,
            own: link.own,
            other: link.other,
            sent: link.sent,
            received: link.received,
            age_ms: link.age_ms,
        };
        SiteHost {
            host: report.host,
            proved: report.proved,
            boot: report.boot,
            version: report.version,
            pid: report.pid,
            up: report.up,
            time: Time(report.time_ns).to_rfc3339(),
            clock: report.clock,
            clock_error_ns: report.clock_error_ns,
            offset_ns: seen.offset_ns.to_string(),
            offset_error_ns: seen.way_ns / 2,
            processes: report.processes,
            nodes: report.nodes,
            listens: report.listens,
            links: report.links.into_iter().map(link).collect(),
            disk: report.disk.map(|disk| SiteDisk { path: disk.path, free: disk.free, size: disk.size }),
        }
    }
}

fn show(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let participant = call.need_on_bus(Verb::Read, &service(SERVICE))?;
    let all = call.flag("all_readers")?;
    let needs = Needs { states: true, rates: false, hosts: true, spools: true, itself: true };
    let picture = Picture::take(participant, needs, std::time::Duration::ZERO, &|_| ())?;
    let process = |process: &crate::site::gather::Process| SiteProcess {
        source: process.info.source.to_string(),
        incarnation: process.info.incarnation.to_string(),
        host: picture.host_of(process),
        pid: process.state.pid,
        version: process.state.version.clone(),
        writes: process.state.writers.len(),
        reads: process.state.readers.len(),
        lost: process.state.readers.iter().map(|reader| reader.lost).sum(),
        waited_ns: process.state.writers.iter().map(|writer| writer.waited_ns).sum::<u64>().to_string(),
    };
    let findings = health::findings(&picture).into_iter().map(|(subject, grade, text, way_out)| SiteFinding {
        subject,
        grade: match grade {
            Grade::Ok => "ok",
            Grade::Warn => "warn",
            Grade::Fail => "fail",
        },
        text,
        way_out,
    });
    let view = SiteView {
        time: now().to_rfc3339(),
        processes: picture.processes.iter().map(process).collect(),
        topics: streams::topics(&picture, false),
        readers: streams::readers(&picture, all),
        findings: findings.collect(),
        silent: picture.silent.iter().map(|one| SilentProcess { source: one.source.clone(), why: one.why.clone() }).collect(),
        hosts: picture.hosts.into_iter().map(SiteHost::of).collect(),
        spools: picture.spools,
    };
    ok(&view)
}
