//! The list of metrics and their sources. `spec/metrics.md` has names and meanings; a test compares the two.

use std::{
    cmp::Reverse,
    sync::{Arc, OnceLock},
};

use tampu_bulk::transfers::{TransferCounts, Transfers};
use tampu_bus::{Participant, connect::Node, group::GroupReport};
use tampu_event::history::{HistoryReport, HistoryReporter};
use tampu_log::{
    collector::{
        latency::BOUNDS_US,
        router::TargetReport,
        status::{Report, SourceReport},
    },
    spool::{Doing, SourceSpool, Spool, SpoolReport},
};
use tampu_logbook::mail::{Outbox, outbox::MailReport};
use tampu_workers::WorkerCount;

use super::{
    logbook::logbook,
    text::{Text, seconds},
};
use crate::{
    book::report::BookReporter,
    certificates::CertificatesInUse,
    collecting::Collecting,
    gateway::GatewayReporter,
    inputs::{InputReport, Inputs},
    part::HubPart,
    roles::RoleReport,
};

/// The parts of the hub that the page reports.
pub(crate) struct Subjects {
    /// The hub itself, on the bus.
    pub participant: Participant,
    /// The one part that this process runs; none if it runs all of them.
    pub part: Option<HubPart>,
    /// The certificates that it uses.
    pub certificates: CertificatesInUse,
    /// Its node, if it has one.
    pub node: Option<Arc<Node>>,
    /// Its collector, if it has one.
    pub collecting: Option<Arc<Collecting>>,
    /// Its spool, if it has one.
    pub spool: Option<Arc<Spool>>,
    /// Bulk transfers, if the hub records them.
    pub transfers: Option<Arc<Transfers>>,
    /// Its history of events, if it has one.
    pub history: Option<HistoryReporter>,
    /// Inputs of other programs' logs.
    pub inputs: Arc<Inputs>,
    /// Its bridge to Tango, if it runs one.
    pub tango: Option<Arc<tampu_tango::Bridge>>,
    /// Its gateway, if it has one.
    pub gateway: Option<GatewayReporter>,
    /// The sender of mail of its logbook, which starts later.
    pub mail: OnceLock<Arc<Outbox>>,
    /// Its logbook, which starts later.
    pub book: OnceLock<BookReporter>,
    /// Sources that have series of their own.
    pub sources: usize,
}

impl Subjects {
    /// Returns the page with the current values.
    pub fn page(&self) -> String {
        let mut text = Text::default();
        if self.part.is_none_or(|part| part == HubPart::Metrics) {
            let domain = self.participant.domain().as_str();
            let labels = [("version", env!("CARGO_PKG_VERSION")), ("domain", domain)];
            text.family("tampu_build_info", "gauge", "Always 1; the labels have the version and the domain.").value(&labels, 1);
            let there = self.participant.sources().len();
            text.family("tampu_bus_participants", "gauge", "Processes, and parts of the hub, that are on the bus.")
                .value(&[], there);
        }
        text.family("tampu_certificate_seconds_left", "gauge", "Seconds until a certificate expires; negative afterwards.");
        for one in self.certificates.remaining() {
            text.value(&[("used_by", one.used_by), ("name", &one.name)], one.seconds);
        }
        if let Some(node) = &self.node {
            let (processes, nodes) = node.connections();
            text.family("tampu_node_processes", "gauge", "Processes connected to this host's node.").value(&[], processes);
            text.family("tampu_node_peers", "gauge", "Other hosts' nodes connected to this one.").value(&[], nodes);
            groups(&mut text, &node.group_reports());
        }
        if let Some(collecting) = &self.collecting {
            collector(&mut text, &collecting.report(), self.sources);
        }
        if let Some(spool) = &self.spool {
            spooled(&mut text, &spool.report(), self.sources);
        }
        if let Some(transfers) = &self.transfers {
            bulk(&mut text, transfers.counts());
        }
        if let Some(history) = &self.history {
            events(&mut text, &history.report());
        }
        inputs(&mut text, &self.inputs.reports());
        workers(&mut text, self.part.map_or("hub", HubPart::name), &tampu_workers::counts());
        refusals(&mut text, self.part.map_or("hub", HubPart::name));
        if let Some(bridge) = &self.tango {
            bridged(&mut text, &bridge.report());
        }
        if let Some(gateway) = &self.gateway {
            super::gateway::gateway(&mut text, &gateway.report());
        }
        if let Some(book) = self.book.get() {
            logbook(&mut text, &book.report());
        }
        if let Some(outbox) = self.mail.get() {
            mails(&mut text, &outbox.report());
        }
        text.finish()
    }
}

/// Returns the part of the page about the roles.
pub(crate) fn roles_page(roles: &[RoleReport]) -> String {
    let mut text = Text::default();
    text.family("tampu_role_up", "gauge", "1 while a role works.");
    for report in roles {
        text.value(&[("role", report.role.name())], u8::from(report.up));
    }
    text.family("tampu_role_restarts", "counter", "Restarts of a role since the hub's start, each of which is in the log.");
    for report in roles {
        text.value(&[("role", report.role.name())], report.restarts);
    }
    text.finish()
}

fn workers(text: &mut Text, role: &str, counts: &[WorkerCount]) {
    text.family("tampu_workers", "gauge", "Worker threads that run.");
    for count in counts {
        text.value(&[("role", role), ("worker", &count.worker)], count.running);
    }
    text.family("tampu_worker_panics_total", "counter", "Panics of worker threads, each of which is in the log.");
    for count in counts {
        text.value(&[("role", role), ("worker", &count.worker)], count.panics);
    }
}

fn groups(text: &mut Text, reports: &[GroupReport]) {
    type Counter = (&'static str, &'static str, &'static str, fn(&GroupReport) -> u64);
    let counters: [Counter; 4] = [
        ("tampu_group_hosts", "gauge", "Other hosts that hear this host in a multicast group.", |report| report.hosts as u64),
        ("tampu_group_refused_datagrams_total", "counter", "Datagrams that did not open.", |report| report.refused),
        ("tampu_group_dropped_messages_total", "counter", "Messages of this host that were dropped.", |report| report.dropped),
        ("tampu_group_repeated_datagrams_total", "counter", "Datagrams that this host sent again.", |report| report.repeated),
    ];
    for (name, kind, help, value) in counters {
        text.family(name, kind, help);
        for report in reports {
            text.value(&[("group", &report.group.to_string())], value(report));
        }
    }
}

fn bulk(text: &mut Text, counts: TransferCounts) {
    for (name, kind, help, value) in [
        ("tampu_bulk_transfers_total", "counter", "Bulk transfers that ended.", counts.ended),
        (
            "tampu_bulk_incomplete_transfers_total",
            "counter",
            "Bulk transfers that a receiver did not get completely.",
            counts.incomplete,
        ),
        ("tampu_bulk_bytes_total", "counter", "Bytes of bulk transfers that ended.", counts.bytes),
        ("tampu_bulk_transfers_under_way", "gauge", "Bulk transfers that have begun and not ended.", counts.under_way),
    ] {
        text.family(name, kind, help).value(&[], value);
    }
}

/// A family with a series for each report: name, type, help, number.
type Family<T> = (&'static str, &'static str, &'static str, fn(&T) -> u64);

/// The value of a counter of sources.
type Count = fn(&SourceReport) -> u64;

/// Counters of sources: the family of all, that of each, the help, the number.
const COUNTERS: [(&str, &str, &str, Count); 10] = [
    ("tampu_collector_records_total", "tampu_source_records_total", "Records kept.", |source| source.received),
    ("tampu_collector_duplicates_total", "tampu_source_duplicates_total", "Records that the archive already had.", |source| {
        source.duplicates
    }),
    (
        "tampu_collector_lost_samples_total",
        "tampu_source_lost_samples_total",
        "Samples (packets of records) reported as lost.",
        |source| source.lost_samples,
    ),
    (
        "tampu_collector_open_ends_total",
        "tampu_source_open_ends_total",
        "Streams whose end is unknown, because their writer died.",
        |source| source.open_ends,
    ),
    (
        "tampu_collector_rejected_samples_total",
        "tampu_source_rejected_samples_total",
        "Samples that could not be read.",
        |source| source.rejected,
    ),
    (
        "tampu_collector_refused_records_total",
        "tampu_source_refused_records_total",
        "Records their source was not allowed to send.",
        |source| source.refused,
    ),
    (
        "tampu_collector_over_quota_records_total",
        "tampu_source_over_quota_records_total",
        "Records over their source's quota, not kept.",
        |source| source.over_quota,
    ),
    (
        "tampu_collector_left_out_records_total",
        "tampu_source_left_out_records_total",
        "Records that a route keeps out of the archive.",
        |source| source.left_out,
    ),
    (
        "tampu_collector_spooled_records_total",
        "tampu_source_spooled_records_total",
        "Records kept that came by way of a spool.",
        |source| source.spooled,
    ),
    (
        "tampu_collector_lost_in_spool_records_total",
        "tampu_source_lost_in_spool_records_total",
        "Records for which a spool had no room.",
        |source| source.lost_in_spool,
    ),
];

fn collector(text: &mut Text, report: &Report, limit: usize) {
    for (name, _, help, count) in COUNTERS {
        text.family(name, "counter", help).value(&[], report.sources.iter().map(count).sum::<u64>());
    }
    let durable = &report.durable;
    text.family("tampu_collector_durable_seconds", "histogram", "How long batches took from the bus to the disk.");
    text.histogram(&[], &BOUNDS_US, &durable.counts, durable.sum_us);
    let archive = &report.archive;
    for (name, help, value) in [
        ("tampu_collector_streams", "Streams of writers that are here.", report.streams),
        ("tampu_collector_waiting_batches", "Batches taken and not yet durable.", report.waiting),
        ("tampu_archive_records", "Records in the archive.", archive.records),
        ("tampu_archive_bytes", "Bytes of the archive on disk.", archive.bytes),
        ("tampu_archive_segments", "Files of the archive.", archive.segments as u64),
        ("tampu_archive_pending_bytes", "Bytes taken and not yet on disk.", archive.pending),
        ("tampu_archive_faults", "Places where the archive was found damaged.", archive.faults.len() as u64),
        ("tampu_archive_stuck", "1 while nothing can be written.", u64::from(archive.stuck.is_some())),
    ] {
        text.family(name, "gauge", help).value(&[], value);
    }
    text.family("tampu_archive_commits_total", "counter", "Group commits.").value(&[], archive.commits);
    let slowest = seconds(archive.slowest_commit_us);
    text.family("tampu_archive_slowest_commit_seconds", "gauge", "The longest commit so far.").value(&[], slowest);
    targets(text, &report.targets);
    sources(text, report, limit);
}

fn targets(text: &mut Text, targets: &[TargetReport]) {
    let families: [Family<TargetReport>; 4] = [
        ("tampu_target_records_total", "counter", "Records written to targets of routes.", |target| target.written),
        ("tampu_target_lost_records_total", "counter", "Records for which a target had no room.", |target| target.lost),
        ("tampu_target_waiting_bytes", "gauge", "Bytes that wait for a target.", |target| target.waiting),
        ("tampu_target_failing", "gauge", "1 while a target cannot be written.", |target| u64::from(target.failing.is_some())),
    ];
    for (name, kind, help, count) in families.into_iter().filter(|_| !targets.is_empty()) {
        text.family(name, kind, help);
        for target in targets {
            text.value(&[("target", &target.target)], count(target));
        }
    }
}

/// Writes series of the most recently active sources, because there may be more sources than a Prometheus should have
/// series.
fn sources(text: &mut Text, report: &Report, limit: usize) {
    let mut shown: Vec<&SourceReport> = report.sources.iter().collect();
    shown.sort_by_key(|source| Reverse(source.last_seen));
    let left_out = shown.len().saturating_sub(limit);
    shown.truncate(limit);
    shown.sort_by(|one, other| one.source.cmp(&other.source));
    text.family("tampu_sources", "gauge", "Sources that have sent something.").value(&[], report.sources.len());
    text.family("tampu_sources_left_out", "gauge", "Sources without series here: too many.").value(&[], left_out);
    for (_, name, help, count) in COUNTERS {
        text.family(name, "counter", help);
        for source in &shown {
            text.value(&[("source", &source.source)], count(source));
        }
    }
    text.family("tampu_source_records_per_second", "gauge", "Records kept in the last whole second.");
    for source in &shown {
        text.value(&[("source", &source.source)], source.rate);
    }
    text.family("tampu_source_last_seen_timestamp_seconds", "gauge", "When something last came.");
    for source in &shown {
        if let Some(seen) = source.last_seen {
            text.value(&[("source", &source.source)], seen.0 as f64 / 1e9);
        }
    }
}

fn spooled(text: &mut Text, report: &SpoolReport, limit: usize) {
    let lost: u64 = report.sources.iter().map(|source| source.lost.records).sum();
    text.family("tampu_spool_lost_records_total", "counter", "Records for which there was no room, ever.").value(&[], lost);
    text.family("tampu_spool_replayed_records_total", "counter", "Records given to collectors.").value(&[], report.replayed);
    for (name, help, value) in [
        ("tampu_spool_bytes", "Bytes that wait for a collector.", report.bytes),
        ("tampu_spool_records", "Records that wait for a collector.", report.records),
        ("tampu_spool_taking", "1 while no collector keeps records.", u64::from(report.doing == Doing::Spooling)),
        ("tampu_spool_stuck", "1 while it cannot be written.", u64::from(report.stuck.is_some())),
        ("tampu_spool_faults", "Places where it was found damaged.", report.faults.len() as u64),
    ] {
        text.family(name, "gauge", help).value(&[], value);
    }
    let families: [Family<SourceSpool>; 3] = [
        ("tampu_spool_source_bytes", "gauge", "Bytes that wait, by source.", |source| source.bytes),
        ("tampu_spool_source_records", "gauge", "Records that wait, by source.", |source| source.records),
        ("tampu_spool_source_lost_records_total", "counter", "Records without room, by source.", |source| source.lost.records),
    ];
    for (name, kind, help, count) in families {
        text.family(name, kind, help);
        for source in report.sources.iter().take(limit) {
            text.value(&[("source", &source.source)], count(source));
        }
    }
}

fn events(text: &mut Text, report: &HistoryReport) {
    for (name, kind, help, count) in [
        ("tampu_history_rows_total", "counter", "Rows of the history of events that were written.", report.kept),
        ("tampu_history_lost_events_total", "counter", "Events that could not be kept.", report.lost),
        ("tampu_history_refused_events_total", "counter", "Events that the access rules refused.", report.refused),
        ("tampu_history_waiting_events", "gauge", "Events that wait for the archive.", report.waiting),
        ("tampu_history_waiting_bytes", "gauge", "Bytes of these events.", report.waiting_bytes),
        ("tampu_history_rows", "gauge", "Rows in the history.", report.rows),
        ("tampu_history_bytes", "gauge", "Bytes of the history on disk.", report.bytes),
        ("tampu_history_stuck", "gauge", "1 while nothing can be written.", u64::from(report.stuck)),
    ] {
        text.family(name, kind, help).value(&[], count);
    }
}

fn mails(text: &mut Text, report: &MailReport) {
    for (name, kind, help, value) in [
        ("tampu_mail_waiting", "gauge", "Mails that wait for the mail server.", report.waiting),
        ("tampu_mail_failed", "gauge", "Mails that failed and are kept.", report.failed),
        ("tampu_mail_bytes", "gauge", "Bytes of waiting and failed mails.", report.bytes),
        ("tampu_mail_away", "gauge", "1 while the mail server cannot be used.", u64::from(report.away.is_some())),
        ("tampu_mail_sent_total", "counter", "Mails that the server accepted, for each recipient.", report.sent),
        ("tampu_mail_repeated_total", "counter", "Attempts that are repeated.", report.repeated),
        ("tampu_mail_given_up_total", "counter", "Mails that failed, for each recipient.", report.given_up),
    ] {
        text.family(name, kind, help).value(&[], value);
    }
}

fn refusals(text: &mut Text, role: &str) {
    text.family("tampu_access_refused_total", "counter", "Actions that the access rules refused, by verb.");
    for (verb, count) in tampu_bus::access::refusals() {
        text.value(&[("role", role), ("verb", verb.name())], count);
    }
}

fn inputs(text: &mut Text, reports: &[InputReport]) {
    if reports.is_empty() {
        return;
    }
    let families: [Family<InputReport>; 8] = [
        ("tampu_input_messages_total", "counter", "Messages that became records.", |report| report.counts.records),
        ("tampu_input_bytes_total", "counter", "Bytes of these messages.", |report| report.counts.bytes),
        ("tampu_input_cut_total", "counter", "Messages longer than the bound.", |report| report.counts.cut),
        ("tampu_input_broken_off_total", "counter", "Messages that ended with their connection.", |report| {
            report.counts.broken_off
        }),
        ("tampu_input_lost_datagrams_total", "counter", "Datagrams the kernel had no room for.", |report| report.counts.lost),
        ("tampu_input_connections_total", "counter", "Connections there were.", |report| report.counts.connections),
        ("tampu_input_refused_connections_total", "counter", "Connections closed at once: too many.", |report| {
            report.counts.refused
        }),
        ("tampu_input_connections", "gauge", "Connections that are open.", |report| report.open),
    ];
    for (name, kind, help, count) in families {
        text.family(name, kind, help);
        for report in reports {
            text.value(&[("input", report.input)], count(report));
        }
    }
}

/// A family with a series for each direction: name, type, help, from Tango, to Tango.
type Ways = (&'static str, &'static str, &'static str, u64, u64);

fn bridged(text: &mut Text, report: &tampu_tango::BridgeReport) {
    let ways: [Ways; 4] = [
        (
            "tampu_tango_attributes",
            "gauge",
            "Attributes that are followed, and served.",
            report.from_tango_attributes,
            report.to_tango_attributes,
        ),
        ("tampu_tango_events_total", "counter", "Events that were carried.", report.from_tango, report.to_tango),
        (
            "tampu_tango_lost_events_total",
            "counter",
            "Events for which there was no room.",
            report.lost_from_tango,
            report.lost_to_tango,
        ),
        (
            "tampu_tango_not_carried_events_total",
            "counter",
            "Events that the other side cannot have.",
            report.not_carried_from_tango,
            report.not_carried_to_tango,
        ),
    ];
    for (name, kind, help, from, to) in ways {
        text.family(name, kind, help).value(&[("direction", "from_tango")], from);
        text.value(&[("direction", "to_tango")], to);
    }
    for (name, kind, help, count) in [
        ("tampu_tango_silent_attributes", "gauge", "Attributes of Tango whose source does not report.", report.silent_attributes),
        ("tampu_tango_gaps_total", "counter", "How often Tango or the bus reported missed events.", report.gaps),
        ("tampu_tango_refused_total", "counter", "How often an attribute could not be bridged.", report.refused),
        ("tampu_tango_restarts_total", "counter", "How often a Python process died.", report.restarts),
    ] {
        text.family(name, kind, help).value(&[], count);
    }
}

#[cfg(test)]
mod tests {
    use tampu_archive::Health;
    use tampu_types::{Incarnation, Time};

    use super::*;

    fn report(sources: usize) -> Report {
        let source = |number: usize| SourceReport {
            source: format!("S{number:03}"),
            received: number as u64,
            last_seen: Some(Time(number as i64 * 1_500_000_000)),
            ..SourceReport::default()
        };
        Report {
            collector: "collector@x".into(),
            incarnation: Incarnation::default(),
            rejected: 0,
            rejected_kept: 0,
            streams: 3,
            waiting: 0,
            durable: Default::default(),
            targets: vec![Default::default()],
            sources: (0..sources).map(source).collect(),
            archive: Health::default(),
        }
    }

    #[test]
    fn series_are_bounded_and_totals_are_not() {
        let mut text = Text::default();
        collector(&mut text, &report(10), 3);
        let page = text.finish();
        assert!(page.contains("\ntampu_collector_records_total 45\n"), "{page}");
        assert!(page.contains("\ntampu_sources 10\n") && page.contains("\ntampu_sources_left_out 7\n"), "{page}");
        let shown: Vec<&str> = page.lines().filter(|line| line.starts_with("tampu_source_records_total")).collect();
        let of = |number: u32| format!("tampu_source_records_total{{source=\"S00{number}\"}} {number}");
        assert_eq!(shown, [of(7), of(8), of(9)]);
        assert!(page.contains("tampu_source_last_seen_timestamp_seconds{source=\"S009\"} 13.5\n"), "{page}");
    }

    #[test]
    fn the_spec_page_has_every_family() {
        let spec = include_str!("../../../../spec/metrics.md");
        let mut text = Text::default();
        collector(&mut text, &report(1), 3);
        inputs(&mut text, &[InputReport { input: "syslog", counts: Default::default(), open: 0 }]);
        spooled(&mut text, &SpoolReport { sources: vec![SourceSpool::default()], ..SpoolReport::default() }, 3);
        bridged(&mut text, &tampu_tango::BridgeReport::default());
        workers(&mut text, "book", &[WorkerCount { worker: "routes".to_owned(), running: 1, panics: 2 }]);
        events(&mut text, &HistoryReport { lost: 3, ..HistoryReport::default() });
        let roles = roles_page(&[RoleReport { role: HubPart::Book, pid: Some(7), up: true, restarts: 1 }]);
        for line in (text.finish() + &roles).lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
            let name = line.split(' ').next().unwrap();
            assert!(spec.contains(&format!("`{name}`")), "{name} is not in spec/metrics.md");
        }
    }
}
