//! What a process must know to take part: its domain, where it meets the others, and what it may show on the network.

use std::{env, fmt, path::PathBuf, str::FromStr, time::Duration};

use tampu_types::{Domain, name};

use crate::run_dir::RunDir;

/// The domain of whoever names none; it stays on its host.
pub const DEFAULT_DOMAIN: &str = "local";

/// How a process takes part. An explicit value: programs take it from their environment, tests make isolated ones.
#[derive(Debug, Clone)]
pub struct ZenohConfig {
    /// Which installation this process belongs to.
    pub domain: Domain,
    /// Where the processes of this host meet.
    pub run_dir: RunDir,
    /// A hub elsewhere to connect to instead of this host's node.
    pub hub: Option<Endpoint>,
    /// The key of the network, where this process speaks on it.
    pub lan: Option<Lan>,
    /// How long a vanished node may take to come back before its processes meet without it.
    pub node_grace: Duration,
}

/// What it takes to speak on the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lan {
    /// The key all members of the domain share.
    pub key: Key,
    /// The address at which this process takes direct links from other hosts; `None`: it takes none.
    pub direct: Option<String>,
}

/// A key shared by all members of a domain. Shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

/// Why a text is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key has 8 to 200 characters, none of them a blank at its ends or a control character")]
pub struct BadKey;

impl Key {
    /// Checks a key.
    pub fn new(text: impl Into<String>) -> Result<Key, BadKey> {
        let text = text.into();
        let good = (8..=200).contains(&text.len()) && text.trim() == text && !text.chars().any(char::is_control);
        if good { Ok(Key(text)) } else { Err(BadKey) }
    }

    /// The text itself, for whoever must store or send it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(...)")
    }
}

/// Where something listens: `host:port` (or `tcp/host:port`), or the path of a unix socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A host's name or address, and a port.
    Tcp(String),
    /// A unix socket of this host.
    Unix(PathBuf),
}

/// Why a text is no endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no endpoint: write host:port or the path of a socket (without ? and #)")]
pub struct BadEndpoint(pub String);

impl FromStr for Endpoint {
    type Err = BadEndpoint;

    fn from_str(text: &str) -> Result<Endpoint, BadEndpoint> {
        let bad = || BadEndpoint(text.to_owned());
        // The engine's own notation ends an address at these.
        if text.contains(['?', '#', ' ', ';']) || text.chars().any(char::is_control) {
            return Err(bad());
        }
        let address = text.strip_prefix("tcp/").unwrap_or(text);
        let path = text.strip_prefix("unixsock-stream/").or_else(|| text.strip_prefix("unix:")).unwrap_or(text);
        if path.starts_with('/') {
            return Ok(Endpoint::Unix(PathBuf::from(path)));
        }
        let (host, port) = address.rsplit_once(':').ok_or_else(bad)?;
        if host.is_empty() || host.contains('/') || port.parse::<u16>().is_err() {
            return Err(bad());
        }
        Ok(Endpoint::Tcp(address.to_owned()))
    }
}

impl Endpoint {
    /// In the engine's notation; `None` where it cannot write the path.
    pub(super) fn locator(&self) -> Option<String> {
        match self {
            Endpoint::Tcp(address) => Some(format!("tcp/{address}")),
            Endpoint::Unix(path) => {
                let path = path.to_str().filter(|path| !path.contains(['?', '#', ';']))?;
                Some(format!("unixsock-stream/{path}"))
            }
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp(address) => f.pad(address),
            Endpoint::Unix(path) => f.pad(&path.to_string_lossy()),
        }
    }
}

/// Why the environment describes no configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {why}")]
pub struct BadEnvironment {
    /// The variable.
    pub variable: &'static str,
    /// What is wrong with its value.
    pub why: String,
}

impl ZenohConfig {
    /// This domain and run-time directory, nothing on the network.
    pub fn new(domain: Domain, run_dir: RunDir) -> ZenohConfig {
        ZenohConfig { domain, run_dir, hub: None, lan: None, node_grace: Duration::from_secs(3) }
    }

    /// What the environment says: `TAMPU_DOMAIN` (else `local`), `TAMPU_RUN_DIR`, `TAMPU_HUB`, `TAMPU_KEY`, and
    /// `TAMPU_DIRECT`, the address at which direct links from other hosts are taken.
    pub fn from_env() -> Result<ZenohConfig, BadEnvironment> {
        let hub = read("TAMPU_HUB", |text| text.parse::<Endpoint>().map_err(|why| why.to_string()))?;
        Ok(ZenohConfig { hub, ..ZenohConfig::from_env_but_hub()? })
    }

    /// The same without `TAMPU_HUB`, for who reads that otherwise: for some of its verbs the command line takes other addresses too.
    pub fn from_env_but_hub() -> Result<ZenohConfig, BadEnvironment> {
        let domain = read("TAMPU_DOMAIN", |text| Domain::new(text).map_err(|why| why.to_string()))?;
        let mut config = ZenohConfig::new(domain.unwrap_or_else(default_domain), RunDir::from_env());
        let key = read("TAMPU_KEY", |text| Key::new(text).map_err(|why| why.to_string()))?;
        let direct = read("TAMPU_DIRECT", Ok)?;
        config.lan = key.map(|key| Lan { key, direct });
        Ok(config)
    }

    /// For tests: the directory is the test's own, so that nobody else can be met.
    pub fn isolated(directory: impl Into<PathBuf>) -> ZenohConfig {
        ZenohConfig::new(default_domain(), RunDir::at(directory))
    }

    /// This configuration for another domain.
    pub fn in_domain(mut self, domain: Domain) -> ZenohConfig {
        self.domain = domain;
        self
    }
}

fn default_domain() -> Domain {
    // The constant is a good name, which a test below holds.
    Domain::new(DEFAULT_DOMAIN).unwrap_or_else(|_| unreachable!("'{DEFAULT_DOMAIN}' is a domain"))
}

fn read<T>(variable: &'static str, parse: impl FnOnce(String) -> Result<T, String>) -> Result<Option<T>, BadEnvironment> {
    match env::var(variable) {
        Ok(text) if !text.is_empty() => parse(text).map(Some).map_err(|why| BadEnvironment { variable, why }),
        Ok(_) | Err(env::VarError::NotPresent) => Ok(None),
        Err(why) => Err(BadEnvironment { variable, why: why.to_string() }),
    }
}

/// Who one is towards a node that asks for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    pub user: String,
    pub key: Key,
}

impl Credentials {
    /// The domain is the user, so that a member of one domain is nobody in another even if both chose the same key.
    pub fn of(domain: &Domain, key: Key) -> Credentials {
        Credentials { user: name::escape(domain.as_str()), key }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_told_from_typing_errors() {
        assert_eq!("hub.site:7447".parse(), Ok(Endpoint::Tcp("hub.site:7447".to_owned())));
        assert_eq!("tcp/[::1]:7447".parse(), Ok(Endpoint::Tcp("[::1]:7447".to_owned())));
        assert_eq!("/run/tampu/x.sock".parse(), Ok(Endpoint::Unix(PathBuf::from("/run/tampu/x.sock"))));
        assert_eq!("unixsock-stream//run/x".parse(), Ok(Endpoint::Unix(PathBuf::from("/run/x"))));
        for bad in ["", "hub", "hub:", ":7447", "hub:70000", "udp/hub:1", "tcp/hub:1?rel=0", "/a#b"] {
            assert_eq!(bad.parse::<Endpoint>(), Err(BadEndpoint(bad.to_owned())));
        }
    }

    #[test]
    fn keys_are_never_shown() {
        assert_eq!(Key::new("short"), Err(BadKey));
        assert_eq!(Key::new("a line\nand another"), Err(BadKey));
        let key = Key::new("correct horse").unwrap();
        assert_eq!(format!("{key:?}"), "Key(...)");
        assert_eq!(default_domain().as_str(), DEFAULT_DOMAIN);
    }
}
