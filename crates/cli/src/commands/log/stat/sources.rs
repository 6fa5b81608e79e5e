//! Who sends how much, as the collector counts it since it started.

use std::io::Write;

use serde_json::Value;
use tampu_types::Time;

use crate::failure::{Outcome, written};

/// Writes the sources of a collector's status: a line each for people, or a JSON object.
pub fn show(status: &Value, json: bool, out: &mut impl Write) -> Outcome {
    let sources = status["sources"].as_array().map(Vec::as_slice).unwrap_or_default();
    if json {
        return sources.iter().try_for_each(|source| written(writeln!(out, "{source}")));
    }
    let heading = ["records", "/s", "lost", "not kept", "last seen", "state"];
    written(writeln!(out, "{}  source", columns(heading.map(str::to_owned))))?;
    sources.iter().try_for_each(|source| {
        let name = source["source"].as_str().unwrap_or("-");
        written(writeln!(out, "{}  {name}", columns(cells(source))))
    })
}

fn columns([records, rate, lost, dropped, seen, state]: [String; 6]) -> String {
    format!("{records:>12}  {rate:>8}  {lost:>8}  {dropped:>8}  {seen:<23}  {state:<8}")
}

fn cells(source: &Value) -> [String; 6] {
    let number = |name: &str| source[name].as_u64().unwrap_or(0);
    // A stream whose writer died may have held more than anybody knows.
    let lost = if number("open_ends") > 0 { format!("{}+?", number("lost_samples")) } else { number("lost_samples").to_string() };
    let dropped = number("refused") + number("over_quota") + number("rejected") + number("left_out");
    let seen = source["last_seen"].as_i64().map_or_else(|| "-".to_owned(), |ns| Time(ns).to_acs());
    let state = source["state"].as_str().filter(|state| !state.is_empty()).unwrap_or("-").to_owned();
    [number("received").to_string(), number("rate").to_string(), lost, dropped.to_string(), seen, state]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_source_is_a_line_with_all_that_is_missing_of_it() {
        let status = json!({"sources": [
            {"source": "DV01", "received": 1200, "rate": 20, "lost_samples": 3, "open_ends": 1, "refused": 4, "over_quota": 5,
             "rejected": 6, "last_seen": 1_795_248_930_123_000_000_i64, "state": "died"},
            {"source": "CORR"},
        ]});
        let mut out = Vec::new();
        show(&status, false, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["1200", "20", "3+?", "15", "2026-11-21T08:15:30.123", "died", "DV01"]);
        assert_eq!(lines[2], ["0", "0", "0", "0", "-", "-", "CORR"]);
        let mut out = Vec::new();
        show(&status, true, &mut out).unwrap();
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 2);
    }
}
