//! Lists of entries: a line each, with their texts, or by threads.

use std::collections::HashSet;

use http::StatusCode;

use super::{
    BookAsk, Response,
    address::{Parameters, Part, escape},
    ere,
    find::{self, BadFind, Find},
    html::{Raw, put, style},
    layout::{self, Page},
    paging::{self, Listing, MAX_ALL},
    settings::{Mode, SPANS},
    subst::Names,
    values,
};
use crate::{
    book::{AttributeKind, same_name},
    entry::{Entry, EntryRef},
    plain,
    search::{Count, Hit, Stopped},
    store::StoreError,
};

/// Entries of a thread that are shown in a list.
const MAX_THREAD: usize = 500;

/// A list.
pub fn answer(ask: &BookAsk<'_>, part: Part) -> Response {
    if part == Part::Default
        && ask.query.0.is_empty()
        && let Some(start) = start_page(ask)
    {
        return layout::redirect(&ask.address(&start));
    }
    let mut find = match find::find(ask, part) {
        Ok(find) => find,
        Err(BadFind::Store(error)) => return ask.failed(&error),
        Err(bad) => return layout::error(ask, StatusCode::NOT_FOUND, &bad.to_string()),
    };
    let by_thread = find.mode == Mode::Threaded;
    if by_thread && find.search.query.is_empty() {
        // Threads begin with what answers nothing; where something is looked for, any entry of a thread can have it.
        find.search.query = "-is:reply".to_owned();
    }
    let listing = match paging::page(ask, &find, part) {
        Ok(listing) => listing,
        Err(error) => return ask.failed(&error),
    };
    let mut body = String::with_capacity(listing.hits.len() * 1024 + 4096);
    let printable = ask.query.is_on("printable");
    if !printable {
        body.push_str(&layout::menu(ask, None));
        modes(ask, &find, &mut body);
        quick_filters(ask, &find, &mut body);
    }
    told(ask, &find, &listing, &mut body);
    pages(ask, &listing, &mut body);
    let done = match find.mode {
        Mode::Threaded => threads(ask, &find, &listing, &mut body),
        mode => {
            table(ask, &find, &listing, mode, &mut body);
            Ok(())
        }
    };
    if let Err(error) = done {
        return ask.failed(&error);
    }
    pages(ask, &listing, &mut body);
    let mut page = Page::new(ask, "", body);
    (page.kind, page.refresh) = ("list", true);
    page.answer(StatusCode::OK)
}

/// What the book's address alone stands for.
fn start_page(ask: &BookAsk<'_>) -> Option<String> {
    let start = ask.settings.start_page()?;
    // Something of this book; not another site, and not itself.
    let plain = !start.contains(['/', '\\', '\n', '\r']) && !start.starts_with('.');
    let (path, query) = start.split_once('?').unwrap_or((start, ""));
    let query = Parameters::read(query).written();
    (plain && !(path.is_empty() && query.is_empty())).then(|| format!("{}{query}", escape(path)))
}

/// Parameters that say where in the list one is, and not what the list is.
const PLACE: [&str; 2] = ["id", "cmd"];

fn modes(ask: &BookAsk<'_>, find: &Find, out: &mut String) {
    out.push_str("<div class=\"modes\">");
    for (nth, mode) in [Mode::Full, Mode::Summary, Mode::Threaded].into_iter().enumerate() {
        let text = ["Full", "Summary", "Threaded"][nth];
        if nth > 0 {
            out.push_str(" | ");
        }
        if mode == find.mode {
            put!(out, "<b>{}</b>", text);
        } else {
            put!(out, "<a href=\"{}\">{}</a>", here(&ask.query.without(&PLACE).with("mode", mode.name())), text);
        }
    }
    if find.mode == Mode::Threaded {
        for (level, text) in [("0", "Collapse"), ("1", "Expand"), ("2", "Expand with text")] {
            put!(out, " | <a href=\"{}\">{}</a>", here(&ask.query.without(&PLACE).with("expand", level)), text);
        }
    }
    out.push_str("</div>\n");
}

/// The same list with these parameters.
fn here(query: &Parameters) -> String {
    let written = query.written();
    if written.is_empty() { "./".to_owned() } else { format!("./{written}") }
}

fn quick_filters(ask: &BookAsk<'_>, find: &Find, out: &mut String) {
    let filters = ask.settings.quick_filters();
    if filters.is_empty() {
        return;
    }
    out.push_str("<form class=\"quickfilter\" method=\"get\" action=\"./\">\n");
    let own = |name: &str| {
        filters.iter().any(|filter| same_name(filter, name)) || name == "last" && filters.iter().any(|f| same_name(f, "Date"))
    };
    for (name, value) in ask.query.without(&PLACE).0.iter().filter(|(name, _)| !own(name)) {
        put!(out, "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n", name, value);
    }
    for filter in &filters {
        put!(out, "<label>{}: ", filter);
        if same_name(filter, "Date") {
            let chosen = ask.query.get("last").map(str::to_owned).or_else(|| find.only_last.map(|days| days.to_string()));
            out.push_str("<select name=\"last\">");
            values::option(out, "0", "-- all --", chosen.is_none());
            let mut known = chosen.as_deref().is_none_or(|days| days == "0");
            for (days, text) in SPANS {
                let days = days.to_string();
                known |= chosen.as_ref() == Some(&days);
                values::option(out, &days, text, chosen.as_ref() == Some(&days));
            }
            if let Some(days) = chosen.filter(|_| !known) {
                values::option(out, &days, &format!("{days} Days"), true);
            }
            out.push_str("</select>");
        } else if let Some(def) = find.attributes.iter().find(|def| same_name(&def.name, filter)) {
            let value = ask.query.get(&def.name).unwrap_or_default();
            choice(ask, def, value, out);
        }
        out.push_str("</label>\n");
    }
    out.push_str("<input type=\"submit\" value=\"Filter\">\n</form>\n");
}

/// A field that asks for a value of an attribute: what can be chosen, or a text.
pub fn choice(ask: &BookAsk<'_>, def: &crate::book::AttributeDef, value: &str, out: &mut String) {
    let options: Vec<(String, String)> = match def.kind {
        AttributeKind::Boolean => vec![("1".to_owned(), "yes".to_owned()), ("0".to_owned(), "no".to_owned())],
        AttributeKind::Options | AttributeKind::Radio => {
            def.options.iter().map(|option| (ere::exactly(option), option.clone())).collect()
        }
        // One of several values: a part of what they are joined to.
        AttributeKind::Multiple => def.options.iter().map(|option| (ere::part(option), option.clone())).collect(),
        AttributeKind::UserList | AttributeKind::UserLists => {
            // Who has a login here is not for guests to read.
            let users = Some(&ask.site.config.users).filter(|_| !ask.caller.login.is_empty());
            users.into_iter().flatten().map(|(login, full_name)| (ere::exactly(login), full_name.clone())).collect()
        }
        _ => vec![],
    };
    if options.is_empty() {
        put!(out, "<input type=\"text\" name=\"{}\" value=\"{}\" size=\"20\">", def.name, value);
        return;
    }
    put!(out, "<select name=\"{}\">", def.name);
    values::option(out, "", "-- all --", value.is_empty());
    let mut known = value.is_empty();
    for (expression, text) in options {
        let chosen = expression == value || text == value;
        known |= chosen;
        values::option(out, &expression, &text, chosen);
    }
    if !known {
        // Something of one's own that came with the address.
        values::option(out, value, value, true);
    }
    out.push_str("</select>");
}

/// What was looked for, how much there is, and what is missing.
fn told(ask: &BookAsk<'_>, find: &Find, listing: &Listing, out: &mut String) {
    out.push_str("<div class=\"told\">");
    if find.all_books {
        out.push_str("<span class=\"filter\">All logbooks</span> ");
    }
    for (name, value) in &find.told {
        put!(out, "<span class=\"filter\"><b>{}:</b> {}</span> ", name, value);
    }
    match listing.count {
        Some(Count::Exactly(1)) => out.push_str("<b>1 Entry</b>"),
        Some(Count::Exactly(count)) => put!(out, "<b>{} Entries</b>", count),
        Some(Count::AtLeast(count)) => put!(out, "<span class=\"count\">{} entries or more</span>", count),
        None => {}
    }
    if !find.told.is_empty() {
        out.push_str(" <a href=\"./\">Show all</a>");
    }
    if let Some(days) = find.only_last {
        let more = here(&ask.query.without(&PLACE).with("last", "0"));
        put!(out, " <span class=\"note\">Of the last {} days. <a href=\"{}\">Show older</a></span>", days, more);
    }
    // Where times are of several zones, each says its own when it is pointed at.
    let mut zones: Vec<String> = listing.hits.iter().map(|hit| values::zone(ask, &hit.entry)).collect();
    zones.dedup();
    if let [zone] = &zones[..] {
        put!(out, " <span class=\"note zone\">Times: {}</span>", zone);
    }
    match listing.stopped {
        Some(Stopped::TimeLimit) => {
            out.push_str("<div class=\"warning\">The search reached its time limit: this is what it had found until then</div>");
        }
        Some(Stopped::Abandoned) => out.push_str("<div class=\"warning\">The search was ended: this is what it had found</div>"),
        None => {}
    }
    if ask.query.is_on("new_entries") {
        out.push_str("<div class=\"note\">When you were here last is not known here: everything is shown</div>");
    }
    if listing.page == 0 && listing.after {
        put!(out, "<div class=\"warning\">Only the first {} are shown</div>", MAX_ALL);
    }
    out.push_str("</div>\n");
}

/// The row of pages: the first, some around this one, the last, all.
fn pages(ask: &BookAsk<'_>, listing: &Listing, out: &mut String) {
    if listing.page == 0 || !listing.before && !listing.after {
        return;
    }
    let query = ask.query.without(&PLACE).written();
    let page = listing.page;
    out.push_str("<nav class=\"pagelinks\">Goto page ");
    let mut link = |number: i64, text: &str| put!(out, "<a href=\"page{}{}\">{}</a> ", number, query, text);
    if listing.before {
        link(page - 1, "Previous");
    }
    match listing.pages {
        Some(pages) => {
            let pages = i64::try_from(pages).unwrap_or(i64::MAX);
            let mut last = 0;
            for number in
                (1..=3).chain(page - 3..=page + 3).chain(pages - 2..=pages).filter(|number| (1..=pages).contains(number))
            {
                if number <= last {
                    continue;
                }
                let gap = if number > last + 1 { "... " } else { "" };
                last = number;
                if number == page {
                    put!(out, "{}<b>{}</b> ", gap, number);
                } else {
                    put!(out, "{}<a href=\"page{}{}\">{}</a> ", gap, number, query, number);
                }
            }
            if let Some(Count::Exactly(total)) = listing.count
                && total <= ask.settings.all_limit()
            {
                put!(out, "<a href=\"page{}\">All</a> ", query);
            }
        }
        None if page < 0 => {
            link(1, "First");
            put!(out, "<b>{} from the end</b> ", -page);
        }
        None => {
            put!(out, "<b>{}</b> ", page);
        }
    }
    if listing.after {
        let next = page + 1;
        put!(out, "<a href=\"page{}{}\">Next</a> ", next, query);
        if listing.pages.is_none() && next < -1 || listing.pages.is_none() && page > 0 {
            put!(out, "<a href=\"page-1{}\">Last</a>", query);
        }
    }
    out.push_str("</nav>\n");
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

fn table(ask: &BookAsk<'_>, find: &Find, listing: &Listing, mode: Mode, out: &mut String) {
    let columns = columns(ask, find);
    let shows_text = mode == Mode::Summary && ask.settings.show_text() && ask.settings.summary_lines() > 0;
    let shows_files = ask.settings.show_attachments();
    out.push_str("<div class=\"listframe\"><table class=\"list\">\n<tr>");
    for column in &columns {
        let sorted = same_name(&find.sorted_by, column) || find.sorted_by.is_empty() && same_name(column, "Date");
        let next = if sorted && !find.search.descending { "rsort" } else { "sort" };
        let query = ask.query.without(&["sort", "rsort", "reverse", "Reverse", "id", "cmd"]).with(next, column);
        let arrow = match (sorted, find.search.descending) {
            (true, false) => " &#9650;",
            (true, true) => " &#9660;",
            _ => "",
        };
        put!(out, "<th class=\"listtitle\"><a href=\"{}\">{}</a>{}</th>", here(&query), column, Raw(arrow));
    }
    if shows_text {
        out.push_str("<th class=\"listtitle\">Text</th>");
    }
    if shows_files {
        out.push_str("<th class=\"listtitle\"><span title=\"Attachments\">Files</span></th>");
    }
    out.push_str("</tr>\n");
    let width = columns.len() + usize::from(shows_text) + usize::from(shows_files);
    if listing.hits.is_empty() {
        put!(out, "<tr><td class=\"nothing\" colspan=\"{}\">No entries found</td></tr>\n", width);
    }
    // With the search in its address an entry leads on to the next that was found. py_elog, which searches in full mode, reads numbers from these
    // addresses and nothing else.
    let from_list = match mode {
        Mode::Full => String::new(),
        _ => ask.query.without(&["mode", "npp", "id", "cmd", "expand", "printable"]).written(),
    };
    for (nth, hit) in listing.hits.iter().enumerate() {
        let class = if nth % 2 == 0 { "list1" } else { "list2" };
        out.push_str("<tr>");
        let href = ask.link(&hit.entry.at.book, &format!("{}{from_list}", hit.entry.at.id));
        for (at, column) in columns.iter().enumerate() {
            cell(ask, hit, column, class, if at == 0 || ask.settings.links(column) { Some(&href) } else { None }, out);
        }
        if shows_text {
            summary(ask, hit, class, out);
        }
        if shows_files {
            match hit.entry.content.attachments.len() {
                0 => put!(out, "<td class=\"{}\"></td>", class),
                count => put!(out, "<td class=\"{}\" title=\"{} attachments\">{}</td>", class, count, count),
            }
        }
        out.push_str("</tr>\n");
        if mode == Mode::Full {
            put!(out, "<tr><td class=\"messagelist\" colspan=\"{}\">{}", width, values::text(ask, &hit.entry));
            if shows_files && ask.query.get("attach") != Some("0") {
                out.push_str(&values::attachments(ask, &hit.entry));
            }
            out.push_str("</td></tr>\n");
        }
    }
    out.push_str("</table></div>\n");
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

/// Threads, each below its first entry. A thread is shown where the first of its entries is that was found.
fn threads(ask: &BookAsk<'_>, find: &Find, listing: &Listing, out: &mut String) -> Result<(), StoreError> {
    let expand = ask.query.number::<u8>("expand").unwrap_or_else(|| ask.settings.expand());
    let mut seen = HashSet::new();
    out.push_str("<div class=\"listframe\"><table class=\"list threads\">\n");
    if listing.hits.is_empty() {
        out.push_str("<tr><td class=\"nothing\">No entries found</td></tr>\n");
    }
    for hit in &listing.hits {
        if !seen.insert((hit.entry.at.book.clone(), hit.entry.thread)) {
            continue;
        }
        let thread = if expand == 0 && hit.entry.parent.is_none() {
            vec![hit.entry.clone()]
        } else {
            let mut thread = ask.site.store.thread(&EntryRef::new(&hit.entry.at.book, hit.entry.at.id))?;
            thread.truncate(MAX_THREAD);
            thread
        };
        for (depth, entry) in in_order(&thread) {
            if expand == 0 && depth > 0 {
                continue;
            }
            line(ask, find, entry, depth, expand, out);
        }
    }
    out.push_str("</table></div>\n");
    Ok(())
}

fn line(ask: &BookAsk<'_>, find: &Find, entry: &Entry, depth: usize, expand: u8, out: &mut String) {
    let class = if depth == 0 { "list1" } else { "list2" };
    let padding = depth.min(20) * 20;
    put!(out, "<tr><td class=\"{}\" style=\"padding-left:{}px\">", class, padding + 6);
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
