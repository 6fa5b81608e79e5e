//! The page on which people register: `Self register`.
//!
//! With 1 and 2 an account exists at once; with 3 an administrator approves it. The response to a request for approval
//! is the same for a login that is taken, because it would show the logins of the site. With 1 and 2 the form has to say
//! so.

use http::StatusCode;
use tampu_logbook::{
    mail::accounts::{Decision, registered},
    people::{NewAccount, People, PeopleError, password::SHORTEST, session, user::User},
};

use super::{
    dialog::{Told, begin_form, dialog, mendable},
    policy::AccountPolicy,
};
use crate::pages::{
    html::put,
    layout,
    post::login::set_cookie,
    refusal,
    request::PageRequest,
    response::{self, LoggedFailure, Response},
    sent::ReceivedForm,
};

/// Answers with the form.
pub fn page(request: &PageRequest<'_>, policy: AccountPolicy) -> Response {
    match allowed(request, policy) {
        Ok(_) => form(request, policy, &NewAccount::default(), Told::Nothing),
        Err(answer) => *answer,
    }
}

fn allowed<'a>(request: &PageRequest<'a>, policy: AccountPolicy) -> Result<&'a People, Box<Response>> {
    let site = request.site;
    let refused = |text: &str| Err(Box::new(layout::error(request, StatusCode::FORBIDDEN, text)));
    match &site.people {
        Some(people) if policy.self_register > 0 => Ok(people),
        Some(_) => refused("Error: accounts are made by the administrator of the logbook ('Self register = 0')"),
        None => refused("Error: this site has no users"),
    }
}

fn form(request: &PageRequest<'_>, policy: AccountPolicy, new: &NewAccount, told: Told<'_>) -> Response {
    let mut body = String::new();
    if policy.self_register == 3 {
        body.push_str("<p class=\"note\">An administrator has to approve the account before the first login.</p>\n");
    }
    begin_form(request, &mut body, &[]);
    body.push_str("<table>\n");
    for (name, label, kind, complete, value) in [
        ("new_user_name", "Login", "text", "username", new.login.as_str()),
        ("new_full_name", "Full name", "text", "name", &new.full_name),
        ("new_user_email", "E-mail", "email", "email", &new.email),
        ("newpwd", "Password", "password", "new-password", ""),
        ("newpwd2", "Password once more", "password", "new-password", ""),
    ] {
        put!(
            &mut body,
            "<tr><th><label for=\"{}\">{}</label></th><td><input id=\"{}\" type=\"{}\" name=\"{}\" value=\"{}\" autocomplete=\"{}\" \
             size=\"32\" maxlength=\"256\" required></td></tr>\n",
            name,
            label,
            name,
            kind,
            name,
            value,
            complete
        );
    }
    put!(
        &mut body,
        "<tr><th></th><td><button name=\"cmd\" value=\"New user\">Register</button></td></tr></table>\n\
         <p class=\"note\">A password has at least {} characters. Others see your full name: as the author, where a \
         logbook fills it in, and in signatures.</p></form>\n",
        SHORTEST
    );
    dialog(request, told, "Register as a new user", &body)
}

/// Makes the account, or keeps the registration for an administrator.
pub fn register(request: &PageRequest<'_>, book: Option<&str>, policy: AccountPolicy, sent: &ReceivedForm) -> Response {
    let people = match allowed(request, policy) {
        Ok(people) => people,
        Err(answer) => return *answer,
    };
    let text = |name: &str| sent.text(name).to_owned();
    let password = sent.get("newpwd").unwrap_or_default().to_owned();
    let new = NewAccount {
        login: text("new_user_name"),
        full_name: text("new_full_name"),
        email: text("new_user_email"),
        password,
        book: book.map(ToOwned::to_owned),
    };
    if sent.get("newpwd2").unwrap_or_default() != new.password {
        return form(request, policy, &new, Told::Wrong("the two passwords differ"));
    }
    let refused = |error: PeopleError| match mendable(&error) {
        Some(text) => form(request, policy, &new, Told::Wrong(&text)),
        None => refusal::people_failed(request, &error),
    };
    let from = request.caller.from;
    if policy.self_register == 3 {
        return match people.request_account(&new, from) {
            Ok(registration) => {
                let text = "Your registration was received. You can log in after an administrator has approved it";
                let answer = dialog(request, Told::Done(text), "Register as a new user", "");
                let user = User {
                    full_name: registration.full_name.clone(),
                    email: registration.email.clone(),
                    ..User::new(&registration.login)
                };
                let link = super::approval::address(request, &registration.id);
                let answer = with_notice(request, people, answer, &user, Decision::Waits(link.as_deref()));
                response::done(answer, format!("registration {} of '{}' waits for approval", registration.id, registration.login))
            }
            Err(error) => refused(error),
        };
    }
    let made = people.register(&new, from).and_then(|user| people.log_in(&user.login, &new.password, from));
    match made {
        Ok((_, secret)) => {
            let mut answer = response::redirect("./");
            set_cookie(&mut answer, &session::cookie(&secret, people.settings().longest, request.base.starts_with("https://")));
            if policy.self_register == 2 {
                let user = User { full_name: new.full_name.clone(), email: new.email.clone(), ..User::new(&new.login) };
                answer = with_notice(request, people, answer, &user, Decision::Made);
            }
            response::done(answer, format!("user '{}' registered", new.login))
        }
        Err(error) => refused(error),
    }
}

/// Mails a registration to the administrators of the site. A mail that cannot be queued is logged.
fn with_notice(request: &PageRequest<'_>, people: &People, mut answer: Response, new: &User, decision: Decision<'_>) -> Response {
    let Some(outbox) = &request.site.mail else { return answer };
    // A request could name another host.
    let url = request.site.config.url.trim_end_matches('/');
    let site = (!url.is_empty()).then_some(url);
    let queued = people.users().map_err(|error| error.to_string()).and_then(|users| {
        let mail = registered(&users, new, &request.caller.from.to_string(), decision, site);
        mail.map_or(Ok(()), |mail| outbox.send(&mail).map(drop).map_err(|error| error.to_string()))
    });
    if let Err(why) = queued {
        let why = format!("the registration of '{}' was not mailed to the administrators: {why}", new.login);
        answer.extensions_mut().insert(LoggedFailure(why));
    }
    answer
}
