//! The page of the site's users, for administrators: registrations, users, and their rights in logbooks.

use http::StatusCode;
use tampu_logbook::{
    mail::accounts::approved,
    people::{PeopleError, Registration, Right, access::Subject, password::Password, user::User},
};

use super::{
    book_names,
    dialog::{Told, begin_form, begin_small_form, dialog, mendable},
    new_book,
    session_user::SessionUser,
};
use crate::pages::{
    address::escape,
    html::put,
    layout, refusal,
    request::PageRequest,
    response::{self, LoggedFailure, Response},
    sent::ReceivedForm,
};

/// Returns the session of an administrator of the site.
pub fn administrator<'a>(request: &PageRequest<'a>) -> Result<SessionUser<'a>, Box<Response>> {
    let session = SessionUser::of(request)?;
    if !session.principal.admin {
        let text = "Error: only administrators of the site manage its users and logbooks";
        return Err(Box::new(layout::error(request, StatusCode::FORBIDDEN, text)));
    }
    Ok(session)
}

/// Answers with the list of users, or with the form of one of them (`user=LOGIN`).
pub fn page(request: &PageRequest<'_>, told: Told<'_>) -> Response {
    let told = match request.query.get("saved") {
        Some(_) => Told::Done("Saved"),
        None => told,
    };
    let shown = || {
        let session = administrator(request)?;
        match request.query.get("user") {
            Some(login) => one(request, &session, login, told),
            None => all(request, &session, told),
        }
    };
    shown().unwrap_or_else(|answer: Box<Response>| *answer)
}

fn failed(request: &PageRequest<'_>) -> impl Fn(PeopleError) -> Box<Response> + Copy {
    |error| Box::new(refusal::people_failed(request, &error))
}

fn all(request: &PageRequest<'_>, session: &SessionUser<'_>, told: Told<'_>) -> Result<Response, Box<Response>> {
    let mut body = String::new();
    let waiting = session.people.registrations().map_err(failed(request))?;
    if !waiting.is_empty() {
        registrations(request, &waiting, &mut body);
    }
    body.push_str("<h2>Users</h2>\n<table class=\"selection\"><tr><th>Login</th><th>Full name</th><th>E-mail</th><th>Groups</th><th></th></tr>\n");
    for user in session.people.users().map_err(failed(request))? {
        let kind = match (user.inactive, user.admin, user.password.is_some()) {
            (true, ..) => "disabled",
            (_, true, _) => "administrator",
            (_, _, false) => "no password",
            _ => "",
        };
        put!(
            &mut body,
            "<tr><td><a href=\"?cmd=Users&amp;user={}\">{}</a></td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            escape(&user.login),
            user.login,
            user.full_name,
            user.email,
            user.groups.join(", "),
            kind
        );
    }
    body.push_str("</table>\n<h2>New user</h2>\n");
    begin_form(request, &mut body, &[("act", "add")]);
    body.push_str("<table>\n");
    fields(&User::default(), true, &mut body);
    body.push_str("<tr><th></th><td><button name=\"cmd\" value=\"Users\">Add user</button></td></tr></table></form>\n");
    let books = request.site.books().map_err(|error| Box::new(request.failed(&error)))?;
    new_book::form(request, &books, &mut body);
    book_names::forms(request, &books, &mut body)?;
    Ok(dialog(request, told, "Users", &body))
}

fn registrations(request: &PageRequest<'_>, waiting: &[Registration], body: &mut String) {
    body.push_str(
        "<h2>Registrations that wait for approval</h2>\n<table class=\"selection\"><tr><th>Login</th><th>Full name</th><th>E-mail</th>\
         <th>Time</th><th>From</th><th></th></tr>\n",
    );
    for registration in waiting {
        let at = request.site_time(registration.at);
        put!(
            body,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>",
            registration.login,
            registration.full_name,
            registration.email,
            at,
            registration.from
        );
        if registration.taken {
            body.push_str("<span class=\"warning\">the login or name is taken</span> ");
        }
        if registration.author {
            body.push_str("<span class=\"warning\">imported entries have this author: is it the same person?</span> ");
        }
        for (act, label) in [("approve", "Approve"), ("refuse", "Refuse")] {
            if act == "approve" && registration.taken {
                continue;
            }
            begin_small_form(request, body, &[("act", act), ("registration", &registration.id)]);
            put!(body, "<button name=\"cmd\" value=\"Users\">{}</button></form> ", label);
        }
        body.push_str("</td></tr>\n");
    }
    body.push_str("</table>\n");
}

/// Writes the fields of a user; with the login if it is a new one.
fn fields(user: &User, is_new: bool, body: &mut String) {
    if is_new {
        body.push_str(
            "<tr><th><label for=\"login\">Login</label></th><td><input id=\"login\" type=\"text\" name=\"user\" size=\"32\" \
             maxlength=\"64\" required></td></tr>\n",
        );
    }
    let groups = user.groups.join(", ");
    for (name, label, value) in [
        ("new_full_name", "Full name", &user.full_name),
        ("new_user_email", "E-mail", &user.email),
        ("groups", "Groups", &groups),
    ] {
        put!(
            body,
            "<tr><th><label for=\"{}\">{}</label></th><td><input id=\"{}\" type=\"text\" name=\"{}\" size=\"40\" value=\"{}\"></td></tr>\n",
            name,
            label,
            name,
            name,
            value
        );
    }
    body.push_str(
        "<tr><th><label for=\"newpwd\">New password</label></th><td><input id=\"newpwd\" type=password name=\"newpwd\" size=\"20\" \
         autocomplete=\"new-password\"> <span class=\"note\">",
    );
    body.push_str(if is_new { "empty: tokens only" } else { "empty: as it is" });
    body.push_str("</span></td></tr>\n<tr><th></th><td>");
    for (name, label, is) in [("admin", "administrator of the site", user.admin), ("inactive", "disabled", user.inactive)] {
        if is_new && name == "inactive" {
            continue;
        }
        let checked = if is { " checked" } else { "" };
        put!(body, "<label><input type=\"checkbox\" name=\"{}\" value=\"1\"{}> {}</label>", name, checked, label);
    }
    body.push_str("</td></tr>\n");
}

fn one(request: &PageRequest<'_>, session: &SessionUser<'_>, login: &str, told: Told<'_>) -> Result<Response, Box<Response>> {
    let people = session.people;
    let user = people.user(login).map_err(failed(request))?;
    let mut body = String::new();
    begin_form(request, &mut body, &[("user", login), ("act", "save")]);
    body.push_str("<table>\n");
    fields(&user, false, &mut body);
    body.push_str("</table>\n<h2>Rights of this user</h2>\n<p class=\"note\">They add to those of the user's groups, of everybody and of guests.</p>\n\
        <table class=\"selection\"><tr><th>Logbook</th>");
    for right in Right::ALL {
        put!(&mut body, "<th>{}</th>", right.name());
    }
    body.push_str("</tr>\n");
    let books = request.site.books().map_err(|error| Box::new(request.failed(&error)))?;
    for info in books.iter() {
        let own = own_rights(people, &info.book.name, login).map_err(failed(request))?;
        put!(&mut body, "<tr><td>{}</td>", info.book.name);
        for right in Right::ALL {
            let checked = if own.contains(&right) { " checked" } else { "" };
            put!(
                &mut body,
                "<td><input type=\"checkbox\" name=\"may\" value=\"{} {}\" aria-label=\"{} {}\"{}></td>",
                right.name(),
                info.book.name,
                right.name(),
                info.book.name,
                checked
            );
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</table>\n<p><button name=\"cmd\" value=\"Users\">Save</button></p></form>\n");
    begin_form(request, &mut body, &[("user", login), ("act", "remove")]);
    body.push_str(
        "<p><label><input type=\"checkbox\" name=\"confirm\" value=\"Yes\" required> remove this user; what the user wrote stays</label> \
         <button name=\"cmd\" value=\"Users\">Remove</button></p></form>\n<p class=\"steps\"><a href=\"?cmd=Users\">All users</a></p>\n",
    );
    Ok(dialog(request, told, &format!("User {login}"), &body))
}

/// Returns the rights that a book gives to a user by name.
fn own_rights(people: &tampu_logbook::people::People, book: &str, login: &str) -> Result<Vec<Right>, PeopleError> {
    let (access, _) = people.access(book)?;
    let of = |grant: &&tampu_logbook::people::access::Grant| grant.to == Subject::User(login.to_owned());
    Ok(access.grants.iter().filter(of).flat_map(|grant| grant.may.clone()).collect())
}

/// Carries out what a form of this page asks for.
pub fn act(request: &PageRequest<'_>, sent: &ReceivedForm) -> Response {
    let done = || {
        let session = administrator(request)?;
        let (login, registration) = (sent.text("user"), sent.text("registration"));
        let people = session.people;
        let mut notice = Ok(());
        let done = match sent.text("act") {
            "approve" => people.approve(registration).map(|user| {
                notice = mail_approval(request, &user);
                format!("registration of '{}': approved", user.login)
            }),
            "refuse" => people.refuse(registration).map(|refused| format!("registration of '{}': refused", refused.login)),
            "make-book" => new_book::make(request, sent).map(|()| format!("logbook '{}': made", sent.text("book"))),
            "rename-book" => book_names::rename(request, sent),
            "delete-book" if sent.text("confirm") == "Yes" => book_names::delete(request, sent),
            "undelete-book" => book_names::undelete(request, sent),
            "add" => add(&session, sent).map(|()| format!("user '{login}': added")),
            "save" => save(request, &session, sent).map(|()| format!("user '{login}': changed")),
            "remove" if sent.text("confirm") == "Yes" => {
                let own = PeopleError::Invalid("you cannot remove your own account".to_owned());
                if login == session.principal.login { Err(own) } else { people.drop_user(login) }
                    .map(|()| format!("user '{login}': removed"))
            }
            _ => Err(PeopleError::Invalid("nothing was chosen; a removal needs its box ticked".to_owned())),
        };
        match done {
            Ok(what) => {
                let mut answer = response::done(response::redirect("?cmd=Users&saved=1"), what);
                if let Err(why) = notice {
                    answer.extensions_mut().insert(LoggedFailure(why));
                }
                Ok(answer)
            }
            Err(error) => match mendable(&error) {
                Some(text) => all(request, &session, Told::Wrong(&text)),
                None => Err(Box::new(refusal::people_failed(request, &error))),
            },
        }
    };
    done().unwrap_or_else(|answer: Box<Response>| *answer)
}

/// Mails the approval to the user.
pub(super) fn mail_approval(request: &PageRequest<'_>, user: &User) -> Result<(), String> {
    let url = request.site.config.url.trim_end_matches('/');
    let mail = approved(user, if url.is_empty() { &request.base } else { url });
    let (Some(outbox), Some(mail)) = (&request.site.mail, mail) else { return Ok(()) };
    let failed = |error| format!("the approval of '{}' was not mailed: {error}", user.login);
    outbox.send(&mail).map(drop).map_err(failed)
}

fn groups(sent: &ReceivedForm) -> Vec<String> {
    sent.text("groups").split(',').map(|group| group.trim().to_owned()).filter(|group| !group.is_empty()).collect()
}

fn add(session: &SessionUser<'_>, sent: &ReceivedForm) -> Result<(), PeopleError> {
    let password = sent.get("newpwd").filter(|password| !password.is_empty()).map(Password::new).transpose()?;
    let user = User {
        full_name: sent.text("new_full_name").to_owned(),
        email: sent.text("new_user_email").to_owned(),
        groups: groups(sent),
        admin: sent.is("admin"),
        password,
        ..User::new(sent.text("user"))
    };
    session.people.add_user(user)
}

fn save(request: &PageRequest<'_>, session: &SessionUser<'_>, sent: &ReceivedForm) -> Result<(), PeopleError> {
    let (people, login) = (session.people, sent.text("user"));
    let (admin, inactive) = (sent.is("admin"), sent.is("inactive"));
    if login == session.principal.login && (!admin || inactive) {
        let text = "you cannot disable yourself, or take the administration from yourself: another administrator can";
        return Err(PeopleError::Invalid(text.to_owned()));
    }
    people.user(login)?;
    let password = sent.get("newpwd").filter(|password| !password.is_empty());
    let groups = groups(sent);
    people.change_user(login, |user| {
        user.full_name = sent.text("new_full_name").to_owned();
        user.email = sent.text("new_user_email").to_owned();
        user.groups.clone_from(&groups);
        (user.admin, user.inactive) = (admin, inactive);
    })?;
    if inactive {
        people.end_sessions(login)?;
    }
    if let Some(password) = password {
        people.set_password(login, password)?;
    }
    for info in request.site.books()?.iter() {
        let book = &info.book.name;
        let chosen = |right: &Right| {
            sent.fields.iter().any(|(name, value)| {
                name == "may" && value.split_once(' ').is_some_and(|(may, of)| may == right.name() && of == book)
            })
        };
        let may: Vec<Right> = Right::ALL.into_iter().filter(chosen).collect();
        if own_rights(people, book, login)? != may {
            let mut access = people.access(book)?.0;
            access.give(Subject::User(login.to_owned()), may);
            people.set_access(book, &access)?;
        }
    }
    Ok(())
}
