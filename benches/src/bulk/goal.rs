//! Goals, and their check against a run.

use super::{linear, row::Row, verdict::Verdict};
use crate::table::{Table, size};

/// Sizes in bytes from which the wire is the limit and not the call.
const LARGE: usize = 64 << 10;
const LARGEST: usize = 64 << 20;
/// Largest relative distance of a time from the straight line.
const LINEAR: f64 = 0.05;
/// Largest cost to the sender of ten receivers behind a distributor, relative to one.
const SAME: f64 = 1.25;

fn find<'a>(rows: &'a [Row], carrier: &str, size: usize, receivers: usize) -> Option<&'a Row> {
    rows.iter().find(|row| row.carrier.name == carrier && row.size == size && row.receivers == receivers)
}

/// A ratio that must be reached wherever both were measured.
struct Ratio {
    ours: &'static str,
    to: &'static str,
    at_least: f64,
    from_size: usize,
    receivers: Option<usize>,
}

const RATIOS: &[Ratio] = &[
    Ratio { ours: "tcp", to: "raw-blocks", at_least: 0.95, from_size: LARGE, receivers: Some(1) },
    Ratio { ours: "tcp-checked", to: "raw-blocks", at_least: 0.75, from_size: LARGE, receivers: Some(1) },
    Ratio { ours: "tcp-encrypted", to: "tcp", at_least: 0.6, from_size: 1 << 20, receivers: Some(1) },
    Ratio { ours: "tcp", to: "bus-ask", at_least: 1.3, from_size: 0, receivers: None },
    Ratio { ours: "shm", to: "raw-blocks", at_least: 2.0, from_size: LARGE, receivers: Some(1) },
    Ratio { ours: "tcp-handshake", to: "tcp", at_least: 0.98, from_size: LARGEST, receivers: Some(1) },
    Ratio { ours: "tcp-relay", to: "raw-relay", at_least: 0.9, from_size: LARGE, receivers: Some(5) },
];

/// Carriers whose time should grow with the size along a straight line.
const STRAIGHT: &[&str] = &["tcp", "tcp-checked", "tcp-handshake", "shm"];

/// Returns all verdicts that these rows allow.
pub fn verdicts(rows: &[Row], memory: f64) -> Vec<Verdict> {
    let mut all = Vec::new();
    for ratio in RATIOS {
        for row in rows.iter().filter(|row| row.carrier.name == ratio.ours && row.size >= ratio.from_size) {
            let Some(other) = find(rows, ratio.to, row.size, row.receivers) else { continue };
            if ratio.receivers.is_none_or(|receivers| receivers == row.receivers) {
                let what = format!("{} / {}, {} to {}", ratio.ours, ratio.to, size(row.size), row.receivers);
                all.push(Verdict::at_least(what, ratio.at_least, row.rate().0 / other.rate().0, row.is_clean()));
            }
        }
    }
    // Each receiver reads all of it: the memory carries that sum.
    for row in rows.iter().filter(|row| row.carrier.name == "shm" && row.receivers == 10 && row.size >= 1 << 20) {
        let part = row.rate().0 * row.receivers as f64 / memory;
        all.push(Verdict::at_least(format!("shm / memory, {} to 10", size(row.size)), 0.5, part, row.is_clean()));
    }
    for ten in rows.iter().filter(|row| row.carrier.name == "tcp-relay" && row.receivers == 10 && row.size >= LARGE) {
        let Some(one) = find(rows, "tcp-relay", ten.size, 1) else { continue };
        let what = format!("sender's cpu a byte, 10 behind a distributor / 1, {}", size(ten.size));
        all.push(Verdict::at_most(what, SAME, ten.sender_cpu_a_byte() / one.sender_cpu_a_byte(), ten.is_clean()));
    }
    for carrier in STRAIGHT {
        if let Some(line) = linear::of(rows, carrier) {
            let what = format!("{carrier}: from a straight line, most at {}", size(line.at as usize));
            all.push(Verdict::at_most(what, LINEAR, line.deviation, true));
        }
    }
    all
}

pub fn table(verdicts: &[Verdict]) -> Table {
    let mut table = Table::new(&["goal", "wanted", "measured", ""]);
    verdicts.iter().for_each(|verdict| table.row(verdict.cells()));
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::{carrier::Carrier, sample::Sample};

    fn row(name: &str, receivers: usize, rate: f64, lost: f64, cpu: f64) -> Row {
        let sample = Sample { bytes_per_s: rate, lost, wrong: 0.0, cpu: [cpu, 0.0, 0.0], rss_mb: [0.0; 3], seconds: 1.0 };
        Row { carrier: *Carrier::named(name).unwrap(), size: 1 << 20, receivers, samples: vec![sample] }
    }

    #[test]
    fn goals_name_known_carriers_and_loss_reaches_nothing() {
        for ratio in RATIOS {
            assert!(Carrier::named(ratio.ours).is_some() && Carrier::named(ratio.to).is_some());
        }
        assert!(STRAIGHT.iter().all(|name| Carrier::named(name).is_some()));
        let judged = |rate, lost| verdicts(&[row("tcp", 1, rate, lost, 0.0), row("raw-blocks", 1, 100.0, 0.0, 0.0)], 1.0);
        assert!(judged(96.0, 0.0)[0].reached && !judged(94.0, 0.0)[0].reached && !judged(96.0, 1.0)[0].reached);
    }

    #[test]
    fn the_sender_is_to_pay_the_same_for_all_who_are_behind_a_distributor() {
        let judged = |cpu| verdicts(&[row("tcp-relay", 1, 100.0, 0.0, 1.0), row("tcp-relay", 10, 50.0, 0.0, cpu)], 1.0);
        assert!(judged(0.6)[0].reached && !judged(1.0)[0].reached);
    }
}
