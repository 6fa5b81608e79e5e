//! Sessions that a user asked to keep.

use std::time::Duration;

use super::{
    super::{
        error::{PeopleError, Result},
        session::{self, Session},
        token::digest,
    },
    People,
};
use crate::store::now;

impl People {
    /// Keeps a session that has just begun for this time, even if it is not used, and at most as long as any session.
    /// Returns the time for which it is kept.
    pub fn keep_session(&self, secret: &str, wanted: Duration) -> Result<Duration> {
        let kept = wanted.min(self.settings.longest);
        let name = digest(secret);
        let Some(record) = self.store.record(session::KIND, &name)? else {
            return Err(PeopleError::Ended("session", "log in again"));
        };
        let mut session: Session = PeopleError::read(session::KIND, &name, record.value)?;
        // Its rest is counted from the last use, which is in the future as long as the session is kept.
        let ahead = i64::try_from(kept.saturating_sub(self.settings.idle).as_nanos()).unwrap_or(i64::MAX);
        session.used.0 = now().0.saturating_add(ahead);
        self.write(session::KIND, &name, &session, Some(record.version))?;
        Ok(kept)
    }
}
