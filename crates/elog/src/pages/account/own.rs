//! The page of one's own account: `Config`.

use tampu_logbook::{
    book::same_name,
    people::{PeopleError, user::User},
};

use super::{
    dialog::{Told, begin_form, dialog, mendable},
    policy::AccountPolicy,
    rules,
    session_user::SessionUser,
};
use crate::pages::{
    html::{SafeHtml, put},
    refusal,
    request::PageRequest,
    response::{self, Response},
    sent::ReceivedForm,
    settings::BookSettings,
};

/// Answers with the page.
pub fn page(request: &PageRequest<'_>, policy: AccountPolicy) -> Response {
    let told = match request.query.get("saved") {
        Some("account") => Told::Done("The account was saved"),
        Some("tested") => Told::Done("A test was sent to where this rule's mails go"),
        Some("password") => Told::Done("The password was changed; all other sessions and all tokens have ended"),
        _ => Told::Nothing,
    };
    let shown = || {
        let session = SessionUser::of(request)?;
        let user = session.user(request)?;
        Ok(form(request, policy, &user, told))
    };
    shown().unwrap_or_else(|answer: Box<Response>| *answer)
}

fn form(request: &PageRequest<'_>, policy: AccountPolicy, user: &User, told: Told<'_>) -> Response {
    let mut body = String::new();
    begin_form(request, &mut body, &[("config", user.login.as_str())]);
    put!(&mut body, "<table><tr><th>Login</th><td class=\"fixed\">{}</td></tr>\n", user.login);
    put!(
        &mut body,
        "<tr><th><label for=\"full\">Full name</label></th><td><input id=\"full\" type=\"text\" name=\"new_full_name\" size=\"40\" \
         maxlength=\"256\" value=\"{}\"></td></tr>\n",
        user.full_name
    );
    put!(
        &mut body,
        "<tr><th><label for=\"mail\">E-mail</label></th><td><input id=\"mail\" type=\"email\" name=\"new_user_email\" size=\"40\" \
         maxlength=\"256\" autocomplete=\"email\" value=\"{}\"></td></tr>\n",
        user.email
    );
    body.push_str(
        "<tr><th><label for=\"own\">Password</label></th><td><input id=\"own\" type=password name=\"password\" size=\"20\" \
         autocomplete=\"current-password\"> <span class=\"note\">needed for another e-mail address</span></td></tr>\n",
    );
    notify_field(request, user, &mut body);
    if !user.groups.is_empty() {
        put!(&mut body, "<tr><th>Groups</th><td>{}</td></tr>\n", user.groups.join(", "));
    }
    body.push_str("<tr><th></th><td><button name=\"cmd\" value=\"Save\">Save</button></td></tr></table></form>\n");
    rules::write(request, user, &mut body);
    body.push_str("<p class=\"steps\">");
    if policy.change_password && user.password.is_some() {
        body.push_str("<a href=\"?cmd=Change%20password\">Change password</a>");
    }
    if user.admin {
        body.push_str("<a href=\"?cmd=Users\">Users</a>");
        if !request.root.is_empty() {
            body.push_str("<a href=\"?cmd=Admin\">Change elogd.cfg</a>");
        }
    }
    body.push_str("<a href=\"?cmd=Logout\">Log out</a><a href=\"?cmd=Logout&amp;everywhere=1\">Log out everywhere</a></p>\n");
    dialog(request, told, "Your account", &body)
}

/// Returns the logbooks whose entries can be mailed to the user: those that the user may read and ELOG's options leave open.
fn mailed_books(request: &PageRequest<'_>) -> Vec<String> {
    if request.site.mail.is_none() {
        return Vec::new();
    }
    let books = request.site.books().unwrap_or_default();
    let open = books.iter().filter(|info| request.sees(info) && !BookSettings::of(&info.book).mails_no_users());
    open.map(|info| info.book.name.clone()).collect()
}

/// Writes the choice of logbooks whose entries are mailed to the user.
fn notify_field(request: &PageRequest<'_>, user: &User, body: &mut String) {
    let books = mailed_books(request);
    if books.is_empty() {
        return;
    }
    body.push_str(
        "<tr><th>Mail about entries of</th><td><input type=\"hidden\" name=\"notify_asked\" value=\"1\"><div class=\"choices\">",
    );
    for book in &books {
        let checked = if user.wants_mail_of(book) { " checked" } else { "" };
        put!(body, "<label><input type=\"checkbox\" name=\"notify\" value=\"{}\"{}> {}</label> ", book, SafeHtml(checked), book);
    }
    body.push_str("</div></td></tr>\n");
}

/// Returns the logbooks that the form chooses. Those that it did not show keep their choice.
fn chosen_books(request: &PageRequest<'_>, user: &User, form_sent: &ReceivedForm) -> Vec<String> {
    if form_sent.get("notify_asked").is_none() {
        return user.notify.clone();
    }
    let shown = mailed_books(request);
    let is_shown = |book: &str| shown.iter().any(|name| same_name(name, book));
    let ticked = form_sent.fields.iter().filter(|(name, book)| name == "notify" && is_shown(book)).map(|(_, book)| book.clone());
    let ticked: Vec<String> = ticked.collect();
    // A choice of all logbooks stays one as long as nothing is taken from it.
    if user.notify.iter().any(|book| book == "*") && ticked.len() == shown.len() {
        return user.notify.clone();
    }
    let unseen = user.notify.iter().filter(|book| *book != "*" && !is_shown(book)).cloned();
    ticked.into_iter().chain(unseen).collect()
}

/// Saves the form.
pub fn save(request: &PageRequest<'_>, policy: AccountPolicy, form_sent: &ReceivedForm) -> Response {
    let saved = || {
        let session = SessionUser::of(request)?;
        let user = session.user(request)?;
        let new = User {
            full_name: form_sent.text("new_full_name").to_owned(),
            email: form_sent.text("new_user_email").to_owned(),
            notify: chosen_books(request, &user, form_sent),
            ..user.clone()
        };
        let wrong = |text: &str| Box::new(form(request, policy, &new, Told::Wrong(text)));
        if form_sent.text("config") != user.login {
            return Err(wrong("this form is about another user than the one of this session"));
        }
        let refused = |error: PeopleError| match mendable(&error) {
            Some(text) => wrong(&text),
            None => Box::new(refusal::people_failed(request, &error)),
        };
        // A form about rules has no other fields.
        if let Some(done) = rules::act(request, &user, form_sent) {
            let wrong = |error: PeopleError| match mendable(&error) {
                Some(text) => Box::new(form(request, policy, &user, Told::Wrong(&text))),
                None => Box::new(refusal::people_failed(request, &error)),
            };
            let word = done.map_err(wrong)?;
            return Ok(response::redirect(&format!("?cmd=Config&saved={word}")));
        }
        if new.email != user.email {
            let password = form_sent.get("password").unwrap_or_default();
            if password.is_empty() {
                return Err(wrong("another e-mail address needs your password: a new password can be requested at that address"));
            }
            session.people.by_password(&user.login, password, request.caller.from).map_err(refused)?;
        }
        session.people.check_full_name(&user.login, &new.full_name).map_err(refused)?;
        let change = |kept: &mut User| {
            kept.full_name.clone_from(&new.full_name);
            kept.email.clone_from(&new.email);
            kept.notify.clone_from(&new.notify);
        };
        session.people.change_user(&user.login, change).map_err(refused)?;
        Ok(response::done(
            response::redirect("?cmd=Config&saved=account"),
            format!("user '{}': own name and address", user.login),
        ))
    };
    saved().unwrap_or_else(|answer: Box<Response>| *answer)
}
