//! The pages for a forgotten password: the request for a link by mail, and the link.
//!
//! The response to a request is the same for a user who exists and for one who does not, and takes the same time. A mail
//! names the public address of the site's configuration (`[book] elog_url`) and no other: whoever sends a request could
//! choose its host.

use http::StatusCode;
use tampu_logbook::{
    mail::accounts::new_password,
    people::{People, PeopleError, password::SHORTEST},
};

use super::{
    dialog::{Told, begin_form, dialog, mendable},
    offer::ResetOffer,
    policy::AccountPolicy,
};
use crate::pages::{
    address::escape,
    html::put,
    layout, refusal,
    request::PageRequest,
    response::{self, Response},
    sent::ReceivedForm,
};

const TITLE: &str = "Forgotten password";

fn allowed<'a>(request: &PageRequest<'a>, policy: AccountPolicy) -> Result<ResetOffer<'a>, Box<Response>> {
    ResetOffer::at(request, policy).ok_or_else(|| {
        let text = "Error: this logbook sends no new passwords: ask the administrator";
        Box::new(layout::error(request, StatusCode::FORBIDDEN, text))
    })
}

/// Answers with the form for a request, or with that of a link.
pub fn page(request: &PageRequest<'_>, policy: AccountPolicy) -> Response {
    // A link works wherever it leads: it was sent where the policy allowed it.
    if let (Some(login), Some(key), Some(people)) = (request.query.get("user"), request.query.get("key"), &request.site.people) {
        return match people.check_reset(login, key) {
            Ok(_) => choose(request, login, key, Told::Nothing),
            Err(error) => failed(request, &error),
        };
    }
    match allowed(request, policy) {
        Ok(_) => ask(request),
        Err(answer) => *answer,
    }
}

fn failed(request: &PageRequest<'_>, error: &PeopleError) -> Response {
    match error {
        PeopleError::Ended(..) => {
            let body = "<p><a href=\"?cmd=Forgot\">Ask for another link</a></p>\n";
            dialog(request, Told::Wrong("this link has expired, or was used already"), TITLE, body)
        }
        other => refusal::people_failed(request, other),
    }
}

fn ask(request: &PageRequest<'_>) -> Response {
    let mut body = String::new();
    begin_form(request, &mut body, &[]);
    body.push_str(
        "<p><label>Login or e-mail address: <input type=\"text\" name=\"login_name\" size=\"32\" maxlength=\"256\" \
         autocomplete=\"username\" required></label></p>\n\
         <p><button name=\"cmd\" value=\"Forgot\">Send a link for a new password</button></p></form>\n",
    );
    dialog(request, Told::Nothing, TITLE, &body)
}

fn choose(request: &PageRequest<'_>, login: &str, key: &str, told: Told<'_>) -> Response {
    let mut body = String::new();
    begin_form(request, &mut body, &[("user", login), ("key", key)]);
    put!(&mut body, "<table><tr><th>Login</th><td class=\"fixed\">{}</td></tr>\n", login);
    for (name, label) in [("newpwd", "New password"), ("newpwd2", "New password once more")] {
        put!(
            &mut body,
            "<tr><th><label for=\"{}\">{}</label></th><td><input id=\"{}\" type=password name=\"{}\" \
             autocomplete=\"new-password\" required></td></tr>\n",
            name,
            label,
            name,
            name
        );
    }
    put!(
        &mut body,
        "<tr><th></th><td><button name=\"cmd\" value=\"Forgot\">Set the password</button></td></tr></table>\n\
         <p class=\"note\">A password has at least {} characters. All your sessions and tokens end.</p></form>\n",
        SHORTEST
    );
    dialog(request, told, TITLE, &body)
}

/// Answers a form of these pages.
pub fn act(request: &PageRequest<'_>, policy: AccountPolicy, sent: &ReceivedForm) -> Response {
    if let (Some(key), Some(people)) = (sent.get("key"), &request.site.people) {
        return set(request, people, sent, key);
    }
    match allowed(request, policy) {
        Ok(links) => send(request, &links, sent.text("login_name")),
        Err(answer) => *answer,
    }
}

fn send(request: &PageRequest<'_>, links: &ResetOffer<'_>, name: &str) -> Response {
    let (outbox, site) = (links.outbox.clone(), links.site.to_owned());
    let asked = links.people.request_reset(name, request.caller.from, move |made| {
        let queued = made.map_err(|error| error.to_string()).and_then(|made| {
            let link = format!("{site}/?cmd=Forgot&user={}&key={}", escape(&made.user.login), made.secret);
            outbox.send(&new_password(&made.user, &site, &link)).map_err(|error| error.to_string())
        });
        if let Err(why) = queued {
            outbox.log_failure(format!("a link for a new password was not mailed: {why}"));
        }
    });
    match asked {
        Ok(()) => {
            let text = "If there is such a user with an e-mail address, a mail with a link is on its way. The link works once, \
                        within 30 minutes";
            dialog(request, Told::Done(text), TITLE, "")
        }
        Err(error) => refusal::people_failed(request, &error),
    }
}

fn set(request: &PageRequest<'_>, people: &People, sent: &ReceivedForm, key: &str) -> Response {
    let (login, new) = (sent.text("user"), sent.get("newpwd").unwrap_or_default());
    if new != sent.get("newpwd2").unwrap_or_default() {
        return choose(request, login, key, Told::Wrong("the two new passwords differ"));
    }
    match people.use_reset(login, key, new, request.caller.from) {
        Ok(user) => {
            let body = "<p><a href=\"?cmd=Login\">Log in</a></p>\n";
            let answer = dialog(request, Told::Done("The password was set; all sessions and tokens have ended"), TITLE, body);
            response::done(answer, format!("user '{}': password by a link from a mail", user.login))
        }
        Err(error) => match mendable(&error) {
            Some(text) => choose(request, login, key, Told::Wrong(&text)),
            None => failed(request, &error),
        },
    }
}
