//! The checks of a configuration before any role starts, and the directories of data.

use std::{fs, path::Path};

use tampu_types::terminal::harmless;

use super::error::HubError;
use crate::{
    certificates,
    config::{Config, Role},
    private,
    rules::Rules,
    setting_changes::{SettingChanges, mend_copy},
    topic_keeper,
};

/// Checks the configuration, and makes and closes the directories of data. Returns remarks for the log.
pub(crate) fn prepare(config: &Config) -> Result<Vec<String>, HubError> {
    config.check()?;
    topic_keeper::of_hub(config)?;
    Rules::of(config)?.check_doors(config)?;
    let has = |role| config.roles.contains(&role);
    if has(Role::Book) {
        certificates::of_book(config)?;
    }
    certificates::of_metrics(config)?;
    let mut remarks = private::close(config)?;
    remarks.extend(certificates::remarks(config));
    // The sandbox of the logbook's role names it, so it has to be there. Without it the hub has no rules to write.
    if let Some(directory) = config.policy_file().parent().filter(|_| config.access.policy.is_none() && has(Role::Book)) {
        let _ = fs::create_dir_all(directory);
    }
    if let Some(directory) = config.settings_file().parent().filter(|_| config.access.change_settings && has(Role::Book)) {
        let _ = fs::create_dir_all(directory);
    }
    let ignored = SettingChanges::open(config)?.in_force().ignored.clone();
    let of_changes = |name: &String| {
        let (name, file) = (harmless(name, false), config.settings_file());
        format!(
            "the change of '{name}' in {} has no effect: this hub does not have or does not change that setting",
            file.display()
        )
    };
    remarks.extend(ignored.iter().map(of_changes));
    remarks.extend(mend_copy(config).err().map(|fault| fault.to_string()));
    if has(Role::Collector) || has(Role::Node) && config.spool.enabled && config.spool.dir.is_none() {
        check_data(&config.domain_data())?;
    }
    Ok(remarks)
}

/// Creates the directory of the data, and checks that it can be written.
fn check_data(path: &Path) -> Result<(), HubError> {
    use rustix::fs::{Access, access};
    let checked = fs::create_dir_all(path).and_then(|()| Ok(access(path, Access::WRITE_OK)?));
    checked.map_err(|why| HubError::Data { path: path.to_owned(), why })
}
