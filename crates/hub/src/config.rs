//! What a hub is told: one TOML file, the environment, flags; flags > environment > file > default, but for the hub's own log, where it is
//! flags > file > environment > default as in every process that logs.
//!
//! The documented file is `crates/hub/tampu.toml`; a test reads it and holds it against the defaults here. A key nobody knows
//! is an error with its line: a setting that is silently ignored is a setting that silently does not work.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tampu_bus::qos::QosPatch;
use tampu_log::{
    LogSettings, Threshold,
    archive::{Keep, Options},
    collector::quota::Quotas,
    logger::config::{LogPatch, LoggerPatch},
};
use tampu_types::{Domain, Level, SourceName};

use crate::{
    book::settings::BookSettings,
    bulk::settings::Bulk,
    history::{Events, LONGEST_KB},
    inputs::settings::{Door, Epics, Syslog},
    metrics::Metrics,
    routes::settings::{RouteSettings, TargetSettings},
    rules::Allow,
    tango::settings::Tango,
};

/// A part a hub can play.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Serves one host: its processes connect to it.
    Node,
    /// Keeps the logs and answers queries.
    Collector,
    /// Keeps the logbook.
    Book,
    /// Serves the web console.
    Console,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 4] = [Role::Node, Role::Collector, Role::Book, Role::Console];

    /// What a hub does if nothing is said.
    pub const USUAL: [Role; 3] = [Role::Node, Role::Collector, Role::Book];

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Role::Node => "node",
            Role::Collector => "collector",
            Role::Book => "book",
            Role::Console => "console",
        }
    }

    /// Whether this release can play it.
    pub fn is_here(self) -> bool {
        !matches!(self, Role::Console)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Role {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Role, ConfigError> {
        let known = Role::ALL.into_iter().find(|role| role.name().eq_ignore_ascii_case(text.trim()));
        known.ok_or_else(|| ConfigError::Value {
            setting: "roles".to_owned(),
            why: format!("'{text}' is no role; this release has node, collector and book"),
        })
    }
}

/// Everything a hub can be told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The installation's name.
    pub domain: Domain,
    /// What this hub does.
    pub roles: Vec<Role>,
    /// Where what must last is kept; each domain has its own directory below it.
    pub data: PathBuf,
    /// Where processes of one host meet; by default what the environment says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<PathBuf>,
    /// The world beyond this host.
    pub network: Network,
    /// Who may do what. Empty: whoever is let in may do everything.
    pub allow: Vec<Allow>,
    /// The collector.
    pub collector: Collector,
    /// Which events the collector keeps.
    pub events: Events,
    /// What keeps this host's records while no collector does.
    pub spool: Spool,
    /// What one source may send to be kept.
    pub quota: Quotas,
    /// Syslog, taken in.
    pub syslog: Syslog,
    /// The log of EPICS's IOCs, taken in.
    pub epics: Epics,
    /// What flows of bulk data are like, for the commands that send and receive.
    pub bulk: Bulk,
    /// The bridge to Tango.
    pub tango: Tango,
    /// The logbook.
    pub book: BookSettings,
    /// How the hub is, for Prometheus.
    pub metrics: Metrics,
    /// The hub's own log, as far as somebody has said something of it.
    pub log: LogPatch,
    /// Loggers of the hub with settings of their own.
    pub logger: Vec<LoggerPatch>,
    /// What flags say of the hub's log, which beats all of that.
    #[serde(skip)]
    pub log_flags: LogPatch,
    /// The file this comes from, if it comes from one: its log settings can be read once more.
    #[serde(skip)]
    pub file: Option<PathBuf>,
    /// Which live records go elsewhere, in order.
    pub route: Vec<RouteSettings>,
    /// Where they go, by name.
    pub target: BTreeMap<String, TargetSettings>,
    /// Settings for topics, in order; later ones override earlier ones.
    pub topic: Vec<QosPatch>,
}

/// The world beyond this host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// Addresses for other hosts' nodes and processes, as `0.0.0.0:7447`. With none, nothing listens beyond unix sockets.
    pub listen: Vec<String>,
    /// Other hosts' nodes, as `archive.example.org:7447`.
    pub connect: Vec<String>,
    /// The file that holds the domain's key, readable by its owner only. Needed to listen beyond this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
}

/// How the collector keeps records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Collector {
    /// How long records gather at least before they go to the disk together, in ms.
    pub commit_ms: u64,
    /// Size of one write-ahead segment, in MiB.
    pub segment_mb: u64,
    /// A segment older than this goes into Parquet files although it is not full, in s.
    pub segment_s: u64,
    /// Whether full segments are taken into Parquet files.
    pub compact: bool,
    /// Which share of one processor that may take, as 0.25.
    pub compact_share: f64,
    /// Full segments that may wait; beyond them the share is not kept to.
    pub compact_backlog: usize,
    /// What was received so many days ago is removed; 0 keeps it for ever.
    pub keep_days: u64,
    /// Where Parquet files have more GiB than this, those received first are removed; 0 is no limit.
    pub keep_gb: u64,
    /// What was received within so many days is never removed, whatever the size.
    pub keep_at_least_days: u64,
    /// Whether records are kept that are published for attached readers alone.
    pub keep_attached: bool,
}

/// What the node keeps of its host's records while no collector does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Spool {
    /// Whether it does.
    pub enabled: bool,
    /// Where; by default beside the archive, in the domain's own directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
    /// How long no collector must have kept records before the spool does, in ms.
    pub after_ms: u64,
    /// What one source may take, in MiB.
    pub per_source_mb: u64,
    /// What all sources may take together, in MiB.
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
            roles: Role::USUAL.to_vec(),
            data: default_data(|name| std::env::var(name).ok()),
            run: None,
            network: Network::default(),
            allow: Vec::new(),
            collector: Collector::default(),
            events: Events::default(),
            spool: Spool::default(),
            quota: Quotas::default(),
            syslog: Syslog::default(),
            epics: Epics::default(),
            bulk: Bulk::default(),
            tango: Tango::default(),
            book: BookSettings::default(),
            metrics: Metrics::default(),
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
        }
    }
}

/// The hub's own log: what it does is worth keeping in full, and worth a terminal where something is wrong.
pub(crate) fn default_log() -> LogPatch {
    // Names that the rules allow; nothing of them is in the settings that are taken.
    let name = SourceName::new("hub").unwrap_or_else(|_| unreachable!("'hub' is a source"));
    let mut settings = LogSettings::isolated(default_domain(), name);
    settings.central = Threshold::From(Level::Debug);
    settings.local = Threshold::From(Level::Warning);
    LogPatch::of(&settings)
}

fn default_domain() -> Domain {
    // A constant name that the rules for domains allow.
    Domain::new("local").unwrap_or_else(|_| unreachable!("'local' is a domain"))
}

fn default_data(variable: impl Fn(&str) -> Option<String>) -> PathBuf {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_DATA_HOME")
        .or_else(|| set("HOME").map(|home| home.join(".local/share")))
        .unwrap_or_else(|| PathBuf::from("/var/lib"))
        .join("tampu")
}

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the configuration {path}: {why}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// The file says something that cannot be.
    #[error("the configuration {path}, line {line}: {why}")]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// A setting has an impossible value.
    #[error("{setting}: {why}")]
    Value {
        /// Which setting, where it was set.
        setting: String,
        /// What is wrong.
        why: String,
    },
}

impl Config {
    /// A hub for a test: everything it keeps or opens is below this directory.
    pub fn isolated(directory: &Path) -> Config {
        let book = BookSettings { listen: Door::loopback(0), ..BookSettings::default() };
        Config { data: directory.join("data"), run: Some(directory.join("run")), book, ..Config::default() }
    }

    /// The file, if there is one, then the environment.
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
        Ok(Config { file: Some(path.to_owned()), ..Config::parse(&text, path)? })
    }

    /// Reads a file's text; the path is for messages.
    pub fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
        toml::from_str(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start).min(text.len());
            let line = text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1;
            ConfigError::Line { path: path.to_owned(), line, why: error.message().trim().replace('\n', "; ") }
        })
    }

    /// Applies `TAMPU_DOMAIN`, `TAMPU_ROLES`, `TAMPU_DATA_DIR`, `TAMPU_RUN_DIR`, `TAMPU_BOOK_LISTEN`, `TAMPU_BOOK_POSTGRES`, and of `TAMPU_LOG_*` what concerns one process.
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
        if let Some(listen) = set("TAMPU_BOOK_LISTEN") {
            let wrong = |why: String| ConfigError::Value { setting: "TAMPU_BOOK_LISTEN".to_owned(), why };
            self.book.listen = listen.parse().map_err(|error: crate::inputs::settings::BadDoor| wrong(error.to_string()))?;
        }
        if let Some(postgres) = set("TAMPU_BOOK_POSTGRES") {
            self.book.postgres = Some(postgres);
        }
        // Of logs a file's word beats the environment's: `tampu_log::logger::config` says why.
        let mut log = LogPatch::default();
        override_by(set, "TAMPU_LOG_LEVEL", &mut log.level)?;
        override_by(set, "TAMPU_LOG_LOCAL", &mut log.local)?;
        override_by(set, "TAMPU_LOG_OUTPUT", &mut log.output)?;
        override_by(set, "TAMPU_LOG_FORMAT", &mut log.format)?;
        self.log = std::mem::take(&mut self.log).over(log);
        Ok(())
    }

    /// Checks what no single setting can know.
    pub fn check(&self) -> Result<(), ConfigError> {
        let wrong = |setting: &str, why: String| Err(ConfigError::Value { setting: setting.to_owned(), why });
        if self.roles.is_empty() {
            return wrong(
                "roles",
                "a hub without a role has nothing to do; give at least one of node, collector, book".to_owned(),
            );
        }
        if let Some(role) = self.roles.iter().find(|role| !role.is_here()) {
            return wrong("roles", format!("'{role}' comes in a later release; this one has node, collector and book"));
        }
        if !self.network.listen.is_empty() && self.network.key_file.is_none() {
            return wrong(
                "network.listen",
                "listening beyond this host needs the domain's key: name a file with network.key_file (or --key-file)".to_owned(),
            );
        }
        self.check_collector()?;
        self.book.check().map_err(|(setting, why)| ConfigError::Value { setting: format!("book.{setting}"), why })?;
        if !(1..=LONGEST_KB).contains(&self.events.longest_kb) {
            let why = format!("{} KiB: an event that is kept may have 1 KiB to {} MiB", self.events.longest_kb, LONGEST_KB >> 10);
            return wrong("events.longest_kb", why);
        }
        let Spool { per_source_mb, total_mb, .. } = self.spool;
        for (setting, mib) in [("spool.per_source_mb", per_source_mb), ("spool.total_mb", total_mb)] {
            if !(1..=1 << 24).contains(&mib) {
                return wrong(setting, format!("{mib} MiB: a spool holds 1 MiB to 16 TiB"));
            }
        }
        crate::routes::check(self)?;
        self.bulk.check().map_err(|error| ConfigError::Value { setting: "bulk.flow".to_owned(), why: error.to_string() })?;
        if self.tango.enabled {
            let database = self.tango.database(std::env::var("TANGO_HOST").ok());
            self.tango
                .check(&database)
                .map_err(|error| ConfigError::Value { setting: format!("tango.{}", error.setting), why: error.why })?;
        }
        for (setting, bytes) in [("syslog.max_message", self.syslog.max_message), ("epics.max_line", self.epics.max_line)] {
            if !(480..=1 << 20).contains(&bytes) {
                return wrong(setting, format!("{bytes} bytes: a message may have 480 to 1048576 of them"));
            }
        }
        Ok(())
    }

    fn check_collector(&self) -> Result<(), ConfigError> {
        let Collector { segment_mb, segment_s, compact_share, compact, keep_days, keep_gb, keep_at_least_days, .. } =
            self.collector;
        let wrong = |setting: &str, why: String| Err(ConfigError::Value { setting: format!("collector.{setting}"), why });
        if segment_mb == 0 {
            return wrong("segment_mb", "a segment needs at least 1 MiB".to_owned());
        }
        if segment_s == 0 {
            return wrong("segment_s", "a segment needs at least 1 s".to_owned());
        }
        if !(0.01..=1.0).contains(&compact_share) {
            return wrong("compact_share", format!("{compact_share} is no share of one processor: 0.01 to 1"));
        }
        if !compact && (keep_days > 0 || keep_gb > 0) {
            let why = "what is too old is removed by whole Parquet files, and compact = false makes none";
            return wrong(if keep_days > 0 { "keep_days" } else { "keep_gb" }, why.to_owned());
        }
        if keep_days > 0 && keep_days < keep_at_least_days {
            let why = format!("{keep_days} is less than keep_at_least_days ({keep_at_least_days})");
            return wrong("keep_days", why);
        }
        Ok(())
    }

    /// The bounds of the collector's archive.
    pub(crate) fn archive(&self) -> Options {
        let days = |days: u64| Duration::from_secs(days.saturating_mul(86_400));
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
                bytes: (collector.keep_gb > 0).then_some(collector.keep_gb << 30),
                at_least: days(collector.keep_at_least_days),
            },
            ..Options::new(self.domain.clone())
        }
    }

    /// Where this domain's records are kept.
    pub fn domain_data(&self) -> PathBuf {
        self.data.join(tampu_types::name::escape(self.domain.as_str()))
    }

    /// Where the node keeps records while no collector does.
    pub fn spool_dir(&self) -> PathBuf {
        match &self.spool.dir {
            Some(dir) => dir.join(tampu_types::name::escape(self.domain.as_str())),
            None => self.domain_data().join("spool"),
        }
    }

    /// Where the logbook is kept.
    pub fn book_dir(&self) -> PathBuf {
        self.book.dir.clone().unwrap_or_else(|| self.domain_data().join(crate::book::DIRECTORY))
    }

    /// How long records gather at least before they go to the disk together.
    pub fn commit_period(&self) -> Duration {
        Duration::from_millis(self.collector.commit_ms)
    }
}

/// Reads a setting from its variable, if that is set.
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

/// Reads `node,collector`.
pub fn parse_roles(text: &str) -> Result<Vec<Role>, ConfigError> {
    let mut roles = text.split(',').filter(|name| !name.trim().is_empty()).map(str::parse).collect::<Result<Vec<Role>, _>>()?;
    roles.sort_unstable();
    roles.dedup();
    Ok(roles)
}

#[cfg(test)]
mod tests;
