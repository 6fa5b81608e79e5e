//! `?unsubscribe=TOKEN`: the link of a mail that ends the rule by which it was sent. It needs no login, because its token is
//! the proof, and programs for mail follow it by themselves (RFC 8058).

use http::{Method, StatusCode};
use tampu_logbook::notify::{NotifyError, unsubscribe};

use crate::pages::{html::put, layout, request::PageRequest, response::Response};

/// The parameter with the token.
pub const TOKEN: &str = "unsubscribe";

/// Answers such a link. Reading it changes nothing; its form, or a program's POST, removes the rule.
pub fn answer(request: &PageRequest<'_>, method: &Method) -> Response {
    let token = request.query.get(TOKEN).unwrap_or_default();
    let secret = &request.site.config.secret;
    let Some((login, _)) = unsubscribe::read(secret, token) else {
        let text = "Error: this link is not whole; remove the rule on the page Config, or with 'tampu book notify remove'";
        return layout::error(request, StatusCode::NOT_FOUND, text);
    };
    if *method != Method::POST {
        let mut body = String::from("<div class=\"selframe accounts\">\n<h1>Mail by a rule</h1>\n");
        put!(&mut body, "<form method=\"post\" action=\"?{}={}\"><p>The logbook mails new entries to {} ", TOKEN, token, login);
        body.push_str("by a rule. <button>End this rule</button></p></form>\n</div>\n");
        return layout::plain(request, StatusCode::OK, "Mail by a rule", &body);
    }
    let text = match unsubscribe::unsubscribe(&*request.site.store, secret, token) {
        Ok(Some(Some(rule))) => format!("The rule has ended: {}.", rule.described()),
        Ok(_) => "The rule had ended before.".to_owned(),
        Err(NotifyError::Store(error)) => return request.failed(&error),
        Err(error) => return layout::error(request, StatusCode::CONFLICT, &format!("Error: {error}")),
    };
    let mut body = String::new();
    put!(&mut body, "<div class=\"selframe accounts\">\n<h1>Mail by a rule</h1>\n<p class=\"done\">{}</p>\n</div>\n", text);
    layout::plain(request, StatusCode::OK, "Mail by a rule", &body)
}
