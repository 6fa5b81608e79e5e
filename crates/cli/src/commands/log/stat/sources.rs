//! Records of each process, as the collector has counted them since its start.

use std::io::Write;

use serde_json::{Value, json};
use tampu_types::Time;

use crate::{
    failure::{Outcome, written},
    output::table::printable,
    plural::counted,
    time_expression::now,
    time_text,
};

/// Writes the processes of a collector's status: a line each for people, or a JSON object with the names of the columns.
pub fn show(status: &Value, json: bool, out: &mut impl Write) -> Outcome {
    let processes = status["sources"].as_array().map(Vec::as_slice).unwrap_or_default();
    if json {
        return processes.iter().try_for_each(|process| written(writeln!(out, "{}", object(process))));
    }
    let seen = format!("last seen ({})", time_text::zone_name(now()));
    let heading = ["records", "/s", "spooled", "lost", "not kept", &seen, "state"];
    written(writeln!(out, "{}  process", columns(heading.map(str::to_owned))))?;
    processes.iter().try_for_each(|process| {
        let name = process["source"].as_str().unwrap_or("-");
        written(writeln!(out, "{}  {}", columns(cells(process)), printable(name)))
    })
}

/// Returns a process under the names of the table. `lost_at_least` marks a dead writer whose unsent records are
/// unknown.
fn object(process: &Value) -> Value {
    let number = |name: &str| process[name].as_u64().unwrap_or(0);
    let mut object = json!({
        "process": process["source"], "incarnation": process["incarnation"], "host": process["host"],
        "records": number("received"), "per_s": number("rate"), "spooled": number("spooled"), "lost": number("lost_samples") + number("lost_in_rings"),
        "lost_at_least": number("open_ends") > 0, "not_kept": not_kept(process), "last_seen": process["last_seen"],
        "state": process["state"],
    });
    time_text::in_json(&mut object);
    object
}

/// Returns the number of records that arrived and were not kept, for any reason.
fn not_kept(process: &Value) -> u64 {
    let reasons = ["refused", "over_quota", "rejected", "left_out", "lost_in_spool"];
    reasons.iter().map(|name| process[*name].as_u64().unwrap_or(0)).sum()
}

/// Prints the contents and losses of each spool that has any.
pub fn show_spools(spools: &[Value], out: &mut impl Write) -> Outcome {
    spools.iter().filter_map(describe_spool).try_for_each(|line| written(writeln!(out, "{line}")))
}

/// Describes the content of a spool; `None` if it is empty.
pub fn describe_spool(spool: &Value) -> Option<String> {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let sources = spool["sources"].as_array().map(Vec::as_slice).unwrap_or_default();
    let lost: u64 = sources.iter().map(|source| number(&source["lost"]["records"])).sum();
    let (records, name) = (number(&spool["records"]), spool["spool"].as_str().unwrap_or("a spool"));
    let mut said = Vec::new();
    if records > 0 {
        let from = sources.iter().filter(|source| number(&source["records"]) > 0).count();
        let since = spool["since"].as_i64().map_or_else(String::new, |ns| format!(" since {}", time_text::with_zone(Time(ns))));
        let megabytes = number(&spool["bytes"]) as f64 / 1e6;
        let (records, from) = (counted(records, "record"), counted(from as u64, "process"));
        said.push(format!("{records} of {from} ({megabytes:.1} MB){since}"));
    }
    if lost > 0 {
        said.push(format!("{} found no room there", counted(lost, "record")));
    }
    if let Some(why) = spool["stuck"].as_str() {
        said.push(format!("it cannot be written: {why}"));
    }
    (!said.is_empty()).then(|| printable(&format!("{name}: {}", said.join("; "))).into_owned())
}

fn columns([records, rate, spooled, lost, dropped, seen, state]: [String; 7]) -> String {
    format!("{records:>12}  {rate:>8}  {spooled:>8}  {lost:>8}  {dropped:>8}  {seen:<23}  {state:<8}")
}

fn cells(source: &Value) -> [String; 7] {
    let number = |name: &str| source[name].as_u64().unwrap_or(0);
    // A stream whose writer died may have held more than the reported number.
    let lost = number("lost_samples") + number("lost_in_rings");
    let lost = if number("open_ends") > 0 { format!("{lost}+?") } else { lost.to_string() };
    let seen = source["last_seen"].as_i64().map_or_else(|| "-".to_owned(), |ns| time_text::local(Time(ns)));
    let state = source["state"].as_str().filter(|state| !state.is_empty()).unwrap_or("-").to_owned();
    [
        number("received").to_string(),
        number("rate").to_string(),
        number("spooled").to_string(),
        lost,
        not_kept(source).to_string(),
        seen,
        state,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_line_with_all_that_is_missing_of_it() {
        let status = json!({"sources": [
            {"source": "DV01", "received": 1200, "rate": 20, "lost_samples": 3, "lost_in_rings": 8492, "open_ends": 1, "refused": 4, "over_quota": 5,
             "rejected": 6, "spooled": 7, "lost_in_spool": 8, "last_seen": 1_795_248_930_123_000_000_i64, "state": "died"},
            {"source": "CORR\u{1b}"},
        ]});
        let mut out = Vec::new();
        show(&status, false, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["1200", "20", "7", "8495+?", "23", "2026-11-21T08:15:30.123", "died", "DV01"]);
        assert_eq!(lines[2], ["0", "0", "0", "0", "0", "-", "-", "CORR\\x1b"]);
        let mut out = Vec::new();
        show(&status, true, &mut out).unwrap();
        let lines: Vec<Value> = out.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((&lines[0]["lost"], &lines[0]["not_kept"], &lines[0]["process"]), (&json!(8495), &json!(23), &json!("DV01")));
        assert_eq!(lines[0]["last_seen"], "2026-11-21T08:15:30.123000000Z");
    }
}
