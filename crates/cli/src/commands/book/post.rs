//! `tampu book post` and `tampu book reply`.

use clap::Args;
use tampu_logbook::{
    entry::{Content, EntryRef, NewEntry},
    store::Store,
    template::Values,
};

use super::{
    Place, entry_ref, failed,
    template::Shelf,
    writing::{Unasked, Writing, attribute},
};
use crate::{failure::Outcome, time_expression::now};

/// Post an entry; prints where it is
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu book post Shift -a Author=Zoe -a Type=Problem -t 'RICH1: HV trip'\n  \
    df -h | tampu book post Shift -a Subject=disks -e plain --attach plot.png")]
pub struct Post {
    /// The logbook
    book: String,
    /// Begin with this template of the logbook; 'tampu book template' makes them
    #[arg(long, value_name = "NAME")]
    template: Option<String>,
    /// What {NAME} stands for in the template, beside date, time, author, book and shift
    #[arg(long, value_name = "NAME=VALUE", value_parser = attribute, requires = "template")]
    set: Vec<(String, String)>,
    #[command(flatten)]
    writing: Writing,
}

/// Answer an entry; prints where the answer is
#[derive(Debug, Args)]
#[command(after_help = "Example: tampu book reply Shift/12 -a Author=Max -t 'It was the fuse.'")]
pub struct Reply {
    /// The entry: BOOK/NUMBER
    #[arg(value_parser = entry_ref, value_name = "ENTRY")]
    at: EntryRef,
    #[command(flatten)]
    writing: Writing,
}

impl Post {
    pub fn run(self, place: &Place) -> Outcome {
        let store = place.store(&self.writing.by)?;
        let mut content = Content::default();
        if let Some(name) = &self.template {
            let template = Shelf::at(place)?.load(&self.book, name)?;
            let mut values = Values::at(now(), &self.writing.by, &self.book);
            self.set.iter().for_each(|(name, value)| values.set(name, value));
            for name in template.unknown(&values) {
                eprintln!("tampu: {{{name}}} stays as it is: --set {name}=VALUE says what stands there");
            }
            content = template.content(&values);
        }
        // A template says the text: what stands on standard input is left there.
        let unasked = if self.template.is_some() { Unasked::Leaves } else { Unasked::Reads };
        let new = NewEntry { book: self.book, content, ..NewEntry::default() };
        post(&*store, new, &self.writing, unasked)
    }
}

impl Reply {
    pub fn run(self, place: &Place) -> Outcome {
        let store = place.store(&self.writing.by)?;
        let answered = store.entry(&self.at).map_err(failed)?;
        // What is answered gives what the answer does not say itself.
        let content = Content { attributes: answered.content.attributes, ..Content::default() };
        let new = NewEntry { book: self.at.book, parent: Some(self.at.id), content, ..NewEntry::default() };
        post(&*store, new, &self.writing, Unasked::Reads)
    }
}

fn post(store: &dyn Store, mut new: NewEntry, writing: &Writing, unasked: Unasked) -> Outcome {
    let uploads = writing.apply(store, &new.book, &mut new.content, unasked)?;
    let at = store.post(new, uploads, &writing.by).map_err(failed)?;
    writing.tell(&at, None)
}
