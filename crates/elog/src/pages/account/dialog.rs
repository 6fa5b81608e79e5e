//! Forms of pages about accounts: hidden fields, a message, the way back.

use http::StatusCode;
use tampu_logbook::people::PeopleError;

use crate::pages::{
    csrf,
    html::{SafeHtml, put},
    layout,
    request::PageRequest,
    response::Response,
};

/// A message above a form.
#[derive(Debug, Clone, Copy)]
pub enum Told<'a> {
    Nothing,
    Done(&'a str),
    /// The text of an error; programs look for its element.
    Wrong(&'a str),
}

/// Writes a message.
pub fn tell(body: &mut String, told: Told<'_>) {
    match told {
        Told::Nothing => {}
        Told::Done(text) => put!(body, "<p class=\"done\">{}</p>\n", text),
        Told::Wrong(text) => {
            put!(body, "<table class=\"wrong\"><tr><td class=\"errormsg\">{}</td></tr></table>\n", text);
        }
    }
}

/// Begins a form of this site with its hidden fields.
pub fn begin_form(request: &PageRequest<'_>, body: &mut String, hidden: &[(&str, &str)]) {
    body.push_str("<form name=form1 class=\"account\" method=\"post\" action=\"./\">\n");
    let token = csrf::token(request.site, request.caller, request.session.as_deref());
    for (name, value) in [(csrf::FIELD, token.as_str())].iter().chain(hidden) {
        put!(body, "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n", *name, *value);
    }
}

/// Returns the page with a form, its message and the way back.
pub fn dialog(request: &PageRequest<'_>, told: Told<'_>, title: &str, content: &str) -> Response {
    let status = if matches!(told, Told::Wrong(_)) { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let mut body = String::new();
    put!(&mut body, "<div class=\"selframe accounts\">\n<h1>{}</h1>\n", title);
    tell(&mut body, told);
    body.push_str(content);
    let back = if request.root.is_empty() { "" } else { "<a href=\"./\">Back to the logbook</a> " };
    put!(&mut body, "<p class=\"steps\">{}<a href=\"{}./\">All logbooks</a></p>\n</div>\n", SafeHtml(back), request.root);
    layout::plain(request, status, title, &body)
}

/// Returns the text of an error that a user can mend; `None` for the others.
pub fn mendable(error: &PeopleError) -> Option<String> {
    match error {
        PeopleError::User(_) | PeopleError::Password(_) | PeopleError::Invalid(_) | PeopleError::IsThere(_) => {
            Some(error.to_string())
        }
        PeopleError::Wrong => Some("the password is wrong".to_owned()),
        _ => None,
    }
}

/// Begins a form within a line of a table.
pub fn begin_small_form(request: &PageRequest<'_>, body: &mut String, hidden: &[(&str, &str)]) {
    body.push_str("<form class=\"small\" method=\"post\" action=\"./\">");
    let token = crate::pages::csrf::token(request.site, request.caller, request.session.as_deref());
    for (name, value) in [(crate::pages::csrf::FIELD, token.as_str())].iter().chain(hidden) {
        put!(body, "<input type=\"hidden\" name=\"{}\" value=\"{}\">", *name, *value);
    }
}
