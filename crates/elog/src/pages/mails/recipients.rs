//! The recipients of the mails about an entry: those that options name, and users who want mail of the logbook.

use std::collections::{BTreeMap, HashSet};

use tampu_logbook::{
    book::same_name,
    mail::message::{bare_address, named_address},
    people::{People, PeopleError, Principal, Right, user::User},
};

use super::posted::{MailSite, PostedEntry, conditions, names};

/// Recipients that options name for one entry.
const OF_OPTIONS: usize = 200;

/// Recipients who may see the same attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailGroup {
    /// The attributes that they may see; `None` stands for all.
    pub shown: Option<Vec<String>>,
    /// The addresses of the recipients.
    pub to: Vec<String>,
}

/// Returns the recipients, each once.
pub fn of(site: &MailSite<'_>, posted: &PostedEntry<'_>) -> Result<Vec<MailGroup>, PeopleError> {
    let users = match site.people {
        Some(people) => people.users()?,
        None => Vec::new(),
    };
    let mut groups: BTreeMap<Option<Vec<String>>, Vec<String>> = BTreeMap::new();
    let mut known = HashSet::new();
    let mut add = |shown: Option<Vec<String>>, address: String| {
        if bare_address(&address).is_some_and(|bare| known.insert(bare)) {
            groups.entry(shown).or_default().push(address);
        }
    };
    named(site, posted, &users).into_iter().for_each(|address| add(None, address));
    if let Some(people) = site.people.filter(|_| !posted.settings.mails_no_users()) {
        for user in users.iter().filter(|user| user.wants_mail_of(&posted.book.name)) {
            let Some(address) = address(user) else { continue };
            if let Some(shown) = reads(people, user, &posted.book.name)? {
                add(shown, address);
            }
        }
    }
    Ok(groups.into_iter().map(|(shown, to)| MailGroup { shown, to }).collect())
}

/// Returns the attributes that a user may see, if the user may read the logbook.
pub fn reads(people: &People, user: &User, book: &str) -> Result<Option<Option<Vec<String>>>, PeopleError> {
    let principal = people.rights_of(Some(&user.login), None)?;
    if user.inactive || !principal.rights.may(Right::Read, book) {
        return Ok(None);
    }
    shown_to(people, &principal, book).map(Some)
}

/// Returns the attributes of a logbook that somebody may see; `None` stands for all.
pub fn shown_to(people: &People, who: &Principal, book: &str) -> Result<Option<Vec<String>>, PeopleError> {
    Ok(people.shown(who)?.into_iter().find(|(name, _)| same_name(name, book)).map(|(_, shown)| shown))
}

/// Returns the address of a user with the full name; `None` without a usable one.
pub fn address(user: &User) -> Option<String> {
    named_address(&user.full_name, &user.email)
}

/// Returns the addresses that options name: with attributes of the entry in place of `$name`, and with the address of a
/// user in place of a login or full name.
fn named(site: &MailSite<'_>, posted: &PostedEntry<'_>, users: &[User]) -> Vec<String> {
    let joined: Vec<(&str, String)> =
        posted.entry.content.attributes.iter().map(|said| (said.name.as_str(), said.joined())).collect();
    let single = posted.entry.content.attributes.iter().filter(|said| said.values.len() > 1);
    let single = single.flat_map(|said| said.values.iter().map(|value| (said.name.as_str(), value.as_str())));
    let all = joined.iter().map(|(name, value)| (*name, value.as_str())).chain(single);
    let replaced = names(site, posted, posted.entry);
    let found = posted.settings.recipients(all, &conditions(posted));
    let mut addresses = Vec::new();
    for recipient in found {
        // A value can hold several: of a list of users, or as somebody has typed them.
        for one in replaced.expand(&recipient).split([',', '|']).map(|one| one.trim().trim_start_matches("mailto:")) {
            let user = || users.iter().find(|user| !user.inactive && (user.login == one || same_name(&user.full_name, one)));
            let address = if one.contains('@') { bare_address(one).map(|_| one.to_owned()) } else { user().and_then(address) };
            addresses.extend(address);
        }
    }
    addresses.truncate(OF_OPTIONS);
    addresses
}
