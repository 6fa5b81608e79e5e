//! Lists of entries: one line each, with texts, or by thread.

use http::StatusCode;
use tampu_logbook::search::{Count, Sort};

use crate::pages::{
    address::{ListPart, Parameters, escape},
    find::{self, BadListSearch},
    form::drafts,
    html::put,
    layout::{self, BookPage},
    list::{header::above, links::PLACE, rows::ListRows, select::Selection},
    paging::{self, Listing},
    request::BookRequest,
    response::{self, Response},
    settings::ListMode,
};

mod header;
pub mod links;
mod rows;
pub mod select;
mod whole;

pub use rows::{MAX_THREAD, in_order};

/// The parameter with the number of the entry that was submitted just before.
pub const SUBMITTED: &str = "submitted";

/// Answers with a list.
pub fn answer(request: &BookRequest<'_>, part: ListPart) -> Response {
    if part == ListPart::Default
        && request.query.0.is_empty()
        && let Some(start) = start_page(request)
    {
        return response::redirect(&request.address(&start));
    }
    if part == ListPart::Default
        && let Some(page) = own_page(request)
    {
        return page;
    }
    let mut find = match find::find(request, part) {
        Ok(find) => find,
        Err(BadListSearch::Store(error)) => return request.failed(&error),
        Err(bad) => return layout::error(request, StatusCode::NOT_FOUND, &bad.to_string()),
    };
    if find.mode == ListMode::Threaded && find.search.sort != Sort::Date {
        // As in elogd, an order of its own shows the entries one by one.
        find.is_flat = true;
    }
    if find.mode == ListMode::Threaded && !find.is_flat && find.only_last.is_none() {
        // A new reply brings its thread to the front.
        find.search.sort = Sort::Thread;
    }
    let prints = request.query.is_on("printable") && !matches!(part, ListPart::Last(_));
    if prints || matches!(part, ListPart::All | ListPart::Past(_)) {
        return whole::answer(request, find);
    }
    let listing = match paging::page(request, &find, part) {
        Ok(listing) => listing,
        Err(error) => return request.failed(&error),
    };
    let mut rows = ListRows::new(request, &find, Selection::of(request));
    let mut body = String::with_capacity(listing.hits.len() * 1024 + 4096);
    if part == ListPart::Default && !prints {
        drafts::list(request, &mut body);
    }
    above(request, &find, &listing, &mut body);
    pages(request, &listing, &mut body);
    rows.begin(request, &find, &mut body);
    if let Err(error) = rows.write(request, &find, &listing.hits, &mut body) {
        return request.failed(&error);
    }
    rows.end(&mut body);
    pages(request, &listing, &mut body);
    BookPage::list(request, body).answer(StatusCode::OK)
}

/// Returns the page of the configuration in place of the list: `Welcome page` at the bare address, and `Submit page` after
/// a new entry.
fn own_page(request: &BookRequest<'_>) -> Option<Response> {
    let name = match request.query.0.as_slice() {
        [] => request.settings.welcome_page()?,
        [(name, _)] if name == SUBMITTED => request.settings.submit_page()?,
        _ => return None,
    };
    let text = request.site.page_file(name)?;
    let mut body = layout::menu(request, None);
    put!(&mut body, "<div class=\"configured\">{}</div>\n", text);
    Some(BookPage { refresh: false, ..BookPage::list(request, body) }.answer(StatusCode::OK))
}

/// Returns the start page of the book, if it is configured.
fn start_page(request: &BookRequest<'_>) -> Option<String> {
    let start = request.settings.start_page()?;
    // Only an address within this book: not another site, and not this list itself.
    let plain = !start.contains(['/', '\\', '\n', '\r']) && !start.starts_with('.');
    let (path, query) = start.split_once('?').unwrap_or((start, ""));
    let query = Parameters::read(query).written();
    (plain && !(path.is_empty() && query.is_empty())).then(|| format!("{}{query}", escape(path)))
}

/// Writes the row of pages: the first, some around this one, the last, all.
fn pages(request: &BookRequest<'_>, listing: &Listing, out: &mut String) {
    if listing.page == 0 || !listing.before && !listing.after {
        return;
    }
    let query = request.query.without(&PLACE).written();
    let page = listing.page;
    put!(out, "<nav class=\"pagelinks\">{} ", request.word("Goto page"));
    let mut link = |number: i64, text: &str| put!(out, "<a href=\"page{}{}\">{}</a> ", number, query, text);
    if listing.before {
        link(page - 1, request.word("Previous"));
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
                && total <= request.settings.all_limit()
            {
                put!(out, "<a href=\"page{}\">{}</a> ", query, request.word("All"));
            }
        }
        None if page < 0 => {
            link(1, request.word("First"));
            put!(out, "<b>{} from the end</b> ", -page);
        }
        None => {
            put!(out, "<b>{}</b> ", page);
        }
    }
    if listing.after {
        let next = page + 1;
        put!(out, "<a href=\"page{}{}\">{}</a> ", next, query, request.word("Next"));
        if listing.pages.is_none() && next < -1 || listing.pages.is_none() && page > 0 {
            put!(out, "<a href=\"page-1{}\">{}</a>", query, request.word("Last"));
        }
    }
    out.push_str("</nav>\n");
}
