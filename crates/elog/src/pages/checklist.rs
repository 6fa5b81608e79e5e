//! The checklist of an entry on its page: boxes that people with the right to edit can tick.

use tampu_logbook::{checklist, entry::Entry, render::inputs::inputs};

use crate::pages::{
    command::PageCommand,
    csrf,
    html::{SafeHtml, put},
    request::BookRequest,
};

/// The beginning of the names of boxes; the number of the item follows.
pub const TICK: &str = "tick";
/// The field with the revision whose items are shown.
pub const REVISION: &str = "entry_revision";

/// Returns the text of an entry, as HTML, in a form with its boxes. The result is `None` if the text has no items, or
/// if its HTML has other boxes as well.
pub fn form(request: &BookRequest<'_>, entry: &Entry, html: &str) -> Option<String> {
    let items = checklist::items(&entry.content);
    let boxes = inputs(html);
    if items.is_empty() || boxes.len() != items.len() {
        return None;
    }
    let mut out = String::with_capacity(html.len() + 200 * items.len() + 500);
    put!(&mut out, "<form class=\"checklist\" method=\"post\" action=\"{}\">\n", entry.at.id);
    let token = csrf::token(request.site, request.caller, request.session.as_deref());
    let revision = entry.revision.to_string();
    for (name, value) in [(csrf::FIELD, token.as_str()), ("cmd", PageCommand::Tick.name()), (REVISION, revision.as_str())] {
        put!(&mut out, "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n", name, value);
    }
    out.push_str("<div class=\"messageframe\">");
    let mut at = 0;
    for (nth, (place, item)) in boxes.into_iter().zip(&items).enumerate() {
        out.push_str(html.get(at..place.start)?);
        let checked = SafeHtml(if item.done { " checked" } else { "" });
        put!(&mut out, "<input type=\"checkbox\" name=\"{}{}\" value=\"1\" aria-label=\"{}\"{}>", TICK, nth, item.text, checked);
        at = place.end;
    }
    out.push_str(html.get(at..)?);
    out.push_str("<p class=\"buttons\"><button type=\"submit\">Save ticks</button></p></div>\n</form>\n");
    Some(out)
}
