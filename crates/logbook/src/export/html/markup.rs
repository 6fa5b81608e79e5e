//! The HTML of an archive's pages.

use super::links::Files;
use crate::{
    entry::Entry,
    plain::plain,
    render::{self, EntryLink},
};

/// Characters of a title that is made of a text.
const TITLE: usize = 100;
/// The beginning of a list of entries.
pub const LIST: &str = "<table class=\"list\">\n<tr><th>Entry</th><th>Date (UTC)</th><th>By</th><th>Title</th></tr>\n";
/// Extensions of pictures that a page shows.
const PICTURES: [&str; 6] = ["png", "jpg", "jpeg", "gif", "webp", "bmp"];

/// Returns a text as HTML or XML that cannot leave its element or attribute.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() && c != '\n' && c != '\t' || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Returns the beginning of a page that stands so many folders below the archive's folder.
pub fn begin(title: &str, depth: usize, up: &str) -> String {
    let style = "../".repeat(depth) + "style.css";
    let head = format!(
        "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; img-src 'self' file:; style-src 'self' file: 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{}</title><link rel=\"stylesheet\" href=\"{style}\"></head>\n<body>\n",
        escaped(title)
    );
    if up.is_empty() { head } else { head + &format!("<nav>{up}</nav>\n") }
}

/// Returns the title of an entry: its subject, or the first line of its text.
pub fn title(entry: &Entry) -> String {
    let content = &entry.content;
    let said = content.attribute("Subject").or_else(|| content.attribute("Title"));
    if let Some(said) = said.filter(|said| !said.values.is_empty()) {
        return said.joined();
    }
    let text = plain(content.encoding, &content.text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(TITLE).collect()
}

fn moment(entry: &Entry) -> String {
    entry.date.to_acs()[..19].replace('T', " ")
}

/// Returns an entry's line in a list.
pub fn row(entry: &Entry) -> String {
    let answer = if entry.parent.is_some() { " class=\"reply\"" } else { "" };
    let files = match entry.content.attachments.len() {
        0 => String::new(),
        1 => " (1 file)".to_owned(),
        count => format!(" ({count} files)"),
    };
    format!(
        "<tr{answer}><td><a href=\"../entries/{id}.html\">{id}</a></td><td>{}</td><td>{}</td><td><a href=\"../entries/{id}.html\">{}</a>{files}</td></tr>\n",
        moment(entry),
        escaped(&entry.by),
        escaped(&title(entry)),
        id = entry.at.id
    )
}

/// Returns the page of an entry.
pub fn entry(
    entry: &Entry,
    files: &Files,
    thread: &str,
    (before, after): (Option<u32>, Option<u32>),
    up: &str,
    link: EntryLink<'_>,
) -> String {
    let content = &entry.content;
    let step = |id: Option<u32>, name: &str| id.map(|id| format!(" <a href=\"{id}.html\">{name}</a>")).unwrap_or_default();
    let month = &entry.date.to_acs()[..7];
    let nav = format!(
        "{up} <a href=\"../months/{month}.html\">{month}</a> <a href=\"{thread}\">Thread</a>{}{}",
        step(before, "Earlier"),
        step(after, "Later")
    );
    let title = title(entry);
    let mut out = begin(&format!("{}: {title}", entry.at), 2, &nav);
    out.push_str(&format!("<h1>{}: {}</h1>\n<table class=\"attributes\">\n", escaped(&entry.at.to_string()), escaped(&title)));
    let mut said = |name: &str, value: String| out.push_str(&format!("<tr><th>{}</th><td>{value}</td></tr>\n", escaped(name)));
    said("Date", format!("{} UTC", moment(entry)));
    said("By", escaped(&entry.by));
    if let Some(parent) = entry.parent {
        said("Reply to", format!("<a href=\"{parent}.html\">{parent}</a>"));
    }
    for attribute in content.attributes.iter().filter(|attribute| !attribute.values.is_empty()) {
        said(&attribute.name, escaped(&attribute.joined()));
    }
    if entry.revision > 0 {
        said("Changed", format!("{} UTC, revision {}", &entry.changed.to_acs()[..19].replace('T', " "), entry.revision));
    }
    for link in &content.links {
        said("Link", escaped(&link.to_string()));
    }
    for signature in &entry.signatures {
        said(signature.label(), escaped(&signature.told(entry.revision)));
    }
    out.push_str("</table>\n<div class=\"text\">\n");
    out.push_str(&files.relinked(&render::html(content.encoding, &content.text, link)));
    out.push_str("</div>\n");
    for (place, attachment) in content.attachments.iter().enumerate() {
        let name = escaped(&attachment.name);
        let Some(address) = files.address(place) else {
            out.push_str(&format!("<p class=\"file\">{name}: its bytes are missing</p>\n"));
            continue;
        };
        out.push_str(&format!("<p class=\"file\"><a href=\"{address}\">{name}</a> ({} bytes)</p>\n", attachment.size));
        let extension = attachment.name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
        if extension.is_some_and(|extension| PICTURES.contains(&extension.as_str())) {
            out.push_str(&format!("<p><img src=\"{address}\" alt=\"{name}\"></p>\n"));
        }
    }
    out.push_str("</body></html>\n");
    out
}
