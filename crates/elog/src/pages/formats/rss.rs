//! `elog.rdf`: the newest entries as RSS 2.0.

use http::StatusCode;
use tampu_logbook::{
    entry::Entry,
    search::{Count, MAX_PAGE, Search},
};

use crate::{
    date,
    pages::{
        formats::xml::escaped,
        request::BookRequest,
        response::{self, Response},
        subst::Substitutions,
    },
};

/// Bytes of a text that are shown.
const SHOWN: usize = 2048;

/// Answers with the newest entries.
pub fn rss(request: &BookRequest<'_>) -> Response {
    let (title, count) = request.settings.rss();
    let search = Search {
        books: vec![request.book.name.clone()],
        limit: count.clamp(1, MAX_PAGE),
        count_to: 0,
        time: request.site.config.search_time,
        shown: request.shown().map(|shown| (request.book.name.clone(), shown)).into_iter().collect(),
        ..Search::default()
    };
    let page = match request.site.store().search(&search, &request.stop) {
        Ok(page) => page,
        Err(error) => return request.failed(&error),
    };
    debug_assert!(page.count.is_none_or(|count| count == Count::AtLeast(0)), "nobody asked for it");
    let (book, settings) = (&request.book, &request.settings);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rss version=\"2.0\">\n<channel>\n");
    let mut element = |name: &str, value: &str| out.push_str(&format!("<{name}>{}</{name}>\n", escaped(value)));
    element("title", &format!("ELOG {}", book.name));
    element("link", &request.address(""));
    element("description", &book.comment);
    element("generator", concat!("Tampu ", env!("CARGO_PKG_VERSION")));
    for hit in page.hits {
        let entry = hit.entry;
        let title = match title {
            Some(title) => {
                let names = Substitutions::new(request.caller, book, settings, &request.zone, request.now);
                names.with_entry(&entry, book, settings, &request.zone).expand(title)
            }
            None => attributes(&entry),
        };
        out.push_str("<item>\n");
        let mut element = |name: &str, value: &str| out.push_str(&format!("<{name}>{}</{name}>\n", escaped(value)));
        element("title", &title);
        element("link", &request.address(&entry.at.id.to_string()));
        element("guid", &request.address(&entry.at.id.to_string()));
        element("description", cut(&entry.content.text));
        element("pubDate", &date::write(entry.date, entry.zone));
        out.push_str("</item>\n");
    }
    out.push_str("</channel>\n</rss>\n");
    response::with_bytes(StatusCode::OK, "application/rss+xml; charset=utf-8", out.into_bytes())
}

/// Returns the attributes of an entry, as ELOG's titles join them.
fn attributes(entry: &Entry) -> String {
    let said = entry.content.attributes.iter().filter(|said| !said.values.is_empty());
    said.map(|said| said.joined()).collect::<Vec<_>>().join(", ")
}

fn cut(text: &str) -> &str {
    &text[..(0..=SHOWN.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0)]
}
