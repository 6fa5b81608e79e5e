//! The paper's Tests 1 and 2, beside Tampu's figures. A component logs as fast as it can, without clients and with one.
//! The paper is Avarias et al., "Introducing high performance distributed logging service for ACS", 2010.

use crate::{
    log_line::{plan::Part, row::Row},
    table::{Table, count},
};

/// A line of the paper's two tables.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    /// The system's name in the paper.
    pub system: &'static str,
    /// Logs a second without and with a client.
    pub per_s: [f64; 2],
    /// Processor time of the logging service, per cent.
    pub service: [f64; 2],
    /// Processor time of the notification service, if there was one.
    pub notify: [Option<f64>; 2],
}

const fn line(system: &'static str, per_s: [f64; 2], service: [f64; 2], notify: [Option<f64>; 2]) -> Line {
    Line { system, per_s, service, notify }
}

/// All published lines.
pub const LINES: [Line; 4] = [
    line("ACS before 8.1", [5e3, 4e3], [60.0, 55.0], [Some(50.0), Some(65.0)]),
    line("ACS after 8.1", [24e3, 17e3], [35.0, 30.0], [Some(15.0), Some(25.0)]),
    line("DDS", [31e3, 25e3], [55.0, 50.0], [None, None]),
    line("DDS with sequences", [27e3, 23e3], [10.0, 10.0], [None, None]),
];

/// The systems of Tampu that do the same work as the paper's systems: they deliver to the clients. The others also
/// store the records.
const OURS: [(&str, &str); 3] = [
    ("tampu-live", "live, sequences of 100"),
    ("tampu-stored", "kept on disk, sequences of 100"),
    ("tampu-stored-1", "kept on disk, one by one"),
];

/// Returns the highest published rate, without and with a client.
pub fn best(clients: usize) -> Option<f64> {
    LINES.iter().filter_map(|line| line.per_s.get(clients).copied()).max_by(f64::total_cmp)
}

/// Returns the two tests, published and measured, or `None` if neither was run.
pub fn table(rows: &[Row]) -> Option<Table> {
    let mut table =
        Table::new(&["the paper's tests", "clients", "logs/s", "its best x", "service CPU %", "notify or node CPU %"]);
    let mut any = false;
    for clients in [0, 1] {
        let ours: Vec<(&str, &Row)> = OURS
            .iter()
            .filter_map(|(name, what)| {
                let wanted = |row: &&Row| row.part == Part::Clients && row.name == *name && row.clients == clients;
                Some((*what, rows.iter().find(wanted)?))
            })
            .collect();
        if ours.is_empty() {
            continue;
        }
        any = true;
        for line in LINES {
            table.row(vec![
                format!("Test {}: {}", clients + 1, line.system),
                clients.to_string(),
                format!("~{}", count(line.per_s[clients])),
                String::new(),
                format!("~{:.0}", line.service[clients]),
                line.notify[clients].map_or("-".to_owned(), |notify| format!("~{notify:.0}")),
            ]);
        }
        for (what, row) in ours {
            let load = |name: &str| row.load.iter().find(|(found, _)| found == name).map(|(_, load)| load * 100.0);
            let per_cent = |load: Option<f64>| load.map_or("-".to_owned(), |load| format!("{load:.0}"));
            let times = best(clients).map_or(String::new(), |best| format!("{:.0}", row.records_per_s / best));
            table.row(vec![
                format!("Test {}: Tampu, {what}", clients + 1),
                clients.to_string(),
                format!("{} {}", count(row.records_per_s), row.bad()).trim().to_owned(),
                times,
                per_cent(load("collector")),
                per_cent(load("node")),
            ]);
        }
    }
    any.then_some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_best_is_dds_one_by_one() {
        assert_eq!((best(0), best(1), best(2)), (Some(31e3), Some(25e3), None));
        assert!(table(&[]).is_none());
    }
}
