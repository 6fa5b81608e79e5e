//! Requests for a new password by mail, and the use of their links.

use std::{net::IpAddr, sync::Arc, time::Instant};

use tampu_workers::{OnPanic, WorkerThread};

use super::{
    super::{
        error::{PeopleError, Result},
        password::{BadPassword, SHORTEST},
        registration::is_mail_address,
        reset::{KIND, LIFE, MAX_WORKING, PAUSE, PendingReset, PendingResets, ResetLink},
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

    /// Makes a link, beside those of the user that can still be used.
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
        let present = present.map(|record| PeopleError::read::<PendingResets>(KIND, &user.login, record.value)).transpose()?;
        if present.as_ref().is_some_and(|pending| pending.newest.is_within(PAUSE, now())) {
            return Ok(None);
        }
        let secret = secret()?;
        let newest = PendingReset { digest: digest(&secret), generation: user.generation, made: now() };
        self.write(KIND, &user.login, &PendingResets::with(present, newest), Some(version))?;
        Ok(Some(ResetLink { user: user.clone(), secret }))
    }

    /// Checks a link, and returns its user.
    pub fn check_reset(&self, login: &str, secret: &str) -> Result<User> {
        let ended = || PeopleError::Ended("link for a new password", "ask for another one");
        let record = self.store.record(KIND, login)?.ok_or_else(ended)?;
        let pending: PendingResets = PeopleError::read(KIND, login, record.value)?;
        let pending = pending.find(&digest(secret)).filter(|link| link.is_within(LIFE, now())).ok_or_else(ended)?;
        let user = self.user(login).map_err(|_| ended())?;
        if user.generation != pending.generation || user.inactive || user.outside.is_some() {
            return Err(ended());
        }
        Ok(user)
    }

    /// Sets the new password of a link's user, and ends all links, sessions and tokens of the user.
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
