//! The supervisor: `tampu up` starts a hub's roles as processes of their own, and restarts them.
//!
//! ```text
//! tampu up ---> tampu role node         first; the others join its bus
//!          |--> tampu role collector
//!          |--> tampu role book         in a sandbox, as inputs and metrics
//!          '--> tampu role inputs, tango, metrics     where the configuration enables them
//! ```
//! The promise: the collector keeps records whatever the logbook, an input or the page for Prometheus is made to do.
//! The supervisor itself reads nothing from outside. The decision is `spec/decisions/0016-roles.md`.
//!
//! | subject | module |
//! |-|-|
//! | one role: process, restarts, end | `role` |
//! | messages to and from a role's process | [`handover`] |
//! | pauses between restarts | `backoff` |
//! | memory limits by cgroup | `cgroup` |

use std::{
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tampu_bus::{
    Participant,
    connect::Settings,
    engine::{Engine, Guard},
};
use tampu_log::{Logger, info, notice, warning};
use tampu_types::{SourceName, units::duration_text};
use tampu_workers::host::host_name;

use crate::{
    book::{self, settings::PORT},
    config::Config,
    hub::{self, HubError},
    limits::host_memory,
    metrics,
    part::HubPart,
    reread::OwnFiles,
    roles::{self, RoleReport, RolesReport},
    setting_changes::{SettingChanges, SettingsWatch},
    topic_keeper,
};

use cgroup::Cgroup;
use handover::{BookStart, Handover, StartFailure, StartReport};
use role::{Means, RoleEvent, SupervisedRole, Tell};

mod backoff;
mod cgroup;
pub mod handover;
mod role;

/// This program. Its file may have been replaced by another release meanwhile; the kernel knows the one that runs.
const THIS_PROGRAM: &str = "/proc/self/exe";
/// Time that roles have for an orderly end. Records are safe without it.
const END: Duration = Duration::from_secs(30);
/// Period of the check whether the start was interrupted.
const LOOK: Duration = Duration::from_millis(100);

/// Errors of starting a hub of several processes.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    /// The hub cannot start.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// A role cannot start.
    #[error("{}", .0.text)]
    Role(StartFailure),
    /// The process of a role cannot be started.
    #[error("the role {part}: {why}")]
    Process {
        /// The role that has no process.
        part: HubPart,
        /// The system's reason.
        why: io::Error,
    },
    /// The user ended the hub before it was up.
    #[error("interrupted")]
    Interrupted,
}

type Reporters = Arc<Mutex<Vec<Box<dyn Fn() -> RoleReport + Send + Sync>>>>;

/// A running hub of several processes. Dropping it kills them; [`Supervisor::stop`] ends them in order.
pub struct Supervisor {
    // Fields are dropped in this order: services first, the bus last.
    services: Vec<Guard>,
    log: Arc<Mutex<Option<Logger>>>,
    /// The log for panics of worker threads during the hub's life.
    panic_log: Option<Arc<Logger>>,
    engine: Option<Arc<dyn Engine>>,
    roles: Vec<SupervisedRole>,
    reporters: Reporters,
    report: StartReport,
    /// The changed settings, for roles that start again.
    changes: Arc<SettingChanges>,
    _settings: SettingsWatch,
    hub: String,
    config: Config,
    client: Settings,
}

impl Supervisor {
    /// Starts all roles; returns when they work. `demo` gives the logbook entries of a night. `is_interrupted` is asked
    /// meanwhile.
    pub fn start(config: Config, demo: bool, is_interrupted: impl Fn() -> bool) -> Result<Supervisor, SupervisorError> {
        let remarks = hub::prepare(&config)?;
        let client = hub::process_config(&config)?;
        let parts = config.parts();
        let changes = Arc::new(SettingChanges::open(&config).map_err(HubError::from)?);
        let mut supervisor = Supervisor {
            services: Vec::new(),
            log: Arc::default(),
            panic_log: None,
            engine: None,
            roles: Vec::new(),
            reporters: Arc::default(),
            report: StartReport::default(),
            // The collector logs faults of the file.
            _settings: changes.clone().watch(None).map_err(HubError::Log)?,
            changes,
            // The incarnation is unique to this process.
            hub: tampu_bus::host::incarnation().to_string(),
            config,
            client,
        };
        match supervisor.start_roles(&parts, demo, &is_interrupted) {
            Ok(cgroup) => {
                supervisor.announce(&remarks, cgroup);
                Ok(supervisor)
            }
            Err(error) => {
                supervisor.end_roles();
                Err(error)
            }
        }
    }

    /// Starts the roles stage by stage. Returns why there are no cgroups.
    fn start_roles(
        &mut self,
        parts: &[HubPart],
        demo: bool,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<String>, SupervisorError> {
        let memory = |part: HubPart| self.config.limits.of(part).memory.bytes(host_memory());
        let (cgroup, why) = match parts.iter().any(|part| memory(*part).is_some()).then(Cgroup::divide) {
            Some(Ok(cgroup)) => (Some(Arc::new(cgroup)), None),
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        let limits: Vec<Option<u64>> = parts.iter().map(|part| memory(*part)).collect();
        if !parts.contains(&HubPart::Node) {
            self.join()?;
        }
        for stage in 0..=HubPart::LAST_STAGE {
            let first = self.roles.len();
            for (part, memory) in parts.iter().zip(&limits).filter(|(part, _)| part.stage() == stage) {
                let means = Means {
                    program: PathBuf::from(THIS_PROGRAM),
                    handover: Handover::new(&self.config, *part, &self.hub, demo, false),
                    changes: self.changes.clone(),
                    cgroup: cgroup.clone().zip(*memory),
                    tell: teller(self.log.clone()),
                };
                let role = SupervisedRole::start(means).map_err(|why| SupervisorError::Process { part: *part, why })?;
                self.reporters.lock().push(Box::new(role.reporter()));
                self.roles.push(role);
            }
            for role in &self.roles[first..] {
                let started = loop {
                    match role.await_start(LOOK) {
                        Some(started) => break started,
                        None if is_interrupted() => return Err(SupervisorError::Interrupted),
                        None => {}
                    }
                };
                match started {
                    Ok(report) => {
                        self.report.addresses.extend(report.addresses);
                        self.report.book = self.report.book.take().or_else(|| report.book.map(|book| self.named(book)));
                    }
                    Err(failure) if failure.optional => {}
                    Err(failure) => return Err(SupervisorError::Role(failure)),
                }
            }
            if stage == 0 && self.engine.is_none() {
                self.join()?;
            }
        }
        Ok(why)
    }

    /// Names the hub that has the logbook's default port. The logbook itself cannot read the files of other hubs.
    fn named(&self, book: BookStart) -> BookStart {
        let run = self.client.run_dir.domain(&self.config.domain).ok().filter(|_| book.port_holder.is_some());
        let port_holder = run.map(|run| book::holder_of(PORT, run.path()));
        BookStart { port_holder, ..book }
    }

    /// Joins the bus, for the hub's log and the services of the roles.
    fn join(&mut self) -> Result<(), SupervisorError> {
        let engine = self.client.open().map_err(HubError::from)?;
        let source = SourceName::new(hub::name_of("hub")).map_err(|why| HubError::Bus(why.into()))?;
        let qos = topic_keeper::of_hub(&self.config).map_err(HubError::from)?;
        let participant = Participant::on(engine.clone(), self.config.domain.clone(), source, qos).map_err(HubError::from)?;
        let access = hub::access_of(&self.config, &self.client)?;
        let logger = hub::start_log(&self.config, participant.clone(), access, Arc::new(OwnFiles::of(&self.config)))?;
        let panic_log = Arc::new(logger.clone());
        hub::report_panics(&panic_log);
        self.panic_log = Some(panic_log);
        *self.log.lock() = Some(logger);
        let of_service = self.reporters.clone();
        let report = move || RolesReport {
            host: host_name(),
            pid: std::process::id(),
            in_process: false,
            roles: of_service.lock().iter().map(|report| report()).collect(),
        };
        let page = report.clone();
        self.services.push(roles::serve_report(&participant, report).map_err(HubError::from)?);
        let page = metrics::serve_page(&participant, &self.hub, move || metrics::roles_page(&page().roles));
        self.services.push(page.map_err(HubError::from)?);
        self.engine = Some(engine);
        Ok(())
    }

    fn announce(&self, remarks: &[String], no_cgroup: Option<String>) {
        let log = self.log.lock();
        let Some(logger) = &*log else { return };
        remarks.iter().for_each(|remark| warning!(logger, "{remark}"));
        let roles: Vec<&str> = self.config.roles.iter().map(|role| role.name()).collect();
        notice!(logger, "hub of domain '{}' is up: {}", self.config.domain, roles.join(", "); pid = std::process::id());
        if let Some(remark) = self.client.run_dir.remark() {
            warning!(logger, "{remark}");
        }
        if let Some(why) = no_cgroup {
            info!(logger, "rlimits, and not cgroups, limit the memory of the roles: {why}");
        }
    }

    /// Returns the bus configuration of a process that connects to this hub.
    pub fn client_settings(&self) -> &Settings {
        &self.client
    }

    /// Returns an engine on the hub's bus.
    pub fn engine(&self) -> Option<&Arc<dyn Engine>> {
        self.engine.as_ref()
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the addresses that the roles reported.
    pub fn report(&self) -> &StartReport {
        &self.report
    }

    /// Shuts down in order: the book, inputs and metrics, then the collector, then the node.
    pub fn stop(mut self) {
        if let Some(logger) = &*self.log.lock() {
            notice!(logger, "hub of domain '{}' stops", self.config.domain);
            logger.flush(Duration::from_secs(1));
        }
        self.end_roles();
    }

    fn end_roles(&mut self) {
        self.end(|part| !matches!(part, HubPart::Node | HubPart::Collector));
        // The collector still keeps the last records of this log.
        self.services.clear();
        self.panic_log = None;
        drop(self.log.lock().take());
        self.end(|part| part == HubPart::Collector);
        self.engine = None;
        self.end(|part| part == HubPart::Node);
    }

    fn end(&self, which: impl Fn(HubPart) -> bool) {
        let ending: Vec<&SupervisedRole> = self.roles.iter().filter(|role| which(role.part())).collect();
        ending.iter().for_each(|role| role.ask_to_end());
        let until = Instant::now() + END;
        for role in ending {
            if !role.await_end(until) {
                say(&self.log.lock(), &format!("the role {} does not end within {END:?} and is killed", role.part()));
                role.kill();
            }
        }
    }
}

/// Logs a warning. Before the bus is joined, and after it is left, the warning goes to standard error.
fn say(log: &Option<Logger>, text: &str) {
    match log {
        Some(logger) => warning!(logger, "{text}"),
        // Standard error may be closed.
        None => drop(writeln!(io::stderr(), "tampu: {text}")),
    }
}

fn teller(log: Arc<Mutex<Option<Logger>>>) -> Tell {
    Arc::new(move |part, event| {
        let log = log.lock();
        match event {
            RoleEvent::Ended { pid, how, pause } => {
                say(&log, &format!("the role {part} (process {pid}) {how}; it starts again {}", when(pause)));
            }
            RoleEvent::NotStarted { why, pause } => {
                say(&log, &format!("the role {part} cannot start: {why}; it is tried again {}", when(pause)));
            }
            RoleEvent::Unlimited { why } => say(&log, &format!("no cgroup limits the memory of the role {part}: {why}")),
            RoleEvent::Back { pid } => {
                if let Some(logger) = &*log {
                    notice!(logger, "the role {part} works again"; pid = pid);
                }
            }
        }
    })
}

fn when(pause: Duration) -> String {
    if pause.is_zero() { "at once".to_owned() } else { format!("in {}", duration_text(pause)) }
}
