//! Logging in and out with ELOG's forms: `uname`, `upassword`, `redir`.
//!
//! ELOG's passwords are known to [`crate::people`], which keeps a better hash of one when it was right. A session is the hub's own; ELOG's `sid` is not taken over.

use http::{
    StatusCode,
    header::{HeaderValue, SET_COOKIE},
};

use super::retry_after;
use crate::{
    book::Book,
    elog::web::{Ask, Failure, Response, address::escape, desk, layout, sent::Form},
    people::{PeopleError, session},
};

/// Begins a session, and leads to where somebody wanted to go.
pub fn login(ask: &Ask<'_>, book: Option<&Book>, form: &Form) -> Response {
    let Some(people) = &ask.site.people else {
        return layout::error(ask, StatusCode::FORBIDDEN, "Error: nobody can log in here");
    };
    let (name, password) = (form.text("uname"), form.get("upassword").unwrap_or_default());
    match people.log_in(name, password, ask.caller.from) {
        Ok((_, secret)) => {
            let home = match book {
                Some(book) => format!("{}/{}/", ask.base, escape(&book.name)),
                None => format!("{}/", ask.base),
            };
            let mut answer = layout::redirect(&target(&ask.base, &home, form.text("redir")));
            let cookie = session::cookie(&secret, people.settings().longest, ask.base.starts_with("https://"));
            set_cookie(&mut answer, &cookie);
            answer
        }
        Err(PeopleError::Wrong) => {
            let mut again = desk::login(&ask.failed_to_log_in(), book);
            *again.status_mut() = StatusCode::UNAUTHORIZED;
            again
        }
        Err(error) => failed(ask, &error),
    }
}

impl<'a> Ask<'a> {
    /// The same, for the page that asks again.
    fn failed_to_log_in(&self) -> Ask<'a> {
        Ask {
            site: self.site,
            caller: self.caller,
            place: self.place.clone(),
            query: self.query.with("fail", "1"),
            base: self.base.clone(),
            root: self.root,
            session: None,
            by_browser: self.by_browser,
            coming: self.coming,
            stop: self.stop.clone(),
            now: self.now,
        }
    }
}

/// Where a login leads: within this site, and nowhere else.
fn target(base: &str, home: &str, redir: &str) -> String {
    let within = |address: &str| address == base || address.strip_prefix(base).is_some_and(|rest| rest.starts_with(['/', '?']));
    let harmless = !redir.contains(|c: char| c.is_control() || matches!(c, '\\' | ' ')) && redir.is_ascii();
    match redir {
        "" => home.to_owned(),
        whole if harmless && within(whole) => whole.to_owned(),
        // Anything that could be another host's is not followed.
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

/// Ends the session.
pub fn logout(ask: &Ask<'_>) -> Response {
    let mut answer = layout::redirect(&format!("{}/", ask.base));
    if let (Some(people), Some(secret)) = (&ask.site.people, &ask.session)
        && let Err(error) = people.log_out(secret)
    {
        return failed(ask, &error);
    }
    set_cookie(&mut answer, &session::no_cookie());
    answer
}

fn set_cookie(answer: &mut Response, line: &str) {
    if let Ok(value) = HeaderValue::from_str(line) {
        answer.headers_mut().append(SET_COOKIE, value);
    }
}

/// What did not work about people.
pub fn failed(ask: &Ask<'_>, error: &PeopleError) -> Response {
    match error {
        PeopleError::Wait(time) => {
            let mut answer = layout::error(ask, StatusCode::TOO_MANY_REQUESTS, &format!("Error: {error}"));
            retry_after(&mut answer, time.as_secs() + 1);
            answer
        }
        PeopleError::Refused(why) => layout::error(ask, StatusCode::FORBIDDEN, &format!("Error: {why}")),
        PeopleError::Store(error) => ask.failed(error),
        PeopleError::Wrong => layout::error(ask, StatusCode::UNAUTHORIZED, &format!("Error: {error}")),
        other => {
            let mut answer = layout::error(ask, StatusCode::INTERNAL_SERVER_ERROR, "Error: the site's log says more");
            answer.extensions_mut().insert(Failure(other.to_string()));
            answer
        }
    }
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
