//! A posted entry, the site it is in, and what options about mail may name of both.

use tampu_logbook::{
    book::{Book, same_name},
    entry::Entry,
    mail::Outbox,
    people::{Caller, People},
    store::Store,
};
use tampu_types::Time;

use crate::pages::{
    clock::Zone,
    settings::{ActiveConditions, BookSettings},
    subst::Substitutions,
};

/// The facts about a site that a mail needs.
pub struct MailSite<'a> {
    pub store: &'a dyn Store,
    pub people: Option<&'a People>,
    pub outbox: &'a Outbox,
    pub zone: &'a Zone,
    /// The public address of the site, without a slash at the end.
    pub base: &'a str,
    /// The time of the change.
    pub now: Time,
}

/// A posted or changed entry.
pub struct PostedEntry<'a> {
    /// The person or program that posted or changed it.
    pub caller: &'a Caller,
    pub book: &'a Book,
    /// The settings of the book.
    pub settings: &'a BookSettings,
    /// The whole entry.
    pub entry: &'a Entry,
    /// True if it was changed.
    pub edited: bool,
}

/// Returns the substitutions of `$name` in the options about mail.
pub fn names(site: &MailSite<'_>, posted: &PostedEntry<'_>, entry: &Entry) -> Substitutions {
    let (book, settings) = (posted.book, posted.settings);
    let mut names =
        Substitutions::new(posted.caller, book, settings, site.zone, site.now).with_entry(entry, book, settings, site.zone);
    names.set("host", host(&base(site, posted)));
    names
}

/// Returns the conditions that the entry's values set.
pub fn conditions(posted: &PostedEntry<'_>) -> ActiveConditions {
    let joined: Vec<(&str, String)> =
        posted.entry.content.attributes.iter().map(|said| (said.name.as_str(), said.joined())).collect();
    posted.settings.set_by(|name| joined.iter().find(|(known, _)| same_name(known, name)).map(|(_, value)| value.as_str()))
}

/// Returns the address of the site in mails, without a slash at the end.
pub fn base(site: &MailSite<'_>, posted: &PostedEntry<'_>) -> String {
    let configured = posted.settings.mail_url().or_else(|| posted.settings.url());
    configured.unwrap_or(site.base).trim_end_matches('/').to_owned()
}

/// Returns the host of an address.
pub fn host(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or_default();
    host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit())).map_or(host, |(host, _)| host)
}
