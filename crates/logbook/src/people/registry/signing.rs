//! The people who may sign entries, and the proof that they give when they sign.

use std::net::IpAddr;

use super::{
    super::{
        error::{PeopleError, Result},
        outside::all_groups,
        principal::{Credentials, Principal},
        session::{self, Session},
    },
    People,
};
use crate::{signature::policy::SigningPolicy, store::now};

/// The time after a login in which a user from outside signs without a password, in nanoseconds.
pub const FRESH_LOGIN: i64 = 300_000_000_000;

impl People {
    /// Returns the rules of a book for signatures.
    pub fn signing_policy(&self, book: &str) -> Result<SigningPolicy> {
        let known = self.known()?;
        Ok(self.access_in(&known, book).signing)
    }

    /// Returns the meanings with which a user may sign entries of a book.
    pub fn meanings(&self, login: &str, book: &str) -> Result<Vec<String>> {
        let policy = self.signing_policy(book)?;
        if login.is_empty() || policy.meanings.is_empty() {
            return Ok(Vec::new());
        }
        let user = match self.user(login) {
            Ok(user) => user,
            // The owner of the installation is no user.
            Err(PeopleError::NoUser(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let groups = all_groups(&user.groups, &self.outside_rights(&user));
        Ok(policy.meanings_of(&user.login, &groups).into_iter().map(str::to_owned).collect())
    }

    /// Returns true if a caller signs without a password: the caller is a user from outside, who has just logged in.
    pub fn has_fresh_login(&self, who: &Principal) -> Result<bool> {
        let Credentials::Session { name, .. } = &who.by else { return Ok(false) };
        if self.user(&who.login)?.outside.is_none() {
            return Ok(false);
        }
        let Some(record) = self.store.record(session::KIND, name)? else { return Ok(false) };
        let session: Session = PeopleError::read(session::KIND, name, record.value)?;
        Ok(now().0.saturating_sub(session.begun.0) <= FRESH_LOGIN)
    }

    /// Proves the person who signs: by the password of this login, or else by the caller's login of the last minutes.
    /// Returns the person and the word for the proof.
    pub fn signer(
        &self,
        who: &Principal,
        login: Option<&str>,
        password: Option<&str>,
        from: IpAddr,
    ) -> Result<(Principal, String)> {
        let login = login.unwrap_or(&who.login);
        if login.is_empty() {
            return Err(PeopleError::Unproved("a signature needs the login of a user"));
        }
        if let Some(password) = password {
            let person = self.by_password(login, password, from)?;
            let method = match self.user(login)?.outside {
                Some(outside) => format!("password, checked by {}", outside.method),
                None => "password".to_owned(),
            };
            return Ok((person, method));
        }
        if login == who.login && self.has_fresh_login(who)? {
            let method = self.user(login)?.outside.map_or_else(String::new, |outside| outside.method);
            return Ok((who.clone(), format!("login by {method}")));
        }
        Err(PeopleError::Unproved("a signature needs the password again, or a login by a provider within the last 5 minutes"))
    }
}
