//! The people who may sign entries, and the proof that they give when they sign.

use std::net::IpAddr;

use super::{
    super::{
        error::{PeopleError, Result},
        outside::{MethodKind, all_groups},
        principal::{Credentials, Principal},
        session::{self, Session},
    },
    People,
};
use crate::{book::same_name, signature::policy::SigningPolicy, store::now};

/// The time in which a user from outside signs without a password, after a provider has asked for it, in nanoseconds.
pub const FRESH_LOGIN: i64 = 300_000_000_000;

/// The way in which a user proves to be the one who signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SigningProof {
    /// The password again, which the logbook or a directory checks.
    Password,
    /// A login at this provider of identities, which asks for the password again.
    LogInAgain(String),
    /// None: this login method names the person, and nobody asks for a password.
    Nothing(String),
}

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

    /// Returns true if a caller sees all attributes of the entries of a book. A signature covers all of them, so nobody else
    /// signs.
    pub fn sees_whole_entries(&self, who: &Principal, book: &str) -> Result<bool> {
        Ok(!self.shown(who)?.iter().any(|(name, _)| same_name(name, book)))
    }

    /// Returns the way in which a user proves to be the one who signs.
    pub fn signing_proof(&self, login: &str) -> Result<SigningProof> {
        let outside = match self.user(login) {
            Ok(user) => user.outside,
            // The owner of the installation is no user.
            Err(PeopleError::NoUser(_)) => None,
            Err(error) => return Err(error),
        };
        let Some(outside) = outside else { return Ok(SigningProof::Password) };
        let method = self.method(&outside.method);
        Ok(match method.map(|method| (method.kind, method.passwords.is_some())) {
            Some((_, true)) => SigningProof::Password,
            Some((MethodKind::Oidc, _)) => SigningProof::LogInAgain(outside.method),
            _ => SigningProof::Nothing(outside.method),
        })
    }

    /// Returns true if a caller signs without a password: a provider of identities has just asked for it.
    pub fn has_fresh_login(&self, who: &Principal) -> Result<bool> {
        let Credentials::Session { name, .. } = &who.by else { return Ok(false) };
        let Some(record) = self.store.record(session::KIND, name)? else { return Ok(false) };
        let session: Session = PeopleError::read(session::KIND, name, record.value)?;
        Ok(session.proved.is_some_and(|at| now().0.saturating_sub(at.0) <= FRESH_LOGIN))
    }

    /// Proves the person who signs: by the password of this login, or by the caller's login of the last minutes.
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
            return Err(PeopleError::Unproved("a signature needs the login of a user".to_owned()));
        }
        if login == who.login && self.has_fresh_login(who)? {
            let method = self.user(login)?.outside.map_or_else(String::new, |outside| outside.method);
            return Ok((who.clone(), format!("login by {method}")));
        }
        // Of others, the answer does not say how they log in.
        let proof = if login == who.login { self.signing_proof(login)? } else { SigningProof::Password };
        match proof {
            SigningProof::Password => {}
            SigningProof::LogInAgain(method) => {
                return Err(PeopleError::Unproved(format!(
                    "a signature needs a login at '{method}' within the last 5 minutes, in which it asked for the password"
                )));
            }
            SigningProof::Nothing(method) => return Err(PeopleError::NoProof { login: login.to_owned(), method }),
        }
        if let Some(password) = password {
            let person = self.by_password(login, password, from)?;
            let method = match self.user(login)?.outside {
                Some(outside) => format!("password, checked by {}", outside.method),
                None => "password".to_owned(),
            };
            return Ok((person, method));
        }
        Err(PeopleError::Unproved("a signature needs the password again".to_owned()))
    }
}
