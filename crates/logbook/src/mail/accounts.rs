//! Mails about accounts: a new password, a registration, its approval.

use super::message::Mail;
use crate::people::{registration::is_mail_address, reset::LIFE, user::User};

/// Makes the mail with the link for a new password.
pub fn new_password(user: &User, site: &str, link: &str) -> Mail {
    let minutes = LIFE.as_secs() / 60;
    let text = format!(
        "Somebody asked for a new password of the user '{}' of the logbook at\n{site}\n\n\
         Open this address within {minutes} minutes to choose one. It works once:\n{link}\n\n\
         If it was not you, do nothing: the password stays as it is.\n",
        user.login
    );
    Mail { to: vec![user.email.clone()], subject: "New password for the logbook".to_owned(), text, ..Mail::default() }
}

/// The decision about a registration.
#[derive(Debug, Clone, Copy)]
pub enum Decision<'a> {
    /// It is an account at once.
    Made,
    /// An administrator has to approve it: with the link of the mail, if there is one.
    Waits(Option<&'a str>),
}

/// Makes the mail to administrators about a registration; `None` if no administrator has an address.
pub fn registered(users: &[User], new: &User, from: &str, decision: Decision<'_>, site: Option<&str>) -> Option<Mail> {
    let admins = users.iter().filter(|user| user.admin && !user.inactive && is_mail_address(&user.email));
    let to: Vec<String> = admins.map(|user| user.email.clone()).collect();
    let page = site.map_or_else(|| "the page 'Users' of the logbook".to_owned(), |site| format!("{site}/?cmd=Users"));
    let (subject, rest) = match decision {
        Decision::Made => ("has registered", format!("All users are on\n{page}\n")),
        Decision::Waits(None) => ("waits for approval", format!("Approve or refuse the registration on\n{page}\n")),
        Decision::Waits(Some(link)) => (
            "waits for approval",
            format!(
                "Approve or refuse the registration, without a login, on\n{link}\n\
                 Keep this address for yourself: it decides, until somebody has decided. All registrations are on\n{page}\n"
            ),
        ),
    };
    let text = format!(
        "The user '{}' {subject}.\n\nFull name: {}\nE-mail: {} (nobody has checked it)\nFrom: {from}\n\n{rest}",
        new.login, new.full_name, new.email
    );
    let subject = format!("Logbook: '{}' {subject}", new.login);
    (!to.is_empty()).then(|| Mail { to, hidden: true, subject, text, ..Mail::default() })
}

/// Makes the mail to a user whose registration was approved; `None` if the user has no address.
pub fn approved(user: &User, site: &str) -> Option<Mail> {
    let text = format!(
        "Your registration as '{}' was approved. You can log in with the password that you have chosen{}\n",
        user.login,
        if site.is_empty() { ".".to_owned() } else { format!(":\n{site}/") }
    );
    let subject = "Your account of the logbook".to_owned();
    is_mail_address(&user.email).then(|| Mail { to: vec![user.email.clone()], subject, text, ..Mail::default() })
}
