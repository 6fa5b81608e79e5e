//! Settings of a hub: flags override the environment, which overrides the configuration file, which overrides the
//! defaults. For the hub's own log the file overrides the environment, as in every process that logs.
//!
//! The documented file is `crates/hub/tampu.toml`; a test compares it with the defaults here. An unknown key is an
//! error with its line, because a setting that is silently ignored is a setting that silently does not work.

use std::{
    collections::BTreeMap,
    fmt, fs,
    net::IpAddr,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tampu_archive::{BackupPlaces, Keep, Options};
use tampu_bulk::settings::Bulk;
use tampu_bus::{QosPatch, run_dir::RunDir};
use tampu_event::history::HistorySettings;
use tampu_log::{
    LogSettings, Threshold,
    collector::quota::Quotas,
    logger::config::{LogPatch, LoggerPatch},
};
use tampu_logbook::{mail::MailSettings, store::postgres::has_password};
use tampu_tango::settings::TangoSettings;
use tampu_types::{Domain, Level, SourceName};
use tampu_workers::OnPanic;

use crate::{
    book::settings::BookSettings,
    gateway::settings::GatewaySettings,
    inputs::settings::{Epics, Syslog},
    limits::LimitSettings,
    listen::{BadListenAddress, ListenAddress},
    metrics::Metrics,
    part::HubPart,
    routes::settings::{RouteSettings, TargetSettings},
    rules::settings::{AccessSettings, Allow},
    sandbox::mode::SandboxMode,
};

pub use error::ConfigError;
pub use role::Role;

mod check;
pub mod error;
pub mod lines;
mod role;
pub mod shown;

/// All settings of a hub.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The installation's name.
    pub domain: Domain,
    /// The roles of this hub.
    pub roles: Vec<Role>,
    /// If true, all roles run in one process, without limits and sandbox.
    pub in_process: bool,
    /// The sandbox of the roles that read bytes from outside.
    pub sandbox: SandboxMode,
    /// The directory of all data; each domain has its own directory below it.
    pub data: PathBuf,
    /// Group whose members may read all data, by name or number. Without it only the hub's user reads them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_group: Option<String>,
    /// The run-time directory, through which processes of one host connect; by default that of the environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<PathBuf>,
    /// The engine of the bus on this host, one of this build's; by default the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Connections beyond this host.
    pub network: Network,
    /// Access rules. With one, only what a rule allows is allowed.
    pub allow: Vec<Allow>,
    /// The policy file.
    pub access: AccessSettings,
    pub collector: Collector,
    /// The history of events.
    pub events: HistorySettings,
    /// The spool of this host's records while no collector runs.
    pub spool: Spool,
    /// Limits of one source.
    pub quota: Quotas,
    /// Input of syslog.
    pub syslog: Syslog,
    /// Input of the log of EPICS's IOCs.
    pub epics: Epics,
    /// Settings of bulk flows, for the programs and commands that send and receive.
    pub bulk: Bulk,
    /// The bridge to Tango.
    pub tango: TangoSettings,
    pub book: BookSettings,
    /// Mail that the logbook sends.
    pub mail: MailSettings,
    /// Sessions of programs that are not on the bus.
    pub gateway: GatewaySettings,
    /// Metrics for Prometheus.
    pub metrics: Metrics,
    /// Limits of the roles' processes.
    pub limits: LimitSettings,
    /// The configured settings of the hub's own log.
    pub log: LogPatch,
    /// Loggers of the hub with settings of their own.
    pub logger: Vec<LoggerPatch>,
    /// Flags for the hub's log; they override file and environment.
    #[serde(skip)]
    pub log_flags: LogPatch,
    /// The configuration file, if there is one. Its log settings can be read again.
    #[serde(skip)]
    pub file: Option<PathBuf>,
    /// The file with which this host has joined the domain.
    #[serde(skip)]
    pub joined_by: Option<PathBuf>,
    /// The lines of the settings in the file.
    #[serde(skip)]
    pub lines: lines::SettingLines,
    /// Changed settings that the supervisor gives to a role, in TOML.
    #[serde(skip)]
    pub changes: Option<String>,
    /// Routes of live records, in order.
    pub route: Vec<RouteSettings>,
    /// Targets of the routes, by name.
    pub target: BTreeMap<String, TargetSettings>,
    /// Settings for topics, in order; later ones override earlier ones.
    pub topic: Vec<QosPatch>,
}

/// Connections beyond this host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// Addresses for other hosts' nodes and processes, such as `0.0.0.0:7447`. If empty, the hub listens only on unix
    /// sockets.
    pub listen: Vec<String>,
    /// Other hosts' nodes, such as `archive.example.org:7447`.
    pub connect: Vec<String>,
    /// The file that holds the domain's key, readable by its owner only. Needed to listen beyond this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// The directory of this host's certificates. By default `cert` in the domain's directory, or `/etc/tampu/cert`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificates: Option<PathBuf>,
    /// The encryption of connections to other hosts.
    pub encryption: Encryption,
    /// Names of the hosts that may pass on what other hosts send, as their certificates name them. By default those that
    /// `connect` leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relays: Option<Vec<String>>,
    /// Multicast groups for live topics between hosts; the first one that has a topic takes it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub multicast: Vec<Multicast>,
}

/// A multicast group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Multicast {
    /// Address of the group, IPv4 or IPv6.
    pub group: IpAddr,
    /// Port of all members.
    #[serde(default = "group_port")]
    pub port: u16,
    /// Interface of this host by name, index or IPv4 address. By default the one of the kernel's route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Number of networks that a datagram may pass.
    #[serde(default = "first_network")]
    pub ttl: u8,
    /// Pattern of the topics that go to the group.
    #[serde(default = "all_topics")]
    pub topics: String,
}

fn group_port() -> u16 {
    tampu_bus::group::PORT
}

fn first_network() -> u8 {
    1
}

fn all_topics() -> String {
    "**".to_owned()
}

/// The encryption of the bus between hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encryption {
    /// TLS 1.3 with certificates of both hosts. Loopback addresses need none.
    #[default]
    Tls,
    /// Plain connections, which everybody on their way can read.
    None,
}

/// Settings of the collector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Collector {
    /// Shortest time between two commits, in ms.
    pub commit_ms: u64,
    /// Size of one write-ahead segment, in MiB.
    pub segment_mb: u64,
    /// Age in s after which a segment is converted to Parquet files although it is not full.
    pub segment_s: u64,
    /// If true, full segments are converted to Parquet files.
    pub compact: bool,
    /// Share of one processor that compaction may use, such as 0.25.
    pub compact_share: f64,
    /// Maximum number of full segments in the queue; with more, compaction uses more than its share.
    pub compact_backlog: usize,
    /// Age in days after which records are removed; 0 keeps them for ever.
    pub keep_days: u64,
    /// Size of all Parquet files in GiB above which the oldest are removed; 0 is no limit.
    pub keep_gb: u64,
    /// Records younger than this many days are never removed, even above the size limit.
    pub keep_at_least_days: u64,
    /// If true, also stores records that are published for attached readers only.
    pub keep_attached: bool,
    /// Space in GiB that logs and events leave free on their disk, at most a twentieth of the disk; 0 for none.
    pub min_free_gb: u64,
    /// Directories below which other hosts may request backups of logs and events, once the network is open.
    pub backups: Vec<PathBuf>,
}

/// Settings of the node's spool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Spool {
    /// If true, the spool is used.
    pub enabled: bool,
    /// The spool's directory; by default in the domain's own directory, beside the archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
    /// Time without a collector after which the spool stores records, in ms.
    pub after_ms: u64,
    /// Limit of one source, in MiB.
    pub per_source_mb: u64,
    /// Limit of all sources together, in MiB.
    pub total_mb: u64,
}

impl Default for Spool {
    fn default() -> Spool {
        Spool { enabled: true, dir: None, after_ms: 1000, per_source_mb: 256, total_mb: 2048 }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            domain: default_domain(),
            log: LogPatch::default(),
            logger: Vec::new(),
            log_flags: LogPatch::default(),
            file: None,
            joined_by: None,
            lines: lines::SettingLines::new(),
            changes: None,
            roles: Role::USUAL.to_vec(),
            in_process: false,
            sandbox: SandboxMode::default(),
            data: default_data(|name| std::env::var(name).ok()),
            data_group: None,
            run: None,
            engine: None,
            network: Network::default(),
            allow: Vec::new(),
            access: AccessSettings::default(),
            collector: Collector::default(),
            events: HistorySettings::default(),
            spool: Spool::default(),
            quota: Quotas::default(),
            syslog: Syslog::default(),
            epics: Epics::default(),
            bulk: Bulk::default(),
            tango: TangoSettings::default(),
            book: BookSettings::default(),
            mail: MailSettings::default(),
            gateway: GatewaySettings::default(),
            metrics: Metrics::default(),
            limits: LimitSettings::default(),
            route: Vec::new(),
            target: BTreeMap::new(),
            topic: Vec::new(),
        }
    }
}

impl Default for Collector {
    fn default() -> Collector {
        let options = Options::new(default_domain());
        Collector {
            commit_ms: 2,
            segment_mb: options.roll >> 20,
            segment_s: options.close_after.as_secs(),
            compact: options.compact,
            compact_share: options.share,
            compact_backlog: options.backlog,
            keep_days: 0,
            keep_gb: 0,
            keep_at_least_days: 7,
            keep_attached: false,
            min_free_gb: 2,
            backups: Vec::new(),
        }
    }
}

/// Returns the default settings of the hub's own log: stored from `Debug` on, and printed from `Warning` on.
pub(crate) fn default_log() -> LogPatch {
    // Both names are valid, and the patch contains neither.
    let name = SourceName::new("hub").unwrap_or_else(|_| unreachable!("'hub' is a source"));
    let mut settings = LogSettings::isolated(default_domain(), name);
    settings.central = Threshold::From(Level::Debug);
    settings.local = Threshold::From(Level::Warning);
    LogPatch::of(&settings)
}

fn default_domain() -> Domain {
    // A constant that is a valid domain.
    Domain::new("local").unwrap_or_else(|_| unreachable!("'local' is a domain"))
}

fn default_data(variable: impl Fn(&str) -> Option<String>) -> PathBuf {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_DATA_HOME")
        .or_else(|| set("HOME").map(|home| home.join(".local/share")))
        .unwrap_or_else(|| PathBuf::from("/var/lib"))
        .join("tampu")
}

impl Config {
    /// Makes a configuration for a test: all files are below this directory, and no port is fixed.
    pub fn isolated(directory: &Path) -> Config {
        // The machine of a test may have little free space.
        let book = BookSettings { listen: Some(ListenAddress::loopback(0)), min_free_mb: 0, ..BookSettings::default() };
        let mut config = Config { data: directory.join("data"), run: Some(directory.join("run")), book, ..Config::default() };
        config.collector.min_free_gb = 0;
        config
    }

    /// Loads the file, if there is one, then the environment.
    pub fn load(file: Option<&Path>, variable: impl Fn(&str) -> Option<String>) -> Result<Config, ConfigError> {
        let mut config = match file {
            Some(path) => Config::from_file(path)?,
            None => Config { data: default_data(&variable), ..Config::default() },
        };
        config.apply_environment(variable)?;
        Ok(config)
    }

    /// Reads a file.
    pub fn from_file(path: &Path) -> Result<Config, ConfigError> {
        let text =
            fs::read_to_string(path).map_err(|error| ConfigError::File { path: path.to_owned(), why: error.to_string() })?;
        let (file, lines) = (Some(path.to_owned()), lines::lines_of(&text));
        let config = Config { file, lines, ..Config::parse(&text, path)? };
        config.check_secrets(path)?;
        Ok(config)
    }

    /// Checks that other users cannot read a file that contains a password.
    fn check_secrets(&self, path: &Path) -> Result<(), ConfigError> {
        use std::os::unix::fs::MetadataExt;
        if !self.book.postgres.as_deref().is_some_and(has_password) {
            return Ok(());
        }
        let wrong = |why: String| ConfigError::File { path: path.to_owned(), why };
        let mode = fs::metadata(path).map_err(|error| wrong(error.to_string()))?.mode();
        if mode & 0o077 != 0 {
            return Err(wrong(format!(
                "it contains the database's password, and others may read it (mode {:o}); run chmod 600 on it, or give the password in \
                 PGPASSFILE",
                mode & 0o777
            )));
        }
        Ok(())
    }

    /// Reads a file's text; the path is for messages.
    pub fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
        toml::from_str(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start).min(text.len());
            let line = text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1;
            let why = error.message().trim().replace('\n', "; ");
            ConfigError::Line { path: path.to_owned(), line, why: with_setting(text, line, &why) }
        })
    }

    /// Applies `TAMPU_DOMAIN`, `TAMPU_ROLES`, `TAMPU_DATA_DIR`, `TAMPU_RUN_DIR`, `TAMPU_ENGINE`, `TAMPU_BOOK_LISTEN`,
    /// `TAMPU_BOOK_POSTGRES`, and the variables `TAMPU_LOG_*` that apply to one process.
    fn apply_environment(&mut self, variable: impl Fn(&str) -> Option<String>) -> Result<(), ConfigError> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        if let Some(domain) = set("TAMPU_DOMAIN") {
            self.domain = Domain::new(domain)
                .map_err(|error| ConfigError::Value { setting: "TAMPU_DOMAIN".to_owned(), why: error.to_string() })?;
        }
        if let Some(roles) = set("TAMPU_ROLES") {
            self.roles = parse_roles(&roles)?;
        }
        if let Some(data) = set("TAMPU_DATA_DIR") {
            self.data = data.into();
        }
        if let Some(run) = set("TAMPU_RUN_DIR") {
            self.run = Some(run.into());
        }
        if let Some(engine) = set("TAMPU_ENGINE") {
            self.engine = Some(engine);
        }
        if let Some(listen) = set("TAMPU_BOOK_LISTEN") {
            let wrong = |why: String| ConfigError::Value { setting: "TAMPU_BOOK_LISTEN".to_owned(), why };
            let listen = listen.parse().map_err(|error: BadListenAddress| wrong(error.to_string()))?;
            self.book.listen = Some(listen);
        }
        if let Some(postgres) = set("TAMPU_BOOK_POSTGRES") {
            self.book.postgres = Some(postgres);
        }
        // For logs the file overrides the environment: `tampu_log::logger::config` says why.
        let mut log = LogPatch::default();
        override_by(set, "TAMPU_LOG_LEVEL", &mut log.level)?;
        override_by(set, "TAMPU_LOG_LOCAL", &mut log.local)?;
        override_by(set, "TAMPU_LOG_OUTPUT", &mut log.output)?;
        override_by(set, "TAMPU_LOG_FORMAT", &mut log.format)?;
        self.log = std::mem::take(&mut self.log).over(log);
        Ok(())
    }

    /// Returns the limits of the collector's archive.
    pub(crate) fn archive(&self) -> Options {
        let days = |days: u64| Duration::from_secs(days.saturating_mul(86_400));
        let bytes = |gib: u64| gib.saturating_mul(1 << 30);
        let collector = &self.collector;
        Options {
            roll: collector.segment_mb << 20,
            linger: self.commit_period(),
            compact: collector.compact,
            share: collector.compact_share,
            backlog: collector.compact_backlog,
            close_after: Duration::from_secs(collector.segment_s),
            keep: Keep {
                age: (collector.keep_days > 0).then(|| days(collector.keep_days)),
                bytes: (collector.keep_gb > 0).then_some(bytes(collector.keep_gb)),
                at_least: days(collector.keep_at_least_days),
            },
            min_free: bytes(collector.min_free_gb),
            backups: self.backups(),
            // The hub's supervisor starts it again; an archive that only rejects records would look alive.
            on_panic: OnPanic::EndProcess,
            ..Options::new(self.domain.clone())
        }
    }

    /// Returns the directories for backups that other hosts ask for.
    pub(crate) fn backups(&self) -> BackupPlaces {
        BackupPlaces::new(self.collector.backups.iter().cloned())
    }

    /// Returns the encryption of connections to other hosts' nodes and processes.
    pub fn bus_encryption(&self) -> tampu_bus::connect::Encryption {
        tampu_bus::connect::Encryption::choose(self.network.encryption == Encryption::None, self.certificates())
    }

    /// Returns true if the bus is open to other hosts by TLS.
    pub(crate) fn uses_tls_on_the_bus(&self) -> bool {
        let network = &self.network;
        let is_open = self.roles.contains(&Role::Node) && (!network.listen.is_empty() || !network.connect.is_empty());
        is_open && matches!(self.bus_encryption(), tampu_bus::connect::Encryption::Tls(_))
    }

    /// Returns the run-time directory.
    pub(crate) fn run_dir(&self) -> RunDir {
        self.run.clone().map_or_else(RunDir::from_env, RunDir::at)
    }

    /// Returns the directory of this domain's data.
    pub fn domain_data(&self) -> PathBuf {
        self.data.join(tampu_types::name::escape(self.domain.as_str()))
    }

    /// Returns the parts of a hub with this configuration, in the sequence of their start.
    pub fn parts(&self) -> Vec<HubPart> {
        let runs = |part: &HubPart| match part {
            HubPart::Node => self.roles.contains(&Role::Node),
            HubPart::Collector => self.roles.contains(&Role::Collector),
            HubPart::Book => self.roles.contains(&Role::Book),
            HubPart::Inputs => self.syslog.enabled || self.epics.enabled,
            HubPart::Tango => self.tango.enabled,
            HubPart::Gateway => self.gateway.enabled && self.roles.contains(&Role::Node),
            HubPart::Metrics => self.metrics.enabled && self.metrics.listen != ListenAddress::Off,
        };
        HubPart::ALL.into_iter().filter(runs).collect()
    }

    /// Returns the directory of the records.
    pub fn log_dir(&self) -> PathBuf {
        self.domain_data().join("log")
    }

    /// Returns the policy file. By default it has a directory of its own, which the logbook's role may write.
    pub fn policy_file(&self) -> PathBuf {
        self.access.policy.clone().unwrap_or_else(|| self.domain_data().join("access/policy.toml"))
    }

    /// Returns the file of settings that administrators have changed. The logbook's role may write its directory.
    pub fn settings_file(&self) -> PathBuf {
        self.domain_data().join("settings/changed.toml")
    }

    /// Returns the directory of the spool.
    pub fn spool_dir(&self) -> PathBuf {
        match &self.spool.dir {
            Some(dir) => dir.join(tampu_types::name::escape(self.domain.as_str())),
            None => self.domain_data().join("spool"),
        }
    }

    /// Returns the directory of the logbook.
    pub fn book_dir(&self) -> PathBuf {
        self.book.dir.clone().unwrap_or_else(|| self.domain_data().join(crate::book::settings::DIRECTORY))
    }

    /// Returns the directory of mails that wait.
    pub fn mail_dir(&self) -> PathBuf {
        self.book_dir().join("mail")
    }

    /// Returns the shortest time between two commits.
    pub fn commit_period(&self) -> Duration {
        Duration::from_millis(self.collector.commit_ms)
    }
}

/// Adds the name of the line's setting to an error that does not name it, and says numbers as numbers.
fn with_setting(text: &str, line: usize, why: &str) -> String {
    let mut why = why.to_owned();
    for integer in ["u8", "u16", "u32", "u64", "usize", "i16", "i32", "i64"] {
        why = why.replace(&format!("expected {integer}"), "expected a whole number");
    }
    why = why.replace("expected f64", "expected a number");
    let setting = text.lines().nth(line - 1).and_then(|line| line.split_once('=')).map(|(setting, _)| setting.trim());
    match setting {
        Some(setting) if !setting.is_empty() && !setting.starts_with('#') && !why.contains(setting) => {
            format!("{setting}: {why}")
        }
        _ => why,
    }
}

/// Reads a setting from its environment variable, if that is set.
fn override_by<T: FromStr<Err: fmt::Display>>(
    set: impl Fn(&str) -> Option<String>,
    name: &str,
    setting: &mut Option<T>,
) -> Result<(), ConfigError> {
    if let Some(text) = set(name) {
        let wrong = |error: T::Err| ConfigError::Value { setting: name.to_owned(), why: error.to_string() };
        *setting = Some(text.parse().map_err(wrong)?);
    }
    Ok(())
}

/// Reads a list of roles, as `node,collector`.
pub fn parse_roles(text: &str) -> Result<Vec<Role>, ConfigError> {
    let mut roles = text.split(',').filter(|name| !name.trim().is_empty()).map(str::parse).collect::<Result<Vec<Role>, _>>()?;
    roles.sort_unstable();
    roles.dedup();
    Ok(roles)
}

#[cfg(test)]
mod tests;
