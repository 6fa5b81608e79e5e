//! Records on standard error, for whoever runs a program by hand.
//!
//! Whether a record is printed is decided here, by its logger's threshold of the moment: a packet holds records of several.

use std::io::Write as _;

use tampu_types::log_batch::LogBatchView;

/// Prints the records of a packet whose logger `wants` it, one line each.
pub(crate) fn packet(bytes: &[u8], wants: impl Fn(&str) -> bool) {
    // Standard error may be closed or full; logging goes on.
    let _ = std::io::stderr().lock().write_all(lines(bytes, wants).as_bytes());
}

fn lines(bytes: &[u8], wants: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    // The bytes were encoded by this process a moment ago; if they cannot be read there is nothing to print.
    let Ok(view) = LogBatchView::parse(bytes) else { return text };
    for record in view.records().flatten() {
        let origin = record.origin();
        if !wants(origin.logger()) {
            continue;
        }
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
    text
}

/// A message must not be able to forge another line or drive the terminal.
fn push_printable(text: &str, out: &mut String) {
    for character in text.chars() {
        if character.is_control() { out.extend(character.escape_default()) } else { out.push(character) }
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::{Level, LogRecord, log_batch::encode_records};

    use super::*;

    #[test]
    fn only_the_records_of_wanted_loggers_are_printed() {
        let record = |logger: &str| {
            let mut record = LogRecord::new(Level::Info, "a line\nand another");
            record.logger = logger.into();
            record
        };
        let packet = encode_records(&[record("mount"), record("cryostat"), record("mount")]).unwrap();
        let text = lines(&packet, |logger| logger == "mount");
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.lines().all(|line| line.ends_with(r"Info      mount: a line\nand another")), "{text}");
        assert_eq!(lines(&packet, |_| false), "");
    }
}
