//! Pages about accounts: a user's own account and password.
//!
//! A page that changes an account needs a session: a token or a password in a request has fewer rights than its user,
//! and must not become a lasting access. A change of the password or of the mail address also needs the password,
//! because a new password can be requested by mail.

use http::StatusCode;
use tampu_logbook::{
    people::{People, PeopleError, Principal, user::User},
    store::BookInfo,
};

use crate::pages::{
    command::PageCommand,
    csrf,
    html::{SafeHtml, put},
    layout, login_form, refusal,
    request::PageRequest,
    response::Response,
    sent::ReceivedForm,
    settings::BookSettings,
};

pub mod own;
pub mod password;
pub mod register;
pub mod users;

/// The options of ELOG about accounts: those of a book, or outside of books the strictest of all books.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountPolicy {
    /// `Self register`: 0 no, 1 at once, 2 with a notice to administrators, 3 after an administrator's approval.
    pub self_register: u8,
    /// `Allow password change`.
    pub change_password: bool,
}

impl AccountPolicy {
    /// Returns the policy of a book's settings.
    pub fn of(settings: &BookSettings) -> AccountPolicy {
        AccountPolicy { self_register: settings.self_register(), change_password: settings.allow_password_change() }
    }

    /// Returns the policy at a place: of its book, or of the site.
    pub fn at(request: &PageRequest<'_>, settings: Option<&BookSettings>) -> AccountPolicy {
        if let Some(settings) = settings {
            return AccountPolicy::of(settings);
        }
        let books = request.site.books().unwrap_or_default();
        let of = |info: &BookInfo| AccountPolicy::of(&BookSettings::of(&info.book));
        books.iter().map(of).fold(AccountPolicy { self_register: 0, change_password: true }, |all, one| AccountPolicy {
            self_register: all.self_register.max(one.self_register),
            change_password: all.change_password && one.change_password,
        })
    }
}

/// The user of a request's session.
pub struct SessionUser<'a> {
    pub people: &'a People,
    /// The user, or the owner of a site without users.
    pub principal: Principal,
}

impl<'a> SessionUser<'a> {
    /// Returns the user of the session, or the response that asks for a login.
    pub fn of(request: &PageRequest<'a>) -> Result<SessionUser<'a>, Box<Response>> {
        let site = request.site;
        let Some(people) = &site.people else {
            let text = "Error: this site has no users";
            return Err(Box::new(layout::error(request, StatusCode::FORBIDDEN, text)));
        };
        let Some(secret) = &request.session else { return Err(Box::new(login_form::answer(request, None))) };
        match people.by_session(secret) {
            // A request can have other credentials beside the cookie.
            Ok(principal) if principal.login == request.caller.login => Ok(SessionUser { people, principal }),
            Ok(_) | Err(PeopleError::Ended(..)) => Err(Box::new(login_form::answer(request, None))),
            Err(error) => Err(Box::new(refusal::people_failed(request, &error))),
        }
    }

    /// Returns the record of the user. The owner of a site without users has none.
    pub fn user(&self, request: &PageRequest<'_>) -> Result<User, Box<Response>> {
        match self.people.user(&self.principal.login) {
            Ok(user) => Ok(user),
            Err(PeopleError::NoUser(_)) => {
                let text =
                    "There are no users yet, and you are the owner: 'tampu book users add LOGIN --admin' adds the first one";
                Err(Box::new(layout::error(request, StatusCode::NOT_FOUND, text)))
            }
            Err(error) => Err(Box::new(refusal::people_failed(request, &error))),
        }
    }
}

/// Answers with a page about accounts; `None` if the command is another one.
pub fn page(request: &PageRequest<'_>, settings: Option<&BookSettings>) -> Option<Response> {
    let policy = || AccountPolicy::at(request, settings);
    Some(match request.command()? {
        PageCommand::Config => own::page(request, policy()),
        PageCommand::ChangePassword => password::page(request, policy()),
        PageCommand::NewUser => register::page(request, policy()),
        PageCommand::Users => users::page(request, Told::Nothing),
        _ => return None,
    })
}

/// Answers a form of these pages; `None` if the form is another one. The caller has checked that it is this site's.
pub fn sent(
    request: &PageRequest<'_>,
    settings: Option<&BookSettings>,
    command: PageCommand,
    form: &ReceivedForm,
) -> Option<Response> {
    let policy = || AccountPolicy::at(request, settings);
    Some(match command {
        PageCommand::Save | PageCommand::Config if form.get("config").is_some() => own::save(request, policy(), form),
        PageCommand::ChangePassword => password::change(request, policy(), form),
        PageCommand::NewUser => register::register(request, policy(), form),
        PageCommand::Users => users::act(request, form),
        _ => return None,
    })
}

/// A message above a form.
#[derive(Debug, Clone, Copy)]
pub enum Told<'a> {
    Nothing,
    Done(&'a str),
    /// What was wrong; programs look for its element.
    Wrong(&'a str),
}

/// Writes a message.
pub fn tell(body: &mut String, told: Told<'_>) {
    match told {
        Told::Nothing => {}
        Told::Done(text) => put!(body, "<p class=\"done\">{}</p>\n", text),
        Told::Wrong(text) => {
            put!(body, "<table class=\"wrong\"><tr><td class=\"errormsg\">{}</td></tr></table>\n", text);
        }
    }
}

/// Begins a form of this site with its hidden fields.
pub fn begin_form(request: &PageRequest<'_>, body: &mut String, hidden: &[(&str, &str)]) {
    body.push_str("<form name=form1 class=\"account\" method=\"post\" action=\"./\">\n");
    let token = csrf::token(request.site, request.caller, request.session.as_deref());
    for (name, value) in [(csrf::FIELD, token.as_str())].iter().chain(hidden) {
        put!(body, "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n", *name, *value);
    }
}

/// Returns the page with a form, its message and the way back.
pub fn dialog(request: &PageRequest<'_>, told: Told<'_>, title: &str, content: &str) -> Response {
    let status = if matches!(told, Told::Wrong(_)) { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let mut body = String::new();
    put!(&mut body, "<div class=\"selframe accounts\">\n<h1>{}</h1>\n", title);
    tell(&mut body, told);
    body.push_str(content);
    let back = if request.root.is_empty() { "" } else { "<a href=\"./\">Back to the logbook</a> | " };
    put!(&mut body, "<p class=\"steps\">{}<a href=\"{}./\">All logbooks</a></p>\n</div>\n", SafeHtml(back), request.root);
    layout::plain(request, status, title, &body)
}

/// Returns the text of an error that a user can mend; `None` for the others.
pub fn mendable(error: &PeopleError) -> Option<String> {
    match error {
        PeopleError::User(_) | PeopleError::Password(_) | PeopleError::Invalid(_) | PeopleError::IsThere(_) => {
            Some(error.to_string())
        }
        PeopleError::Wrong => Some("the password is wrong".to_owned()),
        _ => None,
    }
}
