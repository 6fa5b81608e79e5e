//! A running hub: the start and the stop of its roles.

use std::{
    fs,
    io::{self, Write},
    net::SocketAddr,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tampu_bulk::transfers::{Transfers, TransfersError};
use tampu_bus::{
    BusError, Participant, QosTable,
    access::{Access, Denied},
    connect::{Endpoint, Key, Node, NodeError, NodeSettings, Settings},
    engine::{Engine, EngineError},
    run_dir::{DomainDir, RunDir},
};
use tampu_event::history::HistoryError;
use tampu_log::{
    LogSettings, Logger, Threshold, alert, info,
    logger::{BadSettings, Reread, config::LogFile},
    notice,
    recovery::{News, RingKeeper},
    spool::{self, Spool, SpoolOptions},
    warning,
};
use tampu_tango::{Bridge, BridgeError, SOURCE};
use tampu_types::{Level, SourceName};
use tampu_workers::{Consequence, host::host_name};

use crate::{
    api,
    book::{self, Book, BookError},
    bulk,
    collecting::{Collecting, CollectingError},
    config::{Config, ConfigError, Role, default_log},
    history::EventHistory,
    http::server::Server,
    inputs::{self, InputError, InputReport, Inputs},
    listen::ListenAddress,
    metrics::{self, Subjects},
    private::{self, PrivateError},
    rules::Rules,
};

/// A running hub. Dropping it ends it; [`Hub::stop`] ends it in order and reports.
pub struct Hub {
    // Fields are dropped in this order: writers first, the bus last.
    metrics: Option<Server>,
    book: Option<Book>,
    tango: Option<Arc<Bridge>>,
    transfers: Option<Arc<Transfers>>,
    inputs: Arc<Inputs>,
    rings: Option<RingKeeper>,
    spool: Option<Arc<Spool>>,
    history: Option<EventHistory>,
    logger: Logger,
    /// The log for panics of worker threads during the hub's life.
    _panic_log: Arc<Logger>,
    collecting: Option<Arc<Collecting>>,
    engine: Arc<dyn Engine>,
    node: Option<Arc<Node>>,
    client: Settings,
    config: Config,
}

/// Errors of starting a hub.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The access rules deny something that the configuration needs.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The directory of the data cannot be written.
    #[error("the data directory {path} cannot be written: {why}; name another one with --data DIR (or TAMPU_DATA_DIR)")]
    Data { path: PathBuf, why: io::Error },
    /// The directories of the data cannot be made or shared.
    #[error(transparent)]
    Private(#[from] PrivateError),
    /// The domain's key cannot be used.
    #[error("the key file {path}: {why}")]
    Key { path: PathBuf, why: String },
    /// The node cannot start.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The bus engine cannot start.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The bus cannot be joined.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The collector cannot start.
    #[error(transparent)]
    Collecting(#[from] CollectingError),
    /// The history of events cannot start.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The inputs of other programs' logs cannot start.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The bridge to Tango cannot start.
    #[error(transparent)]
    Tango(#[from] BridgeError),
    /// The address for metrics cannot be bound.
    #[error(
        "metrics cannot be served at {address}: {why}; give another address with [metrics] listen, or port 0 for any free one"
    )]
    Metrics { address: SocketAddr, why: io::Error },
    /// The logbook cannot start.
    #[error(transparent)]
    Book(#[from] BookError),
    /// The listener of bulk transfers cannot start.
    #[error(transparent)]
    Transfers(#[from] TransfersError),
    /// The system has no more threads.
    #[error("starting the hub's log: {0}")]
    Log(io::Error),
}

impl Hub {
    /// Starts the roles; returns when all of them work.
    pub fn start(config: Config) -> Result<Hub, HubError> {
        config.check()?;
        let client = process_config(&config)?;
        let qos = QosTable::new(config.topic.clone())
            .map_err(|error| ConfigError::Value { setting: "topic.topics".to_owned(), why: error.to_string() })?;
        let rules = Rules::of(&config);
        rules.check_doors(&config)?;
        let has = |role| config.roles.contains(&role);
        let closed = private::close(&config)?;
        if has(Role::Collector) || has(Role::Node) && config.spool.enabled && config.spool.dir.is_none() {
            check_data(&config.domain_data())?;
        }

        let node = if has(Role::Node) { Some(Arc::new(Node::start(node_config(&config, &client)?)?)) } else { None };
        let engine: Arc<dyn Engine> = match &node {
            Some(node) => node.engine()?,
            None => client.open()?,
        };
        let participant = |name: String| -> Result<Participant, HubError> {
            let source = SourceName::new(name).map_err(BusError::from)?;
            Ok(Participant::on(engine.clone(), config.domain.clone(), source, qos.clone())?)
        };
        let access = rules.access(&config, &client).map_err(NodeError::RunDir)?;
        let own = participant(name_of("hub"))?;
        let logger = start_log(&config, own.clone(), access.clone())?;
        let panic_log = Arc::new(logger.clone());
        report_panics(&panic_log);
        closed.iter().for_each(|remark| warning!(logger, "{remark}"));
        let collecting = if has(Role::Collector) {
            Some(Arc::new(Collecting::start(&config, participant(name_of("collector"))?, access.clone(), logger.clone())?))
        } else {
            None
        };

        let history = match &collecting {
            Some(_) if config.events.history => Some(EventHistory::start(
                &config,
                config.archive(),
                participant(name_of("events"))?,
                access.clone(),
                logger.clone(),
            )?),
            _ => None,
        };
        let spool = match &node {
            Some(_) if config.spool.enabled => start_spool(&config, participant(name_of("spool"))?, &logger),
            _ => None,
        };
        let rings = match &node {
            Some(node) => Some(keep_rings(node.dir(), participant(name_of("rings"))?, logger.clone())?),
            None => None,
        };
        // The inputs start last, so that a collector keeps their records.
        let inputs = Arc::new(start_inputs(&config, participant, &access)?);
        let tango = if config.tango.enabled {
            let participant = participant(format!("{SOURCE}{}", config.tango.instance()))?;
            Some(Arc::new(start_tango(&config, &participant, logger.clone())?))
        } else {
            None
        };
        // Only the hub with the archive keeps this account; an installation needs only one.
        let transfers = match &collecting {
            Some(_) => Some(Arc::new(bulk::start_transfers(&own, logger.clone())?)),
            None => None,
        };
        let subjects = Subjects {
            participant: own,
            transfers: transfers.clone(),
            node: node.clone(),
            collecting: collecting.clone(),
            spool: spool.clone(),
            history: history.as_ref().map(|kept| kept.history().reporter()),
            inputs: inputs.clone(),
            tango: tango.clone(),
            sources: config.metrics.sources,
        };
        let metrics = start_metrics(&config, subjects)?;
        let book = if has(Role::Book) { start_book(&config, &client, &logger)? } else { None };
        let hub = Hub {
            metrics,
            book,
            tango,
            transfers,
            inputs,
            rings,
            spool,
            history,
            logger,
            _panic_log: panic_log,
            collecting,
            engine,
            node,
            client,
            config,
        };
        hub.announce();
        Ok(hub)
    }

    fn announce(&self) {
        let roles: Vec<&str> = self.config.roles.iter().map(|role| role.name()).collect();
        notice!(self.logger, "hub of domain '{}' is up: {}", self.config.domain, roles.join(", "); pid = std::process::id());
        if let Some(node) = &self.node {
            let left = node.reclaimed();
            info!(self.logger, "node at {}", node.dir().path().display());
            if let Some(remark) = self.client.run_dir.remark() {
                warning!(self.logger, "{remark}");
            }
            if left.sockets + left.rings > 0 {
                info!(
                    self.logger,
                    "removed the leftovers of dead processes: {} sockets, {} rings, {} bytes",
                    left.sockets,
                    left.rings,
                    left.bytes
                );
            }
        }
        if let Some(collecting) = &self.collecting {
            let (records, faults) = collecting.found();
            info!(self.logger, "records are kept in {}", collecting.directory().display(); records = records);
            faults.iter().for_each(|fault| warning!(self.logger, "the archive: {fault}"));
        }
        if let Some(history) = self.history.as_ref().map(EventHistory::history) {
            let (records, faults) = history.found();
            info!(self.logger, "events are kept in {}", history.directory().display(); records = records);
            faults.iter().for_each(|fault| warning!(self.logger, "the events' archive: {fault}"));
        }
        for address in self.inputs.addresses() {
            info!(self.logger, "receiving {address}"; address = address.as_str());
        }
        if let Some(metrics) = &self.metrics {
            for address in metrics.addresses() {
                info!(self.logger, "metrics are at http://{address}/metrics"; address = address.to_string());
            }
        }
        if let Some(book) = &self.book {
            info!(self.logger, "the logbook is kept in {}", book.kept_in());
            if let Some(url) = book.url() {
                info!(self.logger, "the logbook's API is at {url}{}", api::BASE; address = url.as_str());
            }
            if let Some(holder) = book.port_holder() {
                notice!(self.logger, "the port {} is taken by {holder}: the logbook uses another one", book::settings::PORT);
            }
        }
        let config = &self.config;
        for (input, door) in [("syslog", config.syslog.udp), ("syslog", config.syslog.tcp), ("epics", config.epics.listen)] {
            let on = if input == "epics" { config.epics.enabled } else { config.syslog.enabled };
            if let Some(address) = door.beyond_this_host().filter(|_| on) {
                notice!(self.logger, "every program that reaches {address} can write to the log: {input} has no keys");
            }
        }
    }

    /// Returns the bus configuration of a process that connects to this hub.
    pub fn client_settings(&self) -> &Settings {
        &self.client
    }

    /// Returns the hub's bus engine.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the network addresses of the node.
    pub fn addresses(&self) -> Vec<String> {
        self.node.as_deref().map(Node::addresses).unwrap_or_default()
    }

    /// Returns the addresses of the inputs, as `syslog udp 127.0.0.1:5514`.
    pub fn inputs(&self) -> Vec<String> {
        self.inputs.addresses()
    }

    /// Returns the logbook, if this hub serves one.
    pub fn book(&self) -> Option<&Book> {
        self.book.as_ref()
    }

    /// Returns the counters of the inputs.
    pub fn input_reports(&self) -> Vec<InputReport> {
        self.inputs.reports()
    }

    /// Returns the archive's directory, if the hub collects.
    pub fn data(&self) -> Option<&Path> {
        self.collecting.as_deref().map(Collecting::directory)
    }

    /// Shuts down in order: received records are committed, and the hub's own log is sent.
    pub fn stop(mut self) {
        if let Some(rejected) = self.collecting.as_deref().map(Collecting::rejected).filter(|rejected| *rejected > 0) {
            warning!(self.logger, "{rejected} batches could not be read and were set aside");
        }
        notice!(self.logger, "hub of domain '{}' stops", self.config.domain);
        self.logger.flush(Duration::from_secs(1));
        let Hub { metrics, book, tango, transfers, inputs, rings, spool, history, .. } = &mut self;
        drop(metrics.take());
        drop(book.take());
        drop(tango.take());
        drop(transfers.take());
        drop(std::mem::take(inputs));
        // It logs recoveries, so it ends before the log.
        drop(rings.take());
        drop(spool.take());
        drop(history.take());
        drop(self);
    }
}

/// Starts the logbook. With the default configuration, a hub whose logbook cannot start runs without it, and logs the
/// reason.
fn start_book(config: &Config, client: &Settings, logger: &Logger) -> Result<Option<Book>, HubError> {
    let run = client.run_dir.domain(&config.domain).map_err(NodeError::RunDir)?.path().to_owned();
    let given = book::Given {
        settings: &config.book,
        domain: config.domain.as_str(),
        directory: config.book_dir(),
        run,
        host: host_name(),
        logger: logger.clone(),
    };
    match Book::start(given) {
        Ok(book) => Ok(Some(book)),
        Err(error) if config.roles == Role::USUAL && config.book == book::settings::BookSettings::default() => {
            alert!(logger, "the logbook cannot start, and the hub runs without it: {error}");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Creates the directory of the data, and checks that it can be written.
fn check_data(path: &Path) -> Result<(), HubError> {
    use rustix::fs::{Access, access};
    let checked = fs::create_dir_all(path).and_then(|()| Ok(access(path, Access::WRITE_OK)?));
    checked.map_err(|why| HubError::Data { path: path.to_owned(), why })
}

/// Reports panics of worker threads in the hub's log, or on standard error once the hub has ended.
fn report_panics(log: &Arc<Logger>) {
    let log = Arc::downgrade(log);
    tampu_workers::set_reporter(move |report| {
        let text = report.to_string();
        let Some(log) = log.upgrade() else {
            // Standard error may be closed.
            let _ = writeln!(io::stderr(), "tampu: {text}");
            return;
        };
        alert!(log, "{text}"; worker = report.worker);
        if report.consequence == Consequence::EndProcess {
            log.flush(Duration::from_secs(1));
        }
    });
}

/// Returns the bus name of a part of this hub.
fn name_of(part: &str) -> String {
    format!("{part}@{}", host_name())
}

/// Starts the keeper of the log rings of this host's processes.
fn keep_rings(dir: &DomainDir, participant: Participant, logger: Logger) -> Result<RingKeeper, HubError> {
    let tell = move |path: &Path, news: News| match news {
        News::Recovered(recovered) if recovered.damage.is_empty() => {
            info!(logger, "{} died; {} records recovered from its log rings", recovered.source, recovered.records);
        }
        News::Recovered(recovered) => {
            warning!(logger, "{} died; {} records recovered from its log rings, not all", recovered.source, recovered.records; damage = recovered.damage.join("; "));
        }
        News::NotRecovered(why) => warning!(logger, "log rings in {} are not recovered: {why}", path.display()),
        News::Adopted { source, incarnation } => {
            info!(logger, "{source} (process {}) does not drain its log rings; the node does", incarnation.pid);
        }
        News::NotAdopted(why) => warning!(logger, "the log rings in {} cannot be drained: {why}", path.display()),
    };
    RingKeeper::start(participant, dir.log_rings(), tell).map_err(HubError::Log)
}

/// Starts the spool. Without one the hub still runs, and logs it.
fn start_spool(config: &Config, participant: Participant, logger: &Logger) -> Option<Arc<Spool>> {
    let options = SpoolOptions {
        per_source: config.spool.per_source_mb << 20,
        total: config.spool.total_mb << 20,
        after: Duration::from_millis(config.spool.after_ms),
        ..SpoolOptions::default()
    };
    let directory = config.spool_dir();
    let teller = logger.clone();
    match Spool::start(participant, &directory, options, move |news| tell_spool(&teller, news)) {
        Ok(spool) => Some(Arc::new(spool)),
        Err(error) => {
            warning!(logger, "the spool cannot be opened; records stay in the log rings while no collector runs: {error}");
            None
        }
    }
}

fn tell_spool(logger: &Logger, news: spool::News) {
    match news {
        spool::News::Began(why) => notice!(logger, "records of this host are spooled: {why}"),
        spool::News::Replayed { records, .. } => notice!(logger, "{records} spooled records are with the collector"),
        spool::News::Refused { source, records, bytes, why } => {
            warning!(logger, "{records} records from {source} not kept: {why}"; source = source.as_str(), records = records, bytes = bytes);
        }
        spool::News::Missed { source, what } => warning!(logger, "{what}"; source = source.as_str()),
        spool::News::Stuck(Some(why)) => alert!(logger, "the spool cannot be written: {why}"),
        spool::News::Stuck(None) => notice!(logger, "the spool is written again"),
        spool::News::Damaged(fault) => warning!(logger, "the spool: {}: {}", fault.file.display(), fault.what),
        spool::News::Failed(why) => warning!(logger, "the spool: {why}"),
    }
}

fn start_log(config: &Config, participant: Participant, access: Access) -> Result<Logger, HubError> {
    let mut settings = log_settings(config, participant.source());
    settings.rings = participant.log_rings();
    settings.access = access;
    let (config, source) = (config.clone(), participant.source().clone());
    settings.reread = Some(Reread::new(move || {
        let variable = |name: &str| std::env::var(name).ok();
        let read =
            Config::load(config.file.as_deref(), variable).map_err(|why| BadSettings::new("the hub's configuration", why))?;
        Ok(log_settings(&Config { log_flags: config.log_flags.clone(), ..read }, &source))
    }));
    Logger::on(participant, settings).map_err(HubError::Log)
}

/// Returns the settings of the hub's own log.
fn log_settings(config: &Config, source: &SourceName) -> LogSettings {
    let mut settings = LogSettings::isolated(config.domain.clone(), source.clone());
    let log = config.log_flags.clone().over(config.log.clone()).over(default_log());
    LogFile { log, logger: config.logger.clone() }.apply(&mut settings);
    settings
}

/// Starts the configured inputs, each as a source of its own.
fn start_inputs(
    config: &Config,
    participant: impl Fn(String) -> Result<Participant, HubError>,
    access: &Access,
) -> Result<Inputs, HubError> {
    let mut inputs = Inputs::default();
    let join = |name: &str| -> Result<(Participant, Logger), HubError> {
        let participant = participant(name_of(name))?;
        let mut settings = LogSettings::isolated(config.domain.clone(), participant.source().clone());
        settings.rings = participant.log_rings();
        settings.central = Threshold::From(Level::Trace);
        settings.queue_bytes = inputs::QUEUE;
        settings.full_wait = Duration::from_secs(1);
        settings.access = access.clone();
        let logger = Logger::on(participant.clone(), settings).map_err(HubError::Log)?;
        Ok((participant, logger))
    };
    if config.syslog.enabled {
        let (participant, logger) = join("syslog")?;
        inputs.syslog(&config.syslog, &participant, logger)?;
    }
    if config.epics.enabled {
        let (participant, logger) = join("epics")?;
        inputs.epics(&config.epics, &participant, logger)?;
    }
    Ok(inputs)
}

/// Starts the bridge to Tango. It retries where something is missing there; the hub does not wait for it.
fn start_tango(config: &Config, participant: &Participant, logger: Logger) -> Result<Bridge, BridgeError> {
    let database = config.tango.database(std::env::var("TANGO_HOST").ok());
    Bridge::start(participant, config.tango.clone(), database, move |news| {
        if news.is_trouble() {
            warning!(logger, "the bridge to Tango: {news}");
        } else {
            notice!(logger, "the bridge to Tango: {news}");
        }
    })
}

/// Serves metrics, if the configuration enables them.
fn start_metrics(config: &Config, subjects: Subjects) -> Result<Option<Server>, HubError> {
    let ListenAddress::At(address) = config.metrics.listen else { return Ok(None) };
    if !config.metrics.enabled {
        return Ok(None);
    }
    let page = Box::new(move || subjects.page());
    metrics::serve(address, page).map(Some).map_err(|why| HubError::Metrics { address, why })
}

fn process_config(config: &Config) -> Result<Settings, HubError> {
    let run_dir = config.run.clone().map_or_else(RunDir::from_env, RunDir::at);
    Ok(Settings::new(config.domain.clone(), run_dir))
}

fn node_config(config: &Config, process: &Settings) -> Result<NodeSettings, HubError> {
    let endpoints = |setting: &str, texts: &[String]| -> Result<Vec<Endpoint>, HubError> {
        let parse = |text: &String| {
            text.parse().map_err(|why: tampu_bus::connect::BadEndpoint| {
                ConfigError::Value { setting: setting.to_owned(), why: why.to_string() }.into()
            })
        };
        texts.iter().map(parse).collect()
    };
    let mut node = NodeSettings::new(process.clone());
    node.listen = endpoints("network.listen", &config.network.listen)?;
    node.connect = endpoints("network.connect", &config.network.connect)?;
    node.key = config.network.key_file.as_deref().map(read_key).transpose()?;
    Ok(node)
}

/// Reads the domain's key. A file that other users can read is an error.
fn read_key(path: &Path) -> Result<Key, HubError> {
    let wrong = |why: String| HubError::Key { path: path.to_owned(), why };
    let mode = fs::metadata(path).map_err(|error| wrong(error.to_string()))?.mode();
    if mode & 0o077 != 0 {
        return Err(wrong(format!("others may read it (mode {:o}); run chmod 600 on it", mode & 0o777)));
    }
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    Key::new(text.trim()).map_err(|error| wrong(error.to_string()))
}
