//! `tampu book post` and `tampu book reply`.

use clap::Args;
use tampu_logbook::{
    entry::{Content, EntryRef, NewEntry},
    store::Logbook,
    template::Values,
};

use super::{
    place::{Place, failed},
    text::entry_ref,
    writing::{Unasked, Writing, attribute},
};
use crate::{failure::Outcome, time_expression::now};

/// Post an entry and print its place
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu book post Shift -a Author=Zoe -a Type=Problem -t 'RICH1: HV trip'\n  \
    df -h | tampu book post Shift -a Subject=disks -e plain --attach plot.png")]
pub struct Post {
    /// Name of the logbook
    book: String,
    /// Begin with this template of the logbook ('tampu book template')
    #[arg(long, value_name = "NAME")]
    template: Option<String>,
    /// A value for {NAME} in the template, besides date, time, author, book and shift; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = attribute, requires = "template")]
    set: Vec<(String, String)>,
    #[command(flatten)]
    writing: Writing,
}

/// Reply to an entry and print the place of the reply
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
        let store = place.store(&self.writing.author())?;
        let mut content = Content::default();
        if let Some(name) = &self.template {
            let template = store.template(&self.book, name).map_err(failed)?;
            let mut values = Values::at(now(), &self.writing.author(), &self.book);
            self.set.iter().for_each(|(name, value)| values.set(name, value));
            for name in template.unknown(&values) {
                eprintln!("tampu: {{{name}}} stays as it is: give its value with --set {name}=VALUE");
            }
            content = template.content(&values);
        }
        // A template has the text, so standard input is not read.
        let unasked = if self.template.is_some() { Unasked::Leaves } else { Unasked::Reads };
        let new = NewEntry { book: self.book, content, ..NewEntry::default() };
        post(&*store, new, &self.writing, unasked)
    }
}

impl Reply {
    pub fn run(self, place: &Place) -> Outcome {
        let store = place.store(&self.writing.author())?;
        let answered = store.entry(&self.at).map_err(failed)?;
        // The answered entry provides the attributes that the reply does not set.
        let content = Content { attributes: answered.content.attributes, ..Content::default() };
        let new = NewEntry { book: self.at.book, parent: Some(self.at.id), content, ..NewEntry::default() };
        post(&*store, new, &self.writing, Unasked::Reads)
    }
}

fn post(store: &dyn Logbook, mut new: NewEntry, writing: &Writing, unasked: Unasked) -> Outcome {
    let uploads = writing.apply(store, &new.book, &mut new.content, unasked)?;
    let at = store.post(new, uploads, &writing.author()).map_err(failed)?;
    writing.tell(&at, None)
}
