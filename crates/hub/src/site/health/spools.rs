//! The check of spools: records that wait on the disks of their hosts for a collector.

use serde_json::Value;
use tampu_types::Time;

use super::finding::{Finding, Grade, few};
use crate::plural::counted;

/// Part of a bound from which a spool, or the share of one source, is nearly full.
const NEARLY: f64 = 0.9;

/// Finds spools that cannot write, are nearly full, have refused records or wait for a collector.
pub fn check(spools: &[Value], now: Time) -> Vec<Finding> {
    let mut found: Vec<Finding> = spools.iter().flat_map(|spool| one(spool, now)).collect();
    if found.is_empty() && !spools.is_empty() {
        let text = format!(
            "{}, nothing waits in {}",
            counted(spools.len() as u64, "spool"),
            if spools.len() == 1 { "it" } else { "them" }
        );
        found.push(("spools", Grade::Ok, text, ""));
    }
    found
}

fn one(spool: &Value, now: Time) -> Vec<Finding> {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let name = spool["spool"].as_str().unwrap_or("a spool");
    let sources = spool["sources"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut found = Vec::new();
    if let Some(why) = spool["stuck"].as_str() {
        let text = format!("{name} cannot be written: {why}");
        found.push(("spools", Grade::Fail, text, "make room on the disk of its host, or see the rights of its directory"));
    }
    let (records, bytes) = (number(&spool["records"]), number(&spool["bytes"]));
    if records > 0 {
        let age = spool["since"].as_i64().map(|since| now.0.saturating_sub(since).max(0) / 1_000_000_000);
        let age = age.map_or_else(String::new, |age| format!(", the oldest for {age} s"));
        let text = format!("{name}: {} ({:.1} MB) wait for a collector{age}", counted(records, "record"), bytes as f64 / 1e6);
        found.push(("spools", Grade::Warn, text, "they go to a collector as soon as one runs and its disk has room: tampu up"));
    }
    // Reports of earlier releases have no limits.
    let is_near = |bytes: &Value, limit: &Value| {
        let limit = number(limit);
        limit > 0 && number(bytes) as f64 >= NEARLY * limit as f64
    };
    let names = |of: &dyn Fn(&Value) -> bool| -> Vec<String> {
        sources.iter().filter(|source| of(source)).map(|source| source["source"].as_str().unwrap_or("?").to_owned()).collect()
    };
    let way_out = "start a collector, or raise the limits of [spool] there: what finds no room is refused and counted";
    let full = names(&|source| is_near(&source["bytes"], &spool["source_limit"]));
    if is_near(&spool["bytes"], &spool["limit"]) {
        found.push(("spools", Grade::Warn, format!("{name} is nearly full"), way_out));
    } else if !full.is_empty() {
        found.push(("spools", Grade::Warn, format!("{name} is nearly full for {}", few(&full)), way_out));
    }
    let lost: u64 = sources.iter().map(|source| number(&source["lost"]["records"])).sum();
    if lost > 0 {
        let of = few(&names(&|source| number(&source["lost"]["records"]) > 0));
        let text = format!("{name} has refused {} of {of}", counted(lost, "record"));
        found.push((
            "spools",
            Grade::Warn,
            text,
            "'tampu log stat --processes' lists them; a collector that runs lets no spool fill",
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(spools: &[Value]) -> Vec<(Grade, String)> {
        check(spools, Time(100_000_000_000)).into_iter().map(|(_, grade, text, _)| (grade, text)).collect()
    }

    #[test]
    fn empty_spools_are_ok() {
        let empty = json!({"spool": "hub@a", "records": 0, "bytes": 0, "limit": 1000, "source_limit": 100, "sources": []});
        assert_eq!(texts(&[empty]), [(Grade::Ok, "1 spool, nothing waits in it".to_owned())]);
        assert_eq!(texts(&[]), []);
    }

    #[test]
    fn waiting_full_refusing_and_stuck_spools_are_found() {
        let source = |name: &str, bytes: u64, lost: u64| json!({"source": name, "bytes": bytes, "lost": {"records": lost}});
        let a = json!({"spool": "a", "records": 7, "bytes": 500_000, "limit": 10_000_000, "source_limit": 500_000,
            "since": 40_000_000_000_i64, "sources": [source("DV01", 450_000, 0), source("DV02", 50_000, 3)]});
        let b = json!({"spool": "b", "records": 0, "bytes": 950, "limit": 1000, "stuck": "no space", "sources": []});
        // Of an earlier release.
        let c = json!({"spool": "c", "records": 1, "bytes": 950});
        let said = texts(&[a, b, c]);
        let said: Vec<_> = said.iter().map(|(grade, text)| (*grade, text.as_str())).collect();
        assert_eq!(
            said,
            [
                (Grade::Warn, "a: 7 records (0.5 MB) wait for a collector, the oldest for 60 s"),
                (Grade::Warn, "a is nearly full for DV01"),
                (Grade::Warn, "a has refused 3 records of DV02"),
                (Grade::Fail, "b cannot be written: no space"),
                (Grade::Warn, "b is nearly full"),
                (Grade::Warn, "c: 1 record (0.0 MB) wait for a collector"),
            ]
        );
    }
}
