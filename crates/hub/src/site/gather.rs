//! Asking the hosts and processes of a domain.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use tampu_bus::{Participant, ParticipantState, SourceInfo, StateOf, service::CallError};
use tampu_types::Incarnation;

use super::{self as site, SeenHost};

/// Time limit for the answer of a host or a process.
const PATIENCE: Duration = Duration::from_secs(3);

/// Parts of the picture that a table needs.
#[derive(Debug, Clone, Copy)]
pub struct Needs {
    /// The states of all processes.
    pub states: bool,
    /// A second look, from which rates are computed.
    pub rates: bool,
    /// The reports of the hosts.
    pub hosts: bool,
    /// The reports of the spools.
    pub spools: bool,
    /// The asking process too: a hub is part of the site, a command is not.
    pub itself: bool,
}

/// A process and its state.
#[derive(Debug, Clone)]
pub struct Process {
    pub info: SourceInfo,
    /// Proved name of its host.
    pub host: Option<String>,
    pub state: ParticipantState,
}

/// A process that did not answer.
#[derive(Debug, Clone)]
pub struct Silent {
    pub source: String,
    pub why: String,
}

/// State of a domain as its hosts and processes report it.
#[derive(Debug, Default)]
pub struct Picture {
    pub hosts: Vec<SeenHost>,
    pub processes: Vec<Process>,
    pub silent: Vec<Silent>,
    /// Reports of the hosts' spools, each a `SpoolReport` of its release as JSON.
    pub spools: Vec<serde_json::Value>,
    /// The first look, for rates.
    pub earlier: Option<Earlier>,
}

/// The counters of an earlier look.
#[derive(Debug, Default)]
pub struct Earlier {
    ago: Duration,
    hosts: Vec<SeenHost>,
    /// Samples and bytes of each stream.
    streams: HashMap<(Incarnation, u32), (u64, u64)>,
}

impl Picture {
    /// Asks all hosts and processes; twice if rates are needed, after `wait` has waited for the interval.
    pub fn take(
        participant: &Participant,
        needs: Needs,
        interval: Duration,
        wait: &dyn Fn(Duration),
    ) -> Result<Picture, CallError> {
        // Processes that were here before this command are known when their readers are.
        participant.meet_readers(PATIENCE);
        let begun = Instant::now();
        let first = Picture::look(participant, needs)?;
        if !needs.rates {
            return Ok(first);
        }
        let looked = begun.elapsed();
        wait(interval);
        let ago = begun.elapsed() - looked / 2;
        let begun = Instant::now();
        let mut second = Picture::look(participant, needs)?;
        let streams = first.processes.iter().flat_map(|process| {
            let of = process.info.incarnation;
            process.state.writers.iter().map(move |writer| ((of, writer.stream), (writer.samples, writer.bytes)))
        });
        let ago = ago + begun.elapsed() / 2;
        second.earlier = Some(Earlier { ago, streams: streams.collect(), hosts: first.hosts });
        Ok(second)
    }

    fn look(participant: &Participant, needs: Needs) -> Result<Picture, CallError> {
        let mut picture = Picture::default();
        if needs.hosts {
            picture.hosts = site::ask(participant, PATIENCE)?;
        }
        if needs.spools {
            picture.spools = tampu_log::spool::reports(participant, PATIENCE)?;
        }
        if needs.states {
            let own = participant.incarnation();
            let is_shown = |of: &StateOf| needs.itself || of.process.incarnation != own;
            for of in participant.states(PATIENCE).into_iter().filter(is_shown) {
                match of.state {
                    Ok(state) => picture.processes.push(Process { info: of.process, host: of.host, state }),
                    Err(why) => {
                        picture.silent.push(Silent { source: of.process.source.to_string(), why: why.to_string() });
                    }
                }
            }
            picture.processes.sort_by(|a, b| {
                (&a.host, &a.info.source, a.info.incarnation).cmp(&(&b.host, &b.info.source, b.info.incarnation))
            });
        }
        Ok(picture)
    }

    /// Returns the name of the host of a process: the proved one, or that of the node with the same boot.
    pub fn host_of(&self, process: &Process) -> String {
        let boot = format!("{:08x}", process.info.incarnation.boot);
        let of_node = || self.hosts.iter().find(|host| host.report.boot == boot).map(|host| host.report.host.clone());
        process.host.clone().or_else(of_node).unwrap_or(boot)
    }

    /// Returns samples and bytes a second of a stream, if it existed at both looks.
    pub fn rate(&self, of: Incarnation, stream: u32, samples: u64, bytes: u64) -> Option<(f64, f64)> {
        let earlier = self.earlier.as_ref()?;
        let (samples_before, bytes_before) = earlier.streams.get(&(of, stream))?;
        let a_second = |now: u64, before: u64| now.saturating_sub(before) as f64 / earlier.ago.as_secs_f64();
        Some((a_second(samples, *samples_before), a_second(bytes, *bytes_before)))
    }

    /// Returns the bytes a second that a link sent and received, if it existed at both looks.
    pub fn link_rate(&self, host: &SeenHost, link: &site::LinkReport) -> Option<(f64, f64)> {
        let earlier = self.earlier.as_ref()?;
        let before = earlier.hosts.iter().find(|before| before.from == host.from)?;
        let before = before.report.links.iter().find(|before| (&before.own, &before.other) == (&link.own, &link.other))?;
        let a_second = |now: u64, before: u64| now.saturating_sub(before) as f64 / earlier.ago.as_secs_f64();
        Some((a_second(link.sent, before.sent), a_second(link.received, before.received)))
    }
}
