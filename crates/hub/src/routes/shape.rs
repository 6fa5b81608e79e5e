//! A record as text in a file.

use tampu_types::{
    LogRecord,
    json_lines::JsonLinesWriter,
    xml::{AcsXmlOptions, AcsXmlWriter, write_record},
};

use super::settings::Format;

const ACS: AcsXmlOptions = AcsXmlOptions { nanoseconds: false, identity: false, received: false, one_line: false };
/// What ends an ACS file.
const ACS_END: &str = "</Log>\n";

/// What a file begins with.
pub(super) fn beginning(format: Format) -> String {
    match format {
        Format::Plain | Format::Json => String::new(),
        Format::Acs => {
            // Memory takes all; an empty beginning would only be a file without its header.
            let empty = AcsXmlWriter::new(Vec::new(), "tampu", ACS).and_then(AcsXmlWriter::finish).unwrap_or_default();
            let text = String::from_utf8(empty).unwrap_or_default();
            text.strip_suffix(ACS_END).unwrap_or(&text).to_owned()
        }
    }
}

/// What a file ends with.
pub(super) fn end(format: Format) -> &'static str {
    match format {
        Format::Plain | Format::Json => "",
        Format::Acs => ACS_END,
    }
}

/// Appends a record.
pub(super) fn append(format: Format, record: &LogRecord, out: &mut String) {
    match format {
        Format::Plain => plain(record, out),
        Format::Acs => write_record(out, record, ACS),
        Format::Json => {
            let mut writer = JsonLinesWriter::new(Vec::new());
            let line = writer.record(record).and_then(|()| writer.finish()).unwrap_or_default();
            out.push_str(&String::from_utf8_lossy(&line));
        }
    }
}

fn plain(record: &LogRecord, out: &mut String) {
    record.time.write_to(out, 3);
    let source = [&record.source_object, &record.logger, &record.process].into_iter().find(|name| !name.is_empty());
    out.push_str(&format!(" {:<9} ", record.level.name()));
    push_printable(source.map_or("-", String::as_str), out);
    out.push_str(": ");
    push_printable(&record.message, out);
    for datum in &record.data {
        out.push(' ');
        push_printable(&datum.name, out);
        out.push('=');
        push_printable(&datum.value, out);
    }
    out.push('\n');
}

/// A message must not be able to forge another line.
fn push_printable(text: &str, out: &mut String) {
    for character in text.chars() {
        if character.is_control() { out.extend(character.escape_default()) } else { out.push(character) }
    }
}
