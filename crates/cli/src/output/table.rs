//! Records as lines for people: time, level, source, text, data.
//!
//! A line is a record, whatever the record holds: control characters are shown, never sent to the terminal, so that neither a
//! line break nor an escape sequence in somebody's message can forge or hide another record.

use std::fmt::Write as _;

use tampu_types::LogRecord;

use crate::{
    output::{column::Column, highlight::Highlight},
    paint::Paint,
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

    /// Shows these columns instead of what people mostly want to see; none for that.
    pub fn with_columns(mut self, columns: &[Column]) -> Table {
        self.chosen = columns.iter().map(|column| (*column, least_width(*column))).collect();
        self
    }

    /// The line above the records.
    pub fn heading(&self, line: &mut String) {
        let (bold, end) = (self.paint.bold(), self.paint.end());
        if !self.chosen.is_empty() {
            let titles: Vec<String> =
                self.chosen.iter().map(|(column, width)| format!("{:<width$}", column.title().to_uppercase())).collect();
            let _ = writeln!(line, "{bold}{}{end}", titles.join("  ").trim_end());
            return;
        }
        let _ = writeln!(line, "{bold}{:<23}  {:<9}  {:<SOURCE_MIN$}  MESSAGE{end}", "TIME (UTC)", "LEVEL", "SOURCE");
    }

    /// Appends one record and its line break.
    pub fn row(&mut self, record: &LogRecord, line: &mut String) {
        if !self.chosen.is_empty() {
            return self.chosen_row(record, line);
        }
        let paint = self.paint;
        let source = printable(source_of(record));
        // The column grows to what it has met and stays there, so that a live table does not jump back and forth.
        self.source_width = self.source_width.max(source.chars().count().min(SOURCE_MAX));
        let width = self.source_width;
        let (dim, level, end) = (paint.dim(), paint.level(record.level), paint.end());
        let _ = write!(line, "{dim}{}{end}  {level}{:<9}{end}  ", record.time.to_acs(), record.level.name());
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
                Column::Time => record.time.to_acs(),
                other => printable(&other.value(record)).into_owned(),
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

/// How wide a column is before anything wider has come.
fn least_width(column: Column) -> usize {
    match column {
        Column::Time => 23,
        Column::Level => 9,
        Column::SourceObject => SOURCE_MIN,
        other => other.title().len(),
    }
}

/// What a reader would call the origin of a record: the component, else the logger, else the process, else the host.
pub fn source_of(record: &LogRecord) -> &str {
    [&record.source_object, &record.logger, &record.process, &record.routine, &record.host]
        .into_iter()
        .find(|name| !name.is_empty())
        .map_or("-", String::as_str)
}

/// The text with its control characters shown.
pub fn printable(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.contains(char::is_control) {
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
            other => shown.push(other),
        }
    }
    shown.into()
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
