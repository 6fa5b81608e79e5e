//! Counters of each process's loggers since its start, as the process reports them.

use std::io::Write;

use serde_json::json;
use tampu_log::logger::control::{Counted, Heard, Question};

use crate::{
    connect::Connect,
    failure::{Outcome, written},
    loggers::{self, Loggers},
    output::table::printable,
};

/// Asks every process and writes a line for each, or a JSON object.
pub fn show(connect: &Connect, json: bool, out: &mut impl Write) -> Outcome {
    // The empty name matches no logger: the answers hold statistics without lists of loggers.
    let question = Question { name: Some(String::new()), ..Question::default() };
    let heard = Loggers::find(connect, "tampu-stat")?.ask(&question)?;
    write(&heard, json, out)?;
    loggers::tell_missing(&heard);
    Ok(())
}

fn write(heard: &Heard, json: bool, out: &mut impl Write) -> Outcome {
    let mut processes: Vec<_> = heard.processes.iter().collect();
    processes.sort_by_key(|(incarnation, process)| (&process.source, **incarnation));
    if json {
        return processes.into_iter().try_for_each(|(incarnation, process)| {
            let line = json!({"process": process.source, "incarnation": incarnation, "stats": process.stats});
            written(writeln!(out, "{line}"))
        });
    }
    let columns = |[records, dropped, waited, bytes]: [&str; 4]| format!("{records:>12}  {dropped:>8}  {waited:>8}  {bytes:>12}");
    written(writeln!(out, "{}  process", columns(["records", "dropped", "waited", "bytes"])))?;
    processes.into_iter().try_for_each(|(_, process)| {
        let Counted { published, dropped, waited, bytes, .. } = &process.stats;
        let numbers = [published, dropped, waited, bytes].map(u64::to_string);
        let row = columns(numbers.each_ref().map(String::as_str));
        written(writeln!(out, "{row}  {}{}", printable(&process.source), details(&process.stats)))
    })
}

/// Returns the details beside the columns: ` (Info 10, Error 2; 4096 bytes waited at most)`.
fn details(stats: &Counted) -> String {
    let levels: Vec<String> = stats.by_level.iter().map(|(level, records)| format!("{} {records}", level.name())).collect();
    let high_water = stats.high_water.map(|bytes| format!("{bytes} bytes waited at most"));
    let some = |count: u64, what: &str| (count > 0).then(|| format!("{count} {what}"));
    let suppressed = some(stats.suppressed, "suppressed");
    let unprinted = some(stats.unprinted, "not printed");
    let levels = (!levels.is_empty()).then(|| levels.join(", "));
    let details: Vec<String> = [levels, high_water, suppressed, unprinted].into_iter().flatten().collect();
    if details.is_empty() { String::new() } else { format!(" ({})", details.join("; ")) }
}

#[cfg(test)]
mod tests {
    use tampu_log::{Level, logger::control::ProcessLoggers};
    use tampu_types::Incarnation;

    use super::*;

    #[test]
    fn a_process_is_a_line_with_all_its_loggers_have_done() {
        let busy = Counted {
            published: 12,
            by_level: [(Level::Error, 2), (Level::Info, 10)].into(),
            dropped: 3,
            waited: 4,
            bytes: 5000,
            high_water: Some(4096),
            unprinted: 0,
            suppressed: 6,
        };
        let process = |pid, source: &str, stats| {
            let process = ProcessLoggers { source: source.into(), loggers: Vec::new(), stats };
            (Incarnation { boot: 1, pid, start: 1 }, process)
        };
        let processes = [process(1, "DV01", busy), process(2, "CORR\x1b[2J\u{202e}", Counted::default())].into();
        let heard = Heard { processes, ..Heard::default() };
        let mut out = Vec::new();
        write(&heard, false, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(lines[1]), ["0", "0", "0", "0", "CORR\\x1b[2J\\u{202e}"]);
        assert_eq!(words(lines[2])[..4], ["12", "3", "4", "5000"]);
        assert!(lines[2].ends_with("  DV01 (Info 10, Error 2; 4096 bytes waited at most; 6 suppressed)"), "{text}");
        let mut out = Vec::new();
        write(&heard, true, &mut out).unwrap();
        let line: serde_json::Value = serde_json::from_slice(out.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
        assert_eq!((&line["process"], line["stats"]["dropped"].as_u64()), (&"CORR\u{1b}[2J\u{202e}".into(), Some(0)));
        assert_eq!(line["incarnation"], "00000001-00000002-0000000000000001");
    }
}
