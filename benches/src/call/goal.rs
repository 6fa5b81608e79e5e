//! Goals for the cost of a log call on a machine of two cores, and their check against a run.

use crate::{
    call::{found::Measured, network, peer::ours},
    table::{Table, count},
};

/// Largest cost of a call relative to the floor.
const FLOOR: f64 = 1.2;
/// Maximum time of the slowest thousandth, in ns.
const P999_NS: f64 = 100.0;
/// Maximum time of a call whose level is off, in ns.
const NOOP_NS: f64 = 1.0;
/// Text into a file, records a second.
const TEXT_PER_S: f64 = 4e6;
/// Required ratio to the cost of another logger.
const TIMES: [(&str, f64); 2] = [("spdlog-sync", 20.0), ("tracing", 40.0)];
/// Largest additional cost of a call for the distance of the collector.
const DISTANCE: f64 = 0.1;

/// One line: subject, number of threads, goal, result, and whether the result reaches the goal.
pub type Verdict = (String, usize, String, String, bool);

/// Returns the verdicts on all goals for which there are measurements.
pub fn judge(measured: &[Measured], network: Option<&network::Account>) -> Vec<Verdict> {
    let find = |name: &str, threads: usize| measured.iter().find(|one| one.name == name && one.threads == threads);
    let mut verdicts = Vec::new();
    for one in measured.iter().filter(|one| one.name == ours::NAME) {
        let (threads, account) = (one.threads, &one.account);
        // A logger that loses records has no price.
        let whole = one.whole();
        let lossy = if whole { "" } else { ", LOST records" };
        let ns = account.cpu_ns;
        let mut add = |what: &str, wanted: String, got: String, good: bool| {
            verdicts.push((what.to_owned(), threads, wanted, format!("{got}{lossy}"), good && whole));
        };
        if let Some(floor) = find("floor", threads) {
            let (limit, floor) = (FLOOR * floor.account.cpu_ns, floor.account.cpu_ns);
            add(
                "processor time of a call",
                format!("<= {FLOOR} x the floor's {floor:.1} ns"),
                format!("{ns:.1} ns, {:.2} x", ns / floor),
                ns <= limit,
            );
        }
        if threads == 1 {
            let p999 = account.flat_out.p999_ns;
            add("99.9 % of calls", format!("<= {P999_NS:.0} ns"), format!("{p999:.0} ns"), p999 <= P999_NS);
            if let Some(noop) = account.noop_ns {
                add("a call whose level is off", format!("<= {NOOP_NS:.0} ns"), format!("{noop:.2} ns"), noop <= NOOP_NS);
            }
        }
        for (peer, times) in TIMES {
            if let Some(other) = find(peer, threads) {
                let ratio = other.account.cpu_ns / ns;
                add("processor time of a call", format!(">= {times:.0} x below {peer}"), format!("{ratio:.1} x"), ratio >= times);
            }
        }
    }
    if let Some(text) = find(ours::TEXT, 1) {
        let (got, whole) = (text.account.sustained_per_s, text.whole());
        let lossy = if whole { "" } else { ", LOST records" };
        let measured = format!("{}/s{lossy}", count(got));
        verdicts.push((
            "text without a pause".to_owned(),
            1,
            format!(">= {}/s", count(TEXT_PER_S)),
            measured,
            whole && got >= TEXT_PER_S,
        ));
    }
    for costs in network.into_iter().flat_map(|network| &network.costs) {
        let [near, far] = costs.cpu_ns();
        let measured = format!("{near:.1} ns here, {far:.1} ns there");
        let good = far <= near * (1.0 + DISTANCE);
        verdicts.push((
            "a collector 1 ms away".to_owned(),
            costs.threads,
            "a call costs at most 10 % more".to_owned(),
            measured,
            good,
        ));
    }
    verdicts
}

/// Returns the verdicts, as a table.
pub fn table(verdicts: &[Verdict]) -> Table {
    let mut table = Table::new(&["goal", "threads", "wanted", "measured", ""]);
    for (what, threads, wanted, measured, reached) in verdicts {
        let verdict = if *reached { "reached" } else { "MISSED" };
        table.row(vec![what.clone(), threads.to_string(), wanted.clone(), measured.clone(), verdict.to_owned()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{cost, peer::PEERS, summary::Summary};

    fn measured(name: &'static str, cpu_ns: f64, lost: u64) -> Measured {
        let account = cost::Account {
            cpu_ns,
            flat_out: Summary { p999_ns: 90.0, ..Summary::default() },
            bursts: Summary::default(),
            sustained_per_s: 5e6,
            logged: 1,
            dropped: 0,
            confirmed: true,
            noop_ns: Some(0.5),
        };
        Measured { name, threads: 1, account, lost }
    }

    #[test]
    fn every_goal_names_known_loggers() {
        for name in [ours::NAME, ours::TEXT, "floor", TIMES[0].0, TIMES[1].0] {
            assert!(PEERS.iter().any(|peer| peer.name == name), "{name}");
        }
    }

    #[test]
    fn each_goal_is_missed_for_its_own_reason() {
        let reached = |all: &[Measured]| judge(all, None).into_iter().map(|verdict| verdict.4).collect::<Vec<_>>();
        let (floor, spdlog) = (measured("floor", 10.0, 0), measured("spdlog-sync", 240.0, 0));
        let with = |ours: Measured| reached(&[floor.clone(), spdlog.clone(), ours]);
        assert_eq!(with(measured(ours::NAME, 12.0, 0)), [true, true, true, true]);
        assert_eq!(with(measured(ours::NAME, 12.1, 0)), [false, true, true, false]);
        assert_eq!(with(measured(ours::NAME, 11.0, 1)), [false; 4]);
        assert_eq!(reached(&[measured(ours::TEXT, 11.0, 0)]), [true]);
        assert_eq!(reached(&[measured(ours::TEXT, 11.0, 1)]), [false]);
        assert!(reached(&[floor]).is_empty());
    }

    #[test]
    fn a_far_collector_is_held_against_the_near_one() {
        let judged = |far: f64| {
            let account = |cpu_ns| measured(ours::NAME, cpu_ns, 0).account;
            let costs =
                network::Costs { threads: 1, near: vec![account(12.0), account(10.0)], far: vec![account(20.0), account(far)] };
            let network = network::Account { cable: String::new(), pairs: Vec::new(), costs: vec![costs] };
            judge(&[], Some(&network)).iter().all(|verdict| verdict.4)
        };
        assert!(judged(10.9) && !judged(11.1) && !judged(f64::NAN));
    }
}
