//! The checks of `tampu doctor --site`: hosts that do not fit together, readers that lose, disks and spools that fill.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{
    SeenHost,
    gather::{Needs, Picture},
};
use crate::{clock::now, plural::counted};
use tampu_bus::{FollowerReport, Participant, service::CallError};

mod finding;
mod spools;

use finding::few;
pub use finding::{Finding, Grade};

/// Difference of clocks in ns from which the sequence of records of two hosts is in doubt.
const APART: u64 = 10_000_000;
/// Difference of clocks in ns that is a fault.
const FAR_APART: u64 = 1_000_000_000;

/// Free space in bytes below which a disk is nearly full.
const LITTLE_SPACE: u64 = 2 << 30;
/// Free space in bytes that is used up within minutes.
const NO_SPACE: u64 = 100 << 20;
/// Samples behind from which a reader is far behind, whatever its writer calls it.
const FAR_BEHIND: u64 = 100_000;

/// Looks at the whole site.
pub fn check(participant: &Participant) -> Result<Vec<Finding>, CallError> {
    let needs = Needs { states: true, rates: false, hosts: true, spools: true, itself: false };
    let picture = Picture::take(participant, needs, Duration::ZERO, &|_| ())?;
    Ok(findings(&picture))
}

/// Returns the findings about a picture of the site.
pub fn findings(picture: &Picture) -> Vec<Finding> {
    let mut found = hosts(picture);
    found.extend(versions(picture));
    found.extend(engines(picture));
    found.extend(clocks(picture));
    found.extend(disks(picture));
    found.extend(spools::check(&picture.spools, now()));
    found.extend(processes(picture));
    found.extend(readers(picture));
    found
}

fn hosts(picture: &Picture) -> Vec<Finding> {
    if picture.hosts.is_empty() {
        let way_out = "start a hub on each host with 'tampu up'; its role node connects the host's processes";
        return vec![("hosts", Grade::Warn, "no host has a node".to_owned(), way_out)];
    }
    let names: Vec<&str> = picture.hosts.iter().map(name_of).collect();
    let mut found = vec![("hosts", Grade::Ok, format!("{}: {}", counted(names.len() as u64, "node"), names.join(", ")), "")];
    let boots: BTreeSet<String> = picture.hosts.iter().map(|host| host.report.boot.clone()).collect();
    let without: BTreeSet<String> = picture
        .processes
        .iter()
        .filter(|process| !boots.contains(&format!("{:08x}", process.info.incarnation.boot)))
        .map(|process| process.info.source.to_string())
        .collect();
    if !without.is_empty() {
        let names: Vec<String> = without.into_iter().take(5).collect();
        let way_out = "start a hub with the role node on their hosts: without one, their records have no shelter when they die";
        found.push(("hosts", Grade::Warn, format!("processes on hosts without a node: {}", names.join(", ")), way_out));
    }
    let alone = picture.hosts.len() > 1 && picture.hosts.iter().any(|host| host.report.nodes == 0);
    if alone {
        let way_out = "see its --peer, its --lan address and firewalls between the hosts";
        found.push(("hosts", Grade::Warn, "a node has no connection to another node".to_owned(), way_out));
    }
    found
}

fn versions(picture: &Picture) -> Vec<Finding> {
    // Hosts with a hub of each release, and hosts with any process of it.
    let mut versions: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for host in &picture.hosts {
        versions.entry(&host.report.version).or_default().insert(name_of(host).to_owned());
    }
    for process in &picture.processes {
        versions.entry(&process.state.version).or_default().insert(picture.host_of(process));
    }
    match versions.len() {
        0 => Vec::new(),
        1 => vec![("versions", Grade::Ok, format!("everything is {}", versions.into_keys().collect::<String>()), "")],
        _ => {
            let each = versions.into_iter().map(|(version, hosts)| format!("{version} on {}", few(&hosts)));
            let found = format!("several: {}", each.collect::<Vec<_>>().join("; "));
            vec![("versions", Grade::Warn, found, "releases work together, but update the older ones")]
        }
    }
}

/// Hosts with different engines do not get each other's samples.
fn engines(picture: &Picture) -> Vec<Finding> {
    let mut engines: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for host in picture.hosts.iter().filter(|host| !host.report.engine.is_empty()) {
        engines.entry(&host.report.engine).or_default().insert(name_of(host).to_owned());
    }
    if engines.len() < 2 {
        return Vec::new();
    }
    let each = engines.into_iter().map(|(engine, hosts)| format!("{engine} on {}", few(&hosts)));
    let found = format!("several, which do not carry each other's samples: {}", each.collect::<Vec<_>>().join("; "));
    vec![("engines", Grade::Fail, found, "start all hubs of the domain with the same --engine (setting engine)")]
}

fn clocks(picture: &Picture) -> Vec<Finding> {
    let mut found = Vec::new();
    for host in &picture.hosts {
        let name = name_of(host);
        // Only what is certain: the way of the question may have been slow in one direction.
        let apart = host.offset_ns.unsigned_abs().saturating_sub(host.way_ns / 2);
        let ahead = milliseconds(host.offset_ns as f64);
        let way_out = "run chrony, ntpd or ptp4l on both hosts";
        if apart >= FAR_APART {
            found.push(("clocks", Grade::Fail, format!("{name} is {ahead} ahead of this host"), way_out));
        } else if apart >= APART {
            found.push(("clocks", Grade::Warn, format!("{name} is {ahead} ahead of this host"), way_out));
        }
    }
    if found.is_empty() && !picture.hosts.is_empty() {
        let widest = picture.hosts.iter().map(|host| host.offset_ns.unsigned_abs()).max().unwrap_or(0);
        found.push(("clocks", Grade::Ok, format!("all within {} of this host's", milliseconds(widest as f64)), ""));
    }
    found
}

/// Looks at the disks of the hubs' data. The collector of a full one can keep nothing, and the spool of a full one neither.
fn disks(picture: &Picture) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut least: Option<(u64, &str)> = None;
    for host in &picture.hosts {
        let Some(disk) = &host.report.disk else { continue };
        let name = name_of(host);
        if least.is_none_or(|(free, _)| disk.free < free) {
            least = Some((disk.free, name));
        }
        let grade = match disk.free {
            free if free < NO_SPACE => Grade::Fail,
            free if free < LITTLE_SPACE => Grade::Warn,
            _ => continue,
        };
        let (free, size) = (gigabytes(disk.free), gigabytes(disk.size));
        let text = format!("{name} has {free} GB free of {size} GB for {}", disk.path);
        found.push(("disks", grade, text, "make room there, or set keep_gb, keep_days or min_free_gb of its collector"));
    }
    if let (true, Some((free, name))) = (found.is_empty(), least) {
        found.push(("disks", Grade::Ok, format!("the fullest, of {name}, has {} GB free", gigabytes(free)), ""));
    }
    found
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e9)
}

/// Returns the name by which a host is shown.
fn name_of(host: &SeenHost) -> &str {
    host.report.proved.as_deref().unwrap_or(&host.report.host)
}

fn processes(picture: &Picture) -> Vec<Finding> {
    let mut found = vec![("processes", Grade::Ok, format!("{} answered", picture.processes.len()), "")];
    if !picture.silent.is_empty() {
        let names: Vec<&str> = picture.silent.iter().take(5).map(|process| process.source.as_str()).collect();
        let text = format!("{} did not answer: {}", counted(picture.silent.len() as u64, "process"), names.join(", "));
        let way_out = "they hang, are stopped, have another release, or the rules of their hosts keep this one out";
        found.push(("processes", Grade::Warn, text, way_out));
    }
    found
}

fn readers(picture: &Picture) -> Vec<Finding> {
    let hosts: BTreeMap<_, _> =
        picture.processes.iter().map(|process| (process.info.incarnation, picture.host_of(process))).collect();
    let host_of = |reader: &FollowerReport| {
        reader.process.and_then(|process| hosts.get(&process).cloned()).unwrap_or_else(|| "an unknown host".to_owned())
    };
    // Of each host with readers that are far behind, their names and the samples that they have to read.
    let mut lagging: BTreeMap<String, (BTreeSet<String>, u64)> = BTreeMap::new();
    let (mut lost, mut losing, mut all) = (0, BTreeSet::new(), 0_u64);
    for reader in picture.processes.iter().flat_map(|process| &process.state.writers).flat_map(|writer| &writer.readers) {
        all += 1;
        if is_worth_a_look(reader) && (reader.state == "lagging" || reader.behind >= FAR_BEHIND) {
            let (names, behind) = lagging.entry(host_of(reader)).or_default();
            names.insert(reader.source.clone());
            *behind += reader.behind;
        }
        if reader.lost > 0 {
            lost += reader.lost;
            losing.insert(host_of(reader));
        }
    }
    let way_out = "'tampu site readers' lists them; a viewer that is stopped or too slow is no fault of its writers";
    let mut found = Vec::new();
    if lost > 0 {
        let text = format!("readers of present streams have lost {}, on {}", counted(lost, "sample"), few(&losing));
        found.push(("readers", Grade::Warn, text, way_out));
    }
    for (host, (names, behind)) in lagging {
        let text = format!("on {host} far behind, by {}: {}", counted(behind, "sample"), few(&names));
        found.push(("readers", Grade::Warn, text, way_out));
    }
    if !found.is_empty() {
        return found;
    }
    vec![("readers", Grade::Ok, format!("{} of streams, none far behind, nothing lost", counted(all, "reader")), "")]
}

/// Reports if a reader has not kept up. One without acknowledgements is never behind.
pub fn is_worth_a_look(reader: &FollowerReport) -> bool {
    reader.lost > 0 || reader.reliable && (reader.state != "live" || reader.behind > 0)
}

/// Writes a time in ns as milliseconds, a longer one as seconds.
pub fn milliseconds(ns: f64) -> String {
    if ns.abs() < 1e9 { format!("{:.3} ms", ns / 1e6) } else { format!("{:.1} s", ns / 1e9) }
}

#[cfg(test)]
mod tests {
    use tampu_bus::{ParticipantState, SourceInfo, WriterReport};
    use tampu_types::{Incarnation, SourceName};

    use super::{
        super::{DiskReport, HostReport, gather::Process},
        *,
    };

    fn host(name: &str, version: &str, offset_ns: i64) -> SeenHost {
        let report = HostReport { host: name.to_owned(), version: version.to_owned(), nodes: 1, ..HostReport::default() };
        SeenHost { from: Incarnation::default(), report, offset_ns, way_ns: 200_000 }
    }

    fn grades(picture: &Picture) -> Vec<(&'static str, Grade)> {
        findings(picture).into_iter().map(|(what, grade, ..)| (what, grade)).collect()
    }

    #[test]
    fn hosts_that_fit_together_are_ok() {
        let picture = Picture { hosts: vec![host("a", "1.0.0", 5_000), host("b", "1.0.0", -80_000)], ..Picture::default() };
        assert!(grades(&picture).iter().all(|(_, grade)| *grade == Grade::Ok), "{:?}", grades(&picture));
    }

    #[test]
    fn engines_that_differ_are_found() {
        let with = |name: &str, engine: &str| {
            let mut host = host(name, "0.1.0", 0);
            host.report.engine = engine.to_owned();
            host
        };
        let same = Picture { hosts: vec![with("a", "zmq"), with("b", "zmq"), with("c", "")], ..Picture::default() };
        assert_eq!(engines(&same), []);
        let other = Picture { hosts: vec![with("a", "zmq"), with("b", "other")], ..Picture::default() };
        let found = engines(&other);
        assert!(found[0].1 == Grade::Fail && found[0].2.ends_with("other on b; zmq on a"), "{found:?}");
    }

    #[test]
    fn clocks_and_versions_that_differ_are_found() {
        let hosts = vec![host("a", "1.0.0", 0), host("b", "1.1.0", 50_000_000), host("c", "1.1.0", -3_000_000_000)];
        let picture = Picture { hosts, ..Picture::default() };
        let bad: Vec<_> = grades(&picture).into_iter().filter(|(_, grade)| *grade != Grade::Ok).collect();
        assert_eq!(bad, [("versions", Grade::Warn), ("clocks", Grade::Warn), ("clocks", Grade::Fail)]);
        // A slow answer proves nothing.
        let slow = SeenHost { way_ns: 200_000_000, ..host("b", "1.0.0", 50_000_000) };
        assert!(grades(&Picture { hosts: vec![slow], ..Picture::default() }).iter().all(|(_, grade)| *grade == Grade::Ok));
    }

    #[test]
    fn releases_are_told_with_their_hosts() {
        let hosts = vec![host("a", "1.0.0", 0), host("b", "1.1.0", 0), host("c", "1.1.0", 0)];
        let found = versions(&Picture { hosts, ..Picture::default() });
        assert_eq!(found[0].2, "several: 1.0.0 on a; 1.1.0 on b, c");
    }

    #[test]
    fn disks_that_are_nearly_full_are_found() {
        let with = |name: &str, free: u64| {
            let disk = DiskReport { path: "/data".to_owned(), free, size: 100_000_000_000 };
            let mut host = host(name, "1.0.0", 0);
            host.report.disk = Some(disk);
            host
        };
        let hosts = vec![with("a", 50_000_000_000), with("b", 1_000_000_000), with("c", 20_000_000), host("old", "1.0.0", 0)];
        let found = disks(&Picture { hosts, ..Picture::default() });
        let texts: Vec<_> = found.iter().map(|(_, grade, text, _)| (*grade, text.as_str())).collect();
        assert_eq!(
            texts,
            [(Grade::Warn, "b has 1.0 GB free of 100.0 GB for /data"), (Grade::Fail, "c has 0.0 GB free of 100.0 GB for /data"),]
        );
        let roomy = disks(&Picture { hosts: vec![with("a", 50_000_000_000)], ..Picture::default() });
        assert_eq!((roomy[0].1, roomy[0].2.as_str()), (Grade::Ok, "the fullest, of a, has 50.0 GB free"));
    }

    #[test]
    fn readers_far_behind_and_losing_are_told_with_their_hosts() {
        let process = |number: u32, host: &str, writers| Process {
            info: SourceInfo {
                source: SourceName::new(format!("p{number}")).unwrap(),
                incarnation: Incarnation { boot: number, ..Incarnation::default() },
            },
            host: Some(host.to_owned()),
            state: ParticipantState { writers, ..ParticipantState::default() },
        };
        let reader = |number: u32, state: &str, behind, lost| FollowerReport {
            source: format!("p{number}"),
            process: Some(Incarnation { boot: number, ..Incarnation::default() }),
            reliable: true,
            state: state.to_owned(),
            behind,
            lost,
            ..FollowerReport::default()
        };
        let readers_of = vec![reader(1, "live", 0, 3), reader(2, "lagging", 500, 0), reader(2, "live", 200_000, 0)];
        let writer = WriterReport { readers: readers_of, ..WriterReport::default() };
        let processes = vec![process(0, "source", vec![writer]), process(1, "store", vec![]), process(2, "panel", vec![])];
        let found = readers(&Picture { processes, ..Picture::default() });
        let texts: Vec<_> = found.iter().map(|(.., text, _)| text.as_str()).collect();
        assert_eq!(
            texts,
            ["readers of present streams have lost 3 samples, on store", "on panel far behind, by 200500 samples: p2"]
        );
    }
}
