//! Goals for events on a machine of two cores, and their check against a run.

use crate::{
    event::{
        plan::{MANY, Part, SMALL_EVENT},
        row::Row,
    },
    table::{Table, count, size},
};

/// Events of 92 bytes a second, by clients.
const SMALL: [(usize, f64); 2] = [(1, 3e6), (10, 1e6)];
/// Events a second, by elements and clients.
const RATES: [(usize, usize, f64); 8] = [
    (1024, 1, 300e3),
    (1024, 2, 300e3),
    (1024, 5, 250e3),
    (1024, 10, 150e3),
    (262_144, 1, 8e3),
    (262_144, 2, 6e3),
    (262_144, 5, 3e3),
    (262_144, 10, 2e3),
];
/// Maximum latency of one event a millisecond, us: the median and the slowest hundredth.
const LATENCY: [f64; 2] = [150.0, 400.0];
/// Maximum share of a core for server and client together, with ten thousand attributes at 10 Hz.
const MANY_CPU: f64 = 0.30;
/// Maximum time until all first values of these attributes have arrived, seconds.
const SUBSCRIBED_S: f64 = 1.0;
/// Maximum memory of one of these subscriptions, bytes.
const SUBSCRIPTION: f64 = 2048.0;
/// The delivery that the goals apply to.
const OURS: &str = "tampu-streamed";

/// One line: subject, goal, result, and whether the result reaches the goal.
pub type Verdict = (String, String, String, bool);

/// Returns the verdicts on all goals for which there are measurements.
pub fn judge(rows: &[Row]) -> Vec<Verdict> {
    let ours = |part: Part| rows.iter().filter(move |row| row.cell.part == part && row.cell.player.name == OURS);
    let mut verdicts: Vec<Verdict> = Vec::new();
    let mut rate = |row: Option<&Row>, bytes: usize, wanted: f64| {
        let Some(row) = row else { return };
        let got = format!("{}/s {}", count(row.figures.events_per_s), row.bad()).trim().to_owned();
        let good = row.figures.events_per_s >= wanted && row.is_whole();
        verdicts.push((format!("{} to {}", size(bytes), row.cell.clients), format!(">= {}/s", count(wanted)), got, good));
    };
    for (clients, wanted) in SMALL {
        rate(ours(Part::Small).find(|row| row.cell.clients == clients), SMALL_EVENT, wanted);
    }
    for (elements, clients, wanted) in RATES {
        let row = ours(Part::Table).find(|row| (row.cell.elements, row.cell.clients) == (elements, clients));
        rate(row, elements * 4, wanted);
    }
    if let Some((row, [p50, p99, _])) = ours(Part::Latency).find_map(|row| Some((row, row.figures.latency_us?))) {
        let got = format!("{p50:.0}/{p99:.0} us {}", row.bad()).trim().to_owned();
        let good = p50 <= LATENCY[0] && p99 <= LATENCY[1] && row.is_whole();
        verdicts.push(("single events, p50/p99".to_owned(), format!("<= {:.0}/{:.0} us", LATENCY[0], LATENCY[1]), got, good));
    }
    for row in ours(Part::Many) {
        if let [Some(server), between, Some(clients)] = row.figures.cpu_s {
            let of_a_core = |cpu: f64| cpu / row.figures.seconds.max(1e-9);
            let together = of_a_core(server + clients);
            let percent = |part: f64| format!("{:.0} %", 100.0 * part);
            let node = between.map_or(String::new(), |cpu| format!(", node {}", percent(of_a_core(cpu))));
            let got = format!("{} + {}{node} {}", percent(of_a_core(server)), percent(of_a_core(clients)), row.bad());
            let what = format!("{MANY} attributes at 10 Hz, server + client");
            let good = together <= MANY_CPU && row.is_whole();
            verdicts.push((what, format!("<= {} of a core", percent(MANY_CPU)), got.trim().to_owned(), good));
        }
        if let Some(took) = row.figures.subscribing {
            let what = format!("subscribing to {MANY}");
            let got = format!("{:.2} s in calls, {:.2} s until all first values", took.calls_s, took.first_values_s);
            verdicts.push((what.clone(), format!("<= {SUBSCRIBED_S:.0} s"), got, took.first_values_s <= SUBSCRIBED_S));
            let good = took.bytes_each <= SUBSCRIPTION;
            verdicts.push((what, format!("<= {SUBSCRIPTION:.0} B each"), format!("{:.0} B", took.bytes_each), good));
        }
    }
    verdicts
}

/// Returns the verdicts as a table.
pub fn table(verdicts: &[Verdict]) -> Table {
    let mut table = Table::new(&["goal", "wanted", "measured", ""]);
    for (what, wanted, got, good) in verdicts {
        let verdict = if *good { "reached" } else { "MISSED" };
        table.row(vec![what.clone(), wanted.clone(), got.clone(), verdict.to_owned()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{
        plan::cells,
        row::{Figures, Subscribing},
    };

    /// Returns rows that reach every goal.
    fn good() -> Vec<Row> {
        let subscribing = Some(Subscribing { calls_s: 0.1, first_values_s: 0.9, bytes_each: 2000.0 });
        let figures = Figures {
            pushed: 1.0,
            events_per_s: 3e6,
            seconds: 10.0,
            cpu_s: [Some(1.0), Some(1.0), Some(1.9)],
            latency_us: Some([100.0, 300.0, 9e3]),
            subscribing,
            ..Figures::default()
        };
        cells(&[1, 2, 5, 10], &[1, 1024, 262_144], 1.0).into_iter().map(|cell| Row { cell, figures: figures.clone() }).collect()
    }

    #[test]
    fn a_run_as_it_should_be_reaches_everything() {
        let verdicts = judge(&good());
        assert!(verdicts.iter().all(|verdict| verdict.3), "{verdicts:?}");
        assert_eq!(verdicts.len(), 2 + 8 + 1 + 3);
        assert!(judge(&[]).is_empty());
    }

    #[test]
    fn each_goal_is_missed_for_its_own_reason() {
        let missed = |spoil: fn(&mut Figures)| {
            let mut rows = good();
            rows.iter_mut().for_each(|row| spoil(&mut row.figures));
            judge(&rows).iter().filter(|verdict| !verdict.3).count()
        };
        assert_eq!(missed(|figures| figures.events_per_s = 1.0), 2 + 8);
        assert_eq!(missed(|figures| figures.lost = 1.0), 2 + 8 + 1 + 1);
        assert_eq!(missed(|figures| figures.latency_us = Some([100.0, 401.0, 402.0])), 1);
        assert_eq!(missed(|figures| figures.cpu_s[2] = Some(2.1)), 1);
        assert_eq!(missed(|figures| figures.subscribing = Some(Subscribing { bytes_each: 2049.0, ..Subscribing::default() })), 1);
    }
}
