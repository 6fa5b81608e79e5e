//! Checks of names that users choose for themselves.
//!
//! An entry belongs to the user whose login posted it, and an imported one to the user whose login or full name is its
//! author. Rights can name a login before its user exists, and stay in a logbook that was restored. So a user must not
//! take the name of another user, that of a former user or author, or one that rights name. Administrators give such names.

use super::{
    super::{
        access::{self, Access, Subject},
        decide::IMPORTERS,
        error::{PeopleError, Result},
        login_policy::LoginPolicy,
    },
    People,
};
use crate::{
    book::same_name,
    search::{Page, Search, Stop},
};

/// Entries of posters with longer names that are looked through for a login.
const MAX_OTHER_NAMES: usize = 100;

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

    /// Fails if a login that nobody has belongs to somebody all the same: entries were posted with it or have it as their
    /// author, rights name it, or it is that of the owner of the installation.
    pub fn check_free(&self, login: &str) -> Result<()> {
        if self.is_of_entries_or_rights(login)? || self.is_admitted_by_name(login)? {
            let text = format!(
                "entries or rights of this site have the login '{login}': ask an administrator of the logbook for this name"
            );
            return Err(PeopleError::Invalid(text));
        }
        Ok(())
    }

    /// Returns true if entries were posted with a login or have it as their author, if rights or the site's rules name it, or
    /// if it is that of the owner of the installation.
    pub(super) fn is_of_entries_or_rights(&self, login: &str) -> Result<bool> {
        let is_named =
            |access: &Access| access.grants.iter().any(|grant| matches!(&grant.to, Subject::User(to) if same_name(to, login)));
        for (name, record) in self.store.records(access::KIND)? {
            if is_named(&PeopleError::read(access::KIND, &name, record.value)?) {
                return Ok(true);
            }
        }
        let in_rules = self.names_in_rules.as_ref().is_some_and(|names| names(login));
        Ok(in_rules || same_name(&self.settings.owner, login) || self.is_author(login)? || self.has_posted(login)?)
    }

    /// Returns true if the ELOG configuration of a logbook admits a login by its name. That of a login method is not asked:
    /// with a directory, the configuration means its logins.
    pub(super) fn is_admitted_by_name(&self, login: &str) -> Result<bool> {
        let names = |policy: &LoginPolicy| policy.users().is_some_and(|users| users.iter().any(|user| same_name(user, login)));
        Ok(self.known()?.books.iter().any(|(_, policy)| names(policy)))
    }

    /// Returns true if an entry was posted with a login.
    fn has_posted(&self, login: &str) -> Result<bool> {
        let words = login.replace(['"', '\\'], " ");
        if !words.contains(char::is_alphanumeric) {
            return Ok(false);
        }
        // The query also finds longer names that contain this one. Where they fill a page, the login counts as used.
        let page = self.find(format!("by:\"{words}\""), MAX_OTHER_NAMES)?;
        if page.next.is_some() || page.hits.iter().any(|hit| same_name(&hit.entry.by, login)) {
            return Ok(true);
        }
        page.stopped.map_or(Ok(false), |_| Err(PeopleError::Busy))
    }

    /// Returns the first entries of a query in all logbooks.
    fn find(&self, query: String, limit: usize) -> Result<Page> {
        let page = self.store.search(&Search { query, limit, count_to: 0, ..Search::default() }, &Stop::default())?;
        if page.hits.is_empty() && page.stopped.is_some() {
            return Err(PeopleError::Busy);
        }
        Ok(page)
    }

    /// Fails if an imported entry has the name as its author.
    fn check_author(&self, name: &str) -> Result<()> {
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
            if !self.find(format!("({importers}) \"Author\":=\"{author}\""), 1)?.hits.is_empty() {
                return Ok(true);
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
