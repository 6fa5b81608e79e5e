//! The offer of new passwords by mail, where a site has one.

use std::sync::Arc;

use tampu_logbook::{mail::Outbox, people::People};

use super::policy::AccountPolicy;
use crate::pages::request::PageRequest;

/// The parts of a site that make and mail links for new passwords.
pub struct ResetOffer<'a> {
    pub people: &'a Arc<People>,
    pub outbox: &'a Arc<Outbox>,
    /// The public address of the site.
    pub site: &'a str,
}

impl<'a> ResetOffer<'a> {
    /// Returns the offer, if the policy allows it and the site has users, a mail server and a public address.
    pub fn at(request: &PageRequest<'a>, policy: AccountPolicy) -> Option<ResetOffer<'a>> {
        let site = request.site;
        let url = site.config.url.trim_end_matches('/');
        match (&site.people, &site.mail) {
            (Some(people), Some(outbox)) if policy.forgotten && !url.is_empty() => Some(ResetOffer { people, outbox, site: url }),
            _ => None,
        }
    }
}
