//! The use of changed settings by the collector and the archives.

use std::sync::Arc;

use parking_lot::RwLock;
use tampu_archive::TableArchive;
use tampu_event::history::HistorySettings;

use crate::{collecting::Collecting, setting_changes::SettingChanges};

/// Lets the history of events use each change of its selection, as long as it exists.
pub(super) fn follow_events(changes: &SettingChanges, settings: &Arc<RwLock<HistorySettings>>) {
    let settings = Arc::downgrade(settings);
    changes.on_change(move |config| {
        if let Some(settings) = settings.upgrade() {
            *settings.write() = config.events.clone();
        }
    });
}

/// Lets the collector and these archives use each change, as long as they exist.
pub(super) fn follow_changes<'a>(
    changes: &SettingChanges,
    collecting: &Arc<Collecting>,
    tables: impl Iterator<Item = &'a Arc<TableArchive>>,
) {
    let collecting = Arc::downgrade(collecting);
    changes.on_change(move |config| {
        if let Some(collecting) = collecting.upgrade() {
            collecting.follow(config);
        }
    });
    for table in tables.map(Arc::downgrade) {
        changes.on_change(move |config| {
            if let Some(table) = table.upgrade() {
                table.set_retention(config.archive().retention());
            }
        });
    }
}
