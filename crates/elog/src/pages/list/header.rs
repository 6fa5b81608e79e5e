//! The head of a list: its modes, its quick filters, the query and the number of results.

use tampu_logbook::{
    book::same_name,
    search::{Count, Stopped},
};

use crate::{
    option_values::{ALL, SPANS},
    pages::{
        choice,
        find::ListSearch,
        html::put,
        layout,
        list::links::{PLACE, here},
        paging::{Listing, MAX_ALL},
        request::BookRequest,
        settings::ListMode,
        values, visit,
    },
};

/// Writes the head above the entries.
pub fn above(request: &BookRequest<'_>, find: &ListSearch, listing: &Listing, out: &mut String) {
    if !request.query.is_on("printable") {
        out.push_str(&layout::menu(request, None));
        if request.settings.mode_commands() {
            modes(request, find, out);
        }
        quick_filters(request, find, out);
    }
    summary(request, find, listing, out);
}

fn modes(request: &BookRequest<'_>, find: &ListSearch, out: &mut String) {
    out.push_str("<div class=\"modes\">");
    for (nth, mode) in [ListMode::Full, ListMode::Summary, ListMode::Threaded].into_iter().enumerate() {
        let text = request.word(["Full", "Summary", "Threaded"][nth]);
        if nth > 0 {
            out.push_str(" | ");
        }
        if mode == find.mode {
            put!(out, "<b>{}</b>", text);
        } else {
            put!(out, "<a href=\"{}\">{}</a>", here(&request.query.without(&PLACE).with("mode", mode.name())), text);
        }
    }
    if find.mode == ListMode::Threaded {
        for (level, text) in [("0", "Collapse"), ("1", "Expand"), ("2", "Expand with text")] {
            put!(out, " | <a href=\"{}\">{}</a>", here(&request.query.without(&PLACE).with("expand", level)), request.word(text));
        }
    }
    out.push_str("</div>\n");
}

fn quick_filters(request: &BookRequest<'_>, find: &ListSearch, out: &mut String) {
    let filters = request.settings.quick_filters();
    if filters.is_empty() {
        filter_text(request, out);
        return;
    }
    out.push_str("<form class=\"quickfilter\" method=\"get\" action=\"./\">\n");
    let own = |name: &str| {
        filters.iter().any(|filter| same_name(filter, name)) || name == "last" && filters.iter().any(|f| same_name(f, "Date"))
    };
    for (name, value) in request.query.without(&PLACE).0.iter().filter(|(name, _)| !own(name)) {
        put!(out, "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n", name, value);
    }
    for filter in &filters {
        let is_text = same_name(filter, "Subtext") && request.book.attribute(filter).is_none();
        let label = match is_text {
            true => request.word("Text"),
            false if same_name(filter, "Date") => request.word("Date"),
            false => filter,
        };
        put!(out, "<label>{}: ", label);
        if same_name(filter, "Date") {
            let chosen = request.query.get("last").map(str::to_owned).or_else(|| find.only_last.map(|days| days.to_string()));
            let chosen = chosen.filter(|days| days != "0" && days != ALL);
            out.push_str("<select name=\"last\">");
            choice::option(out, ALL, "-- all --", chosen.is_none());
            let mut known = chosen.is_none();
            for (days, text) in SPANS {
                let days = days.to_string();
                known |= chosen.as_ref() == Some(&days);
                choice::option(out, &days, request.word(text), chosen.as_ref() == Some(&days));
            }
            if let Some(days) = chosen.filter(|_| !known) {
                choice::option(out, &days, &format!("{days} Days"), true);
            }
            out.push_str("</select>");
        } else if is_text {
            let value = request.query.get("subtext").unwrap_or_default();
            put!(out, "<input type=\"text\" name=\"subtext\" value=\"{}\" size=\"20\">", value);
        } else if let Some(def) = find.attributes.iter().find(|def| same_name(&def.name, filter)) {
            let value = request.query.get(&def.name).unwrap_or_default();
            choice::field(request, def, value, "", out);
        }
        out.push_str("</label>\n");
    }
    out.push_str("<input type=\"submit\" value=\"Filter\">\n</form>\n");
    filter_text(request, out);
}

/// Writes the page of `Filter Menu text`.
fn filter_text(request: &BookRequest<'_>, out: &mut String) {
    if let Some(text) = request.settings.filter_menu_text().and_then(|name| request.site.page_file(name)) {
        put!(out, "<div class=\"quickfilter menutext\">{}</div>\n", text);
    }
}

/// Writes the criteria of the search, the number of entries, and a note if some are missing.
fn summary(request: &BookRequest<'_>, find: &ListSearch, listing: &Listing, out: &mut String) {
    out.push_str("<div class=\"told\">");
    if find.all_books {
        out.push_str("<span class=\"filter\">All logbooks</span> ");
    }
    for (name, value) in &find.criteria {
        put!(out, "<span class=\"filter\"><b>{}:</b> {}</span> ", name, value);
    }
    match listing.count {
        Some(Count::Exactly(1)) => put!(out, "<b>1 {}</b>", request.word("Entry")),
        Some(Count::Exactly(count)) => put!(out, "<b>{} {}</b>", count, request.word("Entries")),
        Some(Count::AtLeast(count)) => put!(out, "<span class=\"count\">{} entries or more</span>", count),
        None => {}
    }
    if let Some(pages) = listing.pages.filter(|pages| *pages > 1 && listing.page > 0) {
        let pages = i64::try_from(pages).unwrap_or(i64::MAX);
        put!(out, " <span class=\"note\">{}</span>", request.words.counted("Page %d of %d", &[listing.page, pages]));
    }
    if !find.criteria.is_empty() {
        put!(out, " <a href=\"./\">{}</a>", request.word("Show all"));
    }
    if let Some(days) = find.only_last {
        let more = here(&request.query.without(&PLACE).with("last", ALL));
        put!(out, " <span class=\"note\">Of the last {} days. <a href=\"{}\">Show older</a></span>", days, more);
    }
    // If entries have several zones, each shows its own in a tooltip.
    let mut zones: Vec<String> = listing.hits.iter().map(|hit| values::zone(request, &hit.entry)).collect();
    zones.dedup();
    if let [zone] = &zones[..] {
        put!(out, " <span class=\"note zone\">Times: {}</span>", zone);
    }
    if let Some(why) = listing.stopped {
        cut_short(why, out);
    }
    visit::link(request, out);
    if listing.page == 0 && listing.after {
        more_than_all(out);
    }
    out.push_str("</div>\n");
}

/// Writes the reason for an incomplete search.
pub fn cut_short(why: Stopped, out: &mut String) {
    out.push_str(match why {
        Stopped::TimeLimit => {
            "<div class=\"warning\">The search reached its time limit: these are the entries found until then</div>"
        }
        Stopped::Abandoned => "<div class=\"warning\">The search was ended: these are the entries found until then</div>",
    });
}

pub fn more_than_all(out: &mut String) {
    put!(out, "<div class=\"warning\">Only the first {} are shown</div>", MAX_ALL);
}
