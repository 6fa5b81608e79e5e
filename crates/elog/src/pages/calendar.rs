//! A month, each day with its number of entries.

use http::StatusCode;
use tampu_logbook::search::Search;
use tampu_types::Time;

use crate::pages::{
    clock::days_of,
    html::{SafeHtml, put},
    layout::{self, BookPage},
    request::BookRequest,
    response::Response,
};

/// Answers with a month, each day with its number of entries.
pub fn answer(request: &BookRequest<'_>) -> Response {
    let zone = &request.zone;
    let today = zone.fields(request.now, 0);
    let year = request.query.number("y").filter(|year| (1970..=2200).contains(year)).unwrap_or(today[0]);
    let month = request.query.number("m").filter(|month| (1..=12).contains(month)).unwrap_or(today[1]);
    let mut body = layout::menu(request, None);
    let (before, after) =
        if month == 1 { ((year - 1, 12), (year, 2)) } else { ((year, month - 1), (year + month / 12, month % 12 + 1)) };
    put!(&mut body, "<table class=\"calendar\"><caption><a href=\"cal.html?y={}&amp;m={}\">&#171;</a> ", before.0, before.1);
    put!(
        &mut body,
        "{}-{} <a href=\"cal.html?y={}&amp;m={}\">&#187;</a></caption>\n",
        year,
        SafeHtml(format!("{month:02}")),
        after.0,
        after.1
    );
    body.push_str("<tr><th>Mo</th><th>Tu</th><th>We</th><th>Th</th><th>Fr</th><th>Sa</th><th>Su</th></tr>\n<tr>");
    let first = zone.moment([year, month, 1], [12, 0, 0]).unwrap_or(Time(0));
    // The first of January 1970 was a Thursday.
    let weekday = (first.0.div_euclid(86_400_000_000_000) + 3).rem_euclid(7);
    for _ in 0..weekday {
        body.push_str("<td></td>");
    }
    for day in 1..=days_of(year, month) {
        if day > 1 && (weekday + day - 1) % 7 == 0 {
            body.push_str("</tr>\n<tr>");
        }
        match entries_of(request, [year, month, day]) {
            Ok(0) => put!(&mut body, "<td>{}</td>", day),
            Ok(count) => {
                let range = format!("ya={year}&ma={month}&da={day}&yb={year}&mb={month}&db={day}");
                put!(&mut body, "<td class=\"has\"><a href=\"./?{}\" title=\"{} entries\">{}</a></td>", range, count, day);
            }
            Err(error) => return request.failed(&error),
        }
    }
    body.push_str("</tr></table>\n");
    BookPage::new(request, "Calendar", body).answer(StatusCode::OK)
}

fn entries_of(request: &BookRequest<'_>, day: [i64; 3]) -> tampu_logbook::store::Result<u64> {
    let zone = &request.zone;
    let (Some(from), Some(to)) = (zone.moment(day, [0; 3]), zone.moment(day, [23, 59, 59])) else { return Ok(0) };
    let text = |at: Time| at.to_ns_text()[..19].to_owned();
    let query = format!("since:{} until:{}", text(from), text(Time(to.0.saturating_add(1_000_000_000))));
    let search = Search { books: vec![request.book.name.clone()], query, limit: 1, ..Search::default() };
    Ok(match request.site.store.search(&search, &request.stop)?.count {
        Some(tampu_logbook::search::Count::Exactly(count) | tampu_logbook::search::Count::AtLeast(count)) => count,
        None => 0,
    })
}
