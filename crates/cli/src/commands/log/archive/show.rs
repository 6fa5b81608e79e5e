//! Results of archive commands, for people and as JSON.

use std::{borrow::Cow, io::Write};

use serde_json::Value;
use tampu_archive::{BackedUp, Checked, Compacted, Fault, upkeep::Done};
use tampu_types::units::Size;

use crate::{
    failure::{Failure, Outcome, written},
    time_text,
};

/// The answer without the name of the question.
pub fn inner(done: &Done) -> Result<Cow<'_, Value>, Failure> {
    let value = match done {
        Done::Health(health) => return Ok(Cow::Borrowed(health)),
        Done::Compact(compacted) => serde_json::to_value(compacted),
        Done::Check(checked) => serde_json::to_value(checked),
        Done::Backup(made) => serde_json::to_value(made),
    };
    value.map(Cow::Owned).map_err(|error| Failure::failed("the answer as JSON", error))
}

pub fn show(done: &Done, out: &mut dyn Write) -> Outcome {
    match done {
        Done::Health(health) => show_health(health, out),
        Done::Compact(Compacted { files, records, bytes }) => {
            let each = per_record(*bytes, *records);
            written(writeln!(out, "{records} records in {files} Parquet files, {}{each}", Size(*bytes)))
        }
        Done::Check(checked) => show_check(checked, out),
        Done::Backup(made) => {
            let BackedUp { directory, records, kept, linked, copied, copied_bytes, removed } = made;
            written(writeln!(out, "{records} records in {}", directory.display()))?;
            let copied_bytes = Size(*copied_bytes);
            written(writeln!(
                out,
                "{copied} files copied ({copied_bytes}), {linked} linked, {kept} were there already, {removed} removed"
            ))
        }
    }
}

fn show_check(checked: &Checked, out: &mut dyn Write) -> Outcome {
    let Checked { segments, files, records, ids, bytes, faults, complete } = checked;
    written(writeln!(
        out,
        "{records} records ({ids} ids) in {segments} segments and {files} Parquet files, {} read",
        Size(*bytes)
    ))?;
    faults.iter().try_for_each(|fault| show_fault(fault, out))?;
    let end = match (complete, faults.is_empty()) {
        (true, true) => "everything is as it should be",
        (true, false) => "everything else is as it should be",
        (false, _) => "ended early: faults in the rest are not known",
    };
    written(writeln!(out, "{end}"))
}

fn show_fault(fault: &Fault, out: &mut dyn Write) -> Outcome {
    let Fault { file, from, to, what } = fault;
    let place = if to > from { format!(", bytes {from} to {to}") } else { String::new() };
    written(writeln!(out, "{}{place}: {what}", file.display()))
}

fn show_health(health: &Value, out: &mut dyn Write) -> Outcome {
    let number = |name: &str| health[name].as_u64().unwrap_or_default();
    let text = |name: &str| health[name].as_str();
    let time = |name: &str| health[name].as_i64().map(|ns| time_text::with_zone(tampu_types::Time(ns)));
    let (records, bytes) = (number("records"), number("bytes"));
    written(writeln!(out, "records        {records}, {}{}", Size(bytes), per_record(bytes, records)))?;
    if let (Some(earliest), Some(latest)) = (time("earliest"), time("latest")) {
        written(writeln!(out, "times          {earliest} to {latest}"))?;
    }
    written(writeln!(out, "Parquet files  {} with {} records", number("files"), number("in_files")))?;
    written(writeln!(out, "segments       {}, {} of them wait for compaction", number("segments"), number("waiting")))?;
    let slowest = number("slowest_commit_us") as f64 / 1e3;
    written(writeln!(
        out,
        "commits        {}, the slowest took {slowest:.1} ms; {} wait",
        number("commits"),
        Size(number("pending"))
    ))?;
    written(writeln!(out, "duplicates     {} not stored again", number("duplicates")))?;
    for (name, what) in [("stuck", "cannot be written"), ("compaction_stuck", "cannot be compacted")] {
        if let Some(why) = text(name) {
            written(writeln!(out, "{what}: {why}"))?;
        }
    }
    let faults: Vec<Fault> = serde_json::from_value(health["faults"].clone()).unwrap_or_default();
    faults.iter().try_for_each(|fault| show_fault(fault, out))
}

fn per_record(bytes: u64, records: u64) -> String {
    if records == 0 { String::new() } else { format!(", {:.1} bytes a record", bytes as f64 / records as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_divided_among_records() {
        assert_eq!((per_record(0, 0), per_record(395, 10)), (String::new(), ", 39.5 bytes a record".to_owned()));
    }
}
