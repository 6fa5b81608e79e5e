//! Stored passwords: Argon2id, and until the first login the hash that ELOG had.
//!
//! Argon2id is applied to ELOG's own digest of the password (43 characters, [`super::elog_digest`]) and not to the
//! password. So a site that serves ELOG's programs, which send that digest, can check it against the same hash. The
//! site's settings say whether a digest is accepted; elsewhere, a stolen ELOG file does not allow a login. Rejected: a
//! second, weaker hash for those programs.
//!
//! ```text
//! $argon2id$v=19$m=19456,t=2,p=1$<salt>$<32 bytes>      base64 without padding, the usual form
//! $elog$<43 characters>                                 as it was imported
//! ```

use std::fmt;

use argon2::{Algorithm, Argon2, Params, Version};
use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use serde::{Deserialize, Serialize};

use super::elog_digest::{MAX_PASSWORD, hash as elog_hash, is_hash, same};
use super::hash_memory::with_blocks;
use super::token::random;

/// KiB of memory, passes and lanes of a new hash: OWASP's first recommendation.
const COST: (u32, u32, u32) = (19_456, 2, 1);
/// The highest cost that a stored hash may have, so that a forged one takes no more than a second.
const MOST: (u32, u32, u32) = (1 << 18, 16, 16);
/// Bytes of a hash.
const LENGTH: usize = 32;
/// Minimum length of a password, in characters.
pub const SHORTEST: usize = 8;

/// A password, in its stored form.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Password(String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.split('$').nth(1).unwrap_or("damaged"))
    }
}

/// The reasons to reject a new password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPassword {
    /// Fewer characters than a password needs.
    #[error("a password has at least {SHORTEST} characters")]
    Short,
    /// More bytes than a password can have.
    #[error("a password has at most {} bytes", MAX_PASSWORD)]
    Long,
    /// The system has no random bytes, or no memory.
    #[error("the password cannot be hashed: {0}")]
    Failed(String),
}

/// The proof of a password in a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given<'a> {
    /// The password itself.
    Plain(&'a str),
    /// The password, or in its place ELOG's digest of it, if the site's settings accept that.
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

    /// Hashes an existing password of any length.
    pub fn of(plain: &str) -> Result<Password, BadPassword> {
        let digest = elog_hash(plain.as_bytes()).ok_or(BadPassword::Long)?;
        let salt: [u8; 16] = random().map_err(|error| BadPassword::Failed(error.to_string()))?;
        let (m, t, p) = COST;
        let hash = argon2id(digest.as_bytes(), &salt, COST).map_err(|error| BadPassword::Failed(error.to_string()))?;
        let (salt, hash) = (STANDARD_NO_PAD.encode(salt), STANDARD_NO_PAD.encode(hash));
        Ok(Password(format!("$argon2id$v=19$m={m},t={t},p={p}${salt}${hash}")))
    }

    /// Returns the password of a digest from ELOG's files, if the digest is valid.
    pub fn from_elog(digest: &str) -> Option<Password> {
        is_hash(digest).then(|| Password(format!("$elog${digest}")))
    }

    /// Returns the digest from ELOG's files, if the user has not logged in since the import. Later there is only a hash
    /// of it.
    pub fn elog_digest(&self) -> Option<&str> {
        self.0.strip_prefix("$elog$")
    }

    /// Returns whether the hash is outdated and is to be replaced at the next login.
    pub fn is_old(&self) -> bool {
        !self.0.starts_with("$argon2id$v=19$m=19456,t=2,p=1$")
    }

    /// Returns whether the given password is this one.
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
            // The answer must not come sooner than for an unknown login, or its time would tell which logins there are.
            let hashed = Password::nobodys().is_digest(digest);
            return same(kept, digest) && !hashed;
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

    /// A hash that no password matches, so that an unknown login takes as much time as a known one.
    pub(crate) fn nobodys() -> Password {
        let hash = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        Password(format!("$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA${hash}"))
    }

    /// Returns the stored form, for digests that change with it.
    pub(crate) fn line(&self) -> &str {
        &self.0
    }
}

fn argon2id(digest: &[u8], salt: &[u8], (m, t, p): (u32, u32, u32)) -> Result<[u8; LENGTH], argon2::Error> {
    if (m, t, p).0 > MOST.0 || t > MOST.1 || p > MOST.2 {
        return Err(argon2::Error::MemoryTooMuch);
    }
    #[cfg(test)]
    tests::HASHES.with(|hashes| hashes.set(hashes.get() + 1));
    let params = Params::new(m, t, p, Some(LENGTH))?;
    let (blocks, usual) = (params.block_count(), COST.0 as usize);
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let mut out = [0; LENGTH];
    with_blocks(blocks, usual, |memory| argon2.hash_password_into_with_memory(digest, salt, &mut out, memory))?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ELOG: &str = "o1w7HPzHt8gHmL5zUzDkRqt6Az.BjDfkvuDNNLWnXx5";

    std::thread_local! {
        /// Hashes that this thread has made.
        pub(super) static HASHES: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }

    #[test]
    fn a_wrong_password_costs_the_same_whoever_is_guessed() {
        let other = ELOG.replace('o', "p");
        for (given, expected) in [
            (Given::Plain("wrong"), 1),
            (Given::PlainOrDigest("wrong"), 1),
            (Given::Plain(&other), 1),
            (Given::PlainOrDigest(&other), 2),
        ] {
            for kept in [Password::from_elog(ELOG).unwrap(), Password::of("secret").unwrap(), Password::nobodys()] {
                let before = HASHES.get();
                assert!(!kept.is(given), "{kept:?} {given:?}");
                assert_eq!(HASHES.get() - before, expected, "{kept:?} {given:?}");
            }
        }
    }

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
