//! Records as lines for people: time, level, source, text, data.
//!
//! A line is a record for any content. Control characters are shown, never sent to the terminal. So neither a line
//! break nor an escape sequence in a message can forge or hide another record.

use std::fmt::Write as _;

use tampu_types::{LogRecord, terminal::is_harmful};

use crate::{
    failure::{Outcome, written},
    output::{column::Column, highlight::Highlight},
    paint::Paint,
    time_expression::now,
    time_text,
};

const SOURCE_MIN: usize = 22;
const SOURCE_MAX: usize = 40;

/// Writes records as a table that needs to know no record in advance.
pub struct Table {
    paint: Paint,
    highlight: Highlight,
    source_width: usize,
    /// The columns shown and how wide they are, where they were chosen.
    chosen: Vec<(Column, usize)>,
}

impl Table {
    /// A table; matches of `highlight` stand out.
    pub fn new(paint: Paint, highlight: Highlight) -> Table {
        Table { paint, highlight, source_width: SOURCE_MIN, chosen: Vec::new() }
    }

    /// Shows these columns instead of the default ones; the default ones if empty.
    pub fn with_columns(mut self, columns: &[Column]) -> Table {
        self.chosen = columns.iter().map(|column| (*column, least_width(*column))).collect();
        self
    }

    /// The line above the records.
    pub fn heading(&self, line: &mut String) {
        let (bold, end) = (self.paint.bold(), self.paint.end());
        if !self.chosen.is_empty() {
            let titles: Vec<String> =
                self.chosen.iter().map(|(column, width)| format!("{:<width$}", heading_of(*column))).collect();
            let _ = writeln!(line, "{bold}{}{end}", titles.join("  ").trim_end());
            return;
        }
        let _ = writeln!(line, "{bold}{:<23}  {:<9}  {:<SOURCE_MIN$}  MESSAGE{end}", heading_of(Column::Time), "LEVEL", "SOURCE");
    }

    /// Appends one record and its line break.
    pub fn row(&mut self, record: &LogRecord, line: &mut String) {
        if !self.chosen.is_empty() {
            return self.chosen_row(record, line);
        }
        let paint = self.paint;
        let source = printable(source_of(record));
        // The column grows to the longest source and never shrinks, so that a live table does not jump.
        self.source_width = self.source_width.max(source.chars().count().min(SOURCE_MAX));
        let width = self.source_width;
        let (dim, level, end) = (paint.dim(), paint.level(record.level), paint.end());
        let _ = write!(line, "{dim}{}{end}  {level}{:<9}{end}  ", time_text::local(record.time), record.level.name());
        self.highlight.write(&source, paint, line);
        let _ = write!(line, "{:1$}  ", "", width.saturating_sub(source.chars().count()));
        self.highlight.write(&printable(&record.message), paint, line);
        for datum in &record.data {
            line.push(' ');
            let datum = format!("{}={}", printable(&datum.name), quoted(&printable(&datum.value)));
            self.highlight.write_in(&datum, paint, (dim, end), line);
        }
        if !record.stack_id.is_empty() {
            let _ = write!(line, " {dim}[{}", printable(&record.stack_id));
            if let Some(level) = record.stack_level {
                let _ = write!(line, "#{level}");
            }
            let _ = write!(line, "]{end}");
        }
        line.push('\n');
    }

    fn chosen_row(&mut self, record: &LogRecord, line: &mut String) {
        let paint = self.paint;
        let begin = line.len();
        for (place, (column, width)) in self.chosen.iter_mut().enumerate() {
            if place > 0 {
                line.push_str("  ");
            }
            let column = *column;
            let value = match column {
                Column::Time => time_text::local(record.time),
                other => printable(&other.text(record)).into_owned(),
            };
            let taken = value.chars().count();
            *width = (*width).max(taken.min(SOURCE_MAX));
            let look = match column {
                Column::Time => (paint.dim(), paint.end()),
                Column::Level => (paint.level(record.level), paint.end()),
                _ => ("", ""),
            };
            self.highlight.write_in(&value, paint, look, line);
            let _ = write!(line, "{:1$}", "", width.saturating_sub(taken));
        }
        line.truncate(begin + line[begin..].trim_end().len());
        line.push('\n');
    }
}

/// Returns the title of a column; that of times names their zone.
pub fn heading_of(column: Column) -> String {
    match column {
        Column::Time => format!("TIME ({})", time_text::zone_name(now())),
        Column::SourceObject => "SOURCE".to_owned(),
        other => other.title().to_uppercase(),
    }
}

/// Returns the initial width of a column.
fn least_width(column: Column) -> usize {
    match column {
        Column::Time => 23,
        Column::Level => 9,
        Column::SourceObject => SOURCE_MIN,
        other => other.title().len(),
    }
}

/// Returns the source of a record: the component, else the process, the logger, the routine or the host.
pub fn source_of(record: &LogRecord) -> &str {
    [&record.source_object, &record.process, &record.logger, &record.routine, &record.host]
        .into_iter()
        .find(|name| !name.is_empty())
        .map_or("-", String::as_str)
}

/// The text on one line, with its control characters and those that turn or hide text shown.
pub fn printable(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.contains(is_harmful) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\n' => shown.push('⏎'),
            '\t' => shown.push(' '),
            '\r' => {}
            control if control.is_control() => {
                let _ = write!(shown, "\\x{:02x}", u32::from(control));
            }
            hidden if is_harmful(hidden) => shown.extend(hidden.escape_default()),
            other => shown.push(other),
        }
    }
    shown.into()
}

/// Writes a line that holds text from outside, made harmless for a terminal.
pub fn print_line(out: &mut impl std::io::Write, line: &str) -> Outcome {
    written(writeln!(out, "{}", printable(line)))
}

fn quoted(value: &str) -> std::borrow::Cow<'_, str> {
    if value.contains(' ') { format!("\"{value}\"").into() } else { value.into() }
}

#[cfg(test)]
mod tests {
    use tampu_types::{Datum, Level};

    use super::*;
    use crate::paint::When;

    #[test]
    fn a_record_is_one_line_and_cannot_drive_the_terminal() {
        let mut record = LogRecord::new(Level::Warning, "first\nsecond \x1b[2Jgone");
        record.source_object = "CONTROL/DV01".into();
        record.data.push(Datum::new("why", "no lock"));
        let mut line = String::new();
        Table::new(Paint::for_stdout(When::Never), Highlight::default()).row(&record, &mut line);
        assert_eq!(
            line,
            "1970-01-01T00:00:00.000  Warning    CONTROL/DV01            first⏎second \\x1b[2Jgone why=\"no lock\"\n"
        );
        let columns = [Column::Level, Column::Message, Column::Data];
        let mut table = Table::new(Paint::for_stdout(When::Never), Highlight::default()).with_columns(&columns);
        let mut lines = String::new();
        table.heading(&mut lines);
        table.row(&record, &mut lines);
        assert_eq!(lines, "LEVEL      MESSAGE  DATA\nWarning    first⏎second \\x1b[2Jgone  why=no lock\n");
    }
}
