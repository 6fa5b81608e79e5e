//! The form of a search.

use http::StatusCode;

use super::{
    BookAsk, Response,
    html::{Raw, put},
    layout::{self, Page},
    list,
    settings::{Mode, SPANS},
    values,
};
use crate::{
    book::{AttributeDef, AttributeKind},
    elog::web::ere,
};

const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];

/// The form. What is in the address is filled in, so that a search can be changed.
pub fn answer(ask: &BookAsk<'_>) -> Response {
    let query = &ask.query;
    let mut body = layout::menu(ask, None);
    let out = &mut body;
    out.push_str("<form class=\"find\" method=\"get\" action=\"./\">\n<table class=\"listframe\">\n");
    out.push_str("<tr><th>Mode:</th><td>");
    let chosen = query.get("mode").and_then(Mode::named).unwrap_or_else(|| ask.settings.mode());
    for (mode, text) in
        [(Mode::Full, "Display full entries"), (Mode::Summary, "Summary only"), (Mode::Threaded, "Display threads")]
    {
        let checked = Raw(if mode == chosen { " checked" } else { "" });
        put!(out, "<label><input type=\"radio\" name=\"mode\" value=\"{}\"{}> {}</label> ", mode.name(), checked, text);
    }
    for (value, text) in
        [("CSV1", "CSV (\",\")"), ("CSV2", "CSV (\";\")"), ("CSV3", "CSV (\";\") + Text"), ("XML", "XML"), ("Raw", "Raw")]
    {
        put!(out, "<label><input type=\"radio\" name=\"mode\" value=\"{}\"> {}</label> ", value, text);
    }
    out.push_str("</td></tr>\n<tr><th>Options:</th><td>");
    let reverse = query.get("reverse").map_or(ask.settings.reverse(), |value| value != "0");
    tick(out, "reverse", "Sort in reverse order", reverse);
    if ask.settings.search_all() > 0 && ask.group().is_ok_and(|books| books.len() > 1) {
        tick(out, "all", "Search all logbooks", query.get("all").map_or(ask.settings.search_all() == 2, |value| value != "0"));
    }
    put!(out, "<label><input type=\"number\" name=\"npp\" min=\"1\" max=\"1000\" value=\"{}\"> entries per page</label>", {
        query.number::<usize>("npp").unwrap_or_else(|| ask.settings.per_page())
    });
    out.push_str("</td></tr>\n<tr><th>Entry date:</th><td>");
    last(ask, out);
    out.push_str("<br>Start: ");
    date(ask, "a", out);
    out.push_str("<br>End: ");
    date(ask, "b", out);
    out.push_str("</td></tr>\n");
    for (index, def) in ask.book.attributes.iter().enumerate() {
        put!(out, "<tr><th title=\"{}\">{}:</th><td>", ask.settings.tooltip(&def.name, &[]), def.name);
        attribute(ask, index, def, out);
        out.push_str("</td></tr>\n");
    }
    put!(
        out,
        "<tr><th>Text:</th><td><input type=\"text\" name=\"subtext\" size=\"50\" value=\"{}\"><br>",
        query.get("subtext").unwrap_or_default()
    );
    tick(out, "sall", "Search text also in attributes", query.is_on("sall"));
    tick(out, "casesensitive", "Case sensitive", query.is_on("casesensitive") || ask.settings.case_sensitive());
    out.push_str(
        "<br><span class=\"note\">Fields are regular expressions: <code>HV.*trip</code></span></td></tr>\n\
         <tr><td></td><td><input type=\"submit\" value=\"Search\"> <input type=\"reset\" value=\"Reset\"></td></tr>\n</table></form>\n",
    );
    Page::new(ask, "Find", body).answer(StatusCode::OK)
}

fn tick(out: &mut String, name: &str, text: &str, on: bool) {
    let checked = Raw(if on { " checked" } else { "" });
    put!(out, "<label><input type=\"checkbox\" name=\"{}\" value=\"1\"{}> {}</label> ", name, checked, text);
}

fn last(ask: &BookAsk<'_>, out: &mut String) {
    let chosen = ask.query.get("last").map(str::to_owned).or_else(|| ask.settings.show_last().map(|days| days.to_string()));
    out.push_str("<label>Show last: <select name=\"last\">");
    // With a default, everything has to be asked for.
    let all = if ask.settings.show_last().is_some() { "0" } else { "" };
    values::option(out, all, "-- all --", chosen.is_none());
    let mut known = chosen.is_none();
    for (days, text) in SPANS {
        let days = days.to_string();
        known |= chosen.as_ref() == Some(&days);
        values::option(out, &days, text, chosen.as_ref() == Some(&days));
    }
    if let Some(days) = chosen.filter(|days| !known && days != "0") {
        values::option(out, &days, &format!("{days} Days"), true);
    }
    out.push_str("</select></label>");
}

/// Month, day and year of one end of a range; `end` is what their names end in.
pub fn date(ask: &BookAsk<'_>, end: &str, out: &mut String) {
    let value = |letter: &str| ask.query.get(&format!("{letter}{end}")).unwrap_or_default().to_owned();
    let (month, day, year) = (value("m"), value("d"), value("y"));
    put!(out, "<select name=\"m{}\" aria-label=\"Month\">", end);
    values::option(out, "", "", month.is_empty());
    for (at, name) in MONTHS.iter().enumerate() {
        let number = (at + 1).to_string();
        values::option(out, &number, name, number == month);
    }
    put!(out, "</select> <select name=\"d{}\" aria-label=\"Day\">", end);
    values::option(out, "", "", day.is_empty());
    for number in 1..=31_u32 {
        let number = number.to_string();
        values::option(out, &number, &number, number == day);
    }
    put!(
        out,
        "</select> <input type=\"text\" name=\"y{}\" value=\"{}\" size=\"4\" maxlength=\"4\" aria-label=\"Year\">",
        end,
        year
    );
}

fn attribute(ask: &BookAsk<'_>, index: usize, def: &AttributeDef, out: &mut String) {
    match def.kind {
        AttributeKind::Date | AttributeKind::DateTime => {
            out.push_str("from ");
            date(ask, &format!("{index}a"), out);
            out.push_str(" to ");
            date(ask, &format!("{index}b"), out);
        }
        AttributeKind::Multiple => {
            // Any of those that are ticked.
            for (nth, option) in def.options.iter().enumerate() {
                let name = format!("{}_{nth}", def.name);
                let expression = ere::part(option);
                let checked = Raw(if ask.query.get(&name) == Some(&expression) { " checked" } else { "" });
                put!(
                    out,
                    "<label><input type=\"checkbox\" name=\"{}\" value=\"{}\"{}> {}</label> ",
                    name,
                    expression,
                    checked,
                    option
                );
            }
        }
        _ => list::choice(ask, def, ask.query.get(&def.name).unwrap_or_default(), out),
    }
}
