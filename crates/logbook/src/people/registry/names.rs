//! Checks of names that users choose for themselves.
//!
//! An imported entry belongs to the user whose login or full name is its author. So a user must not take the name of
//! another user.

use super::{
    super::error::{PeopleError, Result},
    People,
};
use crate::book::same_name;

impl People {
    /// Checks a full name that a user chooses: it is neither the name nor the login of another user.
    pub fn check_full_name(&self, login: &str, full_name: &str) -> Result<()> {
        if full_name.is_empty() || !self.is_name_of_another(login, full_name)? {
            return Ok(());
        }
        Err(PeopleError::Invalid(format!("the name '{full_name}' is that of another user: write it so that the two differ")))
    }

    /// Returns true if another user than this one has the name as the login or the full name.
    pub(super) fn is_name_of_another(&self, login: &str, name: &str) -> Result<bool> {
        let users = self.users()?;
        let mut others = users.iter().filter(|user| user.login != login);
        Ok(others.any(|user| same_name(&user.login, name) || same_name(&user.full_name, name)))
    }
}
