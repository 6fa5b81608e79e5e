//! Users of the logbook: logins, sessions, tokens, and rights in books.
//!
//! | subject | module |
//! |-|-|
//! | users and their groups | [`user`] |
//! | passwords | [`password`] |
//! | access rules of a book, and the time in which entries can be changed | [`access`] |
//! | authorization | [`decide`] |
//! | sessions of browsers | [`session`] |
//! | tokens of programs | [`token`] |
//! | users of directories, identity providers and proxies | [`outside`] |
//! | limits of password attempts | [`attempts`] |
//! | the queue and the memory of password hashing | [`hashing`] |
//! | registrations, and the limit of rare requests | [`registration`], [`request_limit`] |
//! | the registry of users | [`registry`] |
//! | the caller of a request | [`caller`] |
//! | ELOG's digest of a password | [`elog_digest`] |
//! | the callers that a book's configuration admits | [`login_policy`], [`host_list`] |
//! | the users of ELOG's password files | [`password_files`] |
//! | the commands that a book's configuration allows | [`elog_rules`] |
//!
//! Users, rights, sessions and tokens are records of the store ([`crate::store::Store::record`]), so that several hubs
//! on one database have the same. Secrets are kept as digests only. Every interface calls [`decide::decide`]; none has
//! rules of its own.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod access;
pub mod approval_link;
pub mod attempts;
mod authorize;
pub mod caller;
pub mod decide;
pub mod elog_digest;
pub mod elog_rules;
pub mod error;
mod hash_memory;
pub mod hashing;
pub mod host_list;
pub mod log_filter;
pub mod login_policy;
pub mod outside;
pub mod password;
pub mod password_files;
pub mod principal;
pub mod registration;
pub mod registry;
pub mod request_limit;
pub mod reset;
pub mod session;
pub mod subject;
pub mod token;
pub mod user;
pub mod visit;

pub use access::{Access, EditPolicy};
pub use authorize::{access_of, ask, change_access, policy, set_first_access, written};
pub use caller::Caller;
pub use decide::{Resource, Verb, decide};
pub use elog_rules::{ElogCommand, ElogRules};
pub use error::PeopleError;
pub use login_policy::LoginPolicy;
pub use principal::{Credentials, Principal};
pub use registration::{NewAccount, Registration};
pub use registry::{People, Rules};

/// The rights of a user in a book. No right implies another: a user who may edit all entries needs [`Right::EditOwn`] too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Right {
    /// The user can read entries.
    Read,
    /// Post and reply.
    Write,
    /// Change and delete entries of one's own.
    EditOwn,
    /// Change and delete everybody's.
    EditAny,
    /// The user can change the book's settings and access rules.
    Admin,
}

impl Right {
    /// All of them.
    pub const ALL: [Right; 5] = [Right::Read, Right::Write, Right::EditOwn, Right::EditAny, Right::Admin];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Right::Read => "read",
            Right::Write => "write",
            Right::EditOwn => "edit-own",
            Right::EditAny => "edit-any",
            Right::Admin => "admin",
        }
    }
}

/// An error: the text names no right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown right '{0}'; use read, write, edit-own, edit-any or admin")]
pub struct BadRight(pub String);

impl std::str::FromStr for Right {
    type Err = BadRight;

    fn from_str(text: &str) -> Result<Right, BadRight> {
        Right::ALL.into_iter().find(|right| right.name() == text).ok_or_else(|| BadRight(text.to_owned()))
    }
}

/// A user's rights, by book. A book that is missing here does not exist for the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rights(pub BTreeMap<String, Vec<Right>>);

impl Rights {
    /// Returns whether the user has a right in a book.
    pub fn may(&self, right: Right, book: &str) -> bool {
        self.of(book).contains(&right)
    }

    /// Returns the rights in a book; its name is compared without case.
    pub fn of(&self, book: &str) -> &[Right] {
        let found = self.0.get(book).or_else(|| {
            let mut books = self.0.iter();
            books.find(|(name, _)| crate::book::same_name(name, book)).map(|(_, rights)| rights)
        });
        found.map_or(&[], Vec::as_slice)
    }

    /// Returns the books in which the user has a right.
    pub fn books(&self, right: Right) -> Vec<String> {
        let with = self.0.iter().filter(|(_, rights)| rights.contains(&right));
        with.map(|(book, _)| book.clone()).collect()
    }

    /// Removes all rights but those for which `leaves` returns true.
    pub fn only(mut self, leaves: impl Fn(&str, Right) -> bool) -> Rights {
        for (book, rights) in &mut self.0 {
            rights.retain(|right| leaves(book, *right));
        }
        self.0.retain(|_, rights| !rights.is_empty());
        self
    }
}
