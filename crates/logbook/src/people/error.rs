//! Errors of logins, users, tokens and access rules.

use std::{io, time::Duration};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    attempts::Wait,
    decide::Refused,
    hashing::{self, QueueFull},
    password::BadPassword,
    user::BadUser,
};
use crate::store::StoreError;

/// An error of a login, a user, a token or an access rule.
#[derive(Debug, thiserror::Error)]
pub enum PeopleError {
    /// The caller lacks the right.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The login or the password is wrong, or the user is inactive. The error does not reveal which.
    #[error("the login or the password is wrong")]
    Wrong,
    /// Too many wrong passwords.
    #[error("too many wrong passwords: try again in {} s", .0.as_secs() + 1)]
    Wait(Duration),
    /// Too many requests of a rare kind by one address.
    #[error("too many such requests from your address: try again in {} s", .0.as_secs() + 1)]
    TooOften(Duration),
    /// Too many passwords are checked at a time.
    #[error("too many passwords are being checked: try again in {} s", hashing::RETRY_AFTER)]
    Busy,
    /// The session or token is invalid or has expired.
    #[error("the {0} is invalid or has expired: {1}")]
    Ended(&'static str, &'static str),
    /// A person who signs has not been proved.
    #[error("{0}")]
    Unproved(String),
    /// A person cannot be proved again, and so cannot sign.
    #[error("'{login}' cannot sign: the login method '{method}' names the person, and asks nobody for a password")]
    NoProof { login: String, method: String },
    /// No such user.
    #[error("there is no user '{0}'")]
    NoUser(String),
    /// An object of this name exists already.
    #[error("there is a user '{0}' already")]
    IsThere(String),
    /// No such token.
    #[error("there is no token '{0}'")]
    NoToken(String),
    /// No such registration.
    #[error("there is no registration '{0}'")]
    NoRegistration(String),
    /// An invalid user.
    #[error(transparent)]
    User(#[from] BadUser),
    /// An invalid new password.
    #[error(transparent)]
    Password(#[from] BadPassword),
    /// Another invalid value.
    #[error("{0}")]
    Invalid(String),
    /// A login method cannot check the password.
    #[error("the login method '{method}' does not respond: {why}")]
    Away {
        /// The name of the method.
        method: String,
        why: String,
    },
    /// A login method knows a person by the login of another user, or of one that is not bound to the method.
    #[error("the login '{login}' belongs to a user of this logbook who is not bound to the login method '{method}'")]
    NotBound { login: String, method: String },
    /// A login method knows a person who is no user here, and registers none.
    #[error("'{login}' is no user of this logbook, and the login method '{method}' adds none")]
    NotRegistered { login: String, method: String },
    /// A login method knows a new person by a name that entries or rights of this site have.
    #[error("entries or rights of this site have the name '{name}', so the login method '{method}' adds no user of this name")]
    NameInUse { name: String, method: String },
    /// A password cannot be set here, because a login method checks it.
    #[error("the password of '{login}' is kept by the login method '{method}': change it there")]
    PasswordElsewhere { login: String, method: String },
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system has no random bytes.
    #[error("no random bytes: {0}")]
    Random(#[from] io::Error),
}

impl PeopleError {
    /// Reads a record's value.
    pub(super) fn read<T: DeserializeOwned>(kind: &str, name: &str, value: Value) -> Result<T, PeopleError> {
        serde_json::from_value(value).map_err(|error| StoreError::Damaged(format!("{kind} '{name}': {error}")).into())
    }
}

impl From<Wait> for PeopleError {
    fn from(wait: Wait) -> PeopleError {
        PeopleError::Wait(wait.0)
    }
}

impl From<QueueFull> for PeopleError {
    fn from(_: QueueFull) -> PeopleError {
        PeopleError::Busy
    }
}

/// The result of operations on users, sessions and tokens.
pub type Result<T, E = PeopleError> = std::result::Result<T, E>;
