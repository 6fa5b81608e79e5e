//! `?approval=TOKEN`: the link of a mail to administrators about a registration. It needs no login, because its token is
//! the proof.

use http::{Method, StatusCode};
use tampu_logbook::people::{PeopleError, approval_link};

use crate::pages::{
    account::{
        dialog::{Told, dialog, mendable},
        users::mail_approval,
    },
    html::put,
    layout, refusal,
    request::PageRequest,
    response::{self, LoggedFailure, Response},
    sent::ReceivedForm,
};

/// The parameter with the token.
pub const TOKEN: &str = "approval";
const TITLE: &str = "Registration";

/// Returns the address of the link; `None` if the site's address is not configured, since a request could name another
/// host.
pub fn address(request: &PageRequest<'_>, id: &str) -> Option<String> {
    let url = request.site.config.url.trim_end_matches('/');
    (!url.is_empty()).then(|| format!("{url}/?{TOKEN}={}", approval_link::token(&request.site.config.secret, id)))
}

/// Answers such a link. Reading it changes nothing; its form approves or refuses the registration.
pub fn answer(request: &PageRequest<'_>, method: &Method, sent: &ReceivedForm) -> Response {
    let token = request.query.get(TOKEN).unwrap_or_default();
    let Some((id, people)) = approval_link::read(&request.site.config.secret, token).zip(request.site.people.as_ref()) else {
        let text = "Error: this link is not whole; registrations are on the page Users, and in 'tampu book users pending'";
        return layout::error(request, StatusCode::NOT_FOUND, text);
    };
    if *method == Method::POST {
        let done = match sent.text("act") {
            "approve" => people.approve(&id).map(|user| {
                let notice = mail_approval(request, &user);
                (
                    format!("The registration of {} is approved", user.login),
                    format!("registration of '{}': approved", user.login),
                    notice,
                )
            }),
            "refuse" => people.refuse(&id).map(|refused| {
                let login = refused.login;
                (format!("The registration of {login} is refused"), format!("registration of '{login}': refused"), Ok(()))
            }),
            _ => Err(PeopleError::Invalid("nothing was chosen".to_owned())),
        };
        return match done {
            Ok((text, record, notice)) => {
                let mut answer =
                    response::done(dialog(request, Told::Done(&text), TITLE, ""), format!("{record} by a mail's link"));
                if let Err(why) = notice {
                    answer.extensions_mut().insert(LoggedFailure(why));
                }
                answer
            }
            Err(error) => failed(request, &error),
        };
    }
    let waiting = match people.registrations() {
        Ok(all) => all.into_iter().find(|registration| registration.id == id),
        Err(error) => return failed(request, &error),
    };
    let Some(registration) = waiting else { return failed(request, &PeopleError::NoRegistration(id)) };
    let mut body = String::new();
    put!(
        &mut body,
        "<form method=\"post\" action=\"?{}={}\"><table><tr><th>Login</th><td>{}</td></tr><tr><th>Full name</th><td>{}</td></tr>\
         <tr><th>E-mail</th><td>{}</td></tr><tr><th>Time</th><td>{}</td></tr><tr><th>From</th><td>{}</td></tr></table>\n",
        TOKEN,
        token,
        registration.login,
        registration.full_name,
        registration.email,
        request.site_time(registration.at),
        registration.from
    );
    if registration.taken {
        body.push_str("<p class=\"warning\">The login or name is taken: refuse the registration.</p>\n");
    }
    if registration.author {
        body.push_str("<p class=\"warning\">Entries or rights have this name: is it the same person?</p>\n");
    }
    body.push_str(
        "<p><button name=\"act\" value=\"approve\">Approve</button> <button name=\"act\" value=\"refuse\">Refuse</button></p></form>\n",
    );
    dialog(request, Told::Nothing, TITLE, &body)
}

fn failed(request: &PageRequest<'_>, error: &PeopleError) -> Response {
    match (error, mendable(error)) {
        (PeopleError::NoRegistration(_), _) => dialog(request, Told::Done("Somebody has decided already."), TITLE, ""),
        (_, Some(text)) => dialog(request, Told::Wrong(&text), TITLE, ""),
        (_, None) => refusal::people_failed(request, error),
    }
}
