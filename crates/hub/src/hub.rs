//! A running hub: the start and the stop of its roles.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tampu_bulk::transfers::Transfers;
use tampu_bus::{
    BusError, Participant,
    access::Access,
    connect::{Endpoint, Key, Node, NodeError, NodeSettings, Settings},
    engine::{Engine, Guard},
    run_dir::RunDir,
};
use tampu_log::{
    LogSettings, Logger, Threshold, alert, info,
    logger::{BadSettings, Reread, config::LogFile},
    notice,
    recovery::RingKeeper,
    spool::Spool,
    warning,
};
use tampu_tango::{Bridge, BridgeError, SOURCE};
use tampu_tls::ServerCertificate;
use tampu_types::{Level, SourceName};
use tampu_workers::{Consequence, host::host_name};

use crate::{
    book::{self, Book},
    bulk,
    certificates::{self, CertificateWatch, CertificatesInUse, Https},
    collecting::Collecting,
    config::{Config, ConfigError, Role, default_log},
    history::EventHistory,
    http::server::Server,
    inputs::{self, InputReport, Inputs},
    listen::ListenAddress,
    memory::MemoryReturn,
    metrics::{self, Page, Subjects},
    part::HubPart,
    private,
    reread::{ChangingSettings, OwnFiles},
    roles::{self, RoleReport, RolesReport},
    rules::{PolicyWatch, Rules, audit},
    run_dir_watch::{Dependants, RunDirWatch},
    site,
    topic_keeper::{self, Given, Keeper, TopicKeeper},
};

pub use error::HubError;

use engine_warnings::report_engine_warnings;
use host_records::{keep_rings, start_spool};

mod announce;
mod engine_warnings;
mod error;
mod host_records;

/// A running hub. Dropping it ends it; [`Hub::stop`] ends it in order and reports.
pub struct Hub {
    // Fields are dropped in this order: writers first, the bus last.
    run_dir: Option<RunDirWatch>,
    metrics: Option<Server>,
    services: Vec<Guard>,
    book: Option<Book>,
    _certificates: Option<CertificateWatch>,
    tango: Option<Arc<Bridge>>,
    transfers: Option<Arc<Transfers>>,
    inputs: Arc<Inputs>,
    rings: Option<RingKeeper>,
    spool: Option<Arc<Spool>>,
    history: Option<EventHistory>,
    logger: Logger,
    /// The worker that returns freed memory to the system.
    _memory: MemoryReturn,
    /// The log for panics of worker threads during the hub's life.
    _panic_log: Arc<Logger>,
    /// The log of the engine's warnings, which reach it as long as it lives.
    _engine_log: Arc<Logger>,
    _policy: PolicyWatch,
    /// The settings of topics of this host, on a hub with a node.
    topics: Option<TopicKeeper>,
    /// Hears changes of criteria for the audit.
    _criteria: Option<Guard>,
    collecting: Option<Arc<Collecting>>,
    engine: Arc<dyn Engine>,
    node: Option<Arc<Node>>,
    /// The one part that this process runs; none if it runs all of them.
    part: Option<HubPart>,
    client: Settings,
    config: Config,
}

/// The roles that one process runs.
enum Process<'a> {
    /// All of them.
    Whole,
    /// One, of the hub with this name.
    One(HubPart, &'a str),
}

impl Process<'_> {
    fn part(&self) -> Option<HubPart> {
        match self {
            Process::Whole => None,
            Process::One(part, _) => Some(*part),
        }
    }

    /// Returns the bus name of the hub's own log.
    fn name(&self) -> String {
        match self {
            Process::Whole => name_of("hub"),
            Process::One(part, _) => name_of(&format!("hub-{part}")),
        }
    }
}

impl Hub {
    /// Starts all roles in this process; returns when they work.
    pub fn start(config: Config) -> Result<Hub, HubError> {
        let remarks = prepare(&config)?;
        let settings = Arc::new(OwnFiles::of(&config));
        Hub::start_process(config, &Process::Whole, &remarks, settings)
    }

    /// Starts one role in this process, for the supervisor of the hub of this name. The remarks are for the log. Without
    /// `settings`, the role reads changed settings itself.
    pub fn start_part(
        config: Config,
        part: HubPart,
        hub: &str,
        remarks: &[String],
        settings: Option<Arc<dyn ChangingSettings>>,
    ) -> Result<Hub, HubError> {
        let settings = settings.unwrap_or_else(|| Arc::new(OwnFiles::of(&config)));
        Hub::start_process(config, &Process::One(part, hub), remarks, settings)
    }

    fn start_process(
        config: Config,
        process: &Process<'_>,
        remarks: &[String],
        settings: Arc<dyn ChangingSettings>,
    ) -> Result<Hub, HubError> {
        let client = process_config(&config)?;
        let qos = topic_keeper::of_hub(&config)?;
        let parts = config.parts();
        let has = |part| process.part().map_or_else(|| parts.contains(&part), |own| own == part);
        let https = if has(HubPart::Book) { certificates::of_book(&config)? } else { Https::default() };
        let metrics_certificate = if has(HubPart::Metrics) { certificates::of_metrics(&config)? } else { None };
        let certificates = CertificatesInUse::new(&config, has(HubPart::Node), &https, metrics_certificate.as_ref());

        let rules = Arc::new(Rules::from(&config, settings.clone())?);
        let node = if has(HubPart::Node) {
            let settings = NodeSettings { policy: rules.policy(), ..node_config(&config, &client)? };
            Some(Arc::new(Node::start(settings)?))
        } else {
            None
        };
        let engine: Arc<dyn Engine> = match &node {
            Some(node) => {
                topic_keeper::publish_own(node, &config);
                node.engine()?
            }
            None => client.open()?,
        };
        let participant = |name: String| -> Result<Participant, HubError> {
            let source = SourceName::new(name).map_err(BusError::from)?;
            let participant = Participant::on(engine.clone(), config.domain.clone(), source, qos.clone())?;
            let rules = rules.clone();
            participant.on_refused_topic(move |host, topic| rules.refuse_topic(host, topic));
            Ok(participant)
        };
        let access = rules.access(&config, &client).map_err(NodeError::RunDir)?;
        let own = participant(process.name())?;
        let logger = start_log(&config, own.clone(), access.clone(), settings.clone())?;
        let panic_log = Arc::new(logger.clone());
        report_panics(&panic_log);
        let engine_log = Arc::new(logger.named(engine_warnings::ENGINE));
        report_engine_warnings(&engine_log);
        let memory = MemoryReturn::start().map_err(HubError::Memory)?;
        match process {
            Process::Whole => remarks.iter().for_each(|remark| warning!(logger, "{remark}")),
            Process::One(..) => remarks.iter().for_each(|remark| info!(logger, "{remark}")),
        }
        let watch = CertificateWatch::start(certificates.clone(), logger.clone()).map_err(HubError::Log)?;
        rules.audit.log_to(&logger);
        // One hub of an installation audits what other processes carry out.
        let criteria = if has(HubPart::Collector) { Some(audit::hear_criteria(&own, &access)?) } else { None };
        if let Some(node) = &node {
            let of_links = Arc::downgrade(node);
            rules.publish_in(node.dir().path(), move |policy| {
                if let Some(node) = of_links.upgrade() {
                    node.hold_to(policy);
                }
            });
            // A rule may name an address as the configuration writes it, or the one that a connection uses.
            let (rules, written) = (rules.clone(), config.network.listen.clone());
            node.admit_hosts(move |host, own| {
                let own = own.to_string();
                rules.refusal_of_host(host, written.iter().map(String::as_str).chain([own.as_str()]))
            });
        }
        let policy = PolicyWatch::start(rules.clone(), logger.clone()).map_err(HubError::Log)?;
        let topics = match &node {
            Some(node) => {
                let (node, participant, access) = (node.clone(), own.clone(), access.clone());
                let keeper = Keeper::open(&config, Given { node, participant, access, settings, logger: logger.clone() })?;
                Some(TopicKeeper::start(keeper).map_err(HubError::Log)?)
            }
            None => None,
        };
        let collecting = if has(HubPart::Collector) {
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
        let inputs =
            if has(HubPart::Inputs) { start_inputs(&config, participant, &access.without_audit())? } else { Inputs::default() };
        let inputs = Arc::new(inputs);
        let tango = if has(HubPart::Tango) {
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
        let subjects = Arc::new(Subjects {
            participant: own.clone(),
            part: process.part(),
            certificates,
            transfers: transfers.clone(),
            node: node.clone(),
            collecting: collecting.clone(),
            spool: spool.clone(),
            history: history.as_ref().map(|kept| kept.history().reporter()),
            inputs: inputs.clone(),
            tango: tango.clone(),
            mail: OnceLock::new(),
            book: OnceLock::new(),
            sources: config.metrics.sources,
        });
        let mut services = Vec::new();
        if let Some(node) = &node {
            services.push(site::serve_report(&own, node)?);
        }
        let roles = roles_of_this_process(parts.clone());
        let page: Page = match process {
            Process::Whole => {
                services.push(roles::serve_report(&own, roles.clone())?);
                let subjects = subjects.clone();
                Box::new(move || subjects.page() + &metrics::roles_page(&roles().roles))
            }
            Process::One(part, hub) => {
                let (hub, asker) = ((*hub).to_owned(), own.clone());
                if *part != HubPart::Metrics {
                    let subjects = subjects.clone();
                    services.push(metrics::serve_page(&own, &hub, move || subjects.page())?);
                }
                let subjects = subjects.clone();
                Box::new(move || metrics::whole_page(&asker, &hub, subjects.page()))
            }
        };
        let metrics = if has(HubPart::Metrics) { start_metrics(&config, metrics_certificate, page)? } else { None };
        let book = match process {
            _ if !has(HubPart::Book) => None,
            Process::Whole => start_book_if_possible(&config, https, &client, &logger, &rules)?,
            Process::One(..) => Some(start_book(&config, https, &client, &logger, &rules)?),
        };
        if let Some(mail) = book.as_ref().and_then(Book::mail) {
            let _ = subjects.mail.set(mail.clone());
        }
        if let Some(book) = &book {
            let _ = subjects.book.set(book.reporter());
        }
        let role_dir = match process {
            Process::One(part, _) if !matches!(part, HubPart::Node | HubPart::Collector) => {
                Some(client.run_dir.domain(&client.domain).map_err(NodeError::RunDir)?)
            }
            _ => None,
        };
        let dependants = Dependants {
            node: node.clone(),
            rules: rules.clone(),
            location: book.as_ref().and_then(Book::location),
            role_dir,
            has_supervisor: process.part().is_some(),
            logger: logger.clone(),
        };
        let hub = Hub {
            run_dir: Some(RunDirWatch::start(dependants).map_err(HubError::RunDirWatch)?),
            metrics,
            services,
            book,
            _certificates: watch,
            tango,
            transfers,
            inputs,
            rings,
            spool,
            history,
            logger,
            _memory: memory,
            _panic_log: panic_log,
            _engine_log: engine_log,
            _policy: policy,
            topics,
            _criteria: criteria,
            collecting,
            engine,
            node,
            part: process.part(),
            client,
            config,
        };
        hub.announce();
        Ok(hub)
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

    /// Logs that this role ends because a file of its own was replaced, which its sandbox cannot open.
    pub fn log_outdated(&self, file: &Path) {
        notice!(self.logger, "{} was replaced or removed: this role starts again to use the new one", file.display());
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
        match self.part {
            None => notice!(self.logger, "hub of domain '{}' stops", self.config.domain),
            Some(part) => info!(self.logger, "the role {part} stops"),
        }
        self.logger.flush(Duration::from_secs(1));
        let Hub { run_dir, metrics, services, book, tango, transfers, inputs, rings, spool, history, topics, .. } = &mut self;
        drop(run_dir.take());
        drop(metrics.take());
        services.clear();
        drop(book.take());
        drop(tango.take());
        drop(transfers.take());
        drop(std::mem::take(inputs));
        // It logs recoveries, so it ends before the log.
        drop(rings.take());
        drop(spool.take());
        drop(history.take());
        drop(topics.take());
        drop(self);
    }
}

/// Starts the logbook. With the default configuration, a hub whose logbook cannot start runs without it, and logs the
/// reason.
fn start_book_if_possible(
    config: &Config,
    https: Https,
    client: &Settings,
    logger: &Logger,
    rules: &Arc<Rules>,
) -> Result<Option<Book>, HubError> {
    match start_book(config, https, client, logger, rules) {
        Ok(book) => Ok(Some(book)),
        Err(HubError::Book(error)) if is_book_optional(config) => {
            alert!(logger, "the logbook cannot start, and the hub runs without it: {error}");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Returns true if a hub runs even if its logbook cannot start, because nobody asked for the logbook.
pub fn is_book_optional(config: &Config) -> bool {
    let has_defaults = config.book == book::settings::BookSettings::default() && config.mail.host.is_none();
    config.roles == Role::USUAL && has_defaults
}

fn start_book(config: &Config, https: Https, client: &Settings, logger: &Logger, rules: &Arc<Rules>) -> Result<Book, HubError> {
    let given = book::Given {
        settings: &config.book,
        mail: config.mail.host.is_some().then(|| (&config.mail, config.mail_dir())),
        domain: config.domain.as_str(),
        directory: config.book_dir(),
        https,
        run: client.run_dir.domain(&config.domain).map_err(NodeError::RunDir)?.path().to_owned(),
        host: host_name(),
        logger: logger.clone(),
        rules: rules.clone(),
    };
    Ok(Book::start(given)?)
}

/// Checks the configuration, and makes and closes the directories of data. Returns remarks for the log.
pub(crate) fn prepare(config: &Config) -> Result<Vec<String>, HubError> {
    config.check()?;
    topic_keeper::of_hub(config)?;
    Rules::of(config)?.check_doors(config)?;
    let has = |role| config.roles.contains(&role);
    if has(Role::Book) {
        certificates::of_book(config)?;
    }
    certificates::of_metrics(config)?;
    let mut remarks = private::close(config)?;
    remarks.extend(certificates::remarks(config));
    // The sandbox of the logbook's role names it, so it has to be there. Without it the hub has no rules to write.
    if let Some(directory) = config.policy_file().parent().filter(|_| config.access.policy.is_none() && has(Role::Book)) {
        let _ = fs::create_dir_all(directory);
    }
    if has(Role::Collector) || has(Role::Node) && config.spool.enabled && config.spool.dir.is_none() {
        check_data(&config.domain_data())?;
    }
    Ok(remarks)
}

/// Returns the state of roles that run in this process.
fn roles_of_this_process(parts: Vec<HubPart>) -> impl Fn() -> RolesReport + Clone + Send + Sync {
    move || {
        let pid = std::process::id();
        let report = |role: &HubPart| RoleReport { role: *role, pid: Some(pid), up: true, restarts: 0 };
        RolesReport { host: host_name(), pid, in_process: true, roles: parts.iter().map(report).collect() }
    }
}

pub(crate) fn access_of(config: &Config, client: &Settings) -> Result<Access, HubError> {
    Ok(Arc::new(Rules::of(config)?).access(config, client).map_err(NodeError::RunDir)?)
}

/// Creates the directory of the data, and checks that it can be written.
fn check_data(path: &Path) -> Result<(), HubError> {
    use rustix::fs::{Access, access};
    let checked = fs::create_dir_all(path).and_then(|()| Ok(access(path, Access::WRITE_OK)?));
    checked.map_err(|why| HubError::Data { path: path.to_owned(), why })
}

/// Reports panics of worker threads in the hub's log, or on standard error once the hub has ended.
pub(crate) fn report_panics(log: &Arc<Logger>) {
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
pub(crate) fn name_of(part: &str) -> String {
    format!("{part}@{}", host_name())
}

pub(crate) fn start_log(
    config: &Config,
    participant: Participant,
    access: Access,
    changing: Arc<dyn ChangingSettings>,
) -> Result<Logger, HubError> {
    let mut settings = log_settings(config, participant.source());
    settings.rings = participant.log_rings();
    settings.access = access;
    let (config, source) = (config.clone(), participant.source().clone());
    settings.reread = Some(Reread::new(move || {
        let LogFile { log, logger, .. } = changing.log().map_err(|why| BadSettings::new("the hub's configuration", why))?;
        Ok(log_settings(&Config { log, logger, ..config.clone() }, &source))
    }));
    Logger::on(participant, settings).map_err(HubError::Log)
}

/// Returns the settings of the hub's own log.
fn log_settings(config: &Config, source: &SourceName) -> LogSettings {
    let mut settings = LogSettings::isolated(config.domain.clone(), source.clone());
    let log = config.log_flags.clone().over(config.log.clone()).over(default_log());
    LogFile { log, logger: config.logger.clone(), topic: Vec::new() }.apply(&mut settings);
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
        // Senders wait, and nothing of theirs is lost on a host that is busy for a while.
        settings.full_wait = Duration::from_secs(10);
        settings.access = access.clone();
        let logger = Logger::on(participant.clone(), settings).map_err(HubError::Log)?;
        Ok((participant, logger))
    };
    if config.syslog.enabled {
        let (participant, logger) = join("syslog")?;
        inputs.syslog(&config.syslog, config.quota.of(participant.source()), &participant, logger)?;
    }
    if config.epics.enabled {
        let (participant, logger) = join("epics")?;
        inputs.epics(&config.epics, config.quota.of(participant.source()), &participant, logger)?;
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

/// Serves metrics, if the configuration has an address for them.
fn start_metrics(config: &Config, certificate: Option<Arc<ServerCertificate>>, page: Page) -> Result<Option<Server>, HubError> {
    let ListenAddress::At(address) = config.metrics.listen else { return Ok(None) };
    metrics::serve(address, &config.metrics.hosts, certificate, page).map(Some).map_err(|why| HubError::Metrics { address, why })
}

pub(crate) fn process_config(config: &Config) -> Result<Settings, HubError> {
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
    node.encryption = config.bus_encryption();
    node.relays.clone_from(&config.network.relays);
    node.key = config.network.key_file.as_deref().map(read_key).transpose()?;
    if let (Some(key), Some(path)) = (&node.key, &config.network.key_file) {
        for address in node.listen.iter().chain(&node.connect) {
            let Endpoint::Tcp(address) = address else { continue };
            let checked = node.encryption.check_key(key, address);
            checked.map_err(|why| HubError::Key { path: path.clone(), why: format!("{address}: {why}") })?;
        }
    }
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
