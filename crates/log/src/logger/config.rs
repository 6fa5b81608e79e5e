//! Settings of a process's logging from a file, and the precedence of several sources.
//!
//! | rank | source | form |
//! |-|-|-|
//! | 1 | a change while the process runs | `tampu log levels set`, `Logger::set_central`, an attached reader |
//! | 2 | the program itself | fields of [`LogSettings`]; of a hub: its flags |
//! | 3 | the configuration | the file that `TAMPU_LOG_CONFIG` names, `[log]` and `[[logger]]`; of a hub: its own file |
//! | 4 | the environment | `TAMPU_LOG_LEVEL`, `TAMPU_LOG_LOCAL`, `TAMPU_LOG_OUTPUT`, `TAMPU_LOG_FORMAT` |
//! | 5 | ACS's environment | `ACS_LOG_CENTRAL`, `ACS_LOG_STDOUT` |
//! | 6 | the default | |
//!
//! That is the rank in ACS: the logging configuration of a site beats the environment of a shell. A user who wants
//! another level sets it while the process runs. Settings outside of logging (domain, roles, directories) have the
//! other order, environment before file. There the environment describes one process, and many processes share a file.
//! A setting of a named logger beats a setting of all loggers, at any rank below 1.
//!
//! An unknown key is an error with its line, because a silently ignored setting silently has no effect. The file is
//! read when logging starts, and again on request (`tampu log levels refresh`).

use std::{
    num::{NonZeroU64, NonZeroUsize},
    path::Path,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tampu_bus::QosPatch;

use crate::logger::{
    local::output::{Format, Output},
    repeat::RepeatGuard,
    settings::LogSettings,
    threshold::Threshold,
};
use tampu_types::glob;

pub(crate) mod patch;

pub use patch::LoggerPatch;

/// Settings of a process's logging in a file: `[log]`. Absent settings do not change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogPatch {
    /// Value for [`LogSettings::central`].
    pub level: Option<Threshold>,
    /// Value for [`LogSettings::local`].
    pub local: Option<Threshold>,
    /// Value for [`LogSettings::output`].
    pub output: Option<Output>,
    /// Value for [`LogSettings::format`].
    pub format: Option<Format>,
    /// Value for [`LogSettings::immediate`].
    pub immediate: Option<Threshold>,
    /// Value for [`LogSettings::packet_records`].
    pub packet_records: Option<NonZeroUsize>,
    /// Value for [`LogSettings::packet_bytes`], in bytes.
    pub packet_bytes: Option<NonZeroUsize>,
    /// [`LogSettings::flush_period`], in ms.
    pub flush_ms: Option<u64>,
    /// Value for [`LogSettings::ring_bytes`], in bytes.
    pub ring_bytes: Option<NonZeroUsize>,
    /// Value for [`LogSettings::queue_bytes`], in bytes.
    pub queue_bytes: Option<NonZeroUsize>,
    /// [`LogSettings::full_wait`], in us.
    pub full_wait_us: Option<u64>,
    /// [`LogSettings::full_wait_grave`], in us.
    pub full_wait_grave_us: Option<u64>,
    /// [`LogSettings::close_wait`], in ms.
    pub close_wait_ms: Option<u64>,
    /// [`LogSettings::max_per_s`]; 0 is no limit.
    pub max_per_s: Option<u64>,
    /// Value for [`LogSettings::repeat`].
    pub repeat: Option<RepeatGuard>,
    /// Value for [`LogSettings::attach`].
    pub attach: Option<bool>,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogFile {
    /// Settings of the process.
    pub log: LogPatch,
    /// Its loggers, in order; later ones beat earlier ones.
    pub logger: Vec<LoggerPatch>,
    /// Settings of its topics, which the bus reads ([`tampu_bus::topic_settings`]).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub topic: Vec<QosPatch>,
}

impl LogFile {
    /// Reads a file's text. An error names path and line.
    pub fn parse(text: &str, path: &Path) -> Result<LogFile, String> {
        toml::from_str(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start).min(text.len());
            let line = text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1;
            format!("{}, line {line}: {}", path.display(), error.message().trim().replace('\n', "; "))
        })
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<LogFile, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        LogFile::parse(&text, path)
    }

    /// Changes the settings that the file contains.
    pub fn apply(&self, settings: &mut LogSettings) {
        self.log.apply(settings);
        let here = |patch: &&LoggerPatch| {
            patch.source.as_deref().is_none_or(|source| glob::matches_ignoring_case(source, settings.source.as_str()))
        };
        let mut here: Vec<LoggerPatch> = self.logger.iter().filter(here).cloned().collect();
        for patch in here.iter().filter(|patch| patch.name.is_none()) {
            set(&mut settings.central, patch.level);
            set(&mut settings.local, patch.local);
            set(&mut settings.repeat, patch.repeat);
        }
        here.retain(|patch| patch.name.is_some());
        settings.loggers.extend(here);
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

impl LogPatch {
    /// Changes the settings that it contains.
    pub fn apply(&self, settings: &mut LogSettings) {
        set(&mut settings.central, self.level);
        set(&mut settings.local, self.local);
        set(&mut settings.output, self.output.clone());
        set(&mut settings.format, self.format);
        set(&mut settings.immediate, self.immediate);
        set(&mut settings.packet_records, self.packet_records.map(NonZeroUsize::get));
        set(&mut settings.packet_bytes, self.packet_bytes.map(NonZeroUsize::get));
        set(&mut settings.flush_period, self.flush_ms.map(Duration::from_millis));
        set(&mut settings.ring_bytes, self.ring_bytes.map(NonZeroUsize::get));
        set(&mut settings.queue_bytes, self.queue_bytes.map(NonZeroUsize::get));
        set(&mut settings.full_wait, self.full_wait_us.map(Duration::from_micros));
        set(&mut settings.full_wait_grave, self.full_wait_grave_us.map(Duration::from_micros));
        set(&mut settings.close_wait, self.close_wait_ms.map(Duration::from_millis));
        set(&mut settings.max_per_s, self.max_per_s.map(NonZeroU64::new));
        set(&mut settings.repeat, self.repeat);
        set(&mut settings.attach, self.attach);
    }

    /// Returns these settings, with the settings of `base` where these are absent.
    pub fn over(self, base: LogPatch) -> LogPatch {
        LogPatch {
            level: self.level.or(base.level),
            local: self.local.or(base.local),
            output: self.output.or(base.output),
            format: self.format.or(base.format),
            immediate: self.immediate.or(base.immediate),
            packet_records: self.packet_records.or(base.packet_records),
            packet_bytes: self.packet_bytes.or(base.packet_bytes),
            flush_ms: self.flush_ms.or(base.flush_ms),
            ring_bytes: self.ring_bytes.or(base.ring_bytes),
            queue_bytes: self.queue_bytes.or(base.queue_bytes),
            full_wait_us: self.full_wait_us.or(base.full_wait_us),
            full_wait_grave_us: self.full_wait_grave_us.or(base.full_wait_grave_us),
            close_wait_ms: self.close_wait_ms.or(base.close_wait_ms),
            max_per_s: self.max_per_s.or(base.max_per_s),
            repeat: self.repeat.or(base.repeat),
            attach: self.attach.or(base.attach),
        }
    }

    /// Returns all of these settings as a patch.
    pub fn of(settings: &LogSettings) -> LogPatch {
        LogPatch {
            level: Some(settings.central),
            local: Some(settings.local),
            output: Some(settings.output.clone()),
            format: Some(settings.format),
            immediate: Some(settings.immediate),
            packet_records: NonZeroUsize::new(settings.packet_records),
            packet_bytes: NonZeroUsize::new(settings.packet_bytes),
            flush_ms: Some(settings.flush_period.as_millis() as u64),
            ring_bytes: NonZeroUsize::new(settings.ring_bytes),
            queue_bytes: NonZeroUsize::new(settings.queue_bytes),
            full_wait_us: Some(settings.full_wait.as_micros() as u64),
            full_wait_grave_us: Some(settings.full_wait_grave.as_micros() as u64),
            close_wait_ms: Some(settings.close_wait.as_millis() as u64),
            max_per_s: Some(settings.max_per_s.map_or(0, NonZeroU64::get)),
            repeat: Some(settings.repeat),
            attach: Some(settings.attach),
        }
    }
}

/// Settings that may change while a process logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tunable {
    pub central: Threshold,
    pub local: Threshold,
    pub repeat: RepeatGuard,
    pub max_per_s: Option<NonZeroU64>,
    loggers: Vec<LoggerPatch>,
}

/// Settings of one named logger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Named {
    pub central: Threshold,
    pub local: Threshold,
    pub repeat: RepeatGuard,
}

impl Tunable {
    pub fn of(settings: &LogSettings) -> Tunable {
        let LogSettings { central, local, repeat, max_per_s, .. } = *settings;
        Tunable { central, local, repeat, max_per_s, loggers: settings.loggers.clone() }
    }

    /// Returns the settings of the logger of this name.
    pub fn named(&self, name: &str) -> Named {
        let mut named = Named { central: self.central, local: self.local, repeat: self.repeat };
        for patch in self
            .loggers
            .iter()
            .filter(|patch| patch.name.as_deref().is_some_and(|pattern| glob::matches_ignoring_case(pattern, name)))
        {
            set(&mut named.central, patch.level);
            set(&mut named.local, patch.local);
            set(&mut named.repeat, patch.repeat);
        }
        named
    }
}

#[cfg(test)]
mod tests;
