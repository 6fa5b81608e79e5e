//! The check of a configuration: conditions between several settings.

use tampu_bus::connect::{DEFAULT_DOMAIN, Endpoint, engine_names};
use tampu_event::history::LONGEST_KB;

use super::{Collector, Config, Role, Spool, error::ConfigError};
use crate::{listen::ListenAddress, routes, sandbox::mode::SandboxMode};

/// The largest limit of an archive in GiB, 1 EiB: its bytes fit in 64 bits.
const MOST_GIB: u64 = 1 << 30;

impl Config {
    /// Checks settings against one another.
    pub fn check(&self) -> Result<(), ConfigError> {
        let wrong = |setting: &str, why: String| Err(ConfigError::Value { setting: setting.to_owned(), why });
        if self.roles.is_empty() {
            return wrong("roles", "a hub needs at least one role: node, collector or book".to_owned());
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
        if !self.network.connect.is_empty() && self.network.key_file.is_none() && self.roles.contains(&Role::Node) {
            return wrong(
                "network.connect",
                "connecting to another host (--peer) needs the domain's key: add --key-file FILE, or network.key_file".to_owned(),
            );
        }
        self.check_engine()?;
        self.check_encryption()?;
        self.check_gateway()?;
        self.check_book_listeners()?;
        self.check_collector()?;
        self.limits.check().map_err(|(setting, why)| ConfigError::Value { setting: format!("limits.{setting}"), why })?;
        if self.in_process && self.sandbox == SandboxMode::Required {
            let why = "a sandbox needs roles that are processes of their own; remove in_process (--in-process)";
            return wrong("sandbox", why.to_owned());
        }
        self.book.check().map_err(|(setting, why)| ConfigError::Value { setting: format!("book.{setting}"), why })?;
        self.mail.check().map_err(|(setting, why)| ConfigError::Value { setting: format!("mail.{setting}"), why })?;
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
        routes::check::check(self)?;
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

    /// Checks that programs of other hosts have tokens.
    fn check_gateway(&self) -> Result<(), ConfigError> {
        match (self.gateway.listen, &self.gateway.tokens) {
            (ListenAddress::At(_), None) => Err(ConfigError::Value {
                setting: "gateway.listen".to_owned(),
                why: "programs on other hosts need tokens: name a file with gateway.tokens".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// Checks that this build has the engine.
    fn check_engine(&self) -> Result<(), ConfigError> {
        let Some(name) = &self.engine else { return Ok(()) };
        if engine_names().any(|known| known.eq_ignore_ascii_case(name)) {
            return Ok(());
        }
        let known = engine_names().collect::<Vec<_>>().join(", ");
        let why = format!("this build has no engine '{name}'; it has: {known}");
        Err(ConfigError::Value { setting: "engine".to_owned(), why })
    }

    /// Checks that connections beyond this host are encrypted, or renounce encryption in so many words.
    fn check_encryption(&self) -> Result<(), ConfigError> {
        if !self.roles.contains(&Role::Node) {
            return Ok(());
        }
        let encryption = self.bus_encryption();
        for (setting, addresses) in [("network.listen", &self.network.listen), ("network.connect", &self.network.connect)] {
            for address in addresses {
                let Ok(Endpoint::Tcp(address)) = address.parse() else { continue };
                encryption
                    .for_address(&address)
                    .map_err(|why| ConfigError::Value { setting: setting.to_owned(), why: format!("{address}: {why}") })?;
            }
        }
        Ok(())
    }

    /// Checks that the logbook listens beyond this host only with a domain name and its key. A hub without a node uses
    /// another hub's node, which has checked the key.
    fn check_book_listeners(&self) -> Result<(), ConfigError> {
        let has_key = self.network.key_file.is_some() || !self.roles.contains(&Role::Node);
        if !self.roles.contains(&Role::Book) || has_key && self.domain.as_str() != DEFAULT_DOMAIN {
            return Ok(());
        }
        let listeners = [("book.listen", self.book.listen()), ("book.elog_listen", self.book.elog_listen)];
        match listeners.into_iter().find(|(_, address)| address.beyond_this_host().is_some()) {
            Some((setting, _)) => Err(ConfigError::Value {
                setting: setting.to_owned(),
                why: "listening beyond this host needs a domain name (--domain) and the domain's key: add --key-file FILE"
                    .to_owned(),
            }),
            None => Ok(()),
        }
    }

    fn check_collector(&self) -> Result<(), ConfigError> {
        let Collector {
            segment_mb, segment_s, compact_share, compact, keep_days, keep_gb, keep_at_least_days, min_free_gb, ..
        } = self.collector;
        let wrong = |setting: &str, why: String| Err(ConfigError::Value { setting: format!("collector.{setting}"), why });
        if segment_mb == 0 {
            return wrong("segment_mb", "a segment needs at least 1 MiB".to_owned());
        }
        if segment_s == 0 {
            return wrong("segment_s", "a segment needs at least 1 s".to_owned());
        }
        if !(0.01..=1.0).contains(&compact_share) {
            return wrong("compact_share", format!("invalid share {compact_share} of one processor; use 0.01 to 1"));
        }
        if !compact && (keep_days > 0 || keep_gb > 0) {
            let why = "expired records are removed by whole Parquet files, and compact = false makes none";
            return wrong(if keep_days > 0 { "keep_days" } else { "keep_gb" }, why.to_owned());
        }
        for (setting, gib) in [("keep_gb", keep_gb), ("min_free_gb", min_free_gb)] {
            if gib > MOST_GIB {
                return wrong(setting, format!("{gib} GiB are more than an archive can have ({MOST_GIB}); the unit is GiB"));
            }
        }
        if let Some(place) = self.collector.backups.iter().find(|place| !place.is_absolute()) {
            return wrong("backups", format!("{}: a directory for backups needs its whole path", place.display()));
        }
        if keep_days > 0 && keep_days < keep_at_least_days {
            let why = format!("{keep_days} is less than keep_at_least_days ({keep_at_least_days})");
            return wrong("keep_days", why);
        }
        Ok(())
    }
}
