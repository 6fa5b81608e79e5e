//! The tables of a run.

use crate::{
    event::{
        goal, paper,
        plan::{Cell, Part, TANGO},
        row::Row,
    },
    table::{Table, count, size},
};

/// Returns all tables, in the order of the cells.
pub fn render(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut add = |table: Option<Table>| {
        if let Some(table) = table {
            text.push_str(&table.render());
            text.push('\n');
        }
    };
    let clients = numbers(rows, |cell| cell.clients);
    for part in [Part::Table, Part::Small] {
        for elements in numbers(rows.iter().filter(|row| row.cell.part == part), |cell| cell.elements) {
            add(rates(rows, part, elements, &clients));
        }
    }
    add(latencies(rows));
    add(many(rows));
    let verdicts = goal::judge(rows);
    add((!verdicts.is_empty()).then(|| goal::table(&verdicts)));
    text
}

/// Returns the numbers that occur in the cells, each once, in their order.
fn numbers<'a>(rows: impl IntoIterator<Item = &'a Row>, of: impl Fn(&Cell) -> usize) -> Vec<usize> {
    let mut all: Vec<usize> = rows.into_iter().map(|row| of(&row.cell)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns the rate of C++ Tango with this many elements to this many clients. If it was searched for, this is the
/// highest rate without loss.
fn tango(rows: &[Row], elements: usize, clients: usize) -> Option<f64> {
    let wanted = |row: &&Row| {
        (row.cell.part, row.cell.player.name, row.cell.elements, row.cell.clients) == (Part::Table, TANGO, elements, clients)
    };
    let figures = &rows.iter().find(wanted)?.figures;
    Some(figures.lossless_per_s.unwrap_or(figures.events_per_s)).filter(|rate| *rate > 0.0)
}

/// Writes the events a second: the paper's lines, then those of all measured systems, with a column for each number of
/// clients.
fn rates(rows: &[Row], part: Part, elements: usize, clients: &[usize]) -> Option<Table> {
    let here: Vec<&Row> = rows.iter().filter(|row| (row.cell.part, row.cell.elements) == (part, elements)).collect();
    let mut names: Vec<&str> = Vec::new();
    here.iter().map(|row| row.cell.player.name).for_each(|name| {
        if !names.contains(&name) {
            names.push(name);
        }
    });
    // The others' event of one DevLong corresponds to an event of 92 bytes.
    let like = if part == Part::Small { 1 } else { elements };
    let what = match part {
        Part::Small => format!("values of {}: events/s to", size(here.first()?.cell.bytes())),
        _ => format!("{elements} DevLong ({}): events/s to", size(here.first()?.cell.bytes())),
    };
    let columns: Vec<String> = clients.iter().map(|clients| format!("{clients} clients")).collect();
    let mut headings = vec![what.as_str()];
    headings.extend(columns.iter().map(String::as_str));
    headings.push("CPU us an event and client");
    let mut table = Table::new(&headings);
    for line in paper::LINES.iter().filter(|line| part == Part::Table && line.elements == elements) {
        let figures = clients.iter().map(|&clients| line.of(clients).map_or(String::new(), |rate| format!("{rate}")));
        table.row([format!("paper: {}", line.system)].into_iter().chain(figures).collect());
    }
    for name in names {
        let find = |clients: usize| here.iter().find(|row| row.cell.player.name == name && row.cell.clients == clients);
        let mut cells = vec![name.to_owned()];
        cells.extend(
            clients.iter().map(|&clients| find(clients).map_or(String::new(), |row| rate(row, tango(rows, like, clients)))),
        );
        let cpu: Vec<String> = clients.iter().filter_map(|&clients| find(clients)).map(|row| cpu_us(row)).collect();
        cells.push(cpu.join(" "));
        table.row(cells);
    }
    Some(table)
}

fn rate(row: &Row, tango: Option<f64>) -> String {
    let rate = row.figures.events_per_s;
    let times = tango.filter(|_| row.cell.player.name != TANGO).map(|tango| format!("x{:.1}", rate / tango));
    let lossless = row.figures.lossless_per_s.map(|rate| format!("({} without loss)", count(rate)));
    let bad = Some(row.bad()).filter(|bad| !bad.is_empty());
    [Some(count(rate)), times, bad, lossless].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Returns the processor time of all processes for one event at one client.
fn cpu_us(row: &Row) -> String {
    let all = row.figures.cpu_s.iter().flatten().fold(0.0, |sum, cpu| sum + cpu);
    let came = (row.figures.pushed * row.cell.clients as f64 - row.figures.lost).max(1.0);
    format!("{:.2}", all * 1e6 / came)
}

fn latencies(rows: &[Row]) -> Option<Table> {
    let mut table = Table::new(&["one event a millisecond, us", "p50", "p99", "longest", ""]);
    let mut any = false;
    for row in rows {
        let Some([p50, p99, longest]) = row.figures.latency_us else { continue };
        any = true;
        let name = row.cell.player.name.to_owned();
        table.row(vec![name, format!("{p50:.0}"), format!("{p99:.0}"), format!("{longest:.0}"), row.bad()]);
    }
    any.then_some(table)
}

fn many(rows: &[Row]) -> Option<Table> {
    let mut table =
        Table::new(&["10 000 attributes", "events/s", "of a core: server", "node", "client", "subscribing s", "B each", ""]);
    let mut any = false;
    for row in rows.iter().filter(|row| row.cell.part == Part::Many) {
        any = true;
        let of_a_core =
            |cpu: Option<f64>| cpu.map_or("-".to_owned(), |cpu| format!("{:.1} %", 100.0 * cpu / row.figures.seconds.max(1e-9)));
        let mut cells = vec![row.cell.player.name.to_owned(), count(row.figures.events_per_s)];
        cells.extend(row.figures.cpu_s.map(of_a_core));
        let took = row.figures.subscribing.unwrap_or_default();
        cells.extend([format!("{:.2}", took.first_values_s), format!("{:.0}", took.bytes_each), row.bad()]);
        table.row(cells);
    }
    any.then_some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{plan::cells, row::Figures};

    #[test]
    fn everything_has_its_table_and_loss_is_seen() {
        let figures = Figures { pushed: 1000.0, events_per_s: 2e6, seconds: 1.0, ..Figures::default() };
        let row = |cell: Cell| {
            let mut figures = figures.clone();
            if cell.player.name == TANGO {
                (figures.events_per_s, figures.lost) = (1e6, 670.0);
            }
            figures.latency_us = (cell.part == Part::Latency).then_some([1.0, 2.0, 3.0]);
            Row { cell, figures }
        };
        let rows: Vec<Row> = cells(&[1, 10], &[1], 1.0).into_iter().map(row).collect();
        let text = render(&rows);
        for heading in ["1 DevLong (4 B)", "values of 92 B", "one event a millisecond", "10 000 attributes", "goal "] {
            assert!(text.lines().any(|line| line.starts_with(heading)), "{heading}: {text}");
        }
        let line = |begin: &str| text.lines().find(|line| line.starts_with(begin)).unwrap_or_default().to_owned();
        assert!(line("paper: ZeroMQ").contains("16000") && line(TANGO).contains("LOST 67 %"), "{text}");
        assert!(line("tampu-streamed").contains("2.00 M x2.0"), "{text}");
        assert!(render(&[]).is_empty());
    }
}
