//! Tables as ELOG writes them: `CSV1` with commas, `CSV2` and `CSV3` with semicolons, the last with the texts.
//!
//! Numbers and dates are written without quotation marks, and the comma of a date becomes a blank; everything else is
//! quoted. Each attribute has a column. The crate `csv` cannot write this mixture byte by byte, so these lines are
//! written here.
//!
//! A cell that a spreadsheet would take for a formula gets an apostrophe, unless the site wants the cells as they are.

use tampu_logbook::{book::AttributeDef, entry::Entry};
use tampu_types::spreadsheet::harmless_cell;

use crate::{
    date,
    pages::{
        clock::Zone,
        formats::format::{ListFormat, value_of},
        settings::BookSettings,
        subst::shown_value,
    },
};

fn separator(format: ListFormat) -> char {
    if format == ListFormat::Csv1 { ',' } else { ';' }
}

fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('"', "\"\""))
}

/// Returns the cell of a value. `raw` leaves it as it is.
fn cell(value: &str, raw: bool) -> String {
    if raw { quoted(value) } else { quoted(&harmless_cell(value)) }
}

/// The first line.
pub fn header(format: ListFormat, attributes: &[AttributeDef], raw: bool) -> Vec<u8> {
    let mut columns = vec![quoted("Message ID"), quoted("Date")];
    columns.extend(attributes.iter().map(|def| cell(&def.name, raw)));
    if format == ListFormat::Csv3 {
        columns.push(quoted("Text"));
    }
    line(format, columns)
}

/// The line of an entry.
pub fn row(
    format: ListFormat,
    entry: &Entry,
    attributes: &[AttributeDef],
    settings: &BookSettings,
    zone: &Zone,
    raw: bool,
    out: &mut Vec<u8>,
) {
    let mut columns = vec![entry.at.id.to_string(), date::write(entry.date, entry.zone).replace(',', " ")];
    columns.extend(
        attributes
            .iter()
            .map(|def| cell(&shown_value(def.kind, &def.name, &value_of(entry, &def.name), settings, zone, entry.zone), raw)),
    );
    if format == ListFormat::Csv3 {
        columns.push(cell(&entry.content.text, raw));
    }
    out.extend_from_slice(&line(format, columns));
}

fn line(format: ListFormat, columns: Vec<String>) -> Vec<u8> {
    let mut line = columns.join(&separator(format).to_string());
    line.push_str("\r\n");
    line.into_bytes()
}
