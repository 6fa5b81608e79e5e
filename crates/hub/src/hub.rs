//! A running hub: the start and the stop of its roles.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tampu_bus::{
    BusError, Participant,
    access::Verb,
    connect::{Node, NodeError, NodeSettings, Settings},
    engine::{Engine, Guard},
};
use tampu_log::{Logger, info, notice, recovery::RingKeeper, spool::Spool, warning};
use tampu_tango::{Bridge, SOURCE};
use tampu_types::SourceName;

use crate::{
    api::OnBus,
    book::Book,
    bulk::TransferHistory,
    certificates::{self, CertificateWatch, CertificatesInUse, Https},
    collecting::Collecting,
    config::Config,
    gateway::Gateway,
    history::EventHistory,
    http::server::Server,
    inputs::{InputReport, Inputs},
    memory::MemoryReturn,
    metrics::{self, Page, Subjects},
    part::HubPart,
    removal::{Archives, serve_removal},
    reread::{ChangingSettings, OwnFiles},
    roles,
    rules::{PolicyWatch, Rules, audit},
    run_dir_watch::{Dependants, RunDirWatch},
    setting_changes::{SettingChanges, SettingsWatch, Told},
    site,
    topic_keeper::{self, Given, Keeper, TopicKeeper},
};

pub use error::HubError;
pub use start_book::is_book_optional;

pub(crate) use own_log::{report_panics, start_log};
pub(crate) use prepare::prepare;
pub(crate) use process::{access_of, name_of, process_config};

use engine_warnings::report_engine_warnings;
use follow_changes::{follow_changes, follow_events};
use host_records::{keep_rings, start_spool};
use node_settings::node_config;
use process::{Process, roles_of_this_process};
use services::{start_gateway, start_inputs, start_metrics, start_tango};
use start_book::{start_book, start_book_if_possible};

mod announce;
mod engine_warnings;
mod error;
mod follow_changes;
mod host_records;
mod node_settings;
mod own_log;
mod prepare;
mod process;
mod services;
mod start_book;

/// A running hub. Dropping it ends it; [`Hub::stop`] ends it in order and reports.
pub struct Hub {
    // Fields are dropped in this order: writers first, the bus last.
    run_dir: Option<RunDirWatch>,
    metrics: Option<Server>,
    services: Vec<Guard>,
    book: Option<Book>,
    _certificates: Option<CertificateWatch>,
    gateway: Option<Gateway>,
    tango: Option<Arc<Bridge>>,
    transfers: Option<TransferHistory>,
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
    /// Watches the settings that can change, where a role of this process uses them.
    _settings: Option<SettingsWatch>,
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
        let changes = match process.part() {
            None | Some(HubPart::Collector | HubPart::Book) => Some(Arc::new(SettingChanges::open(&config)?)),
            _ => None,
        };
        let config = changes.as_ref().map_or(config, |changes| changes.in_force().config.clone());
        let qos = topic_keeper::of_hub(&config)?;
        let parts = config.parts();
        let has = |part| process.part().map_or_else(|| parts.contains(&part), |own| own == part);
        let https = if has(HubPart::Book) { certificates::of_book(&config)? } else { Https::default() };
        let metrics_certificate = if has(HubPart::Metrics) { certificates::of_metrics(&config)? } else { None };
        let gateway_certificate = if has(HubPart::Gateway) { certificates::of_gateway(&config)? } else { None };
        let served = [("metrics", &metrics_certificate), ("gateway", &gateway_certificate)];
        let certificates = CertificatesInUse::new(&config, has(HubPart::Node), &https, served);

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
        // The logbook's process audits changed settings: it knows who asked. Without it, persons change the file by hand.
        if let Some(changes) = changes.as_ref().filter(|_| has(HubPart::Book) || !parts.contains(&HubPart::Book)) {
            let rules = rules.clone();
            changes.audit_to(move |Told { by, from, setting, values }| {
                rules.audit.done(by, Verb::Admin, &format!("setting {setting}"), from, values);
            });
        }
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
        let gateway = if has(HubPart::Gateway) {
            let directory = client.run_dir.domain(&client.domain).map_err(NodeError::RunDir)?;
            Some(start_gateway(
                &config,
                &engine,
                &qos,
                participant(name_of("gateway"))?,
                &access,
                directory.path(),
                gateway_certificate,
            )?)
        } else {
            None
        };
        // Only the hub with the archive keeps this account; an installation needs only one.
        let transfers = match &collecting {
            Some(_) => Some(TransferHistory::start(&config, &own, access.clone(), logger.clone())?),
            None => None,
        };
        if let (Some(changes), Some(collecting)) = (&changes, &collecting) {
            let events = history.as_ref().map(|kept| kept.history().archive());
            let tables = events.into_iter().chain(transfers.as_ref().map(|kept| kept.transfers.archive()));
            follow_changes(changes, collecting, tables);
            if let Some(kept) = &history {
                follow_events(changes, kept.history().settings());
            }
        }
        let subjects = Arc::new(Subjects {
            participant: own.clone(),
            part: process.part(),
            certificates,
            transfers: transfers.as_ref().map(|kept| kept.transfers.clone()),
            node: node.clone(),
            collecting: collecting.clone(),
            spool: spool.clone(),
            history: history.as_ref().map(|kept| kept.history().reporter()),
            inputs: inputs.clone(),
            tango: tango.clone(),
            gateway: gateway.as_ref().map(Gateway::reporter),
            mail: OnceLock::new(),
            book: OnceLock::new(),
            sources: config.metrics.sources,
        });
        let hub_name = match process {
            Process::Whole => own.incarnation().to_string(),
            Process::One(_, hub) => (*hub).to_owned(),
        };
        let mut services = Vec::new();
        if let Some(logs) = &collecting {
            let events = history.as_ref().map(|kept| kept.history().archive().clone());
            let transfers = transfers.as_ref().map(|kept| kept.transfers.archive().clone());
            services.push(serve_removal(&own, &access, &hub_name, Archives { logs: logs.clone(), events, transfers })?);
        }
        if let Some(node) = &node {
            services.push(site::serve_report(&own, node, config.domain_data())?);
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
        let bus = OnBus { participant: own.clone(), hub: hub_name, access: access.clone() };
        let book = match process {
            _ if !has(HubPart::Book) => None,
            Process::Whole => start_book_if_possible(&config, &changes, https, &client, &logger, &rules, bus)?,
            Process::One(..) => Some(start_book(&config, &changes, https, &client, &logger, &rules, bus)?),
        };
        if let Some(mail) = book.as_ref().and_then(Book::mail) {
            let _ = subjects.mail.set(mail.clone());
        }
        if let Some(book) = &book {
            let _ = subjects.book.set(book.reporter());
        }
        let settings_watch = changes.map(|changes| changes.watch(Some(logger.clone())).map_err(HubError::Log)).transpose()?;
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
            gateway,
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
            _settings: settings_watch,
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
        let Hub { run_dir, metrics, services, book, gateway, tango, transfers, inputs, rings, spool, history, topics, .. } =
            &mut self;
        drop(run_dir.take());
        drop(metrics.take());
        services.clear();
        drop(book.take());
        drop(gateway.take());
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
