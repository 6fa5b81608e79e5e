//! The command `tampu up`.

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    thread::{JoinHandle, Scope},
    time::Duration,
};

use clap::Args;
use tampu_hub::{
    Config, ConfigError,
    api::BASE,
    book::settings::PORT,
    config::{Encryption, Role, parse_roles},
    host_file::{HostFile, HostFileError},
    listen::ListenAddress,
    private,
    supervisor::handover::StartReport,
};
use tampu_log::Threshold;
use tampu_types::Level;
use tampu_workers::{OnPanic, WorkerThread};

use crate::{
    commands::{cert::move_authority, demo::DemoArgs, log::tail::Tail},
    connect::{self, Connect},
    context::Context,
    demo::{Loggers, Observatory, dumps::Dumps, instruments::Instruments},
    desktop::{self, OpenedPage},
    failure::{Failure, Outcome},
    level::parse_level,
};

use running::Running;

pub mod running;

/// Start a hub on this host
///
/// Without options it serves this host's processes of the domain 'local' over unix sockets, for this user only, and keeps
/// their logs below --data. Flags beat the environment, which beats the configuration file. Each role runs as a process of
/// its own, and is restarted when it ends.
/// Hubs that share a logbook in PostgreSQL ([book] postgres, TAMPU_BOOK_POSTGRES) need the same --domain.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu up --demo\n  tampu up --config /etc/tampu.toml --data /srv/tampu\n  \
    tampu up --domain alma --lan\n  tampu up --join mast.join")]
pub struct Up {
    #[command(flatten)]
    hub: HubArgs,
    /// The file with which a host joins the domain; 'tampu cert host' writes it
    #[arg(long, value_name = "FILE")]
    join: Option<PathBuf>,
    /// Simulate an observatory as well, and show the live log
    #[arg(long)]
    demo: bool,
    /// Show the live log on standard output
    #[arg(long)]
    tail: bool,
    /// With --demo: do not show the live log
    #[arg(long, conflicts_with = "tail")]
    no_tail: bool,
    /// With --demo: do not open the console in the browser of the desktop
    #[arg(long)]
    no_open: bool,
    /// Show this level and more severe ones [default: Info with --demo, else all]
    #[arg(short = 'l', long, value_name = "LEVEL", value_parser = parse_level)]
    min_level: Option<Level>,
    /// Run all roles in this process, without limits and sandbox
    #[arg(long)]
    in_process: bool,
    /// Print nothing on standard error unless something fails
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    observatory: DemoArgs,
}

/// Options of a hub.
#[derive(Debug, Default, Clone, Args)]
pub struct HubArgs {
    /// The hub's configuration file (TOML)
    #[arg(short, long, env = "TAMPU_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Tampu's data directory [env: TAMPU_DATA_DIR]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Roles of the hub: node, collector, book
    #[arg(long, value_name = "ROLE,...")]
    pub roles: Option<String>,
    /// Open the network at this address; needs the certificates and the key of 'tampu cert init'
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "0.0.0.0:7447")]
    pub lan: Option<String>,
    /// Engine of the bus on this host [env: TAMPU_ENGINE]
    #[arg(long, value_name = "NAME")]
    pub engine: Option<String>,
    /// Stay connected to another host's node; repeatable
    #[arg(long, value_name = "ADDRESS")]
    pub peer: Vec<String>,
    /// Address of the logbook's pages and API; "off" for none
    #[arg(long, value_name = "ADDRESS", env = "TAMPU_BOOK_LISTEN")]
    pub book_listen: Option<ListenAddress>,
    /// A second address that speaks ELOG's protocol alone, for ELOG's clients
    #[arg(long, value_name = "ADDRESS")]
    pub elog_listen: Option<ListenAddress>,
    /// Serve the logbook to other hosts without encryption
    #[arg(long)]
    pub plain_http: bool,
}

impl HubArgs {
    /// File, environment, flags.
    pub fn load(&self, connect: &Connect) -> Result<Config, Failure> {
        self.load_and_join(connect, None)
    }

    /// The same; the host joins a domain with a file.
    fn load_and_join(&self, connect: &Connect, file: Option<&Path>) -> Result<Config, Failure> {
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
        if let Some(directory) = connect.certificates()? {
            config.network.certificates = Some(directory);
        }
        if connect.key_file.is_some() {
            config.network.key_file.clone_from(&connect.key_file);
        }
        if let Some(path) = file {
            self.join(path, connect, &mut config)?;
        }
        config.find_key();
        if let Some(address) = &self.lan {
            config.network.listen.push(address.clone());
        }
        config.engine = self.engine.clone().or(config.engine);
        config.network.connect.extend(self.peer.iter().cloned());
        config.book.listen = self.book_listen.or(config.book.listen);
        config.book.elog_listen = self.elog_listen.unwrap_or(config.book.elog_listen);
        if connect.no_encryption || connect::from_environment::<String>("TAMPU_ENCRYPTION")?.as_deref() == Some("none") {
            config.network.encryption = Encryption::None;
        }
        config.book.plain_http |= self.plain_http;
        config.check().map_err(usage)?;
        Ok(config)
    }

    /// Takes what the file of a host says. Only the flags before it win.
    fn join(&self, path: &Path, connect: &Connect, config: &mut Config) -> Outcome {
        let usage = |error: HostFileError| Failure::Usage(format!("--join: {error}"));
        let file = HostFile::read(path).map_err(usage)?;
        let named = connect.domain.as_ref().map(|domain| ("--domain", domain));
        let configured = config.lines.contains_key("domain").then_some(("the configuration", &config.domain));
        if let Some((place, domain)) = named.or(configured).filter(|(_, domain)| **domain != file.domain) {
            let (path, of_file) = (path.display(), &file.domain);
            let why = format!("{path} is for the domain '{of_file}', and {place} says '{domain}'; leave one out");
            return Err(Failure::Usage(format!("--join: {why}")));
        }
        // A file of an earlier start gives the same certificates and key again.
        let chose_roles = self.roles.is_some() || config.lines.contains_key("roles") || std::env::var_os("TAMPU_ROLES").is_some();
        file.join(path, config, chose_roles).map_err(usage)
    }
}

/// Time after which an end that is not over yet is reported.
const PATIENCE: Duration = Duration::from_millis(500);

/// Reports on standard error that the hub is stopping, if that takes long.
struct Stopping {
    over: Option<Sender<()>>,
    notice: Option<JoinHandle<()>>,
}

impl Stopping {
    fn begin() -> Stopping {
        let (over, waits) = channel::<()>();
        let work = move || {
            if let Err(RecvTimeoutError::Timeout) = waits.recv_timeout(PATIENCE) {
                eprintln!("tampu: stopping");
            }
        };
        // If the thread cannot start, only the notice is missing.
        let notice = WorkerThread::named("stopping").spawn(OnPanic::ReportOnly, work).ok();
        Stopping { over: Some(over), notice }
    }
}

impl Drop for Stopping {
    fn drop(&mut self) {
        self.over = None;
        if let Some(notice) = self.notice.take() {
            let _ = notice.join();
        }
    }
}

impl Up {
    pub fn run(self, context: &Context) -> Outcome {
        let mut config = self.hub.load_and_join(&context.common.connect, self.join.as_deref())?;
        if self.in_process {
            config.in_process = true;
            config.check().map_err(|error| Failure::Usage(error.to_string()))?;
        }
        let shows = self.tail || self.demo && !self.no_tail;
        if shows {
            // The live log also shows the hub's own records, so they are not printed twice.
            config.log_flags.local = Some(Threshold::From(Level::Alert));
        }
        crate::private::set(private::umask(&config));
        // The hub works with a key at its former place, and cannot always move it.
        if let Err(failure) = move_authority(&config.certificates()) {
            eprintln!("tampu: warning: {}", failure.text().unwrap_or_default());
        }
        let hub = Running::start(config, self.demo, &context.interrupt)?;
        // Each report has another code for the owner, of which the last one holds.
        let report = hub.report();
        if !self.quiet {
            self.greet(&hub, &report);
        }
        let _page = self.open(&hub, &report);
        let mut stopping = None;
        let outcome = std::thread::scope(|scope| {
            let outcome = self.accompany(scope, &hub, shows, context);
            // Closing the live log of a demo ends the demo.
            context.interrupt.ask();
            stopping = (!self.quiet).then(Stopping::begin);
            outcome
        });
        let domain = hub.config().domain.clone();
        hub.stop();
        drop(stopping);
        if !self.quiet {
            eprintln!("tampu: hub of domain '{domain}' has stopped");
        }
        outcome
    }

    /// Runs the demo and the live log beside the hub until an interrupt.
    fn accompany<'s>(&self, scope: &'s Scope<'s, '_>, hub: &Running, shows: bool, context: &'s Context) -> Outcome {
        let interrupt = &context.interrupt;
        if self.demo {
            let engine = hub.engine()?;
            let loggers = Loggers::join(&engine, &hub.config().domain)?;
            let (seed, rate) = (self.observatory.seed, self.observatory.speed);
            let instruments = Instruments::start(&engine, &hub.config().domain, seed)?;
            let dumps = Dumps::start(&engine, &hub.config().domain, seed, rate)?;
            scope.spawn(move || {
                Observatory::new(&loggers, seed).run(rate, None, interrupt);
                drop((instruments, dumps));
            });
        }
        if shows {
            let least = self.min_level.or(self.demo.then_some(Level::Info));
            return Tail::from_level(least).show(&hub.join("tampu-tail")?, context);
        }
        while !interrupt.wait(Duration::from_secs(3600)) {}
        Ok(())
    }

    /// Opens the console of a demo in the browser of the desktop, if there is one.
    fn open(&self, hub: &Running, report: &StartReport) -> Option<OpenedPage> {
        if !self.demo || self.no_open || !desktop::is_there(|name| std::env::var_os(name)) {
            return None;
        }
        let book = report.book.as_ref()?;
        let address = book.owner_url.clone().or_else(|| book.url.as_ref().map(|url| format!("{url}/")))?;
        match OpenedPage::open(&address, &hub.config().data) {
            Ok(page) => Some(page),
            // The address stands at the terminal.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                eprintln!("tampu: the console cannot be opened in a browser: {error}");
                None
            }
        }
    }

    fn greet(&self, hub: &Running, report: &StartReport) {
        let config = hub.config();
        let roles: Vec<&str> = config.roles.iter().map(|role| role.name()).collect();
        eprintln!("tampu: hub of domain '{}' is up: {}; Ctrl-C ends it", config.domain, roles.join(", "));
        if let Some(data) = hub.records() {
            eprintln!("tampu: records are kept in {}", data.display());
        }
        match &report.book {
            Some(book) => {
                if let (Some(holder), Some(url)) = (&book.port_holder, &book.url) {
                    eprintln!("tampu: {PORT} is taken by {holder}, the logbook is at {url}");
                }
                book.elog_urls.iter().for_each(|url| eprintln!("tampu: the logbook's pages are at {url}"));
                // The reader of the code is the owner, so it goes to a terminal and into no file.
                if std::io::stderr().is_terminal()
                    && let Some(url) = &book.owner_url
                {
                    eprintln!("tampu: there are no users yet; this address makes a browser the owner, once: {url}");
                }
                if let Some(warning) = &book.warning {
                    eprintln!("tampu: warning: {warning}");
                }
                if let Some(url) = &book.url {
                    eprintln!("tampu: the logbook's API is at {url}{BASE}/openapi.json");
                }
            }
            None if config.roles.contains(&Role::Book) => eprintln!("tampu: the logbook did not start; the log has the reason"),
            None => {}
        }
        if let Some(remark) = hub.client_settings().run_dir.remark() {
            eprintln!("tampu: {remark}");
        }
        for address in &report.addresses {
            eprintln!("tampu: listening at {address}");
        }
        if self.demo {
            let program = std::env::args().next().unwrap_or_else(|| "tampu".to_owned());
            if config.domain.as_str() != "local" {
                eprintln!("tampu: for other terminals: export TAMPU_DOMAIN={}", config.domain);
            }
            eprintln!("tampu: try next, in another terminal: {program} log query --min-level Warning --since 5m");
        }
        if let Some(url) = report.book.as_ref().and_then(|book| book.url.as_ref()) {
            eprintln!("tampu: the console is at {url}/");
        }
    }
}
