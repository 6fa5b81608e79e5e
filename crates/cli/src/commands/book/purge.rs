//! `tampu book purge`.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use serde_json::json;
use tampu_logbook::{
    entry::EntryRef,
    store::purge::{Purge as Part, Purged},
};

use super::{
    place::{Place, failed},
    text::{entry_ref, shown},
};
use crate::{
    author::author,
    failure::{Failure, Outcome, written},
    plural::counted,
};

/// Remove the text and the files of an entry for good, also from its history
///
/// The history keeps the author, the time and the reason of the purge. Copies of the entry, replies that quote it, exports and backups keep the text.
/// Through a hub this needs the right 'admin' in the logbook.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu book purge Shift/12 --revision 0 --reason 'a password was pasted'\n  \
    tampu book purge Shift/12 --all-but-last --reason 'a password was pasted' --yes\n  \
    tampu book purge Shift/12 --attachment scan.pdf --reason 'personal data'\n  tampu book purge Shift/12 --reason 'personal data'")]
pub struct Purge {
    /// The entry: BOOK/NUMBER
    #[arg(value_parser = entry_ref, value_name = "ENTRY")]
    at: EntryRef,
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
        let (by, at) = (author(self.author.as_deref()), &self.at);
        let part = Part {
            revision: self.revision,
            all_but_last: self.all_but_last,
            attachment: self.attachment.clone(),
            reason: self.reason.clone(),
        };
        if !self.yes {
            self.confirm()?;
        }
        let done = match place.remote(&by)? {
            Some(hub) => hub.purge(at, &part),
            None => place.open()?.purge(at, &part, &by),
        };
        let done = done.map_err(failed)?;
        let mut out = io::stdout().lock();
        if self.json {
            return written(writeln!(out, "{}", json!(done)));
        }
        let Purged { at, contents, files, drafts, .. } = done;
        let (contents, files, drafts) = (counted(contents, "content"), counted(files, "file"), counted(drafts, "draft"));
        written(writeln!(out, "{at}: {contents}, {files} and {drafts} removed for good; backups made before still have them"))
    }

    /// Asks the user at the terminal.
    fn confirm(&self) -> Outcome {
        let what = match (self.revision, self.all_but_last, &self.attachment) {
            (Some(number), ..) => format!("revision {number} of entry {}", self.at),
            (_, true, _) => format!("all former revisions of entry {}", self.at),
            (.., Some(name)) => format!("the attachment '{}' of entry {}", shown(name, false), self.at),
            _ => format!("entry {} with its history", self.at),
        };
        if !io::stdin().is_terminal() {
            return Err(Failure::Usage(format!("to purge {what} without a terminal, add --yes: it cannot be undone")));
        }
        eprint!("tampu: purge {what}? It cannot be undone. Type yes: ");
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer).map_err(|error| Failure::failed("standard input", error))?;
        if answer.trim() == "yes" { Ok(()) } else { Err(Failure::Failed("nothing was purged".to_owned())) }
    }
}
