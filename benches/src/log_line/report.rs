//! The tables of a run, one for each part.

use crate::{
    log_line::{goal, paper, plan::Part, row::Row},
    table::{Table, count, size},
};

/// Returns all tables, in the order of the cells.
pub fn render(rows: &[Row], disk_mb_per_s: f64) -> String {
    let mut text = String::new();
    let mut add = |table: Option<Table>| {
        if let Some(table) = table {
            text.push_str(&table.render());
            text.push('\n');
        }
    };
    for part in [Part::Clients, Part::Sizes, Part::Immediate, Part::Stopped, Part::Acknowledged, Part::Sustained] {
        add(of_part(part, rows));
    }
    add(paper::table(rows));
    let verdicts = goal::judge(rows, disk_mb_per_s);
    add((!verdicts.is_empty()).then(|| goal::table(&verdicts)));
    text
}

fn of_part(part: Part, rows: &[Row]) -> Option<Table> {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.part == part).collect();
    if rows.is_empty() {
        return None;
    }
    let timed = rows.iter().any(|row| row.immediate.is_some());
    let called = rows.iter().any(|row| row.acknowledged.is_some());
    let waiting = part == Part::Sustained;
    let mut headings = vec![part.name(), "clients", "size", "records/s", "MB/s"];
    if timed {
        headings.push("immediate p50, p99, longest ms");
    }
    if called {
        headings.push("call p50, p99, longest ms");
    }
    if waiting {
        headings.push("waiting at most, on average MB");
    }
    headings.extend(["bus, sockets, disk B/record", "CPU us/record", "RSS MB", ""]);
    let mut table = Table::new(&headings);
    for row in rows {
        let mut cells = vec![
            row.name.to_owned(),
            row.clients.to_string(),
            size(row.size),
            count(row.records_per_s),
            count(row.records_per_s * row.size as f64 / 1e6),
        ];
        for (_, times) in [(timed, row.immediate), (called, row.acknowledged)].into_iter().filter(|(is_shown, _)| *is_shown) {
            let ms = |us: Option<f64>| us.map_or("-".to_owned(), |us| format!("{:.2}", us / 1e3));
            let times = times.map(|times| [times.p50_us, times.p99_us, times.max_us].map(ms).join(", "));
            cells.push(times.unwrap_or_default());
        }
        if waiting {
            let waited = row.backlog.map(|backlog| format!("{:.2}, {:.2}", backlog.max / 1e6, backlog.mean / 1e6));
            cells.push(waited.unwrap_or_default());
        }
        let bytes = |bytes: Option<f64>| bytes.map_or("-".to_owned(), |bytes| format!("{bytes:.0}"));
        cells.push([row.bus, row.sockets, row.disk].map(bytes).join(", "));
        cells.push(by_process(&row.cpu_us, 3));
        cells.push(by_process(&row.rss_mb, 0));
        let slow = (row.rate_kept == Some(false)).then(|| "RATE NOT KEPT".to_owned());
        cells.push([row.bad()].into_iter().chain(slow).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "));
        table.row(cells);
    }
    Some(table)
}

fn by_process(list: &[(String, f64)], decimals: usize) -> String {
    list.iter().map(|(name, value)| format!("{name} {value:.decimals$}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cell::Outcome,
        log_line::plan::{self, Times},
    };

    #[test]
    fn every_part_has_its_table_and_loss_is_seen() {
        let times = Times { seconds: 1.0, long: 1.0, sustained: 1.0 };
        let cells = plan::cells(&[0, 1], &[50], times);
        let outcome = Outcome { per_second: 1e6, sent: 10, lost: 3, wire: Some(2600), ..Outcome::default() };
        let rows: Vec<Row> = cells.iter().map(|cell| Row::peer(cell, &outcome)).collect();
        let text = render(&rows, 500.0);
        for heading in ["clients ", "sizes ", "immediate ", "stopped ", "acknowledged ", "the paper's tests ", "goal "] {
            assert!(text.lines().any(|line| line.starts_with(heading)), "{heading}: {text}");
        }
        assert!(text.contains("LOST 3") && text.contains("-, 260, -") && !text.contains("sustained "), "{text}");
        assert!(render(&[], 1.0).is_empty());
    }
}
