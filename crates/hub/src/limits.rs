//! Limits of the processes of a hub's roles: memory and open files.
//!
//! ```toml
//! [limits.book]
//! memory = "25%"
//! open_files = 4096
//! ```
//! A cgroup holds the memory where the hub may divide its own (`supervisor::cgroup`). Elsewhere `RLIMIT_DATA` does: it
//! counts the heap and private mappings, and not the large mappings of files. Rejected: `RLIMIT_AS`, which counts those.
//! A role beyond its memory ends alone, and the supervisor restarts it.

use std::{fmt, fs, str::FromStr};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use tampu_types::units::{parse_size, size_text};

use crate::part::HubPart;

/// Smallest memory of a role; with less it does not start.
const LEAST_MEMORY: u64 = 256 << 20;
/// Offset of the score by which the kernel chooses a process to end; 1000 is the largest.
const OOM_SCORE: &str = "500";
/// Nice value of an exposed role: beside a role with 0, each of its threads gets a third of the time.
const NICE: i32 = 5;
/// Smallest number of open files of a role.
const LEAST_FILES: u64 = 64;

/// A limit of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum MemoryLimit {
    /// Sets no limit.
    Off,
    /// A share of this host's memory in percent, and at least [`MemoryLimit::LEAST_SHARE`].
    Share(u8),
    /// A number of bytes.
    Bytes(u64),
}

/// A text that is no limit of memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid limit of memory '{0}': write a share of the host's memory, as \"25%\", a size of at least 256MiB, as \"2GiB\", or \"off\""
)]
pub struct BadMemoryLimit(String);

impl MemoryLimit {
    /// Smallest memory that a share gives, on small hosts.
    pub const LEAST_SHARE: u64 = 1 << 30;

    /// Returns the bytes on a host with this much memory.
    pub fn bytes(self, host: u64) -> Option<u64> {
        match self {
            MemoryLimit::Off => None,
            MemoryLimit::Share(percent) => {
                let mib = (host / 100 * u64::from(percent)) >> 20;
                Some((mib << 20).max(Self::LEAST_SHARE))
            }
            MemoryLimit::Bytes(bytes) => Some(bytes),
        }
    }
}

impl FromStr for MemoryLimit {
    type Err = BadMemoryLimit;

    fn from_str(text: &str) -> Result<MemoryLimit, BadMemoryLimit> {
        let bad = || BadMemoryLimit(text.to_owned());
        if text == "off" {
            return Ok(MemoryLimit::Off);
        }
        if let Some(percent) = text.strip_suffix('%') {
            let percent = percent.trim().parse().ok().filter(|percent| (1..=100).contains(percent));
            return percent.map(MemoryLimit::Share).ok_or_else(bad);
        }
        parse_size(text).ok().filter(|bytes| *bytes >= LEAST_MEMORY).map(MemoryLimit::Bytes).ok_or_else(bad)
    }
}

impl TryFrom<String> for MemoryLimit {
    type Error = BadMemoryLimit;

    fn try_from(text: String) -> Result<MemoryLimit, BadMemoryLimit> {
        text.parse()
    }
}

impl From<MemoryLimit> for String {
    fn from(limit: MemoryLimit) -> String {
        limit.to_string()
    }
}

impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryLimit::Off => f.write_str("off"),
            MemoryLimit::Share(percent) => write!(f, "{percent}%"),
            MemoryLimit::Bytes(bytes) => f.write_str(&size_text(*bytes)),
        }
    }
}

/// Limits of one role's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RoleLimits {
    /// The most memory that it may have.
    pub memory: MemoryLimit,
    /// Its open files; 0 leaves the limit that the hub was started with.
    pub open_files: u64,
}

impl Default for RoleLimits {
    fn default() -> RoleLimits {
        RoleLimits { memory: MemoryLimit::Off, open_files: 0 }
    }
}

/// The section `[limits]`: limits by role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    pub node: RoleLimits,
    pub collector: RoleLimits,
    pub inputs: RoleLimits,
    pub tango: RoleLimits,
    pub book: RoleLimits,
    pub gateway: RoleLimits,
    pub metrics: RoleLimits,
}

impl Default for LimitSettings {
    fn default() -> LimitSettings {
        let exposed = |percent, open_files| RoleLimits { memory: MemoryLimit::Share(percent), open_files };
        LimitSettings {
            node: RoleLimits::default(),
            collector: RoleLimits::default(),
            inputs: exposed(10, 4096),
            tango: RoleLimits::default(),
            book: exposed(25, 4096),
            gateway: exposed(25, 8192),
            metrics: exposed(5, 1024),
        }
    }
}

impl LimitSettings {
    /// Returns the limits of a role.
    pub fn of(&self, part: HubPart) -> RoleLimits {
        match part {
            HubPart::Node => self.node,
            HubPart::Collector => self.collector,
            HubPart::Inputs => self.inputs,
            HubPart::Tango => self.tango,
            HubPart::Book => self.book,
            HubPart::Gateway => self.gateway,
            HubPart::Metrics => self.metrics,
        }
    }

    /// Checks the values. An error is a setting below `limits`, and the reason.
    pub(crate) fn check(&self) -> Result<(), (String, String)> {
        match HubPart::ALL.into_iter().find(|part| (1..LEAST_FILES).contains(&self.of(*part).open_files)) {
            Some(part) => {
                let why = format!("{}: a role needs at least {LEAST_FILES} open files; 0: no limit", self.of(part).open_files);
                Err((format!("{part}.open_files"), why))
            }
            None => Ok(()),
        }
    }
}

/// Returns the memory of this host in bytes.
pub(crate) fn host_memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text.lines().find_map(|line| line.strip_prefix("MemTotal:")).and_then(|rest| rest.split_whitespace().next());
    kib.and_then(|kib| kib.parse::<u64>().ok()).map_or(u64::MAX, |kib| kib << 10)
}

/// Sets the limits of this process. `in_cgroup` says that a cgroup holds the memory already. Returns a remark for the
/// log about what holds.
pub fn apply(limits: RoleLimits, in_cgroup: bool) -> String {
    let memory = match limits.memory.bytes(host_memory()) {
        None => "memory: no limit".to_owned(),
        Some(bytes) if in_cgroup => format!("memory: {} by cgroup", size_text(bytes)),
        Some(bytes) => match lower(Resource::Data, bytes) {
            Ok(bytes) => format!("memory: {} by RLIMIT_DATA", size_text(bytes)),
            Err(why) => format!("memory: no limit, because RLIMIT_DATA cannot be set: {why}"),
        },
    };
    let files = match limits.open_files {
        0 => "open files: as the hub".to_owned(),
        files => match lower(Resource::Nofile, files) {
            Ok(files) => format!("open files: {files}"),
            Err(why) => format!("open files: as the hub, because RLIMIT_NOFILE cannot be set: {why}"),
        },
    };
    format!("{memory}; {files}")
}

/// Puts this process behind the other roles, if it is exposed: the kernel ends it first when the host has no memory
/// left, and gives it less of a busy processor.
///
/// Called before the process has further threads, because each thread has a nice value of its own.
pub fn stand_behind(part: HubPart) {
    if part.is_exposed() {
        // Without the file the kernel chooses by size.
        let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE);
        // Samples of other programs pass through the gateway, so it gets its time.
        if part != HubPart::Gateway {
            // A process may always raise its own value.
            let _ = rustix::process::nice(NICE);
        }
    }
}

/// Sets the soft and hard limit, at most the hard limit that holds already. Returns the limit.
fn lower(resource: Resource, wanted: u64) -> rustix::io::Result<u64> {
    let limit = getrlimit(resource).maximum.map_or(wanted, |hard| hard.min(wanted));
    setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    Ok(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_memory_is_a_share_a_size_or_off() {
        for (text, host_mib, mib) in
            [("off", 8000, None), ("25%", 8000, Some(2000)), ("25%", 1000, Some(1024)), ("512MiB", 8000, Some(512))]
        {
            let limit: MemoryLimit = text.parse().unwrap();
            assert_eq!(limit.bytes(host_mib << 20), mib.map(|mib: u64| mib << 20), "{text}");
            assert_eq!(limit.to_string(), text);
        }
        for text in ["", "0%", "101%", "12", "lots", "-1GiB", "64MiB"] {
            let error = text.parse::<MemoryLimit>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("invalid limit of memory '{text}'")), "{error}");
        }
    }

    #[test]
    fn too_few_files_are_an_error_with_the_setting() {
        let mut settings = LimitSettings::default();
        settings.check().unwrap();
        settings.inputs.open_files = 3;
        assert_eq!(settings.check().unwrap_err().0, "inputs.open_files");
    }
}
