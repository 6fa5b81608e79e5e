//! The settings that can change while the hub runs.

use tampu_types::terminal::harmless;

use super::error::ChangeError;
use crate::config::{Config, Role};

/// Settings of the collector that can change while it runs.
const OF_COLLECTOR: &[&str] = &[
    "collector.keep_days",
    "collector.keep_gb",
    "collector.keep_at_least_days",
    "collector.min_free_gb",
    "events.keep",
    "events.leave_out",
    "events.longest_kb",
    "quota.bytes_per_s",
    "quota.records_per_s",
    "quota.streams",
    "quota.source",
    "route",
    "target",
];
/// Settings of the logbook that can change while it runs.
const OF_BOOK: &[&str] = &[
    "book.site_gb",
    "book.book_gb",
    "book.user_gb",
    "book.attachment_mb",
    "book.waiting_mb",
    "book.min_free_mb",
    "book.changes_per_minute",
    "book.changes_burst",
];
/// Settings of the same kind that only the configuration file sets, with the reason.
const FIXED: &[(&str, &str)] = &[
    ("collector.keep_attached", "it decides which topics the collector reads from its start"),
    ("events.history", "it starts and ends the archive of events"),
    ("spool.per_source_mb", "each host's node has a spool of its own, and the configuration of that host sets it"),
    ("spool.total_mb", "each host's node has a spool of its own, and the configuration of that host sets it"),
];

/// Returns the names of the settings that administrators of this hub can change.
pub fn changeable_names(configured: &Config) -> Vec<&'static str> {
    let all = OF_COLLECTOR.iter().chain(OF_BOOK).copied();
    all.filter(|name| changeable(configured, name).is_ok()).collect()
}

/// Returns the reason why only the configuration file sets a setting, if there is one.
pub fn fixed_why(configured: &Config, name: &str) -> Option<&'static str> {
    let without_history = name.starts_with("events.") && name != "events.history" && !configured.events.history;
    let known = FIXED.iter().find(|(fixed, _)| *fixed == name).map(|(_, why)| *why);
    known.or(without_history.then_some("the configuration has no history of events"))
}

/// Checks that a setting can be changed on a hub.
pub(super) fn changeable(configured: &Config, name: &str) -> Result<(), ChangeError> {
    let why = fixed_why(configured, name);
    if !OF_COLLECTOR.contains(&name) && !OF_BOOK.contains(&name) || why.is_some() {
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        return Err(ChangeError::Fixed { name: harmless(name, false), why });
    }
    if !configured.access.change_settings {
        return Err(ChangeError::Closed);
    }
    if OF_COLLECTOR.contains(&name) && !configured.roles.contains(&Role::Collector) {
        return Err(ChangeError::Elsewhere(name.to_owned()));
    }
    Ok(())
}
