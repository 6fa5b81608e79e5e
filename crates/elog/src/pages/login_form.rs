//! The form to log in.

use http::StatusCode;
use tampu_logbook::book::Book;

use crate::pages::{
    account::{offer::ResetOffer, policy::AccountPolicy},
    address::escape,
    html::{SafeHtml, put},
    layout,
    request::PageRequest,
    response::Response,
    settings::BookSettings,
};

/// Answers with the login form, for a book or for the site. Programs recognise by it that they are not logged in.
pub fn answer(request: &PageRequest<'_>, book: Option<&Book>) -> Response {
    let query = request.query.without(&["cmd", "redir", "fail"]);
    let redir = match (&request.target, request.query.get("redir")) {
        (_, Some(redir)) => redir.to_owned(),
        (crate::pages::address::AddressTarget::Entry(id), None) => format!("{id}{}", query.written()),
        (_, None) => query.written(),
    };
    let mut body = String::new();
    if request.query.is_on("fail") {
        body.push_str("<table><tr><td class=\"errormsg\">Invalid user name or password!</td></tr></table>\n");
    }
    // ELOG's programs look for `form name=form1`, and for `type=password` without quotation marks.
    body.push_str("<form name=form1 class=\"login\" method=\"post\" action=\"./\" enctype=\"multipart/form-data\">\n");
    put!(&mut body, "<input type=\"hidden\" name=\"redir\" value=\"{}\">\n", redir);
    put!(
        &mut body,
        "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n",
        crate::pages::csrf::FIELD,
        crate::pages::csrf::token(request.site, request.caller, request.session.as_deref())
    );
    put!(&mut body, "<h1>{}</h1>\n", book.map_or(request.word("Please login"), |book| book.name.as_str()));
    put!(
        &mut body,
        "<p><label>{}: <input type=\"text\" name=\"uname\" autocomplete=\"username\" required autofocus></label></p>\n\
         <p><label>{}: <input type=password name=\"upassword\" autocomplete=\"current-password\" required></label></p>\n",
        request.said("Username", "User name"),
        request.word("Password")
    );
    let of_book = book.map(BookSettings::of);
    let policy = AccountPolicy::at(request, of_book.as_ref());
    let settings = of_book.unwrap_or_default();
    if settings.login_hours() > 0.0 {
        put!(
            &mut body,
            "<p><label><input type=\"checkbox\" name=\"remember\" value=\"1\"> {}</label></p>\n",
            request.word("Keep me logged in on this computer")
        );
    }
    put!(&mut body, "<p><input type=\"submit\" value=\"{}\"></p>\n", request.word("Submit"));
    if request.site.is_open() {
        body.push_str(
            "<p class=\"note\">Nobody can log in yet, because there are no users: 'tampu book users add LOGIN --admin' on the \
             hub's host adds the first one.</p>\n",
        );
    }
    if policy.self_register > 0 && request.site.people.is_some() {
        let text = request.said("Register as new user", "Register as a new user");
        put!(&mut body, "<p class=\"note\"><a href=\"?cmd=New%20user\">{}</a></p>\n", text);
    }
    if ResetOffer::at(request, policy).is_some() {
        body.push_str("<p class=\"note\"><a href=\"?cmd=Forgot\">Forgot password?</a></p>\n");
    }
    body.push_str("</form>\n");
    // The page to return to, as a path of this site.
    let path = request.base_path();
    let to = match book {
        // A whole address leads to this site, and ends with a path of it.
        _ if redir.contains("://") => redir.strip_prefix(&request.base).map(|rest| format!("{path}{rest}")).unwrap_or_default(),
        Some(book) => format!("{path}/{}/{redir}", escape(&book.name)),
        None => format!("{path}/{redir}"),
    };
    for (text, address) in &request.site.config().logins {
        let address = format!("{address}?to={}", escape(&to));
        put!(&mut body, "<p class=\"login\"><a href=\"{}\">Log in with {}</a></p>\n", address, text);
    }
    if !settings.login_text().is_empty() {
        let text = settings.login_text();
        let file = if crate::site_files::is_page(text) { request.site.page_file(text) } else { None };
        put!(&mut body, "<div class=\"configured\">{}</div>\n", file.unwrap_or_else(|| SafeHtml(layout::clean(text))));
    }
    layout::plain(request, StatusCode::OK, "ELOG Login", &body)
}
