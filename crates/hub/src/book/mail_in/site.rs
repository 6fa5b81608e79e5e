//! What the mails become entries of.

use std::sync::{Arc, atomic::AtomicI64};

use parking_lot::Mutex;
use tampu_elog::pages::Zone;
use tampu_log::Logger;
use tampu_logbook::{mail::settings::MailIn, people::People, store::Store};

use crate::setting_changes::SettingChanges;

/// The store and the people of the logbook, and the settings of mails.
pub struct MailInSite {
    pub store: Arc<dyn Store>,
    pub people: Arc<People>,
    pub settings: MailIn,
    /// The domain of Message-IDs of the logbook's own mails.
    pub domain: String,
    /// The configured local time of the entries.
    pub zone: Zone,
    /// The changed settings, with the size limit of attachments.
    pub changes: Arc<SettingChanges>,
    pub logger: Logger,
    /// The time, in Unix nanoseconds, of the last removal of old records.
    pub cleaned: AtomicI64,
    /// Held while a mail is parsed and posted.
    pub reading: Mutex<()>,
}
