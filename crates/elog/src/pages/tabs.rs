//! The rows of tabs above a page: groups, and the books of one group.

use tampu_logbook::{book::same_name, store::BookInfo};

use crate::{
    pages::{address::escape, html::put, request::BookRequest},
    site_record::SiteRecord,
};

/// Rows of tabs at most.
const MAX_ROWS: usize = 8;

/// Writes the books of the same top group as tabs, after that of all books; returns true if there are tabs.
pub fn write(request: &BookRequest<'_>, out: &mut String) -> bool {
    let Ok(books) = request.site.books() else { return false };
    let settings = &request.settings;
    let readable = |info: &&BookInfo| request.sees(info);
    let mut groups: Vec<&str> = Vec::new();
    for group in books.iter().filter(readable).filter_map(|info| info.book.group.as_deref()) {
        if !groups.iter().any(|known| same_name(known, group)) {
            groups.push(group);
        }
    }
    let many = books.iter().filter(readable).count() > 1;
    let main = settings.main_tab();
    if !settings.logbook_tabs() || !many && main.is_none() {
        return false;
    }
    out.push_str("<nav class=\"tabs\">\n");
    if let Some((text, url)) = main {
        let own = url.filter(|url| is_web(url)).map_or_else(|| request.root.to_owned(), str::to_owned);
        put!(out, "<span class=\"ltab\"><a href=\"{}\">{}</a></span>\n", own, text);
    }
    if groups.len() > 1 {
        for group in groups {
            let class = if request.book.group.as_deref().is_some_and(|own| same_name(own, group)) { "sltab" } else { "ltab" };
            put!(out, "<span class=\"{} gtab\"><a href=\"{}#{}\">{}</a></span>\n", class, request.root, escape(group), group);
        }
        out.push_str("<br>\n");
    }
    if let Ok(record) = request.site.record()
        && record.groups.iter().any(|(name, _)| record.contains(name, &request.book.name))
    {
        grouped(request, &record, &books, out);
        out.push_str("</nav>\n");
        return true;
    }
    for info in books.iter().filter(readable) {
        let name = &info.book.name;
        let own = same_name(name, &request.book.name);
        let elsewhere = match (&info.book.group, &request.book.group) {
            (Some(a), Some(b)) => !same_name(a, b),
            (None, None) => false,
            _ => true,
        };
        if !own && (elsewhere || is_hidden(info)) {
            continue;
        }
        let class = if own { "sltab" } else { "ltab" };
        put!(out, "<span class=\"{}\"><a href=\"{}{}/\">{}</a></span>\n", class, request.root, escape(name), name);
    }
    out.push_str("</nav>\n");
    true
}

/// Returns true if the configuration hides the book among the others.
pub fn is_hidden(info: &BookInfo) -> bool {
    info.book.elog.iter().any(|(name, value)| name.eq_ignore_ascii_case("hidden") && value.trim() == "1")
}

/// Returns true if an address is one of the web, or leads within the site.
pub fn is_web(url: &str) -> bool {
    let lower = url.trim().to_ascii_lowercase();
    lower.starts_with("http://") || lower.starts_with("https://") || !lower.contains(':') && !lower.starts_with("//")
}

/// Writes the rows of `Group`: the outer groups and the books without one, then the members of the group that has the
/// book, and so on. A group leads to its first readable book.
fn grouped(request: &BookRequest<'_>, record: &SiteRecord, books: &[BookInfo], out: &mut String) {
    let own = &request.book.name;
    let of_top_group = |info: &BookInfo| match (&info.book.group, &request.book.group) {
        (Some(a), Some(b)) => same_name(a, b),
        (None, None) => true,
        _ => false,
    };
    let there: Vec<&BookInfo> = books
        .iter()
        .filter(|info| request.sees(info) && of_top_group(info))
        .filter(|info| same_name(&info.book.name, own) || !is_hidden(info))
        .collect();
    let first_of = |group: &str| there.iter().find(|info| record.contains(group, &info.book.name));
    let book = |name: &str| there.iter().find(|info| same_name(&info.book.name, name));
    let alone = there.iter().map(|info| info.book.name.as_str());
    let alone = alone.filter(|name| !record.groups.iter().any(|(group, _)| record.contains(group, name)));
    let mut row: Vec<String> = record.outer_groups().into_iter().chain(alone).map(str::to_owned).collect();
    for _ in 0..MAX_ROWS {
        let mut next = Vec::new();
        for name in &row {
            let (class, to) = match book(name) {
                Some(info) => (if same_name(name, own) { "sltab" } else { "ltab" }, info),
                None => match first_of(name) {
                    Some(info) if record.contains(name, own) => {
                        next = record.members(name).to_vec();
                        ("sltab gtab", info)
                    }
                    Some(info) => ("ltab gtab", info),
                    None => continue,
                },
            };
            put!(out, "<span class=\"{}\"><a href=\"{}{}/\">{}</a></span>\n", class, request.root, escape(&to.book.name), name);
        }
        if next.is_empty() {
            return;
        }
        out.push_str("<br>\n");
        row = next;
    }
}
