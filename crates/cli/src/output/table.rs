//! Records as lines for people: time, level, source, text, data.
//!
//! A line is a record, whatever the record holds: control characters are shown, never sent to the terminal, so that neither a
//! line break nor an escape sequence in somebody's message can forge or hide another record.

use std::fmt::Write as _;

use tampu_types::LogRecord;

use crate::{output::highlight::Highlight, paint::Paint};

const SOURCE_MIN: usize = 22;
const SOURCE_MAX: usize = 40;

/// Writes records as a table that needs to know no record in advance.
pub struct Table {
    paint: Paint,
    highlight: Highlight,
    source_width: usize,
}

impl Table {
    /// A table; matches of `highlight` stand out.
    pub fn new(paint: Paint, highlight: Highlight) -> Table {
        Table { paint, highlight, source_width: SOURCE_MIN }
    }

    /// The line above the records.
    pub fn heading(&self, line: &mut String) {
        let (bold, end) = (self.paint.bold(), self.paint.end());
        let _ = writeln!(line, "{bold}{:<23}  {:<9}  {:<SOURCE_MIN$}  MESSAGE{end}", "TIME (UTC)", "LEVEL", "SOURCE");
    }

    /// Appends one record and its line break.
    pub fn row(&mut self, record: &LogRecord, line: &mut String) {
        let paint = self.paint;
        let source = printable(source_of(record));
        // The column grows to what it has met and stays there, so that a live table does not jump back and forth.
        self.source_width = self.source_width.max(source.chars().count().min(SOURCE_MAX));
        let width = self.source_width;
        let (dim, level, end) = (paint.dim(), paint.level(record.level), paint.end());
        let _ = write!(line, "{dim}{}{end}  {level}{:<9}{end}  {source:<width$}  ", record.time.to_acs(), record.level.name());
        self.highlight.write(&printable(&record.message), paint, line);
        for datum in &record.data {
            let _ = write!(line, " {dim}{}={}{end}", printable(&datum.name), quoted(&printable(&datum.value)));
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
}

/// What a reader would call the origin of a record: the component, else the logger, else the process, else the host.
fn source_of(record: &LogRecord) -> &str {
    [&record.source_object, &record.logger, &record.process, &record.routine, &record.host]
        .into_iter()
        .find(|name| !name.is_empty())
        .map_or("-", String::as_str)
}

fn printable(text: &str) -> std::borrow::Cow<'_, str> {
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
    }
}
