//! Changed settings of a hub that does not run: their reset, and those that were lost.

use std::{fs, path::PathBuf};

use super::{error::ChangeError, file, removal};
use crate::{
    config::Config,
    untrusted_file::{self, Link},
};

/// A reset of changed settings while the hub does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfflineReset {
    /// The file of changed settings.
    pub file: PathBuf,
    /// Names of the settings that were reset; unknown ones, if the file could not be read.
    pub names: Vec<String>,
    /// The former file, after a reset of all settings.
    pub kept: Option<PathBuf>,
}

/// Takes the change of a setting back, or without a name all changes, also those that no hub can read. Returns `None` if
/// there is nothing to reset. The next start of the hub may remove records that a reset change keeps, so such a reset has
/// to be confirmed.
pub fn reset_offline(configured: &Config, name: Option<&str>, confirmed: bool) -> Result<Option<OfflineReset>, ChangeError> {
    let path = configured.settings_file();
    let failed = |why| ChangeError::File { path: path.clone(), why };
    let text = untrusted_file::text(&path, file::LONGEST, Link::Refused);
    if let (Err(_), None) = (&text, name) {
        // No text at all, as a link or a pipe: put aside as it is.
        return aside(configured, Vec::new(), confirmed).map(Some);
    }
    let Some(text) = text.map_err(failed)?.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
    let mut table = match toml::from_str::<toml::Table>(&text) {
        Ok(table) => table,
        Err(_) if name.is_none() => return aside(configured, Vec::new(), confirmed).map(Some),
        Err(why) => {
            let why = why.message().trim().replace('\n', "; ");
            return Err(ChangeError::Text { path, why });
        }
    };
    let Some(name) = name else {
        let names: Vec<String> = table.keys().cloned().collect();
        return if names.is_empty() { Ok(None) } else { aside(configured, names, confirmed).map(Some) };
    };
    if table.remove(name).is_none() {
        return Ok(None);
    }
    if removal::is_of_retention(name) && !confirmed {
        return Err(ChangeError::Unconfirmed);
    }
    file::write_text(&path, &toml::to_string(&table).map_err(|why| failed(std::io::Error::other(why)))?)?;
    Ok(Some(OfflineReset { file: path, names: vec![name.to_owned()], kept: None }))
}

/// Puts the file aside, and begins one without changes.
fn aside(configured: &Config, names: Vec<String>, confirmed: bool) -> Result<OfflineReset, ChangeError> {
    // Of a file that cannot be read nobody knows what it keeps.
    if (names.is_empty() || names.iter().any(|name| removal::is_of_retention(name))) && !confirmed {
        return Err(ChangeError::Unconfirmed);
    }
    let path = configured.settings_file();
    let kept = path.with_extension("toml.before");
    fs::rename(&path, &kept).map_err(|why| ChangeError::File { path: path.clone(), why })?;
    file::write(&path, &file::Changes::new())?;
    Ok(OfflineReset { file: path, names, kept: Some(kept) })
}

/// Returns the names of changes that the hub made once and whose file is gone, with the copy that has them.
pub fn lost(configured: &Config) -> Option<(Vec<String>, PathBuf)> {
    let (path, copy) = (configured.settings_file(), file::copy_of(&configured.settings_file()));
    let is_there = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.len() > 0);
    let changes = file::read(&copy).ok().flatten().filter(|changes| !is_there && !changes.is_empty())?;
    Some((changes.into_keys().collect(), copy))
}

/// Says that changes are lost, with the way out.
pub fn lost_words(configured: &Config) -> Option<(String, String)> {
    let (names, copy) = lost(configured)?;
    let file = configured.settings_file();
    let found = format!(
        "the file of changed settings {} is gone, and the configuration holds in place of the changes of {}",
        file.display(),
        names.join(", ")
    );
    let way_out = format!(
        "stop the hub and copy {} to it, or make them anew with 'tampu settings set'; 'tampu settings reset --all --offline' accepts the loss",
        copy.display()
    );
    Some((found, way_out))
}
