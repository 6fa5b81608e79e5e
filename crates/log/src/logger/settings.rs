//! Settings of a process's logging, with the defaults and their reasons. The sources of settings, and their order of precedence,
//! are in [`config`](crate::logger::config).

use std::{fmt, num::NonZeroU64, path::PathBuf, sync::Arc, time::Duration};

use tampu_bus::access::Access;
use tampu_types::{Domain, Level, SourceName};

use crate::logger::{
    config::patch::LoggerPatch,
    local::output::{Format, Output},
    repeat::RepeatGuard,
    stream::PacketSize,
    threshold::Threshold,
};

/// Lowest level of records that are sent at once by default.
pub(crate) const IMMEDIATE: Threshold = Threshold::From(Level::Error);

/// Usual longest time after joining the bus that a flush waits for a first reader.
pub(crate) const APPEARANCE: Duration = Duration::from_millis(300);

/// All settings of a process's logging.
#[derive(Debug, Clone)]
pub struct LogSettings {
    /// Name of the installation.
    pub domain: Domain,
    /// This process's stable name.
    pub source: SourceName,
    /// Records below it are not published. ACS's default: Delouse.
    pub central: Threshold,
    /// Records from it on are also printed by the backend. Off unless asked for.
    pub local: Threshold,
    /// Destination of printed records.
    pub output: Output,
    /// Format of printed records.
    pub format: Format,
    /// Lowest level of records that do not wait for a packet to fill. ACS: above Alert; here from Error on, because a
    /// batch of simultaneous errors still travels as one packet.
    pub immediate: Threshold,
    /// Records in a packet. ACS's default: 100.
    pub packet_records: usize,
    /// Bytes after which a packet is sealed with any number of records; below one batch of every engine.
    pub packet_bytes: usize,
    /// Longest wait of a record in a packet; zero: until the packet is full or a caller flushes. ACS's default is 10 s;
    /// a shorter one makes a tail feel live.
    pub flush_period: Duration,
    /// Directory of log rings that survive the process: `<run>/<domain>/rings`. Without it they end with the process.
    pub rings: Option<PathBuf>,
    /// Bytes of each thread's log ring, rounded to a power of two. Records stay in it until they are acknowledged, some
    /// ten milliseconds. A thread that logs 100 MB/s for longer than a moment needs more than the usual 1 MiB.
    pub ring_bytes: usize,
    /// Limit of records a second, with a second share of the same size from Error on. Records above it are counted and
    /// reported. There is no limit by default.
    pub max_per_s: Option<NonZeroU64>,
    /// Limits on statements that repeat themselves; none by default.
    pub repeat: RepeatGuard,
    /// If true, readers may attach, and see records below the thresholds while attached
    /// ([`attach`](crate::logger::attach)).
    pub attach: bool,
    /// Named loggers with settings of their own, in order; later ones beat earlier ones.
    pub loggers: Vec<LoggerPatch>,
    /// Source from which the settings are read again on request while the process runs.
    pub reread: Option<Reread>,
    /// Bytes of long records (more than a quarter of a ring) that may wait for the backend. They wait in files beside
    /// the rings, or in memory, where the rings are. One is always accepted.
    pub queue_bytes: usize,
    /// Longest time a call waits for room in a full ring before its record is dropped, counted and reported.
    pub full_wait: Duration,
    /// Longest wait of a call for room, for Error and above.
    pub full_wait_grave: Duration,
    /// Longest time the last handle waits for queued records.
    pub close_wait: Duration,
    /// Longest time after joining the bus that a flush waits for a first reader. On a loaded host readers become known late.
    pub appearance: Duration,
    /// Host name in the records.
    pub host: String,
    /// Process (ACS: container) name in the records.
    pub process: String,
    /// Access rules for seeing and setting the loggers' levels from outside ([`control`](crate::logger::control)). Unless a program
    /// has rules of its own, those of the host's node hold.
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
            immediate: IMMEDIATE,
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
            appearance: APPEARANCE,
            host: host_name(),
            access: Access::of_host(),
        }
    }

    pub(crate) fn packet_size(&self) -> PacketSize {
        PacketSize { records: self.packet_records, bytes: self.packet_bytes }
    }
}

/// Function that reads a process's present settings again.
#[derive(Clone)]
pub struct Reread(Arc<dyn Fn() -> Result<LogSettings, BadSettings> + Send + Sync>);

impl Reread {
    /// Makes a value of this function.
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
    /// Name of the setting.
    pub name: &'static str,
    /// Description of the error.
    pub why: String,
}

impl BadSettings {
    /// Makes the error of a setting.
    pub fn new(name: &'static str, why: impl fmt::Display) -> BadSettings {
        BadSettings { name, why: why.to_string() }
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
