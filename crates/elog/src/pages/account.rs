//! Pages about accounts: a user's own account and password.
//!
//! A page that changes an account needs a session: a token or a password in a request has fewer rights than its user,
//! and must not become a lasting access. A change of the password or of the mail address also needs the password,
//! because a new password can be requested by mail.

use crate::pages::{
    account::{dialog::Told, policy::AccountPolicy},
    command::PageCommand,
    request::{BookRequest, PageRequest},
    response::Response,
    sent::ReceivedForm,
    settings::BookSettings,
};

pub mod approval;
mod book_names;
pub mod dialog;
pub mod forgot;
mod new_book;
pub mod offer;
pub mod own;
pub mod password;
pub mod policy;
pub mod register;
pub mod rules;
pub mod session_user;
pub mod unsubscribe;
pub mod users;

/// Answers with a page about accounts; `None` if the command is another one.
pub fn page(request: &PageRequest<'_>, settings: Option<&BookSettings>) -> Option<Response> {
    let policy = || AccountPolicy::at(request, settings);
    Some(match request.command()? {
        PageCommand::Config => own::page(request, policy()),
        PageCommand::ChangePassword => password::page(request, policy()),
        PageCommand::NewUser => register::page(request, policy()),
        PageCommand::Forgot => forgot::page(request, policy()),
        PageCommand::Users => users::page(request, Told::Nothing),
        _ => return None,
    })
}

/// Answers a form of these pages, which was sent in a book or outside of books; `None` if the form is another one. The caller has checked that it is this site's.
pub fn sent(
    request: &PageRequest<'_>,
    at: Option<&BookRequest<'_>>,
    command: PageCommand,
    form: &ReceivedForm,
) -> Option<Response> {
    let policy = || AccountPolicy::at(request, at.map(|at| &at.settings));
    Some(match command {
        PageCommand::Save | PageCommand::Config if form.get("config").is_some() => own::save(request, policy(), form),
        PageCommand::ChangePassword => password::change(request, policy(), form),
        PageCommand::NewUser => register::register(request, at.map(|at| at.book.name.as_str()), policy(), form),
        PageCommand::Forgot => forgot::act(request, policy(), form),
        PageCommand::Users => users::act(request, form),
        _ => return None,
    })
}
