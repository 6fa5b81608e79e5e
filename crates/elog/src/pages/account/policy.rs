//! Options of ELOG about accounts.

use tampu_logbook::store::BookInfo;

use crate::pages::{request::PageRequest, settings::BookSettings};

/// The options of ELOG about accounts: those of a book, or outside of books the strictest of all books.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountPolicy {
    /// `Self register`: 0 no, 1 at once, 2 with a notice to administrators, 3 after an administrator's approval.
    pub self_register: u8,
    /// `Allow password change`.
    pub change_password: bool,
    /// `Forgot password link`.
    pub forgotten: bool,
}

impl AccountPolicy {
    /// Returns the policy of a book's settings.
    pub fn of(settings: &BookSettings) -> AccountPolicy {
        AccountPolicy {
            self_register: settings.self_register(),
            change_password: settings.allow_password_change(),
            forgotten: settings.forgot_password_link(),
        }
    }

    /// Returns the policy at a place: of its book, or of the site.
    pub fn at(request: &PageRequest<'_>, settings: Option<&BookSettings>) -> AccountPolicy {
        if let Some(settings) = settings {
            return AccountPolicy::of(settings);
        }
        let books = request.site.books().unwrap_or_default();
        let of = |info: &BookInfo| AccountPolicy::of(&BookSettings::of(&info.book));
        let open = AccountPolicy { self_register: 0, change_password: true, forgotten: true };
        books.iter().map(of).fold(open, |all, one| AccountPolicy {
            self_register: all.self_register.max(one.self_register),
            change_password: all.change_password && one.change_password,
            forgotten: all.forgotten && one.forgotten,
        })
    }
}
