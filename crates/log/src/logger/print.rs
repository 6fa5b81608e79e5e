//! Records on standard error, for whoever runs a program by hand.

use std::io::Write as _;

use tampu_types::log_batch::LogBatchView;

/// Prints the records of a packet, one line each.
pub(crate) fn packet(bytes: &[u8]) {
    // The bytes were encoded by this process a moment ago; if they cannot be read there is nothing to print.
    let Ok(view) = LogBatchView::parse(bytes) else { return };
    let mut text = String::new();
    for record in view.records().flatten() {
        let origin = record.origin();
        let source = if origin.source_object().is_empty() { origin.logger() } else { origin.source_object() };
        text.push_str(&record.time().to_acs());
        text.push_str(&format!(" {:<9} {source}: ", record.level().name()));
        push_printable(record.message(), &mut text);
        for (name, value) in record.data() {
            text.push(' ');
            push_printable(name, &mut text);
            text.push('=');
            push_printable(value, &mut text);
        }
        text.push('\n');
    }
    // Standard error may be closed or full; logging goes on.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// A message must not be able to forge another line or drive the terminal.
fn push_printable(text: &str, out: &mut String) {
    for character in text.chars() {
        if character.is_control() { out.extend(character.escape_default()) } else { out.push(character) }
    }
}
