//! Entries as Markdown for people: a heading, a table of the attributes, the text, the files.
//!
//! Markdown is copied unchanged. ELCode and HTML lose their tags, and are written, like plain text, between fences. The
//! format is for reading and printing; use JSON for data that will be imported again.

use crate::{
    entry::{Encoding, Entry},
    plain::plain,
};

/// Appends an entry.
pub fn entry(entry: &Entry, out: &mut Vec<u8>) {
    let content = &entry.content;
    let mut text = format!("## {}", one_line(&entry.at.to_string()));
    if let Some(subject) = content.attribute("Subject").filter(|subject| !subject.values.is_empty()) {
        text.push_str(&format!(": {}", one_line(&subject.joined())));
    }
    text.push_str("\n\n| | |\n|-|-|\n");
    let mut said = |name: &str, value: &str| text.push_str(&format!("| {} | {} |\n", one_line(name), one_line(value)));
    said("Date", &format!("{} UTC", &entry.date.to_acs()[..19].replace('T', " ")));
    if let Some(parent) = entry.parent {
        said("Reply to", &parent.to_string());
    }
    for attribute in content.attributes.iter().filter(|attribute| !attribute.values.is_empty()) {
        said(&attribute.name, &attribute.joined());
    }
    if entry.revision > 0 {
        said("Changed", &format!("{} UTC, revision {}", &entry.changed.to_acs()[..19].replace('T', " "), entry.revision));
    }
    for link in &content.links {
        said("Link", &link.to_string());
    }
    for attachment in &content.attachments {
        said("Attachment", &format!("{} ({} bytes)", attachment.name, attachment.size));
    }
    for signature in &entry.signatures {
        said(signature.label(), &signature.told(entry.revision));
    }
    text.push('\n');
    match content.encoding {
        Encoding::Markdown => text.push_str(content.text.trim_end()),
        encoding => fenced(&plain(encoding, &content.text), &mut text),
    }
    text.push_str("\n\n---\n\n");
    out.extend_from_slice(text.as_bytes());
}

/// Appends a text between fences that are longer than any in the text.
fn fenced(text: &str, out: &mut String) {
    if text.trim().is_empty() {
        return;
    }
    let mut longest = 2;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    out.push_str(&format!("{fence}text\n{}\n{fence}", text.trim_end()));
}

/// Returns a text that cannot leave its table cell, with every mark escaped.
fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '&' | '!' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
