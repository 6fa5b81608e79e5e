//! Goals for the log line on a machine of two cores, and their check against a run.

use crate::{
    log_line::{
        paper,
        plan::{Part, SUSTAINED},
        row::Row,
    },
    table::{Table, count},
};

/// Records a second into the segment.
const STORED: f64 = 1e6;
/// Speed of the disk that the goal assumes, 10^6 bytes a second. On a slower disk, the disk's speed is the goal.
const DISK: f64 = 300.0;
/// Maximum processor time of the collector for a record, microseconds.
const COLLECTOR_US: f64 = 0.4;
/// Largest cost of ten clients relative to one.
const MORE_CLIENTS: f64 = 1.1;
/// Maximum time of the slowest hundredth of immediate records under full load, milliseconds.
const IMMEDIATE_MS: f64 = 20.0;
/// Largest effect of a stopped client on the others and the collector, within noise.
const STOPPED: f64 = 1.2;

/// One line: subject, number of clients, goal, result, and whether the result reaches the goal.
pub type Verdict = (String, usize, String, String, bool);

/// Returns the verdicts on all goals for which there are measurements.
pub fn judge(rows: &[Row], disk_mb_per_s: f64) -> Vec<Verdict> {
    let find = |part: Part, name: &str, clients: usize| {
        rows.iter().find(|row| row.part == part && row.name == name && row.clients == clients)
    };
    let rate = |row: &Row| format!("{}/s {}", count(row.records_per_s), row.bad()).trim().to_owned();
    let mut verdicts: Vec<Verdict> = Vec::new();
    let mut add = |what: &str, clients: usize, wanted: String, got: String, good: bool| {
        verdicts.push((what.to_owned(), clients, wanted, got, good));
    };
    // The goal holds for a disk of a given speed; on a slower disk it is lower in proportion.
    let stored = STORED * (disk_mb_per_s / DISK).min(1.0);
    for row in [find(Part::Clients, "tampu-stored", 1), find(Part::Sustained, "tampu-unbounded", 0)].into_iter().flatten() {
        add(
            "kept on disk",
            row.clients,
            format!(">= {}/s", count(stored)),
            format!("{} for {:.0} s", rate(row), row.seconds),
            row.records_per_s >= stored && row.whole(),
        );
    }
    for (name, clients) in [("tampu-stored", 0), ("tampu-stored", 1)] {
        if let (Some(row), Some(best)) = (find(Part::Clients, name, clients), paper::best(clients)) {
            add(
                "the paper's test, kept on disk",
                clients,
                format!(">= its best, {}/s", count(best)),
                format!("{}, {:.0} x", rate(row), row.records_per_s / best),
                row.records_per_s >= best && row.whole(),
            );
        }
    }
    for row in rows.iter().filter(|row| row.part == Part::Clients && row.name == "tampu-live") {
        if let Some(nats) = find(Part::Clients, "nats-100", row.clients) {
            add(
                "live",
                row.clients,
                format!(">= nats-100: {}/s", count(nats.records_per_s)),
                format!("{}, {:.2} x", rate(row), row.records_per_s / nats.records_per_s),
                row.records_per_s >= nats.records_per_s && row.whole(),
            );
        }
    }
    for (ours, peer) in [("tampu-stored", "rsyslog"), ("tampu-stored-1", "rsyslog")] {
        let cells = (find(Part::Clients, ours, 0), find(Part::Clients, peer, 0));
        let (Some(row), Some(peer)) = cells else { continue };
        add(
            &format!("kept, {ours}"),
            0,
            format!(">= rsyslog: {}", rate(peer)),
            format!("{}, {:.2} x", rate(row), row.records_per_s / peer.records_per_s),
            row.records_per_s >= peer.records_per_s && row.whole(),
        );
    }
    let us = |clients| find(Part::Clients, "tampu-stored", clients).and_then(Row::between_us);
    if let Some(us) = us(0) {
        let got = match find(Part::Clients, "rsyslog", 0).and_then(Row::between_us) {
            Some(peer) => format!("{us:.3} us, rsyslog {peer:.3}, {:.1} x below", peer / us),
            None => format!("{us:.3} us"),
        };
        add("collector's CPU a record", 0, format!("<= {COLLECTOR_US} us"), got, us <= COLLECTOR_US);
    }
    if let (Some(none), Some(ten)) = (us(0), us(10)) {
        let ratio = ten / none;
        let measured = format!("{ratio:.2} x ({none:.3}, {ten:.3} us)");
        add("collector's CPU a record", 10, format!("<= {MORE_CLIENTS} x that with none"), measured, ratio <= MORE_CLIENTS);
    }
    if let Some(row) = find(Part::Immediate, "tampu-full-load", 1)
        && let Some(p99) = row.immediate.and_then(|times| times.p99_us)
    {
        add(
            "an immediate record under full load",
            1,
            format!("p99 <= {IMMEDIATE_MS:.0} ms"),
            format!("{:.2} ms {}", p99 / 1e3, row.bad()).trim().to_owned(),
            p99 <= IMMEDIATE_MS * 1e3 && row.whole(),
        );
    }
    if let (Some(all), Some(one)) = (
        rows.iter().find(|row| row.part == Part::Stopped && row.name == "tampu-all-run"),
        rows.iter().find(|row| row.part == Part::Stopped && row.name == "tampu-one-stopped"),
    ) {
        let kept = one.records_per_s / all.records_per_s;
        let cost = one.between_us().unwrap_or_default() / all.between_us().unwrap_or_default();
        add(
            "one stopped client",
            one.clients,
            "the others' rate, nothing lost, the collector's CPU as without".to_owned(),
            format!("{kept:.2} x the rate, {cost:.2} x the CPU {}", one.bad()).trim().to_owned(),
            kept >= 1.0 / STOPPED && cost <= STOPPED && one.whole() && one.rate_kept == Some(true),
        );
    }
    if let Some(row) = rows.iter().find(|row| row.part == Part::Sustained && row.name == "tampu-at-200k/s")
        && let Some(backlog) = row.backlog
    {
        add(
            "sustained",
            row.clients,
            format!("{}/s for {:.0} s, bounded backlog", count(SUSTAINED), row.seconds),
            format!(
                "{}, at most {:.2} MB of {:.2} waited; {:.2} in the first quarter, {:.2} in the last",
                rate(row),
                backlog.max / 1e6,
                backlog.bound / 1e6,
                backlog.first_quarter / 1e6,
                backlog.last_quarter / 1e6
            ),
            row.whole() && row.rate_kept == Some(true) && backlog.max < backlog.bound,
        );
    }
    verdicts
}

/// Returns the verdicts, as a table.
pub fn table(verdicts: &[Verdict]) -> Table {
    let mut table = Table::new(&["goal", "clients", "wanted", "measured", ""]);
    for (what, clients, wanted, measured, reached) in verdicts {
        let verdict = if *reached { "reached" } else { "MISSED" };
        table.row(vec![what.clone(), clients.to_string(), wanted.clone(), measured.clone(), verdict.to_owned()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cell::Outcome,
        log_line::plan::{self, Times},
        perf_log::{Backlog, Immediate},
    };

    const TIMES: Times = Times { seconds: 1.0, long: 1.0, sustained: 1.0 };

    /// Returns rows that reach every goal.
    fn good() -> Vec<Row> {
        let cells = plan::cells(&[0, 1, 10], &[], TIMES).into_iter().chain(plan::sustained(TIMES));
        let outcome = Outcome { per_second: 2e5, sent: 1, cpu_server: 1e-6, ..Outcome::default() };
        cells
            .map(|cell| {
                let mut row = Row::peer(&cell, &outcome);
                if cell.name.starts_with("tampu") {
                    row.records_per_s = 1e6;
                    row.cpu_us = vec![("collector".to_owned(), 0.3)];
                    row.rate_kept = Some(true);
                    row.immediate = Some(Immediate { p50_us: Some(1.0), p99_us: Some(19e3), max_us: Some(3e4) });
                    row.backlog = Some(Backlog { max: 1.0, bound: 8.0, mean: 1.0, first_quarter: 1.0, last_quarter: 1.0 });
                }
                row
            })
            .collect()
    }

    #[test]
    fn a_run_as_it_should_be_reaches_everything() {
        let verdicts = judge(&good(), 500.0);
        assert!(verdicts.iter().all(|verdict| verdict.4), "{verdicts:?}");
        assert_eq!(verdicts.len(), 2 + 2 + 3 + 2 + 2 + 1 + 1 + 1);
        assert!(judge(&[], 500.0).is_empty());
    }

    #[test]
    fn each_goal_is_missed_for_its_own_reason() {
        let missed = |spoil: &dyn Fn(&mut Row)| {
            let mut rows = good();
            rows.iter_mut().for_each(spoil);
            judge(&rows, 500.0).iter().filter(|verdict| !verdict.4).count()
        };
        let named = |name: &'static str, spoil: fn(&mut Row)| {
            move |row: &mut Row| {
                if row.name == name {
                    spoil(row);
                }
            }
        };
        assert_eq!(missed(&named("tampu-live", |row| row.records_per_s = 1.0)), 3);
        assert_eq!(missed(&named("tampu-stored", |row| row.lost = 1)), 1 + 2 + 1);
        assert_eq!(missed(&named("tampu-stored", |row| row.cpu_us[0].1 = 0.41)), 1);
        assert_eq!(missed(&named("tampu-full-load", |row| row.wrong = 1)), 1);
        assert_eq!(missed(&named("tampu-one-stopped", |row| row.cpu_us[0].1 = 0.4)), 1);
        assert_eq!(missed(&named("tampu-at-200k/s", |row| row.rate_kept = Some(false))), 1);
        let full = |row: &mut Row| row.backlog = row.backlog.map(|backlog| Backlog { max: 8.0, ..backlog });
        assert_eq!(missed(&named("tampu-at-200k/s", full)), 1);
    }

    #[test]
    fn a_slow_disk_lowers_what_is_promised() {
        let rate = |disk: f64| judge(&good(), disk).remove(0);
        assert!(rate(299.0).4 && rate(30.0).2.contains("100 k"), "{:?}", rate(30.0));
    }
}
