//! The start of the logbook.

use std::sync::Arc;

use tampu_bus::connect::{NodeError, Settings};
use tampu_log::{Logger, alert};
use tampu_workers::host::host_name;

use super::error::HubError;
use crate::{
    api::OnBus,
    book::{self, Book},
    certificates::Https,
    config::{Config, Role},
    rules::Rules,
    setting_changes::SettingChanges,
};

/// Starts the logbook. With the default configuration, a hub whose logbook cannot start runs without it, and logs the
/// reason.
pub(super) fn start_book_if_possible(
    config: &Config,
    changes: &Option<Arc<SettingChanges>>,
    https: Https,
    client: &Settings,
    logger: &Logger,
    rules: &Arc<Rules>,
    bus: OnBus,
) -> Result<Option<Book>, HubError> {
    match start_book(config, changes, https, client, logger, rules, bus) {
        Ok(book) => Ok(Some(book)),
        Err(HubError::Book(error)) if is_book_optional(changes.as_ref().map_or(config, |changes| changes.configured())) => {
            alert!(logger, "the logbook cannot start, and the hub runs without it: {error}");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Returns true if a hub runs even if its logbook cannot start, because nobody asked for the logbook.
pub fn is_book_optional(config: &Config) -> bool {
    let has_defaults = config.book == book::settings::BookSettings::default() && config.mail.host.is_none();
    config.roles == Role::USUAL && has_defaults
}

pub(super) fn start_book(
    config: &Config,
    changes: &Option<Arc<SettingChanges>>,
    https: Https,
    client: &Settings,
    logger: &Logger,
    rules: &Arc<Rules>,
    bus: OnBus,
) -> Result<Book, HubError> {
    let given = book::Given {
        settings: &config.book,
        changes: match changes {
            Some(changes) => changes.clone(),
            None => Arc::new(SettingChanges::open(config)?),
        },
        mail: config.mail.host.is_some().then(|| (&config.mail, config.mail_dir())),
        domain: config.domain.as_str(),
        directory: config.book_dir(),
        https,
        run: client.run_dir.domain(&config.domain).map_err(NodeError::RunDir)?.path().to_owned(),
        host: host_name(),
        logger: logger.clone(),
        rules: rules.clone(),
        bus,
    };
    Ok(Book::start(given)?)
}
