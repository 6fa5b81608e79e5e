//! The rows of a list: a table, or threads. They can be written in several pieces, as for a whole book.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use tampu_logbook::{
    book::same_name,
    entry::{Entry, EntryRef},
    plain,
    search::{Hit, MAX_PAGE_BYTES, StopReason},
    store::{PagePart, StoreError},
};

use crate::pages::{
    access,
    command::PageCommand,
    find::ListSearch,
    html::{SafeHtml, put, style},
    list::select::Selection,
    request::BookRequest,
    settings::{BookSettings, ListMode, has},
    subst::Substitutions,
    values,
};

/// Entries of a thread that are shown in a list.
pub const MAX_THREAD: usize = 500;

/// The mark of an attached file: a drawing, because many fonts have no paper clip.
const CLIP: &str = "<svg viewBox=\"0 0 16 16\" aria-hidden=\"true\"><path d=\"M13 7 8 12a3 3 0 0 1-4-4l5-5a2 2 0 0 1 3 3l-5 5a1 1 0 0 1-1-1l4-4\"/></svg>";

/// The lines of a list, as far as they are written.
pub struct ListRows {
    mode: ListMode,
    columns: Vec<String>,
    shows_text: bool,
    shows_files: bool,
    selecting: Option<Selection>,
    /// The text of an empty list.
    nothing: String,
    /// Number of written lines.
    written: usize,
    /// Threads that have been written.
    seen: HashSet<(String, u32)>,
}

impl ListRows {
    /// Begins without rows.
    pub fn new(request: &BookRequest<'_>, find: &ListSearch, selecting: Option<Selection>) -> ListRows {
        ListRows {
            mode: find.mode,
            columns: columns(request, find),
            shows_text: find.mode == ListMode::Summary && request.settings.show_text() && request.settings.summary_lines() > 0,
            shows_files: request.settings.attachments() && request.settings.show_attachments(),
            selecting,
            nothing: request.word("No entries found").to_owned(),
            written: 0,
            seen: HashSet::new(),
        }
    }

    /// Writes the HTML before the first row.
    pub fn begin(&self, request: &BookRequest<'_>, find: &ListSearch, out: &mut String) {
        if let Some(selecting) = &self.selecting {
            selecting.begin(request, out);
        }
        if self.mode == ListMode::Threaded {
            out.push_str("<div class=\"listframe\"><table class=\"list threads\">\n");
            return;
        }
        out.push_str("<div class=\"listframe\"><table class=\"list\">\n<tr>");
        if self.selecting.is_some() {
            out.push_str("<th class=\"listtitle\"></th>");
        }
        for column in &self.columns {
            if command_of(request, column).is_some() {
                put!(out, "<th class=\"listtitle\">{}</th>", request.word(column));
                continue;
            }
            let sorted = same_name(&find.sorted_by, column) || find.sorted_by.is_empty() && same_name(column, "Date");
            let next = if sorted && !find.search.descending { "rsort" } else { "sort" };
            let query = request.query.without(&["sort", "rsort", "reverse", "Reverse", "id", "cmd"]).with(next, column);
            let arrow = match (sorted, find.search.descending) {
                (true, false) => " &#9650;",
                (true, true) => " &#9660;",
                _ => "",
            };
            put!(
                out,
                "<th class=\"listtitle\"><a href=\"{}\">{}</a>{}</th>",
                crate::pages::list::links::here(&query),
                heading(request, column),
                SafeHtml(arrow)
            );
        }
        if self.shows_text {
            put!(out, "<th class=\"listtitle\">{}</th>", request.word("Text"));
        }
        if self.shows_files {
            out.push_str("<th class=\"listtitle\"><span title=\"Attachments\">Files</span></th>");
        }
        out.push_str("</tr>\n");
    }

    /// Writes these entries, after the earlier ones.
    pub fn write(
        &mut self,
        request: &BookRequest<'_>,
        find: &ListSearch,
        hits: &[Hit],
        out: &mut String,
    ) -> Result<(), StoreError> {
        match self.mode {
            ListMode::Threaded => self.threads(request, find, hits, out),
            ListMode::Summary | ListMode::Full => {
                self.table(request, hits, out);
                Ok(())
            }
        }
    }

    /// Writes the HTML after the last row.
    pub fn end(&self, out: &mut String) {
        if self.written == 0 {
            put!(out, "<tr><td class=\"nothing\" colspan=\"{}\">{}</td></tr>\n", self.width(), self.nothing);
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

    fn table(&mut self, request: &BookRequest<'_>, hits: &[Hit], out: &mut String) {
        // With the search in its address, an entry leads to the next one found. py_elog, which searches in full mode, reads numbers from
        // these addresses and nothing else.
        let from_list = match self.mode {
            ListMode::Full => String::new(),
            _ => request.query.without(&["mode", "npp", "id", "cmd", "expand", "printable", "select"]).written(),
        };
        for hit in hits {
            // Nobody reads the rest.
            if request.stop.reason() == Some(StopReason::Requested) {
                return;
            }
            let class = if self.written.is_multiple_of(2) { "list1" } else { "list2" };
            let settings = request.settings.of_line(&hit.entry);
            // Under its conditions a line can have fewer columns than the list.
            let own_columns = match &settings {
                Cow::Owned(own) => Some(own.columns(request.caller.login.is_empty())),
                Cow::Borrowed(_) => None,
            };
            match line_style(&settings, &hit.entry) {
                Some(own) => put!(out, "<tr style=\"{}\">", own),
                None => out.push_str("<tr>"),
            }
            if let Some(selecting) = &self.selecting {
                selecting.tick(request, &hit.entry, self.written, out);
            }
            self.written += 1;
            let href = request.link(&hit.entry.at.book, &format!("{}{from_list}", hit.entry.at.id));
            for (at, column) in self.columns.iter().enumerate() {
                if own_columns.as_ref().is_some_and(|own| !has(own, column) && !same_name(column, "Logbook")) {
                    put!(out, "<td class=\"{}\"></td>", class);
                    continue;
                }
                if let Some(command) = command_of(request, column) {
                    command_cell((request, &settings), &hit.entry, command, class, out);
                    continue;
                }
                cell(
                    (request, &settings),
                    hit,
                    column,
                    class,
                    if at == 0 || request.settings.links(column) { Some(&href) } else { None },
                    out,
                );
            }
            if self.shows_text {
                summary(request, hit, class, out);
            }
            if self.shows_files {
                match hit.entry.content.attachments.len() {
                    0 => put!(out, "<td class=\"{}\"></td>", class),
                    count => put!(out, "<td class=\"{}\" title=\"{} attachments\">{}</td>", class, count, count),
                }
            }
            out.push_str("</tr>\n");
            if self.mode == ListMode::Full {
                put!(out, "<tr><td class=\"messagelist\" colspan=\"{}\">{}", self.width(), values::text(request, &hit.entry));
                if self.shows_files && request.query.get("attach") != Some("0") {
                    out.push_str(&values::attachments(request, &hit.entry));
                }
                out.push_str("</td></tr>\n");
            }
        }
    }

    /// Writes threads, each below its first entry. A thread is shown at the position of its first found entry. Of a search,
    /// and of the newest entries, only the found entries are shown.
    fn threads(
        &mut self,
        request: &BookRequest<'_>,
        find: &ListSearch,
        hits: &[Hit],
        out: &mut String,
    ) -> Result<(), StoreError> {
        let expand = request.query.number::<u8>("expand").unwrap_or_else(|| request.settings.expand());
        // The bytes of texts that these threads may still bring; entries beyond them are listed without their texts.
        let mut left = MAX_PAGE_BYTES;
        for hit in hits {
            if request.stop.reason() == Some(StopReason::Requested) {
                return Ok(());
            }
            if !find.is_flat && !self.seen.insert((hit.entry.at.book.clone(), hit.entry.thread)) {
                continue;
            }
            let thread = if find.is_flat {
                vec![Entry { parent: None, ..hit.entry.clone() }]
            } else if expand == 0 && hit.entry.parent.is_none() && !request.settings.collapses_to_last() {
                vec![hit.entry.clone()]
            } else {
                let at = EntryRef::new(&hit.entry.at.book, hit.entry.at.id);
                let thread = match thread_of(request, &at, expand >= 2 && left > 0) {
                    Ok(thread) => thread,
                    // The entry was deleted while the list was made.
                    Err(StoreError::Gone(_) | StoreError::NoEntry(_)) => continue,
                    Err(error) => return Err(error),
                };
                left = left.saturating_sub(thread.iter().map(|entry| entry.content.bytes()).sum());
                if expand == 0 && request.settings.collapses_to_last() { newest(thread) } else { thread }
            };
            for (depth, entry) in in_order(&thread) {
                if expand == 0 && depth > 0 {
                    continue;
                }
                out.push_str("<tr>");
                if let Some(selecting) = &self.selecting {
                    selecting.tick(request, entry, self.written, out);
                }
                self.written += 1;
                line(request, find, entry, depth, expand, out);
            }
        }
        Ok(())
    }
}

/// Returns the heading of a column. Names of attributes are the same in every language.
fn heading<'w>(request: &'w BookRequest<'_>, column: &'w str) -> &'w str {
    let is_attribute = request.book.attribute(column).is_some();
    if is_attribute { column } else { request.word(column) }
}

/// Returns the newest of these entries.
fn newest(thread: Vec<Entry>) -> Vec<Entry> {
    thread
        .into_iter()
        .max_by_key(|entry| (entry.date, entry.at.id))
        .map(|entry| Entry { parent: None, ..entry })
        .into_iter()
        .collect()
}

/// Returns the first entries of a thread. If their texts are wanted and too long for a page, the entries after them have none.
fn thread_of(request: &BookRequest<'_>, at: &EntryRef, text: bool) -> Result<Vec<Entry>, StoreError> {
    let mut part = PagePart { after: None, limit: MAX_THREAD };
    let first = request.site.store.thread_page(at, part, text)?;
    let mut entries = first.entries;
    part.after = first.next;
    while part.after.is_some() && entries.len() < MAX_THREAD {
        part.limit = MAX_THREAD - entries.len();
        let more = request.site.store.thread_page(at, part, false)?;
        entries.extend(more.entries);
        part.after = more.next;
    }
    let shown = request.shown_in_all()?;
    for entry in &mut entries {
        let of_book = shown.iter().find(|(book, _)| same_name(book, &entry.at.book));
        entry.keep_shown(of_book.map(|(_, shown)| &shown[..]));
    }
    Ok(entries)
}

/// The columns: name, and whether it is an attribute.
fn columns(request: &BookRequest<'_>, find: &ListSearch) -> Vec<String> {
    let mut columns = request.settings.columns(request.caller.login.is_empty());
    let known = |name: &str| {
        matches!(name.to_lowercase().as_str(), "id" | "date" | "logbook" | "edit" | "delete")
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

/// Returns the command that a column offers for each entry, if no attribute has its name.
fn command_of(request: &BookRequest<'_>, column: &str) -> Option<PageCommand> {
    let command = PageCommand::named(column).filter(|command| matches!(command, PageCommand::Edit | PageCommand::Delete));
    command.filter(|_| request.book.attribute(column).is_none())
}

/// Writes the cell of a column with a command, as a link for callers who may use it.
fn command_cell(
    (request, settings): (&BookRequest<'_>, &BookSettings),
    entry: &Entry,
    command: PageCommand,
    class: &str,
    out: &mut String,
) {
    put!(out, "<td class=\"{}\">", class);
    let may =
        request.may(command).is_ok() && access::may_change(request.caller, &request.book, settings, entry, request.now).is_ok();
    if may {
        let href = request.link(&entry.at.book, &format!("{}?cmd={}", entry.at.id, command.name()));
        let sign = if command == PageCommand::Edit { "&#9998;" } else { "&#10006;" };
        put!(out, "<a class=\"command\" href=\"{}\" title=\"{}\">{}</a>", href, request.word(command.name()), SafeHtml(sign));
    }
    out.push_str("</td>");
}

/// Writes a cell of a line. In a column that links to the entry, the text is the link, unless the text has links of its
/// own.
fn cell(
    (request, settings): (&BookRequest<'_>, &BookSettings),
    hit: &Hit,
    column: &str,
    class: &str,
    href: Option<&str>,
    out: &mut String,
) {
    let entry = &hit.entry;
    let content = match column.to_lowercase().as_str() {
        "id" => {
            let mut shown = String::new();
            put!(&mut shown, "{}", values::id(request, entry));
            shown
        }
        "date" => {
            let mut shown = String::new();
            put!(
                &mut shown,
                "<span class=\"date\" title=\"{}\">{}</span>",
                values::zone(request, entry),
                values::when(request, entry)
            );
            shown
        }
        "logbook" => {
            let mut shown = String::new();
            put!(&mut shown, "{}", entry.at.book);
            shown
        }
        _ => {
            let marks = hit.attributes.iter().find(|(name, _)| same_name(name, column)).map(|(_, marks)| marks.as_slice());
            values::value_in_list((request, settings), entry, column, marks).0
        }
    };
    let said = entry.content.attribute(column).map(|said| said.joined()).unwrap_or_default();
    let own = style(settings.cell_style(column, if said.is_empty() { "\"\"" } else { &said }));
    put!(out, "<td class=\"{}\"", class);
    if !own.is_empty() {
        put!(out, " style=\"{}\"", own);
    }
    match href {
        Some(href) if !content.contains("<a ") && !content.is_empty() => {
            put!(out, "><a href=\"{}\">{}</a></td>", href, SafeHtml(content))
        }
        _ => put!(out, ">{}</td>", SafeHtml(content)),
    }
}

/// Returns the style of an entry's line: that of its first value with one.
fn line_style<'s>(settings: &'s BookSettings, entry: &Entry) -> Option<&'s str> {
    let of = |name: &str, value: &str| settings.line_style(name, value).map(style);
    let mut values =
        entry.content.attributes.iter().flat_map(|said| said.values.iter().map(|value| (said.name.as_str(), value.as_str())));
    // `""` stands for no value.
    let empty = |name: &&str| entry.content.attribute(name).is_none_or(|said| said.values.is_empty());
    let found = values.find_map(|(name, value)| of(name, value));
    let found =
        found.or_else(|| settings.attributes().iter().map(String::as_str).filter(empty).find_map(|name| of(name, "\"\"")));
    found.filter(|style| !style.is_empty())
}

/// Writes some lines of the text. For a text search, these are the lines around the match.
fn summary(request: &BookRequest<'_>, hit: &Hit, class: &str, out: &mut String) {
    put!(out, "<td class=\"summary {}\">", class);
    if request.query.get("subtext").is_some() && !hit.snippet.marks.is_empty() {
        values::marked(&hit.snippet.text, &hit.snippet.marks, out);
    } else {
        let (lines, length) = (request.settings.summary_lines(), request.settings.summary_line_length());
        let (text, most) = (&hit.entry.content.text, lines.saturating_mul(length).min(10_000));
        // Marks and addresses may precede the visible text; a list does not read a long text to its end.
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

fn line(request: &BookRequest<'_>, find: &ListSearch, entry: &Entry, depth: usize, expand: u8, out: &mut String) {
    let class = if depth == 0 { "list1" } else { "list2" };
    let padding = depth.min(20) * 20;
    put!(out, "<td class=\"{}\" style=\"padding-left:{}px\">", class, padding + 6);
    let href = request.link(&entry.at.book, &entry.at.id.to_string());
    let text = match request.settings.thread_display() {
        Some(display) => {
            let zone = &request.zone;
            Substitutions::new(request.caller, &request.book, &request.settings, zone, request.now)
                .with_entry(entry, &request.book, &request.settings, zone)
                .expand(display)
        }
        None => {
            let mut parts = vec![values::id(request, entry), values::when(request, entry)];
            let attributes = request.book.attributes.iter().map(|def| values::plain_value(request, entry, &def.name));
            parts.extend(attributes.filter(|value| !value.is_empty()));
            parts.join(", ")
        }
    };
    let image = request.settings.thread_icon().and_then(|name| entry.content.attribute(name)).map(|said| said.joined());
    if let Some(image) = image.filter(|image| !image.is_empty()) {
        values::icon(request, entry, &image, out);
    }
    put!(out, "<a href=\"{}\">{}</a>", href, text);
    if request.settings.attachments() && request.settings.show_attachments() && expand < 3 {
        for attachment in &entry.content.attachments {
            let link = values::attachment_link(request, entry, attachment);
            put!(
                out,
                " <a class=\"clip\" href=\"{}\" title=\"{}\" aria-label=\"{}\">{}</a>",
                link,
                attachment.name,
                attachment.name,
                SafeHtml(CLIP)
            );
        }
    }
    if find.all_books {
        put!(out, " <span class=\"note\">{}</span>", entry.at.book);
    }
    if expand >= 2 && !entry.content.text.is_empty() {
        put!(out, "<div class=\"messagelist\">{}</div>", values::text(request, entry));
    }
    if expand >= 3 {
        out.push_str(&values::attachments(request, entry));
    }
    out.push_str("</td></tr>\n");
}

/// Returns the entries of a thread, each after its parent, with their depth.
pub fn in_order(thread: &[Entry]) -> Vec<(usize, &Entry)> {
    let there: HashSet<u32> = thread.iter().map(|entry| entry.at.id).collect();
    let mut out = Vec::with_capacity(thread.len());
    // A reply to a missing entry stands at the beginning.
    let tops = thread.iter().filter(|entry| entry.parent.is_none_or(|parent| !there.contains(&parent)));
    let mut stack: Vec<(usize, &Entry)> = tops.map(|entry| (0, entry)).collect();
    stack.reverse();
    let mut answers: HashMap<u32, Vec<&Entry>> = HashMap::new();
    for entry in thread {
        if let Some(parent) = entry.parent {
            answers.entry(parent).or_default().push(entry);
        }
    }
    while let Some((depth, entry)) = stack.pop() {
        out.push((depth, entry));
        let answers = answers.remove(&entry.at.id).unwrap_or_default();
        stack.extend(answers.into_iter().rev().map(|answer| (depth + 1, answer)));
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
