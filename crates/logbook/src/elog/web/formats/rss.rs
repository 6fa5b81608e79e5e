//! `elog.rdf`: the newest entries as RSS 2.0.

use http::StatusCode;

use super::xml::escaped;
use crate::{
    elog::{
        date,
        web::{BookAsk, Response, response, subst::Names},
    },
    entry::Entry,
    search::{Count, MAX_PAGE, Search},
};

/// Bytes of a text that are shown.
const SHOWN: usize = 2048;

/// The newest entries.
pub fn rss(ask: &BookAsk<'_>) -> Response {
    let (title, count) = ask.settings.rss();
    let search = Search {
        books: vec![ask.book.name.clone()],
        limit: count.clamp(1, MAX_PAGE),
        count_to: 0,
        time: ask.site.config.search_time,
        ..Search::default()
    };
    let page = match ask.site.store().search(&search, &ask.stop) {
        Ok(page) => page,
        Err(error) => return ask.failed(&error),
    };
    debug_assert!(page.count.is_none_or(|count| count == Count::AtLeast(0)), "nobody asked for it");
    let (book, settings) = (&ask.book, &ask.settings);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rss version=\"2.0\">\n<channel>\n");
    let mut element = |name: &str, value: &str| out.push_str(&format!("<{name}>{}</{name}>\n", escaped(value)));
    element("title", &format!("ELOG {}", book.name));
    element("link", &ask.address(""));
    element("description", &book.comment);
    element("generator", concat!("Tampu ", env!("CARGO_PKG_VERSION")));
    for hit in page.hits {
        let entry = hit.entry;
        let title = match title {
            Some(title) => {
                let names = Names::new(ask.caller, book, settings, &ask.site.config.zone, ask.now);
                names.with_entry(&entry, book, settings, &ask.site.config.zone).expand(title)
            }
            None => attributes(&entry),
        };
        out.push_str("<item>\n");
        let mut element = |name: &str, value: &str| out.push_str(&format!("<{name}>{}</{name}>\n", escaped(value)));
        element("title", &title);
        element("link", &ask.address(&entry.at.id.to_string()));
        element("guid", &ask.address(&entry.at.id.to_string()));
        element("description", cut(&entry.content.text));
        element("pubDate", &date::write(entry.date, entry.zone));
        out.push_str("</item>\n");
    }
    out.push_str("</channel>\n</rss>\n");
    response(StatusCode::OK, "application/rss+xml; charset=utf-8", out.into_bytes())
}

/// What an entry says about itself, as ELOG's titles have it.
fn attributes(entry: &Entry) -> String {
    let said = entry.content.attributes.iter().filter(|said| !said.values.is_empty());
    said.map(|said| said.joined()).collect::<Vec<_>>().join(", ")
}

fn cut(text: &str) -> &str {
    &text[..(0..=SHOWN.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0)]
}
