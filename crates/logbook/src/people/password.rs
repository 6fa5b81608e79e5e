//! Passwords as they are kept: Argon2id, and until the first login what ELOG had of them.
//!
//! What goes into Argon2id is ELOG's own digest of the password (43 characters, [`crate::elog::password`]) and not the password: so a site that must
//! still serve ELOG's programs, which send that digest in place of the password, can hold it against the same line. Whether a
//! digest is taken is the site's to say; who stole ELOG's file cannot log in with it elsewhere. Keeping a second, weaker line for those programs was rejected.
//!
//! ```text
//! $argon2id$v=19$m=19456,t=2,p=1$<salt>$<32 bytes>      base64 without padding, as others write it
//! $elog$<43 characters>                                 as it was imported
//! ```

use std::fmt;

use argon2::{Algorithm, Argon2, Params, Version};
use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use serde::{Deserialize, Serialize};

use super::token::random;
use crate::elog::password::{hash as elog_hash, is_hash, same};

/// KiB of memory, passes and lanes of a new hash: OWASP's first recommendation.
const COST: (u32, u32, u32) = (19_456, 2, 1);
/// The most a kept line may ask for, so that a forged one costs no more than a second.
const MOST: (u32, u32, u32) = (1 << 18, 16, 16);
/// Bytes of a hash.
const LENGTH: usize = 32;
/// Characters of a password at least.
pub const SHORTEST: usize = 8;

/// A password, as it is kept.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Password(String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.split('$').nth(1).unwrap_or("damaged"))
    }
}

/// Why a text cannot become a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPassword {
    /// Too short.
    #[error("a password has at least {SHORTEST} characters")]
    Short,
    /// Too long.
    #[error("a password has at most {} bytes", crate::elog::password::MAX_PASSWORD)]
    Long,
    /// The system has no random bytes, or no memory.
    #[error("the password cannot be hashed: {0}")]
    Failed(String),
}

/// What somebody gives in order to be let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given<'a> {
    /// The password.
    Plain(&'a str),
    /// The password, or in its place ELOG's digest of it: the site has said that this is taken.
    PlainOrDigest(&'a str),
}

impl Password {
    /// Hashes a new password.
    pub fn new(plain: &str) -> Result<Password, BadPassword> {
        if plain.chars().count() < SHORTEST {
            return Err(BadPassword::Short);
        }
        Password::of(plain)
    }

    /// Hashes one that somebody has already, however short.
    pub fn of(plain: &str) -> Result<Password, BadPassword> {
        let digest = elog_hash(plain.as_bytes()).ok_or(BadPassword::Long)?;
        let salt: [u8; 16] = random().map_err(|error| BadPassword::Failed(error.to_string()))?;
        let (m, t, p) = COST;
        let hash = argon2id(digest.as_bytes(), &salt, COST).map_err(|error| BadPassword::Failed(error.to_string()))?;
        let (salt, hash) = (STANDARD_NO_PAD.encode(salt), STANDARD_NO_PAD.encode(hash));
        Ok(Password(format!("$argon2id$v=19$m={m},t={t},p={p}${salt}${hash}")))
    }

    /// What ELOG had of one, if it is that.
    pub fn from_elog(digest: &str) -> Option<Password> {
        is_hash(digest).then(|| Password(format!("$elog${digest}")))
    }

    /// Whether it is to be hashed anew as soon as it is known.
    pub fn is_old(&self) -> bool {
        !self.0.starts_with("$argon2id$v=19$m=19456,t=2,p=1$")
    }

    /// Whether this is it.
    pub fn is(&self, given: Given<'_>) -> bool {
        let (text, may_be_digest) = match given {
            Given::Plain(text) => (text, false),
            Given::PlainOrDigest(text) => (text, is_hash(text)),
        };
        let digest = elog_hash(text.as_bytes());
        digest.is_some_and(|digest| self.is_digest(&digest)) || may_be_digest && self.is_digest(text)
    }

    fn is_digest(&self, digest: &str) -> bool {
        if let Some(kept) = self.0.strip_prefix("$elog$") {
            return same(kept, digest);
        }
        let parse = || {
            let mut parts = self.0.strip_prefix("$argon2id$v=19$")?.split('$');
            let mut costs =
                parts.next()?.split(',').zip(["m=", "t=", "p="]).map(|(cost, name)| cost.strip_prefix(name)?.parse().ok());
            let cost: (u32, u32, u32) = (costs.next()??, costs.next()??, costs.next()??);
            let salt = STANDARD_NO_PAD.decode(parts.next()?).ok()?;
            Some((cost, salt, parts.next()?.to_owned()))
        };
        let Some((cost, salt, kept)) = parse() else { return false };
        let hash = argon2id(digest.as_bytes(), &salt, cost);
        hash.is_ok_and(|hash| same(&kept, &STANDARD_NO_PAD.encode(hash)))
    }

    /// Something that is no password of anybody, so that a login nobody has costs as much as one that somebody has.
    pub(crate) fn nobodys() -> Password {
        let hash = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        Password(format!("$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA${hash}"))
    }

    /// The line, for digests that change with it.
    pub(crate) fn line(&self) -> &str {
        &self.0
    }
}

fn argon2id(digest: &[u8], salt: &[u8], (m, t, p): (u32, u32, u32)) -> Result<[u8; LENGTH], argon2::Error> {
    if (m, t, p).0 > MOST.0 || t > MOST.1 || p > MOST.2 {
        return Err(argon2::Error::MemoryTooMuch);
    }
    let mut out = [0; LENGTH];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::new(m, t, p, Some(LENGTH))?)
        .hash_password_into(digest, salt, &mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ELOG: &str = "o1w7HPzHt8gHmL5zUzDkRqt6Az.BjDfkvuDNNLWnXx5";

    #[test]
    fn a_password_is_known_again() {
        let kept = Password::new("correct horse").unwrap();
        assert!(kept.is(Given::Plain("correct horse")) && !kept.is(Given::Plain("correct horsf")) && !kept.is(Given::Plain("")));
        assert!(!kept.is_old() && kept != Password::new("correct horse").unwrap());
        assert_eq!(Password::new("short"), Err(BadPassword::Short));
        assert_eq!(Password::new(&"x".repeat(5000)), Err(BadPassword::Long));
        assert!(!format!("{kept:?}").contains('$'));
    }

    #[test]
    fn elogs_digest_is_taken_only_where_the_site_says_so() {
        for kept in [Password::from_elog(ELOG).unwrap(), Password::of("secret").unwrap()] {
            assert!(kept.is(Given::Plain("secret")), "{kept:?}");
            assert!(!kept.is(Given::Plain(ELOG)), "{kept:?}");
            assert!(kept.is(Given::PlainOrDigest(ELOG)) && kept.is(Given::PlainOrDigest("secret")), "{kept:?}");
        }
        assert!(Password::from_elog(ELOG).unwrap().is_old());
        assert_eq!(Password::from_elog("secret"), None);
    }

    #[test]
    fn a_damaged_line_is_nobodys_password() {
        let good = Password::of("secret").unwrap().0;
        let mut lines: Vec<String> = (0..good.len()).map(|end| good[..end].to_owned()).collect();
        lines.push(good.replace("m=19456", "m=4294967295"));
        lines.push(good.replace("t=2", "t=x"));
        lines.push("$argon2id$v=19$m=8$$".to_owned());
        for line in lines {
            assert!(!Password(line.clone()).is(Given::PlainOrDigest("secret")), "{line}");
        }
        assert!(!Password::nobodys().is(Given::Plain("")));
    }
}
