//! Checks of names that users choose for themselves.
//!
//! An imported entry belongs to the user whose login or full name is its author. So a user must not take the name of
//! another user, nor that of an author who is no user yet. Administrators give such names.

use super::{
    super::{
        decide::IMPORTERS,
        error::{PeopleError, Result},
    },
    People,
};
use crate::{
    book::same_name,
    search::{Search, Stop},
};

impl People {
    /// Checks a full name that a user chooses: it is neither the name nor the login of another user, and no imported
    /// entry has it as its author, unless the user has the name already.
    pub fn check_full_name(&self, login: &str, full_name: &str) -> Result<()> {
        if full_name.is_empty() {
            return Ok(());
        }
        if self.is_name_of_another(login, full_name)? {
            let text = format!("the name '{full_name}' is that of another user: write it so that the two differ");
            return Err(PeopleError::Invalid(text));
        }
        let is_own = self.users()?.iter().any(|user| user.login == login && user.full_name == full_name);
        if is_own { Ok(()) } else { self.check_author(full_name) }
    }

    /// Fails if an imported entry has the name as its author.
    pub(super) fn check_author(&self, name: &str) -> Result<()> {
        if !self.is_author(name)? {
            return Ok(());
        }
        let text = format!("imported entries have the author '{name}': ask an administrator of the logbook for this name");
        Err(PeopleError::Invalid(text))
    }

    /// Returns true if an imported entry has the name, or one that differs by case and punctuation alone, as an author.
    pub(super) fn is_author(&self, name: &str) -> Result<bool> {
        let importers = IMPORTERS.map(|importer| format!("by:\"{importer}\"")).join(" OR ");
        // Several authors of an entry are one text, as `Zoe | Max`.
        for author in name.split('|').map(|author| author.replace(['"', '\\'], " ")) {
            if !author.contains(char::is_alphanumeric) {
                continue;
            }
            let query = format!("({importers}) \"Author\":=\"{author}\"");
            let search = Search { query, limit: 1, count_to: 0, ..Search::default() };
            let page = self.store.search(&search, &Stop::default())?;
            if !page.hits.is_empty() {
                return Ok(true);
            }
            if page.stopped.is_some() {
                return Err(PeopleError::Busy);
            }
        }
        Ok(false)
    }

    /// Returns true if another user than this one has the name as the login or the full name.
    pub(super) fn is_name_of_another(&self, login: &str, name: &str) -> Result<bool> {
        let users = self.users()?;
        let mut others = users.iter().filter(|user| user.login != login);
        Ok(others.any(|user| same_name(&user.login, name) || same_name(&user.full_name, name)))
    }
}
