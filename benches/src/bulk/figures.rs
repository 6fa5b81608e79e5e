//! The paper's figures 5 to 7 (Di Marcantonio et al., ICALEPCS 2005) from a run. Figure 5 is throughput by block size,
//! with and without hand-shake, beside a call for each block. Figure 6 has the two curves of Tampu alone. Figure 7 is
//! time by size with straight lines.

use std::{io, path::Path};

use super::row::Row;
use crate::chart::{Axis, Chart, Series};

const OURS: [(&str, &str, &str); 3] = [
    ("tcp-handshake", "with hand-shake", "#0072b2"),
    ("tcp", "without hand-shake", "#d55e00"),
    ("bus-ask", "a question a block", "#009e73"),
];

fn points(rows: &[Row], carrier: &str, of: impl Fn(&Row) -> (f64, f64)) -> Vec<(f64, f64, f64)> {
    let mut found: Vec<&Row> = rows.iter().filter(|row| row.carrier.name == carrier && row.receivers == 1).collect();
    found.sort_by_key(|row| row.size);
    found.into_iter().map(|row| (row.size as f64, of(row).0, of(row).1)).collect()
}

/// Writes those for which there are rows; says which.
pub fn write(rows: &[Row], directory: &Path) -> io::Result<Vec<String>> {
    std::fs::create_dir_all(directory)?;
    let megabytes = |row: &Row| (row.rate().0 / 1e6, row.rate().1 / 1e6);
    let series = |which: &[(&str, &str, &str)]| -> Vec<Series> {
        let one = |(carrier, name, colour): &(&str, &str, &str)| Series {
            name: (*name).to_owned(),
            colour: (*colour).to_owned(),
            points: points(rows, carrier, megabytes),
            line: false,
        };
        which.iter().map(one).filter(|series| !series.points.is_empty()).collect()
    };
    let (bytes, rate) = (Axis::log("block, bytes"), Axis::linear("MB/s"));
    let times = |(carrier, name, colour): &(&str, &str, &str)| Series {
        name: (*name).to_owned(),
        colour: (*colour).to_owned(),
        points: points(rows, carrier, |row| {
            let (rate, error) = row.rate();
            let time = 1e3 * row.size as f64 / rate;
            (time, time * error / rate)
        }),
        line: true,
    };
    let linear = OURS.iter().map(times).filter(|series| !series.points.is_empty()).collect();
    let charts = [
        (
            "figure-5.svg",
            Chart { title: "Throughput by block".to_owned(), x: bytes.clone(), y: rate.clone(), series: series(&OURS) },
        ),
        ("figure-6.svg", Chart { title: "What the hand-shake costs".to_owned(), x: bytes, y: rate, series: series(&OURS[..2]) }),
        (
            "figure-7.svg",
            Chart {
                title: "Time of a block; lines through the origin".to_owned(),
                x: Axis::linear("block, bytes"),
                y: Axis::linear("ms"),
                series: linear,
            },
        ),
    ];
    let mut written = Vec::new();
    for (name, chart) in charts {
        if chart.series.iter().any(|series| series.points.len() > 1) {
            std::fs::write(directory.join(name), chart.render())?;
            written.push(name.to_owned());
        }
    }
    Ok(written)
}
