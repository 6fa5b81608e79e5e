//! Tables as ELOG writes them: `CSV1` with commas, `CSV2` and `CSV3` with semicolons, the last with the texts.
//!
//! Numbers and dates are written without quotation marks, and the comma of a date becomes a blank; everything else is
//! quoted. Each attribute has a column. The crate `csv` cannot write this mixture byte by byte, so these lines are
//! written here.

use tampu_logbook::{book::AttributeDef, entry::Entry};

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

/// The first line.
pub fn header(format: ListFormat, attributes: &[AttributeDef]) -> Vec<u8> {
    let mut columns = vec![quoted("Message ID"), quoted("Date")];
    columns.extend(attributes.iter().map(|def| quoted(&def.name)));
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
    out: &mut Vec<u8>,
) {
    let mut columns = vec![entry.at.id.to_string(), date::write(entry.date, entry.zone).replace(',', " ")];
    columns.extend(
        attributes
            .iter()
            .map(|def| quoted(&shown_value(def.kind, &def.name, &value_of(entry, &def.name), settings, zone, entry.zone))),
    );
    if format == ListFormat::Csv3 {
        columns.push(quoted(&entry.content.text));
    }
    out.extend_from_slice(&line(format, columns));
}

fn line(format: ListFormat, columns: Vec<String>) -> Vec<u8> {
    let mut line = columns.join(&separator(format).to_string());
    line.push_str("\r\n");
    line.into_bytes()
}
