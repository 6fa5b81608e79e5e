//! Users from outside: their first login, their names and groups at each further one, and their binding to a method.

use std::net::IpAddr;

use tampu_types::Time;

use super::{
    super::{
        error::{PeopleError, Result},
        outside::{
            CheckPassword, LoginMethod, MAX_NAME, MethodFailure, MethodKind, Outside, OutsideCalls, OutsideRights, OutsideUser,
            is_plain, normal_login,
        },
        principal::{Credentials, Principal},
        session::{self, Session, form_token},
        token::{digest, secret},
        user::{self, MAX_FIELD, User},
    },
    People,
};
use crate::{book::same_name, store::now};

impl People {
    /// The login methods outside of the logbook, in their order.
    pub fn methods(&self) -> &[LoginMethod] {
        &self.methods
    }

    /// Counts passwords that login methods check together with these.
    pub fn with_asking(self, asking: OutsideCalls) -> People {
        People { asking, ..self }
    }

    /// Returns a login method, by its name.
    pub fn method(&self, name: &str) -> Option<&LoginMethod> {
        self.methods.iter().find(|method| method.name == name)
    }

    /// Returns the rights of a user that come from groups outside. They hold while the method is configured.
    pub(super) fn outside_rights(&self, user: &User) -> OutsideRights {
        let method = user.outside.as_ref().and_then(|outside| Some((self.method(&outside.method)?, outside)));
        method.map(|(method, outside)| method.rights_of(&outside.groups)).unwrap_or_default()
    }

    /// Asks the login methods about a password, in their order. A user who is bound to one is asked about there alone.
    pub(super) fn ask_methods(&self, login: &str, password: &str, from: IpAddr, user: Option<&User>) -> Result<Option<User>> {
        // A directory takes an empty password for a login of nobody, which it admits.
        if password.is_empty() {
            return Ok(None);
        }
        let mut waits = None;
        let bound = user.and_then(|user| user.outside.as_ref()).map(|outside| outside.method.as_str());
        let asked = self.methods.iter().filter(|method| bound.is_none_or(|name| name == method.name));
        let mut away = None;
        for (method, check) in asked.filter_map(|method| Some((method, method.passwords.as_deref()?))) {
            let check: &dyn CheckPassword = check;
            // A slow directory leaves places for users of the logbook itself.
            if waits.is_none() {
                waits = Some(self.asking.password().ok_or(PeopleError::Busy)?);
            }
            match check.check(login, password, from) {
                Ok(Some(found)) => return self.adopt(method, &found).map(Some),
                Ok(None) => {}
                Err(MethodFailure::Busy) => return Err(PeopleError::Busy),
                Err(MethodFailure::Away(why)) => {
                    away.get_or_insert_with(|| PeopleError::Away { method: method.name.clone(), why });
                }
            }
        }
        // The absent one may be the one that knows the person.
        away.map_or(Ok(None), Err)
    }

    /// Returns the caller whom a proxy or a ticket proves with a request, without a session.
    pub fn by_method(&self, method: &str, found: &OutsideUser) -> Result<Principal> {
        let user = self.proved(method, found)?;
        let kind = self.method(method).map_or(MethodKind::Proxy, |method| method.kind);
        self.principal(&user, Credentials::Proxy { generation: user.generation, kind })
    }

    /// Begins a session of a person whom a login method has proved. `proved` is the time at which a provider of identities
    /// has asked for the password, if it says so. Returns the caller, and the secret for the cookie.
    pub fn log_in_by_method(&self, method: &str, found: &OutsideUser, proved: Option<Time>) -> Result<(Principal, String)> {
        let user = self.proved(method, found)?;
        self.begin_session(&user, proved)
    }

    /// Begins a session of a user whose credentials were checked.
    pub(super) fn begin_session(&self, user: &User, proved: Option<Time>) -> Result<(Principal, String)> {
        let secret = secret()?;
        let name = digest(&secret);
        self.make_room(&user.login)?;
        let at = now();
        let session = Session { login: user.login.clone(), generation: user.generation, begun: at, used: at, proved };
        self.write(session::KIND, &name, &session, Some(0))?;
        let form = form_token(&secret);
        Ok((self.principal(user, Credentials::Session { name, form })?, secret))
    }

    fn proved(&self, method: &str, found: &OutsideUser) -> Result<User> {
        let known = self.method(method).ok_or_else(|| PeopleError::Invalid(format!("there is no login method '{method}'")))?;
        let user = self.adopt(known, found)?;
        if user.inactive { Err(PeopleError::Wrong) } else { Ok(user) }
    }

    /// Returns the user of a proved person, with the person's names and groups. The first login makes the user, if the
    /// method registers users. A user that exists already is never taken over.
    fn adopt(&self, method: &LoginMethod, found: &OutsideUser) -> Result<User> {
        if !is_plain(&found.subject) {
            let why = format!("an identity of '{}' has 1 to {MAX_NAME} bytes, without control characters", method.name);
            return Err(PeopleError::Invalid(why));
        }
        let groups = method.kept_groups(&found.groups);
        let name = method.name.clone();
        let outside = Outside { method: name.clone(), subject: found.subject.clone(), groups };
        // A name that the method leaves out stays as it is here.
        let [full_name, email] = [&found.full_name, &found.email].map(|text| shortened(text));
        let told = |user: &User| User {
            full_name: if full_name.is_empty() { user.full_name.clone() } else { full_name.clone() },
            email: if email.is_empty() { user.email.clone() } else { email.clone() },
            outside: Some(outside.clone()),
            ..user.clone()
        };
        let is_bound = |user: &&User| user.outside.as_ref().is_some_and(|bound| bound.is(&name, &found.subject));
        let known = self.known()?.users.values().find(is_bound).cloned();
        if let Some(user) = known {
            let new = told(&user);
            if new == user {
                return Ok(user);
            }
            // Many people choose their name at an identity provider, and with an author's name comes what the author wrote.
            let keeps_name = new.full_name != user.full_name && self.is_author(&new.full_name)?;
            return self.change_user(&user.login, |user| {
                let full_name = if keeps_name { user.full_name.clone() } else { told(user).full_name };
                *user = User { full_name, ..told(user) };
            });
        }
        let login = normal_login(&found.login);
        for _ in 0..2 {
            let users = self.users()?;
            let found_there = users.iter().find(is_bound);
            // At a provider people often choose the login themselves, so it names nobody.
            let awaited = |user: &&User| {
                let bound = method.kind != MethodKind::Oidc
                    && user.outside.as_ref().is_some_and(|bound| bound.method == name && bound.subject.is_empty());
                bound && same_name(&user.login, &login)
            };
            if let Some(user) = found_there.or_else(|| users.iter().find(awaited)) {
                return self.change_user(&user.login, |user| *user = told(user));
            }
            if let Some(other) = users.iter().find(|user| same_name(&user.login, &login)) {
                return Err(PeopleError::NotBound { login: other.login.clone(), method: name });
            }
            if !method.register {
                return Err(PeopleError::NotRegistered { login, method: name });
            }
            let user = told(&User::new(&login));
            self.check_new_of_method(&user, method)?;
            match self.add_user(user.clone()) {
                Ok(()) => return Ok(user),
                // Another login of the same person was quicker.
                Err(PeopleError::IsThere(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Err(PeopleError::NotBound { login, method: name })
    }

    /// Checks that a new user of a login method takes no name that entries or rights have.
    fn check_new_of_method(&self, user: &User, method: &LoginMethod) -> Result<()> {
        let taken = match (self.is_of_entries_or_rights(&user.login)?, self.is_author(&user.full_name)?) {
            (true, _) => &user.login,
            (_, true) => &user.full_name,
            _ => return Ok(()),
        };
        Err(PeopleError::NameInUse { name: taken.clone(), method: method.name.clone() })
    }

    /// Binds a user to a login method. Without a subject, the next person whom the method proves with this login is the
    /// user; a provider of identities needs a subject. The user's password here ends, with sessions and tokens.
    pub fn bind_user(&self, login: &str, method: &str, subject: &str) -> Result<User> {
        user::check_name(method)?;
        if subject.is_empty() && self.method(method).is_some_and(|method| method.kind == MethodKind::Oidc) {
            let why = "people may choose their login there, so name the identity (the claim 'sub') as the subject";
            return Err(PeopleError::Invalid(format!(
                "'{method}' is a provider of identities: {why}; the hub's log has it after a refused login"
            )));
        }
        if !subject.is_empty() && !is_plain(subject) {
            return Err(PeopleError::Invalid(format!("a subject has at most {MAX_NAME} bytes, without control characters")));
        }
        let taken = self.users()?.into_iter().find(|user| user.outside.as_ref().is_some_and(|bound| bound.is(method, subject)));
        if let Some(other) = taken.filter(|other| other.login != login) {
            return Err(PeopleError::Invalid(format!("'{}' is bound to this identity of '{method}' already", other.login)));
        }
        let outside = Outside { method: method.to_owned(), subject: subject.to_owned(), groups: Vec::new() };
        let user = self.change_user(login, |user| {
            user.outside = Some(outside.clone());
            user.password = None;
            user.generation = user.generation.wrapping_add(1);
        })?;
        self.end_sessions(login)?;
        Ok(user)
    }

    /// Makes a user local: no login method proves the user any longer, and a password can be set here.
    pub fn unbind_user(&self, login: &str) -> Result<User> {
        let user = self.change_user(login, |user| {
            if user.outside.take().is_some() {
                user.generation = user.generation.wrapping_add(1);
            }
        })?;
        self.end_sessions(login)?;
        Ok(user)
    }
}

/// Returns a name or an address as it can be stored.
fn shortened(text: &str) -> String {
    let text: String = text.trim().chars().filter(|c| !c.is_control()).take(MAX_FIELD).collect();
    text.trim_end().to_owned()
}
