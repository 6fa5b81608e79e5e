//! Settings that a process needs to join the bus.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use tampu_types::Domain;

use super::{
    encryption::Encryption,
    endpoint::Endpoint,
    environment::{BadEnvironment, read},
    key::Key,
};
use crate::{
    run_dir::RunDir,
    topic_settings::{self, BadSettingsFile, QosTable},
};

/// Domain of a process that names none. It stays on its host.
pub const DEFAULT_DOMAIN: &str = "local";

/// Settings for joining: engine, endpoints, credentials, qualities of service.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Name of the engine; `None` is that of this host's node, else the first one of this build.
    pub engine: Option<String>,
    /// The installation that this process belongs to.
    pub domain: Domain,
    /// The directory where the processes of this host meet.
    pub run_dir: RunDir,
    /// A hub elsewhere to connect to instead of this host's node.
    pub hub: Option<Endpoint>,
    /// Credentials for the network; `None` keeps this process on its host.
    pub lan: Option<Lan>,
    /// The time that a vanished node has to return before its processes meet without it.
    pub node_grace: Duration,
    /// Qualities of service of topics that beat those of the site. Those of the environment stand last.
    pub qos: QosTable,
}

/// Credentials for the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lan {
    /// The key that all members of the domain share.
    pub key: Key,
    /// Address at which this process accepts direct links from other hosts; `None` disables them.
    pub direct: Option<String>,
    /// Encryption of connections over the network.
    pub encryption: Encryption,
}

impl Settings {
    /// Makes settings of this domain and run-time directory, without a network.
    pub fn new(domain: Domain, run_dir: RunDir) -> Settings {
        let node_grace = Duration::from_secs(3);
        Settings { engine: None, domain, run_dir, hub: None, lan: None, node_grace, qos: QosTable::default() }
    }

    /// Reads settings from the variables in the table of the [module](crate::connect).
    pub fn from_env() -> Result<Settings, BadEnvironment> {
        let hub = read("TAMPU_HUB", |text| text.parse::<Endpoint>().map_err(|why| why.to_string()))?;
        Ok(Settings { hub, ..Settings::from_env_but_hub()? })
    }

    /// Reads settings from the environment without `TAMPU_HUB`, for a program that accepts other addresses in that
    /// variable too.
    pub fn from_env_but_hub() -> Result<Settings, BadEnvironment> {
        let domain = read("TAMPU_DOMAIN", |text| Domain::new(text).map_err(|why| why.to_string()))?;
        let mut settings = Settings::new(domain.unwrap_or_else(default_domain), RunDir::from_env());
        settings.engine = read("TAMPU_ENGINE", Ok)?;
        settings.qos = topics_from_env()?;
        let direct = read("TAMPU_DIRECT", Ok)?;
        let encryption = Encryption::from_env()?;
        settings.lan = key_from_env()?.map(|key| Lan { key, direct, encryption });
        Ok(settings)
    }

    /// Makes settings for tests. In the test's own directory, no other process can be met.
    pub fn isolated(directory: impl Into<PathBuf>) -> Settings {
        Settings::new(default_domain(), RunDir::at(directory))
    }

    /// Returns these settings for another domain.
    pub fn in_domain(mut self, domain: Domain) -> Settings {
        self.domain = domain;
        self
    }
}

/// Reads the settings of topics in the program's file, and those of the environment, which beat them.
fn topics_from_env() -> Result<QosTable, BadEnvironment> {
    type Reader = fn(&Path) -> Result<QosTable, BadSettingsFile>;
    let table = |variable, from_file: Reader| {
        let found = read(variable, |path| from_file(Path::new(&path)).map_err(|why| why.to_string()))?;
        Ok(found.unwrap_or_default())
    };
    let of_program = table("TAMPU_LOG_CONFIG", topic_settings::from_file_of_program)?;
    Ok(of_program.and(table("TAMPU_QOS", topic_settings::from_file)?))
}

fn key_from_env() -> Result<Option<Key>, BadEnvironment> {
    let key = read("TAMPU_KEY", |text| Key::new(text).map_err(|why| why.to_string()))?;
    let file = read("TAMPU_KEY_FILE", |path| Key::from_file(Path::new(&path)).map_err(|why| why.to_string()))?;
    match (key, file) {
        (Some(_), Some(_)) => {
            let why = "TAMPU_KEY is set too; unset one of them".to_owned();
            Err(BadEnvironment { variable: "TAMPU_KEY_FILE", why })
        }
        (key, file) => Ok(key.or(file)),
    }
}

fn default_domain() -> Domain {
    // A test below checks that the constant is a valid name.
    Domain::new(DEFAULT_DOMAIN).unwrap_or_else(|_| unreachable!("'{DEFAULT_DOMAIN}' is a domain"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_domain_has_a_good_name() {
        assert_eq!(default_domain().as_str(), DEFAULT_DOMAIN);
    }
}
