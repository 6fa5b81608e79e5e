//! The file of changed settings.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tampu_types::terminal::harmless;

use super::error::ChangeError;
use crate::untrusted_file::{self, Link};

/// Longest file in bytes.
pub(super) const LONGEST: u64 = 1 << 20;
/// First line of the file.
pub(super) const HEAD: &str = "# Written by the hub. Change these settings in the console or with 'tampu settings'.\n\n";

/// A changed setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The person who changed it.
    pub by: String,
    /// The time of the change.
    pub at: String,
    /// The value in place of that of the configuration.
    pub value: Value,
}

/// Changed settings by their names.
pub type Changes = BTreeMap<String, Change>;

/// Reads the file. Returns `None` for a missing or empty one; a file whose last change was reset has its first line.
pub(super) fn read(path: &Path) -> Result<Option<Changes>, ChangeError> {
    let text = untrusted_file::text(path, LONGEST, Link::Refused);
    let text = text.map_err(|why| ChangeError::File { path: path.to_owned(), why })?;
    text.filter(|text| !text.trim().is_empty()).map(|text| parse(path, &text)).transpose()
}

/// Reads a file's text. The path is for messages.
pub(super) fn parse(path: &Path, text: &str) -> Result<Changes, ChangeError> {
    toml::from_str(text).map_err(|why| bad_text(path, &why))
}

/// Returns the error of a text that is no file of changes.
pub(super) fn bad_text(path: &Path, why: &toml::de::Error) -> ChangeError {
    let why = harmless(&why.message().trim().replace('\n', "; "), false);
    ChangeError::Text { path: path.to_owned(), why }
}

/// The copy of the file beside it. It shows that a file which is gone had changes.
pub(super) fn copy_of(path: &Path) -> PathBuf {
    path.with_extension("toml.copy")
}

/// Owner and mode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ownership {
    user: u32,
    group: u32,
    mode: u32,
}

impl Ownership {
    /// Returns those of a file. A missing file, or a link or pipe in its place, has those of a fresh one.
    pub(super) fn of(path: &Path) -> io::Result<Ownership> {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_file() => Ok(Ownership { user: found.uid(), group: found.gid(), mode: found.mode() & 0o777 }),
            Ok(_) => Ownership::of_fresh(path),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ownership::of_fresh(path),
            Err(why) => Err(why),
        }
    }

    /// Returns those of a fresh file: it belongs to the owner of its directory, who alone reads it.
    fn of_fresh(path: &Path) -> io::Result<Ownership> {
        let directory = fs::metadata(path.parent().unwrap_or(path))?;
        Ok(Ownership { user: directory.uid(), group: directory.gid(), mode: 0o600 })
    }

    /// Gives them to a file. Only root can give a file away. The files of another user are the user's own.
    fn give(self, file: &fs::File) -> io::Result<()> {
        let found = file.metadata()?;
        if (found.uid(), found.gid()) != (self.user, self.group) {
            let given = fchown(file, Some(self.user), Some(self.group));
            if rustix::process::geteuid().is_root() {
                given?;
            }
        }
        file.set_permissions(fs::Permissions::from_mode(self.mode))
    }
}

/// Returns changes as text of the file.
pub(super) fn text_of(path: &Path, changes: &impl Serialize) -> Result<String, ChangeError> {
    toml::to_string(changes).map_err(|why| ChangeError::File { path: path.to_owned(), why: io::Error::other(why) })
}

/// Replaces the file and its copy, each in one step, so that no reader sees half of it. After an error the file is as
/// it was. A fault that is returned came later: the changes hold, and it says how they are in danger.
pub(super) fn write_text(path: &Path, text: &str, owner: Ownership) -> Result<Option<ChangeError>, ChangeError> {
    let failed = |why| ChangeError::File { path: path.to_owned(), why };
    replace(path, text, owner).map_err(failed)?;
    if let Err(why) = sync_directory(path) {
        return Ok(Some(ChangeError::Unsynced { path: path.to_owned(), why }));
    }
    Ok(write_copy(path, text).err())
}

/// Replaces the copy of the file.
pub(super) fn write_copy(path: &Path, text: &str) -> Result<(), ChangeError> {
    let copy = copy_of(path);
    Ownership::of(&copy)
        .and_then(|owner| replace(&copy, text, owner))
        .and_then(|()| sync_directory(&copy))
        .map_err(|why| ChangeError::Uncopied { path: copy, why })
}

fn replace(path: &Path, text: &str, owner: Ownership) -> io::Result<()> {
    if text.len() as u64 > LONGEST - HEAD.len() as u64 {
        return Err(io::Error::other(format!("it would be longer than {LONGEST} bytes")));
    }
    let fresh = path.with_extension("new");
    let _ = fs::remove_file(&fresh);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    let put = owner
        .give(&file)
        .and_then(|()| file.write_all(HEAD.as_bytes()))
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&fresh, path));
    if put.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    put
}

/// Without this, a loss of power would bring the former file back, or none.
fn sync_directory(path: &Path) -> io::Result<()> {
    fs::File::open(path.parent().unwrap_or(path))?.sync_all()
}
