//! Pages beside the entries: all books, the form to log in, what is configured, help, a month.

use http::StatusCode;

use super::{
    Ask, BookAsk, Response,
    address::escape,
    clock::days_of,
    html::{Raw, put},
    layout::{self, Page},
    settings::Settings,
};
use crate::{
    book::{Book, same_name},
    search::Search,
    store::BookInfo,
};
use tampu_types::Time;

/// The page of all books.
pub fn books(ask: &Ask<'_>) -> Response {
    let books = match ask.site.books() {
        Ok(books) => books,
        Err(error) => return ask.failed(&error),
    };
    let readable: Vec<&BookInfo> = books.iter().filter(|info| ask.sees(info)).collect();
    if readable.is_empty() && ask.caller.login.is_empty() && !books.is_empty() {
        return login(ask, None);
    }
    // What `[global]` says every book says; the first one that says something about this page is asked.
    let settings: Vec<Settings> = readable.iter().map(|info| Settings::of(&info.book)).collect();
    let title = settings.iter().find_map(Settings::welcome_title);
    let mut body = String::new();
    body.push_str("<div class=\"selframe\">\n");
    match title {
        Some(title) => put!(&mut body, "<div class=\"seltitle\">{}</div>\n", Raw(clean(title))),
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
    groups.sort_by_key(|group| group.map(str::to_lowercase));
    let headed = groups.len() > 1 && settings.iter().all(Settings::show_top_groups);
    for group in groups {
        if headed {
            let name = group.unwrap_or("Other logbooks");
            put!(&mut body, "<h2 id=\"{}\">{}</h2>\n", escape(name), name);
        }
        body.push_str(
            "<table class=\"selection\"><tr><th>Logbook</th><th>Description</th><th>Entries</th><th>Last submission</th></tr>\n",
        );
        for (info, settings) in readable.iter().zip(&settings) {
            let own = match (&info.book.group, group) {
                (Some(a), Some(b)) => same_name(a, b),
                (None, None) => true,
                _ => false,
            };
            if !own || layout::is_hidden(info) {
                continue;
            }
            let newest = info.newest.map(|at| ask.site.config.zone.write(at, 0, settings.time_format(None))).unwrap_or_default();
            put!(
                &mut body,
                "<tr><td class=\"sellogbook\"><a href=\"{}{}/\">{}</a></td><td>{}</td><td class=\"number\">{}</td><td>{}</td></tr>\n",
                ask.root,
                escape(&info.book.name),
                info.book.name,
                info.book.comment,
                info.entries,
                newest
            );
        }
        body.push_str("</table>\n");
    }
    if readable.is_empty() {
        body.push_str("<p>There is no logbook you may read</p>\n");
    }
    if ask.caller.login.is_empty() {
        body.push_str("<p><a href=\"?cmd=Login\">Log in</a></p>\n");
    }
    body.push_str("</div>\n");
    layout::plain(ask, StatusCode::OK, "ELOG Logbook Selection", &body)
}

fn clean(text: &str) -> String {
    crate::render::html(crate::entry::Encoding::Html, text, &|_| String::new())
}

/// The form to log in, for a page of the book or of the site. Programs tell from it that they are not logged in.
pub fn login(ask: &Ask<'_>, book: Option<&Book>) -> Response {
    let query = ask.query.without(&["cmd", "redir", "fail"]);
    let redir = match (&ask.place, ask.query.get("redir")) {
        (_, Some(redir)) => redir.to_owned(),
        (super::address::Place::Entry(id), None) => format!("{id}{}", query.written()),
        (_, None) => query.written(),
    };
    let mut body = String::new();
    if ask.query.is_on("fail") {
        body.push_str("<table><tr><td class=\"errormsg\">Invalid user name or password!</td></tr></table>\n");
    }
    // ELOG's programs look for `form name=form1`, and for `type=password` without quotation marks.
    body.push_str("<form name=form1 class=\"login\" method=\"post\" action=\"./\" enctype=\"multipart/form-data\">\n");
    put!(&mut body, "<input type=\"hidden\" name=\"redir\" value=\"{}\">\n", redir);
    put!(
        &mut body,
        "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n",
        super::csrf::FIELD,
        super::csrf::token(ask.site, ask.caller)
    );
    put!(&mut body, "<h1>{}</h1>\n", book.map_or("Please login", |book| book.name.as_str()));
    body.push_str(
        "<p><label>User name: <input type=\"text\" name=\"uname\" autocomplete=\"username\" required autofocus></label></p>\n\
         <p><label>Password: <input type=password name=\"upassword\" autocomplete=\"current-password\" required></label></p>\n\
         <p><label><input type=\"checkbox\" name=\"remember\" value=\"1\"> Keep me logged in on this computer</label></p>\n\
         <p><input type=\"submit\" value=\"Submit\"></p>\n",
    );
    let settings = book.map(Settings::of).unwrap_or_default();
    if settings.self_register() {
        body.push_str("<p class=\"note\">New here? Accounts are made by the logbook's administrator.</p>\n");
    }
    body.push_str("</form>\n");
    layout::plain(ask, StatusCode::OK, "ELOG Login", &body)
}

/// Ends the session, or asks first: a picture or a page of another site that leads here ends nobody's.
pub fn logout(ask: &Ask<'_>) -> Response {
    if ask.coming.by_themselves || ask.session.is_none() {
        return super::post::logout(ask);
    }
    let mut body = String::from("<form method=\"post\" action=\"./\" class=\"dlgframe\">\n");
    put!(
        &mut body,
        "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n",
        super::csrf::FIELD,
        super::csrf::token(ask.site, ask.caller)
    );
    body.push_str("<p>Log out? <button name=\"cmd\" value=\"Logout\">Log out</button></p></form>\n");
    layout::plain(ask, StatusCode::OK, "ELOG Logout", &body)
}

/// How it is used.
pub fn help(ask: &BookAsk<'_>) -> Response {
    if let Some(url) = ask.settings.help_url().filter(|url| layout::is_web(url)) {
        return layout::redirect(&if url.contains("://") { url.to_owned() } else { ask.address(url) });
    }
    let mut body = layout::menu(ask, None);
    body.push_str(
        "<div class=\"help\"><h1>Help</h1>\n\
         <p><b>Find</b> searches. What is typed into a field is a regular expression: <code>HV.*trip</code> finds HV, anything, trip; \
         a point stands for any character, <code>\\.</code> for a point.</p>\n\
         <p>The addresses of lists and searches can be kept as bookmarks: <code>page3</code>, <code>last20</code> (entries), \
         <code>past7</code> (days), <code>?Author=Quartz&amp;mode=full</code>, <code>?subtext=trip&amp;last=31</code>.</p>\n\
         <p>Texts are plain, ELCode (<code>[b]bold[/b]</code>, <code>elog:12</code> leads to entry 12) or HTML.</p></div>\n",
    );
    Page::new(ask, "Help", body).answer(StatusCode::OK)
}

/// What is configured, to be read; passwords are left out.
pub fn config(ask: &BookAsk<'_>) -> Response {
    let mut body = layout::menu(ask, None);
    put!(&mut body, "<h1>Configuration of {}</h1>\n<pre class=\"config\">[{}]\n", ask.book.name, ask.book.name);
    for (name, value) in &ask.book.elog {
        let lower = name.to_lowercase();
        let secret = (lower.contains("password") && !matches!(lower.as_str(), "password file" | "forgot password link"))
            || lower.contains("passphrase")
            || lower.contains("mirror user");
        put!(&mut body, "{} = {}\n", name, if secret { "(left out)" } else { value.as_str() });
    }
    body.push_str("</pre>\n");
    Page::new(ask, "Config", body).answer(StatusCode::OK)
}

/// A month, each day with what was written on it.
pub fn calendar(ask: &BookAsk<'_>) -> Response {
    let zone = &ask.site.config.zone;
    let today = zone.fields(ask.now, 0);
    let year = ask.query.number("y").filter(|year| (1970..=2200).contains(year)).unwrap_or(today[0]);
    let month = ask.query.number("m").filter(|month| (1..=12).contains(month)).unwrap_or(today[1]);
    let mut body = layout::menu(ask, None);
    let (before, after) =
        if month == 1 { ((year - 1, 12), (year, 2)) } else { ((year, month - 1), (year + month / 12, month % 12 + 1)) };
    put!(&mut body, "<table class=\"calendar\"><caption><a href=\"cal.html?y={}&amp;m={}\">&#171;</a> ", before.0, before.1);
    put!(
        &mut body,
        "{}-{} <a href=\"cal.html?y={}&amp;m={}\">&#187;</a></caption>\n",
        year,
        Raw(format!("{month:02}")),
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
        match entries_of(ask, [year, month, day]) {
            Ok(0) => put!(&mut body, "<td>{}</td>", day),
            Ok(count) => {
                let range = format!("ya={year}&ma={month}&da={day}&yb={year}&mb={month}&db={day}");
                put!(&mut body, "<td class=\"has\"><a href=\"./?{}\" title=\"{} entries\">{}</a></td>", range, count, day);
            }
            Err(error) => return ask.failed(&error),
        }
    }
    body.push_str("</tr></table>\n");
    Page::new(ask, "Calendar", body).answer(StatusCode::OK)
}

fn entries_of(ask: &BookAsk<'_>, day: [i64; 3]) -> crate::store::Result<u64> {
    let zone = &ask.site.config.zone;
    let (Some(from), Some(to)) = (zone.moment(day, [0; 3]), zone.moment(day, [23, 59, 59])) else { return Ok(0) };
    let text = |at: Time| at.to_ns_text()[..19].to_owned();
    let query = format!("since:{} until:{}", text(from), text(Time(to.0.saturating_add(1_000_000_000))));
    let search = Search { books: vec![ask.book.name.clone()], query, limit: 1, ..Search::default() };
    Ok(match ask.site.store.search(&search, &ask.stop)?.count {
        Some(crate::search::Count::Exactly(count) | crate::search::Count::AtLeast(count)) => count,
        None => 0,
    })
}
