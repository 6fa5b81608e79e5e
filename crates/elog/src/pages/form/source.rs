//! The facts from which a form is filled in, for pages and for the API.

use tampu_logbook::{book::Book, entry::Entry, people::Caller, search::Stop, store::Store};
use tampu_types::Time;

use crate::pages::{clock::Zone, settings::BookSettings, subst::Substitutions};

/// The facts from which a form is filled in.
pub struct FormSource<'a> {
    pub store: &'a dyn Store,
    pub caller: &'a Caller,
    pub book: &'a Book,
    /// The settings of the book.
    pub settings: &'a BookSettings,
    /// The site's local time.
    pub zone: &'a Zone,
    /// The current time.
    pub now: Time,
    /// The signal that ends a search.
    pub stop: &'a Stop,
}

impl FormSource<'_> {
    /// Returns the substitutions of a form; `of` is the entry that is changed or answered.
    pub fn names(&self, of: Option<&Entry>) -> Substitutions {
        let names = Substitutions::new(self.caller, self.book, self.settings, self.zone, self.now);
        match of {
            Some(entry) => names.with_entry(entry, self.book, self.settings, self.zone),
            None => names,
        }
    }
}
