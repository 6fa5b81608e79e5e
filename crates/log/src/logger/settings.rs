//! What a process may decide about its logging, with the defaults and why they are so. Where settings come from, and which decides,
//! is told in [`config`](crate::logger::config).

use std::{
    fmt,
    num::NonZeroU64,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tampu_bus::{access::Access, run_dir::RunDir};
use tampu_types::{Domain, Level, SourceName};

use crate::logger::{
    config::{LogFile, LoggerPatch},
    lane::PacketSize,
    local::{Format, Output},
    repeat::RepeatGuard,
};

/// From which level on records count. ACS's `Off` (99) is a threshold without being a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Threshold {
    /// This level and all graver ones.
    From(Level),
    /// None at all.
    Off,
}

impl Threshold {
    /// A number to compare levels' numbers with.
    pub(crate) fn number(self) -> u8 {
        match self {
            Threshold::From(level) => level.number(),
            Threshold::Off => 99,
        }
    }

    /// Whether a record of this level counts.
    pub fn passes(self, level: Level) -> bool {
        level.number() >= self.number()
    }
}

impl std::str::FromStr for Threshold {
    type Err = tampu_types::level::UnknownLevel;

    fn from_str(text: &str) -> Result<Threshold, Self::Err> {
        if text.eq_ignore_ascii_case("off") || text == "99" {
            return Ok(Threshold::Off);
        }
        // ACS spells "everything" as level 0.
        if text == "0" { Ok(Threshold::From(Level::Trace)) } else { text.parse().map(Threshold::From) }
    }
}

impl TryFrom<String> for Threshold {
    type Error = tampu_types::level::UnknownLevel;

    fn try_from(text: String) -> Result<Threshold, Self::Error> {
        text.parse()
    }
}

impl From<Threshold> for String {
    fn from(threshold: Threshold) -> String {
        match threshold {
            Threshold::From(level) => level.name().to_owned(),
            Threshold::Off => "Off".to_owned(),
        }
    }
}

/// Everything a process's logging can be told.
#[derive(Debug, Clone)]
pub struct LogSettings {
    /// The installation.
    pub domain: Domain,
    /// This process's stable name.
    pub source: SourceName,
    /// Records below it are not published. ACS's default: Delouse.
    pub central: Threshold,
    /// Records from it on are also printed by the backend. Off unless asked for.
    pub local: Threshold,
    /// Where they are printed.
    pub output: Output,
    /// How.
    pub format: Format,
    /// Records from this level on do not wait for a packet to fill. ACS: above Alert; here from Error on, because a batch of
    /// errors that come at once still travels as one.
    pub immediate: Threshold,
    /// Records in a packet. ACS's default: 100.
    pub packet_records: usize,
    /// Bytes after which a packet is sealed whatever its number of records; below one batch of every engine.
    pub packet_bytes: usize,
    /// The longest a record waits in a packet; zero: until the packet is full or somebody flushes. ACS's default is 10 s; a tail
    /// should feel live.
    pub flush_period: Duration,
    /// Where log rings lie that survive the process: `<run>/<domain>/rings`. Without it they end with the process.
    pub rings: Option<PathBuf>,
    /// Bytes of each thread's log ring; a power of two is made of it. Records stay in it until they are acknowledged, some ten
    /// milliseconds; a thread that logs 100 MB/s for longer than a moment wants more than the usual 1 MiB.
    pub ring_bytes: usize,
    /// At most so many records a second, and as many again from Error on; what is over it is counted and told. Not limited unless
    /// asked for.
    pub max_per_s: Option<NonZeroU64>,
    /// What is done about statements that repeat themselves; nothing unless asked for.
    pub repeat: RepeatGuard,
    /// Whether readers may attach, and see for as long as they look what levels keep here
    /// ([`attach`](crate::logger::attach)).
    pub attach: bool,
    /// Named loggers with settings of their own, in order; later ones beat earlier ones.
    pub loggers: Vec<LoggerPatch>,
    /// How the settings are had once more, when somebody asks for that while the process runs.
    pub reread: Option<Reread>,
    /// Bytes of records longer than a quarter of a ring that may wait for the backend, in files beside the rings (or in memory, where
    /// the rings are); one is always taken.
    pub queue_bytes: usize,
    /// How long a call may wait for room in a full ring before its record is dropped, counted and told.
    pub full_wait: Duration,
    /// The same for Error and above, which are worth more.
    pub full_wait_grave: Duration,
    /// How long the last handle waits for what is still queued.
    pub close_wait: Duration,
    /// Host name in the records.
    pub host: String,
    /// Process (ACS: container) name in the records.
    pub process: String,
    /// Who may see and set the loggers' levels from outside ([`control`](crate::logger::control)). Unless a program has rules
    /// of its own: whoever was let in on the bus.
    pub access: Access,
}

impl LogSettings {
    /// The defaults for a source, with nothing read from the environment.
    pub fn isolated(domain: Domain, source: SourceName) -> LogSettings {
        LogSettings {
            process: source.as_str().to_owned(),
            domain,
            source,
            central: Threshold::From(Level::Delouse),
            local: Threshold::Off,
            output: Output::Stderr,
            format: Format::Auto,
            immediate: Threshold::From(Level::Error),
            packet_records: 100,
            packet_bytes: 48 * 1024,
            flush_period: Duration::from_millis(100),
            max_per_s: None,
            repeat: RepeatGuard::default(),
            attach: true,
            loggers: Vec::new(),
            reread: None,
            rings: None,
            ring_bytes: 1 << 20,
            queue_bytes: 8 * 1024 * 1024,
            full_wait: Duration::from_micros(200),
            full_wait_grave: Duration::from_millis(20),
            close_wait: Duration::from_secs(2),
            host: host_name(),
            access: Access::same_user(),
        }
    }

    pub(crate) fn packet_size(&self) -> PacketSize {
        PacketSize { records: self.packet_records, bytes: self.packet_bytes }
    }

    /// The defaults, then ACS's two variables, then `TAMPU_LOG_LEVEL` (published from), `TAMPU_LOG_LOCAL` (printed from),
    /// `TAMPU_LOG_OUTPUT` (where) and `TAMPU_LOG_FORMAT`, then the file that `TAMPU_LOG_CONFIG` names; later ones beat earlier ones
    /// ([`crate::logger::config`] has the table). The domain is `TAMPU_DOMAIN`'s.
    pub fn from_env(source: SourceName) -> Result<LogSettings, BadSettings> {
        LogSettings::load(source, variable)
    }

    /// The same with variables from elsewhere.
    pub fn load(source: SourceName, variable: Variables) -> Result<LogSettings, BadSettings> {
        let domain = match variable("TAMPU_DOMAIN")? {
            Some(name) => Domain::new(name).map_err(|error| BadSettings::new("TAMPU_DOMAIN", error))?,
            None => Domain::new("local").map_err(|error| BadSettings::new("the default domain", error))?,
        };
        let mut settings = LogSettings::isolated(domain, source);
        // A directory that cannot be used is told by the rings, which then do without.
        settings.rings = RunDir::from_env().domain(&settings.domain).ok().map(|dir| dir.log_rings());
        settings.overridden_by(variable)
    }

    /// These settings as a program's defaults: what ACS's variables, ours and the file say of logging beats them, in this order.
    pub fn overridden_by(self, variable: Variables) -> Result<LogSettings, BadSettings> {
        let defaults = self.clone();
        let mut settings = self;
        settings.reread = Some(Reread::new(move || defaults.clone().overridden_by(variable)));
        for (name, threshold) in [("ACS_LOG_CENTRAL", &mut settings.central), ("ACS_LOG_STDOUT", &mut settings.local)] {
            if let Some(text) = variable(name)? {
                *threshold = acs_threshold(&text).map_err(|why| BadSettings::new(name, why))?;
            }
        }
        read(variable, "TAMPU_LOG_LEVEL", &mut settings.central)?;
        read(variable, "TAMPU_LOG_LOCAL", &mut settings.local)?;
        read(variable, "TAMPU_LOG_OUTPUT", &mut settings.output)?;
        read(variable, "TAMPU_LOG_FORMAT", &mut settings.format)?;
        if let Some(path) = variable("TAMPU_LOG_CONFIG")? {
            let file = LogFile::read(Path::new(&path)).map_err(|why| BadSettings::new("TAMPU_LOG_CONFIG", why))?;
            file.apply(&mut settings);
        }
        Ok(settings)
    }
}

/// Gives the value of a variable, if it has one.
pub type Variables = fn(&'static str) -> Result<Option<String>, BadSettings>;

/// Reads a setting from its variable, if that is set.
fn read<T: std::str::FromStr<Err: fmt::Display>>(
    variable: Variables,
    name: &'static str,
    setting: &mut T,
) -> Result<(), BadSettings> {
    if let Some(text) = variable(name)? {
        *setting = text.parse().map_err(|error| BadSettings::new(name, error))?;
    }
    Ok(())
}

/// What ACS means by a number: 0 is everything, 7, which it never defined, is read as Error, 99 is nothing at all.
fn acs_threshold(text: &str) -> Result<Threshold, String> {
    let threshold = match text.trim().parse() {
        Ok(0) => Some(Threshold::From(Level::Trace)),
        Ok(99) => Some(Threshold::Off),
        Ok(number) => Level::from_acs(number).map(Threshold::From),
        Err(_) => None,
    };
    threshold.ok_or_else(|| format!("'{text}' is no level of ACS (0 to 11, or 99 for none; 0 is everything)"))
}

/// Gives a process's settings once more, as they are by then.
#[derive(Clone)]
pub struct Reread(Arc<dyn Fn() -> Result<LogSettings, BadSettings> + Send + Sync>);

impl Reread {
    /// By this function.
    pub fn new(read: impl Fn() -> Result<LogSettings, BadSettings> + Send + Sync + 'static) -> Reread {
        Reread(Arc::new(read))
    }

    /// The settings now.
    pub fn read(&self) -> Result<LogSettings, BadSettings> {
        (self.0)()
    }
}

impl fmt::Debug for Reread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reread")
    }
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {why}")]
pub struct BadSettings {
    /// Which one.
    pub name: &'static str,
    /// What is wrong with it.
    pub why: String,
}

impl BadSettings {
    /// One.
    pub fn new(name: &'static str, why: impl fmt::Display) -> BadSettings {
        BadSettings { name, why: why.to_string() }
    }
}

/// The environment.
pub fn variable(name: &'static str) -> Result<Option<String>, BadSettings> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(BadSettings::new(name, "is not UTF-8")),
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_read_as_acs_writes_them() {
        assert_eq!("0".parse(), Ok(Threshold::From(Level::Trace)));
        assert_eq!("info".parse(), Ok(Threshold::From(Level::Info)));
        assert_eq!("OFF".parse(), Ok(Threshold::Off));
        assert_eq!("99".parse(), Ok(Threshold::Off));
        assert!("loud".parse::<Threshold>().is_err());
        assert!(!Threshold::Off.passes(Level::Emergency));
        assert!(Threshold::From(Level::Info).passes(Level::Info));
    }
}
