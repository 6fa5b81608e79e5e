//! The text of a record in a file.

use tampu_types::{
    LogRecord,
    json_lines::JsonLinesWriter,
    terminal::is_harmful,
    xml::{AcsXmlOptions, AcsXmlWriter, write_record},
};

use super::settings::Format;

const ACS: AcsXmlOptions = AcsXmlOptions { nanoseconds: false, identity: false, received: false, one_line: false };
/// The end of an ACS file.
const ACS_END: &str = "</Log>\n";

/// Returns the beginning of a file.
pub(super) fn beginning(format: Format) -> String {
    match format {
        Format::Plain | Format::Json => String::new(),
        Format::Acs => {
            // Writing to memory does not fail; an empty beginning would only lose the file's header.
            let empty = AcsXmlWriter::new(Vec::new(), "tampu", ACS).and_then(AcsXmlWriter::finish).unwrap_or_default();
            let text = String::from_utf8(empty).unwrap_or_default();
            text.strip_suffix(ACS_END).unwrap_or(&text).to_owned()
        }
    }
}

/// Returns the end of a file.
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

/// Appends a text with the characters escaped that drive, turn or hide text, so that a message cannot forge another line.
fn push_printable(text: &str, out: &mut String) {
    for character in text.chars() {
        if is_harmful(character) { out.extend(character.escape_default()) } else { out.push(character) }
    }
}
