//! The page on which users change their own password.

use http::StatusCode;
use tampu_logbook::people::{password::SHORTEST, session};

use super::{
    dialog::{Told, begin_form, dialog, mendable},
    policy::AccountPolicy,
    session_user::SessionUser,
};
use crate::pages::{
    html::{SafeHtml, put},
    layout,
    post::login::set_cookie,
    refusal,
    request::PageRequest,
    response::{self, Response},
    sent::ReceivedForm,
};

/// Answers with the form.
pub fn page(request: &PageRequest<'_>, policy: AccountPolicy) -> Response {
    match allowed(request, policy) {
        Ok(_) => form(request, Told::Nothing),
        Err(answer) => *answer,
    }
}

fn allowed<'a>(request: &PageRequest<'a>, policy: AccountPolicy) -> Result<SessionUser<'a>, Box<Response>> {
    let session = SessionUser::of(request)?;
    let user = session.user(request)?;
    let refused = |text: &str| Err(Box::new(layout::error(request, StatusCode::FORBIDDEN, text)));
    if !policy.change_password {
        return refused("Error: passwords are not changed here ('Allow password change = 0'): ask the administrator");
    }
    if user.password.is_none() {
        return refused("Error: this account has no password here: the site's directory keeps it, or it has tokens only");
    }
    Ok(session)
}

fn form(request: &PageRequest<'_>, told: Told<'_>) -> Response {
    let mut body = String::new();
    begin_form(request, &mut body, &[]);
    body.push_str("<table>\n");
    for (name, label, complete) in [
        ("oldpwd", "Old password", "current-password"),
        ("newpwd", "New password", "new-password"),
        ("newpwd2", "New password once more", "new-password"),
    ] {
        put!(
            &mut body,
            "<tr><th><label for=\"{}\">{}</label></th><td><input id=\"{}\" type=password name=\"{}\" autocomplete=\"{}\" required></td></tr>\n",
            name,
            label,
            name,
            name,
            complete
        );
    }
    put!(
        &mut body,
        "<tr><th></th><td><button name=\"cmd\" value=\"Change password\">Change password</button></td></tr></table>\n\
         <p class=\"note\">A password has at least {} characters. {}</p></form>\n",
        SHORTEST,
        SafeHtml("With a new password all your other sessions and all your tokens end.")
    );
    dialog(request, told, "Change password", &body)
}

/// Changes the password, ends all sessions and tokens of the user, and begins a new session here.
pub fn change(request: &PageRequest<'_>, policy: AccountPolicy, sent: &ReceivedForm) -> Response {
    let session = match allowed(request, policy) {
        Ok(session) => session,
        Err(answer) => return *answer,
    };
    let field = |name: &str| sent.get(name).unwrap_or_default();
    let (old, new) = (field("oldpwd"), field("newpwd"));
    if new != field("newpwd2") {
        return form(request, Told::Wrong("the two new passwords differ"));
    }
    let (people, login) = (session.people, session.principal.login.as_str());
    // A person at another user's open session has to know the password, too.
    let changed = people.by_password(login, old, request.caller.from).and_then(|_| people.set_password(login, new));
    let secret = changed.and_then(|()| people.log_in(login, new, request.caller.from));
    match secret {
        Ok((_, secret)) => {
            let mut answer = response::redirect("?cmd=Config&saved=password");
            let secure = request.base.starts_with("https://");
            set_cookie(&mut answer, &session::cookie(&secret, people.settings().longest, secure));
            response::done(answer, format!("user '{login}': own password"))
        }
        Err(error) => match mendable(&error) {
            Some(text) => form(request, Told::Wrong(&text)),
            None => refusal::people_failed(request, &error),
        },
    }
}
