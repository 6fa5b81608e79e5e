//! The lines of a list: a table, or threads. They can come in several pieces, as a whole book does.

use std::collections::HashSet;

use super::select::Selecting;
use crate::{
    book::same_name,
    elog::web::{
        BookAsk,
        find::Find,
        html::{Raw, put, style},
        settings::Mode,
        subst::Names,
        values,
    },
    entry::{Entry, EntryRef},
    plain,
    search::Hit,
    store::StoreError,
};

/// Entries of a thread that are shown in a list.
const MAX_THREAD: usize = 500;

/// The lines of a list, as far as they are written.
pub struct Rows {
    mode: Mode,
    columns: Vec<String>,
    shows_text: bool,
    shows_files: bool,
    selecting: Option<Selecting>,
    /// Lines that are written.
    written: usize,
    /// Threads that are written.
    seen: HashSet<(String, u32)>,
}

impl Rows {
    /// None yet.
    pub fn new(ask: &BookAsk<'_>, find: &Find, selecting: Option<Selecting>) -> Rows {
        Rows {
            mode: find.mode,
            columns: columns(ask, find),
            shows_text: find.mode == Mode::Summary && ask.settings.show_text() && ask.settings.summary_lines() > 0,
            shows_files: ask.settings.show_attachments(),
            selecting,
            written: 0,
            seen: HashSet::new(),
        }
    }

    /// What stands before the first line.
    pub fn begin(&self, ask: &BookAsk<'_>, find: &Find, out: &mut String) {
        if let Some(selecting) = &self.selecting {
            selecting.begin(ask, out);
        }
        if self.mode == Mode::Threaded {
            out.push_str("<div class=\"listframe\"><table class=\"list threads\">\n");
            return;
        }
        out.push_str("<div class=\"listframe\"><table class=\"list\">\n<tr>");
        if self.selecting.is_some() {
            out.push_str("<th class=\"listtitle\"></th>");
        }
        for column in &self.columns {
            let sorted = same_name(&find.sorted_by, column) || find.sorted_by.is_empty() && same_name(column, "Date");
            let next = if sorted && !find.search.descending { "rsort" } else { "sort" };
            let query = ask.query.without(&["sort", "rsort", "reverse", "Reverse", "id", "cmd"]).with(next, column);
            let arrow = match (sorted, find.search.descending) {
                (true, false) => " &#9650;",
                (true, true) => " &#9660;",
                _ => "",
            };
            put!(out, "<th class=\"listtitle\"><a href=\"{}\">{}</a>{}</th>", super::here(&query), column, Raw(arrow));
        }
        if self.shows_text {
            out.push_str("<th class=\"listtitle\">Text</th>");
        }
        if self.shows_files {
            out.push_str("<th class=\"listtitle\"><span title=\"Attachments\">Files</span></th>");
        }
        out.push_str("</tr>\n");
    }

    /// These entries, after those before.
    pub fn write(&mut self, ask: &BookAsk<'_>, find: &Find, hits: &[Hit], out: &mut String) -> Result<(), StoreError> {
        match self.mode {
            Mode::Threaded => self.threads(ask, find, hits, out),
            Mode::Summary | Mode::Full => {
                self.table(ask, hits, out);
                Ok(())
            }
        }
    }

    /// What stands behind the last line.
    pub fn end(&self, out: &mut String) {
        if self.written == 0 {
            put!(out, "<tr><td class=\"nothing\" colspan=\"{}\">No entries found</td></tr>\n", self.width());
        }
        out.push_str("</table></div>\n");
        if let Some(selecting) = &self.selecting {
            selecting.end(self.written, out);
        }
    }

    fn width(&self) -> usize {
        let more = [self.shows_text, self.shows_files, self.selecting.is_some()];
        self.columns.len() + more.into_iter().filter(|more| *more).count()
    }

    fn table(&mut self, ask: &BookAsk<'_>, hits: &[Hit], out: &mut String) {
        // With the search in its address an entry leads on to the next that was found. py_elog, which searches in full mode, reads numbers from
        // these addresses and nothing else.
        let from_list = match self.mode {
            Mode::Full => String::new(),
            _ => ask.query.without(&["mode", "npp", "id", "cmd", "expand", "printable", "select"]).written(),
        };
        for hit in hits {
            let class = if self.written.is_multiple_of(2) { "list1" } else { "list2" };
            out.push_str("<tr>");
            if let Some(selecting) = &self.selecting {
                selecting.tick(ask, &hit.entry, self.written, out);
            }
            self.written += 1;
            let href = ask.link(&hit.entry.at.book, &format!("{}{from_list}", hit.entry.at.id));
            for (at, column) in self.columns.iter().enumerate() {
                cell(ask, hit, column, class, if at == 0 || ask.settings.links(column) { Some(&href) } else { None }, out);
            }
            if self.shows_text {
                summary(ask, hit, class, out);
            }
            if self.shows_files {
                match hit.entry.content.attachments.len() {
                    0 => put!(out, "<td class=\"{}\"></td>", class),
                    count => put!(out, "<td class=\"{}\" title=\"{} attachments\">{}</td>", class, count, count),
                }
            }
            out.push_str("</tr>\n");
            if self.mode == Mode::Full {
                put!(out, "<tr><td class=\"messagelist\" colspan=\"{}\">{}", self.width(), values::text(ask, &hit.entry));
                if self.shows_files && ask.query.get("attach") != Some("0") {
                    out.push_str(&values::attachments(ask, &hit.entry));
                }
                out.push_str("</td></tr>\n");
            }
        }
    }

    /// Threads, each below its first entry. A thread is shown where the first of its entries is that was found.
    fn threads(&mut self, ask: &BookAsk<'_>, find: &Find, hits: &[Hit], out: &mut String) -> Result<(), StoreError> {
        let expand = ask.query.number::<u8>("expand").unwrap_or_else(|| ask.settings.expand());
        for hit in hits {
            if !self.seen.insert((hit.entry.at.book.clone(), hit.entry.thread)) {
                continue;
            }
            let thread = if expand == 0 && hit.entry.parent.is_none() {
                vec![hit.entry.clone()]
            } else {
                let mut thread = match ask.site.store.thread(&EntryRef::new(&hit.entry.at.book, hit.entry.at.id)) {
                    Ok(thread) => thread,
                    // It went while the list was made.
                    Err(StoreError::Gone(_) | StoreError::NoEntry(_)) => continue,
                    Err(error) => return Err(error),
                };
                thread.truncate(MAX_THREAD);
                thread
            };
            for (depth, entry) in in_order(&thread) {
                if expand == 0 && depth > 0 {
                    continue;
                }
                out.push_str("<tr>");
                if let Some(selecting) = &self.selecting {
                    selecting.tick(ask, entry, self.written, out);
                }
                self.written += 1;
                line(ask, find, entry, depth, expand, out);
            }
        }
        Ok(())
    }
}

/// The columns: name, and whether it is an attribute.
fn columns(ask: &BookAsk<'_>, find: &Find) -> Vec<String> {
    let mut columns = ask.settings.columns(ask.caller.login.is_empty());
    let known = |name: &str| {
        matches!(name.to_lowercase().as_str(), "id" | "date" | "logbook")
            || find.attributes.iter().any(|def| same_name(&def.name, name))
    };
    columns.retain(|name| known(name));
    if columns.is_empty() {
        columns.push("ID".to_owned());
    }
    if find.all_books && !columns.iter().any(|name| same_name(name, "Logbook")) {
        columns.insert(1.min(columns.len()), "Logbook".to_owned());
    }
    columns
}

/// A cell of a line. Where it leads to the entry its text is the link, unless the text has links of its own.
fn cell(ask: &BookAsk<'_>, hit: &Hit, column: &str, class: &str, href: Option<&str>, out: &mut String) {
    let entry = &hit.entry;
    let content = match column.to_lowercase().as_str() {
        "id" => {
            let mut shown = String::new();
            put!(&mut shown, "{}", values::id(ask, entry));
            shown
        }
        "date" => {
            let mut shown = String::new();
            put!(&mut shown, "<span class=\"date\" title=\"{}\">{}</span>", values::zone(ask, entry), values::when(ask, entry));
            shown
        }
        "logbook" => {
            let mut shown = String::new();
            put!(&mut shown, "{}", entry.at.book);
            shown
        }
        _ => {
            let marks = hit.attributes.iter().find(|(name, _)| same_name(name, column)).map(|(_, marks)| marks.as_slice());
            values::value(ask, entry, column, marks).0
        }
    };
    let said = entry.content.attribute(column).map(|said| said.joined()).unwrap_or_default();
    let own = if said.is_empty() { "" } else { style(ask.settings.cell_style(column, &said)) };
    put!(out, "<td class=\"{}\"", class);
    if !own.is_empty() {
        put!(out, " style=\"{}\"", own);
    }
    match href {
        Some(href) if !content.contains("<a ") && !content.is_empty() => {
            put!(out, "><a href=\"{}\">{}</a></td>", href, Raw(content))
        }
        _ => put!(out, ">{}</td>", Raw(content)),
    }
}

/// Some lines of the text; where a text was looked for, what is around it.
fn summary(ask: &BookAsk<'_>, hit: &Hit, class: &str, out: &mut String) {
    put!(out, "<td class=\"summary {}\">", class);
    if ask.query.get("subtext").is_some() && !hit.snippet.marks.is_empty() {
        values::marked(&hit.snippet.text, &hit.snippet.marks, out);
    } else {
        let (lines, length) = (ask.settings.summary_lines(), ask.settings.summary_line_length());
        let (text, most) = (&hit.entry.content.text, lines.saturating_mul(length).min(10_000));
        // Marks and addresses may stand before what is read; a list does not read a long text to its end.
        let begin = &text[..text.floor_char_boundary(most.saturating_mul(8).saturating_add(4096))];
        put!(out, "{}", shortened(&plain::read(hit.entry.content.encoding, begin), most));
    }
    out.push_str("</td>");
}

/// The beginning of a text, in one line.
fn shortened(text: &str, most: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        let len = word.chars().count();
        let left = most.saturating_sub(count);
        if count > 0 && left > 0 {
            out.push(' ');
        }
        if len > left {
            out.extend(word.chars().take(left));
            out.push_str("...");
            break;
        }
        out.push_str(word);
        count += len + 1;
    }
    out
}

fn line(ask: &BookAsk<'_>, find: &Find, entry: &Entry, depth: usize, expand: u8, out: &mut String) {
    let class = if depth == 0 { "list1" } else { "list2" };
    let padding = depth.min(20) * 20;
    put!(out, "<td class=\"{}\" style=\"padding-left:{}px\">", class, padding + 6);
    let href = ask.link(&entry.at.book, &entry.at.id.to_string());
    let text = match ask.settings.thread_display() {
        Some(display) => {
            let zone = &ask.site.config.zone;
            Names::new(ask.caller, &ask.book, &ask.settings, zone, ask.now)
                .with_entry(entry, &ask.book, &ask.settings, zone)
                .expand(display)
        }
        None => {
            let mut parts = vec![values::id(ask, entry), values::when(ask, entry)];
            let attributes = ask.book.attributes.iter().map(|def| values::plain_value(ask, entry, &def.name));
            parts.extend(attributes.filter(|value| !value.is_empty()));
            parts.join(", ")
        }
    };
    put!(out, "<a href=\"{}\">{}</a>", href, text);
    if find.all_books {
        put!(out, " <span class=\"note\">{}</span>", entry.at.book);
    }
    if expand >= 2 && !entry.content.text.is_empty() {
        put!(out, "<div class=\"messagelist\">{}</div>", values::text(ask, entry));
    }
    if expand >= 3 {
        out.push_str(&values::attachments(ask, entry));
    }
    out.push_str("</td></tr>\n");
}

/// The entries of a thread, each behind what it answers, with how deep it stands.
pub fn in_order(thread: &[Entry]) -> Vec<(usize, &Entry)> {
    let there: HashSet<u32> = thread.iter().map(|entry| entry.at.id).collect();
    let mut out = Vec::with_capacity(thread.len());
    // An answer to what is not there stands at the beginning.
    let tops = thread.iter().filter(|entry| entry.parent.is_none_or(|parent| !there.contains(&parent)));
    let mut stack: Vec<(usize, &Entry)> = tops.map(|entry| (0, entry)).collect();
    stack.reverse();
    while let Some((depth, entry)) = stack.pop() {
        out.push((depth, entry));
        let answers = thread.iter().rev().filter(|answer| answer.parent == Some(entry.at.id));
        stack.extend(answers.map(|answer| (depth + 1, answer)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_shortened_at_words_or_inside_long_ones() {
        for (text, most, expected) in
            [("a  b\nc", 20, "a b c"), ("hello world", 8, "hello wo..."), ("ääääää", 3, "äää..."), ("", 3, "")]
        {
            assert_eq!(shortened(text, most), expected);
        }
    }
}
