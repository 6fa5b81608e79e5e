//! `tampu up`.

use std::{path::PathBuf, thread::Scope, time::Duration};

use clap::Args;
use tampu_bus::{Participant, QosTable};
use tampu_hub::{
    Config, ConfigError, Hub, HubError,
    book::api::BASE,
    config::{Role, parse_roles},
    inputs::settings::Door,
};
use tampu_log::Threshold;
use tampu_types::{Domain, Level, SourceName};

use crate::{
    commands::{Context, demo::DemoArgs, log::tail::Tail},
    connect::Connect,
    demo::{Loggers, Observatory, dumps::Dumps, instruments::Instruments, shift_log},
    failure::{Failure, Outcome},
    time_expression::now,
};

/// Start a hub on this host
///
/// Without options it serves this host's processes of the domain 'local' over unix sockets, for this user only, and keeps
/// their logs below --data. Flags beat the environment, which beats the configuration file.
/// Hubs that share a logbook in PostgreSQL ([book] postgres, TAMPU_BOOK_POSTGRES) need the same --domain.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu up --demo\n  tampu up --config /etc/tampu.toml --data /srv/tampu\n  \
    tampu up --domain alma --lan 0.0.0.0:7447 --key-file domain.key")]
pub struct Up {
    #[command(flatten)]
    hub: HubArgs,
    /// Also simulate an observatory that logs, and show the live log
    #[arg(long)]
    demo: bool,
    /// Show the live log on standard output
    #[arg(long)]
    tail: bool,
    /// With --demo: do not show the live log
    #[arg(long, conflicts_with = "tail")]
    no_tail: bool,
    /// Say nothing on standard error while all is well
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    observatory: DemoArgs,
}

/// What a hub is told on the command line.
#[derive(Debug, Clone, Args)]
pub struct HubArgs {
    /// Configuration file (TOML)
    #[arg(short, long, env = "TAMPU_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where what must last is kept
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// What it does: node, collector, book
    #[arg(long, value_name = "ROLE,...")]
    pub roles: Option<String>,
    /// Open the network at this address; needs --domain and --key-file
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "0.0.0.0:7447")]
    pub lan: Option<String>,
    /// Another host's node to stay connected to
    #[arg(long, value_name = "ADDRESS")]
    pub peer: Vec<String>,
    /// Where the logbook is: its API, and below /elog ELOG's dialect; "off" for nowhere
    #[arg(long, value_name = "ADDRESS", env = "TAMPU_BOOK_LISTEN")]
    pub book_listen: Option<Door>,
    /// Where ELOG's dialect is alone, for ELOG's programs
    #[arg(long, value_name = "ADDRESS")]
    pub elog_listen: Option<Door>,
    /// The file with the domain's key
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

impl HubArgs {
    /// File, environment, flags.
    pub fn load(&self, connect: &Connect) -> Result<Config, Failure> {
        let usage = |error: ConfigError| Failure::Usage(error.to_string());
        let mut config = Config::load(self.config.as_deref(), |name| std::env::var(name).ok()).map_err(usage)?;
        if let Some(domain) = &connect.domain {
            config.domain.clone_from(domain);
        }
        if let Some(data) = &self.data {
            config.data.clone_from(data);
        }
        if let Some(roles) = &self.roles {
            config.roles = parse_roles(roles).map_err(usage)?;
        }
        if let Some(address) = &self.lan {
            config.network.listen.push(address.clone());
        }
        config.network.connect.extend(self.peer.iter().cloned());
        config.book.listen = self.book_listen.unwrap_or(config.book.listen);
        config.book.elog_listen = self.elog_listen.unwrap_or(config.book.elog_listen);
        if self.key_file.is_some() {
            config.network.key_file.clone_from(&self.key_file);
        }
        config.check().map_err(usage)?;
        Ok(config)
    }
}

/// Starts a hub, telling wrong settings from what did not work.
pub fn start(config: Config) -> Result<Hub, Failure> {
    Hub::start(config).map_err(|error| match error {
        HubError::Config(error) => Failure::Usage(error.to_string()),
        HubError::Denied(denied) => Failure::Usage(denied.to_string()),
        other => Failure::Failed(other.to_string()),
    })
}

/// How a hub started here is called by its own tail and demo.
pub fn join(hub: &Hub, name: &str) -> Result<Participant, Failure> {
    let domain: Domain = hub.config().domain.clone();
    let source = SourceName::new(name).map_err(|error| Failure::Failed(error.to_string()))?;
    Participant::on(hub.engine().clone(), domain, source, QosTable::default()).map_err(|error| Failure::Failed(error.to_string()))
}

impl Up {
    pub fn run(self, context: &Context) -> Outcome {
        let mut config = self.hub.load(&context.common.connect)?;
        let shows = self.tail || self.demo && !self.no_tail;
        if shows {
            // The live log shows the hub's own records too; once is enough.
            config.log_flags.local = Some(Threshold::From(Level::Alert));
        }
        let hub = start(config)?;
        if !self.quiet {
            self.greet(&hub);
        }
        let outcome = std::thread::scope(|scope| {
            let outcome = self.accompany(scope, &hub, shows, context);
            // Whoever closes the live log of a demo has seen enough: everything ends.
            context.interrupt.ask();
            outcome
        });
        let domain = hub.config().domain.clone();
        hub.stop();
        if !self.quiet {
            eprintln!("tampu: hub of domain '{domain}' has stopped");
        }
        outcome
    }

    /// What goes on beside the hub, until somebody ends it.
    fn accompany<'s>(&self, scope: &'s Scope<'s, '_>, hub: &Hub, shows: bool, context: &'s Context) -> Outcome {
        let interrupt = &context.interrupt;
        if self.demo {
            if let Some(book) = hub.book() {
                shift_log::begin(&**book.store(), now()).map_err(|error| Failure::failed("the demo's logbook", error))?;
            }
            let loggers = Loggers::join(hub.engine(), &hub.config().domain)?;
            let (seed, rate) = (self.observatory.seed, self.observatory.rate);
            let instruments = Instruments::start(hub.engine(), &hub.config().domain, seed)?;
            let dumps = Dumps::start(hub.engine(), &hub.config().domain, seed, rate)?;
            scope.spawn(move || {
                Observatory::new(&loggers, seed).run(rate, None, interrupt);
                drop((instruments, dumps));
            });
        }
        if shows {
            return Tail::everything().show(&join(hub, "tampu-tail")?, context);
        }
        while !interrupt.wait(Duration::from_secs(3600)) {}
        Ok(())
    }

    fn greet(&self, hub: &Hub) {
        let config = hub.config();
        let roles: Vec<&str> = config.roles.iter().map(|role| role.name()).collect();
        eprintln!("tampu: hub of domain '{}' is up: {}; Ctrl-C ends it", config.domain, roles.join(", "));
        if let Some(data) = hub.data() {
            eprintln!("tampu: records are kept in {}", data.display());
        }
        match hub.book() {
            Some(book) => {
                if let Some(url) = book.url() {
                    eprintln!("tampu: the logbook is at {url}{BASE}/openapi.json");
                }
                book.elog_urls().iter().for_each(|url| eprintln!("tampu: the logbook's pages are at {url}"));
            }
            None if config.roles.contains(&Role::Book) => eprintln!("tampu: there is no logbook; the log says why"),
            None => {}
        }
        if let Some(remark) = hub.client_config().run_dir.remark() {
            eprintln!("tampu: {remark}");
        }
        for address in hub.addresses() {
            eprintln!("tampu: listening at {address}");
        }
        if self.demo {
            let program = std::env::args().next().unwrap_or_else(|| "tampu".to_owned());
            let domain = if config.domain.as_str() == "local" { String::new() } else { format!(" --domain {}", config.domain) };
            eprintln!("tampu: try next, in another terminal: {program}{domain} log query --min-level Warning --since 5m");
        }
    }
}
