//! Tables as ELOG writes them: `CSV1` with commas, `CSV2` and `CSV3` with semicolons, the last with the texts.
//!
//! Numbers and dates stand as they are, and the comma of a date is a blank; everything else is in quotation marks. A column for each attribute.

use super::{Format, value_of};
use crate::{
    book::AttributeDef,
    elog::{
        date,
        web::{Zone, settings::Settings, subst::shown_value},
    },
    entry::Entry,
};

fn separator(format: Format) -> char {
    if format == Format::Csv1 { ',' } else { ';' }
}

fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('"', "\"\""))
}

/// The first line.
pub fn header(format: Format, attributes: &[AttributeDef]) -> Vec<u8> {
    let mut columns = vec![quoted("Message ID"), quoted("Date")];
    columns.extend(attributes.iter().map(|def| quoted(&def.name)));
    if format == Format::Csv3 {
        columns.push(quoted("Text"));
    }
    line(format, columns)
}

/// The line of an entry.
pub fn row(format: Format, entry: &Entry, attributes: &[AttributeDef], settings: &Settings, zone: &Zone, out: &mut Vec<u8>) {
    let mut columns = vec![entry.at.id.to_string(), date::write(entry.date, entry.zone).replace(',', " ")];
    columns.extend(
        attributes
            .iter()
            .map(|def| quoted(&shown_value(def.kind, &def.name, &value_of(entry, &def.name), settings, zone, entry.zone))),
    );
    if format == Format::Csv3 {
        columns.push(quoted(&entry.content.text));
    }
    out.extend_from_slice(&line(format, columns));
}

fn line(format: Format, columns: Vec<String>) -> Vec<u8> {
    let mut line = columns.join(&separator(format).to_string());
    line.push_str("\r\n");
    line.into_bytes()
}
