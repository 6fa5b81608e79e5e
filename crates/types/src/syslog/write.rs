//! A record as a message of RFC 5424.

use std::fmt::Write;

use super::{FACILITIES, severity_of};
use crate::{level::Level, record::LogRecord};

/// The number of a facility's name.
pub fn facility_number(name: &str) -> Option<u8> {
    FACILITIES.iter().position(|known| known.eq_ignore_ascii_case(name)).and_then(|number| u8::try_from(number).ok())
}

/// Appends a record as one message, without any framing. Fields are cut at the RFC's bounds, and characters that it
/// forbids in them become `_`. The text and the data are whole.
///
/// 32473 is the number that RFC 5612 reserves for examples: this project has no number of its own.
pub fn encode(record: &LogRecord, facility: u8, out: &mut String) {
    let priority = u16::from(facility.min(23)) * 8 + u16::from(severity_of(record.level));
    let _ = write!(out, "<{priority}>1 ");
    record.time.write_to(out, 6);
    out.push_str("Z ");
    field(out, &record.host, 255);
    field(out, if record.process.is_empty() { &record.logger } else { &record.process }, 48);
    let own = |name: &str| record.data.iter().find(|datum| datum.name == name).map_or("", |datum| datum.value.as_str());
    field(out, own("procid"), 128);
    field(out, own("msgid"), 32);
    structured_data(record, out);
    // The mark for UTF-8 text.
    out.push_str(" \u{feff}");
    out.push_str(&record.message);
}

fn field(out: &mut String, value: &str, limit: usize) {
    if value.is_empty() {
        out.push('-');
    }
    out.extend(value.chars().take(limit).map(|character| if character.is_ascii_graphic() { character } else { '_' }));
    out.push(' ');
}

fn structured_data(record: &LogRecord, out: &mut String) {
    out.push_str("[tampu@32473");
    // Syslog has fewer severities than there are levels.
    if matches!(record.level, Level::Trace | Level::Delouse) {
        parameter(out, "level", record.level.name());
    }
    for (name, value) in [
        ("object", &record.source_object),
        ("logger", &record.logger),
        ("context", &record.context),
        ("antenna", &record.antenna),
        ("array", &record.array),
        ("stack", &record.stack_id),
        ("run", &record.run_id),
        ("file", &record.file),
        ("routine", &record.routine),
    ] {
        if !value.is_empty() {
            parameter(out, name, value);
        }
    }
    if !record.audiences.is_empty() {
        parameter(out, "audience", &record.audiences.join(","));
    }
    out.push(']');
    let mut others =
        record.data.iter().filter(|datum| !matches!(datum.name.as_str(), "procid" | "msgid" | "facility")).peekable();
    if others.peek().is_some() {
        out.push_str("[data@32473");
        others.for_each(|datum| parameter(out, &datum.name, &datum.value));
        out.push(']');
    }
}

fn parameter(out: &mut String, name: &str, value: &str) {
    out.push(' ');
    let allowed = |character: char| character.is_ascii_graphic() && !matches!(character, '=' | ']' | '"');
    out.extend(name.chars().take(32).map(|character| if allowed(character) { character } else { '_' }));
    if name.is_empty() {
        out.push('_');
    }
    out.push_str("=\"");
    for character in value.chars() {
        if matches!(character, '"' | '\\' | ']') {
            out.push('\\');
        }
        out.push(character);
    }
    out.push('"');
}
