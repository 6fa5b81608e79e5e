//! The tables of a run, as text for people.

use crate::{
    call::{
        found::{Line, Measured},
        goal, network, paper,
        peer::{PEERS, ours},
        program,
        summary::Summary,
    },
    table::{Table, count},
};

/// Returns all results, as tables.
pub fn tables(lines: &[Line], measured: &[Measured], far: Option<&network::Account>) -> Vec<String> {
    let paper = (!lines.is_empty()).then(|| paper_table(lines));
    let loggers = (!measured.is_empty()).then(|| logger_table(measured));
    let verdicts = goal::judge(measured, far);
    let goals = (!verdicts.is_empty()).then(|| goal::table(&verdicts).render());
    [paper, far.map(network_table), loggers, goals].into_iter().flatten().collect()
}

/// Returns microseconds with the significant digits.
fn us(us: f64) -> String {
    match us {
        us if us < 1.0 => format!("{us:.3}"),
        us if us < 100.0 => format!("{us:.2}"),
        us => format!("{us:.0}"),
    }
}

/// Returns a ratio as text.
fn ratio(times: f64) -> String {
    if times < 10.0 { format!("{times:.2}") } else { format!("{times:.0}") }
}

fn paper_table(lines: &[Line]) -> String {
    let headings = [
        "us",
        "who",
        "threads",
        "calls",
        "total",
        "average",
        "min",
        "p50",
        "p99",
        "p99.9",
        "max",
        "ACS total",
        "average",
        "min",
        "max",
        "ACS/ours",
        "",
    ];
    let mut table = Table::new(&headings);
    for line in lines {
        let Line { row, account: program::Account { times, .. }, .. } = line;
        let place = if row.place == paper::Place::Client { "client" } else { "component" };
        let mut cells = vec![format!("{:>2} {}", row.number, row.name()), place.to_owned(), row.threads.to_string()];
        cells.push(times.calls.to_string());
        let ours = [times.total_ns, times.average_ns(), times.min_ns, times.p50_ns, times.p99_ns, times.p999_ns, times.max_ns];
        cells.extend(ours.map(|ns| us(ns / 1e3)));
        match row.published {
            Some(was) => {
                cells.extend([was.total, was.average, was.min, was.max].map(us));
                cells.push(ratio(was.average * 1e3 / times.average_ns()));
            }
            None => cells.extend(std::iter::repeat_n("-".to_owned(), 5)),
        }
        cells.push(line.bad());
        table.row(cells);
    }
    table.render()
}

fn network_table(far: &network::Account) -> String {
    let mut table = Table::new(&[
        "us, collector",
        "threads",
        "calls",
        "here: average",
        "p50",
        "p99",
        "there: calls",
        "average",
        "p50",
        "p99",
        "",
    ]);
    for pair in &far.pairs {
        let mut cells = vec![format!("{:>2} {}", pair.number, pair.name), pair.threads.to_string()];
        for Summary { calls, total_ns, p50_ns, p99_ns, .. } in [pair.near.times, pair.far.times] {
            cells.push(calls.to_string());
            cells.extend([total_ns / calls.max(1) as f64, p50_ns, p99_ns].map(|ns| us(ns / 1e3)));
        }
        let lost = pair.near.lost + pair.far.lost;
        cells.push(if lost > 0 { format!("LOST {lost}") } else { String::new() });
        table.row(cells);
    }
    format!("A collector that is away: {}\n{}", far.cable, table.render())
}

fn logger_table(measured: &[Measured]) -> String {
    let headings = [
        "ns",
        "threads",
        "cpu a call",
        "it/ours",
        "it/floor",
        "p50",
        "p99",
        "p99.9",
        "bursts: p50",
        "p99",
        "p99.9",
        "without a pause",
        "",
    ];
    let mut table = Table::new(&headings);
    for one in measured {
        let cpu = |name: &str| {
            measured.iter().find(|other| other.name == name && other.threads == one.threads).map(|other| other.account.cpu_ns)
        };
        let beside = |other: Option<f64>| other.map_or("-".to_owned(), |other| ratio(one.account.cpu_ns / other));
        let mut cells = vec![one.name.to_owned(), one.threads.to_string(), format!("{:.1}", one.account.cpu_ns)];
        cells.extend([beside(cpu(ours::NAME)), beside(cpu("floor"))]);
        for times in [one.account.flat_out, one.account.bursts] {
            cells.extend([times.p50_ns, times.p99_ns, times.p999_ns].map(|ns| format!("{ns:.0}")));
        }
        cells.push(format!("{}/s", count(one.account.sustained_per_s)));
        cells.push(one.bad());
        table.row(cells);
    }
    let mut text = table.render();
    for known in PEERS.iter().filter(|known| measured.iter().any(|one| one.name == known.name)) {
        text.push_str(&format!("{:<13} {}\n", known.name, known.about));
    }
    text
}
