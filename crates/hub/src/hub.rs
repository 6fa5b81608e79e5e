//! A hub at work.

use std::{
    fs, io,
    net::SocketAddr,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tampu_bus::{
    BusError, Participant, QosTable,
    access::{Access, Denied},
    engine::{
        Engine, EngineError,
        zenoh::{
            ZenohEngine,
            config::{Endpoint, Key, ZenohConfig},
            node::{Node, NodeConfig, NodeError},
        },
    },
    run_dir::{DomainDir, RunDir},
};
use tampu_log::{
    LogSettings, Logger, Threshold, alert, info,
    logger::{BadSettings, Reread, config::LogFile},
    notice,
    recovery::{News, RingKeeper},
    spool::{self, Spool, SpoolOptions},
    warning,
};
use tampu_types::{Level, SourceName};

use crate::{
    book::{self, Book, BookError},
    bulk::{Transfers, TransfersError},
    collecting::{Collecting, CollectingError},
    config::{Config, ConfigError, Role, default_log},
    history::{self, History, HistoryError},
    inputs::{self, InputError, InputReport, Inputs, settings::Door},
    metrics::{Server, Subjects},
    rules::Rules,
    tango::{Bridge, BridgeError, SOURCE},
};

/// A running hub. Dropping it ends it; [`Hub::stop`] says how that went.
pub struct Hub {
    // Fields are dropped in this order: what writes first, what carries it last.
    metrics: Option<Server>,
    book: Option<Book>,
    tango: Option<Arc<Bridge>>,
    transfers: Option<Arc<Transfers>>,
    inputs: Arc<Inputs>,
    rings: Option<RingKeeper>,
    spool: Option<Arc<Spool>>,
    history: Option<History>,
    logger: Logger,
    collecting: Option<Arc<Collecting>>,
    engine: Arc<dyn Engine>,
    node: Option<Arc<Node>>,
    client: ZenohConfig,
    config: Config,
}

/// Why a hub does not start.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// It was told something impossible.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The rules say no.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The domain's key cannot be used.
    #[error("the key file {path}: {why}")]
    Key {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The node.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The bus.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The collector.
    #[error(transparent)]
    Collecting(#[from] CollectingError),
    /// The history of events.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// Logs of other programs cannot be taken in.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The bridge to Tango cannot work.
    #[error(transparent)]
    Tango(#[from] BridgeError),
    /// There is no place for its metrics.
    #[error("metrics cannot be served at {address}: {why}")]
    Metrics {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        why: io::Error,
    },
    /// The logbook.
    #[error(transparent)]
    Book(#[from] BookError),
    /// Bulk transfers cannot be listened to.
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

        let node = if has(Role::Node) { Some(Arc::new(Node::start(node_config(&config, &client)?)?)) } else { None };
        let engine: Arc<dyn Engine> = match &node {
            Some(node) => node.engine()?,
            None => Arc::new(ZenohEngine::open(client.clone())?),
        };
        let participant = |name: String| -> Result<Participant, HubError> {
            let source = SourceName::new(name).map_err(BusError::from)?;
            Ok(Participant::on(engine.clone(), config.domain.clone(), source, qos.clone())?)
        };
        let access = rules.access(&config, &client).map_err(NodeError::RunDir)?;
        let own = participant(name_of("hub"))?;
        let logger = start_log(&config, own.clone(), access.clone())?;
        let collecting = if has(Role::Collector) {
            Some(Arc::new(Collecting::start(&config, participant(name_of("collector"))?, access.clone(), logger.clone())?))
        } else {
            None
        };

        let history = match &collecting {
            Some(_) if config.events.history => Some(History::start(
                &config.events,
                &config.domain_data().join(history::DIRECTORY),
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
        // Last, so that somebody keeps what they take in.
        let inputs = Arc::new(start_inputs(&config, participant, &access)?);
        let tango = if config.tango.enabled {
            let participant = participant(format!("{SOURCE}{}", config.tango.instance()))?;
            Some(Arc::new(start_tango(&config, &participant, logger.clone())?))
        } else {
            None
        };
        // With the archive: one hub of an installation has it, and one account is enough.
        let transfers = match &collecting {
            Some(_) => Some(Arc::new(Transfers::start(&own, logger.clone())?)),
            None => None,
        };
        let subjects = Subjects {
            participant: own,
            transfers: transfers.clone(),
            node: node.clone(),
            collecting: collecting.clone(),
            spool: spool.clone(),
            history: history.as_ref().map(History::reporter),
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
                    "removed what dead processes left: {} sockets, {} rings, {} bytes", left.sockets, left.rings, left.bytes
                );
            }
        }
        if let Some(collecting) = &self.collecting {
            let (records, faults) = collecting.found();
            info!(self.logger, "records are kept in {}", collecting.directory().display(); records = records);
            faults.iter().for_each(|fault| warning!(self.logger, "the archive: {fault}"));
        }
        if let Some(history) = &self.history {
            let (records, faults) = history.found();
            info!(self.logger, "events are kept in {}", history.directory().display(); records = records);
            faults.iter().for_each(|fault| warning!(self.logger, "the events' archive: {fault}"));
        }
        for address in self.inputs.addresses() {
            info!(self.logger, "taking in {address}"; address = address.as_str());
        }
        if let Some(metrics) = &self.metrics {
            info!(self.logger, "metrics are at http://{}/metrics", metrics.address(); address = metrics.address().to_string());
        }
        if let Some(book) = &self.book {
            info!(self.logger, "the logbook is kept in {}", book.kept_in());
            if let Some(url) = book.url() {
                info!(self.logger, "the logbook's API is at {url}{}", book::api::BASE; address = url.as_str());
            }
            if book.is_elsewhere() {
                notice!(self.logger, "the port {} is taken: the logbook has another one", book::settings::PORT);
            }
        }
        let config = &self.config;
        for (input, door) in [("syslog", config.syslog.udp), ("syslog", config.syslog.tcp), ("epics", config.epics.listen)] {
            let on = if input == "epics" { config.epics.enabled } else { config.syslog.enabled };
            if let Some(address) = door.beyond_this_host().filter(|_| on) {
                notice!(self.logger, "whoever reaches {address} may write into the log: {input} knows no keys");
            }
        }
    }

    /// What a process needs to find this hub.
    pub fn client_config(&self) -> &ZenohConfig {
        &self.client
    }

    /// The bus as this hub uses it.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// What it was told.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The network addresses it listens at.
    pub fn addresses(&self) -> Vec<String> {
        self.node.as_deref().map(Node::addresses).unwrap_or_default()
    }

    /// Where logs of other programs are taken in, as `syslog udp 127.0.0.1:5514`.
    pub fn inputs(&self) -> Vec<String> {
        self.inputs.addresses()
    }

    /// The logbook, if this hub keeps one.
    pub fn book(&self) -> Option<&Book> {
        self.book.as_ref()
    }

    /// What the inputs have counted.
    pub fn input_reports(&self) -> Vec<InputReport> {
        self.inputs.reports()
    }

    /// Where records are kept, if it collects.
    pub fn data(&self) -> Option<&Path> {
        self.collecting.as_deref().map(Collecting::directory)
    }

    /// Ends in order: what was received is committed, what was logged goes out.
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
        // Before the log it tells of recoveries in.
        drop(rings.take());
        drop(spool.take());
        drop(history.take());
        drop(self);
    }
}

/// Serves the logbook. A hub that was not told to have one is still a hub where it cannot, and says so.
fn start_book(config: &Config, client: &ZenohConfig, logger: &Logger) -> Result<Option<Book>, HubError> {
    let run = client.run_dir.domain(&config.domain).map_err(NodeError::RunDir)?.path().to_owned();
    let given = book::Given {
        settings: &config.book,
        domain: config.domain.as_str(),
        directory: config.book_dir(),
        run,
        host: host(),
        logger: logger.clone(),
    };
    match Book::start(given) {
        Ok(book) => Ok(Some(book)),
        Err(error) if config.roles == Role::USUAL && config.book == book::settings::BookSettings::default() => {
            alert!(logger, "there is no logbook: {error}");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// The name of a part of this hub on the bus.
fn name_of(part: &str) -> String {
    format!("{part}@{}", host())
}

/// Looks after the log rings of this host's processes.
fn keep_rings(dir: &DomainDir, participant: Participant, logger: Logger) -> Result<RingKeeper, HubError> {
    let tell = move |path: &Path, news: News| match news {
        News::Recovered(recovered) if recovered.damage.is_empty() => {
            info!(logger, "{} died; {} records recovered from its log rings", recovered.source, recovered.records);
        }
        News::Recovered(recovered) => {
            warning!(logger, "{} died; {} records recovered from its log rings, not all", recovered.source, recovered.records; damage = recovered.damage.join("; "));
        }
        News::NotRecovered(why) => warning!(logger, "log rings wait in {}: {why}", path.display()),
        News::Adopted { source, incarnation } => {
            info!(logger, "{source} (process {}) has nobody who drains its log rings; that is done here", incarnation.pid);
        }
        News::NotAdopted(why) => warning!(logger, "nobody drains the log rings in {}: {why}", path.display()),
    };
    RingKeeper::start(participant, dir.log_rings(), tell).map_err(HubError::Log)
}

/// Keeps this host's records while no collector does. A hub that cannot do so is still a hub, and says so.
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
            warning!(logger, "there is no spool: while no collector is there, records stay in the log rings: {error}");
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

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
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

/// What a configuration says of the hub's own log.
fn log_settings(config: &Config, source: &SourceName) -> LogSettings {
    let mut settings = LogSettings::isolated(config.domain.clone(), source.clone());
    let log = config.log_flags.clone().over(config.log.clone()).over(default_log());
    LogFile { log, logger: config.logger.clone() }.apply(&mut settings);
    settings
}

/// Starts what the configuration wants taken in, each input a source of its own.
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

/// Carries events from and to Tango. What is missing there is told and tried again: a hub does not wait for it.
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

/// Serves metrics, if the configuration wants them served.
fn start_metrics(config: &Config, subjects: Subjects) -> Result<Option<Server>, HubError> {
    let Door::At(address) = config.metrics.listen else { return Ok(None) };
    if !config.metrics.enabled {
        return Ok(None);
    }
    let page = Arc::new(move || subjects.page());
    Server::start(address, page).map(Some).map_err(|why| HubError::Metrics { address, why })
}

fn process_config(config: &Config) -> Result<ZenohConfig, HubError> {
    let run_dir = config.run.clone().map_or_else(RunDir::from_env, RunDir::at);
    Ok(ZenohConfig::new(config.domain.clone(), run_dir))
}

fn node_config(config: &Config, process: &ZenohConfig) -> Result<NodeConfig, HubError> {
    let endpoints = |setting: &str, texts: &[String]| -> Result<Vec<Endpoint>, HubError> {
        let parse = |text: &String| {
            text.parse().map_err(|why: tampu_bus::engine::zenoh::config::BadEndpoint| {
                ConfigError::Value { setting: setting.to_owned(), why: why.to_string() }.into()
            })
        };
        texts.iter().map(parse).collect()
    };
    let mut node = NodeConfig::new(process.clone());
    node.listen = endpoints("network.listen", &config.network.listen)?;
    node.connect = endpoints("network.connect", &config.network.connect)?;
    node.key = config.network.key_file.as_deref().map(read_key).transpose()?;
    Ok(node)
}

/// Reads the domain's key; a file that others can read holds no secret.
fn read_key(path: &Path) -> Result<Key, HubError> {
    let wrong = |why: String| HubError::Key { path: path.to_owned(), why };
    let mode = fs::metadata(path).map_err(|error| wrong(error.to_string()))?.mode();
    if mode & 0o077 != 0 {
        return Err(wrong(format!("others may read it (mode {:o}); run chmod 600 on it", mode & 0o777)));
    }
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    Key::new(text.trim()).map_err(|error| wrong(error.to_string()))
}
