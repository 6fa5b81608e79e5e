//! Finding the hub: the local one by the run-time directory, another one by `--hub`.

use std::{
    fmt,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    str::FromStr,
    sync::{Arc, Once},
    time::Duration,
};

use clap::Args;
use tampu_bus::{
    Participant,
    connect::{BadEndpoint, Encryption, Endpoint, Key, Lan, Settings},
    engine::Engine,
    service::CallError,
};
use tampu_tls::CertificateDir;
use tampu_types::{Domain, SourceName};

use crate::{failure::Failure, hubs};

/// The hub to connect to, and with what.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Connection")]
pub struct Connect {
    /// A hub on another host: host:port, or the path of a socket; for the logbook http://host:port or https://host:port [env: TAMPU_HUB]
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub hub: Option<HubAddress>,
    /// The installation's name [env: TAMPU_DOMAIN] [default: the only one that runs on this host, else local]
    #[arg(long, global = true, value_name = "NAME")]
    pub domain: Option<Domain>,
    /// The file with the domain's key, which hubs and their clients on other hosts share [env: TAMPU_KEY_FILE]
    #[arg(long, global = true, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// The directory of this host's certificates, for TLS [env: TAMPU_CERTIFICATES]
    #[arg(long, global = true, value_name = "DIR")]
    pub certificates: Option<PathBuf>,
    /// Connect to other hosts without encryption [env: TAMPU_ENCRYPTION=none]
    #[arg(long, global = true, conflicts_with = "certificates")]
    pub no_encryption: bool,
}

/// Reads a variable as a flag's value is read. An empty one counts as unset.
pub fn from_environment<T: FromStr<Err: fmt::Display>>(name: &str) -> Result<Option<T>, Failure> {
    let Some(text) = std::env::var(name).ok().filter(|text| !text.is_empty()) else { return Ok(None) };
    text.parse().map(Some).map_err(|error| Failure::Usage(format!("{name}: {error}")))
}

/// A hub's address: on the bus, or of its logbook's HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HubAddress {
    /// A hub on the bus.
    Bus(Endpoint),
    /// The address as `http://host:port` or `https://host:port`.
    Web(String),
}

impl FromStr for HubAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<HubAddress, String> {
        match text.strip_prefix("http://").or(text.strip_prefix("https://")) {
            Some(host) if host.is_empty() || host.contains([' ', '?', '#', '@']) => {
                Err(format!("invalid address '{text}': write http://host:7449 or https://host:7449"))
            }
            Some(_) => Ok(HubAddress::Web(text.trim_end_matches('/').to_owned())),
            None => {
                let told = |error: BadEndpoint| format!("{error}; of a logbook, http://host:port or https://host:port");
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

/// Time limit for the beginning of an answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

impl Connect {
    /// Reads options that the flags leave open from the environment. clap could do it. But it would then show each
    /// variable's flag in the usage line of every error, as if the flag were required.
    pub fn or_environment(self) -> Result<Connect, Failure> {
        Ok(Connect {
            hub: self.hub.map_or_else(|| from_environment("TAMPU_HUB"), |hub| Ok(Some(hub)))?,
            domain: self.domain.map_or_else(|| from_environment("TAMPU_DOMAIN"), |domain| Ok(Some(domain)))?,
            // The settings of the bus read TAMPU_KEY_FILE by themselves.
            key_file: self.key_file,
            certificates: self.certificates,
            no_encryption: self.no_encryption,
        })
    }

    /// Returns the configuration of flags and environment. If they name no domain, and this host has no hub of the
    /// default one but exactly one of another, that one is used. The choice is reported on standard error, and the hub
    /// is this user's own, over loopback.
    pub fn config(&self) -> Result<Settings, Failure> {
        let mut config = self.stated()?;
        if self.domain.is_none() && self.hub.is_none() && !hubs::has_one(&config) {
            let running = hubs::running(&config.run_dir);
            if let [only] = running.as_slice() {
                static SAID: Once = Once::new();
                SAID.call_once(|| {
                    eprintln!("tampu: using the domain '{only}', whose hub is the only one here; --domain names another");
                });
                config = config.in_domain(only.clone());
            }
        }
        match &self.hub {
            Some(HubAddress::Bus(endpoint)) => config.hub = Some(endpoint.clone()),
            Some(HubAddress::Web(url)) => {
                return Err(Failure::Usage(format!(
                    "--hub {url} is the address of a logbook; this command needs host:port, or the path of a socket"
                )));
            }
            None => {}
        }
        Ok(config)
    }

    /// Returns the stated configuration, without a search for running hubs and without the hub's address.
    pub fn stated(&self) -> Result<Settings, Failure> {
        // In this program, `TAMPU_HUB` is the value of a flag.
        let mut config = Settings::from_env_but_hub().map_err(|error| Failure::Usage(error.to_string()))?;
        if let Some(domain) = &self.domain {
            config = config.in_domain(domain.clone());
        }
        if let Some(path) = &self.key_file {
            let key = Key::from_file(path).map_err(|error| Failure::Usage(format!("--key-file {}: {error}", path.display())))?;
            let encryption = Encryption::from_env().map_err(|error| Failure::Usage(error.to_string()))?;
            let (direct, encryption) = config.lan.map_or((None, encryption), |lan| (lan.direct, lan.encryption));
            config.lan = Some(Lan { key, direct, encryption });
        }
        if let Some(lan) = &mut config.lan {
            if self.no_encryption {
                lan.encryption = Encryption::None;
            } else if let Some(directory) = &self.certificates {
                lan.encryption = Encryption::Tls(CertificateDir::new(directory));
            }
        }
        Ok(config)
    }

    /// Returns the file of the authority that the certificate directory holds, if one is named.
    pub fn authority(&self) -> Result<Option<PathBuf>, Failure> {
        Ok(self.certificates()?.map(|directory| CertificateDir::new(directory).authority()))
    }

    /// Returns the certificate directory that the flag or the environment names.
    pub fn certificates(&self) -> Result<Option<PathBuf>, Failure> {
        match &self.certificates {
            Some(directory) => Ok(Some(directory.clone())),
            None if self.no_encryption => Ok(None),
            None => from_environment("TAMPU_CERTIFICATES"),
        }
    }

    /// The configuration for commands that do not use the bus: the hub's address is ignored.
    pub fn surroundings(&self) -> Result<Settings, Failure> {
        Connect { hub: None, ..self.clone() }.config()
    }

    /// Joins the bus under this name, with a hub or without.
    pub fn join(&self, name: &str) -> Result<Participant, Failure> {
        self.join_at(self.config()?, name)
    }

    /// Joins where this configuration leads.
    pub fn join_at(&self, config: Settings, name: &str) -> Result<Participant, Failure> {
        Ok(self.join_engine(config, name)?.0)
    }

    fn join_engine(&self, config: Settings, name: &str) -> Result<(Participant, Arc<dyn Engine>), Failure> {
        let domain = config.domain.clone();
        let source = SourceName::new(name).map_err(|error| Failure::Usage(error.to_string()))?;
        let unreachable = |text: String| Failure::Unreachable(self.advise(&text));
        let engine = config.open().map_err(|error| unreachable(error.to_string()))?;
        let participant =
            Participant::on(engine.clone(), domain, source, config.qos).map_err(|error| unreachable(error.to_string()))?;
        Ok((participant, engine))
    }

    /// Joins a bus with other participants, or reports at once that there are none.
    pub fn join_hub(&self, name: &str) -> Result<Participant, Failure> {
        Ok(self.join_hub_engine(name)?.0)
    }

    /// Joins the hub and also returns the engine, which knows the connection.
    pub fn join_hub_engine(&self, name: &str) -> Result<(Participant, Arc<dyn Engine>), Failure> {
        let config = self.config()?;
        if config.hub.is_none() {
            let dir = config.run_dir.domain(&config.domain).map_err(|error| Failure::Unreachable(error.to_string()))?;
            if !dir.node_answers() && dir.meeting_sockets().is_empty() {
                return Err(Failure::Unreachable(self.advise(&self.nobody(&config))));
            }
        }
        self.join_engine(config, name)
    }

    /// The failure that an unanswered or refused question means.
    pub fn call_failed(&self, error: &CallError) -> Failure {
        if error.is_unreachable() {
            Failure::Unreachable(self.advise(&error.to_string()))
        } else {
            Failure::Failed(error.to_string())
        }
    }

    /// Says that no hub of the domain runs here, and which do.
    pub fn nobody(&self, config: &Settings) -> String {
        let running = hubs::running(&config.run_dir);
        let here = match running.as_slice() {
            [] => "no hub runs here at all".to_owned(),
            domains => {
                let names: Vec<String> = domains.iter().map(|domain| format!("'{domain}'")).collect();
                format!("running here: {} (--domain NAME chooses)", names.join(", "))
            }
        };
        format!("no hub of the domain '{}' runs on this host ({}); {here}", config.domain, config.run_dir.path().display())
    }

    /// Reports that the socket of `--hub` belongs to another domain than the requested one, according to its directory.
    fn other_domain(&self) -> Option<String> {
        let Some(HubAddress::Bus(Endpoint::Unix(path))) = &self.hub else { return None };
        let asked = self.stated().ok()?.domain;
        let parent = path.parent()?.file_name()?.to_str()?;
        let of = Domain::new(parent).ok().filter(|of| *of != asked && path.ends_with("node.sock") && listens(path))?;
        Some(format!("the hub at {} is of domain '{of}', not '{asked}'; add --domain {of}", path.display()))
    }

    /// Replaces the engine's words for a socket where nothing listens.
    fn without_engine(&self, text: &str) -> String {
        const BEGIN: &str = "Unable to connect to any of [Single(unixsock-stream/";
        match (&self.hub, text.split_once(BEGIN)) {
            (Some(HubAddress::Bus(Endpoint::Unix(path))), Some((before, _))) if !listens(path) => {
                format!("{before}no hub listens there")
            }
            _ => text.to_owned(),
        }
    }

    /// Adds the way out to a text about an unreachable hub.
    pub fn advise(&self, text: &str) -> String {
        let text = self.without_engine(text);
        if let Some(other) = self.other_domain() {
            return format!("{text}; {other}");
        }
        let domain = self.domain.as_ref().map(|domain| format!(" --domain {domain}")).unwrap_or_default();
        match &self.hub {
            Some(hub) => format!("{text}; check that a hub of this domain listens at {hub}, and its key (--key-file)"),
            None => format!("{text}; start one with 'tampu up{domain}', or name another with --hub ADDRESS"),
        }
    }
}

/// Returns true if a process listens at a unix socket.
fn listens(path: &Path) -> bool {
    UnixStream::connect(path).is_ok()
}
