//! The page of all books.

use http::StatusCode;
use tampu_logbook::{
    book::same_name,
    people::ElogRules,
    search::Search,
    store::{BookInfo, StoreError},
};

use crate::pages::{
    address::escape,
    html::{SafeHtml, put},
    layout, login_form,
    request::PageRequest,
    response::Response,
    settings::BookSettings,
    subst::Substitutions,
    tabs,
};

/// Answers with the page of all books.
pub fn answer(request: &PageRequest<'_>) -> Response {
    let books = match request.site.books() {
        Ok(books) => books,
        Err(error) => return request.failed(&error),
    };
    let readable: Vec<&BookInfo> = books.iter().filter(|info| request.sees(info)).collect();
    // The options of `[global]`, and those of a group on its own page. Without them the first book with an option decides.
    let own = match own_settings(request, &readable) {
        Ok(own) => own,
        Err(error) => return request.failed(&error),
    };
    let settings: Vec<BookSettings> = readable.iter().map(|info| BookSettings::of(&info.book)).collect();
    let protected = settings.iter().any(BookSettings::protect_selection) && !request.site.is_open();
    if request.caller.login.is_empty() && (protected || readable.is_empty() && !books.is_empty()) {
        return login_form::answer(request, None);
    }
    if request.query.get("group").is_none()
        && let Some(page) = own.as_ref().and_then(|own| own.selection_page(request.caller.login.is_empty()))
        && let Some(text) = request.site.page_file(page)
    {
        let mut body = String::new();
        put!(&mut body, "<div class=\"selframe configured\">{}</div>\n", text);
        return layout::plain(request, StatusCode::OK, "ELOG Logbook Selection", &body);
    }
    let title = match &own {
        Some(own) => own.welcome_title(),
        None => settings.iter().find_map(BookSettings::welcome_title),
    };
    let mut body = String::new();
    body.push_str("<div class=\"selframe\">\n");
    match title {
        Some(title) => put!(&mut body, "<div class=\"seltitle\">{}</div>\n", SafeHtml(layout::clean(title))),
        None => body.push_str("<h1 class=\"seltitle\">Logbooks</h1>\n"),
    }
    let mut groups: Vec<Option<&str>> = Vec::new();
    for info in readable.iter() {
        let group = info.book.group.as_deref();
        if !groups
            .iter()
            .any(|known| matches!((known, group), (Some(a), Some(b)) if same_name(a, b)) || known.is_none() && group.is_none())
        {
            groups.push(group);
        }
    }
    // Groups stand in the order of their first books, and books without one at the end.
    groups.sort_by_key(Option::is_none);
    let headed = groups.len() > 1 && settings.iter().all(BookSettings::show_top_groups);
    let expanded = settings.iter().all(BookSettings::expand_selection);
    for group in groups {
        if headed {
            let name = group.unwrap_or("Other logbooks");
            let open = expanded || request.query.get("group").is_some_and(|group| same_name(group, name));
            if !open {
                put!(&mut body, "<h2 id=\"{}\"><a href=\"?group={}\">+ {}</a></h2>\n", escape(name), escape(name), name);
                continue;
            }
            put!(&mut body, "<h2 id=\"{}\">{}</h2>\n", escape(name), name);
        }
        put!(
            &mut body,
            "<table class=\"selection\"><tr><th>{}</th><th>Description</th><th>{}</th><th>{}</th></tr>\n",
            request.word("Logbook"),
            request.word("Entries"),
            request.word("Last submission")
        );
        for (info, settings) in readable.iter().zip(&settings) {
            let own = match (&info.book.group, group) {
                (Some(a), Some(b)) => same_name(a, b),
                (None, None) => true,
                _ => false,
            };
            if !own || tabs::is_hidden(info) {
                continue;
            }
            let newest = newest(request, info, settings);
            put!(
                &mut body,
                "<tr><td class=\"sellogbook\"><a href=\"{}{}/\">{}</a></td><td>{}</td><td class=\"number\">{}</td><td>{}</td></tr>\n",
                request.root,
                escape(&info.book.name),
                info.book.name,
                if settings.hide_comments() { "" } else { info.book.comment.as_str() },
                info.entries,
                newest
            );
        }
        body.push_str("</table>\n");
    }
    if readable.is_empty() {
        body.push_str("<p>There is no logbook you may read</p>\n");
    }
    if request.caller.login.is_empty() {
        put!(&mut body, "<p><a href=\"?cmd=Login\">{}</a></p>\n", request.said("Login", "Log in"));
    }
    body.push_str("</div>\n");
    layout::plain(request, StatusCode::OK, "ELOG Logbook Selection", &body)
}

/// Returns the settings of the page: those of the group that the address names, else those of `[global]`, if the site has
/// an imported configuration.
fn own_settings(request: &PageRequest<'_>, readable: &[&BookInfo]) -> Result<Option<BookSettings>, StoreError> {
    if let Some(group) = request.query.get("group") {
        let within = |info: &&&BookInfo| info.book.group.as_deref().is_some_and(|own| same_name(own, group));
        if let Some(info) = readable.iter().find(within) {
            return Ok(Some(BookSettings::of(&info.book)));
        }
    }
    let record = request.site.record()?;
    Ok((!record.books.is_empty()).then(|| BookSettings::of_options(&record.global)))
}

/// Returns the time of the newest entry of a book, or what `Last submission` says about it.
fn newest(request: &PageRequest<'_>, info: &BookInfo, settings: &BookSettings) -> String {
    let Some(at) = info.newest else { return String::new() };
    let zone = &request.zone;
    let time = || zone.write(at, 0, settings.time_format(None));
    let Some(format) = settings.last_submission() else { return time() };
    let search = Search { books: vec![info.book.name.clone()], limit: 1, count_to: 0, ..Search::default() };
    let found = request.site.store.search(&search, &request.stop).ok().and_then(|page| page.hits.into_iter().next());
    let Some(mut entry) = found.map(|hit| hit.entry) else { return time() };
    entry.keep_shown(
        ElogRules::of(&info.book).shown_to(&request.caller.login, request.caller.rights.of(&info.book.name)).as_deref(),
    );
    Substitutions::new(request.caller, &info.book, settings, zone, request.now)
        .with_entry(&entry, &info.book, settings, zone)
        .expand(format)
}
