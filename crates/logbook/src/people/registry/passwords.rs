//! Checks of passwords: a few at a time, delayed after wrong passwords, with a cache of successful checks.

use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::{
    super::{
        elog_digest,
        error::{PeopleError, Result},
        password::{Given, Password},
        user::User,
    },
    People,
};

/// Number of correct passwords that are cached for [`REMEMBER`], so that a program that sends its password with each
/// request does not wait each time. The same number of wrong passwords is cached, so that a repeated one counts as one
/// attempt.
const REMEMBERED: usize = 1024;
/// The time for which a checked password is remembered.
const REMEMBER: Duration = Duration::from_secs(300);
/// The time for which a wrong password of a login without a password here is remembered. A directory may accept it soon
/// after, because it was changed there.
const REMEMBER_OUTSIDE: Duration = Duration::from_secs(20);

/// Caches a key for [`REMEMBER`], with at most [`REMEMBERED`] keys.
fn remember(of: &Mutex<HashMap<[u8; 32], Instant>>, seen: [u8; 32]) {
    let mut of = of.lock();
    if of.len() >= REMEMBERED {
        of.retain(|_, at| at.elapsed() < REMEMBER);
        if of.len() >= REMEMBERED {
            of.clear();
        }
    }
    of.insert(seen, Instant::now());
}

impl People {
    pub(super) fn check_password(&self, login: &str, password: &str, from: IpAddr) -> Result<User> {
        let user = self.known()?.users.get(login).cloned();
        // The password of a user from outside is outside, too.
        let kept = user.as_ref().filter(|user| user.outside.is_none()).and_then(|user| user.password.clone());
        // A login method may admit a person from some addresses only.
        let place = if kept.is_none() && !self.methods.is_empty() { from.to_string() } else { String::new() };
        let seen = self.seen([login, password, &place], kept.as_ref(), user.as_ref());
        if let Some(user) = &user
            && !user.inactive
            && self.is_remembered(&seen)
        {
            return Ok(user.clone());
        }
        // A repeated wrong password is not a new guess: a browser sends an old cookie with each request.
        let wrong_for = if kept.is_some() || self.methods.is_empty() { REMEMBER } else { REMEMBER_OUTSIDE };
        if self.wrong.lock().get(&seen).is_some_and(|at| at.elapsed() < wrong_for) {
            return Err(PeopleError::Wrong);
        }
        self.attempts.begin(login, from, Instant::now())?;
        let found = match &kept {
            Some(kept) => self.is_password(kept, login, password, from)?.then_some(user).flatten(),
            None => {
                let is_asked = user.as_ref().is_none_or(|user| !user.inactive);
                let other = if is_asked { self.ask_methods(login, password, from, user.as_ref()) } else { Ok(None) };
                let other = other.inspect_err(|_| self.attempts.unknown(login, from))?;
                if other.is_none() {
                    self.is_password(&Password::nobodys(), login, password, from)?;
                }
                other
            }
        };
        if found.is_none() {
            remember(&self.wrong, seen);
        }
        let user = found.filter(|user| !user.inactive).ok_or(PeopleError::Wrong)?;
        self.attempts.right(login, from);
        if kept.as_ref().is_some_and(Password::is_old) && !elog_digest::is_hash(password) {
            let new = Password::of(password)?;
            // The generation stays: it is the same password.
            return self.change_user(login, |user| user.password = Some(new.clone()));
        }
        remember(&self.right, seen);
        Ok(user)
    }

    /// A key of a login, a password, a place and the stored hash, keyed with a secret of this process.
    fn seen(&self, [login, password, place]: [&str; 3], kept: Option<&Password>, user: Option<&User>) -> [u8; 32] {
        let bound = user.and_then(|user| Some(format!("{} {}", user.outside.as_ref()?.method, user.generation)));
        let mut hash = Sha256::new();
        hash.update(self.key);
        for part in [login, password, place, kept.map_or("", Password::line), bound.as_deref().unwrap_or_default()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }

    fn is_remembered(&self, seen: &[u8; 32]) -> bool {
        self.right.lock().get(seen).is_some_and(|at| at.elapsed() < REMEMBER)
    }

    /// Returns true if the digests of ELOG's programs are accepted in place of passwords.
    pub fn accepts_elog_digests(&self) -> bool {
        self.settings.accept_elog_hashes
    }

    /// Checks a password against its stored hash; only a few checks run at a time. If too many wait, the attempt is
    /// taken back.
    fn is_password(&self, kept: &Password, login: &str, password: &str, from: IpAddr) -> Result<bool> {
        let _turn = self.hashing.turn(from).inspect_err(|_| self.attempts.unknown(login, from))?;
        let given = if self.settings.accept_elog_hashes { Given::PlainOrDigest(password) } else { Given::Plain(password) };
        Ok(kept.is(given))
    }
}
