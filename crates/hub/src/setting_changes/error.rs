//! Errors of changing a setting.

use std::{io, path::PathBuf};

use serde_json::Value;
use tampu_archive::{ArchiveError, Retention};
use tampu_types::terminal::harmless;

use crate::config::ConfigError;

/// Errors of changing a setting.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The file cannot be read or written.
    #[error("the file of changed settings {path}: {why}")]
    File {
        /// Path of the file.
        path: PathBuf,
        why: io::Error,
    },
    /// The text of the file is invalid.
    #[error("the file of changed settings {path}: {why}; 'tampu settings reset --all --offline' puts it aside")]
    Text {
        /// Path of the file.
        path: PathBuf,
        /// The reason, in words.
        why: String,
    },
    /// The file is gone or empty, and had changes before.
    #[error(
        "the file of changed settings {path} is gone or empty, and had changes: put it back; a file with a comment alone has no \
         changes"
    )]
    Gone {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is gone or empty before the start of the hub, and its copy has changes.
    #[error(
        "the file of changed settings {path} is gone or empty, and its copy {copy} has changes of {names}: put the copy back \
         (cp -p {copy} {path}), or accept the loss with 'tampu settings reset --all --offline'"
    )]
    Lost {
        /// Path of the file.
        path: PathBuf,
        /// Path of the copy.
        copy: PathBuf,
        /// Names of the settings that the copy changes, in words.
        names: String,
    },
    /// The settings are changed, but a loss of power may undo it.
    #[error(
        "the settings are changed and the change holds, but a loss of power may undo it: the directory of {path} cannot be \
         synced: {why}; mend the disk, and change the setting once more"
    )]
    Unsynced {
        /// Path of the file.
        path: PathBuf,
        why: io::Error,
    },
    /// The settings are changed, but the copy of the file is not.
    #[error(
        "the settings are changed and the change holds, but the copy of their file {path} cannot be written: {why}; without it \
         the hub does not notice a loss of the file. Make room or remove what is in its place; the next change or start of the \
         hub writes it again"
    )]
    Uncopied {
        /// Path of the copy.
        path: PathBuf,
        why: io::Error,
    },
    /// A process uses the files that a reset would change.
    #[error("the hub runs ({by}): reset it without --offline, or stop the hub")]
    Running {
        /// The process, and how it was noticed.
        by: String,
    },
    /// The lock of the archive cannot be examined.
    #[error(transparent)]
    Archive(ArchiveError),
    /// Changes of the file do not fit the configuration.
    #[error(
        "{changes} in {path} does not fit the configuration: {why}; 'tampu settings reset {first} --offline' takes it back",
        why = harmless(&why.to_string(), false)
    )]
    Unfit {
        /// Name of the first of these settings.
        first: Box<str>,
        /// The changes and their persons, in words.
        changes: Box<str>,
        /// Path of the file.
        path: PathBuf,
        why: ConfigError,
    },
    /// The setting does not exist, or only the configuration file sets it.
    #[error("'{name}' cannot be changed while the hub runs{why}; change its line in the configuration file, and restart the hub")]
    Fixed {
        name: String,
        /// The reason after a colon, or nothing.
        why: String,
    },
    /// Another hub uses the setting.
    #[error("'{0}' is a setting of the hub that keeps the logs, and this one does not; change it there")]
    Elsewhere(String),
    /// The configuration allows no changes.
    #[error(
        "the configuration of this hub allows no changes here (change_settings in [access]); change its file, and restart the hub"
    )]
    Closed,
    /// The settings differ from those that the person has read.
    #[error("the settings were changed after they were read")]
    Changed,
    /// The change may remove records, and nobody has confirmed it.
    #[error("'{setting}' as {new} in place of {old} lets the hub remove records at once and for good")]
    Removes {
        /// Name of the setting.
        setting: String,
        /// Its value in force.
        old: Value,
        /// Its value after the change.
        new: Value,
        /// The limits of the archives after the change.
        retention: Box<Retention>,
    },
    /// A reset may let the next start of the hub remove records, and nobody has confirmed it.
    #[error("without this change the next start of the hub may remove records that it keeps, for good")]
    Unconfirmed,
    /// The value is invalid.
    #[error("{}", harmless(&.0.to_string(), false))]
    Value(#[from] ConfigError),
}

impl ChangeError {
    /// Returns true if reading again, without a change of the file, may succeed.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, ChangeError::File { .. })
    }
}
