//! A mail as an entry: its author, its place in a thread, attributes, text and files.

use std::sync::atomic::Ordering;

use mail_parser::{HeaderValue, Message, MessageParser, MimeHeaders};
use serde_json::json;
use sha2::{Digest, Sha256};
use tampu_elog::site_zone;
use tampu_logbook::{
    attachment::{Upload, hex},
    book::{AttributeKind, Book, EntryAttribute, same_name},
    entry::{Content, Encoding, EntryRef, NewEntry},
    mail::{message::bare_address, thread::entry_of},
    people::{ElogCommand, ElogRules, PeopleError, Resource, Right, Verb, ask, user::User},
    store::{StoreError, naming::current_name},
};

use super::{shape::too_complex, site::MailInSite};
use crate::clock::now;

/// The kind of the store's records of mails that became entries.
const KIND: &str = "mail-in";
/// The time, in nanoseconds, for which a mail is known, so that it becomes one entry. An MTA retries for five days.
const REMEMBERED: i64 = 30 * 86_400_000_000_000;
/// Pause, in nanoseconds, between two removals of old records.
const CLEANED: i64 = 86_400_000_000_000;
/// Files of one mail.
const FILES: usize = 50;

/// The reason why a mail is not an entry.
#[derive(Debug)]
pub enum Refusal {
    /// The MTA sends it back to its sender.
    Never(String),
    /// The MTA tries again.
    NotNow(String),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        match error {
            StoreError::Invalid(_) | StoreError::NoBook(_) | StoreError::NoEntry(_) | StoreError::Gone(_) => {
                Refusal::Never(error.to_string())
            }
            error => Refusal::NotNow(error.to_string()),
        }
    }
}

impl From<PeopleError> for Refusal {
    fn from(error: PeopleError) -> Refusal {
        match error {
            PeopleError::Store(error) => Refusal::NotNow(error.to_string()),
            error => Refusal::Never(error.to_string()),
        }
    }
}

fn never<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Never(why.into()))
}

/// Posts a mail to a logbook, and returns what became of it.
pub fn post(site: &MailInSite, book: &str, text: &[u8]) -> Result<String, Refusal> {
    if let Some(why) = too_complex(text) {
        return never(why);
    }
    let parser = MessageParser::default();
    // Strangers are refused by the headers, and the parts of one mail at a time are in memory.
    let Some(head) = parser.parse_headers(text) else { return never("this is no mail") };
    refuse_machines(site, &head)?;
    let user = author(site, &head)?;
    let _turn = site.reading.lock();
    let Some(mail) = parser.parse(text) else { return never("this is no mail") };
    let book = match site.store.book(book) {
        // The configuration can name a logbook that was renamed.
        Err(StoreError::NoBook(_)) => site.store.book(current_name(&*site.store, book)?.as_deref().unwrap_or(book))?,
        found => found?,
    };
    let replies_to = parent(site, &mail, &book);
    allow(site, &user, &book, replies_to.is_some())?;
    // The same mail twice is one entry: an MTA that missed the answer sends it again.
    let name = mail.message_id().map(|id| hex(&Sha256::digest(format!("{}\n{id}", book.name).as_bytes())));
    if let Some(name) = &name
        && let Some(known) = site.store.record(KIND, name)?
    {
        return Ok(format!("it is entry {} already", known.value["id"]));
    }
    let (content, uploads) = content(site, &mail, &book, &user)?;
    let date = now();
    // Read now: an import beside the running hub stores it.
    let zone = site_zone::of_site(&*site.store, site.zone.clone())?.minutes(date, 0);
    let new = NewEntry { book: book.name.clone(), parent: replies_to, content, date: Some(date), zone };
    let at = site.store.post(new, uploads, &user.login)?;
    if let Some(name) = &name {
        site.store.put_record(KIND, name, &json!({ "id": at.id, "at": date.0 }), None)?;
        forget_old(site, date.0)?;
    }
    Ok(format!("entry {} of {}", at.id, at.book))
}

/// Removes the records of mails that no MTA sends again, once a day.
fn forget_old(site: &MailInSite, now: i64) -> Result<(), Refusal> {
    let last = site.cleaned.load(Ordering::Relaxed);
    if now - last < CLEANED || site.cleaned.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return Ok(());
    }
    for (name, record) in site.store.records(KIND)? {
        if record.value["at"].as_i64().unwrap_or_default() < now.saturating_sub(REMEMBERED) {
            site.store.drop_record(KIND, &name)?;
        }
    }
    Ok(())
}

/// Refuses mails of programs: answers to the logbook's own mails would go round.
fn refuse_machines(site: &MailInSite, mail: &Message<'_>) -> Result<(), Refusal> {
    let text = |name: &str| mail.header_raw(name).unwrap_or_default().trim().to_ascii_lowercase();
    if !matches!(text("Auto-Submitted").as_str(), "" | "no") || matches!(text("Precedence").as_str(), "bulk" | "junk" | "list") {
        return never("a mail that a program sent by itself is no entry");
    }
    if mail.message_id().is_some_and(|id| entry_of(id, &site.domain).is_some()) {
        return never("this mail is one of the logbook's own");
    }
    Ok(())
}

/// Returns the user whose address the mail is from.
fn author(site: &MailInSite, mail: &Message<'_>) -> Result<User, Refusal> {
    let from: Vec<&str> = mail.from().map(|from| from.iter().filter_map(|one| one.address()).collect()).unwrap_or_default();
    let [from] = from[..] else { return never("a mail for the logbook has one address in From") };
    let address = from.trim().to_lowercase();
    let is_of = |user: &User| !user.inactive && bare_address(&user.email).is_some_and(|email| email == address);
    let users: Vec<User> = site.people.users()?.into_iter().filter(is_of).collect();
    match <[User; 1]>::try_from(users) {
        Ok([user]) => Ok(user),
        Err(users) if users.is_empty() => never(format!("{} is not the address of a user of the logbook", from.escape_debug())),
        Err(_) => never(format!("{} is the address of several users of the logbook", from.escape_debug())),
    }
}

/// Checks the rights of the author.
fn allow(site: &MailInSite, user: &User, book: &Book, is_reply: bool) -> Result<(), Refusal> {
    let rights = site.people.rights_of(Some(&user.login), None)?.rights;
    if !rights.may(Right::Write, &book.name) {
        return never(format!("'{}' may not write to the logbook", user.login));
    }
    ask(&*site.store, &user.login, &rights, Verb::Post, Resource::Book(&book.name))?;
    let command = if is_reply { ElogCommand::Reply } else { ElogCommand::New };
    ElogRules::of(book).allow(command, &user.login).map_err(|denial| Refusal::Never(denial.to_string()))
}

/// Returns the entry of this logbook that the mail answers, by the Message-IDs of the logbook's own mails.
fn parent(site: &MailInSite, mail: &Message<'_>, book: &Book) -> Option<u32> {
    let ids = |value: &HeaderValue<'_>| -> Vec<String> {
        value.as_text_list().map(|list| list.iter().rev().map(|id| id.to_string()).collect()).unwrap_or_default()
    };
    let named = ids(mail.in_reply_to()).into_iter().chain(ids(mail.references()));
    let here = named.filter_map(|id| entry_of(&id, &site.domain)).find(|at| same_name(&at.book, &book.name))?;
    site.store.entry(&EntryRef::new(&book.name, here.id)).ok().map(|entry| entry.at.id)
}

fn content(site: &MailInSite, mail: &Message<'_>, book: &Book, user: &User) -> Result<(Content, Vec<Upload>), Refusal> {
    let body = mail.body_text(0).unwrap_or_default().replace("\r\n", "\n").replace('\0', "\u{fffd}");
    let (mut attributes, text) = split(book, body.trim());
    // The address has named the author. A line of the mail does not name another.
    attributes.retain(|said| !same_name(&said.name, "Author"));
    let mut set = |name: &str, value: &str| {
        let def = book.attribute(name).filter(|def| def.kind == AttributeKind::Text);
        if let Some(def) = def.filter(|_| !attributes.iter().any(|said| same_name(&said.name, name))) {
            attributes.push(EntryAttribute::new(&def.name, value));
        }
    };
    let line: String = mail.subject().unwrap_or_default().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    set("Subject", line.trim());
    set("Author", user.shown());
    let (mut uploads, mut attachments) = (Vec::new(), Vec::new());
    for (nth, part) in mail.attachments().enumerate() {
        if nth >= FILES {
            return never(format!("the mail has more than {FILES} files"));
        }
        let fallback = format!("part-{}{}", nth + 1, if part.is_message() { ".eml" } else { "" });
        let upload = site.store.upload(&mut part.contents(), site.changes.longest_attachment())?;
        attachments.push(upload.attachment(part.attachment_name().unwrap_or(&fallback), now()));
        uploads.push(upload);
    }
    Ok((Content { attributes, encoding: Encoding::Plain, text, attachments, ..Content::default() }, uploads))
}

/// Takes lines as `Type: Problem` from the beginning of a text, as far as they name attributes of the logbook.
fn split(book: &Book, text: &str) -> (Vec<EntryAttribute>, String) {
    let (mut attributes, mut rest) = (Vec::new(), text);
    while let Some((name, value)) = rest.split('\n').next().and_then(|line| line.split_once(':')) {
        let Some(def) = book.attribute(name.trim()) else { break };
        let values: Vec<String> = match def.kind.is_multiple() {
            true => value.split('|').map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect(),
            false => Some(value.trim().to_owned()).filter(|one| !one.is_empty()).into_iter().collect(),
        };
        attributes.push(EntryAttribute { name: def.name.clone(), values });
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    }
    (attributes, rest.trim_start_matches('\n').to_owned())
}
