//! `tampu book purge`.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use serde_json::json;
use tampu_logbook::{
    entry::EntryRef,
    mail::purged::PurgedText,
    store::purge::{Purge as Part, Purged},
};

use super::{
    naming,
    place::{Place, failed},
    text::{entry_ref, shown},
};
use crate::{
    author::author,
    failure::{Failure, Outcome, written},
    plural::counted,
};

/// Remove the text and the files of an entry, or of a deleted logbook, for good, also from the history
///
/// The history of an entry, and the list of deleted logbooks, keep the author, the time and the reason of the purge. Copies of an entry, replies that quote it, exports and backups keep the text.
/// Through a hub this needs the right 'admin' in the logbook, and for a logbook an administrator of the site.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu book purge Shift/12 --revision 0 --reason 'a password was pasted'\n  \
    tampu book purge Shift/12 --all-but-last --reason 'a password was pasted' --yes\n  \
    tampu book purge Shift/12 --attachment scan.pdf --reason 'personal data'\n  tampu book purge Shift/12 --reason 'personal data'\n  \
    tampu book delete Shift --yes; tampu book purge Shift --reason 'a test' --yes")]
pub struct Purge {
    /// The entry as BOOK/NUMBER, or the name or number of a deleted logbook
    #[arg(value_name = "ENTRY|BOOK")]
    what: String,
    /// Remove only the content of this former revision
    #[arg(long, value_name = "N", conflicts_with_all = ["all_but_last", "attachment"])]
    revision: Option<u32>,
    /// Remove only the contents of all former revisions
    #[arg(long, conflicts_with = "attachment")]
    all_but_last: bool,
    /// Remove only the attachments of this name, in all revisions
    #[arg(long, value_name = "NAME")]
    attachment: Option<String>,
    /// The reason; the history shows it to every reader, so it must not repeat the text
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// The author [default: the user that runs this]
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

impl Purge {
    pub fn run(self, place: &Place) -> Outcome {
        let by = author(self.author.as_deref());
        if !self.what.contains('/') {
            if self.revision.is_some() || self.all_but_last || self.attachment.is_some() {
                return Err(Failure::Usage("a part is for an entry: write BOOK/NUMBER".to_owned()));
            }
            let deleted = naming::find(place, &self.what)?;
            if !self.yes {
                confirm(&format!("the deleted logbook '{}' with all of its entries", shown(&deleted.name, false)))?;
            }
            return naming::purge(place, &deleted, &self.reason, &by, self.json);
        }
        let at = &entry_ref(&self.what).map_err(Failure::Usage)?;
        let part = Part {
            revision: self.revision,
            all_but_last: self.all_but_last,
            attachment: self.attachment.clone(),
            reason: self.reason.clone(),
        };
        if !self.yes {
            self.confirm(at)?;
        }
        let done = match place.remote(&by)? {
            Some(hub) => hub.purge(at, &part).map_err(failed)?,
            None => {
                let store = place.open()?;
                let done = store.purge(at, &part, &by).map_err(failed)?;
                place.forget_mails(&*store, PurgedText::Entry(&done.at))?;
                done
            }
        };
        let mut out = io::stdout().lock();
        if self.json {
            return written(writeln!(out, "{}", json!(done)));
        }
        let Purged { at, contents, files, drafts, .. } = done;
        let (contents, files, drafts) = (counted(contents, "content"), counted(files, "file"), counted(drafts, "draft"));
        written(writeln!(out, "{at}: {contents}, {files} and {drafts} removed for good; backups made before still have them"))
    }

    /// Asks the user at the terminal.
    fn confirm(&self, at: &EntryRef) -> Outcome {
        confirm(&match (self.revision, self.all_but_last, &self.attachment) {
            (Some(number), ..) => format!("revision {number} of entry {at}"),
            (_, true, _) => format!("all former revisions of entry {at}"),
            (.., Some(name)) => format!("the attachment '{}' of entry {at}", shown(name, false)),
            _ => format!("entry {at} with its history"),
        })
    }
}

/// Asks the user at the terminal about a purge.
fn confirm(what: &str) -> Outcome {
    if !io::stdin().is_terminal() {
        return Err(Failure::Usage(format!("to purge {what} without a terminal, add --yes: it cannot be undone")));
    }
    eprint!("tampu: purge {what}? It cannot be undone. Type yes: ");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| Failure::failed("standard input", error))?;
    if answer.trim() == "yes" { Ok(()) } else { Err(Failure::Failed("nothing was purged".to_owned())) }
}
