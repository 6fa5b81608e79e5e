//! The use of changed settings by the collector and the archives.

use std::sync::Arc;

use tampu_archive::TableArchive;

use crate::{collecting::Collecting, setting_changes::SettingChanges};

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
