//! Whom ELOG's configuration of a book lets in: its `Login user`. A book that was taken over stays as closed as it was, on every surface,
//! whatever rights are given in it; who has its administration is let in always.

use super::Right;
use crate::{
    book::{Book, same_name},
    elog::web::settings::Settings,
};

/// Who is let into a book.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LetIn {
    /// Logins; none is everybody.
    users: Option<Vec<String>>,
    /// Whether guests are.
    guests: bool,
}

impl LetIn {
    /// What a book's configuration says.
    pub fn of(book: &Book) -> LetIn {
        let settings = Settings::of(book);
        let users = settings.login_users().map(|users| [users, settings.admins()].concat());
        LetIn { users, guests: settings.guest_menu().is_some() }
    }

    /// Whether somebody with these rights is let in; an empty login is a guest.
    pub fn lets(&self, login: &str, rights: &[Right]) -> bool {
        let Some(users) = &self.users else { return true };
        if login.is_empty() {
            self.guests
        } else {
            rights.contains(&Right::Admin) || users.iter().any(|user| same_name(user, login))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elog::config;

    #[test]
    fn a_book_stays_as_closed_as_it_was() {
        let closed = "Login user = zoe, Max\nAdmin user = kim\n";
        for (text, login, rights, expected) in [
            ("", "", &[Right::Read][..], true),
            ("", "eve", &[], true),
            (closed, "", &[Right::Read], false),
            (closed, "zoe", &[Right::Read], true),
            (closed, "max", &[], true),
            (closed, "kim", &[], true),
            (closed, "eve", &[Right::Read, Right::Write, Right::EditAny], false),
            (closed, "eve", &[Right::Admin], true),
            ("Login user = zoe\nGuest menu commands = List\n", "", &[Right::Read], true),
            ("Login user = zoe\nGuest menu commands = List\n", "eve", &[Right::Read], false),
        ] {
            let book = config::parse(format!("[b]\n{text}").as_bytes()).logbooks()[0].book();
            assert_eq!(LetIn::of(&book).lets(login, rights), expected, "{text} {login}");
        }
    }
}
