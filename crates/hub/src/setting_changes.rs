//! Retention, quotas and routes that administrators change while the hub runs.
//!
//! ```text
//! console, REST, `tampu settings` -> book role: check, write the file -> file <- collector: applies it within a second
//! ```
//! The changes stand in a file of the hub's own and override the configuration until they are taken back. Each names the
//! person and the time. A hub whose file is broken does not start: retention without a change may remove what the change
//! keeps. While it runs, a broken file changes nothing, and the log names it.
//!
//! Decision: the collector checks each change itself. The role of the logbook reads bytes from outside, and writes the
//! file. So a target of the routes that is added here has a file in the directory of the routes, or sends to a host that
//! the configuration names: another path or host would let that role write, or send all records, where its sandbox keeps
//! it out. Rejected: a change of the configuration file, which belongs to the
//! site's administrators, with comments and under version control.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tampu_log::{Logger, error};
use tampu_workers::WorkerThread;

use crate::{
    config::{Config, ConfigError, Role},
    file_stamp::{Stamp, stamp},
};

/// Period of the look at the file.
const LOOK: Duration = Duration::from_millis(500);
/// Pause of the worker after a panic.
const RESTART: Duration = Duration::from_secs(1);
/// Longest file in bytes.
const LONGEST: u64 = 1 << 20;
/// First line of the file.
const HEAD: &str = "# Written by the hub. Change these settings in the console or with 'tampu settings'.\n\n";

/// Settings of the collector that can change while it runs.
const OF_COLLECTOR: &[&str] = &[
    "collector.keep_days",
    "collector.keep_gb",
    "collector.keep_at_least_days",
    "collector.min_free_gb",
    "quota.bytes_per_s",
    "quota.records_per_s",
    "quota.streams",
    "quota.source",
    "route",
    "target",
];
/// Settings of the logbook that can change while it runs.
const OF_BOOK: &[&str] = &["book.site_gb", "book.book_gb", "book.user_gb", "book.changes_per_minute", "book.changes_burst"];

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
    /// The setting does not exist, or only the configuration file sets it.
    #[error("'{0}' cannot be changed while the hub runs; change its line in the configuration file, and restart the hub")]
    Fixed(String),
    /// Another hub uses the setting.
    #[error("'{0}' is a setting of the hub that keeps the logs, and this one does not; change it there")]
    Elsewhere(String),
    /// The configuration allows no changes.
    #[error(
        "the configuration of this hub allows no changes here (change_settings in [access]); change its file, and restart the hub"
    )]
    Closed,
    /// The value is invalid.
    #[error(transparent)]
    Value(#[from] ConfigError),
}

/// Settings in force: the configuration with the changes.
#[derive(Debug, Clone)]
pub struct InForce {
    /// The configuration with the changes.
    pub config: Config,
    /// The changes by the names of their settings.
    pub changes: Changes,
}

type Apply = Box<dyn Fn(&Config) + Send + Sync>;

/// The settings of a hub that can change.
pub struct SettingChanges {
    file: PathBuf,
    configured: Config,
    current: RwLock<Arc<InForce>>,
    /// State of the file as it was read last. Its lock is held during a change.
    read: Mutex<Option<Stamp>>,
    users: Mutex<Vec<Apply>>,
}

impl SettingChanges {
    /// Reads the changes to a configuration.
    pub fn open(configured: &Config) -> Result<SettingChanges, ChangeError> {
        let file = configured.settings_file();
        let read = stamp(&file);
        let current = merge(configured, read_file(&file)?)?;
        Ok(SettingChanges {
            file,
            configured: configured.clone(),
            current: RwLock::new(Arc::new(current)),
            read: Mutex::new(read),
            users: Mutex::default(),
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

    /// Calls this with the settings in force after each change.
    pub(crate) fn on_change(&self, apply: impl Fn(&Config) + Send + Sync + 'static) {
        self.users.lock().push(Box::new(apply));
    }

    /// Changes a setting.
    pub fn set(&self, name: &str, value: Value, by: &str) -> Result<(), ChangeError> {
        changeable(&self.configured, name)?;
        let mut read = self.read.lock();
        let mut changes = read_file(&self.file)?;
        let at = crate::clock::now().to_acs();
        changes.insert(name.to_owned(), Change { value, by: by.to_owned(), at });
        self.write(changes, &mut read)
    }

    /// Takes a change back, so that the configuration's value holds. Returns `false` if there is none.
    pub fn reset(&self, name: &str) -> Result<bool, ChangeError> {
        changeable(&self.configured, name)?;
        let mut read = self.read.lock();
        let mut changes = read_file(&self.file)?;
        if changes.remove(name).is_none() {
            return Ok(false);
        }
        self.write(changes, &mut read)?;
        Ok(true)
    }

    /// Writes changes that are valid together, and uses them.
    fn write(&self, changes: Changes, read: &mut Option<Stamp>) -> Result<(), ChangeError> {
        let next = merge(&self.configured, changes)?;
        write_file(&self.file, &next.changes)?;
        *read = stamp(&self.file);
        self.take_over(next);
        Ok(())
    }

    /// Reads the file again if it has changed.
    fn read_again(&self) -> Result<(), ChangeError> {
        let mut read = self.read.lock();
        let now = stamp(&self.file);
        if *read != now {
            *read = now;
            self.take_over(merge(&self.configured, read_file(&self.file)?)?);
        }
        Ok(())
    }

    fn take_over(&self, next: InForce) {
        let next = Arc::new(next);
        *self.current.write() = next.clone();
        self.users.lock().iter().for_each(|apply| apply(&next.config));
    }
}

/// Returns the names of the settings that administrators of this hub can change.
pub fn changeable_names(configured: &Config) -> Vec<&'static str> {
    let all = OF_COLLECTOR.iter().chain(OF_BOOK).copied();
    all.filter(|name| changeable(configured, name).is_ok()).collect()
}

/// Checks that a setting can be changed on a hub.
fn changeable(configured: &Config, name: &str) -> Result<(), ChangeError> {
    if !OF_COLLECTOR.contains(&name) && !OF_BOOK.contains(&name) {
        return Err(ChangeError::Fixed(name.escape_debug().to_string()));
    }
    if !configured.access.change_settings {
        return Err(ChangeError::Closed);
    }
    if OF_COLLECTOR.contains(&name) && !configured.roles.contains(&Role::Collector) {
        return Err(ChangeError::Elsewhere(name.to_owned()));
    }
    Ok(())
}

/// Returns the settings in force. Changes that this hub does not allow have no effect.
fn merge(configured: &Config, changes: Changes) -> Result<InForce, ChangeError> {
    let changes: Changes = changes.into_iter().filter(|(name, _)| changeable(configured, name).is_ok()).collect();
    let wrong = |setting: &str, why: String| ConfigError::Value { setting: setting.to_owned(), why };
    // The configuration always has a JSON.
    let mut json = serde_json::to_value(configured).unwrap_or_default();
    let mut config = configured.clone();
    for (name, change) in &changes {
        place(&mut json, name, change.value.clone());
        config = serde_json::from_value(json.clone()).map_err(|why| wrong(name, plain(&why.to_string())))?;
    }
    for (name, target) in &config.target {
        let is_own = configured.target.get(name).is_some_and(|own| own.file == target.file);
        if target.file.is_some() && !is_own {
            let why =
                "only the configuration file names a file elsewhere; without 'file' it is routes/NAME.log beside the archive";
            return Err(wrong(&format!("[target.{name}] file"), why.to_owned()).into());
        }
    }
    crate::routes::check::check_hosts(configured, &config)?;
    let Config { log_flags, file, lines, .. } = configured.clone();
    let config = Config { log_flags, file, lines, ..config };
    if !changes.is_empty() {
        config.check()?;
    }
    Ok(InForce { config, changes })
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

fn read_file(path: &Path) -> Result<Changes, ChangeError> {
    let failed = |why| ChangeError::File { path: path.to_owned(), why };
    match fs::metadata(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Changes::new()),
        Ok(found) if found.len() > LONGEST => return Err(failed(io::Error::other(format!("it is longer than {LONGEST} bytes")))),
        _ => {}
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    toml::from_str(&text).map_err(|why| failed(io::Error::other(why.message().to_owned())))
}

/// Replaces the file in one step, so that no reader sees half of it.
fn write_file(path: &Path, changes: &Changes) -> Result<(), ChangeError> {
    let failed = |why| ChangeError::File { path: path.to_owned(), why };
    let text = toml::to_string(changes).map_err(|why| failed(io::Error::other(why)))?;
    if text.len() as u64 > LONGEST - HEAD.len() as u64 {
        return Err(failed(io::Error::other(format!("it would be longer than {LONGEST} bytes"))));
    }
    let fresh = path.with_extension("toml.new");
    let _ = fs::remove_file(&fresh);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh).map_err(failed)?;
    file.write_all(HEAD.as_bytes())
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| file.sync_all())
        .map_err(failed)?;
    fs::rename(&fresh, path).map_err(failed)
}

/// Watch over the file. Dropping it ends it.
pub(crate) struct SettingsWatch {
    stop: Option<Sender<()>>,
    worker: Option<JoinHandle<()>>,
}

impl SettingsWatch {
    /// Starts to look at the file.
    pub(crate) fn start(settings: Arc<SettingChanges>, logger: Logger) -> io::Result<SettingsWatch> {
        let (stop, stopped) = channel::<()>();
        let work = move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK) {
                if let Err(why) = settings.read_again() {
                    error!(logger, "{why}; the settings stay as they were");
                }
            }
        };
        let worker = WorkerThread::named("settings").spawn_restarting(RESTART, work)?;
        Ok(SettingsWatch { stop: Some(stop), worker: Some(worker) })
    }
}

impl Drop for SettingsWatch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

#[cfg(test)]
mod tests;
