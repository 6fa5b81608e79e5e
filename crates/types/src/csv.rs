//! Records as CSV (RFC 4180): one line of names, then a line a record, every field of a record in its own column.
//!
//! A cell that a spreadsheet would take for a formula gets an apostrophe, unless the raw cells are asked for.

use std::borrow::Cow;

use crate::{LogRecord, RecordField as Column, spreadsheet::harmless_cell};

/// Appends the line of column names.
pub fn heading(columns: &[Column], out: &mut String) {
    line(columns.iter().map(|column| column.name()), false, out);
}

/// Appends one record. `raw` leaves every cell as it is.
pub fn row(columns: &[Column], record: &LogRecord, raw: bool, out: &mut String) {
    line(columns.iter().map(|column| column.text(record)), raw, out);
}

/// Returns the text of a cell.
pub fn cell(text: &str, raw: bool) -> Cow<'_, str> {
    if raw { text.into() } else { harmless_cell(text) }
}

/// Appends a line of these fields. `raw` leaves every cell as it is.
pub fn line(fields: impl IntoIterator<Item = impl AsRef<str>>, raw: bool, out: &mut String) {
    for (place, field) in fields.into_iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        write_field(&cell(field.as_ref(), raw), out);
    }
    out.push_str("\r\n");
}

fn write_field(field: &str, out: &mut String) {
    if field.contains(['"', ',', '\n', '\r']) || field.starts_with(' ') || field.ends_with(' ') {
        out.push('"');
        out.push_str(&field.replace('"', "\"\""));
        out.push('"');
    } else {
        out.push_str(field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Datum, Level};

    #[test]
    fn formulas_become_text_unless_raw_cells_are_asked_for() {
        let record = LogRecord::new(Level::Info, "=HYPERLINK(\"http://x\")");
        let text = |raw| {
            let mut out = String::new();
            row(&[Column::Level, Column::Message], &record, raw, &mut out);
            out
        };
        assert_eq!(text(false), "Info,\"'=HYPERLINK(\"\"http://x\"\")\"\r\n");
        assert_eq!(text(true), "Info,\"=HYPERLINK(\"\"http://x\"\")\"\r\n");
    }

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let mut record = LogRecord::new(Level::Info, "say \"yes\", or\nno");
        record.data.push(Datum::new("a", "1"));
        let (mut head, mut line) = (String::new(), String::new());
        heading(&Column::SHOWN, &mut head);
        row(&Column::SHOWN, &record, false, &mut line);
        assert_eq!(head.matches(',').count(), Column::SHOWN.len() - 1);
        assert!(line.starts_with("1970-01-01T00:00:00.000000000Z,Info,,\"say \"\"yes\"\", or\nno\","), "{line}");
        assert!(line.ends_with(",a=1,\r\n"), "{line}");
        let mut few = String::new();
        row(&[Column::Level, Column::Message], &record, false, &mut few);
        assert_eq!(few, "Info,\"say \"\"yes\"\", or\nno\"\r\n");
    }
}
