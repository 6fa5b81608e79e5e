//! Settings of the bridge to Tango: `[tango]` in the configuration, and the flags of `tampu event bridge-tango`.

use std::{net::SocketAddr, path::PathBuf};

use serde::{Deserialize, Serialize};
use tampu_types::event::{AttributePattern, EventKind, Kinds};

/// Settings of one bridge: attributes, addresses and the Python interpreter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TangoSettings {
    /// True if the hub runs the bridge.
    pub enabled: bool,
    /// Address of the Tango database, `HOST:PORT`; `none` for no database; `TANGO_HOST` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Attributes of Tango that become Tampu's.
    pub subscribe: Vec<String>,
    /// Kinds of the followed events.
    pub kinds: Vec<EventKind>,
    /// Attributes of Tampu that become Tango's.
    pub serve: Vec<AttributePattern>,
    /// Address of the device server without a database; port 0 means any free one.
    pub listen: SocketAddr,
    /// The bridge's name: its source on the bus is `tango@<instance>`, its device server `TampuBridge/<instance>`. By
    /// default, this host's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The interpreter that has PyTango.
    pub python: PathBuf,
    /// Period in ms at which Tango polls the served attributes, which gives its clients periodic events. With 0 Tango
    /// polls only attributes that are polled in Tampu.
    pub poll_ms: u32,
    /// Period in s at which patterns are searched for new attributes.
    pub rescan_s: u64,
}

impl Default for TangoSettings {
    fn default() -> TangoSettings {
        TangoSettings {
            enabled: false,
            database: None,
            subscribe: Vec::new(),
            kinds: vec![
                EventKind::Change,
                EventKind::Alarm,
                EventKind::Archive,
                EventKind::User,
                EventKind::DataReady,
                EventKind::Interface,
            ],
            serve: Vec::new(),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            instance: None,
            python: PathBuf::from("python3"),
            poll_ms: 0,
            rescan_s: 60,
        }
    }
}

/// An invalid setting of the bridge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {why}")]
pub struct BadTangoSettings {
    /// Name of the setting.
    pub setting: &'static str,
    /// Description of the error.
    pub why: String,
}

/// The Tango database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    /// A database at this address.
    At(String),
    /// There is no database.
    None,
}

impl TangoSettings {
    /// Returns the database; `TANGO_HOST` is used if none is set.
    pub fn database(&self, environment: Option<String>) -> Database {
        match self.database.clone().or(environment).filter(|address| !address.is_empty()) {
            Some(address) if address != "none" => Database::At(address),
            _ => Database::None,
        }
    }

    /// The bridge's name.
    pub fn instance(&self) -> String {
        // In Tango's files, dots would separate parts of a name.
        let host = || tampu_workers::host::host_name().replace('.', "-");
        self.instance.clone().unwrap_or_else(host)
    }

    /// The kinds as a set.
    pub fn kinds(&self) -> Kinds {
        self.kinds.iter().copied().collect()
    }

    /// Checks conditions that involve several settings.
    pub fn check(&self, database: &Database) -> Result<(), BadTangoSettings> {
        let wrong = |setting, why: String| Err(BadTangoSettings { setting, why });
        if self.subscribe.is_empty() && self.serve.is_empty() {
            return wrong(
                "subscribe",
                "nothing to carry: name attributes of Tango with --subscribe, or attributes of Tampu with --serve ([tango] subscribe, serve)"
                    .to_owned(),
            );
        }
        if let Some(kind) = self.kinds.iter().find(|kind| matches!(kind, EventKind::Generic)) {
            return wrong("kinds", format!("Tango has no {kind} events"));
        }
        for address in &self.subscribe {
            Address::parse(address)
                .and_then(|address| address.check(database))
                .map_err(|why| BadTangoSettings { setting: "subscribe", why })?;
        }
        if self.rescan_s == 0 {
            return wrong("rescan_s", "at least 1 s".to_owned());
        }
        let instance = self.instance();
        if instance.is_empty() || !instance.chars().all(|one| one.is_ascii_alphanumeric() || "-_".contains(one)) {
            return wrong("instance", format!("invalid device server name '{instance}': use letters, digits, - and _"));
        }
        Ok(())
    }
}

/// An attribute of Tango as its clients write it, or a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The name in its original spelling.
    pub text: String,
    /// The last four parts.
    pub name: String,
    /// True if it has `*` or `?`: the matching attributes must be requested.
    pub is_pattern: bool,
    /// True if it names its server itself, and needs no database.
    pub is_direct: bool,
}

impl Address {
    /// Takes it apart.
    pub fn parse(text: &str) -> Result<Address, String> {
        let (path, options) = text.split_once('#').unwrap_or((text, ""));
        let (host, path) = match path.strip_prefix("tango://") {
            Some(rest) => rest.split_once('/').map(|(host, path)| (Some(host), path)).unwrap_or((Some(rest), "")),
            None => (None, path),
        };
        let parts: Vec<&str> = path.split('/').collect();
        if parts.len() != 4 || parts.iter().any(|part| part.is_empty()) {
            return Err(format!(
                "invalid Tango attribute '{text}': write domain/family/member/attribute, with tango://HOST:PORT/ before it, and #dbase=no \
                 behind it to use no database"
            ));
        }
        let is_direct = host.is_some() && options == "dbase=no";
        let is_pattern = path.contains(['*', '?']);
        if is_direct && parts[..3].iter().any(|part| part.contains(['*', '?'])) {
            return Err(format!("'{text}': without a database only the last part, the attribute, can be a pattern"));
        }
        if host.is_some() && !is_direct && is_pattern {
            return Err(format!("'{text}': patterns are asked of the database that --tango-host names; leave the address away"));
        }
        Ok(Address { text: text.to_owned(), name: path.to_owned(), is_pattern, is_direct })
    }

    fn check(&self, database: &Database) -> Result<(), String> {
        if !self.is_direct && !self.text.starts_with("tango://") && *database == Database::None {
            return Err(format!(
                "'{}' needs a Tango database: name it with --tango-host HOST:PORT ([tango] database, TANGO_HOST), or write \
                 tango://HOST:PORT/{}#dbase=no",
                self.text, self.name
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(subscribe: &[&str]) -> TangoSettings {
        TangoSettings { subscribe: subscribe.iter().map(|text| (*text).to_owned()).collect(), ..TangoSettings::default() }
    }

    #[test]
    fn addresses_are_those_tango_s_clients_write() {
        let direct = Address::parse("tango://h:1/a/b/c/d#dbase=no").unwrap();
        assert_eq!((direct.name.as_str(), direct.is_direct, direct.is_pattern), ("a/b/c/d", true, false));
        assert!(Address::parse("tango://h:1/a/b/c/*#dbase=no").unwrap().is_pattern);
        assert!(!Address::parse("tango://h:1/a/b/c/d").unwrap().is_direct);
        for bad in [
            "a/b/c",
            "",
            "a/b//d",
            "tango://h:1/a/b/c#dbase=no",
            "tango://h:1",
            "tango://h:1/*/b/c/d#dbase=no",
            "tango://h:1/a/b/c/*",
        ] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_needs_a_database_says_so() {
        let at = Database::At("h:10000".into());
        assert_eq!(with(&["sr/*/*/pressure"]).check(&at), Ok(()));
        let told = with(&["sr/*/*/pressure"]).check(&Database::None).unwrap_err().to_string();
        assert!(told.contains("--tango-host HOST:PORT") && told.contains("tango://HOST:PORT/sr/*/*/pressure#dbase=no"), "{told}");
        assert!(with(&["tango://h:1/a/b/c/d#dbase=no"]).check(&Database::None).is_ok());
        assert!(with(&[]).check(&at).is_err());
        assert!(TangoSettings { instance: Some("a.b".into()), ..with(&["a/b/c/d"]) }.check(&at).is_err());
    }

    #[test]
    fn the_environment_names_the_database_unless_somebody_else_does() {
        let environment = || Some("env:10000".to_owned());
        let given = |text: &str| TangoSettings { database: Some(text.into()), ..TangoSettings::default() };
        assert_eq!(TangoSettings::default().database(environment()), Database::At("env:10000".into()));
        assert_eq!(given("here:1").database(environment()), Database::At("here:1".into()));
        assert_eq!(given("none").database(environment()), Database::None);
        assert_eq!(TangoSettings::default().database(None), Database::None);
    }
}
