//! The rules of the host's node, for the other processes of the host.
//!
//! The node writes its policy into the run-time directory. Processes that answer questions read it there, so a site's
//! rules hold in every process of the host. Without a file the defaults hold.

use std::{
    collections::HashMap,
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::RwLock;
use tampu_types::{Domain, TopicName};

use super::{
    hook::{Access, Authorise},
    nouns::{Denied, Principal, Resource, Verb},
    policy::{Defaults, Policy},
    proof::LocalProof,
    topic_rights::TopicRights,
};
use crate::{
    engine::{AskForHost, Engine},
    run_dir::{POLICY, USER_KEY},
    watched_file::{self, Missing, WatchedFile},
};

/// Writes the policy for the processes of this host into the domain's part of the run-time directory.
pub fn publish_policy(directory: &Path, policy: &Policy) -> io::Result<()> {
    watched_file::publish(directory, POLICY, policy)
}

struct HostPolicy {
    file: WatchedFile<Policy>,
    domain: Domain,
    is_open: Box<dyn Fn() -> bool + Send + Sync>,
}

impl HostPolicy {
    fn in_directory(directory: &Path, domain: &Domain, is_open: impl Fn() -> bool + Send + Sync + 'static) -> HostPolicy {
        let file = WatchedFile::new(directory, POLICY, Missing::Default);
        HostPolicy { file, domain: domain.clone(), is_open: Box::new(is_open) }
    }

    fn current(&self) -> Arc<Policy> {
        self.file.current()
    }
}

/// Topics that other hosts may read and write, by the rules of this host.
pub(crate) struct HostTopics {
    policy: HostPolicy,
    /// The rules as they were last read, and the rights that follow from them.
    read: RwLock<(Arc<Policy>, RightsByHost)>,
    /// True if some rule may close a topic.
    has_rules: AtomicBool,
}

/// The rights to read and to write of each host that was asked about.
type RightsByHost = HashMap<String, [TopicRights; 2]>;

impl HostTopics {
    /// Uses the rules in this domain's part of the run-time directory.
    pub fn in_directory(directory: &Path, domain: &Domain) -> HostTopics {
        let topics = HostTopics {
            policy: HostPolicy::in_directory(directory, domain, || true),
            read: RwLock::default(),
            has_rules: AtomicBool::new(false),
        };
        topics.refresh();
        topics
    }

    /// Reads the rules again. Returns true if they have changed.
    pub fn refresh(&self) -> bool {
        let policy = self.policy.current();
        if self.read.read().0 == policy {
            return false;
        }
        self.has_rules.store(policy.defaults != Defaults::Usual || !policy.rules.is_empty(), Ordering::Release);
        *self.read.write() = (policy, HashMap::new());
        true
    }

    /// Returns true if some rule may close a topic.
    pub fn has_rules(&self) -> bool {
        self.has_rules.load(Ordering::Acquire)
    }

    /// Returns true if a host may read or write a topic.
    pub fn may(&self, host: &str, verb: Verb, topic: &TopicName) -> bool {
        if !self.has_rules() {
            return true;
        }
        let of = |rights: &[TopicRights; 2]| rights[usize::from(verb == Verb::Write)].permits(topic);
        if let Some(rights) = self.read.read().1.get(host) {
            return of(rights);
        }
        let mut read = self.read.write();
        let principal = Principal::Host(host.to_owned());
        let rights = [Verb::Read, Verb::Write].map(|verb| TopicRights::of(&read.0, &principal, verb));
        let may = of(&rights);
        read.1.insert(host.to_owned(), rights);
        may
    }
}

impl Authorise for HostPolicy {
    fn authorise(&self, principal: &Principal, verb: Verb, resource: &Resource) -> Result<(), Denied> {
        let open_to = (self.is_open)().then_some(&self.domain);
        self.current().authorise(open_to, principal, verb, resource)
    }
}

/// Returns the proof of processes in this domain's part of the run-time directory.
pub(crate) fn proof_in(directory: &Path) -> LocalProof {
    LocalProof::with_secret(directory.join(USER_KEY))
}

/// Returns the access by the rules in this domain's part of the run-time directory.
pub(crate) fn access_of_host(directory: &Path, domain: &Domain, engine: &Arc<dyn Engine>) -> Access {
    let of_rules = engine.clone();
    let rules = HostPolicy::in_directory(directory, domain, move || of_rules.is_open());
    let (domain, engine) = (domain.clone(), engine.clone());
    let others = move || if engine.is_open() { Principal::KeyHolder(domain.clone()) } else { Principal::this_user() };
    Access::new(Arc::new(rules), others).with_proof(proof_in(directory))
}

/// Returns the rule of this host about other hosts that connect directly to its processes. A host that may not read every
/// topic gets no direct link: the rules about topics hold on the links of nodes.
pub(crate) fn rule_for_hosts(directory: &Path, domain: &Domain) -> AskForHost {
    let rules = HostPolicy::in_directory(directory, domain, || true);
    Arc::new(move |host, own, _| {
        let (principal, address) = (Principal::Host(host.to_owned()), Resource::Address(own.to_string()));
        if let Err(denied) = rules.authorise(&principal, Verb::Enter, &address) {
            return Some(denied.why);
        }
        let reads_all = TopicRights::of(&rules.current(), &principal, Verb::Read).is_unrestricted();
        (!reads_all).then(|| "a host that may not read every topic gets no direct link".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Defaults, Effect, Rule, Who};

    #[test]
    fn a_published_policy_holds_at_once_and_a_missing_one_is_the_default() {
        let net = crate::engine::memory::MemoryNet::new(1);
        let engine: Arc<dyn Engine> = net.engine("host");
        let dir = tempfile::tempdir().unwrap();
        let access = access_of_host(dir.path(), &Domain::new("lab").unwrap(), &engine);
        let levels = Resource::Service("log/levels".to_owned());
        let may = || access.permits(&Principal::this_user(), Verb::Set, &levels);
        assert!(may());
        let rule = Rule::new(Effect::Deny, Who::Local, &["set"], "log/levels").unwrap();
        let policy = Policy { rules: vec![rule], ..Policy::default() };
        publish_policy(dir.path(), &policy).unwrap();
        assert!(!may());
        publish_policy(dir.path(), &Policy { defaults: Defaults::None, ..Policy::default() }).unwrap();
        assert!(!may());
        std::fs::remove_file(dir.path().join(POLICY)).unwrap();
        assert!(may());
    }

    #[test]
    fn a_host_that_a_rule_shuts_out_gets_no_direct_link() {
        let dir = tempfile::tempdir().unwrap();
        let rule = rule_for_hosts(dir.path(), &Domain::new("lab").unwrap());
        let own = "10.0.0.1:7447".parse().unwrap();
        assert_eq!(rule("mast", own, true), None);
        let deny = Rule::new(Effect::Deny, Who::Host("mast".to_owned()), &["enter"], "**").unwrap();
        publish_policy(dir.path(), &Policy { rules: vec![deny], ..Policy::default() }).unwrap();
        assert!(rule("mast", own, true).is_some());
        assert_eq!(rule("dome", own, true), None);
        let deny = Rule::new(Effect::Deny, Who::Host("dome".to_owned()), &["read"], "log/debug").unwrap();
        publish_policy(dir.path(), &Policy { rules: vec![deny], ..Policy::default() }).unwrap();
        assert!(rule("dome", own, true).is_some());
        assert_eq!(rule("mast", own, true), None);
    }

    #[test]
    fn topics_of_hosts_follow_the_published_rules() {
        let dir = tempfile::tempdir().unwrap();
        let topics = HostTopics::in_directory(dir.path(), &Domain::new("lab").unwrap());
        let topic = TopicName::new("log/info").unwrap();
        assert!(topics.may("mast", Verb::Read, &topic) && !topics.refresh());
        let deny = Rule::new(Effect::Deny, Who::Host("mast".to_owned()), &["read"], "log/*").unwrap();
        publish_policy(dir.path(), &Policy { rules: vec![deny], ..Policy::default() }).unwrap();
        assert!(topics.refresh() && !topics.refresh());
        assert!(!topics.may("mast", Verb::Read, &topic) && topics.may("mast", Verb::Write, &topic));
        assert!(topics.may("dome", Verb::Read, &topic));
    }
}
