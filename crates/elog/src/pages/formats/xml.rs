//! XML as ELOG writes it: `<ELOG_LIST>` of `<ENTRY>`s, with an element for each attribute.
//!
//! Characters that XML cannot hold are left out, and the name of an attribute that begins with a digit gets a `_`
//! before it. ELOG writes both unchanged, and no parser reads them.

use tampu_logbook::{
    attachment::stored_name::stored_name,
    book::{AttributeDef, AttributeKind},
    entry::{Encoding, Entry},
};

use crate::{
    date,
    pages::{clock::Zone, formats::format::value_of, settings::BookSettings, subst::shown_value},
};

/// Before the first entry.
pub const BEGIN: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ELOG_LIST>\n";
/// After the last.
pub const END: &str = "</ELOG_LIST>\n";

/// Appends an entry.
pub fn entry(
    entry: &Entry,
    answers: &[u32],
    attributes: &[AttributeDef],
    settings: &BookSettings,
    zone: &Zone,
    out: &mut Vec<u8>,
) {
    let mut text = String::from("\t<ENTRY>\n");
    let mut element = |name: &str, value: &str| text.push_str(&format!("\t\t<{name}>{}</{name}>\n", escaped(value)));
    element("MID", &entry.at.id.to_string());
    element("DATE", &date::write(entry.date, entry.zone));
    if let Some(parent) = entry.parent {
        element("IN_REPLY_TO", &parent.to_string());
    }
    if !answers.is_empty() {
        element("REPLY_TO", &answers.iter().map(u32::to_string).collect::<Vec<_>>().join(", "));
    }
    if !entry.content.attachments.is_empty() {
        element("ATTACHMENT", &entry.content.attachments.iter().map(stored_name).collect::<Vec<_>>().join(","));
    }
    // ELOG's programs do not know Markdown.
    let encoding = if entry.content.encoding == Encoding::Markdown { Encoding::Plain } else { entry.content.encoding };
    element("ENCODING", encoding.name());
    for def in attributes {
        let raw = value_of(entry, &def.name);
        let value = match def.kind {
            AttributeKind::Date | AttributeKind::DateTime => {
                let seconds = raw.trim().parse::<i64>().unwrap_or(0);
                let shown = match seconds {
                    0 => "-".to_owned(),
                    _ => shown_value(def.kind, &def.name, &raw, settings, zone, entry.zone),
                };
                format!("{shown} [{seconds}]")
            }
            _ => raw,
        };
        element(&tag(&def.name), &value);
    }
    element("TEXT", &entry.content.text);
    text.push_str("\t</ENTRY>\n");
    out.extend_from_slice(text.as_bytes());
}

/// The element of an attribute.
pub fn tag(name: &str) -> String {
    let mut tag: String = name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    if tag.starts_with(|c: char| c.is_numeric()) {
        tag.insert(0, '_');
    }
    tag
}

/// Text between tags.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            // A reader would turn a bare one into a line end.
            '\r' => out.push_str("&#13;"),
            '\t' | '\n' => out.push(c),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {}
            c => out.push(c),
        }
    }
    out
}
