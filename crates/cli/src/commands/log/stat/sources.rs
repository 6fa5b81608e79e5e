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
    let heading = ["records", "/s", "spooled", "lost", "not kept", "last seen", "state"];
    written(writeln!(out, "{}  source", columns(heading.map(str::to_owned))))?;
    sources.iter().try_for_each(|source| {
        let name = source["source"].as_str().unwrap_or("-");
        written(writeln!(out, "{}  {name}", columns(cells(source))))
    })
}

/// Says of each spool in which something lies, or where something was lost, what that is.
pub fn show_spools(spools: &[Value], out: &mut impl Write) -> Outcome {
    spools.iter().filter_map(describe_spool).try_for_each(|line| written(writeln!(out, "{line}")))
}

/// What lies in a spool, in words; nothing where nothing does.
pub fn describe_spool(spool: &Value) -> Option<String> {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let sources = spool["sources"].as_array().map(Vec::as_slice).unwrap_or_default();
    let lost: u64 = sources.iter().map(|source| number(&source["lost"]["records"])).sum();
    let (records, name) = (number(&spool["records"]), spool["spool"].as_str().unwrap_or("a spool"));
    let mut said = Vec::new();
    if records > 0 {
        let from = sources.iter().filter(|source| number(&source["records"]) > 0).count();
        let since = spool["since"].as_i64().map_or_else(String::new, |ns| format!(" since {}", Time(ns).to_acs()));
        let megabytes = number(&spool["bytes"]) as f64 / 1e6;
        said.push(format!("{records} records of {from} sources ({megabytes:.1} MB){since}"));
    }
    if lost > 0 {
        said.push(format!("{lost} records found no room there"));
    }
    if let Some(why) = spool["stuck"].as_str() {
        said.push(format!("it cannot be written: {why}"));
    }
    (!said.is_empty()).then(|| format!("{name}: {}", said.join("; ")))
}

fn columns([records, rate, spooled, lost, dropped, seen, state]: [String; 7]) -> String {
    format!("{records:>12}  {rate:>8}  {spooled:>8}  {lost:>8}  {dropped:>8}  {seen:<23}  {state:<8}")
}

fn cells(source: &Value) -> [String; 7] {
    let number = |name: &str| source[name].as_u64().unwrap_or(0);
    // A stream whose writer died may have held more than anybody knows.
    let lost = if number("open_ends") > 0 { format!("{}+?", number("lost_samples")) } else { number("lost_samples").to_string() };
    let dropped = number("refused") + number("over_quota") + number("rejected") + number("left_out") + number("lost_in_spool");
    let seen = source["last_seen"].as_i64().map_or_else(|| "-".to_owned(), |ns| Time(ns).to_acs());
    let state = source["state"].as_str().filter(|state| !state.is_empty()).unwrap_or("-").to_owned();
    [
        number("received").to_string(),
        number("rate").to_string(),
        number("spooled").to_string(),
        lost,
        dropped.to_string(),
        seen,
        state,
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_source_is_a_line_with_all_that_is_missing_of_it() {
        let status = json!({"sources": [
            {"source": "DV01", "received": 1200, "rate": 20, "lost_samples": 3, "open_ends": 1, "refused": 4, "over_quota": 5,
             "rejected": 6, "spooled": 7, "lost_in_spool": 8, "last_seen": 1_795_248_930_123_000_000_i64, "state": "died"},
            {"source": "CORR"},
        ]});
        let mut out = Vec::new();
        show(&status, false, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["1200", "20", "7", "3+?", "23", "2026-11-21T08:15:30.123", "died", "DV01"]);
        assert_eq!(lines[2], ["0", "0", "0", "0", "0", "-", "-", "CORR"]);
        let mut out = Vec::new();
        show(&status, true, &mut out).unwrap();
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 2);
    }
}
