//! Requests for a new password by mail, and the use of their links.

use std::{net::IpAddr, sync::Arc, time::Instant};

use tampu_workers::{OnPanic, WorkerThread};

use super::{
    super::{
        error::{PeopleError, Result},
        password::{BadPassword, SHORTEST},
        registration::is_mail_address,
        reset::{KIND, LIFE, MAX_WORKING, PAUSE, PendingReset, ResetLink},
        token::{digest, secret},
        user::User,
    },
    People,
};
use crate::store::now;

impl People {
    /// Takes a request for a new password of the user with a login or a mail address. It returns at once and says nothing
    /// about the user. `made` receives the link later, on another thread, if there is such a user with a mail address and a
    /// password here; or the error that prevented it.
    pub fn request_reset(
        self: &Arc<People>,
        name: &str,
        from: IpAddr,
        made: impl FnOnce(Result<ResetLink>) + Send + 'static,
    ) -> Result<()> {
        let turn = self.resetting.try_enter(MAX_WORKING).ok_or(PeopleError::Busy)?;
        self.resets_of.take(from, Instant::now()).map_err(PeopleError::TooOften)?;
        let (people, name) = (self.clone(), name.to_owned());
        let work = move || {
            let _turn = turn;
            match people.begin_reset(&name) {
                Ok(Some(link)) => made(Ok(link)),
                Ok(None) => {}
                Err(error) => made(Err(error)),
            }
        };
        // The response must not take longer for a user who exists.
        WorkerThread::named("book-reset").spawn(OnPanic::ReportOnly, work)?;
        Ok(())
    }

    /// Makes a link, in place of an earlier one of the user.
    fn begin_reset(&self, name: &str) -> Result<Option<ResetLink>> {
        let name = name.trim();
        let users = self.users()?;
        let by_login = users.iter().find(|user| user.login == name);
        let user = by_login.or_else(|| {
            let mut found = users.iter().filter(|user| !user.email.is_empty() && user.email.eq_ignore_ascii_case(name));
            // An address of several users names none of them.
            found.next().filter(|_| found.next().is_none())
        });
        let has_place =
            |user: &&User| !user.inactive && user.password.is_some() && user.outside.is_none() && is_mail_address(&user.email);
        let Some(user) = user.filter(has_place) else { return Ok(None) };
        let present = self.store.record(KIND, &user.login)?;
        let version = present.as_ref().map_or(0, |record| record.version);
        if let Some(record) = present {
            let pending: PendingReset = PeopleError::read(KIND, &user.login, record.value)?;
            if pending.is_within(PAUSE, now()) {
                return Ok(None);
            }
        }
        let secret = secret()?;
        let pending = PendingReset { digest: digest(&secret), generation: user.generation, made: now() };
        self.write(KIND, &user.login, &pending, Some(version))?;
        Ok(Some(ResetLink { user: user.clone(), secret }))
    }

    /// Checks a link, and returns its user.
    pub fn check_reset(&self, login: &str, secret: &str) -> Result<User> {
        let ended = || PeopleError::Ended("link for a new password", "ask for another one");
        let record = self.store.record(KIND, login)?.ok_or_else(ended)?;
        let pending: PendingReset = PeopleError::read(KIND, login, record.value)?;
        // Digests of secrets are compared, whose time says nothing about the secret.
        let fits = pending.digest == digest(secret) && pending.is_within(LIFE, now());
        let user = if fits { self.user(login).map_err(|_| ended())? } else { return Err(ended()) };
        if user.generation != pending.generation || user.inactive || user.outside.is_some() {
            return Err(ended());
        }
        Ok(user)
    }

    /// Sets the new password of a link's user, and ends the link, all sessions and all tokens of the user.
    pub fn use_reset(&self, login: &str, secret: &str, password: &str, from: IpAddr) -> Result<User> {
        self.check_reset(login, secret)?;
        if password.chars().count() < SHORTEST {
            return Err(BadPassword::Short.into());
        }
        let new = self.hash(password, from)?;
        // Of two requests with one link, one removes it.
        let user = self.check_reset(login, secret)?;
        if !self.store.drop_record(KIND, login)? {
            return Err(PeopleError::Ended("link for a new password", "ask for another one"));
        }
        let changed = self.change_user(&user.login, |user| {
            user.password = Some(new.clone());
            user.generation = user.generation.wrapping_add(1);
        })?;
        self.end_sessions(login)?;
        Ok(changed)
    }
}
