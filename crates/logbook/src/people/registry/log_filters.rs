//! Saved filters of log records.

use super::{
    super::{
        error::{PeopleError, Result},
        log_filter::{KIND, LogFilter, LogFilters},
    },
    People,
};
use crate::store::StoreError;

impl People {
    /// Returns the filters of a user and those that others share, each with its owner.
    pub fn log_filters(&self, login: &str) -> Result<Vec<(String, LogFilter)>> {
        let mut all = Vec::new();
        for (owner, record) in self.store.records(KIND)? {
            let filters = PeopleError::read::<LogFilters>(KIND, &owner, record.value)?.list();
            all.extend(filters.into_iter().filter(|one| one.shared || owner == login).map(|one| (owner.clone(), one)));
        }
        Ok(all)
    }

    /// Saves a filter of a user. Returns false if the user has too many.
    pub fn save_log_filter(&self, login: &str, filter: &LogFilter) -> Result<bool> {
        self.change_log_filters(login, |filters| filters.save(filter.clone()))
    }

    /// Deletes a filter of a user. Returns false if there is none of this name.
    pub fn drop_log_filter(&self, login: &str, name: &str) -> Result<bool> {
        self.change_log_filters(login, |filters| filters.drop(name))
    }

    /// Changes the filters of a user, also while another page changes them. A change that returns false is not written.
    fn change_log_filters(&self, login: &str, change: impl Fn(&mut LogFilters) -> bool) -> Result<bool> {
        loop {
            let record = self.store.record(KIND, login)?;
            let version = record.as_ref().map_or(0, |record| record.version);
            let known = record.map(|record| PeopleError::read(KIND, login, record.value)).transpose()?;
            let mut filters: LogFilters = known.unwrap_or_default();
            if !change(&mut filters) {
                return Ok(false);
            }
            match self.write(KIND, login, &filters, Some(version)) {
                Err(PeopleError::Store(StoreError::RecordChanged { .. })) => {}
                done => return done.map(|_| true),
            }
        }
    }
}
