//! People: who somebody is, and who may do what in which book.
//!
//! | subject | module |
//! |-|-|
//! | users and their groups | [`user`] |
//! | passwords | [`password`] |
//! | who may do what in a book, and how long entries can be changed | [`access`] |
//! | the one place where that is decided | [`decide`] |
//! | sessions of browsers | [`session`] |
//! | tokens of programs | [`token`] |
//! | tries at passwords, and their bound | [`attempts`] |
//! | all of it together | [`registry`] |
//! | the users of ELOG, and whom it lets in | [`elog`], [`let_in`] |
//!
//! Users, rights, sessions and tokens are records of the store ([`crate::store::Store::record`]), so that several hubs on one database
//! have the same. Secrets are kept as digests only. Every surface asks [`decide::decide`]; none has rules of its own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub mod access;
pub mod attempts;
pub mod decide;
pub mod elog;
pub mod let_in;
pub mod password;
pub mod registry;
pub mod session;
pub mod token;
pub mod user;

pub use access::{Access, EditPolicy};
pub use decide::{Resource, Verb, ask, decide};
pub use registry::{People, PeopleError, Principal};

/// What somebody may do in a book. Nothing is implied by another: whoever may edit every entry is given [`Right::EditOwn`] too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Right {
    /// See entries.
    Read,
    /// Post and reply.
    Write,
    /// Change and delete entries of one's own.
    EditOwn,
    /// Change and delete everybody's.
    EditAny,
    /// Change what the book is and who may do what in it.
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

/// Why a text names no right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no right: write read, write, edit-own, edit-any or admin")]
pub struct BadRight(pub String);

impl std::str::FromStr for Right {
    type Err = BadRight;

    fn from_str(text: &str) -> Result<Right, BadRight> {
        Right::ALL.into_iter().find(|right| right.name() == text).ok_or_else(|| BadRight(text.to_owned()))
    }
}

/// What somebody may, book by book; a book that is not named here does not exist for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rights(pub BTreeMap<String, Vec<Right>>);

impl Rights {
    /// Whether they may do this in a book.
    pub fn may(&self, right: Right, book: &str) -> bool {
        self.of(book).contains(&right)
    }

    /// What they may in a book; its name is compared without case.
    pub fn of(&self, book: &str) -> &[Right] {
        let found = self.0.get(book).or_else(|| {
            let mut books = self.0.iter();
            books.find(|(name, _)| crate::book::same_name(name, book)).map(|(_, rights)| rights)
        });
        found.map_or(&[], Vec::as_slice)
    }

    /// The books in which they may do this.
    pub fn books(&self, right: Right) -> Vec<String> {
        let with = self.0.iter().filter(|(_, rights)| rights.contains(&right));
        with.map(|(book, _)| book.clone()).collect()
    }

    /// What is left of them.
    pub fn only(mut self, leaves: impl Fn(&str, Right) -> bool) -> Rights {
        for (book, rights) in &mut self.0 {
            rights.retain(|right| leaves(book, *right));
        }
        self.0.retain(|_, rights| !rights.is_empty());
        self
    }
}
