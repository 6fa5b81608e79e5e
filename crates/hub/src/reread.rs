//! Settings that are read again while a hub runs: those of its log and of topics, and the access rules.
//!
//! A confined role may not read the directory of the configuration, where the secrets of others lie. So it asks its
//! supervisor ([`crate::supervisor::handover`]); every other process reads the files itself.

use std::path::PathBuf;

use tampu_bus::QosPatch;
use tampu_log::logger::config::LogFile;

use crate::{config::Config, rules::file};

/// A way to read changed settings.
pub trait ChangingSettings: Send + Sync {
    /// Returns the settings of the hub's log, as the environment and the configuration file have them.
    fn log(&self) -> Result<LogFile, String>;

    /// Returns the text of the policy file; `None` if it is missing or empty.
    fn policy(&self) -> Result<Option<String>, String>;

    /// Returns the settings of topics in the configuration file.
    fn topics(&self) -> Result<Vec<QosPatch>, String>;
}

/// The files of this process's own configuration.
#[derive(Debug, Clone)]
pub struct OwnFiles {
    config: Option<PathBuf>,
    policy: PathBuf,
}

impl OwnFiles {
    /// Names the files of a configuration.
    pub fn of(config: &Config) -> OwnFiles {
        OwnFiles { config: config.file.clone(), policy: config.policy_file() }
    }

    fn read(&self) -> Result<Config, String> {
        Config::load(self.config.as_deref(), |name| std::env::var(name).ok()).map_err(|why| why.to_string())
    }
}

impl ChangingSettings for OwnFiles {
    fn log(&self) -> Result<LogFile, String> {
        let read = self.read()?;
        Ok(LogFile { log: read.log, logger: read.logger, topic: Vec::new() })
    }

    fn policy(&self) -> Result<Option<String>, String> {
        file::text(&self.policy).map_err(|why| why.to_string())
    }

    fn topics(&self) -> Result<Vec<QosPatch>, String> {
        Ok(self.read()?.topic)
    }
}
