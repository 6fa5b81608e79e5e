//! Finding the hub: this host's own by the run-time directory, another by `--hub`.

use std::{fmt, str::FromStr, sync::Arc, time::Duration};

use clap::Args;
use tampu_bus::{
    Participant, QosTable,
    engine::zenoh::{
        ZenohEngine,
        config::{BadEndpoint, Endpoint, ZenohConfig},
    },
};
use tampu_types::{Domain, SourceName};

use crate::failure::Failure;

/// Where to connect.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Where to connect")]
pub struct Connect {
    /// Another hub than this host's: host:port, or the path of a socket; of a logbook, http://host:port
    #[arg(long, global = true, env = "TAMPU_HUB", value_name = "ADDRESS")]
    pub hub: Option<HubAddress>,
    /// The installation's name
    #[arg(long, global = true, env = "TAMPU_DOMAIN", value_name = "NAME")]
    pub domain: Option<Domain>,
}

/// A hub's address: on the bus, or of its logbook's HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HubAddress {
    /// On the bus.
    Bus(Endpoint),
    /// As `http://host:port`.
    Web(String),
}

impl FromStr for HubAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<HubAddress, String> {
        if text.starts_with("https://") {
            return Err("TLS is not spoken here: give the hub's own address, as http://host:7449, or use a tunnel".to_owned());
        }
        match text.strip_prefix("http://") {
            Some(host) if host.is_empty() || host.contains([' ', '?', '#', '@']) => {
                Err(format!("'{text}' is no address: write http://host:7449"))
            }
            Some(_) => Ok(HubAddress::Web(text.trim_end_matches('/').to_owned())),
            None => {
                let told = |error: BadEndpoint| format!("{error}; of a logbook, http://host:port");
                text.parse().map(HubAddress::Bus).map_err(told)
            }
        }
    }
}

impl fmt::Display for HubAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HubAddress::Bus(endpoint) => endpoint.fmt(f),
            HubAddress::Web(url) => f.write_str(url),
        }
    }
}

/// How long a service may take to begin its answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

impl Connect {
    /// What the environment and the flags say.
    pub fn config(&self) -> Result<ZenohConfig, Failure> {
        // `TAMPU_HUB` is a flag's value here.
        let mut config = ZenohConfig::from_env_but_hub().map_err(|error| Failure::Usage(error.to_string()))?;
        if let Some(domain) = &self.domain {
            config = config.in_domain(domain.clone());
        }
        match &self.hub {
            Some(HubAddress::Bus(endpoint)) => config.hub = Some(endpoint.clone()),
            Some(HubAddress::Web(url)) => {
                return Err(Failure::Usage(format!(
                    "--hub {url}: that is the address of a logbook; here it is host:port, or a socket's path"
                )));
            }
            None => {}
        }
        Ok(config)
    }

    /// The same for what does not go by the bus: the hub's address is not looked at.
    pub fn surroundings(&self) -> Result<ZenohConfig, Failure> {
        Connect { hub: None, domain: self.domain.clone() }.config()
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
