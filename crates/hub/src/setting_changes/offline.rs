//! Changed settings of a hub that does not run: their reset, their loss, and the copy that shows a loss.
//!
//! A reset holds the lock of the hub's archive, so no collector reads the file meanwhile. It is refused beside a hub
//! that runs.

use std::{
    fs::{self, File},
    io,
    path::PathBuf,
};

use tampu_archive::{ArchiveError, LocalArchive};
use tampu_logbook::store::sqlite::SqliteStore;
use tampu_types::terminal::harmless;

use super::{
    changeable::changeable,
    error::ChangeError,
    file::{self, Changes, Ownership},
    removal,
};
use crate::{
    config::{Config, Role},
    untrusted_file::{self, Link},
};

/// A reset of changed settings while the hub does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfflineReset {
    /// The file of changed settings.
    pub file: PathBuf,
    /// Names of the settings that were reset; unknown ones, if the file could not be read.
    pub names: Vec<String>,
    /// The former file or its copy, after a reset of all settings.
    pub kept: Option<PathBuf>,
}

/// Takes the change of a setting back, or without a name all changes, also those that no hub can read, or that are
/// lost. Returns `None` if there is nothing to reset. The next start of the hub may remove records that a reset change
/// keeps, so such a reset has to be confirmed.
pub fn reset_offline(configured: &Config, name: Option<&str>, confirmed: bool) -> Result<Option<OfflineReset>, ChangeError> {
    let _locks = locks(configured)?;
    let path = configured.settings_file();
    let text = untrusted_file::text(&path, file::LONGEST, Link::Refused);
    if let (Err(_), None) = (&text, name) {
        // No text at all, as a link or a pipe: put aside as it is.
        return aside(configured, path, Vec::new(), confirmed).map(Some);
    }
    let text = text.map_err(|why| ChangeError::File { path: path.clone(), why })?;
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
        return match (lost(configured), name) {
            (Ok(None), _) => Ok(None),
            (Ok(Some(lost)), Some(_)) => Err(lost),
            (Err(why), Some(_)) => Err(why),
            (Ok(Some(_)) | Err(_), None) => {
                let copy = file::copy_of(&path);
                let names = file::read(&copy).ok().flatten().unwrap_or_default().into_keys().collect();
                aside(configured, copy, names, confirmed).map(Some)
            }
        };
    };
    let mut table = match toml::from_str::<toml::Table>(&text) {
        Ok(table) => table,
        Err(_) if name.is_none() => return aside(configured, path, Vec::new(), confirmed).map(Some),
        Err(why) => return Err(file::bad_text(&path, &why)),
    };
    let Some(name) = name else {
        let names: Vec<String> = table.keys().cloned().collect();
        return if names.is_empty() { Ok(None) } else { aside(configured, path, names, confirmed).map(Some) };
    };
    if table.remove(name).is_none() {
        return Ok(None);
    }
    if removal::is_of_retention(name) && !confirmed {
        return Err(ChangeError::Unconfirmed);
    }
    let owner = Ownership::of(&path).map_err(|why| ChangeError::File { path: path.clone(), why })?;
    let fault = file::write_text(&path, &file::text_of(&path, &table)?, owner)?;
    fault.map_or(Ok(Some(OfflineReset { file: path, names: vec![name.to_owned()], kept: None })), Err)
}

/// Puts the file or its copy aside, and begins one without changes.
fn aside(configured: &Config, from: PathBuf, names: Vec<String>, confirmed: bool) -> Result<OfflineReset, ChangeError> {
    // Of a file that cannot be read nobody knows what it keeps.
    if (names.is_empty() || names.iter().any(|name| removal::is_of_retention(name))) && !confirmed {
        return Err(ChangeError::Unconfirmed);
    }
    let path = configured.settings_file();
    let kept = path.with_extension("toml.before");
    let owner = Ownership::of(&from).and_then(|owner| fs::rename(&from, &kept).map(|()| owner));
    let owner = owner.map_err(|why| ChangeError::File { path: from, why })?;
    let fault = file::write_text(&path, &file::text_of(&path, &Changes::new())?, owner)?;
    fault.map_or(Ok(OfflineReset { file: path, names, kept: Some(kept) }), Err)
}

/// Takes the locks of the archive and the logbook, as far as a hub was ever there. Refuses beside a hub that runs.
fn locks(configured: &Config) -> Result<Vec<File>, ChangeError> {
    let running = |by: String| Err(ChangeError::Running { by });
    let mut locks = Vec::new();
    match LocalArchive::lock_existing(&configured.log_dir()) {
        Ok(lock) => locks.extend(lock),
        Err(ArchiveError::InUse { dir, by }) => return running(format!("{by} has the archive in {}", dir.display())),
        Err(why) => return Err(ChangeError::Archive(why)),
    }
    if configured.roles.contains(&Role::Book) {
        let directory = configured.book_dir();
        match SqliteStore::lock_existing(&directory) {
            Ok(lock) => locks.extend(lock),
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                return running(format!("a process has the logbook in {}", directory.display()));
            }
            Err(why) => return Err(ChangeError::File { path: directory, why }),
        }
    }
    if configured.roles.contains(&Role::Node)
        && let Some(hub) = configured.run_dir().live_hubs().into_iter().find(|hub| hub.domain == configured.domain.as_str())
    {
        let process = hub.pid.map_or_else(|| "a process".to_owned(), |pid| format!("process {pid}"));
        return running(format!("{process} is the node of '{}' in {}", configured.domain, hub.path.display()));
    }
    Ok(locks)
}

/// Returns the error of changes that the hub made once and whose file is gone, if they would have an effect.
pub(super) fn lost(configured: &Config) -> Result<Option<ChangeError>, ChangeError> {
    let path = configured.settings_file();
    let copy = file::copy_of(&path);
    let changes = file::read(&copy)?.unwrap_or_default();
    let names: Vec<String> =
        changes.keys().filter(|name| changeable(configured, name).is_ok()).map(|name| harmless(name, false)).collect();
    Ok((!names.is_empty()).then(|| ChangeError::Lost { path, copy, names: names.join(", ") }))
}

/// Makes the copy of a file that was changed by hand, or whose copy could not be written.
pub(crate) fn mend_copy(configured: &Config) -> Result<(), ChangeError> {
    let path = configured.settings_file();
    let read = |path: &PathBuf| untrusted_file::text(path, file::LONGEST, Link::Refused);
    match read(&path) {
        Ok(Some(text)) if !read(&file::copy_of(&path)).is_ok_and(|copy| copy.as_ref() == Some(&text)) => {
            file::write_copy(&path, text.strip_prefix(file::HEAD).unwrap_or(&text))
        }
        _ => Ok(()),
    }
}
