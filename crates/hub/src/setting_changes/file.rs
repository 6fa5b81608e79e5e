//! The file of changed settings.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::ChangeError;
use crate::untrusted_file::{self, Link};

/// Longest file in bytes.
pub(super) const LONGEST: u64 = 1 << 20;
/// First line of the file.
const HEAD: &str = "# Written by the hub. Change these settings in the console or with 'tampu settings'.\n\n";

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
    toml::from_str(text).map_err(|why| ChangeError::Text { path: path.to_owned(), why: why.message().trim().replace('\n', "; ") })
}

/// The copy of the file beside it. It shows that a file which is gone had changes.
pub(super) fn copy_of(path: &Path) -> PathBuf {
    path.with_extension("toml.copy")
}

/// Replaces the file.
pub(super) fn write(path: &Path, changes: &Changes) -> Result<(), ChangeError> {
    let text = toml::to_string(changes);
    write_text(path, &text.map_err(|why| ChangeError::File { path: path.to_owned(), why: io::Error::other(why) })?)
}

/// Replaces the file and its copy, each in one step, so that no reader sees half of it.
pub(super) fn write_text(path: &Path, text: &str) -> Result<(), ChangeError> {
    replace(path, text)?;
    replace(&copy_of(path), text)
}

fn replace(path: &Path, text: &str) -> Result<(), ChangeError> {
    let failed = |why| ChangeError::File { path: path.to_owned(), why };
    if text.len() as u64 > LONGEST - HEAD.len() as u64 {
        return Err(failed(io::Error::other(format!("it would be longer than {LONGEST} bytes"))));
    }
    let fresh = path.with_extension("new");
    let _ = fs::remove_file(&fresh);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh).map_err(failed)?;
    file.write_all(HEAD.as_bytes())
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&fresh, path))
        // A loss of power would bring the former file back, or none.
        .and_then(|()| fs::File::open(path.parent().unwrap_or(path))?.sync_all())
        .map_err(failed)
}
