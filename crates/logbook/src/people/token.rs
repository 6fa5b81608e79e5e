//! Secrets that programs and browsers carry: 256 random bits, of which only the SHA-256 is kept; and the tokens of programs.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tampu_types::Time;

use super::Right;
use crate::{attachment::hex, book::same_name};

/// The kind of the store's records, which are named by the secret's digest.
pub const KIND: &str = "token";
/// What a token begins with, so that it is found where it was left lying about.
pub const PREFIX: &str = "tampu_";
/// Tokens of one user.
pub const MAX_TOKENS: usize = 100;
/// Characters of a token's remark.
pub const MAX_COMMENT: usize = 200;

/// Bytes nobody can guess.
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

/// What is kept of a secret.
pub fn digest(of: &str) -> String {
    hex(&Sha256::digest(of.as_bytes()))
}

/// What a program may, and as whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiToken {
    /// What it is called by: the first digits of its digest.
    pub id: String,
    /// Whose it is; it never may more than they.
    pub login: String,
    /// What it is for.
    pub comment: String,
    /// What it may; none is all that its owner may.
    #[serde(default)]
    pub may: Vec<Right>,
    /// The only books it may be used with; none is all.
    #[serde(default)]
    pub books: Vec<String>,
    /// When it was made.
    pub made: Time,
    /// When it ends.
    #[serde(default)]
    pub expires: Option<Time>,
    /// When it was used last, to the minute.
    #[serde(default)]
    pub used: Option<Time>,
}

impl ApiToken {
    /// Whether it leaves a right that its owner has in a book.
    pub fn leaves(&self, book: &str, right: Right) -> bool {
        (self.may.is_empty() || self.may.contains(&right))
            && (self.books.is_empty() || self.books.iter().any(|name| same_name(name, book)))
    }

    /// Whether it is a copy of its owner: such a one may look after users if its owner may.
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
