//! An entry's page, and the way from one entry of a search to the next.

use http::StatusCode;

use super::{
    BookAsk, Response,
    access::{self, Denied},
    address::{Parameters, Part},
    command::Command,
    find::{self, BadFind},
    html::{Raw, put, style},
    layout::{self, Page},
    list::in_order,
    subst::Names,
    values,
};
use crate::{
    entry::{Entry, EntryRef},
    search::{MAX_PAGE, Search, Sort, Start},
    store::Result,
};
use tampu_types::Time;

const SECOND: i64 = 1_000_000_000;
/// Entries of a second that are looked through for the one that is shown.
const NEAR: usize = 50;

/// An entry's page.
pub fn answer(ask: &BookAsk<'_>, id: u32) -> Response {
    let at = EntryRef::new(&ask.book.name, id);
    let entry = match ask.site.store.entry(&at) {
        Ok(entry) => entry,
        Err(error) => return ask.failed(&error),
    };
    let thread = match ask.site.store.thread(&at) {
        Ok(thread) => thread,
        Err(error) => return ask.failed(&error),
    };
    let lock = ask.site.store.locked(&at).ok().flatten();
    let mut body = String::with_capacity(entry.content.text.len() + 8192);
    if !ask.query.is_on("printable") {
        body.push_str(&layout::menu(ask, Some(id)));
        steps(ask, id, &mut body);
    }
    if let Some(lock) = lock {
        put!(&mut body, "<div class=\"warning\">Entry is currently edited by {} on {}</div>\n", lock.by, lock.host);
    }
    head(ask, &entry, &thread, &mut body);
    attributes(ask, &entry, &mut body);
    if ask.settings.show_text() || !entry.content.text.is_empty() {
        put!(&mut body, "<div class=\"messageframe\">{}</div>\n", values::text(ask, &entry));
    }
    if ask.settings.show_attachments() {
        body.push_str(&values::attachments(ask, &entry));
    }
    if !entry.content.links.is_empty() {
        body.push_str("<p class=\"links\">Links: ");
        for link in &entry.content.links {
            put!(&mut body, "<span class=\"typed\">{}</span> ", link.to_string());
        }
        body.push_str("</p>\n");
    }
    whole_thread(ask, &entry, &thread, &mut body);
    let subject = values::plain_value(ask, &entry, "Subject");
    let title = if subject.is_empty() { format!("entry {id}") } else { subject };
    Page::new(ask, &title, body).answer(StatusCode::OK)
}

/// What of the address belongs to the search that the entry was found by.
fn search_of(ask: &BookAsk<'_>) -> Parameters {
    ask.query.without(&["cmd", "id", "printable"])
}

fn steps(ask: &BookAsk<'_>, id: u32, out: &mut String) {
    out.push_str("<nav class=\"steps\">");
    for (command, text) in [
        (Command::First, "&#171; First"),
        (Command::Previous, "&#8249; Previous"),
        (Command::Next, "Next &#8250;"),
        (Command::Last, "Last &#187;"),
    ] {
        let mut query = search_of(ask);
        query.0.insert(0, ("cmd".to_owned(), command.name().to_owned()));
        put!(out, "<a href=\"{}{}\">{}</a> ", id, query.written(), Raw(text));
    }
    let search = search_of(ask);
    let back = if search.0.is_empty() { format!("./?id={id}") } else { format!("./{}&id={id}", search.written()) };
    put!(out, "<a href=\"{}\">In the list</a></nav>\n", back);
}

fn head(ask: &BookAsk<'_>, entry: &Entry, thread: &[Entry], out: &mut String) {
    put!(
        out,
        "<div class=\"entryhead\">Message ID: <b>{}</b> &nbsp; Entry time: <b class=\"date\" title=\"{}\">{}</b>",
        values::id(ask, entry),
        values::zone(ask, entry),
        values::when(ask, entry)
    );
    if let Some(parent) = entry.parent {
        put!(out, " &nbsp; In reply to: <b><a href=\"{}\">{}</a></b>", parent, parent);
    }
    let answers: Vec<u32> =
        thread.iter().filter(|answer| answer.parent == Some(entry.at.id)).map(|answer| answer.at.id).collect();
    for (nth, id) in answers.iter().enumerate() {
        put!(out, "{}<b><a href=\"{}\">{}</a></b>", Raw(if nth == 0 { " &nbsp; Reply to this: " } else { ", " }), id, id);
    }
    if entry.revision > 0 {
        let changed = ask.site.config.zone.write(entry.changed, entry.zone, ask.settings.time_format(None));
        put!(out, " &nbsp; <span class=\"note\">Changed {} times, last {}</span>", entry.revision, changed);
    }
    out.push_str("</div>\n");
}

/// Attributes in rows; `Format` can put one on the line of the one before.
fn attributes(ask: &BookAsk<'_>, entry: &Entry, out: &mut String) {
    let guest = ask.caller.login.is_empty();
    let mut names: Vec<&str> = ask.book.attributes.iter().map(|def| def.name.as_str()).collect();
    // What came with the entry from another book, or from another time, is shown too.
    for said in &entry.content.attributes {
        if ask.book.attribute(&said.name).is_none() && !said.values.is_empty() {
            names.push(&said.name);
        }
    }
    out.push_str("<table class=\"listframe attributes\">\n");
    let mut open = false;
    for name in names.into_iter().filter(|name| ask.settings.shows(name, guest)) {
        let format = ask.settings.format(name);
        if open && format.flags & 1 == 0 {
            out.push_str("</tr>\n");
            open = false;
        }
        if !open {
            out.push_str("<tr>");
            open = true;
        }
        let said = entry.content.attribute(name).map(|said| said.joined()).unwrap_or_default();
        let own = if said.is_empty() { "" } else { style(ask.settings.cell_style(name, &said)) };
        head_cell(out, name, ask.settings.tooltip(name, &[]));
        put!(out, "<td class=\"attribvalue{}{}\"", Raw(if format.class.is_empty() { "" } else { " " }), format.class);
        if !own.is_empty() {
            put!(out, " style=\"{}\"", own);
        }
        put!(out, ">{}</td>", values::value(ask, entry, name, None));
    }
    if open {
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
}

fn head_cell(out: &mut String, name: &str, tooltip: &str) {
    out.push_str("<th class=\"attribname\"");
    if !tooltip.is_empty() {
        put!(out, " title=\"{}\"", tooltip);
    }
    put!(out, ">{}:</th>", name);
}

/// All entries of the thread, this one marked.
fn whole_thread(ask: &BookAsk<'_>, entry: &Entry, thread: &[Entry], out: &mut String) {
    if thread.len() < 2 {
        return;
    }
    out.push_str("<ul class=\"thread\">\n");
    for (depth, other) in in_order(thread) {
        let subject = values::plain_value(ask, other, "Subject");
        let author = values::plain_value(ask, other, "Author");
        let rest = [values::when(ask, other), author, subject]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(", ");
        put!(out, "<li style=\"margin-left:{}px\">", depth.min(20) * 20);
        if other.at == entry.at {
            put!(out, "<b>{}</b> {}", other.at.id, rest);
        } else {
            put!(out, "<a href=\"{}\">{}</a> {}", other.at.id, other.at.id, rest);
        }
        out.push_str("</li>\n");
    }
    out.push_str("</ul>\n");
}

/// Leads to the entry before or after this one, or to the first or last, of the search in the address; by date.
pub fn step(ask: &BookAsk<'_>, id: u32, to: Command) -> Response {
    let search = match find::find(ask, Part::All) {
        Ok(find) => Search { sort: Sort::Date, count_to: 0, limit: NEAR, ..find.search },
        Err(BadFind::Store(error)) => return ask.failed(&error),
        Err(bad) => return layout::error(ask, StatusCode::NOT_FOUND, &bad.to_string()),
    };
    match neighbour(ask, id, to, search) {
        Ok(Some(at)) => {
            let book = super::address::escape(&at.book);
            layout::redirect(&format!("{}/{book}/{}{}", ask.base, at.id, search_of(ask).written()))
        }
        Ok(None) => {
            let which = if to == Command::Previous { "first" } else { "last" };
            layout::error(ask, StatusCode::OK, &format!("This is the {which} entry"))
        }
        Err(error) => ask.failed(&error),
    }
}

fn neighbour(ask: &BookAsk<'_>, id: u32, to: Command, mut search: Search) -> Result<Option<EntryRef>> {
    search.descending = matches!(to, Command::Previous | Command::Last);
    let here = EntryRef::new(&ask.book.name, id);
    if matches!(to, Command::Previous | Command::Next) {
        let date = ask.site.store.entry(&here)?.date;
        let second = Time(date.0.div_euclid(SECOND) * SECOND);
        let text = |at: Time| at.to_ns_text()[..19].to_owned();
        let bound = if search.descending {
            format!("until:{}", text(Time(second.0.saturating_add(SECOND))))
        } else {
            format!("since:{}", text(second))
        };
        search.query = format!("{} {bound}", search.query);
        let mut passed = false;
        loop {
            let page = ask.site.store.search(&search, &ask.stop)?;
            for hit in &page.hits {
                // An entry that the search does not mean has its place by its date.
                let beyond = hit.entry.date.0.div_euclid(SECOND) != second.0.div_euclid(SECOND);
                if passed || beyond {
                    return Ok(Some(hit.entry.at.clone()));
                }
                passed = hit.entry.at == here;
            }
            match page.next {
                Some(next) if page.stopped.is_none() => {
                    search.start = Start::After(next);
                    search.limit = MAX_PAGE;
                }
                _ => return Ok(None),
            }
        }
    }
    search.limit = 1;
    let page = ask.site.store.search(&search, &ask.stop)?;
    Ok(page.hits.first().map(|hit| hit.entry.at.clone()))
}

/// Whether the caller may change this entry: what the book allows, and whose it is.
pub fn may_change(ask: &BookAsk<'_>, entry: &Entry, command: Command) -> std::result::Result<(), Denied> {
    ask.may(command)?;
    access::may_change(ask.caller, &ask.book, &ask.settings, entry, ask.now)
}

/// What `$name` stands for on an entry's pages.
pub fn names(ask: &BookAsk<'_>, entry: &Entry) -> Names {
    let zone = &ask.site.config.zone;
    Names::new(ask.caller, &ask.book, &ask.settings, zone, ask.now).with_entry(entry, &ask.book, &ask.settings, zone)
}
