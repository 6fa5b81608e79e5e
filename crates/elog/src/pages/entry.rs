//! The page of an entry, and the steps from one entry of a search to the next.

use http::StatusCode;
use tampu_logbook::{
    entry::{Entry, EntryRef},
    search::{MAX_PAGE, Search, Sort, Start},
    store::{PagePart, Result, ThreadPage},
};
use tampu_types::Time;

use crate::pages::{
    access::{self, AccessDenied},
    address::{ListPart, Parameters},
    checklist,
    command::PageCommand,
    csrf, ere,
    find::{self, BadListSearch},
    html::{SafeHtml, put, style},
    layout::{self, BookPage},
    list::{MAX_THREAD, in_order},
    mails, pdf,
    request::BookRequest,
    response::{self, EntryShown, Response},
    signing,
    subst::Substitutions,
    values,
};

const SECOND: i64 = 1_000_000_000;
/// Number of entries of one second that are searched for the shown one.
const NEAR: usize = 50;

/// Answers with an entry's page.
pub fn answer(request: &BookRequest<'_>, id: u32) -> Response {
    let at = EntryRef::new(&request.book.name, id);
    let entry = match request.read_entry(id) {
        Ok(entry) => entry,
        Err(error) => return request.failed(&error),
    };
    let part = PagePart { after: None, limit: MAX_THREAD };
    let thread = match request.site.store.thread_page(&at, part, false) {
        Ok(mut thread) => {
            let shown = request.shown();
            thread.entries.iter_mut().for_each(|entry| entry.keep_shown(shown.as_deref()));
            thread
        }
        Err(error) => return request.failed(&error),
    };
    let answers = match request.site.store.answers(&at.book, &[id]) {
        Ok(answers) => answers,
        Err(error) => return request.failed(&error),
    };
    let lock = request.site.store.locked(&at).ok().flatten();
    let mut body = String::with_capacity(entry.content.text.len() + 8192);
    mails::report(request, &mut body);
    if !request.query.is_on("printable") {
        body.push_str(&layout::menu(request, Some(id)));
        if request.settings.browsing() {
            steps(request, id, &mut body);
        }
    }
    if let Some(lock) = lock {
        let (text, on) = (request.word("Entry is currently edited by"), request.word("on"));
        put!(&mut body, "<div class=\"warning\">{} {} {} {}</div>\n", text, lock.by, on, lock.host);
    }
    head(request, &entry, &answers, &mut body);
    attributes(request, &entry, &mut body);
    if request.settings.show_text() || !entry.content.text.is_empty() {
        let text = values::text(request, &entry);
        let changes = !request.query.is_on("printable") && may_change(request, &entry, PageCommand::Edit).is_ok();
        match changes.then(|| checklist::form(request, &entry, &text.0)).flatten() {
            Some(form) => body.push_str(&form),
            None => put!(&mut body, "<div class=\"messageframe\">{}</div>\n", text),
        }
    }
    if request.settings.show_attachments() {
        body.push_str(&values::attachments_with_texts(request, &entry));
    }
    if !entry.content.links.is_empty() {
        body.push_str("<p class=\"links\">Links: ");
        for link in &entry.content.links {
            put!(&mut body, "<span class=\"typed\">{}</span> ", link.to_string());
        }
        body.push_str("</p>\n");
    }
    signing::write(request, &entry, &mut body);
    whole_thread(request, &entry, &thread, &mut body);
    if thread.next.is_none() && thread.entries.len() > 1 && may_change(request, &entry, PageCommand::Edit).is_ok() {
        change_thread(request, &thread, &mut body);
    }
    let subject = values::plain_value(request, &entry, "Subject");
    let title = if subject.is_empty() { format!("entry {id}") } else { subject };
    let mut page = BookPage { entry: Some(&entry), ..BookPage::new(request, &title, body) }.answer(StatusCode::OK);
    page.extensions_mut().insert(EntryShown(entry.at.clone()));
    page
}

/// Checks that an entry may have one more reply: without `Allow branching`, it may have one. `first` is true if it has none.
pub fn may_reply(request: &BookRequest<'_>, id: u32, first: bool) -> std::result::Result<(), AccessDenied> {
    if first || request.settings.branching() {
        return Ok(());
    }
    Err(AccessDenied::Forbidden(format!("entry {id} has a reply, and the logbook has no branches: answer the last reply")))
}

/// Returns the parameters of the search by which the entry was found.
fn search_of(request: &BookRequest<'_>) -> Parameters {
    let mut search = request.query.without(&["cmd", "id", "printable"]);
    search.0.retain(|(name, _)| !mails::is_of_report(name));
    search
}

fn steps(request: &BookRequest<'_>, id: u32, out: &mut String) {
    out.push_str("<nav class=\"steps\">");
    for (command, (before, after)) in [
        (PageCommand::First, ("&#171; ", "")),
        (PageCommand::Previous, ("&#8249; ", "")),
        (PageCommand::Next, ("", " &#8250;")),
        (PageCommand::Last, ("", " &#187;")),
    ] {
        let mut query = search_of(request);
        query.0.insert(0, ("cmd".to_owned(), command.name().to_owned()));
        let text = request.word(command.name());
        put!(out, "<a href=\"{}{}\">{}{}{}</a> ", id, query.written(), SafeHtml(before), text, SafeHtml(after));
    }
    let search = search_of(request);
    let back = if search.0.is_empty() { format!("./?id={id}") } else { format!("./{}&id={id}", search.written()) };
    put!(out, "<a href=\"{}\">In the list</a></nav>\n", back);
}

fn head(request: &BookRequest<'_>, entry: &Entry, answers: &[(u32, u32)], out: &mut String) {
    put!(
        out,
        "<div class=\"entryhead\">{}: <b>{}</b> &nbsp; {}: <b class=\"date\" title=\"{}\">{}</b>",
        request.word("Message ID"),
        values::id(request, entry),
        request.word("Entry time"),
        values::zone(request, entry),
        values::when(request, entry)
    );
    if let Some(parent) = entry.parent {
        put!(out, " &nbsp; {}: <b><a href=\"{}\">{}</a></b>", request.word("In reply to"), parent, parent);
    }
    for (nth, (_, id)) in answers.iter().take(MAX_THREAD).enumerate() {
        match nth {
            0 => put!(out, " &nbsp; {}: ", request.word("Reply to this")),
            _ => out.push_str(", "),
        }
        put!(out, "<b><a href=\"{}\">{}</a></b>", id, id);
    }
    if let Some(more) = answers.len().checked_sub(MAX_THREAD).filter(|more| *more > 0) {
        put!(out, " and {} more", more);
    }
    if entry.revision > 0 {
        let changed = request.zone.write(entry.changed, entry.zone, request.settings.time_format(None));
        put!(out, " &nbsp; <span class=\"note\">Changed {} times, last {}</span>", entry.revision, changed);
    }
    // A database that does not know the number does not keep the entry from its reader.
    if let Some(looks) = request.site.store.look_count(&entry.at).ok().filter(|looks| *looks > 0) {
        let times = if looks == 1 { "once" } else { "times" };
        let number = if looks == 1 { String::new() } else { format!("{looks} ") };
        put!(out, " &nbsp; <span class=\"note\" title=\"Each reader counts once a day\">Looked at {}{}</span>", number, times);
    }
    if request.site.pdf.is_some() && !request.query.is_on("printable") {
        put!(out, " &nbsp; <a class=\"pdf\" href=\"{}?{}\">PDF</a>", entry.at.id, pdf::QUERY);
    }
    out.push_str("</div>\n");
}

/// Writes attributes in rows; `ListFormat` can put one on the line of the previous one.
fn attributes(request: &BookRequest<'_>, entry: &Entry, out: &mut String) {
    let guest = request.caller.login.is_empty();
    let mut names: Vec<&str> = request.book.attributes.iter().map(|def| def.name.as_str()).collect();
    // Attributes that came from another book, or from an older configuration, are shown too.
    for said in &entry.content.attributes {
        if request.book.attribute(&said.name).is_none() && !said.values.is_empty() {
            names.push(&said.name);
        }
    }
    out.push_str("<table class=\"listframe attributes\">\n");
    let mut open = false;
    for name in names.into_iter().filter(|name| request.settings.shows(name, guest)) {
        let format = request.settings.format(name);
        if open && format.flags & 1 == 0 {
            out.push_str("</tr>\n");
            open = false;
        }
        if !open {
            out.push_str("<tr>");
            open = true;
        }
        let said = entry.content.attribute(name).map(|said| said.joined()).unwrap_or_default();
        let own = style(request.settings.cell_style(name, if said.is_empty() { "\"\"" } else { &said }));
        head_cell(out, name, request.settings.tooltip(name, &[]));
        let tick = request.settings.browsing() && request.settings.filtered_browsing() && !said.is_empty();
        put!(out, "<td class=\"attribvalue{}{}\"", SafeHtml(if format.class.is_empty() { "" } else { " " }), format.class);
        if !own.is_empty() {
            put!(out, " style=\"{}\"", own);
        }
        put!(out, ">{}", SafeHtml(if tick { same_value(request, entry, name, &said) } else { String::new() }));
        put!(out, "{}</td>", values::value(request, entry, name, None));
    }
    if open {
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
}

/// Returns the box that limits the steps to entries with the same value: a link to this page with the limit, or without.
fn same_value(request: &BookRequest<'_>, entry: &Entry, name: &str, said: &str) -> String {
    let exactly = ere::exactly(said);
    let search = search_of(request);
    let on = search.get(name) == Some(exactly.as_str());
    let (query, mark) =
        if on { (search.without(&[name]), "&#9745;") } else { (search.without(&[name]).with(name, &exactly), "&#9744;") };
    let mut out = String::new();
    put!(
        &mut out,
        "<a class=\"samevalue\" href=\"{}{}\" title=\"Steps to entries with this value alone\">{}</a> ",
        entry.at.id,
        query.written(),
        SafeHtml(mark)
    );
    out
}

fn head_cell(out: &mut String, name: &str, tooltip: &str) {
    out.push_str("<th class=\"attribname\"");
    if !tooltip.is_empty() {
        put!(out, " title=\"{}\"", tooltip);
    }
    put!(out, ">{}:</th>", name);
}

/// Writes the entries of the thread, with this one marked.
fn whole_thread(request: &BookRequest<'_>, entry: &Entry, thread: &ThreadPage, out: &mut String) {
    if thread.entries.len() < 2 {
        return;
    }
    out.push_str("<ul class=\"thread\">\n");
    for (depth, other) in in_order(&thread.entries) {
        let subject = values::plain_value(request, other, "Subject");
        let author = values::plain_value(request, other, "Author");
        let rest = [values::when(request, other), author, subject]
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
    if thread.next.is_some() {
        put!(out, "<li>The thread has more entries: the first {} are shown</li>\n", thread.entries.len());
    }
    out.push_str("</ul>\n");
}

/// Writes a button that leads to the form for the attributes of all entries of the thread.
fn change_thread(request: &BookRequest<'_>, thread: &ThreadPage, out: &mut String) {
    let token = csrf::token(request.site, request.caller, request.session.as_deref());
    put!(
        out,
        "<form method=\"post\" action=\"./\" class=\"wholethread\"><input type=\"hidden\" name=\"{}\" value=\"{}\">\
         <input type=\"hidden\" name=\"nsel\" value=\"{}\">",
        csrf::FIELD,
        token,
        thread.entries.len()
    );
    for (nth, entry) in thread.entries.iter().enumerate() {
        put!(out, "<input type=\"hidden\" name=\"s{}\" value=\"{}\">", nth, entry.at.id);
    }
    out.push_str("<button type=\"submit\" name=\"cmd\" value=\"Edit\">Change the whole thread</button></form>\n");
}

/// Redirects to the previous, next, first or last entry of the search in the address, by date.
pub fn step(request: &BookRequest<'_>, id: u32, to: PageCommand) -> Response {
    let search = match find::find(request, ListPart::All) {
        Ok(find) => Search { sort: Sort::Date, count_to: 0, limit: NEAR, ..find.search },
        Err(BadListSearch::Store(error)) => return request.failed(&error),
        Err(bad) => return layout::error(request, StatusCode::NOT_FOUND, &bad.to_string()),
    };
    match neighbour(request, id, to, search) {
        Ok(Some(at)) => {
            let book = crate::pages::address::escape(&at.book);
            response::redirect(&format!("{}/{book}/{}{}", request.base, at.id, search_of(request).written()))
        }
        Ok(None) => {
            let text = if to == PageCommand::Previous { "This is the first entry" } else { "This is the last entry" };
            layout::error(request, StatusCode::OK, request.word(text))
        }
        Err(error) => request.failed(&error),
    }
}

fn neighbour(request: &BookRequest<'_>, id: u32, to: PageCommand, mut search: Search) -> Result<Option<EntryRef>> {
    search.descending = matches!(to, PageCommand::Previous | PageCommand::Last);
    let here = EntryRef::new(&request.book.name, id);
    if matches!(to, PageCommand::Previous | PageCommand::Next) {
        let date = request.site.store.entry(&here)?.date;
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
            let page = request.site.store.search(&search, &request.stop)?;
            for hit in &page.hits {
                // An entry that does not match the search has its position by its date.
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
    let page = request.site.store.search(&search, &request.stop)?;
    Ok(page.hits.first().map(|hit| hit.entry.at.clone()))
}

/// Checks that the caller may change this entry: the permissions of the book, and the owner of the entry.
pub fn may_change(request: &BookRequest<'_>, entry: &Entry, command: PageCommand) -> std::result::Result<(), AccessDenied> {
    request.may(command)?;
    access::may_change(request.caller, &request.book, &request.settings, entry, request.now)
}

/// Returns the substitutions of an entry's pages.
pub fn names(request: &BookRequest<'_>, entry: &Entry) -> Substitutions {
    let zone = &request.zone;
    Substitutions::new(request.caller, &request.book, &request.settings, zone, request.now).with_entry(
        entry,
        &request.book,
        &request.settings,
        zone,
    )
}
