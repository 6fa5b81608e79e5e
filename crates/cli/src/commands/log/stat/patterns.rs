//! Counts by the place in the program that logged.

use std::io::Write;

use tampu_archive::{Pattern, Patterns};

use crate::{
    failure::{Outcome, written},
    output::table::printable,
    plural::counted,
    time_text,
};

/// Writes patterns: a line each for people, or a JSON object.
pub fn show(found: &Patterns, json: bool, out: &mut impl Write) -> Outcome {
    if json {
        for pattern in &found.patterns {
            written(writeln!(out, "{}", time_text::json_line(pattern, "a pattern")?))?;
        }
    } else {
        written(writeln!(out, "{:>12}  {:>7}  {:<9}  message", "records", "sources", "level"))?;
        for pattern in &found.patterns {
            let Pattern { count, sources, level, .. } = pattern;
            written(writeln!(out, "{count:>12}  {sources:>7}  {:<9}  {}", level.name(), words(pattern)))?;
        }
        written(writeln!(out, "{:>12}  {}", found.total, rest(found)))?;
    }
    if !found.exact {
        eprintln!(
            "tampu: there are very many patterns: rare ones may be missing or have too small a number; choose a shorter range"
        );
    }
    if !found.complete {
        eprintln!(
            "tampu: the counts are not complete: the time limit was reached, or a part cannot be read; choose a shorter range"
        );
    }
    Ok(())
}

/// Returns the message in one line, and the place.
fn words(pattern: &Pattern) -> String {
    let message = printable(&pattern.message);
    let Pattern { file, line, routine, .. } = pattern;
    match (file.as_str(), routine.as_str()) {
        ("", "") => message.into_owned(),
        ("", routine) => format!("{message}  ({})", printable(routine)),
        (file, "") => format!("{message}  ({}:{line})", printable(file)),
        (file, routine) => format!("{message}  ({}:{line} {})", printable(file), printable(routine)),
    }
}

fn rest(found: &Patterns) -> String {
    let more = found.known.saturating_sub(found.patterns.len() as u64);
    let others = if more == 0 { String::new() } else { format!(", and {} others", more) };
    format!("records in {}{others}", counted(found.patterns.len() as u64, "pattern"))
}

#[cfg(test)]
mod tests {
    use tampu_types::{Level, Time};

    use super::*;

    #[test]
    fn a_line_a_pattern_and_the_rest() {
        let of = |file: &str, line, routine: &str, count| Pattern {
            level: Level::Error,
            file: file.to_owned(),
            line,
            routine: routine.to_owned(),
            message: "lost\nlock".to_owned(),
            count,
            sources: 2,
            latest: Time(1_795_248_930_123_000_000),
            bins: Vec::new(),
            condition: None,
        };
        let patterns = vec![of("a.rs", 7, "step", 30), of("", 0, "", 4)];
        let found = Patterns { total: 40, known: 3, others: 6, patterns, exact: true, complete: true, ..Patterns::default() };
        let text = |json| {
            let mut out = Vec::new();
            show(&found, json, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let lines: Vec<String> = text(false).lines().map(str::to_owned).collect();
        assert_eq!(lines[1], "          30        2  Error      lost⏎lock  (a.rs:7 step)");
        assert_eq!(lines[2], "           4        2  Error      lost⏎lock");
        assert_eq!(lines[3], "          40  records in 2 patterns, and 1 others");
        assert!(text(true).lines().count() == 2 && text(true).contains("2026-11-21T08:15:30.123000000Z"));
    }
}
