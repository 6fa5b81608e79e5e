//! `tampu book sign` and `tampu book verify`.

use std::{
    io::{self, Write},
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use clap::Args;
use serde_json::json;
use tampu_logbook::{
    entry::EntryRef,
    people::{People, PeopleError, Right, registry::Settings},
    signature::{
        NewSignature, RecordKind, Signature, WITHHELD,
        keys::key_bytes,
        verify::{Verification, verify},
    },
    store::Store,
};

use super::{
    place::{Place, failed, refused},
    text::{entry_ref, shown},
    users::password,
};
use crate::{
    author::author,
    context::Context,
    failure::{Failure, Outcome, written},
    plural::counted,
    progress, time_text,
};

/// Sign an entry with a meaning; the password is read from standard input or from the terminal
///
/// 'tampu book users signing' sets the meanings of a logbook and the people who may sign.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu book sign Shift/12 --meaning approved --login zoe\n  \
    tampu book sign Shift/12 --meaning reviewed --revision 3 --login max < password.txt")]
pub struct Sign {
    /// The entry: BOOK/NUMBER
    #[arg(value_parser = entry_ref, value_name = "ENTRY")]
    at: EntryRef,
    /// The meaning of the signature, as 'approved'
    #[arg(long, value_name = "TEXT")]
    meaning: String,
    /// The user who signs [default: the user that runs this]
    #[arg(long, value_name = "LOGIN")]
    login: Option<String>,
    /// The revision that the user has read; it must be the current one [default: the current one]
    #[arg(long, value_name = "N")]
    revision: Option<u32>,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

/// Verify the signatures of a logbook, or of all; fails if an entry is not as it was signed
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu book verify\n  tampu book verify Shift --json\n  \
    tampu book verify --data /backup/book")]
pub struct Verify {
    /// The logbook [default: all]
    #[arg(value_name = "BOOK")]
    book: Option<String>,
    /// A public key that is valid besides those of the site, 64 hexadecimal digits; repeatable. Not through a hub
    #[arg(long = "key", value_name = "KEY")]
    keys: Vec<String>,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
}

fn wrong(error: PeopleError) -> Failure {
    match error {
        PeopleError::Store(error) => failed(error),
        error => Failure::Failed(error.to_string()),
    }
}

/// Returns a signature as a line of text.
pub fn line(signature: &Signature, current: u32) -> String {
    let name = if signature.name.is_empty() { String::new() } else { format!("{} ", shown(&signature.name, false)) };
    let (by, at) = (shown(&signature.by, false), time_text::with_zone(signature.at));
    let meaning = shown(&signature.meaning, false);
    let of =
        if signature.revision == current { String::new() } else { format!("  of the earlier revision {}", signature.revision) };
    let part = if signature.withheld { format!("  {WITHHELD}") } else { String::new() };
    match signature.kind {
        RecordKind::Signature => format!("signed as {meaning} by {name}({by})  {at}{of}{part}"),
        RecordKind::Purge => format!("signed text changed: {meaning}  by {by}  {at}"),
    }
}

impl Sign {
    pub fn run(self, place: &Place) -> Outcome {
        let login = author(self.login.as_deref());
        let entry = place.store(&login)?.entry(&self.at).map_err(failed)?;
        let revision = self.revision.unwrap_or(entry.revision);
        let signature = match place.remote(&login)? {
            // The owner of the installation signs for nobody: the password proves the user.
            Some(hub) => hub.sign(&entry.at, revision, &self.meaning, Some(&login), &password(&login)?).map_err(refused)?,
            None => self.sign_here(place.open()?, entry.at, revision, &login)?,
        };
        let mut out = io::stdout().lock();
        if self.json {
            return written(writeln!(out, "{}", time_text::json_line(&signature, "a signature")?));
        }
        written(writeln!(out, "{}: {}", signature.entry, line(&signature, revision)))
    }

    /// Signs in the directory, with the checks that a hub makes.
    fn sign_here(&self, store: Box<dyn Store>, at: EntryRef, revision: u32, login: &str) -> Result<Signature, Failure> {
        let store: Arc<dyn Store> = Arc::from(store);
        let people = People::new(store.clone(), Settings::default()).map_err(wrong)?;
        let nobody = people.guest().map_err(wrong)?;
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let (person, method) = people.signer(&nobody, Some(login), Some(&password(login)?), here).map_err(wrong)?;
        let mine = people.meanings(&person.login, &at.book).map_err(wrong)?;
        if !person.rights.may(Right::Read, &at.book) || !mine.contains(&self.meaning) {
            let mine = if mine.is_empty() { "none".to_owned() } else { mine.join(", ") };
            return Err(Failure::Failed(format!(
                "'{}' may not sign entries of '{}' as '{}'; possible meanings: {}; 'tampu book users signing' sets them",
                shown(login, false),
                shown(&at.book, false),
                shown(&self.meaning, false),
                shown(&mine, false)
            )));
        }
        let locks = people.signing_policy(&at.book).map_err(wrong)?.lock;
        let (by, name, meaning) = (person.login, person.full_name, self.meaning.clone());
        store.sign(&NewSignature { at, revision, by, name, meaning, method, locks }).map_err(failed)
    }
}

impl Verify {
    pub fn run(self, place: &Place, context: &Context) -> Outcome {
        for key in &self.keys {
            key_bytes(key).map_err(|error| Failure::Usage(format!("--key: {error}")))?;
        }
        let bar = progress::work("verifying");
        let mut progress = |done, total| {
            bar.set_length(total);
            bar.set_position(done);
            !context.interrupt.asked()
        };
        let found = match place.remote("")? {
            Some(_) if !self.keys.is_empty() => {
                return Err(Failure::Usage("--key is for logbooks in a directory or database: name it with --data".to_owned()));
            }
            Some(hub) => {
                let books = match &self.book {
                    Some(book) => vec![book.clone()],
                    None => place.store("")?.books().map_err(failed)?.into_iter().map(|info| info.book.name).collect(),
                };
                let (mut all, total) = (Verification::default(), books.len() as u64);
                for (done, book) in books.iter().enumerate() {
                    if !progress(done as u64, total) {
                        return Err(Failure::Failed("interrupted: not all was verified".to_owned()));
                    }
                    let one = hub.verify(book).map_err(refused)?;
                    all.books.extend(one.books);
                    all.signatures += one.signatures;
                    all.purged += one.purged;
                    all.keys = one.keys;
                    all.faults.extend(one.faults);
                }
                all
            }
            None => {
                let keys: Vec<String> = self.keys.iter().map(|key| key.to_lowercase()).collect();
                verify(&*place.open()?, self.book.as_deref(), &keys, &mut progress).map_err(failed)?
            }
        };
        bar.finish_and_clear();
        let mut out = io::stdout().lock();
        if self.json {
            written(writeln!(out, "{}", json!(found)))?;
        } else {
            for fault in &found.faults {
                written(writeln!(out, "{}", shown(&fault.to_string(), false)))?;
            }
        }
        match found.faults.len() {
            0 if self.json => Ok(()),
            0 => {
                let purged = if found.purged == 0 { String::new() } else { format!(", {} purged since", found.purged) };
                let (signatures, books) = (counted(found.signatures, "signature"), counted(found.books.len() as u64, "logbook"));
                written(writeln!(out, "{signatures} in {books}: all as signed{purged}"))
            }
            count => Err(Failure::Failed(format!("{} found", counted(count as u64, "fault")))),
        }
    }
}
