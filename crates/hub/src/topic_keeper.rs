//! The settings of topics of all hubs, `[[topic]]`, for the processes of this host.
//!
//! A hub with a node publishes its settings on the topic `site/qos`, and reads those of the other hubs. It writes all of
//! them into the run-time directory, where the processes of the host find them ([`tampu_bus::topic_settings`]). The hub
//! reads a changed configuration file within a second. A broken one keeps the settings as they are, and the log names its
//! line.
//!
//! Another hub's settings hold if its host may `admin` the topic `site/qos` by the rules of this host, or if this node
//! connects to that host. They hold as long as this hub runs or until they are replaced: while another hub is updated, its
//! settings stay in force here. A hub that starts has its own alone, and so have the processes of its host until those of
//! the others arrive, in the first seconds.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tampu_bus::{
    Alarm, BusError, Event, History, Participant, Qos, QosPatch, QosTable, Reader, ReaderQos, StreamInfo, Subject, Writer,
    access::{Access, PeriodLimit, Resource, Verb},
    connect::Node,
    topic_settings::{BadHubSettings, HeardHubs, HubSettings, SITE_QOS, SITE_QOS_TYPE, SiteSettings, publish_settings},
};
use tampu_log::{Logger, error, info, warning};
use tampu_types::{Incarnation, Partition, PartitionFilter, TopicFilter, TopicName};
use tampu_workers::{WorkerThread, host::host_name};

use crate::{
    config::{Config, ConfigError, Role},
    file_stamp::{Stamp, stamp},
    reread::ChangingSettings,
};

/// Period of the look at the configuration file, the rules and the run-time directory.
const LOOK: Duration = Duration::from_millis(500);
/// Pause of the worker after a panic.
const RESTART: Duration = Duration::from_secs(1);
/// Events between two looks at most, so that a fast sender does not hinder them.
const EVENTS: usize = 64;

/// Keeps the settings of topics of this host. Dropping it ends that.
pub(crate) struct TopicKeeper {
    ending: Arc<AtomicBool>,
    alarm: Alarm,
    worker: Option<JoinHandle<()>>,
}

/// Everything that the keeper needs.
pub(crate) struct Given {
    pub node: Arc<Node>,
    pub participant: Participant,
    pub access: Access,
    pub settings: Arc<dyn ChangingSettings>,
    pub logger: Logger,
}

/// Checks the settings of topics, and returns those that hold in the hub's own processes alone. A hub with a node gives its
/// settings to all processes of the host, and its own find them there too.
pub(crate) fn of_hub(config: &Config) -> Result<QosTable, ConfigError> {
    let place = config.file.as_ref().map_or("the hub's configuration".to_owned(), |file| file.display().to_string());
    let table = QosTable::from_place(&place, config.topic.clone());
    let table =
        table.map_err(|(number, why)| ConfigError::Value { setting: format!("[[topic]] {number}"), why: why.to_string() })?;
    Ok(if config.roles.contains(&Role::Node) { QosTable::default() } else { table })
}

/// Returns the settings of this hub.
fn own(topic: Vec<QosPatch>) -> HubSettings {
    HubSettings { hub: format!("hub@{}", host_name()), topic, others: Vec::new() }
}

/// Writes the settings of this hub for the processes that start before those of other hubs are known. Until then they hold
/// alone, also for processes that are older than the hub.
pub(crate) fn publish_own(node: &Node, config: &Config) {
    // An error is a full run-time directory, which stops more than this.
    let _ = publish_settings(node.dir().path(), &SiteSettings { hubs: vec![own(config.topic.clone())] });
}

impl Keeper {
    /// Publishes the settings of this hub.
    pub(crate) fn open(config: &Config, given: Given) -> Result<Keeper, BusError> {
        let (topic, partition) = (TopicName::new(SITE_QOS)?, Partition::everybody());
        let subject = Subject::new(&topic, &partition);
        let writer = given.participant.writer_for(&subject, SITE_QOS_TYPE, Qos { keep: 1 << 20, ..Qos::default() })?;
        let qos = ReaderQos { history: History::Last(1), ..ReaderQos::default() };
        let reader = given.participant.reader(&TopicFilter::new(SITE_QOS)?, &PartitionFilter::All, qos)?;
        let file = config.file.clone();
        let mut keeper = Keeper {
            file,
            seen: None,
            said: None,
            own: own(config.topic.clone()),
            heard: HeardHubs::default(),
            warned: PeriodLimit::of(1),
            written: SiteSettings::default(),
            writer,
            reader,
            ending: Arc::default(),
            given,
        };
        keeper.send();
        keeper.write();
        Ok(keeper)
    }
}

impl TopicKeeper {
    /// Begins to follow the settings of other hubs, and changed ones of this hub.
    pub(crate) fn start(mut keeper: Keeper) -> io::Result<TopicKeeper> {
        let (ending, alarm) = (keeper.ending.clone(), keeper.reader.alarm());
        let worker = WorkerThread::named("topic-settings").spawn_restarting(RESTART, move || keeper.run())?;
        Ok(TopicKeeper { ending, alarm, worker: Some(worker) })
    }
}

impl Drop for TopicKeeper {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Release);
        self.alarm.ring();
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

/// The settings of all hubs as this one knows them.
pub(crate) struct Keeper {
    given: Given,
    file: Option<PathBuf>,
    /// State of the file at the last answer about it. At first there is none: the file may have changed since the start.
    seen: Option<Stamp>,
    /// The last error of the file, with its state.
    said: Option<(Option<Stamp>, String)>,
    own: HubSettings,
    heard: HeardHubs,
    /// Limit of warnings about a sender: by its proved host, else by its name.
    warned: PeriodLimit<String>,
    written: SiteSettings,
    writer: Writer,
    reader: Reader,
    ending: Arc<AtomicBool>,
}

impl Keeper {
    fn run(&mut self) {
        while !self.ending.load(Ordering::Acquire) {
            self.take(Instant::now() + LOOK);
            self.look();
        }
    }

    /// Takes what other hubs send before this time.
    fn take(&mut self, until: Instant) {
        let own: Incarnation = self.given.participant.incarnation();
        for _ in 0..EVENTS {
            if self.ending.load(Ordering::Acquire) {
                return;
            }
            let (stream, bytes) = match self.reader.next(until.saturating_duration_since(Instant::now())) {
                None => return,
                Some(Event::Sample(sample)) if sample.stream.incarnation != own && sample.stream.type_tag == SITE_QOS_TYPE => {
                    // A sample in lent memory is not of a hub.
                    let Ok(bytes) = sample.payload.to_vec() else { continue };
                    (sample.stream.clone(), bytes)
                }
                Some(_) => continue,
            };
            self.hear(stream, bytes);
        }
    }

    fn hear(&mut self, stream: Arc<StreamInfo>, bytes: Vec<u8>) {
        let Given { participant, access, .. } = &self.given;
        if !self.given.is_believed(&stream) {
            // Counted and audited. It is remembered all the same, because a rule may come that permits it.
            let principal = participant.sender(access, stream.host.as_deref());
            let _ = access.ask_for(&principal, Verb::Admin, &Resource::Topic(SITE_QOS.to_owned()));
        }
        if let Err(why) = self.heard.hear(stream.clone(), bytes) {
            self.given.warn_about(&self.warned, &stream, &why.to_string());
        }
    }

    fn look(&mut self) {
        if let Some(file) = self.file.clone() {
            self.read_again(&file);
        }
        self.write();
    }

    /// Writes changed settings for the processes of this host.
    fn write(&mut self) {
        let Keeper { given, heard, warned, .. } = self;
        let (given, warned) = (&*given, &*warned);
        let decoded = |stream: &StreamInfo, result: Result<usize, BadHubSettings>| match result {
            Ok(0) => {}
            Ok(left_out) => {
                let why = format!("{left_out} settings of topics that this release does not know; they do not hold here");
                given.warn_about(warned, stream, &why);
            }
            Err(why) => given.warn_about(warned, stream, &why.to_string()),
        };
        let believed = heard.believed(|stream| given.is_believed(stream), decoded);
        let without_others = |hub: &HubSettings| HubSettings { others: Vec::new(), ..hub.clone() };
        let mut hubs: Vec<HubSettings> = believed.into_iter().map(without_others).collect();
        hubs.sort_by(|a, b| a.hub.cmp(&b.hub));
        if hubs != self.own.others {
            self.own.others.clone_from(&hubs);
            self.send();
        }
        hubs.push(own(self.own.topic.clone()));
        let (site, dir) = (SiteSettings { hubs }, self.given.node.dir());
        if site != self.written || !dir.site_settings().exists() {
            if site.hubs.iter().any(|hub| !hub.topic.is_empty()) || self.written.hubs.iter().any(|hub| !hub.topic.is_empty()) {
                let count: usize = site.hubs.iter().map(|hub| hub.topic.len()).sum();
                info!(self.given.logger, "{count} settings of topics of {} hubs hold on this host", site.hubs.len());
            }
            match publish_settings(dir.path(), &site) {
                Ok(()) => self.written = site,
                // The directory has vanished, or there is no room in it; both are tried again.
                Err(why) => warning!(self.given.logger, "{}: {why}", dir.site_settings().display()),
            }
        }
    }

    /// Reads the configuration if it has changed since the last answer about it.
    fn read_again(&mut self, file: &Path) {
        let found = stamp(file);
        if found == self.seen {
            return;
        }
        let read = self.given.settings.topics().and_then(|topic| match QosTable::from_place("", topic.clone()) {
            Ok(_) => Ok(topic),
            Err((number, why)) => Err(format!("{}, [[topic]] {number}: {why}", file.display())),
        });
        match read {
            Ok(topic) => {
                (self.seen, self.said) = (found, None);
                if topic != self.own.topic {
                    self.own.topic = topic;
                    self.send();
                }
            }
            // The cause may lie beside the file, so that it is read again although it stays the same.
            Err(why) => {
                let said = Some((found, why.clone()));
                if self.said != said {
                    self.said = said;
                    error!(self.given.logger, "{why}; the settings of topics stay as they were");
                }
            }
        }
    }

    fn send(&self) {
        let whole = self.own.encode().or_else(|_| own(self.own.topic.clone()).encode());
        let sent = whole.map_err(|why| why.to_string());
        let sent = sent.and_then(|bytes| self.writer.write_urgent(&bytes).map_err(|why| why.to_string()));
        if let Err(why) = sent {
            error!(self.given.logger, "other hubs do not get the settings of topics: {why}");
        }
    }
}

impl Given {
    /// Returns true if the settings of the process that writes a stream hold here.
    fn is_believed(&self, stream: &StreamInfo) -> bool {
        let Given { node, participant, access, .. } = self;
        let is_dialed = |host: &String| node.dialed_hosts().iter().any(|dialed| dialed.eq_ignore_ascii_case(host));
        let principal = participant.sender(access, stream.host.as_deref());
        stream.host.as_ref().is_some_and(is_dialed)
            || access.permits(&principal, Verb::Admin, &Resource::Topic(SITE_QOS.to_owned()))
    }

    /// Writes what is wrong with the settings of a sender, once a minute.
    fn warn_about(&self, warned: &PeriodLimit<String>, stream: &StreamInfo, why: &str) {
        let source = stream.source.to_string();
        let sender = stream.host.clone().unwrap_or_else(|| source.to_lowercase());
        if warned.admit(sender, Instant::now()).is_some() {
            warning!(self.logger, "{source} sent {why}");
        }
    }
}
