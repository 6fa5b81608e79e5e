//! Mails about entries that the API has posted or changed, as the options of a logbook from ELOG ask for them.

use http::header;
use tampu_elog::{
    pages::{
        mails::{MailSite, PostedEntry},
        settings::{BookSettings, FormOccasion},
    },
    site_zone,
};
use tampu_log::warning;
use tampu_logbook::{entry::EntryRef, store::StoreError};

use super::call::Call;
use crate::clock::now;

/// Queues the mails about an entry. The entry stays posted if that fails; the log has the reason.
pub fn mail_about(call: &Call<'_>, at: &EntryRef, edited: bool) {
    let logger = || call.api.audit.named("mail");
    match try_mail(call, at, edited) {
        Ok(None) => {}
        Ok(Some(why)) => warning!(logger(), "entry {} of '{}' is posted, but not mailed: {why}", at.id, at.book),
        Err(why) => warning!(logger(), "entry {} of '{}' is posted, but not mailed: {why}", at.id, at.book),
    }
}

fn try_mail(call: &Call<'_>, at: &EntryRef, edited: bool) -> Result<Option<String>, StoreError> {
    let (api, site) = (call.api, &call.api.settings);
    let Some(outbox) = api.mail.as_deref() else { return Ok(None) };
    let book = api.store.book(&at.book)?;
    let settings = BookSettings::of(&book);
    let occasion = if edited { FormOccasion::Edit } else { FormOccasion::New };
    if settings.suppress(occasion) == 3 {
        return Ok(None);
    }
    let entry = api.store.entry(at)?;
    let host = call.head.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let base = match site.elog_url.trim_end_matches('/') {
        "" => format!("http://{host}{}", site.elog_prefix),
        public => public.to_owned(),
    };
    let zone = site_zone::of_site(&*api.store, site.zone().unwrap_or_default())?;
    let people = Some(&*api.people);
    let mails = MailSite { store: &*api.store, people, outbox, zone: &zone, base: &base, now: now() };
    let caller = call.who().caller(call.auth.from);
    Ok(mails.send(&PostedEntry { caller: &caller, book: &book, settings: &settings, entry: &entry, edited }).failure)
}
