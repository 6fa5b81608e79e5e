//! Logging in and out with ELOG's forms: `uname`, `upassword`, `redir`.
//!
//! [`tampu_logbook::people`] accepts ELOG's passwords, and stores a better hash after a login. The session is the hub's
//! own, without ELOG's `sid`.

use std::time::Duration;

use http::{
    StatusCode,
    header::{HeaderValue, SET_COOKIE},
};
use tampu_logbook::{
    book::Book,
    people::{People, PeopleError, session},
};

use crate::pages::{
    account::session_user::SessionUser,
    address::escape,
    html::put,
    layout, login_form, refusal,
    request::PageRequest,
    response::{self, Response},
    sent::ReceivedForm,
    settings::BookSettings,
    tabs,
};

/// The longest time for which a login is kept, in seconds: ten years, as long as `session_days` can be.
const MOST_SECONDS: f64 = 10.0 * 366.0 * 86_400.0;

/// Begins a session, and redirects to the page that the user wanted.
pub fn login(request: &PageRequest<'_>, book: Option<&Book>, form: &ReceivedForm) -> Response {
    let Some(people) = &request.site.people else {
        return layout::error(request, StatusCode::FORBIDDEN, "Error: this site has no users who could log in");
    };
    let (name, password) = (form.text("uname"), form.get("upassword").unwrap_or_default());
    // Without the box the cookie ends with the browser.
    let hours = book.map(BookSettings::of).unwrap_or_default().login_hours();
    let kept = (form.is("remember") && hours > 0.0).then(|| Duration::from_secs_f64((hours * 3600.0).min(MOST_SECONDS)));
    match people.log_in(name, password, request.caller.from) {
        Ok((_, secret)) => {
            let home = match book {
                Some(book) => format!("{}/{}/", request.base, escape(&book.name)),
                None => format!("{}/", request.base),
            };
            let mut answer = response::redirect(&target(&request.base, &home, form.text("redir")));
            let secure = request.base.starts_with("https://");
            let cookie = match kept.map(|kept| people.keep_session(&secret, kept)).transpose() {
                Ok(Some(kept)) => session::cookie(&secret, kept, secure),
                Ok(None) => session::short_cookie(&secret, secure),
                Err(error) => return refusal::people_failed(request, &error),
            };
            set_cookie(&mut answer, &cookie);
            answer
        }
        Err(PeopleError::Wrong) => {
            let mut again = login_form::answer(&request.failed_to_log_in(), book);
            *again.status_mut() = StatusCode::UNAUTHORIZED;
            again
        }
        Err(error) => refusal::people_failed(request, &error),
    }
}

impl<'a> PageRequest<'a> {
    /// Returns the same request for the page that asks for the password again.
    fn failed_to_log_in(&self) -> PageRequest<'a> {
        PageRequest {
            site: self.site,
            caller: self.caller,
            target: self.target.clone(),
            query: self.query.with("fail", "1"),
            base: self.base.clone(),
            root: self.root,
            session: self.session.clone(),
            by_browser: self.by_browser,
            origin: self.origin,
            stop: self.stop.clone(),
            now: self.now,
            zone: self.zone.clone(),
            words: self.words.clone(),
        }
    }
}

/// Returns the target of a login, which is always within this site.
fn target(base: &str, home: &str, redir: &str) -> String {
    let within = |address: &str| address == base || address.strip_prefix(base).is_some_and(|rest| rest.starts_with(['/', '?']));
    let harmless = !redir.contains(|c: char| c.is_control() || matches!(c, '\\' | ' ')) && redir.is_ascii();
    match redir {
        "" => home.to_owned(),
        whole if harmless && within(whole) => whole.to_owned(),
        // An address that could lead to another host is not followed.
        rest if harmless
            && !rest.starts_with('/')
            && !rest.contains("..")
            && !rest.split(['/', '?']).next().is_some_and(|first| first.contains(':')) =>
        {
            format!("{home}{rest}")
        }
        _ => home.to_owned(),
    }
}

/// Returns the address after a logout: that of the user's login method, `Logout to URL` of a book, or the page of all
/// books.
fn after_logout(request: &PageRequest<'_>, book: Option<&Book>) -> String {
    let method = |people: &People| people.user(&request.caller.login).ok()?.outside.map(|outside| outside.method);
    let method = request.site.people.as_deref().filter(|_| request.session.is_some()).and_then(method);
    if let Some((_, address)) = request.site.config().logouts.iter().find(|(name, _)| Some(name) == method.as_ref()) {
        return address.clone();
    }
    let main = format!("{}/", request.base);
    let settings = book.map(BookSettings::of).unwrap_or_default();
    match settings.after_logout().map(str::trim) {
        Some("") | None => main,
        Some(url) if !tabs::is_web(url) => main,
        Some(url) if url.contains("://") => url.to_owned(),
        Some(path) => format!("{main}{}", path.trim_start_matches('/')),
    }
}

/// The parameter that ends all sessions of the user.
pub const EVERYWHERE: &str = "everywhere";

/// Ends the session, or all sessions of the user. All end for a caller with a session alone: a token may have fewer rights
/// than its user.
pub fn logout(request: &PageRequest<'_>, book: Option<&Book>, everywhere: bool) -> Response {
    if everywhere && let Err(asked) = SessionUser::of(request) {
        return *asked;
    }
    let mut answer = response::redirect(&after_logout(request, book));
    if let (Some(people), Some(secret)) = (&request.site.people, &request.session)
        && let Err(error) = people.log_out(secret)
    {
        return refusal::people_failed(request, &error);
    }
    if let Some(people) = &request.site.people
        && everywhere
        && people.user(&request.caller.login).is_ok()
        && let Err(error) = people.end_sessions(&request.caller.login)
    {
        return refusal::people_failed(request, &error);
    }
    set_cookie(&mut answer, &session::no_cookie());
    answer
}

pub(in crate::pages) fn set_cookie(answer: &mut Response, line: &str) {
    if let Ok(value) = HeaderValue::from_str(line) {
        answer.headers_mut().append(SET_COOKIE, value);
    }
}

/// Ends the session, or requests a confirmation: an image or a page of another site that links here ends no session.
pub fn logout_page(request: &PageRequest<'_>, book: Option<&Book>) -> Response {
    let everywhere = request.query.is_on(EVERYWHERE);
    if !everywhere && (request.origin.own_navigation || request.session.is_none()) {
        return logout(request, book, false);
    }
    let mut body = String::from("<form method=\"post\" action=\"./\" class=\"dlgframe\">\n");
    put!(
        &mut body,
        "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n",
        crate::pages::csrf::FIELD,
        crate::pages::csrf::token(request.site, request.caller, request.session.as_deref())
    );
    let question = if everywhere {
        put!(&mut body, "<input type=\"hidden\" name=\"{}\" value=\"1\">\n", EVERYWHERE);
        "End all your sessions, on every computer?"
    } else {
        "Log out?"
    };
    put!(&mut body, "<p>{} <button name=\"cmd\" value=\"Logout\">Log out</button></p></form>\n", question);
    layout::plain(request, StatusCode::OK, "ELOG Logout", &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_nowhere_else() {
        let (base, home) = ("https://site/elog", "https://site/elog/Shift/");
        for (redir, expected) in [
            ("", home),
            ("?cmd=New", "https://site/elog/Shift/?cmd=New"),
            ("12?a=b:c", "https://site/elog/Shift/12?a=b:c"),
            ("https://site/elog/Other/3", "https://site/elog/Other/3"),
            ("https://site/elog", "https://site/elog"),
            ("https://site/elogevil", home),
            ("https://evil/", home),
            ("//evil/", home),
            ("/\\evil", home),
            ("javascript:alert(1)", home),
            ("../../x", home),
            ("12\r\nSet-Cookie: a=b", home),
        ] {
            assert_eq!(target(base, home, redir), expected, "{redir:?}");
        }
    }
}
