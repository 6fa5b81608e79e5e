//! The checks of `tampu doctor --site`: hosts that do not fit together, and readers that lose.

use std::{collections::BTreeSet, time::Duration};

use tampu_bus::{Participant, service::CallError};

use super::{
    gather::{Needs, Picture},
    tables::{is_worth_a_look, milliseconds},
};
use crate::{interrupt::Interrupt, plural::counted};

/// Difference of clocks in ns from which the sequence of records of two hosts is in doubt.
const APART: u64 = 10_000_000;
/// Difference of clocks in ns that is a fault.
const FAR_APART: u64 = 1_000_000_000;

/// Grade of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grade {
    Ok,
    Warn,
    Fail,
}

/// One finding: its subject, how bad it is, what was found, and the way out.
pub type Finding = (&'static str, Grade, String, &'static str);

/// Looks at the whole site.
pub fn check(participant: &Participant, interrupt: &Interrupt) -> Result<Vec<Finding>, CallError> {
    let needs = Needs { states: true, rates: false, hosts: true };
    let picture = Picture::take(participant, needs, Duration::ZERO, interrupt)?;
    Ok(findings(&picture))
}

fn findings(picture: &Picture) -> Vec<Finding> {
    let mut found = hosts(picture);
    found.extend(versions(picture));
    found.extend(clocks(picture));
    found.extend(processes(picture));
    found.extend(readers(picture));
    found
}

fn hosts(picture: &Picture) -> Vec<Finding> {
    if picture.hosts.is_empty() {
        let way_out = "start a hub on each host with 'tampu up'; its role node connects the host's processes";
        return vec![("hosts", Grade::Warn, "no host has a node".to_owned(), way_out)];
    }
    let names: Vec<&str> = picture.hosts.iter().map(|host| host.report.proved.as_deref().unwrap_or(&host.report.host)).collect();
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
    let of_hosts = picture.hosts.iter().map(|host| host.report.version.as_str());
    let versions: BTreeSet<&str> =
        of_hosts.chain(picture.processes.iter().map(|process| process.state.version.as_str())).collect();
    let list = || versions.iter().copied().collect::<Vec<_>>().join(", ");
    match versions.len() {
        0 => Vec::new(),
        1 => vec![("versions", Grade::Ok, format!("everything is {}", list()), "")],
        _ => vec![("versions", Grade::Warn, format!("several: {}", list()), "releases work together, but update the older ones")],
    }
}

fn clocks(picture: &Picture) -> Vec<Finding> {
    let mut found = Vec::new();
    for host in &picture.hosts {
        let name = host.report.proved.as_deref().unwrap_or(&host.report.host);
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
    let (mut lagging, mut lost, mut all) = (BTreeSet::new(), 0, 0_u64);
    for reader in picture.processes.iter().flat_map(|process| &process.state.writers).flat_map(|writer| &writer.readers) {
        all += 1;
        if is_worth_a_look(reader) && reader.state == "lagging" {
            lagging.insert(reader.source.as_str());
        }
        lost += reader.lost;
    }
    let way_out = "'tampu site readers' lists them; a viewer that is stopped or too slow is no fault of its writers";
    if lost > 0 {
        return vec![(
            "readers",
            Grade::Warn,
            format!("readers of present streams have lost {}", counted(lost, "sample")),
            way_out,
        )];
    }
    if !lagging.is_empty() {
        let names: Vec<&str> = lagging.into_iter().take(5).collect();
        return vec![("readers", Grade::Warn, format!("far behind: {}", names.join(", ")), way_out)];
    }
    vec![("readers", Grade::Ok, format!("{} of streams, none far behind, nothing lost", counted(all, "reader")), "")]
}

#[cfg(test)]
mod tests {
    use tampu_hub::site::{HostReport, SeenHost};
    use tampu_types::Incarnation;

    use super::*;

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
    fn clocks_and_versions_that_differ_are_found() {
        let hosts = vec![host("a", "1.0.0", 0), host("b", "1.1.0", 50_000_000), host("c", "1.1.0", -3_000_000_000)];
        let picture = Picture { hosts, ..Picture::default() };
        let bad: Vec<_> = grades(&picture).into_iter().filter(|(_, grade)| *grade != Grade::Ok).collect();
        assert_eq!(bad, [("versions", Grade::Warn), ("clocks", Grade::Warn), ("clocks", Grade::Fail)]);
        // A slow answer proves nothing.
        let slow = SeenHost { way_ns: 200_000_000, ..host("b", "1.0.0", 50_000_000) };
        assert!(grades(&Picture { hosts: vec![slow], ..Picture::default() }).iter().all(|(_, grade)| *grade == Grade::Ok));
    }
}
