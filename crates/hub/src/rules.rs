//! Access rules of a site, and the principals that this hub knows.
//!
//! The rules stand in the policy file and in `[[allow]]` tables of the configuration. Without a rule the defaults of
//! [`Policy`] hold. The hub reads a changed policy file within two seconds. A broken one keeps the rules as they are, and
//! the log names its line. So does a file that is gone or empty, because editors and copies make it so for a moment. A hub
//! with a node writes its rules into the run-time directory, where all processes of the host read them.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use parking_lot::{Mutex, RwLock};
use tampu_bus::{
    access::{
        Access, Authorise, Decision, Defaults, Denied, Effect, LocalProof, Policy, Principal, Resource, Rule, Verb, Who,
        publish_policy,
    },
    connect::{DEFAULT_DOMAIN, Settings},
    run_dir::RunDirError,
};
use tampu_log::{Logger, error};
use tampu_logbook::people::Right;
use tampu_types::{Domain, TopicName};
use tampu_workers::WorkerThread;

use self::{
    audit::Audit,
    file::{PolicyError, PolicyFile},
};
use crate::{
    config::{Config, Role},
    file_stamp::{Stamp, stamp},
    listen::ListenAddress,
    reread::{ChangingSettings, OwnFiles},
};

pub(crate) mod audit;
pub mod file;
pub mod settings;

/// Period of the look at the policy file.
const LOOK: Duration = Duration::from_millis(500);
/// Pause of the worker after a panic.
const RESTART: Duration = Duration::from_secs(1);

/// The policy file as it was read last.
#[derive(Default)]
struct Seen {
    stamp: Option<Stamp>,
    /// True once the file had rules or defaults of its own.
    had_content: bool,
}

/// The access rules of a site.
pub struct Rules {
    domain: Domain,
    /// Domain whose key makes a member.
    open_to: Option<Domain>,
    /// Rules and defaults of the configuration.
    configured: (Defaults, Vec<Rule>),
    file: PathBuf,
    source: Arc<dyn ChangingSettings>,
    current: RwLock<Arc<Policy>>,
    read: Mutex<Seen>,
    /// Part of the run-time directory for the rules, and the links, on a hub with a node.
    published: Mutex<Option<Published>>,
    pub(crate) audit: Audit,
}

/// Makes a node's links keep to rules.
type HoldTo = Box<dyn Fn(&Arc<Policy>) + Send + Sync>;

/// Place of the rules on a hub with a node, and the node's links.
struct Published {
    directory: PathBuf,
    hold_to: HoldTo,
}

impl Authorise for Rules {
    fn authorise(&self, principal: &Principal, verb: Verb, resource: &Resource) -> Result<(), Denied> {
        self.policy().authorise(self.open_to.as_ref(), principal, verb, resource)
    }
}

impl Rules {
    /// Reads the rules of a configuration and its policy file.
    pub(crate) fn of(config: &Config) -> Result<Rules, PolicyError> {
        Rules::from(config, Arc::new(OwnFiles::of(config)))
    }

    /// Reads the rules of a configuration, and its policy file in this way.
    pub(crate) fn from(config: &Config, source: Arc<dyn ChangingSettings>) -> Result<Rules, PolicyError> {
        // A collector without a node of its own is on another hub's node, which has checked the key.
        let has_key = config.network.key_file.is_some() || !config.roles.contains(&Role::Node);
        let is_named = config.domain.as_str() != DEFAULT_DOMAIN;
        let open_to = (has_key && is_named).then(|| config.domain.clone());
        let configured = config.allow.iter().map(|allow| Rule::new(Effect::Allow, allow.who.clone(), &allow.may, &allow.what));
        let configured: Vec<Rule> = configured.collect::<Result<_, _>>()?;
        // With [[allow]] tables in the configuration only what they allow is allowed. On an open network they are about
        // the members elsewhere.
        let is_open = !config.network.listen.is_empty() || !config.network.connect.is_empty();
        let defaults = match (configured.is_empty(), is_open) {
            (true, _) => Defaults::Usual,
            (false, true) => Defaults::Local,
            (false, false) => Defaults::None,
        };
        let file = config.policy_file();
        let rules = Rules {
            domain: config.domain.clone(),
            open_to,
            configured: (defaults, configured),
            current: RwLock::default(),
            read: Mutex::new(Seen { stamp: stamp(&file), had_content: false }),
            file: std::path::absolute(&file).unwrap_or(file),
            source,
            published: Mutex::default(),
            audit: Audit::default(),
        };
        let read = rules.file_now()?;
        let groups = read.as_ref().map(|read| read.groups.clone()).unwrap_or_default();
        rules.configured.1.iter().try_for_each(|rule| rule.clone().with_groups(&groups).map(drop))?;
        rules.read.lock().had_content = read.is_some();
        *rules.current.write() = Arc::new(rules.joined(read.unwrap_or_default()));
        Ok(rules)
    }

    fn joined(&self, read: PolicyFile) -> Policy {
        let (defaults, configured) = &self.configured;
        // A group that the file no longer has is empty.
        let in_groups = |rule: &Rule| rule.clone().with_groups(&read.groups).unwrap_or_else(|_| rule.clone());
        let rules = configured.iter().map(in_groups).chain(read.rules).collect();
        // The stricter defaults hold.
        let defaults = match (defaults, read.defaults) {
            (Defaults::None, _) | (_, Defaults::None) => Defaults::None,
            (Defaults::Local, _) | (_, Defaults::Local) => Defaults::Local,
            (Defaults::Usual, Defaults::Usual) => Defaults::Usual,
        };
        Policy { defaults, rules, file: Some(self.file.clone()) }
    }

    /// Returns the rules in force.
    pub fn policy(&self) -> Arc<Policy> {
        self.current.read().clone()
    }

    /// Returns the path of the policy file, which may not exist.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the domain.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Decides about an action, with its ground.
    pub fn explain(&self, principal: &Principal, verb: Verb, resource: &Resource) -> Decision {
        self.policy().explain(self.open_to.as_ref(), principal, verb, resource)
    }

    /// Returns whether a right in a logbook stays with a caller: the rules narrow the logbook's own grants.
    pub(crate) fn leaves(&self, principal: &Principal, book: &str, right: Right) -> bool {
        let verb = match right {
            Right::Read => Verb::Read,
            Right::Write | Right::EditOwn | Right::EditAny => Verb::Write,
            Right::Admin => Verb::Admin,
        };
        let policy = self.policy();
        // Without a deny rule, which is the usual case, nothing is looked up.
        let may_close = policy.rules.iter().any(|rule| rule.effect == Effect::Deny);
        !may_close || policy.decide(principal, verb, &Resource::Book(book.to_owned())).allowed
    }

    /// Returns whether a rule names a login or its tokens. A pattern names nobody.
    pub(crate) fn name_login(&self, login: &str) -> bool {
        let is_it = |name: &str| !name.contains(['*', '?']) && tampu_logbook::book::same_name(name, login);
        let names = |who: &Who| match who {
            Who::Login(name) => is_it(name),
            Who::Token(name) => name.split_once('/').is_some_and(|(of, _)| is_it(of)),
            _ => false,
        };
        self.policy().rules.iter().any(|rule| names(&rule.who) || rule.members.iter().any(names))
    }

    /// Adds a rule to the policy file, and returns its line. It holds at once.
    pub fn add(&self, rule: &Rule) -> Result<usize, PolicyError> {
        let mut read = self.read.lock();
        self.check_still_there(&read)?;
        let line = PolicyFile::add(&self.file, rule)?;
        self.take_over(&mut read)?;
        Ok(line)
    }

    /// Removes the rule at a line of the policy file. It ends at once.
    pub fn remove(&self, line: usize) -> Result<Rule, PolicyError> {
        let mut read = self.read.lock();
        self.check_still_there(&read)?;
        let rule = PolicyFile::remove(&self.file, line)?;
        self.take_over(&mut read)?;
        Ok(rule)
    }

    /// Reads the policy file if it has changed. Returns true if other rules hold.
    fn read_again(&self) -> Result<bool, PolicyError> {
        let mut read = self.read.lock();
        if read.stamp == stamp(&self.file) { Ok(false) } else { self.take_over(&mut read) }
    }

    fn file_now(&self) -> Result<Option<PolicyFile>, PolicyError> {
        let failed = |why: String| PolicyError::Io { path: self.file.clone(), why: io::Error::other(why) };
        let text = self.source.policy().map_err(failed)?;
        text.map(|text| PolicyFile::parse(&text, &self.file)).transpose()
    }

    /// Checks that rules in force are in the file still, so that a change of the file does not end the others.
    fn check_still_there(&self, read: &Seen) -> Result<(), PolicyError> {
        if read.had_content && self.file_now()?.is_none() { Err(self.gone()) } else { Ok(()) }
    }

    fn gone(&self) -> PolicyError {
        PolicyError::Gone { path: self.file.clone() }
    }

    fn take_over(&self, read: &mut Seen) -> Result<bool, PolicyError> {
        read.stamp = stamp(&self.file);
        let file = self.file_now()?;
        if read.had_content && file.is_none() {
            return Err(self.gone());
        }
        read.had_content = file.is_some();
        let policy = self.joined(file.unwrap_or_default());
        let is_new = policy != **self.current.read();
        *self.current.write() = Arc::new(policy);
        self.publish();
        Ok(is_new)
    }

    /// Writes the rules for the other processes of this host. An error is a full run-time directory, which stops more than
    /// this.
    pub(crate) fn publish(&self) {
        if let Some(published) = &*self.published.lock() {
            let policy = self.policy();
            let _ = publish_policy(&published.directory, &policy);
            (published.hold_to)(&policy);
        }
    }

    /// Publishes the rules in the domain's part of the run-time directory from here on, and passes them to the node's links.
    pub(crate) fn publish_in(&self, directory: &Path, hold_to: impl Fn(&Arc<Policy>) + Send + Sync + 'static) {
        *self.published.lock() = Some(Published { directory: directory.to_owned(), hold_to: Box::new(hold_to) });
        self.publish();
    }

    /// Returns the reason for which a host may not be on the bus at any of these addresses, and logs it.
    pub(crate) fn refusal_of_host<'a>(&self, host: &str, mut addresses: impl Iterator<Item = &'a str>) -> Option<String> {
        let principal = Principal::Host(host.to_owned());
        addresses.find_map(|address| {
            let denied = self.authorise(&principal, Verb::Enter, &Resource::Address(address.to_owned())).err()?;
            self.audit.refused(&principal, Verb::Enter, address, "bus", &denied.why);
            Some(denied.why)
        })
    }

    /// Logs that a host announces a stream of a topic that it may not write. Its samples are dropped at the links.
    pub(crate) fn refuse_topic(&self, host: &str, topic: &TopicName) {
        self.audit.refused_topic(host, topic, || {
            let (host, topic) = (Principal::Host(host.to_owned()), Resource::Topic(topic.to_string()));
            let denied = self.authorise(&host, Verb::Write, &topic).err();
            denied.map_or_else(|| "a rule closes a part of the topic, and links close the whole".to_owned(), |denied| denied.why)
        });
    }

    /// Checks that a holder of the domain's key may enter at each address of the hub.
    pub(crate) fn check_doors(&self, config: &Config) -> Result<(), Denied> {
        let stranger = Principal::KeyHolder(config.domain.clone());
        let has_book = config.roles.contains(&Role::Book);
        let book = [config.book.listen(), config.book.elog_listen]
            .into_iter()
            .filter(|_| has_book)
            .filter_map(ListenAddress::beyond_this_host);
        let addresses =
            config.network.listen.iter().chain(&config.network.connect).cloned().chain(book.map(|address| address.to_string()));
        addresses.into_iter().try_for_each(|address| self.authorise(&stranger, Verb::Enter, &Resource::Address(address)))
    }

    /// Returns these rules together with the principal of participants on this hub's bus that prove nothing else.
    ///
    /// The engine does not report the sender of a message. So a member gets the rights of the least trusted one, unless
    /// its question proves that it belongs to this host's user. Once the network is open, the least trusted member is a
    /// holder of the key. The node's key file shows that the network may be open. A hub without a node reads it too,
    /// because its node may open the network later.
    pub(crate) fn access(self: &Arc<Self>, config: &Config, process: &Settings) -> Result<Access, RunDirError> {
        let domain = config.domain.clone();
        let dir = process.run_dir.domain(&domain)?;
        let key = dir.node_key();
        let others = move || if key.exists() { Principal::KeyHolder(domain.clone()) } else { Principal::this_user() };
        let audit = self.clone();
        let access = Access::new(self.clone(), others).with_proof(LocalProof::with_secret(dir.user_key()));
        Ok(access.with_audit(move |act| audit.audit.act(act)))
    }
}

/// Watch over the policy file. Dropping it ends it.
pub(crate) struct PolicyWatch {
    stop: Option<Sender<()>>,
    worker: Option<JoinHandle<()>>,
}

impl PolicyWatch {
    /// Starts to look at the policy file.
    pub(crate) fn start(rules: Arc<Rules>, logger: Logger) -> std::io::Result<PolicyWatch> {
        let (stop, stopped) = channel::<()>();
        let work = move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK) {
                match rules.read_again() {
                    Ok(false) => {}
                    Ok(true) => {
                        let count = rules.policy().rules.len();
                        let (who, what) = (Principal::this_user().to_string(), rules.file.display().to_string());
                        rules.audit.done(&who, Verb::Admin, &what, "file", &format!("the policy has {count} rules"));
                    }
                    Err(why) => error!(logger, "{why}; the rules stay as they were"),
                }
            }
        };
        let worker = WorkerThread::named("access-policy").spawn_restarting(RESTART, work)?;
        Ok(PolicyWatch { stop: Some(stop), worker: Some(worker) })
    }
}

impl Drop for PolicyWatch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

#[cfg(test)]
mod tests;
