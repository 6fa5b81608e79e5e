//! `tampu book show`.

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::Args;
use tampu_logbook::{
    attachment::plain_name,
    entry::{Entry, EntryRef},
    render,
    store::{
        Attachments,
        pages::{revisions, thread_entries},
    },
};

use super::{
    place::{Place, failed},
    sign,
    text::{entry_ref, shown},
};
use crate::{
    failure::{Failure, Outcome, written},
    time_text,
};

/// Show an entry, its thread or its revisions
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu book show Shift/12 --thread\n  tampu book show Shift/12 --output plots/")]
pub struct Show {
    /// The entry: BOOK/NUMBER
    #[arg(value_parser = entry_ref, value_name = "ENTRY")]
    at: EntryRef,
    /// Show all entries of the thread
    #[arg(long, conflicts_with_all = ["revisions", "html"])]
    thread: bool,
    /// Show all revisions of the entry, also of a deleted one
    #[arg(long)]
    revisions: bool,
    /// Show the text as sanitised HTML
    #[arg(long, conflicts_with = "revisions")]
    html: bool,
    /// Write its attachments into this directory
    #[arg(short, long, value_name = "DIR", conflicts_with = "revisions")]
    output: Option<PathBuf>,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

impl Show {
    pub fn run(self, place: &Place) -> Outcome {
        let store = place.store("")?;
        let mut out = io::stdout().lock();
        if self.revisions {
            for revision in revisions(&*store, &self.at) {
                let revision = revision.map_err(failed)?;
                if self.json {
                    written(writeln!(out, "{}", json(&revision)?))?;
                    continue;
                }
                let (at, by) = (time_text::with_zone(revision.at), shown(&revision.by, false));
                written(writeln!(out, "revision {}  {at}  {:?} by {by}", revision.number, revision.what))?;
                if let Some(note) = &revision.note {
                    written(writeln!(out, "  ({})", shown(note, false)))?;
                }
                for attribute in &revision.content.attributes {
                    written(writeln!(out, "  {}: {}", shown(&attribute.name, false), shown(&attribute.joined(), false)))?;
                }
                let text = shown(&revision.content.text, true).replace('\n', "\n  ");
                written(writeln!(out, "  {text}"))?;
            }
            return Ok(());
        }
        let alone = (!self.thread).then(|| store.entry(&self.at));
        let thread = self.thread.then(|| thread_entries(&*store, &self.at, true));
        for (nth, entry) in alone.into_iter().chain(thread.into_iter().flatten()).enumerate() {
            let entry = &entry.map_err(failed)?;
            if self.html {
                let link = |target: &str| format!("elog:{target}");
                let page = render::html(entry.content.encoding, &entry.content.text, &link);
                written(writeln!(out, "{page}"))?;
            } else if self.json {
                written(writeln!(out, "{}", json(entry)?))?;
            } else {
                if nth > 0 {
                    written(writeln!(out))?;
                }
                written(out.write_all(text(entry).as_bytes()))?;
            }
            if let Some(dir) = &self.output {
                save(&*store, entry, dir)?;
            }
        }
        Ok(())
    }
}

fn json<T: serde::Serialize>(value: &T) -> Result<String, Failure> {
    time_text::json_line(value, "an entry")
}

fn text(entry: &Entry) -> String {
    let mut out = format!("{}  {}  by {}", entry.at, time_text::with_zone(entry.date), shown(&entry.by, false));
    if let Some(parent) = entry.parent {
        out.push_str(&format!("  answers {parent}"));
    }
    if entry.revision > 0 {
        out.push_str(&format!("  revision {} of {}", entry.revision, time_text::with_zone(entry.changed)));
    }
    out.push('\n');
    for attribute in entry.content.attributes.iter().filter(|attribute| !attribute.values.is_empty()) {
        out.push_str(&format!("{}: {}\n", shown(&attribute.name, false), shown(&attribute.joined(), false)));
    }
    for link in &entry.content.links {
        out.push_str(&format!("-> {}\n", shown(&link.to_string(), false)));
    }
    for attachment in &entry.content.attachments {
        let lost = if attachment.sha.is_none() { ", not there" } else { "" };
        out.push_str(&format!("[{}, {} bytes{lost}]\n", shown(&attachment.name, false), attachment.size));
    }
    for signature in &entry.signatures {
        out.push_str(&format!("{}\n", sign::line(signature, entry.revision)));
    }
    out.push('\n');
    out.push_str(&shown(&entry.content.text, true));
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// Longest name of a file in bytes, on all usual file systems.
const NAME_LIMIT: usize = 255;
/// Longest extension that a shortened name keeps, in bytes, with its dot.
const EXTENSION_KEPT: usize = 32;

/// Returns a prefix and a name that together fit a file system. A long name is cut in its middle and keeps its extension.
fn fitting_name(prefix: &str, name: &str) -> String {
    let extension = name.rfind('.').filter(|at| *at > 0 && name.len() - at <= EXTENSION_KEPT).map_or("", |at| &name[at..]);
    let stem = &name[..name.len() - extension.len()];
    let room = NAME_LIMIT.saturating_sub(prefix.len() + extension.len());
    format!("{prefix}{}{extension}", &stem[..stem.floor_char_boundary(room)])
}

/// Writes attachments under names that are free.
fn save(store: &dyn Attachments, entry: &Entry, dir: &Path) -> Outcome {
    std::fs::create_dir_all(dir).map_err(|error| Failure::failed(dir.display(), error))?;
    for attachment in &entry.content.attachments {
        let Some(sha) = &attachment.sha else { continue };
        let name = plain_name(&attachment.name);
        let mut path = dir.join(fitting_name("", &name));
        let mut nth = 0;
        let mut to = loop {
            match File::create_new(&path) {
                Ok(file) => break file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    nth += 1;
                    path = dir.join(fitting_name(&format!("{nth}-"), &name));
                }
                Err(error) => return Err(Failure::failed(path.display(), error)),
            }
        };
        let mut from = store.attachment(sha).map_err(failed)?;
        io::copy(&mut from, &mut to).map_err(|error| Failure::failed(path.display(), error))?;
        eprintln!("tampu: wrote {}", path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_between_characters_and_keep_their_extension() {
        let long = "ü".repeat(200);
        let cut = fitting_name("12-", &format!("{long}.tar.gz"));
        assert!(cut.len() <= NAME_LIMIT && cut.len() >= NAME_LIMIT - 1, "{} bytes", cut.len());
        assert!(cut.starts_with("12-ü") && cut.ends_with("ü.gz"), "{cut}");
        assert_eq!(fitting_name("", "plot.png"), "plot.png");
        assert_eq!(fitting_name("1-", "plot.png"), "1-plot.png");
        // Neither is an extension: a name of a dot and letters, and a long last part.
        assert_eq!(fitting_name("", &format!(".{}", "a".repeat(300))).len(), NAME_LIMIT);
        assert_eq!(fitting_name("", &format!("a.{}", "b".repeat(300))).len(), NAME_LIMIT);
    }
}
