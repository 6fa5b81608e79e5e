//! Registrations of new users, their approval and their refusal.

use std::{net::IpAddr, time::Instant};

use super::{
    super::{
        error::{PeopleError, Result},
        password::{BadPassword, Password, SHORTEST},
        password_files::SELF_REGISTERED,
        registration::{KIND, MAX_WAITING, NewAccount, Registration, Waiting, is_mail_address},
        token::secret,
        user::User,
    },
    People,
};
use crate::{book::same_name, store::now};

impl People {
    /// Makes a user at once, for a person without an account. The only group of the user is that of the logbook's password
    /// file, or of users who registered themselves.
    pub fn register(&self, new: &NewAccount, from: IpAddr) -> Result<User> {
        let user = self.check_new(new)?;
        self.take_registration(from)?;
        if self.is_name_of_another("", &user.login)? {
            return Err(PeopleError::IsThere(user.login));
        }
        self.check_free(&user.login)?;
        self.check_full_name("", &user.full_name)?;
        let password = self.hash(&new.password, from)?;
        let user = User { password: Some(password), groups: vec![self.group_at(new.book.as_deref())?], ..user };
        self.add_user(user.clone())?;
        Ok(user)
    }

    /// Keeps a registration until an administrator approves or refuses it. The result does not say whether the login is
    /// taken, because that would show the logins of the site.
    pub fn request_account(&self, new: &NewAccount, from: IpAddr) -> Result<Registration> {
        let user = self.check_new(new)?;
        self.take_registration(from)?;
        if self.store.records(KIND)?.len() >= MAX_WAITING {
            return Err(PeopleError::Invalid(format!(
                "{MAX_WAITING} registrations are waiting, which is the limit: ask the administrator of the logbook"
            )));
        }
        let id = secret()?[..12].to_owned();
        let User { login, full_name, email, .. } = user;
        let registration =
            Registration { id, login, full_name, email, from: from.to_string(), at: now(), taken: false, author: false };
        let group = self.group_at(new.book.as_deref())?;
        let waiting = Waiting { registration, password: self.hash(&new.password, from)?, group };
        self.write(KIND, &waiting.registration.id, &waiting, Some(0))?;
        Ok(waiting.registration)
    }

    /// Returns the registrations that wait, the oldest first.
    pub fn registrations(&self) -> Result<Vec<Registration>> {
        let mut all = Vec::new();
        for (name, record) in self.store.records(KIND)? {
            let Waiting { mut registration, .. } = PeopleError::read(KIND, &name, record.value)?;
            registration.taken =
                self.is_name_of_another("", &registration.login)? || self.is_name_of_another("", &registration.full_name)?;
            registration.author = self.check_free(&registration.login).is_err() || self.is_author(&registration.full_name)?;
            all.push(registration);
        }
        all.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
        Ok(all)
    }

    /// Makes a user of a registration. A login or full name that is taken is an error, and the registration stays.
    pub fn approve(&self, id: &str) -> Result<User> {
        let record = self.store.record(KIND, id)?.ok_or_else(|| no_registration(id))?;
        let Waiting { registration, password, group } = PeopleError::read(KIND, id, record.value)?;
        let Registration { login, full_name, email, .. } = registration;
        if self.is_name_of_another("", &login)? {
            return Err(PeopleError::IsThere(login));
        }
        if self.is_name_of_another("", &full_name)? && !full_name.is_empty() {
            return Err(PeopleError::Invalid(format!("the name '{full_name}' is that of another user: refuse the registration")));
        }
        let user = User { full_name, email, password: Some(password), groups: vec![group], ..User::new(&login) };
        self.add_user(user.clone())?;
        self.store.drop_record(KIND, id)?;
        Ok(user)
    }

    /// Drops a registration and returns it.
    pub fn refuse(&self, id: &str) -> Result<Registration> {
        let record = self.store.record(KIND, id)?.ok_or_else(|| no_registration(id))?;
        let Waiting { registration, .. } = PeopleError::read(KIND, id, record.value)?;
        if !self.store.drop_record(KIND, id)? {
            return Err(no_registration(id));
        }
        Ok(registration)
    }

    /// Checks names, address and password before anything costs time.
    fn check_new(&self, new: &NewAccount) -> Result<User> {
        if self.is_open()? {
            let text = "the logbook has no users yet: its owner makes the first one with 'tampu book users add LOGIN --admin'";
            return Err(PeopleError::Invalid(text.to_owned()));
        }
        let NewAccount { login, full_name, email, password, .. } = new;
        let user = User { full_name: full_name.clone(), email: email.clone(), ..User::new(login) };
        user.check()?;
        if !is_mail_address(email) {
            let text = format!("'{}' is no address for mail; write name@host", email.escape_debug());
            return Err(PeopleError::Invalid(text));
        }
        if password.chars().count() < SHORTEST {
            return Err(BadPassword::Short.into());
        }
        Ok(user)
    }

    /// Returns the group of a person who registers at a book, or outside of books.
    fn group_at(&self, book: Option<&str>) -> Result<String> {
        let known = self.known()?;
        let group = match book {
            Some(name) => {
                let found = known.books.iter().find(|(known, _)| same_name(known, name));
                found.and_then(|(_, policy)| policy.password_file()).map(|file| known.files.group(file))
            }
            None => known.files.only_group(),
        };
        Ok(group.unwrap_or_else(|| SELF_REGISTERED.to_owned()))
    }

    fn take_registration(&self, from: IpAddr) -> Result<()> {
        self.registrations_of.take(from, Instant::now()).map_err(PeopleError::TooOften)
    }

    /// Hashes a new password of a caller who has not logged in, among the few that are hashed at a time.
    pub(super) fn hash(&self, password: &str, from: IpAddr) -> Result<Password> {
        let _turn = self.hashing.turn(from)?;
        Ok(Password::new(password)?)
    }
}

fn no_registration(id: &str) -> PeopleError {
    PeopleError::NoRegistration(id.to_owned())
}
