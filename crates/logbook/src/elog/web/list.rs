//! Lists of entries: a line each, with their texts, or by threads.

use http::StatusCode;

use super::{
    BookAsk, Response,
    address::{Parameters, Part, escape},
    ere,
    find::{self, BadFind, Find},
    html::put,
    layout::{self, Page},
    paging::{self, Listing, MAX_ALL},
    settings::{Mode, SPANS},
    values,
};
use crate::{
    book::{AttributeKind, same_name},
    search::{Count, Stopped},
};
use rows::Rows;
use select::Selecting;

mod rows;
pub mod select;
mod whole;

pub use rows::in_order;

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
    if matches!(part, Part::All | Part::Past(_)) {
        return whole::answer(ask, find);
    }
    let listing = match paging::page(ask, &find, part) {
        Ok(listing) => listing,
        Err(error) => return ask.failed(&error),
    };
    let mut rows = Rows::new(ask, &find, Selecting::of(ask));
    let mut body = String::with_capacity(listing.hits.len() * 1024 + 4096);
    above(ask, &find, &listing, &mut body);
    pages(ask, &listing, &mut body);
    rows.begin(ask, &find, &mut body);
    if let Err(error) = rows.write(ask, &find, &listing.hits, &mut body) {
        return ask.failed(&error);
    }
    rows.end(&mut body);
    pages(ask, &listing, &mut body);
    Page::list(ask, body).answer(StatusCode::OK)
}

/// What stands above the entries.
fn above(ask: &BookAsk<'_>, find: &Find, listing: &Listing, out: &mut String) {
    if !ask.query.is_on("printable") {
        out.push_str(&layout::menu(ask, None));
        modes(ask, find, out);
        quick_filters(ask, find, out);
    }
    told(ask, find, listing, out);
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
const PLACE: [&str; 3] = ["id", "cmd", "select"];

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
            let users = if ask.caller.login.is_empty() { vec![] } else { ask.site.users() };
            users.into_iter().map(|(login, full_name)| (ere::exactly(&login), full_name)).collect()
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
    if let Some(why) = listing.stopped {
        cut_short(why, out);
    }
    if ask.query.is_on("new_entries") {
        out.push_str("<div class=\"note\">When you were here last is not known here: everything is shown</div>");
    }
    if listing.page == 0 && listing.after {
        more_than_all(out);
    }
    out.push_str("</div>\n");
}

/// Why not all of a search is there.
fn cut_short(why: Stopped, out: &mut String) {
    out.push_str(match why {
        Stopped::TimeLimit => {
            "<div class=\"warning\">The search reached its time limit: this is what it had found until then</div>"
        }
        Stopped::Abandoned => "<div class=\"warning\">The search was ended: this is what it had found</div>",
    });
}

fn more_than_all(out: &mut String) {
    put!(out, "<div class=\"warning\">Only the first {} are shown</div>", MAX_ALL);
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
