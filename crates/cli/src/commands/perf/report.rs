//! The report of a measurement: lines for people, or one JSON object.

use std::io::Write;

use serde_json::Value;

use crate::failure::{Outcome, written};

/// Writes a report to standard output.
pub fn show(report: &Value, json: bool) -> Outcome {
    let mut out = std::io::stdout().lock();
    if json {
        return written(writeln!(out, "{report}"));
    }
    let mut lines = Vec::new();
    flatten("", report, &mut lines);
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    lines.iter().try_for_each(|(name, value)| written(writeln!(out, "{name:<width$}  {value}")))
}

/// A line for each number or text in a report, named by the way to it.
fn flatten(name: &str, value: &Value, lines: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                let name = if name.is_empty() { field.clone() } else { format!("{name} {field}") };
                flatten(&name, value, lines);
            }
        }
        Value::Null => {}
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(text).collect();
            lines.push((name.replace('_', " "), values.join(" ")));
        }
        other => lines.push((name.replace('_', " "), text(other))),
    }
}

/// Four significant digits are enough for people.
fn text(value: &Value) -> String {
    match value.as_f64().filter(|_| value.is_f64()) {
        Some(number) if number == 0.0 || number.abs() >= 1000.0 => format!("{number:.0}"),
        Some(number) => {
            let decimals = (3 - number.abs().log10().floor() as i32).clamp(0, 9) as usize;
            format!("{number:.decimals$}")
        }
        None => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_is_a_line_a_number() {
        let mut lines = Vec::new();
        flatten("", &json!({"per_s": 123456.7, "cpu_s": {"sender": 0.012346, "relay": null}, "list": [1, 2.5]}), &mut lines);
        let lines: Vec<String> = lines.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(lines, ["cpu s sender=0.01235", "list=1 2.500", "per s=123457"]);
    }
}
