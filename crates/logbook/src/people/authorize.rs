//! Authorization against a store: decides with the book's policy and the entry's age, both read from the store.

use tampu_types::Time;

use super::{
    Rights,
    access::{self, Access, EditPolicy},
    decide::{Resource, Verb, decide, is_imported, is_own},
    error::PeopleError,
    user::{self, User},
};
use crate::{
    entry::Entry,
    store::{Entries, PeopleStore, Records, StoreError, now},
};

/// Returns the stored access rules of a book: its own, else those of every book, else the default ones.
pub fn access_of(store: &dyn Records, book: &str) -> Result<Access, PeopleError> {
    for name in [book.to_lowercase().as_str(), access::EVERY_BOOK] {
        if let Some(record) = store.record(access::KIND, name)? {
            return PeopleError::read(access::KIND, name, record.value);
        }
    }
    Ok(Access::usual())
}

/// Stores the access rules of a book if neither it nor the site has rules.
pub fn set_first_access(store: &dyn Records, book: &str, access: &Access) -> Result<(), PeopleError> {
    let name = book.to_lowercase();
    if store.record(access::KIND, &name)?.is_some() || store.record(access::KIND, access::EVERY_BOOK)?.is_some() {
        return Ok(());
    }
    let value = serde_json::to_value(access).map_err(|error| PeopleError::Invalid(error.to_string()))?;
    match store.put_record(access::KIND, &name, &value, Some(0)) {
        // Somebody stored rules at this moment.
        Err(StoreError::RecordChanged { .. }) => Ok(()),
        done => Ok(done.map(drop)?),
    }
}

/// Changes the access rules of a book, which begin with those that hold for it.
pub fn change_access(store: &dyn Records, book: &str, change: impl FnOnce(&mut Access)) -> Result<(), PeopleError> {
    let name = book.to_lowercase();
    let version = store.record(access::KIND, &name)?.map_or(0, |record| record.version);
    let before = access_of(store, book)?;
    let mut access = before.clone();
    change(&mut access);
    if access == before {
        return Ok(());
    }
    let value = serde_json::to_value(&access).map_err(|error| PeopleError::Invalid(error.to_string()))?;
    Ok(store.put_record(access::KIND, &name, &value, Some(version)).map(drop)?)
}

/// Returns the stored policy of a book.
pub fn policy(store: &dyn Records, book: &str) -> Result<EditPolicy, PeopleError> {
    Ok(access_of(store, book)?.policy)
}

/// Returns the time from which a policy counts an entry's age: the entry's date, or the time of posting if that is
/// earlier. So a date in the future does not keep an entry open, and an imported entry is as old as its date says.
pub fn written(store: &dyn Entries, entry: &Entry) -> Result<Time, PeopleError> {
    let came = store.first_revision(&entry.at)?;
    Ok(came.map_or(entry.date, |came| came.min(entry.date)))
}

/// Decides with the stored policy and the stored age of the entry.
pub fn ask(store: &dyn PeopleStore, login: &str, rights: &Rights, verb: Verb, on: Resource<'_>) -> Result<(), PeopleError> {
    let policy = match verb {
        Verb::Edit | Verb::Delete => policy(store, on.book())?,
        _ => EditPolicy::Free,
    };
    // The import posted the entry, not its author. For its author, whose full name is kept here, the entry is their own.
    let mine = match on {
        Resource::Entry(entry) if !login.is_empty() && is_imported(entry) => {
            let user = store.record(user::KIND, login)?.map(|record| PeopleError::read::<User>(user::KIND, login, record.value));
            let full_name = user.transpose()?.map(|user| user.full_name).unwrap_or_default();
            is_own(login, &full_name, entry).then(|| Entry { by: login.to_owned(), ..entry.clone() })
        }
        _ => None,
    };
    let on = mine.as_ref().map_or(on, Resource::Entry);
    let now = now();
    if let Resource::Entry(entry) = on
        && matches!(policy, EditPolicy::OwnWithin { .. } | EditPolicy::LockedAfter { .. })
    {
        let entry = Entry { date: written(store, entry)?, ..entry.clone() };
        return Ok(decide(login, rights, verb, Resource::Entry(&entry), policy, now)?);
    }
    Ok(decide(login, rights, verb, on, policy, now)?)
}
