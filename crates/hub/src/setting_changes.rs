//! Retention, quotas and routes that administrators change while the hub runs.
//!
//! ```text
//! console, REST, `tampu settings` -> book role: check, write the file -> file <- collector: applies it within a second
//! ```
//! The changes stand in a file of the hub's own and override the configuration until they are taken back. Each names
//! the person and the time. A hub whose file is broken does not start: retention without a change may remove what the
//! change keeps. The same holds for a file that is gone while its copy has changes. While it runs, a broken or vanished
//! file changes nothing, and the log names it. The supervisor gives its roles the changes it read last, for a file that
//! is broken when one of them starts again.
//!
//! Decision: the collector checks each change itself. The role of the logbook reads bytes from outside, and writes the
//! file. So a target of the routes that is added here has a file in the directory of the routes, or sends to a host that
//! the configuration names: another path or host would let that role write, or send all records, where its sandbox keeps
//! it out. Rejected: a change of the configuration file, which belongs to the
//! site's administrators, with comments and under version control.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tampu_log::Logger;
use tampu_types::terminal::harmless;

use crate::{
    config::{Config, ConfigError},
    file_stamp::{Stamp, stamp},
};

use changeable::changeable;
use file::Ownership;

pub use changeable::{changeable_names, fixed_why};
pub use error::ChangeError;
pub use file::{Change, Changes};
pub(crate) use offline::mend_copy;
pub use offline::{OfflineReset, reset_offline};
pub(crate) use watch::SettingsWatch;

mod changeable;
mod error;
mod file;
mod offline;
mod removal;
mod watch;

/// Longest value in the audit, in characters.
const TOLD: usize = 200;

/// Bytes of a version.
const VERSION: usize = 16;

/// The person who asks for a change.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The person's login.
    pub by: &'a str,
    /// The address that the person asks from.
    pub from: &'a str,
    /// True if the change may remove records.
    pub confirmed: bool,
    /// The version of the changes that the person has read; `None` changes any version.
    pub version: Option<&'a str>,
}

/// A change for the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    /// Login of the person; `somebody` for a reset in the file.
    pub by: String,
    /// The person's address, or the file.
    pub from: String,
    /// Name of the setting.
    pub setting: String,
    /// The former and the new value, in words.
    pub values: String,
}

/// Settings in force: the configuration with the changes.
#[derive(Debug, Clone)]
pub struct InForce {
    /// The configuration with the changes.
    pub config: Config,
    /// The changes by the names of their settings.
    pub changes: Changes,
    /// Changes of the file that this hub does not allow or does not know, which have no effect.
    pub ignored: Vec<String>,
}

impl InForce {
    /// Returns the version of the changes. Different changes have different ones.
    pub fn version(&self) -> String {
        // Changes always have a JSON.
        let text = serde_json::to_vec(&self.changes).unwrap_or_default();
        Sha256::digest(text).iter().take(VERSION).map(|byte| format!("{byte:02x}")).collect()
    }
}

type Apply = Box<dyn Fn(&Config) + Send + Sync>;
type Tell = Box<dyn Fn(&Told) + Send + Sync>;

/// The settings of a hub that can change.
pub struct SettingChanges {
    file: PathBuf,
    configured: Config,
    current: RwLock<Arc<InForce>>,
    /// State of the file as it was read last; `None` if it could not be read. Its lock is held during a change.
    read: Mutex<Option<Option<Stamp>>>,
    users: Mutex<Vec<Apply>>,
    audit: OnceLock<Tell>,
}

impl SettingChanges {
    /// Reads the changes to a configuration. A role whose supervisor knows the changes starts with these if the file is
    /// broken meanwhile: another role writes it, and must not stop this one.
    pub fn open(configured: &Config) -> Result<SettingChanges, ChangeError> {
        let file = configured.settings_file();
        let now = stamp(&file);
        let (read, current) = match (read_over(configured, &file, configured.changes.as_deref()), &configured.changes) {
            (Ok(current), _) => (Some(now), current),
            (Err(_), Some(known)) => (None, merge(configured, file::parse(&file, known)?)?),
            (Err(why), None) => return Err(why),
        };
        Ok(SettingChanges {
            file,
            configured: configured.clone(),
            current: RwLock::new(Arc::new(current)),
            read: Mutex::new(read),
            users: Mutex::default(),
            audit: OnceLock::new(),
        })
    }

    /// Returns the configuration without the changes.
    pub fn configured(&self) -> &Config {
        &self.configured
    }

    /// Returns the settings in force.
    pub fn in_force(&self) -> Arc<InForce> {
        self.current.read().clone()
    }

    /// Returns the size limit of an attachment, in bytes.
    pub(crate) fn longest_attachment(&self) -> u64 {
        self.in_force().config.book.attachment_mb << 20
    }

    /// Calls this with the settings in force after each change.
    pub(crate) fn on_change(&self, apply: impl Fn(&Config) + Send + Sync + 'static) {
        self.users.lock().push(Box::new(apply));
    }

    /// Calls this with each change from here on.
    pub(crate) fn audit_to(&self, tell: impl Fn(&Told) + Send + Sync + 'static) {
        // Set once, at the start.
        let _ = self.audit.set(Box::new(tell));
    }

    /// Changes a setting. After [`ChangeError::Unsynced`] and [`ChangeError::Uncopied`] the change holds.
    pub fn set(&self, name: &str, mut value: Value, asked: &Asked<'_>) -> Result<(), ChangeError> {
        changeable(&self.configured, name)?;
        if name == "target" {
            leave_out_files(&self.configured, &mut value);
        }
        let mut read = self.read.lock();
        let mut changes = self.read_for(asked)?;
        let at = crate::clock::now().to_acs();
        changes.insert(name.to_owned(), Change { value, by: asked.by.to_owned(), at });
        self.write(name, changes, &mut read, asked)
    }

    /// Takes a change back, so that the configuration's value holds. Returns `false` if there is none.
    pub fn reset(&self, name: &str, asked: &Asked<'_>) -> Result<bool, ChangeError> {
        changeable(&self.configured, name)?;
        let mut read = self.read.lock();
        let mut changes = self.read_for(asked)?;
        if changes.remove(name).is_none() {
            return Ok(false);
        }
        self.write(name, changes, &mut read, asked)?;
        Ok(true)
    }

    /// Writes changes that are valid together, and uses them.
    fn write(
        &self,
        name: &str,
        changes: Changes,
        read: &mut Option<Option<Stamp>>,
        asked: &Asked<'_>,
    ) -> Result<(), ChangeError> {
        let next = merge(&self.configured, changes.clone())?;
        let held = self.in_force();
        if let Some(setting) = removal::tightened(&held.config, &next.config).filter(|_| !asked.confirmed) {
            let [old, new] = [&held.config, &next.config].map(|config| value_of(config, setting));
            let retention = Box::new(next.config.archive().retention());
            return Err(ChangeError::Removes { setting: setting.to_owned(), old, new, retention });
        }
        let owner = Ownership::of(&self.file).map_err(|why| ChangeError::File { path: self.file.clone(), why })?;
        let fault = file::write_text(&self.file, &file::text_of(&self.file, &changes)?, owner)?;
        *read = Some(stamp(&self.file));
        self.take_over(next, Some((name, asked)));
        fault.map_or(Ok(()), Err)
    }

    /// Follows changes of the file until the watch is dropped. Without a logger, others log the faults of the file.
    pub(crate) fn watch(self: Arc<Self>, logger: Option<Logger>) -> io::Result<SettingsWatch> {
        SettingsWatch::start(move || self.read_again(), logger)
    }

    /// Reads the file again if it has changed; returns true if it has.
    fn read_again(&self) -> Result<bool, ChangeError> {
        let mut read = self.read.lock();
        let now = stamp(&self.file);
        if *read == Some(now) {
            return Ok(false);
        }
        let next = self.read_held().and_then(|changes| merge_of_file(&self.configured, &self.file, changes));
        if next.as_ref().err().is_none_or(|why| !why.may_pass()) {
            *read = Some(now);
        }
        self.take_over(next?, None);
        Ok(true)
    }

    /// Reads the changes of the file, which is not gone while changes hold.
    fn read_held(&self) -> Result<Changes, ChangeError> {
        match file::read(&self.file)? {
            Some(changes) => Ok(changes),
            None if self.in_force().changes.is_empty() => Ok(Changes::new()),
            None => Err(ChangeError::Gone { path: self.file.clone() }),
        }
    }

    /// Reads the changes for one more, if they are those that the person has read.
    fn read_for(&self, asked: &Asked<'_>) -> Result<Changes, ChangeError> {
        let changes = self.read_held()?;
        if let Some(version) = asked.version
            && merge(&self.configured, changes.clone())?.version() != version
        {
            return Err(ChangeError::Changed);
        }
        Ok(changes)
    }

    /// Uses these settings. `asked` names the setting that a person asked for; others were changed in the file by hand.
    fn take_over(&self, next: InForce, asked: Option<(&str, &Asked<'_>)>) {
        let next = Arc::new(next);
        let former = std::mem::replace(&mut *self.current.write(), next.clone());
        self.users.lock().iter().for_each(|apply| apply(&next.config));
        let Some(tell) = self.audit.get() else { return };
        let names: BTreeSet<&String> = former.changes.keys().chain(next.changes.keys()).collect();
        for name in names.into_iter().filter(|name| former.changes.get(*name) != next.changes.get(*name)) {
            let [old, new] = [&former.config, &next.config].map(|config| clipped(&value_of(config, name)));
            let change = next.changes.get(name);
            let (by, from) = match asked {
                Some((of, asked)) if of == name => (asked.by, asked.from.to_owned()),
                _ => (change.map_or("somebody", |change| &change.by), format!("file {}", self.file.display())),
            };
            let source = if change.is_none() { " (the configuration's)" } else { "" };
            let values = format!("{old} -> {new}{source}");
            tell(&Told { by: by.to_owned(), from, setting: name.clone(), values });
        }
    }
}

/// Returns the changes as text of the file, for a role of the same hub.
pub(crate) fn text_of(changes: &Changes) -> Option<String> {
    // Changes that came from a file are TOML.
    toml::to_string(changes).ok().filter(|_| !changes.is_empty())
}

/// Reads the file over a configuration. A file without any change is an error where changes are known, and where its
/// copy has some.
fn read_over(configured: &Config, path: &Path, known: Option<&str>) -> Result<InForce, ChangeError> {
    match (file::read(path)?, known) {
        (None, Some(_)) => Err(ChangeError::Gone { path: path.to_owned() }),
        (None, None) => match offline::lost(configured)? {
            Some(lost) => Err(lost),
            None => merge_of_file(configured, path, Changes::new()),
        },
        (Some(changes), _) => merge_of_file(configured, path, changes),
    }
}

/// Returns the settings in force with the changes of a file. An error names those that do not fit.
fn merge_of_file(configured: &Config, path: &Path, changes: Changes) -> Result<InForce, ChangeError> {
    merge(configured, changes.clone()).map_err(|why| {
        let fits_without = |name: &String| {
            let others = changes.iter().filter(|(other, _)| *other != name);
            merge(configured, others.map(|(other, change)| (other.clone(), change.clone())).collect()).is_ok()
        };
        let alone: Vec<&String> = changes.keys().filter(|name| fits_without(name)).collect();
        let wrong = if alone.is_empty() { changes.keys().collect() } else { alone };
        let first = wrong.first().map(|name| harmless(name, false)).unwrap_or_default().into();
        let words = |name: &String| format!("'{}' by {}", harmless(name, false), harmless(&changes[name].by, false));
        let words = wrong.into_iter().map(words).collect::<Vec<_>>().join(" or ");
        let changes = format!("the change of {words}").into();
        ChangeError::Unfit { first, changes, path: path.to_owned(), why }
    })
}

/// Returns the settings in force. Changes that this hub does not allow have no effect.
fn merge(configured: &Config, changes: Changes) -> Result<InForce, ConfigError> {
    let (changes, others): (Changes, Changes) = changes.into_iter().partition(|(name, _)| changeable(configured, name).is_ok());
    let ignored = others.into_keys().collect();
    let wrong = |setting: &str, why: String| ConfigError::Value { setting: setting.to_owned(), why };
    // The configuration always has a JSON.
    let mut json = serde_json::to_value(configured).unwrap_or_default();
    let mut config = configured.clone();
    for (name, change) in &changes {
        let mut value = change.value.clone();
        if name == "target" {
            inherit_files(configured, &mut value);
        }
        place(&mut json, name, value);
        config = serde_json::from_value(json.clone()).map_err(|why| wrong(name, plain(&why.to_string())))?;
    }
    for (name, target) in &config.target {
        let is_own = configured.target.get(name).is_some_and(|own| own.file == target.file);
        if target.file.is_some() && !is_own {
            let why =
                "only the configuration file names a file elsewhere; without 'file' it is routes/NAME.log beside the archive";
            return Err(wrong(&format!("[target.{name}] file"), why.to_owned()));
        }
    }
    crate::routes::check::check_hosts(configured, &config)?;
    let Config { log_flags, file, lines, changes: known, .. } = configured.clone();
    let config = Config { log_flags, file, lines, changes: known, ..config };
    if !changes.is_empty() {
        config.check()?;
    }
    Ok(InForce { config, changes, ignored })
}

/// Sets the member of a name such as `collector.keep_days`.
fn place(json: &mut Value, name: &str, value: Value) {
    let mut parts = name.split('.');
    let place = parts.try_fold(json, |at, part| Some(at.as_object_mut()?.entry(part).or_insert(Value::Null)));
    if let Some(place) = place {
        *place = value;
    }
}

/// Says numbers as numbers.
fn plain(why: &str) -> String {
    let mut why = why.to_owned();
    for number in ["u8", "u16", "u32", "u64", "f64"] {
        why = why.replace(&format!("expected {number}"), "expected a number, not below 0");
    }
    why
}

/// Gives targets of the configuration its files. A stored copy would not follow a later change of the configuration.
fn inherit_files(configured: &Config, targets: &mut Value) {
    for (name, target) in targets.as_object_mut().into_iter().flatten() {
        let own = configured.target.get(name).and_then(|own| own.file.as_ref());
        if let (Some(own), Some(target)) = (own, target.as_object_mut())
            && !target.contains_key("syslog")
        {
            target.entry("file").or_insert_with(|| own.to_string_lossy().into());
        }
    }
}

/// Removes the files that targets have from the configuration.
fn leave_out_files(configured: &Config, targets: &mut Value) {
    for (name, target) in targets.as_object_mut().into_iter().flatten() {
        let own = configured.target.get(name).and_then(|own| own.file.as_ref());
        if let (Some(own), Some(target)) = (own, target.as_object_mut())
            && target.get("file").and_then(Value::as_str).is_some_and(|file| Path::new(file) == own)
        {
            target.remove("file");
        }
    }
}

/// Returns the value of a name such as `collector.keep_days`.
fn value_of(config: &Config, name: &str) -> Value {
    // The configuration always has a JSON.
    let json = serde_json::to_value(config).unwrap_or_default();
    json.pointer(&format!("/{}", name.replace('.', "/"))).cloned().unwrap_or_default()
}

/// Returns a value as text that is not too long for a line.
fn clipped(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(TOLD) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests;
