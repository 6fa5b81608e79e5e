//! The time of a user's last visit.

use tampu_types::Time;

use super::{
    super::{
        error::{PeopleError, Result},
        visit::{KIND, NOTED, Visit},
    },
    People,
};
use crate::store::now;

impl People {
    /// Notes a page of a user, and returns the time at which the visit before ended; `None` if this is the first visit.
    pub fn visit(&self, login: &str) -> Result<Option<Time>> {
        let now = now();
        if let Some(known) = self.visits.lock().get(login).filter(|known| !known.is_past(NOTED, now)) {
            return Ok(known.before);
        }
        let record = self.store.record(KIND, login)?;
        let known = record.map(|record| PeopleError::read::<Visit>(KIND, login, record.value)).transpose()?;
        let visit = known.map_or(Visit { last: now, before: None }, |known| known.with_page(now));
        self.write(KIND, login, &visit, None)?;
        self.visits.lock().insert(login.to_owned(), visit);
        Ok(visit.before)
    }
}
