//! Mails about entries, as ELOG's options ask for them.
//!
//! | subject | module |
//! |-|-|
//! | the posted entry and its site | `posted` |
//! | who gets a mail | [`recipients`] |
//! | the mail itself | [`text`] |
//! | the test of a user's rule | [`rule_test`] |
//! | sending it after a post, and the report of it on the next page | here |
//!
//! As with elogd, the author of an entry gets a mail too if an option or the author's own choice says so.

use sha2::{Digest, Sha256};
use tampu_logbook::{attachment::hex, entry::EntryRef};

use crate::pages::{address::escape, html::put, request::BookRequest, settings::FormOccasion};

mod posted;
pub mod recipients;
pub mod rule_test;
pub mod text;

pub use posted::{MailSite, PostedEntry};

/// Recipients that the page after a post names; of more it says how many they are.
const SHOWN: usize = 10;
/// The parameter that proves that this site made the report.
const PROOF: &str = "mails";

/// The outcome of the mails about an entry.
#[derive(Debug, Default)]
pub struct Mailed {
    /// The addresses of the recipients.
    pub to: Vec<String>,
    /// The reason why a mail could not be queued.
    pub failure: Option<String>,
}

impl MailSite<'_> {
    /// Queues the mails about an entry.
    pub fn send(&self, posted: &PostedEntry<'_>) -> Mailed {
        let mut mailed = Mailed::default();
        let groups = match recipients::of(self, posted) {
            Ok(groups) => groups,
            Err(error) => return Mailed { failure: Some(error.to_string()), ..mailed },
        };
        for group in groups {
            let sent = text::mails(self, posted, &group).iter().try_for_each(|mail| self.outbox.send(mail).map(drop));
            match sent {
                Ok(()) => mailed.to.extend(group.to),
                Err(error) => mailed.failure = Some(error.to_string()),
            }
        }
        mailed
    }
}

/// Returns true if a post in this book can send mail, so that there is something to suppress.
pub fn has_effect(request: &BookRequest<'_>) -> bool {
    let users = || request.site.people.is_some() && !request.settings.mails_no_users();
    request.site.mail.is_some() && (request.settings.names_recipients() || users())
}

/// Sends the mails about an entry that was posted or changed, unless they are suppressed.
pub fn after(request: &BookRequest<'_>, occasion: FormOccasion, suppress: &str, id: u32, edited: bool) -> Mailed {
    let is_suppressed = matches!(suppress, "1" | "3") || request.settings.suppress(occasion) == 3;
    let Some(outbox) = request.site.mail.as_deref().filter(|_| !is_suppressed && has_effect(request)) else {
        return Mailed::default();
    };
    let entry = match request.site.store.entry(&EntryRef::new(&request.book.name, id)) {
        Ok(entry) => entry,
        Err(error) => return Mailed { failure: Some(error.to_string()), ..Mailed::default() },
    };
    let site = MailSite {
        store: &*request.site.store,
        people: request.site.people.as_deref(),
        outbox,
        zone: &request.zone,
        base: &request.base,
        now: request.now,
    };
    let (caller, book, settings) = (request.caller, &request.book, &request.settings);
    site.send(&PostedEntry { caller, book, settings, entry: &entry, edited })
}

/// Returns the digest that only this site can make for a report to this caller.
fn proof(request: &BookRequest<'_>, report: &[&str]) -> String {
    let mut digest = Sha256::new().chain_update(request.site.config.secret).chain_update(b"mails");
    digest.update(Sha256::digest(request.caller.login.as_bytes()));
    report.iter().for_each(|part| digest.update(Sha256::digest(part.as_bytes())));
    hex(&digest.finalize()[..16])
}

impl Mailed {
    /// Returns the parameters of the next page, which names the recipients (`Display email recipients`).
    pub fn parameters(&self, request: &BookRequest<'_>) -> String {
        if self.failure.is_some() {
            return format!("?mail0=&{PROOF}={}", proof(request, &[""]));
        }
        if self.to.is_empty() || !request.settings.displays_recipients() {
            return String::new();
        }
        let shown: Vec<String> = match self.to.len() {
            count if count > SHOWN => vec![format!("{count} recipients")],
            _ => self.to.clone(),
        };
        let mut out = String::new();
        for (at, to) in shown.iter().enumerate() {
            out.push_str(&format!("{}mail{at}={}", if at == 0 { '?' } else { '&' }, escape(to)));
        }
        format!("{out}&{PROOF}={}", proof(request, &shown.iter().map(String::as_str).collect::<Vec<_>>()))
    }
}

/// Returns true if a parameter of an address belongs to a report.
pub fn is_of_report(name: &str) -> bool {
    let number = name.strip_prefix("mail").unwrap_or("x");
    name == PROOF || (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Writes who was mailed about the entry, if this site sent the browser here after a post.
pub fn report(request: &BookRequest<'_>, out: &mut String) {
    let Some(given) = request.query.get(PROOF) else { return };
    let shown: Vec<&str> = (0..=SHOWN).map_while(|at| request.query.get(&format!("mail{at}"))).collect();
    if shown.is_empty() || given != proof(request, &shown) {
        return;
    }
    out.push_str("<div class=\"mailed\">");
    if shown == [""] {
        out.push_str("The entry is posted, but no mail could be sent. The log of the hub has the reason.");
    }
    for to in shown.iter().filter(|to| !to.is_empty()) {
        put!(out, "Email sent to <b>{}</b><br>", to);
    }
    out.push_str("</div>\n");
}
