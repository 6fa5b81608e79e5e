//! The caller of a request, once their credentials are checked.

use std::net::IpAddr;

use super::{Rights, caller::Caller, outside::MethodKind, token::ApiToken};

/// The credentials that identify a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// No credentials: a guest.
    Nothing,
    /// The owner of the installation.
    Owner,
    /// The cookie of a session.
    Session {
        /// The session's record.
        name: String,
        /// The token that the session's forms carry.
        form: String,
    },
    /// The token of a program.
    Token(ApiToken),
    /// A password in the request.
    Password {
        /// The user's generation at that time.
        generation: u32,
    },
    /// The word of a trusted proxy, or a ticket, in a header of the request.
    Proxy {
        /// The user's generation at that time.
        generation: u32,
        /// The kind of the login method that has proved the user.
        kind: MethodKind,
    },
}

/// The caller of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The login; empty for a guest.
    pub login: String,
    /// The full name of the user.
    pub full_name: String,
    /// The mail address, or an empty text.
    pub email: String,
    /// True for administrators of the site, who manage books and users.
    pub admin: bool,
    /// The rights, by book.
    pub rights: Rights,
    /// The credentials that were used.
    pub by: Credentials,
}

impl Principal {
    /// Returns the caller for ELOG's pages.
    pub fn caller(&self, from: IpAddr) -> Caller {
        let Principal { login, full_name, email, rights, .. } = self.clone();
        Caller { login, full_name, email, from, rights }
    }

    /// Returns whether the caller has not logged in.
    pub fn is_guest(&self) -> bool {
        self.login.is_empty()
    }
}
