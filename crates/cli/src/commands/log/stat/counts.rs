//! Counts as a table, as CSV and as JSON.
//!
//! If levels are counted beside a time or a field, the table has a column a level. So a line shows the events of a
//! span, or the state of a source. CSV and JSON have a line for each count, which programs can rearrange.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use tampu_archive::{Counts, Grouping};
use tampu_types::{Level, Time};

use crate::{
    failure::{Outcome, written},
    output::{csv, table::printable},
    time_text,
};

/// Formats of counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Table,
    Csv,
    RawCsv,
    Json,
}

/// Writes counts in a format.
pub fn write(counts: &Counts, by: &Grouping, format: Format, out: &mut impl Write) -> Outcome {
    match format {
        Format::Json => counts.rows.iter().try_for_each(|row| {
            let line = time_text::json_line(row, "a count")?;
            written(writeln!(out, "{line}"))
        }),
        Format::Csv | Format::RawCsv => {
            let raw = format == Format::RawCsv;
            let mut text = String::new();
            let field = by.field.map(|field| field.name());
            let names = [by.every_s.map(|_| "time"), field, by.level.then_some("level"), Some("count")];
            csv::line(names.into_iter().flatten(), raw, &mut text);
            for row in &counts.rows {
                let level = row.level.map(|level| level.name().to_owned());
                let fields = [row.time.map(Time::to_rfc3339), row.value.clone(), level, Some(row.count.to_string())];
                csv::line(fields.into_iter().flatten(), raw, &mut text);
            }
            written(out.write_all(text.as_bytes()))
        }
        Format::Table => {
            if by.level && (by.field.is_some() || by.every_s.is_some()) {
                by_level(counts, out)?
            } else {
                lines(counts, out)?
            }
            let span = match (counts.earliest, counts.latest) {
                (Some(earliest), Some(latest)) => format!(", {} to {}", time_text::local(earliest), time_text::with_zone(latest)),
                _ => String::new(),
            };
            written(writeln!(out, "{:>12}  records{span}", counts.total))
        }
    }
}

/// A count a line.
fn lines(counts: &Counts, out: &mut impl Write) -> Outcome {
    counts.rows.iter().try_for_each(|row| {
        let level = row.level.map(|level| format!("{:<9}", level.name()));
        let name: Vec<String> =
            [row.time.map(time_text::local), level, row.value.as_deref().map(named)].into_iter().flatten().collect();
        written(writeln!(out, "{:>12}  {}", row.count, name.join("  ")))
    })
}

fn named(value: &str) -> String {
    if value.is_empty() { "-".to_owned() } else { printable(value).into_owned() }
}

/// A line for each span and value, a column for each level that occurs.
fn by_level(counts: &Counts, out: &mut impl Write) -> Outcome {
    let levels: BTreeSet<Level> = counts.rows.iter().filter_map(|row| row.level).collect();
    let mut grid: BTreeMap<(Option<Time>, Option<String>), BTreeMap<Level, u64>> = BTreeMap::new();
    for row in &counts.rows {
        if let Some(level) = row.level {
            *grid.entry((row.time, row.value.clone())).or_default().entry(level).or_default() += row.count;
        }
    }
    let titles = levels.iter().map(|level| format!("{:>9}", level.name())).collect::<Vec<_>>().join("  ");
    written(writeln!(out, "{:>12}  {titles}", "records"))?;
    for ((time, value), row) in grid {
        let cells: Vec<String> = levels
            .iter()
            .map(|level| row.get(level).map_or_else(|| format!("{:>9}", "."), |count| format!("{count:>9}")))
            .collect();
        let name: Vec<String> = [time.map(time_text::local), value.as_deref().map(named)].into_iter().flatten().collect();
        written(writeln!(out, "{:>12}  {}  {}", row.values().sum::<u64>(), cells.join("  "), name.join("  ")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tampu_archive::query::Field;

    use super::*;

    #[test]
    fn a_column_a_level_and_a_line_a_span_and_source() {
        let json = r#"{"total": 9, "earliest": 0, "latest": 300000000000, "complete": true, "rows": [
            {"time": 0, "level": "Info", "value": "a,b", "count": 4}, {"time": 0, "level": "Error", "value": "a,b", "count": 2},
            {"time": 300000000000, "level": "Info", "value": "", "count": 3}]}"#;
        let counts: Counts = serde_json::from_str(json).unwrap();
        let by = Grouping { level: true, field: Some(Field::SourceObject), every_s: Some(300), ..Grouping::default() };
        let text = |format| {
            let mut out = Vec::new();
            write(&counts, &by, format, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            text(Format::Table),
            "     records       Info      Error\n           \
             6          4          2  1970-01-01T00:00:00.000  a,b\n           \
             3          3          .  1970-01-01T00:05:00.000  -\n           \
             9  records, 1970-01-01T00:00:00.000 to 1970-01-01T00:05:00.000 UTC\n"
        );
        assert_eq!(
            text(Format::Csv),
            "time,source_object,level,count\r\n1970-01-01T00:00:00.000000000Z,\"a,b\",Info,4\r\n\
             1970-01-01T00:00:00.000000000Z,\"a,b\",Error,2\r\n1970-01-01T00:05:00.000000000Z,,Info,3\r\n"
        );
        assert_eq!(text(Format::Json).lines().count(), 3);
    }
}
