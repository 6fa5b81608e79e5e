//! Notices of other editors: a form that is open asks again and again, and so each knows of the others.
//!
//! Locks keep others out, but most books have none. This memory is of one process: of two hubs on one database, each
//! knows its own forms. That an entry was changed meanwhile is seen everywhere, because the store knows it.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tampu_logbook::book::same_name;

/// The time between two requests of a form.
pub const LOOK: Duration = Duration::from_secs(10);
/// The time after which a form that asks no more is closed.
const GONE: Duration = Duration::from_secs(30);
/// Number of open forms that are remembered; the oldest are forgotten.
const MOST: usize = 1000;

/// The open forms of a site.
#[derive(Debug, Default)]
pub struct Editors(Mutex<Vec<OpenForm>>);

/// A form that is open.
#[derive(Debug, Clone)]
pub struct OpenForm {
    pub book: String,
    /// The number of the entry.
    pub id: u32,
    /// The login, and the session, or the address and the tab, that distinguishes two forms of one user.
    pub by: (String, String),
    /// The name for other users.
    pub name: String,
    /// The time of its last request.
    pub seen: Instant,
}

impl Editors {
    /// Notes an open form, and returns the names of the others who have the form of this entry open.
    pub fn look(&self, form: OpenForm) -> Vec<String> {
        let mut all = self.0.lock();
        let same = |other: &OpenForm| other.id == form.id && same_name(&other.book, &form.book);
        all.retain(|other| other.seen.elapsed() < GONE && !(same(other) && other.by == form.by));
        if all.len() >= MOST {
            all.remove(0);
        }
        let mut names: Vec<String> = all.iter().filter(|other| same(other)).map(|other| other.name.clone()).collect();
        names.sort();
        names.dedup();
        all.push(form);
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editors_of_one_entry_know_of_each_other() {
        let editors = Editors::default();
        let form = |login: &str, place: &str, id: u32, seen: Instant| OpenForm {
            book: "b".to_owned(),
            id,
            by: (login.to_owned(), place.to_owned()),
            name: login.to_uppercase(),
            seen,
        };
        let now = Instant::now();
        assert_eq!(editors.look(form("zoe", "1", 7, now)), Vec::<String>::new());
        assert_eq!(editors.look(form("zoe", "1", 7, now)), Vec::<String>::new(), "the same form");
        assert_eq!(editors.look(form("max", "2", 7, now)), ["ZOE"]);
        assert_eq!(editors.look(form("zoe", "3", 7, now)), ["MAX", "ZOE"], "her other window");
        assert_eq!(editors.look(form("max", "2", 8, now)), Vec::<String>::new(), "another entry");
        // The clock of a computer that has just started does not reach back so far.
        let Some(old) = Instant::now().checked_sub(GONE) else { return };
        editors.0.lock().iter_mut().for_each(|form| form.seen = old);
        assert_eq!(editors.look(form("zoe", "1", 7, now)), Vec::<String>::new(), "all are gone");
        for id in 0..2000 {
            editors.look(form("zoe", "1", id, now));
        }
        assert_eq!(editors.0.lock().len(), MOST);
    }
}
