//! Whether somebody may do something: the one place that says so.

use std::fmt;

use tampu_types::Time;

use super::{
    PeopleError, Right, Rights,
    access::{self, EditPolicy},
    user::{self, User},
};
use crate::{
    entry::{Entry, EntryRef},
    store::Store,
};

/// What somebody wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// See it: entries, attachments, history, searches.
    Read,
    /// Post into a book, or answer an entry. To move an entry is to delete it and to post it elsewhere; to copy it, to read and to post it.
    Post,
    /// Change an entry, lock it, add attachments to it.
    Edit,
    /// Delete an entry.
    Delete,
    /// Change what a book is, and who may do what in it; on the site: make books, look after users.
    Administer,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verb::Read => "read",
            Verb::Post => "post to",
            Verb::Edit => "change",
            Verb::Delete => "delete",
            Verb::Administer => "administer",
        })
    }
}

/// What it is to be done with.
#[derive(Debug, Clone, Copy)]
pub enum Resource<'a> {
    /// A book, by its name.
    Book(&'a str),
    /// An entry.
    Entry(&'a Entry),
}

impl Resource<'_> {
    fn book(&self) -> &str {
        match self {
            Resource::Book(name) => name,
            Resource::Entry(entry) => &entry.at.book,
        }
    }

    fn id(&self) -> Option<u32> {
        match self {
            Resource::Book(_) => None,
            Resource::Entry(entry) => Some(entry.at.id),
        }
    }
}

/// A book or an entry of it, in words.
fn thing(book: &str, id: Option<u32>) -> String {
    match id {
        Some(id) => format!("entry {book}/{id}"),
        None => format!("the logbook '{book}'"),
    }
}

/// That somebody may not, why, and what can be done about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It does not exist for them.
    #[error("there is no logbook '{0}', or it is not for you to see")]
    Unseen(String),
    /// They have not logged in.
    #[error("to {verb} {} you have to log in", thing(book, *id))]
    LogIn {
        /// What they wanted to do.
        verb: Verb,
        /// In which book.
        book: String,
        /// With which entry of it, if it was one.
        id: Option<u32>,
    },
    /// They lack the right.
    #[error("'{login}' may not {verb} {}: the right '{}' is missing; who administers the logbook can give it", thing(book, *id), .right.name())]
    NoRight {
        /// Who.
        login: String,
        /// What they wanted to do.
        verb: Verb,
        /// In which book.
        book: String,
        /// With which entry of it, if it was one.
        id: Option<u32>,
        /// What they lack.
        right: Right,
    },
    /// It is somebody else's entry.
    #[error("entry {at} was written by '{by}': '{login}' may only {verb} entries of their own; write a reply")]
    NotOwn {
        /// Which.
        at: EntryRef,
        /// Whose it is.
        by: String,
        /// Who wanted to.
        login: String,
        /// Do what.
        verb: Verb,
    },
    /// The time for it is over, or it is never allowed.
    #[error("entry {at} stays as it is: {why}; write a reply")]
    Stays {
        /// Which.
        at: EntryRef,
        /// The policy, in words.
        why: String,
    },
}

/// Decides. `policy` is the book's, `now` the moment it is asked for; an empty login is a guest. An entry is as old as its date says: [`ask`] puts
/// there when it was [`written`].
pub fn decide(login: &str, rights: &Rights, verb: Verb, on: Resource<'_>, policy: EditPolicy, now: Time) -> Result<(), Refused> {
    let book = on.book();
    let may = |right| rights.may(right, book);
    let lacks = |right| {
        if !may(Right::Read) && !may(Right::Write) {
            return if login.is_empty() {
                Refused::LogIn { verb, book: book.to_owned(), id: on.id() }
            } else {
                Refused::Unseen(book.to_owned())
            };
        }
        match login {
            "" => Refused::LogIn { verb, book: book.to_owned(), id: on.id() },
            login => Refused::NoRight { login: login.to_owned(), verb, book: book.to_owned(), id: on.id(), right },
        }
    };
    let needs = |right| if may(right) { Ok(()) } else { Err(lacks(right)) };
    match (verb, on) {
        (Verb::Read, _) => needs(Right::Read),
        (Verb::Post, _) => needs(Right::Write),
        (Verb::Administer, _) => needs(Right::Admin),
        (Verb::Edit | Verb::Delete, Resource::Book(_)) if may(Right::EditAny) => Ok(()),
        (Verb::Edit | Verb::Delete, Resource::Book(_)) => needs(Right::EditOwn),
        (Verb::Edit | Verb::Delete, Resource::Entry(entry)) => {
            let own = is_own(login, "", entry);
            if !may(Right::EditAny) {
                needs(Right::EditOwn)?;
                if !own {
                    let (at, by, login) = (entry.at.clone(), entry.by.clone(), login.to_owned());
                    return Err(if login.is_empty() { lacks(Right::EditAny) } else { Refused::NotOwn { at, by, login, verb } });
                }
            }
            by_policy(entry, may(Right::EditAny), may(Right::Admin), policy, now)
        }
    }
}

fn by_policy(entry: &Entry, edits_any: bool, administers: bool, policy: EditPolicy, now: Time) -> Result<(), Refused> {
    const MINUTE: i64 = 60 * 1_000_000_000;
    let age = now.0.saturating_sub(entry.date.0);
    let stays = |why: String| Err(Refused::Stays { at: entry.at.clone(), why });
    match policy {
        EditPolicy::Free => Ok(()),
        EditPolicy::OwnWithin { .. } if edits_any => Ok(()),
        EditPolicy::OwnWithin { minutes } if age > i64::from(minutes).saturating_mul(MINUTE) => {
            stays(format!("in this logbook one's own entries can be changed for {minutes} minutes"))
        }
        EditPolicy::LockedAfter { hours } if age > i64::from(hours).saturating_mul(60 * MINUTE) && !administers => {
            stays(format!("in this logbook entries are locked after {hours} hours"))
        }
        EditPolicy::OwnWithin { .. } | EditPolicy::LockedAfter { .. } => Ok(()),
        EditPolicy::AppendOnly => stays("in this logbook nothing is changed or deleted".to_owned()),
    }
}

/// Whether an entry is somebody's: they posted it, or it came from ELOG and has their login or full name as its author's. A full name that is not
/// known is empty.
pub fn is_own(login: &str, full_name: &str, entry: &Entry) -> bool {
    if login.is_empty() {
        return false;
    }
    if entry.by == login {
        return true;
    }
    let author = entry.content.attribute("Author").map(|author| author.joined()).unwrap_or_default();
    is_imported(entry) && !author.is_empty() && (author == login || author == full_name)
}

/// What was imported was posted by the import; its author is what it says.
fn is_imported(entry: &Entry) -> bool {
    matches!(entry.by.as_str(), "import-elog" | "follow-elog")
}

/// The policy of a book, as it is kept.
pub fn policy(store: &dyn Store, book: &str) -> Result<EditPolicy, PeopleError> {
    for name in [book.to_lowercase().as_str(), access::EVERY_BOOK] {
        if let Some(record) = store.record(access::KIND, name)? {
            return Ok(PeopleError::read::<access::Access>(access::KIND, name, record.value)?.policy);
        }
    }
    Ok(EditPolicy::Free)
}

/// When an entry was written, for what a policy says of its age: the time it says, unless that is later than it came into the store. So nobody
/// keeps an entry open by dating it ahead, and one that was taken over is as old as it says.
pub fn written(store: &dyn Store, entry: &Entry) -> Result<Time, PeopleError> {
    let came = store.history(&entry.at)?.first().map(|revision| revision.at);
    Ok(came.map_or(entry.date, |came| came.min(entry.date)))
}

/// Decides with the policy and the age of the entry that the store has.
pub fn ask(store: &dyn Store, login: &str, rights: &Rights, verb: Verb, on: Resource<'_>) -> Result<(), PeopleError> {
    let policy = match verb {
        Verb::Edit | Verb::Delete => policy(store, on.book())?,
        _ => EditPolicy::Free,
    };
    // By whom an import posted is not who wrote it: for its author, whose full name is kept here, it is their own.
    let mine = match on {
        Resource::Entry(entry) if !login.is_empty() && is_imported(entry) => {
            let user = store.record(user::KIND, login)?.map(|record| PeopleError::read::<User>(user::KIND, login, record.value));
            let full_name = user.transpose()?.map(|user| user.full_name).unwrap_or_default();
            is_own(login, &full_name, entry).then(|| Entry { by: login.to_owned(), ..entry.clone() })
        }
        _ => None,
    };
    let on = mine.as_ref().map_or(on, Resource::Entry);
    let now = super::registry::now();
    if let Resource::Entry(entry) = on
        && matches!(policy, EditPolicy::OwnWithin { .. } | EditPolicy::LockedAfter { .. })
    {
        let entry = Entry { date: written(store, entry)?, ..entry.clone() };
        return Ok(decide(login, rights, verb, Resource::Entry(&entry), policy, now)?);
    }
    Ok(decide(login, rights, verb, on, policy, now)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Content;

    fn entry(by: &str) -> Entry {
        let at = EntryRef::new("Shift", 7);
        let content = Content::default();
        let (date, changed) = (Time::from_unix(1000, 0), Time::from_unix(1000, 0));
        Entry { at, date, zone: 0, by: by.to_owned(), revision: 0, changed, parent: None, thread: 7, content }
    }

    fn rights(of: &[Right]) -> Rights {
        Rights([("Shift".to_owned(), of.to_vec())].into())
    }

    /// Every set of rights, every verb, own and foreign entries, every policy, before and after its time.
    #[test]
    fn the_matrix() {
        use Right::{Admin, EditAny, EditOwn, Read, Write};
        let policies = [
            EditPolicy::Free,
            EditPolicy::OwnWithin { minutes: 10 },
            EditPolicy::LockedAfter { hours: 1 },
            EditPolicy::AppendOnly,
        ];
        let mut asked = 0;
        for bits in 0..32u32 {
            let has: Vec<Right> =
                Right::ALL.into_iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1).map(|(_, r)| r).collect();
            let (any, own) = (has.contains(&EditAny), has.contains(&EditOwn));
            for (login, is_own) in [("zoe", true), ("max", false), ("", false)] {
                for policy in policies {
                    for late in [false, true] {
                        let now = Time::from_unix(if late { 1000 + 7200 } else { 1060 }, 0);
                        let entry = entry("zoe");
                        let ask = |verb| decide(login, &rights(&has), verb, Resource::Entry(&entry), policy, now);
                        assert_eq!(ask(Verb::Read).is_ok(), has.contains(&Read));
                        assert_eq!(ask(Verb::Post).is_ok(), has.contains(&Write));
                        assert_eq!(ask(Verb::Administer).is_ok(), has.contains(&Admin));
                        let open = match policy {
                            EditPolicy::Free => true,
                            EditPolicy::OwnWithin { .. } => !late || any,
                            EditPolicy::LockedAfter { .. } => !late || has.contains(&Admin),
                            EditPolicy::AppendOnly => false,
                        };
                        let expected = (any || own && is_own) && open;
                        assert_eq!(ask(Verb::Edit).is_ok(), expected, "{login} {has:?} {policy:?} late {late}");
                        assert_eq!(ask(Verb::Delete).is_ok(), expected, "{login} {has:?} {policy:?} late {late}");
                        asked += 5;
                    }
                }
            }
        }
        assert_eq!(asked, 32 * 3 * 4 * 2 * 5);
    }

    #[test]
    fn who_may_not_is_told_what_helps() {
        let now = Time::from_unix(1000, 0);
        let no = |login: &str, of: &[Right], verb| {
            decide(login, &rights(of), verb, Resource::Entry(&entry("zoe")), EditPolicy::Free, now).unwrap_err().to_string()
        };
        assert!(no("", &[], Verb::Read).contains("log in"));
        assert!(no("max", &[], Verb::Read).contains("there is no logbook 'Shift'"));
        assert!(no("max", &[Right::Read], Verb::Post).contains("the right 'write' is missing"));
        assert!(
            no("max", &[Right::Read], Verb::Delete).contains("may not delete entry Shift/7: the right 'edit-own' is missing")
        );
        assert!(no("", &[Right::Read], Verb::Edit).contains("to change entry Shift/7 you have to log in"));
        assert!(no("max", &[Right::Read, Right::EditOwn], Verb::Edit).contains("written by 'zoe'"));
        // A guest has no entries of their own, not even those without a name.
        let guest =
            decide("", &rights(&[Right::Read, Right::EditOwn]), Verb::Edit, Resource::Entry(&entry("")), EditPolicy::Free, now);
        assert!(guest.is_err());
    }
}
