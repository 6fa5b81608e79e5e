//! The parts of the logbook as its settings ask for them: people, ELOG's pages, mail.

use std::{path::Path, sync::Arc, time::Duration};

use serde_json::json;
use tampu_elog::pages::SiteConfig;
use tampu_log::{Logger, info, warning};
use tampu_logbook::{
    export::pdf::{self, typeset::Typesetter},
    mail::{MailError, MailSettings, Outbox, outbox::MailNews},
    people::{PeopleError, registry::Settings, token::secret},
    store::{Store, StoreError},
};

use super::{error::BookError, hooks, settings::BookSettings};

/// Starts the sender of mail, with its news in the log.
pub fn start_mail(
    settings: &MailSettings,
    book: &BookSettings,
    directory: &Path,
    logger: &Logger,
) -> Result<Arc<Outbox>, BookError> {
    let logger = logger.named("mail");
    let news = move |news: MailNews| match news {
        MailNews::Away(why) => warning!(logger, "no mail can be sent: {why}; mails wait, and the hub retries"),
        MailNews::Back => info!(logger, "the mail server works again"),
        MailNews::Failed { id, to, why } => {
            warning!(logger, "the mail {id} to {to} failed: {why}; 'tampu mail queue' lists, retries and drops it")
        }
        MailNews::Fault(why) => warning!(logger, "the queue of mails: {why}"),
    };
    let hooks = hooks::poster(book).map_err(MailError::Message)?;
    Ok(Arc::new(Outbox::with_hooks(settings.clone(), directory, news, hooks)?))
}

/// Makes the typesetter of the site's layout, if this program has one.
pub fn typesetter(settings: &BookSettings) -> Result<Option<Arc<Typesetter>>, BookError> {
    if !pdf::BUILT_IN {
        return Ok(None);
    }
    let made = Typesetter::new(settings.pdf_layout.as_deref(), &settings.pdf_files);
    made.map(|made| Some(Arc::new(made))).map_err(|error| BookError::Pdf(Box::new(error)))
}

/// Returns the settings of users.
pub fn people_settings(settings: &BookSettings) -> Settings {
    let owner = std::env::var("USER").ok().filter(|name| tampu_logbook::people::user::check_name(name).is_ok());
    Settings {
        guests: settings.guests.rights(),
        accept_elog_hashes: settings.accept_elog_hashes,
        idle: Duration::from_secs(u64::from(settings.session_idle_h) * 3600),
        longest: Duration::from_secs(u64::from(settings.session_days) * 86_400),
        owner: owner.unwrap_or_else(|| "owner".to_owned()),
    }
}

/// Makes the configuration of ELOG's pages below a path.
pub fn site_config(settings: &BookSettings, store: &dyn Store, prefix: &str) -> Result<SiteConfig, BookError> {
    Ok(SiteConfig {
        prefix: prefix.to_owned(),
        url: settings.elog_url.clone(),
        zone: settings.zone().map_err(|why| BookError::Zone(why.to_string()))?,
        themes: settings.elog_themes.clone(),
        secret: site_secret(store)?,
        search_time: Duration::from_millis(settings.search_ms),
        image_hosts: settings.image_hosts.clone(),
        password_in_address: settings.password_in_address,
        raw_csv: settings.raw_csv,
        ..SiteConfig::default()
    })
}

/// Returns the secret that signs forms. All hubs on one store have the same.
pub fn site_secret(store: &dyn Store) -> Result<[u8; 32], BookError> {
    use sha2::{Digest, Sha256};
    let text = loop {
        if let Some(record) = store.record("site", "secret")? {
            break record.value.as_str().unwrap_or_default().to_owned();
        }
        let made = secret().map_err(PeopleError::from)?;
        match store.put_record("site", "secret", &json!(made), Some(0)) {
            // Another hub wrote the secret first.
            Err(StoreError::RecordChanged { .. }) => {}
            done => {
                done?;
            }
        }
    };
    Ok(Sha256::digest(text.as_bytes()).into())
}
