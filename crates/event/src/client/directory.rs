//! The directory of attributes: their owners, the subscriptions to them, and the stream worker that delivers each. Its
//! only writer is the worker that reads declarations.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tampu_bus::SourceInfo;
use tampu_types::{
    Incarnation, Time,
    event::{AttributeName, Declaration, Presence, Reason},
};

use super::{
    event::AttributeInfo,
    stream_command::{BindTarget, StreamCommand, StreamCommands, StreamKey},
    subscriber::SubscriptionState,
};
use crate::{precedence::outranked_by, server::ATTRIBUTES_LIMIT, topics};

/// Most workers for single servers of a subscription that has workers of its own. Further servers share two.
const WORKERS_ALONE: usize = 8;

/// Process that owns an attribute.
struct Owner {
    source: Arc<SourceInfo>,
    attribute: u32,
    own: bool,
    for_hosts: bool,
    redundant: bool,
    info: Arc<AttributeInfo>,
    /// Time of the first declaration, by the server's clock.
    since: Time,
}

impl Owner {
    fn is(&self, incarnation: Incarnation, attribute: u32) -> bool {
        self.source.incarnation == incarnation && self.attribute == attribute
    }
}

/// Interest of one subscription in one attribute.
struct Interest {
    sub: Arc<SubscriptionState>,
    /// The owner that the subscription is bound to.
    attached: Option<Attachment>,
    /// The stream worker of the previous binding. Its last notices come before the first ones of the next worker.
    previous: Option<StreamKey>,
    /// True if it was bound before.
    rebound: bool,
}

/// The binding of one subscription to one owner.
struct Attachment {
    incarnation: Incarnation,
    attribute: u32,
    worker: StreamKey,
    /// The worker that forwards the binding, if another one delivered events before.
    via: Option<StreamKey>,
    /// False once the binding ended; a worker that gets the command late then drops it.
    valid: Arc<AtomicBool>,
}

impl Attachment {
    fn is(&self, incarnation: Incarnation, attribute: u32) -> bool {
        (self.incarnation, self.attribute) == (incarnation, attribute)
    }
}

impl Interest {
    /// Ends the binding and returns it.
    fn detach(&mut self) -> Option<Attachment> {
        let attachment = self.attached.take()?;
        attachment.valid.store(false, Ordering::Release);
        self.previous = Some(attachment.worker.clone());
        Some(attachment)
    }
}

/// One attribute: its owners and the subscriptions to it.
#[derive(Default)]
struct AttributeEntry {
    owners: Vec<Owner>,
    interests: Vec<Interest>,
}

/// Process that owns an attribute, in the client's view.
#[derive(Debug, Clone, PartialEq)]
pub struct AttributeOwner {
    /// Source and incarnation of the process.
    pub source: SourceInfo,
    /// True if the client takes the attribute's events from this process.
    pub chosen: bool,
    /// Number and configuration of the attribute there.
    pub info: Arc<AttributeInfo>,
}

#[derive(Default)]
pub(super) struct Directory {
    attributes: HashMap<Box<str>, AttributeEntry>,
    /// Names of an incarnation's attributes, by number.
    names: HashMap<Incarnation, BTreeMap<u32, Box<str>>>,
    sources: HashMap<Incarnation, Arc<SourceInfo>>,
    /// Incarnations that are hung or unreachable. Other owners of their attributes are preferred.
    silent: HashSet<Incarnation>,
    patterns: Vec<Arc<SubscriptionState>>,
    pub workers: HashMap<StreamKey, Arc<StreamCommands>>,
    /// Workers with commands that have yet to be notified.
    to_notify: HashSet<StreamKey>,
    /// Stream workers that should be opened.
    pub to_open: Vec<StreamKey>,
    /// Greatest number of workers for single servers; further servers share the workers of all streams.
    max_stream_workers: usize,
    /// Boot of this host. Streams of other hosts are read as far as somebody here wants them.
    boot: u32,
}

impl Directory {
    pub fn new(max_stream_workers: usize, boot: u32) -> Directory {
        Directory { max_stream_workers, boot, ..Directory::default() }
    }

    pub fn subscribe(&mut self, sub: &Arc<SubscriptionState>) {
        let mut patterns = false;
        for pattern in &sub.options.attributes {
            match pattern.exact() {
                Some(name) => {
                    self.attributes.entry(name.into()).or_default().add_interest(sub);
                    self.assign(name);
                }
                None => patterns = true,
            }
        }
        if patterns {
            self.patterns.push(sub.clone());
            let matching = self.attributes.iter().filter(|(_, entry)| entry.is_matched_by(sub));
            let names: Vec<Box<str>> = matching.map(|(name, _)| name.clone()).collect();
            for name in names {
                self.attributes.entry(name.clone()).or_default().add_interest(sub);
                self.assign(&name);
            }
        }
    }

    pub fn unsubscribe(&mut self, sub: &Arc<SubscriptionState>) {
        let patterns = self.patterns.len();
        self.patterns.retain(|other| other.id != sub.id);
        let names: Vec<Box<str>> = if self.patterns.len() < patterns {
            let interested = |entry: &AttributeEntry| entry.interests.iter().any(|interest| interest.sub.id == sub.id);
            self.attributes.iter().filter(|(_, entry)| interested(entry)).map(|(name, _)| name.clone()).collect()
        } else {
            sub.options.attributes.iter().filter_map(|pattern| pattern.exact().map(Box::from)).collect()
        };
        for name in names {
            let Some(entry) = self.attributes.get_mut(&name) else { continue };
            for mut interest in entry.interests.extract_if(.., |interest| interest.sub.id == sub.id) {
                if let Some(Attachment { incarnation, attribute, worker, .. }) = interest.detach()
                    && let Some(commands) = self.workers.get(&worker)
                {
                    commands.push(StreamCommand::Unbind { incarnation, attribute, sub: sub.id, report: None });
                    self.to_notify.insert(worker);
                }
            }
            if entry.interests.is_empty() && entry.owners.is_empty() {
                self.attributes.remove(&name);
            }
        }
    }

    /// Handles a server's declaration of an attribute at this time.
    pub fn declared(&mut self, source: &SourceInfo, declaration: Declaration, at: Time) {
        let Declaration { attribute, epoch, presence, own_stream: own, for_hosts, redundant, config, .. } = declaration;
        if attribute >= ATTRIBUTES_LIMIT {
            return;
        }
        let incarnation = source.incarnation;
        let source = self.sources.entry(incarnation).or_insert_with(|| Arc::new(source.clone())).clone();
        let name: Box<str> = config.name.folded().into();
        let entry = self.attributes.entry(name.clone()).or_default();
        let known = entry.owners.iter().position(|owner| owner.is(incarnation, attribute));
        match (presence, known) {
            (Presence::Declared, Some(place)) => {
                let owner = &mut entry.owners[place];
                (owner.own, owner.for_hosts, owner.redundant) = (own, for_hosts, redundant);
                if owner.info.epoch == epoch {
                    return;
                }
                owner.info = Arc::new(AttributeInfo { number: attribute, epoch, config });
                let info = owner.info.clone();
                let command = || StreamCommand::Configured { incarnation, attribute, info: info.clone() };
                for (key, via) in entry.workers_of(incarnation, attribute) {
                    let commands = &self.workers[&key];
                    commands.push(command());
                    self.to_notify.insert(key);
                    // A binding that is still being forwarded gets the command on the same way.
                    if let Some(via) = via
                        && let Some(previous) = self.workers.get(&via)
                    {
                        previous.push(StreamCommand::Forward { to: commands.clone(), command: Box::new(command()) });
                        self.to_notify.insert(via);
                    }
                }
            }
            (Presence::Declared, None) => {
                let patterns: Vec<Arc<SubscriptionState>> =
                    self.patterns.iter().filter(|sub| matches(sub, &config.name)).cloned().collect();
                patterns.iter().for_each(|sub| entry.add_interest(sub));
                let info = Arc::new(AttributeInfo { number: attribute, epoch, config });
                entry.owners.push(Owner { source, attribute, own, for_hosts, redundant, info, since: at });
                self.names.entry(incarnation).or_default().insert(attribute, name.clone());
                self.assign_new(&name, Some(incarnation));
            }
            (Presence::Withdrawn, Some(place)) => {
                entry.owners.remove(place);
                if let Some(life) = self.names.get_mut(&incarnation) {
                    life.remove(&attribute);
                }
                for (key, _) in entry.workers_of(incarnation, attribute) {
                    self.workers[&key].push(StreamCommand::Withdrawn { incarnation, attribute });
                    self.to_notify.insert(key);
                }
                entry.detach_all(incarnation, attribute);
                self.assign(&name);
            }
            (Presence::Withdrawn, None) => self.forget_if_empty(&name),
        }
    }

    /// Handles an incarnation that fell silent or returned.
    pub fn silent(&mut self, incarnation: Incarnation, silent: bool) {
        let news = if silent { self.silent.insert(incarnation) } else { self.silent.remove(&incarnation) };
        if !news {
            return;
        }
        let Some(life) = self.names.get(&incarnation) else { return };
        if !silent && incarnation.boot != self.boot {
            let entries = life.iter().filter_map(|(number, name)| Some((*number, self.attributes.get(name)?)));
            let workers: HashSet<StreamKey> =
                entries.flat_map(|(number, entry)| entry.workers_of(incarnation, number)).map(|(key, _)| key).collect();
            for key in workers.into_iter().filter(|key| key.of_host) {
                self.workers[&key].push(StreamCommand::Reachable { incarnation });
                self.to_notify.insert(key);
            }
        }
        let shared = |name: &str| self.attributes.get(name).is_some_and(|entry| entry.owners.len() > 1);
        let names: Vec<Box<str>> = life.values().filter(|name| shared(name)).cloned().collect();
        names.iter().for_each(|name| self.assign(name));
    }

    /// Handles the end of an incarnation.
    pub fn ended(&mut self, incarnation: Incarnation, reason: Reason) {
        self.sources.remove(&incarnation);
        self.silent.remove(&incarnation);
        let life = self.names.remove(&incarnation).unwrap_or_default();
        let mut workers = HashSet::new();
        for (attribute, name) in &life {
            if let Some(entry) = self.attributes.get_mut(name) {
                entry.owners.retain(|owner| !owner.is(incarnation, *attribute));
                workers.extend(entry.workers_of(incarnation, *attribute).into_iter().map(|(key, _)| key));
                entry.detach_all(incarnation, *attribute);
            }
        }
        // The command about the end goes before bindings to another owner.
        for key in workers {
            self.workers[&key].push(StreamCommand::Ended { incarnation, reason });
            self.to_notify.insert(key);
        }
        for name in life.values() {
            self.assign(name);
            self.forget_if_empty(name);
        }
    }

    fn forget_if_empty(&mut self, name: &str) {
        if self.attributes.get(name).is_some_and(|entry| entry.interests.is_empty() && entry.owners.is_empty()) {
            self.attributes.remove(name);
        }
    }

    /// Binds the subscriptions of an attribute to its chosen owner.
    fn assign(&mut self, name: &str) {
        self.assign_new(name, None);
    }

    /// Does the same; `new` is the incarnation that just declared the attribute.
    fn assign_new(&mut self, name: &str, new: Option<Incarnation>) {
        let Some(entry) = self.attributes.get_mut(name) else { return };
        let Some(chosen) = entry.chosen(&self.silent) else { return };
        let owner = &entry.owners[chosen];
        let (incarnation, attribute) = (owner.source.incarnation, owner.attribute);
        let (in_conflict, redundant) = (entry.in_conflict(), entry.is_redundant());
        let is_elsewhere = incarnation.boot != self.boot;
        for interest in &mut entry.interests {
            let here = interest.attached.as_ref().is_some_and(|attachment| attachment.is(incarnation, attribute));
            if !here {
                if let Some(Attachment { incarnation: life, attribute: number, worker, .. }) = interest.detach()
                    && let Some(commands) = self.workers.get(&worker)
                {
                    // The next incarnation came before the end of this one was noticed, or a source with precedence
                    // came; or a redundant source takes over, or the preferred one returned.
                    let report = match entry.owners.iter().any(|owner| owner.is(life, number)) && redundant {
                        true if self.silent.contains(&life) => Some(Reason::SourceHung),
                        true => None,
                        false => Some(Reason::SourceDied),
                    };
                    commands.push(StreamCommand::Unbind { incarnation: life, attribute: number, sub: interest.sub.id, report });
                    self.to_notify.insert(worker);
                }
                let options = &interest.sub.options;
                let alone = options.alone.then_some(interest.sub.id);
                let own = owner.own && !(is_elsewhere && owner.for_hosts && options.is_judged_at_source());
                let of_host = !own && is_elsewhere;
                let topics = match (own, of_host) {
                    (true, _) => topics::own(&owner.source.source, attribute),
                    (false, true) => topics::of_host(&owner.source.source, self.boot),
                    (false, false) => topics::shared(&owner.source.source),
                };
                let key = StreamKey { topics, reliable: options.reliable, of_host, alone };
                let most = if alone.is_some() { WORKERS_ALONE } else { self.max_stream_workers };
                let is_known = self.workers.contains_key(&key);
                let key = if is_known || self.workers.keys().filter(|key| key.alone == alone).count() < most {
                    key
                } else {
                    // All servers' streams for this host, also for servers here: `event/*` would bring everything of all hosts.
                    match own {
                        true => StreamKey { topics: topics::ALL_OWN.to_owned(), ..key },
                        false => StreamKey { topics: topics::all_of_host(self.boot), of_host: true, ..key },
                    }
                };
                let to_open = &mut self.to_open;
                let commands = self.workers.entry(key.clone()).or_insert_with(|| {
                    to_open.push(key.clone());
                    Arc::default()
                });
                let (commands, valid) = (commands.clone(), Arc::new(AtomicBool::new(true)));
                let target = BindTarget { source: owner.source.clone(), attribute, own, since: owner.since };
                let (info, sub, rebound) = (owner.info.clone(), interest.sub.clone(), interest.rebound);
                // Each worker has a thread of its own, and the last notice of the old one must come before the first of
                // the new one.
                let via = interest.previous.take().filter(|previous| *previous != key && self.workers.contains_key(previous));
                let forwarded = via.is_some().then(|| valid.clone());
                let bind = StreamCommand::Bind { target, info, sub, rebound, new: new == Some(incarnation), valid: forwarded };
                let (command, first) = match &via {
                    Some(previous) => (StreamCommand::Forward { to: commands, command: Box::new(bind) }, previous.clone()),
                    None => (bind, key.clone()),
                };
                self.workers[&first].push(command);
                self.to_notify.insert(first);
                interest.rebound = true;
                interest.attached = Some(Attachment { incarnation, attribute, worker: key, via, valid });
            }
            if in_conflict && let Some(Attachment { worker, via, .. }) = &interest.attached {
                let notify = StreamCommand::Notify { incarnation, attribute, reason: Reason::Conflict };
                let (command, first) = match via.as_ref().filter(|via| self.workers.contains_key(via)) {
                    Some(via) => (StreamCommand::Forward { to: self.workers[worker].clone(), command: Box::new(notify) }, via),
                    None => (notify, worker),
                };
                self.workers[first].push(command);
                self.to_notify.insert(first.clone());
            }
        }
    }

    /// Notifies the workers with new commands.
    pub fn notify_workers(&mut self) {
        for key in self.to_notify.drain() {
            if let Some(commands) = self.workers.get(&key) {
                commands.notify();
            }
        }
    }

    /// Returns the owners of an attribute.
    pub fn owners(&self, name: &AttributeName) -> Vec<AttributeOwner> {
        let Some(entry) = self.attributes.get(name.folded()) else { return Vec::new() };
        let chosen = entry.chosen(&self.silent);
        let known = |(at, owner): (usize, &Owner)| AttributeOwner {
            source: SourceInfo::clone(&owner.source),
            chosen: chosen == Some(at),
            info: owner.info.clone(),
        };
        entry.owners.iter().enumerate().map(known).collect()
    }

    /// Returns every attribute with an owner.
    pub fn attributes(&self) -> Vec<Arc<AttributeInfo>> {
        let mut all: Vec<Arc<AttributeInfo>> =
            self.attributes.values().filter_map(|entry| Some(entry.owners[entry.chosen(&self.silent)?].info.clone())).collect();
        all.sort_by(|a, b| a.config.name.cmp(&b.config.name));
        all
    }
}

fn matches(sub: &SubscriptionState, name: &AttributeName) -> bool {
    sub.options.attributes.iter().any(|pattern| pattern.exact().is_none() && pattern.matches(name))
}

impl AttributeEntry {
    fn add_interest(&mut self, sub: &Arc<SubscriptionState>) {
        if !self.interests.iter().any(|interest| interest.sub.id == sub.id) {
            self.interests.push(Interest { sub: sub.clone(), attached: None, previous: None, rebound: false });
        }
    }

    fn is_matched_by(&self, sub: &SubscriptionState) -> bool {
        self.owners.first().is_some_and(|owner| matches(sub, &owner.info.config.name))
    }

    /// Returns the index of the owner that is used. All servers apply the same rule ([`outranked_by`]), so all agree.
    /// Among redundant owners, an active one is preferred to a silent one.
    fn chosen(&self, silent: &HashSet<Incarnation>) -> Option<usize> {
        let redundant = self.is_redundant();
        let hangs = |owner: &Owner| redundant && silent.contains(&owner.source.incarnation);
        let better = |a: &Owner, b: &Owner| match (hangs(a), hangs(b)) {
            (false, true) => true,
            (true, false) => false,
            _ => outranked_by(&b.source.source, b.source.incarnation, &a.source, |life| silent.contains(&life)),
        };
        let mut chosen = 0;
        for at in 1..self.owners.len() {
            if better(&self.owners[at], &self.owners[chosen]) {
                chosen = at;
            }
        }
        (!self.owners.is_empty()).then_some(chosen)
    }

    /// Returns whether two sources own the attribute and are not both redundant. Two incarnations of one source are no
    /// conflict: the end of the first is noticed a moment after the second declared the attribute.
    fn in_conflict(&self) -> bool {
        let same = |a: &Owner, b: &Owner| a.source.source.as_str().eq_ignore_ascii_case(b.source.source.as_str());
        let others = self.owners.windows(2).any(|pair| !same(&pair[0], &pair[1]));
        others && !self.is_redundant()
    }

    /// Returns whether there are several owners and all of them are redundant.
    fn is_redundant(&self) -> bool {
        self.owners.len() > 1 && self.owners.iter().all(|owner| owner.redundant)
    }

    /// Returns the workers that deliver an attribute of an incarnation, each with the worker that forwards commands to
    /// it.
    fn workers_of(&self, incarnation: Incarnation, attribute: u32) -> HashSet<(StreamKey, Option<StreamKey>)> {
        let attachments = self.interests.iter().filter_map(|interest| interest.attached.as_ref());
        attachments
            .filter(|attachment| attachment.is(incarnation, attribute))
            .map(|attachment| (attachment.worker.clone(), attachment.via.clone()))
            .collect()
    }

    fn detach_all(&mut self, incarnation: Incarnation, attribute: u32) {
        for interest in &mut self.interests {
            if interest.attached.as_ref().is_some_and(|attachment| attachment.is(incarnation, attribute)) {
                interest.detach();
            }
        }
    }
}

impl Directory {
    /// Closes a worker without bindings. Returns whether it was closed.
    pub fn close_worker(&mut self, key: &StreamKey) -> bool {
        // A command to be forwarded counts like any other; it is added under the directory's lock.
        let idle =
            self.workers.get(key).is_none_or(|commands| commands.bindings.load(Ordering::Relaxed) == 0 && commands.is_empty());
        let interested = |entry: &AttributeEntry| {
            entry.interests.iter().any(|interest| interest.attached.as_ref().is_some_and(|attachment| attachment.worker == *key))
        };
        if idle && !self.to_notify.contains(key) && !self.attributes.values().any(interested) {
            self.workers.remove(key);
            return true;
        }
        false
    }
}
