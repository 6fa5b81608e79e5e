//! Authorization: the one function that decides whether a user may do something.

use std::fmt;

use tampu_types::Time;

use super::{Right, Rights, access::EditPolicy};
use crate::entry::{Entry, EntryRef};

/// The actions that need a right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Read entries, attachments, histories and searches.
    Read,
    /// Post into a book, or reply to an entry. Moving an entry means deleting it and posting it elsewhere; copying
    /// means reading and posting it.
    Post,
    /// Change an entry, lock it, add attachments to it.
    Edit,
    /// Delete an entry.
    Delete,
    /// Change a book's settings and access rules; on the site: create books and manage users.
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

/// The object of an action.
#[derive(Debug, Clone, Copy)]
pub enum Resource<'a> {
    /// A book, by its name.
    Book(&'a str),
    /// One entry, in its current revision.
    Entry(&'a Entry),
}

impl Resource<'_> {
    /// The name of its book.
    pub fn book(&self) -> &str {
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

/// Returns a text that names a book or an entry of it.
fn thing(book: &str, id: Option<u32>) -> String {
    match id {
        Some(id) => format!("entry {book}/{id}"),
        None => format!("the logbook '{book}'"),
    }
}

/// A rejected action, with the reason and the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The resource is hidden from users without a right to it.
    #[error("there is no logbook '{0}', or you have no right to read it")]
    Unseen(String),
    /// The user has not logged in.
    #[error("to {verb} {} you have to log in", thing(book, *id))]
    LogIn {
        /// The rejected action.
        verb: Verb,
        /// The book of the action.
        book: String,
        /// The entry of the book, if the action has one.
        id: Option<u32>,
    },
    /// The user lacks the right.
    #[error("'{login}' may not {verb} {}: the right '{}' is missing; an administrator of the logbook can grant it", thing(book, *id), .right.name())]
    NoRight {
        /// The user's login.
        login: String,
        /// The rejected action.
        verb: Verb,
        /// The book of the action.
        book: String,
        /// The entry of the book, if the action has one.
        id: Option<u32>,
        /// The missing right.
        right: Right,
    },
    /// The entry belongs to another user.
    #[error("entry {at} was written by '{by}': '{login}' may only {verb} entries of their own; write a reply")]
    NotOwn {
        at: EntryRef,
        /// The entry's author.
        by: String,
        /// The user's login.
        login: String,
        /// The rejected action.
        verb: Verb,
    },
    /// The policy forbids the change: its time is over, or it never allows changes.
    #[error("entry {at} cannot be changed: {why}; write a reply")]
    Stays {
        at: EntryRef,
        /// The policy, in words.
        why: String,
    },
}

/// Decides whether a login may do something. `policy` is the book's; `now` is the time of the request. An empty login
/// is a guest. The age of an entry follows from its date, in which [`ask`](super::ask) puts the time of writing.
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
        EditPolicy::AppendOnly => stays("in this logbook entries cannot be changed or deleted".to_owned()),
    }
}

/// Returns whether an entry belongs to a user: they posted it, or it came from ELOG with their login or full name as
/// its author. An unknown full name is empty.
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

/// The names under which imports post entries.
pub(super) const IMPORTERS: [&str; 2] = ["import-elog", "follow-elog"];

/// Returns whether an import posted the entry. The author of such an entry is the one in its attribute.
pub(crate) fn is_imported(entry: &Entry) -> bool {
    IMPORTERS.contains(&entry.by.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Content;

    fn entry(by: &str) -> Entry {
        let at = EntryRef::new("Shift", 7);
        let content = Content::default();
        let (date, changed) = (Time::from_unix(1000, 0), Time::from_unix(1000, 0));
        Entry { at, date, zone: 0, by: by.to_owned(), revision: 0, changed, parent: None, thread: 7, content, signatures: vec![] }
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
