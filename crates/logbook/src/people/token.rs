//! Secrets of programs and browsers, and the tokens of programs. A secret has 256 random bits; the store holds only its
//! SHA-256.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tampu_types::Time;

use super::Right;
use crate::{attachment::hex, book::same_name, schema::TimeText};

/// The kind of the store's records, which are named by the secret's digest.
pub const KIND: &str = "token";
/// The beginning of every token, by which scanners find tokens that were left in files.
pub const PREFIX: &str = "tampu_";
/// Tokens of one user.
pub const MAX_TOKENS: usize = 100;
/// The time, in nanoseconds, after which a token expires that was made without an end: a year.
pub const LIFE: i64 = 365 * 86_400 * 1_000_000_000;
/// Characters of a token's remark.
pub const MAX_COMMENT: usize = 200;

/// Random bytes of the operating system.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut at = 0;
    while at < N {
        match getrandom(&mut bytes[at..], GetRandomFlags::empty()) {
            Ok(read) => at += read,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

/// A new secret, in hexadecimal digits.
pub fn secret() -> io::Result<String> {
    Ok(hex(&random::<32>()?))
}

/// The digest of a secret, which is kept in its place.
pub fn digest(of: &str) -> String {
    hex(&Sha256::digest(of.as_bytes()))
}

/// A program's token: the user it acts for, and its rights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApiToken {
    /// The token's id: the first digits of its digest.
    pub id: String,
    /// The owner's login. The token never has more rights than its owner.
    pub login: String,
    /// The purpose, in words.
    pub comment: String,
    /// The token's rights; empty for all rights of its owner.
    #[serde(default)]
    pub may: Vec<Right>,
    /// The only books it may be used with; none is all.
    #[serde(default)]
    pub books: Vec<String>,
    /// The time of creation.
    #[serde(with = "tampu_types::time::rfc3339::stored")]
    #[schemars(with = "TimeText")]
    pub made: Time,
    /// The time at which the token expires.
    #[serde(default, with = "tampu_types::time::rfc3339::stored_option")]
    #[schemars(with = "Option<TimeText>")]
    pub expires: Option<Time>,
    /// The time of the last use, to the minute.
    #[serde(default, with = "tampu_types::time::rfc3339::stored_option")]
    #[schemars(with = "Option<TimeText>")]
    pub used: Option<Time>,
    /// The owner's generation when the token was made. The token ends with a new password, and when its owner is
    /// disabled. Tokens of older stores have none; the password change deletes them instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
}

impl ApiToken {
    /// A token of a user with all of their rights, which [`super::People::make_token`] completes.
    pub fn of(login: &str) -> ApiToken {
        let (id, comment, login) = (String::new(), String::new(), login.to_owned());
        ApiToken { id, login, comment, may: vec![], books: vec![], made: Time(0), expires: None, used: None, generation: None }
    }

    /// Returns the time at which the token ends: its own, or [`LIFE`] after it was made.
    pub fn end(&self) -> Time {
        self.expires.unwrap_or(Time(self.made.0.saturating_add(LIFE)))
    }

    /// Returns whether the token allows a right that its owner has in a book.
    pub fn leaves(&self, book: &str, right: Right) -> bool {
        (self.may.is_empty() || self.may.contains(&right))
            && (self.books.is_empty() || self.books.iter().any(|name| same_name(name, book)))
    }

    /// Returns whether the token has all rights of its owner. Only such a token can manage users, if its owner can.
    pub fn is_whole(&self) -> bool {
        self.may.is_empty() && self.books.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ() {
        let (a, b) = (secret().unwrap(), secret().unwrap());
        assert!(a != b && a.len() == 64 && digest(&a) != a);
    }
}
