//! Finding the hub: this host's own by the run-time directory, another by `--hub`.

use std::{sync::Arc, time::Duration};

use clap::Args;
use tampu_bus::{
    Participant, QosTable,
    engine::zenoh::{
        ZenohEngine,
        config::{Endpoint, ZenohConfig},
    },
};
use tampu_types::{Domain, SourceName};

use crate::failure::Failure;

/// Where to connect.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Where to connect")]
pub struct Connect {
    /// Another hub than this host's: host:port, or the path of a socket
    #[arg(long, global = true, env = "TAMPU_HUB", value_name = "ADDRESS")]
    pub hub: Option<Endpoint>,
    /// The installation's name
    #[arg(long, global = true, env = "TAMPU_DOMAIN", value_name = "NAME")]
    pub domain: Option<Domain>,
}

/// How long a service may take to begin its answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

impl Connect {
    /// What the environment and the flags say.
    pub fn config(&self) -> Result<ZenohConfig, Failure> {
        let mut config = ZenohConfig::from_env().map_err(|error| Failure::Usage(error.to_string()))?;
        if let Some(domain) = &self.domain {
            config = config.in_domain(domain.clone());
        }
        if self.hub.is_some() {
            config.hub.clone_from(&self.hub);
        }
        Ok(config)
    }

    /// Joins the bus under this name, with a hub or without.
    pub fn join(&self, name: &str) -> Result<Participant, Failure> {
        self.join_at(self.config()?, name)
    }

    /// Joins where this configuration leads.
    pub fn join_at(&self, config: ZenohConfig, name: &str) -> Result<Participant, Failure> {
        Ok(self.join_engine(config, name)?.0)
    }

    fn join_engine(&self, config: ZenohConfig, name: &str) -> Result<(Participant, Arc<ZenohEngine>), Failure> {
        let domain = config.domain.clone();
        let source = SourceName::new(name).map_err(|error| Failure::Usage(error.to_string()))?;
        let unreachable = |text: String| Failure::Unreachable(self.advise(&text));
        let engine = Arc::new(ZenohEngine::open(config).map_err(|error| unreachable(error.to_string()))?);
        let participant = Participant::on(engine.clone(), domain, source, QosTable::default())
            .map_err(|error| unreachable(error.to_string()))?;
        Ok((participant, engine))
    }

    /// Joins the bus where somebody else already is, or says at once that nobody is.
    pub fn join_hub(&self, name: &str) -> Result<Participant, Failure> {
        Ok(self.join_hub_engine(name)?.0)
    }

    /// The same, with the engine, which knows how it is connected.
    pub fn join_hub_engine(&self, name: &str) -> Result<(Participant, Arc<ZenohEngine>), Failure> {
        let config = self.config()?;
        if config.hub.is_none() {
            let dir = config.run_dir.domain(&config.domain).map_err(|error| Failure::Unreachable(error.to_string()))?;
            if !dir.node_answers() && dir.meeting_sockets().is_empty() {
                return Err(Failure::Unreachable(self.advise(&format!(
                    "no hub of the domain '{}' runs on this host (looked in {})",
                    config.domain,
                    dir.path().display()
                ))));
            }
        }
        self.join_engine(config, name)
    }

    /// Adds the way out to a text about an unreachable hub.
    pub fn advise(&self, text: &str) -> String {
        let domain = self.domain.as_ref().map(|domain| format!(" --domain {domain}")).unwrap_or_default();
        match &self.hub {
            Some(hub) => format!("{text}; is a hub running at {hub}?"),
            None => format!("{text}; start one with 'tampu up{domain}', or name another with --hub ADDRESS"),
        }
    }
}
