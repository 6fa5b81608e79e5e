//! The settings of topics of all hubs, `[[topic]]`, for the processes of this host.
//!
//! A hub with a node publishes its settings on the topic `site/qos`, and reads those of the other hubs. It writes all of
//! them into the run-time directory, where the processes of the host find them ([`tampu_bus::topic_settings`]). The hub
//! reads a changed configuration file within a second. A broken one keeps the settings as they are, and the log names its
//! line.
//!
//! Another hub's settings hold if its host may `admin` the topic `site/qos` by the rules of this host, or if this node
//! connects to that host. They hold as long as this hub runs or until they are replaced: while a hub is updated, its site
//! does not fall back to the defaults.

use std::{
    collections::BTreeMap,
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
    access::{Access, Resource, Verb},
    connect::Node,
    topic_settings::{HubSettings, SITE_QOS, SITE_QOS_TYPE, SiteSettings, publish_settings},
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
/// Hubs whose settings are remembered. Further ones are left out, and the log says so.
const HUBS: usize = 256;

/// Settings of another hub, and where they come from.
struct Heard {
    stream: Arc<StreamInfo>,
    settings: HubSettings,
}

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

/// Writes the settings of this hub for the processes that start before those of other hubs are known.
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
            seen: file.as_deref().and_then(stamp),
            file,
            own: own(config.topic.clone()),
            heard: BTreeMap::new(),
            written: SiteSettings::default(),
            writer,
            reader,
            ending: Arc::default(),
            given,
        };
        keeper.send();
        keeper.look();
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
    seen: Option<Stamp>,
    own: HubSettings,
    /// Settings of the other hubs, by the name of their process in lower case.
    heard: BTreeMap<String, Heard>,
    written: SiteSettings,
    writer: Writer,
    reader: Reader,
    ending: Arc<AtomicBool>,
}

impl Keeper {
    fn run(&mut self) {
        while !self.ending.load(Ordering::Acquire) {
            let until = Instant::now() + LOOK;
            while let Some((stream, bytes)) = self.next(until) {
                self.hear(stream, &bytes);
            }
            self.look();
        }
    }

    /// Returns the next sample of another hub before this time.
    fn next(&mut self, until: Instant) -> Option<(Arc<StreamInfo>, Vec<u8>)> {
        let own: Incarnation = self.given.participant.incarnation();
        loop {
            match self.reader.next(until.saturating_duration_since(Instant::now()))? {
                // A sample in lent memory is not of a hub.
                Event::Sample(sample) if sample.stream.incarnation != own && sample.stream.type_tag == SITE_QOS_TYPE => {
                    if let Ok(bytes) = sample.payload.to_vec() {
                        return Some((sample.stream.clone(), bytes));
                    }
                }
                _ => {}
            }
        }
    }

    fn hear(&mut self, stream: Arc<StreamInfo>, bytes: &[u8]) {
        let (logger, source) = (&self.given.logger, stream.source.to_string());
        let (settings, left_out) = match HubSettings::decode(bytes) {
            Ok(decoded) => decoded,
            Err(why) => return warning!(logger, "{source} sent {why}"),
        };
        if left_out > 0 {
            warning!(logger, "{left_out} settings of topics from {source} are unknown to this release, and do not hold here");
        }
        if !self.is_believed(&stream) {
            // Counted and audited. It is remembered all the same, because a rule may come that permits it.
            let principal = self.given.participant.sender(&self.given.access, stream.host.as_deref());
            let _ = self.given.access.ask_for(&principal, Verb::Admin, &Resource::Topic(SITE_QOS.to_owned()));
        }
        let name = source.to_lowercase();
        if self.heard.len() >= HUBS && !self.heard.contains_key(&name) {
            return warning!(logger, "{source} sent settings of topics, but those of {HUBS} hubs are the most that hold");
        }
        self.heard.insert(name, Heard { stream, settings });
    }

    /// Returns true if the settings of the process that writes a stream hold here.
    fn is_believed(&self, stream: &StreamInfo) -> bool {
        let Given { node, participant, access, .. } = &self.given;
        let is_dialed = |host: &String| node.dialed_hosts().iter().any(|dialed| dialed.eq_ignore_ascii_case(host));
        let principal = participant.sender(access, stream.host.as_deref());
        stream.host.as_ref().is_some_and(is_dialed)
            || access.permits(&principal, Verb::Admin, &Resource::Topic(SITE_QOS.to_owned()))
    }

    /// Reads a changed configuration, and writes changed settings for the processes of this host.
    fn look(&mut self) {
        if let Some(file) = self.file.clone() {
            self.read_again(&file);
        }
        let believed = self.heard.values().filter(|heard| self.is_believed(&heard.stream));
        let without_others = |heard: &Heard| HubSettings { others: Vec::new(), ..heard.settings.clone() };
        let mut hubs: Vec<HubSettings> = believed.map(without_others).collect();
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

    fn read_again(&mut self, file: &Path) {
        let found = stamp(file);
        if found == self.seen {
            return;
        }
        self.seen = found;
        let read = self.given.settings.topics().and_then(|topic| match QosTable::from_place("", topic.clone()) {
            Ok(_) => Ok(topic),
            Err((number, why)) => Err(format!("{}, [[topic]] {number}: {why}", file.display())),
        });
        match read {
            Ok(topic) if topic != self.own.topic => {
                self.own.topic = topic;
                self.send();
            }
            Ok(_) => {}
            Err(why) => error!(self.given.logger, "{why}; the settings of topics stay as they were"),
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
