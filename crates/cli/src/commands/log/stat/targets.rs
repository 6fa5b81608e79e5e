//! Targets of a collector's routes and their state.

use std::io::Write;

use serde_json::Value;

use crate::{
    failure::{Outcome, written},
    output::table::printable,
};

/// Writes the targets of a collector's status, a line each; nothing if there are no targets.
pub fn show(status: &Value, out: &mut impl Write) -> Outcome {
    let targets = status["targets"].as_array().map(Vec::as_slice).unwrap_or_default();
    if targets.is_empty() {
        return Ok(());
    }
    written(writeln!(out, "\n{:>12}  {:>8}  {:>10}  target", "written", "lost", "waiting B"))?;
    targets.iter().try_for_each(|target| {
        let number = |name: &str| target[name].as_u64().unwrap_or(0);
        let name = target["target"].as_str().unwrap_or("-");
        let failing = target["failing"].as_str().map(|why| format!("  failing: {why}")).unwrap_or_default();
        let (records, lost, waiting) = (number("written"), number("lost"), number("waiting"));
        written(writeln!(out, "{records:>12}  {lost:>8}  {waiting:>10}  {}", printable(&format!("{name}{failing}"))))
    })
}
