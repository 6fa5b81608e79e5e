//! The form of a search.

use http::StatusCode;
use tampu_logbook::book::{AttributeDef, AttributeKind};

use crate::{
    option_values::{ALL, SPANS},
    pages::{
        choice, ere,
        html::{SafeHtml, put},
        layout::{self, BookPage},
        request::BookRequest,
        response::Response,
        settings::ListMode,
    },
};

const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];

/// Answers with the form of a search, filled in from the address, so that the search can be changed.
pub fn answer(request: &BookRequest<'_>) -> Response {
    let query = &request.query;
    let mut body = layout::menu(request, None);
    let out = &mut body;
    out.push_str("<form class=\"find\" method=\"get\" action=\"./\">\n<table class=\"listframe\">\n");
    put!(out, "<tr><th>{}:</th><td>", request.word("Mode"));
    let chosen = query.get("mode").and_then(ListMode::named).unwrap_or_else(|| request.settings.mode());
    for (mode, text) in
        [(ListMode::Full, "Display full entries"), (ListMode::Summary, "Summary only"), (ListMode::Threaded, "Display threads")]
    {
        let checked = SafeHtml(if mode == chosen { " checked" } else { "" });
        put!(
            out,
            "<label><input type=\"radio\" name=\"mode\" value=\"{}\"{}> {}</label> ",
            mode.name(),
            checked,
            request.word(text)
        );
    }
    for (value, text) in
        [("CSV1", "CSV (\",\")"), ("CSV2", "CSV (\";\")"), ("CSV3", "CSV (\";\") + Text"), ("XML", "XML"), ("Raw", "Raw")]
    {
        put!(out, "<label><input type=\"radio\" name=\"mode\" value=\"{}\"> {}</label> ", value, text);
    }
    put!(out, "</td></tr>\n<tr><th>{}:</th><td>", request.word("Options"));
    let reverse = query.get("reverse").map_or(request.settings.reverse(), |value| value != "0");
    tick(out, "reverse", request.word("Sort in reverse order"), reverse);
    tick(out, "printable", request.word("Printable output"), query.is_on("printable"));
    if request.settings.attachments() && request.settings.show_attachments() {
        tick(out, "attach", request.word("Show attachments"), query.get("attach") != Some("0"));
        // The first value counts: this one if the box is not ticked.
        out.push_str("<input type=\"hidden\" name=\"attach\" value=\"0\">");
    }
    if request.settings.search_all() > 0 && request.group().is_ok_and(|books| books.len() > 1) {
        tick(
            out,
            "all",
            request.word("Search all logbooks"),
            query.get("all").map_or(request.settings.search_all() == 2, |value| value != "0"),
        );
    }
    put!(
        out,
        "<label><input type=\"number\" name=\"npp\" min=\"1\" max=\"1000\" value=\"{}\"> {}</label>",
        query.number::<usize>("npp").unwrap_or_else(|| request.settings.per_page()),
        request.word("entries per page")
    );
    put!(out, "</td></tr>\n<tr><th>{}:</th><td>", request.word("Entry date"));
    last(request, out);
    put!(out, "<br>{}: ", request.word("Start"));
    date(request, "a", out);
    put!(out, "<br>{}: ", request.word("End"));
    date(request, "b", out);
    out.push_str("</td></tr>\n");
    for (index, def) in request.book.attributes.iter().enumerate() {
        let (tooltip, name) = (request.settings.tooltip(&def.name, &[]), &def.name);
        match def.kind {
            AttributeKind::Date | AttributeKind::DateTime | AttributeKind::Multiple => {
                put!(out, "<tr><th title=\"{}\" id=\"f{}\">{}:</th>", tooltip, index, name);
                put!(out, "<td role=\"group\" aria-labelledby=\"f{}\">", index);
            }
            _ => put!(out, "<tr><th title=\"{}\"><label for=\"f{}\">{}</label>:</th><td>", tooltip, index, name),
        }
        attribute(request, index, def, out);
        out.push_str("</td></tr>\n");
    }
    put!(
        out,
        "<tr><th><label for=\"subtext\">{}</label>:</th><td><input type=\"text\" id=\"subtext\" name=\"subtext\" size=\"50\" value=\"{}\"><br>",
        request.word("Text"),
        query.get("subtext").unwrap_or_default()
    );
    tick(out, "sall", request.word("Search text also in attributes"), query.is_on("sall"));
    tick(out, "casesensitive", request.word("Case sensitive"), query.is_on("casesensitive") || request.settings.case_sensitive());
    put!(
        out,
        "<br><span class=\"note\">Fields are regular expressions: <code>HV.*trip</code></span></td></tr>\n\
         <tr><td></td><td><input type=\"submit\" value=\"{}\"> <input type=\"reset\" value=\"{}\"></td></tr>\n</table></form>\n",
        request.word("Search"),
        request.said("Reset Form", "Reset")
    );
    BookPage::new(request, "Find", body).answer(StatusCode::OK)
}

fn tick(out: &mut String, name: &str, text: &str, on: bool) {
    let checked = SafeHtml(if on { " checked" } else { "" });
    put!(out, "<label><input type=\"checkbox\" name=\"{}\" value=\"1\"{}> {}</label> ", name, checked, text);
}

fn last(request: &BookRequest<'_>, out: &mut String) {
    let asked = request.query.get("last").map(str::to_owned);
    let chosen = asked.or_else(|| request.settings.show_last().map(|days| days.to_string()));
    let chosen = chosen.filter(|days| days != "0" && days != ALL);
    put!(out, "<label>{}: <select name=\"last\">", request.word("Show last"));
    // With a default, all days have to be requested.
    let all = if request.settings.last().is_some() { ALL } else { "" };
    choice::option(out, all, "-- all --", chosen.is_none());
    let mut known = chosen.is_none();
    for (days, text) in SPANS {
        let days = days.to_string();
        known |= chosen.as_ref() == Some(&days);
        choice::option(out, &days, request.word(text), chosen.as_ref() == Some(&days));
    }
    if let Some(days) = chosen.filter(|_| !known) {
        choice::option(out, &days, &format!("{days} Days"), true);
    }
    out.push_str("</select></label>");
}

/// Writes the month, day and year of one end of a range. `end` is the last character of the names of the fields.
pub fn date(request: &BookRequest<'_>, end: &str, out: &mut String) {
    let value = |letter: &str| request.query.get(&format!("{letter}{end}")).unwrap_or_default().to_owned();
    let (month, day, year) = (value("m"), value("d"), value("y"));
    put!(out, "<select name=\"m{}\" aria-label=\"Month\">", end);
    choice::option(out, "", "", month.is_empty());
    for (at, name) in MONTHS.iter().enumerate() {
        let number = (at + 1).to_string();
        choice::option(out, &number, request.word(name), number == month);
    }
    put!(out, "</select> <select name=\"d{}\" aria-label=\"Day\">", end);
    choice::option(out, "", "", day.is_empty());
    for number in 1..=31_u32 {
        let number = number.to_string();
        choice::option(out, &number, &number, number == day);
    }
    put!(
        out,
        "</select> <input type=\"text\" name=\"y{}\" value=\"{}\" size=\"4\" maxlength=\"4\" aria-label=\"Year\">",
        end,
        year
    );
    for (letter, label, sign) in [("h", "Hour", " "), ("n", "Minute", ":"), ("c", "Second", ":")] {
        put!(
            out,
            "{}<input type=\"text\" inputmode=\"numeric\" name=\"{}{}\" value=\"{}\" size=\"2\" maxlength=\"2\" aria-label=\"{}\">",
            sign,
            letter,
            end,
            value(letter),
            label
        );
    }
}

fn attribute(request: &BookRequest<'_>, index: usize, def: &AttributeDef, out: &mut String) {
    match def.kind {
        AttributeKind::Date | AttributeKind::DateTime => {
            out.push_str("from ");
            date(request, &format!("{index}a"), out);
            out.push_str(" to ");
            date(request, &format!("{index}b"), out);
        }
        AttributeKind::Multiple => {
            // Any of the ticked options.
            for (nth, option) in def.options.iter().enumerate() {
                let name = format!("{}_{nth}", def.name);
                let expression = ere::part(option);
                let checked = SafeHtml(if request.query.get(&name) == Some(&expression) { " checked" } else { "" });
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
        _ => {
            let value = request.query.get(&def.name).unwrap_or_default();
            choice::field(request, def, value, &format!("f{index}"), out);
        }
    }
}
