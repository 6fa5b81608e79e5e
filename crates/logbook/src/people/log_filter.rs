//! Filters of log records that users save under names, for themselves or for all users.

use serde::{Deserialize, Serialize};

/// The kind of the store's records, which are named by the login.
pub const KIND: &str = "log-filters";
/// Most filters of one user.
pub const MOST: usize = 200;

/// A filter that a user has saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogFilter {
    /// Its name, which no other filter of the user has.
    pub name: String,
    /// The filter, in the options of `tampu log query`.
    pub filter: String,
    /// True if all users see it.
    pub shared: bool,
}

/// The filters of a user, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogFilters(Vec<LogFilter>);

impl LogFilters {
    /// Returns the filters in the order of their names.
    pub fn list(self) -> Vec<LogFilter> {
        self.0
    }

    /// Adds a filter, in place of another of its name. Returns false if there are too many.
    pub fn save(&mut self, filter: LogFilter) -> bool {
        match self.0.binary_search_by(|known| known.name.cmp(&filter.name)) {
            Ok(at) => self.0[at] = filter,
            Err(_) if self.0.len() >= MOST => return false,
            Err(at) => self.0.insert(at, filter),
        }
        true
    }

    /// Removes a filter. Returns false if there is none of this name.
    pub fn drop(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|known| known.name != name);
        self.0.len() < before
    }
}
