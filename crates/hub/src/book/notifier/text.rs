//! The texts of mails by rules.

use tampu_elog::pages::address::escape;
use tampu_logbook::{
    entry::{Entry, EntryRef},
    mail::{Mail, thread::message_id},
    notify::{NotifyRule, unsubscribe},
    people::user::User,
    plain::plain,
};

/// Characters of an entry's text in a mail.
const TEXT: usize = 10_000;

/// An entry as the user sees it, and the rules that mean it.
pub struct NotifiedEntry<'a> {
    pub entry: Entry,
    pub rules: Vec<&'a NotifyRule>,
}

/// The mails to one user.
pub struct NotifierText<'a> {
    pub user: &'a User,
    /// The public address of the site; empty if there is none.
    pub base: &'a str,
    pub secret: &'a [u8; 32],
    /// The domain of Message-IDs.
    pub domain: &'a str,
}

impl NotifierText<'_> {
    /// Makes the mail about entries. `more` is the number of further ones that are not named.
    pub fn mail(&self, address: &str, entries: &[NotifiedEntry<'_>], more: u64) -> Mail {
        let mut rules: Vec<&NotifyRule> = Vec::new();
        for rule in entries.iter().flat_map(|entry| &entry.rules) {
            if !rules.iter().any(|known| known.id == rule.id) {
                rules.push(rule);
            }
        }
        let mut mail = match entries {
            [one] if more == 0 => self.single(&one.entry),
            _ => self.digest(entries, more),
        };
        mail.to = vec![address.to_owned()];
        mail.about = entries.iter().map(|notified| notified.entry.at.clone()).collect();
        mail.text.push_str("\n-- \n");
        for rule in &rules {
            mail.text.push_str(&format!("You get this mail by your rule {}: {}\n", rule.id, rule.described()));
            if let Some(link) = self.link(rule) {
                mail.text.push_str(&format!("It ends here: {link}\n"));
            }
        }
        // Programs for mail follow such a link by themselves, and only with encryption.
        mail.unsubscribe = rules.first().and_then(|rule| self.link(rule)).filter(|link| link.starts_with("https://"));
        mail
    }

    /// Returns the address that ends a rule.
    fn link(&self, rule: &NotifyRule) -> Option<String> {
        let token = unsubscribe::token(self.secret, &self.user.login, &rule.id);
        (!self.base.is_empty()).then(|| format!("{}/?unsubscribe={token}", self.base))
    }

    fn single(&self, entry: &Entry) -> Mail {
        let at = |id: u32| message_id(&EntryRef::new(&entry.at.book, id), 0, self.domain);
        let mut thread: Vec<String> = Some(entry.thread).into_iter().chain(entry.parent).map(at).collect();
        thread.dedup();
        thread.retain(|id| *id != at(entry.at.id));
        Mail {
            subject: format!("[{}] {}", entry.at.book, title(entry)),
            text: self.about(entry, TEXT),
            id: Some(at(entry.at.id)),
            thread,
            ..Mail::default()
        }
    }

    fn digest(&self, entries: &[NotifiedEntry<'_>], more: u64) -> Mail {
        let count = entries.len() as u64 + more;
        let mut text = format!("{count} new entries.\n");
        for notified in entries {
            text.push_str(&format!("\n{}\n{}", "=".repeat(72), self.about(&notified.entry, TEXT / entries.len())));
        }
        if more > 0 {
            text.push_str(&format!("\n{}\n{more} further entries are not shown.\n", "=".repeat(72)));
        }
        Mail { subject: format!("{count} new entries in the logbook"), text, ..Mail::default() }
    }

    fn about(&self, entry: &Entry, most: usize) -> String {
        let kind = if entry.parent.is_some() { "replied with" } else { "posted" };
        let mut out = format!("{} {kind} entry {} in {}\n", entry.by, entry.at.id, entry.at.book);
        if !self.base.is_empty() {
            out.push_str(&format!("{}/{}/{}\n", self.base, escape(&entry.at.book), entry.at.id));
        }
        out.push('\n');
        for said in entry.content.attributes.iter().filter(|said| !said.values.is_empty()) {
            out.push_str(&format!("{}: {}\n", said.name, said.joined().replace(['\r', '\n'], " ")));
        }
        for file in &entry.content.attachments {
            out.push_str(&format!("Attachment: {}\n", file.name));
        }
        let text = plain(entry.content.encoding, &entry.content.text);
        let text = text.trim_end();
        let end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
        let cut = if end < text.len() { "\n[...]" } else { "" };
        if !text.is_empty() {
            out.push_str(&format!("\n{}{cut}\n", &text[..end]));
        }
        out
    }
}

/// Returns the subject of an entry, or its number.
fn title(entry: &Entry) -> String {
    let subject = entry.content.attribute("Subject").map(|said| said.joined()).filter(|subject| !subject.trim().is_empty());
    subject.unwrap_or_else(|| format!("entry {}", entry.at.id))
}
