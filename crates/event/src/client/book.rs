//! Who has which attribute, who wants it, and which feed brings it. Belongs to the worker that reads declarations.

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
    feed::{FeedKey, Inlet, Order, Target},
    subscription::Sub,
};
use crate::{
    server::{ATTRIBUTES_LIMIT, yields},
    topics,
};

/// One process that has an attribute.
struct Entry {
    source: Arc<SourceInfo>,
    attribute: u32,
    own: bool,
    redundant: bool,
    info: Arc<AttributeInfo>,
    /// When it was declared first, as its server says.
    since: Time,
}

impl Entry {
    fn is(&self, incarnation: Incarnation, attribute: u32) -> bool {
        self.source.incarnation == incarnation && self.attribute == attribute
    }
}

/// One subscription's wish for one attribute.
struct Bond {
    sub: Arc<Sub>,
    /// What it is bound to now.
    bound: Option<Tie>,
    /// Which feed brought it events before: what that one has to tell comes first.
    before: Option<FeedKey>,
    /// It was bound before.
    again: bool,
}

/// What a bond is bound to.
struct Tie {
    incarnation: Incarnation,
    attribute: u32,
    feed: FeedKey,
    /// The feed that hands it over, where another one has brought events before.
    by: Option<FeedKey>,
    /// Whether it still is, for a feed that is told late.
    stands: Arc<AtomicBool>,
}

impl Tie {
    fn is(&self, incarnation: Incarnation, attribute: u32) -> bool {
        (self.incarnation, self.attribute) == (incarnation, attribute)
    }
}

impl Bond {
    /// What it was bound to, when it no longer is.
    fn untie(&mut self) -> Option<Tie> {
        let tie = self.bound.take()?;
        tie.stands.store(false, Ordering::Release);
        self.before = Some(tie.feed.clone());
        Some(tie)
    }
}

/// One attribute: who has it and who wants it.
#[derive(Default)]
struct Page {
    entries: Vec<Entry>,
    bonds: Vec<Bond>,
}

/// What is told of an attribute when somebody asks why nothing comes.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// Who has it.
    pub source: SourceInfo,
    /// Whether that is where events are taken from.
    pub chosen: bool,
    /// What it is.
    pub info: Arc<AttributeInfo>,
}

#[derive(Default)]
pub(super) struct Book {
    pages: HashMap<Box<str>, Page>,
    /// Names of a life's attributes, by their numbers.
    lives: HashMap<Incarnation, BTreeMap<u32, Box<str>>>,
    sources: HashMap<Incarnation, Arc<SourceInfo>>,
    /// Lives that hang or cannot be reached: what others have too is taken from those.
    silent: HashSet<Incarnation>,
    wild: Vec<Arc<Sub>>,
    pub feeds: HashMap<FeedKey, Arc<Inlet>>,
    /// Feeds that have orders to look at.
    touched: HashSet<FeedKey>,
    /// Feeds that are to be opened.
    pub wanted: Vec<FeedKey>,
    /// The most feeds; what comes beyond is read from everybody's streams together.
    max_feeds: usize,
}

impl Book {
    pub fn new(max_feeds: usize) -> Book {
        Book { max_feeds, ..Book::default() }
    }

    pub fn subscribe(&mut self, sub: &Arc<Sub>) {
        let mut wild = false;
        for pattern in &sub.wish.attributes {
            match pattern.exact() {
                Some(name) => {
                    self.pages.entry(name.into()).or_default().want(sub);
                    self.settle(name);
                }
                None => wild = true,
            }
        }
        if wild {
            self.wild.push(sub.clone());
            let matching = self.pages.iter().filter(|(_, page)| page.wanted_by(sub));
            let names: Vec<Box<str>> = matching.map(|(name, _)| name.clone()).collect();
            for name in names {
                self.pages.entry(name.clone()).or_default().want(sub);
                self.settle(&name);
            }
        }
    }

    pub fn unsubscribe(&mut self, sub: &Arc<Sub>) {
        let wild = self.wild.len();
        self.wild.retain(|other| other.id != sub.id);
        let names: Vec<Box<str>> = if self.wild.len() < wild {
            let bonded = |page: &Page| page.bonds.iter().any(|bond| bond.sub.id == sub.id);
            self.pages.iter().filter(|(_, page)| bonded(page)).map(|(name, _)| name.clone()).collect()
        } else {
            sub.wish.attributes.iter().filter_map(|pattern| pattern.exact().map(Box::from)).collect()
        };
        for name in names {
            let Some(page) = self.pages.get_mut(&name) else { continue };
            for mut bond in page.bonds.extract_if(.., |bond| bond.sub.id == sub.id) {
                if let Some(Tie { incarnation, attribute, feed, .. }) = bond.untie()
                    && let Some(inlet) = self.feeds.get(&feed)
                {
                    inlet.order(Order::Unbind { incarnation, attribute, sub: sub.id, told: None });
                    self.touched.insert(feed);
                }
            }
            if page.bonds.is_empty() && page.entries.is_empty() {
                self.pages.remove(&name);
            }
        }
    }

    /// A server has spoken of an attribute, at this time.
    pub fn declared(&mut self, source: &SourceInfo, declaration: Declaration, at: Time) {
        let Declaration { attribute, epoch, presence, own_stream: own, redundant, config, .. } = declaration;
        if attribute >= ATTRIBUTES_LIMIT {
            return;
        }
        let incarnation = source.incarnation;
        let source = self.sources.entry(incarnation).or_insert_with(|| Arc::new(source.clone())).clone();
        let name: Box<str> = config.name.folded().into();
        let page = self.pages.entry(name.clone()).or_default();
        let known = page.entries.iter().position(|entry| entry.is(incarnation, attribute));
        match (presence, known) {
            (Presence::Declared, Some(place)) => {
                let entry = &mut page.entries[place];
                (entry.own, entry.redundant) = (own, redundant);
                if entry.info.epoch == epoch {
                    return;
                }
                entry.info = Arc::new(AttributeInfo { number: attribute, epoch, config });
                let info = entry.info.clone();
                let order = || Order::Configured { incarnation, attribute, info: info.clone() };
                for (key, by) in page.feeds_of(incarnation, attribute) {
                    let inlet = &self.feeds[&key];
                    inlet.order(order());
                    self.touched.insert(key);
                    // Who is only on the way there hears of it on the same way.
                    if let Some(by) = by
                        && let Some(before) = self.feeds.get(&by)
                    {
                        before.order(Order::Pass { to: inlet.clone(), order: Box::new(order()) });
                        self.touched.insert(by);
                    }
                }
            }
            (Presence::Declared, None) => {
                let wild: Vec<Arc<Sub>> = self.wild.iter().filter(|sub| matches(sub, &config.name)).cloned().collect();
                wild.iter().for_each(|sub| page.want(sub));
                let info = Arc::new(AttributeInfo { number: attribute, epoch, config });
                page.entries.push(Entry { source, attribute, own, redundant, info, since: at });
                self.lives.entry(incarnation).or_default().insert(attribute, name.clone());
                self.settle_new(&name, Some(incarnation));
            }
            (Presence::Withdrawn, Some(place)) => {
                page.entries.remove(place);
                if let Some(life) = self.lives.get_mut(&incarnation) {
                    life.remove(&attribute);
                }
                for (key, _) in page.feeds_of(incarnation, attribute) {
                    self.feeds[&key].order(Order::Withdrawn { incarnation, attribute });
                    self.touched.insert(key);
                }
                page.release(incarnation, attribute);
                self.settle(&name);
            }
            (Presence::Withdrawn, None) => self.forget_if_empty(&name),
        }
    }

    /// A life has fallen silent, or is heard again.
    pub fn silent(&mut self, incarnation: Incarnation, silent: bool) {
        let news = if silent { self.silent.insert(incarnation) } else { self.silent.remove(&incarnation) };
        if !news {
            return;
        }
        let Some(life) = self.lives.get(&incarnation) else { return };
        let shared = |name: &str| self.pages.get(name).is_some_and(|page| page.entries.len() > 1);
        let names: Vec<Box<str>> = life.values().filter(|name| shared(name)).cloned().collect();
        names.iter().for_each(|name| self.settle(name));
    }

    /// A life has ended.
    pub fn gone(&mut self, incarnation: Incarnation, reason: Reason) {
        self.sources.remove(&incarnation);
        self.silent.remove(&incarnation);
        let life = self.lives.remove(&incarnation).unwrap_or_default();
        let mut feeds = HashSet::new();
        for (attribute, name) in &life {
            if let Some(page) = self.pages.get_mut(name) {
                page.entries.retain(|entry| !entry.is(incarnation, *attribute));
                feeds.extend(page.feeds_of(incarnation, *attribute).into_iter().map(|(key, _)| key));
                page.release(incarnation, *attribute);
            }
        }
        // The word of the end goes before bonds to somebody else.
        for key in feeds {
            self.feeds[&key].order(Order::Gone { incarnation, reason });
            self.touched.insert(key);
        }
        for name in life.values() {
            self.settle(name);
            self.forget_if_empty(name);
        }
    }

    fn forget_if_empty(&mut self, name: &str) {
        if self.pages.get(name).is_some_and(|page| page.bonds.is_empty() && page.entries.is_empty()) {
            self.pages.remove(name);
        }
    }

    /// Binds whoever wants an attribute to whoever has it.
    fn settle(&mut self, name: &str) {
        self.settle_new(name, None);
    }

    /// The same; this life has just told that it has it.
    fn settle_new(&mut self, name: &str, new: Option<Incarnation>) {
        let Some(page) = self.pages.get_mut(name) else { return };
        let Some(chosen) = page.chosen(&self.silent) else { return };
        let entry = &page.entries[chosen];
        let (incarnation, attribute) = (entry.source.incarnation, entry.attribute);
        let (conflict, redundant) = (page.conflict(), page.is_redundant());
        let topic = if entry.own { topics::own(&entry.source.source, attribute) } else { topics::shared(&entry.source.source) };
        for bond in &mut page.bonds {
            let here = bond.bound.as_ref().is_some_and(|tie| tie.is(incarnation, attribute));
            if !here {
                if let Some(Tie { incarnation: life, attribute: number, feed, .. }) = bond.untie()
                    && let Some(inlet) = self.feeds.get(&feed)
                {
                    // Another life of the source has come before the end of this one was noticed, or a better claim; or a
                    // redundant one takes over, or the first of them is back.
                    let told = match page.entries.iter().any(|entry| entry.is(life, number)) && redundant {
                        true if self.silent.contains(&life) => Some(Reason::SourceHung),
                        true => None,
                        false => Some(Reason::SourceDied),
                    };
                    inlet.order(Order::Unbind { incarnation: life, attribute: number, sub: bond.sub.id, told });
                    self.touched.insert(feed);
                }
                let key = FeedKey { topics: topic.clone(), reliable: bond.sub.wish.reliable };
                let key = if self.feeds.contains_key(&key) || self.feeds.len() < self.max_feeds {
                    key
                } else {
                    let all = if entry.own { topics::ALL_OWN } else { topics::ALL_SHARED };
                    FeedKey { topics: all.to_owned(), ..key }
                };
                let wanted = &mut self.wanted;
                let inlet = self.feeds.entry(key.clone()).or_insert_with(|| {
                    wanted.push(key.clone());
                    Arc::default()
                });
                let (inlet, stands) = (inlet.clone(), Arc::new(AtomicBool::new(true)));
                let target = Target { source: entry.source.clone(), attribute, own: entry.own, since: entry.since };
                let (info, sub, again) = (entry.info.clone(), bond.sub.clone(), bond.again);
                // Each feed has a worker of its own, and the last word of the one comes before the first of the other.
                let by = bond.before.take().filter(|before| *before != key && self.feeds.contains_key(before));
                let handed = by.is_some().then(|| stands.clone());
                let bind = Order::Bind { target, info, sub, again, new: new == Some(incarnation), stands: handed };
                let (order, first) = match &by {
                    Some(before) => (Order::Pass { to: inlet, order: Box::new(bind) }, before.clone()),
                    None => (bind, key.clone()),
                };
                self.feeds[&first].order(order);
                self.touched.insert(first);
                bond.again = true;
                bond.bound = Some(Tie { incarnation, attribute, feed: key, by, stands });
            }
            if conflict && let Some(Tie { feed, by, .. }) = &bond.bound {
                let tell = Order::Tell { incarnation, attribute, reason: Reason::Conflict };
                let (order, first) = match by.as_ref().filter(|by| self.feeds.contains_key(by)) {
                    Some(by) => (Order::Pass { to: self.feeds[feed].clone(), order: Box::new(tell) }, by),
                    None => (tell, feed),
                };
                self.feeds[first].order(order);
                self.touched.insert(first.clone());
            }
        }
    }

    /// Has the feeds that have orders look at them.
    pub fn ring(&mut self) {
        for key in self.touched.drain() {
            if let Some(inlet) = self.feeds.get(&key) {
                inlet.ring();
            }
        }
    }

    /// Who has an attribute.
    pub fn known(&self, name: &AttributeName) -> Vec<Known> {
        let Some(page) = self.pages.get(name.folded()) else { return Vec::new() };
        let chosen = page.chosen(&self.silent);
        let known = |(at, entry): (usize, &Entry)| Known {
            source: SourceInfo::clone(&entry.source),
            chosen: chosen == Some(at),
            info: entry.info.clone(),
        };
        page.entries.iter().enumerate().map(known).collect()
    }

    /// Every attribute that somebody has.
    pub fn attributes(&self) -> Vec<Arc<AttributeInfo>> {
        let mut all: Vec<Arc<AttributeInfo>> =
            self.pages.values().filter_map(|page| Some(page.entries[page.chosen(&self.silent)?].info.clone())).collect();
        all.sort_by(|a, b| a.config.name.cmp(&b.config.name));
        all
    }
}

fn matches(sub: &Sub, name: &AttributeName) -> bool {
    sub.wish.attributes.iter().any(|pattern| pattern.exact().is_none() && pattern.matches(name))
}

impl Page {
    fn want(&mut self, sub: &Arc<Sub>) {
        if !self.bonds.iter().any(|bond| bond.sub.id == sub.id) {
            self.bonds.push(Bond { sub: sub.clone(), bound: None, before: None, again: false });
        }
    }

    fn wanted_by(&self, sub: &Sub) -> bool {
        self.entries.first().is_some_and(|entry| matches(sub, &entry.info.config.name))
    }

    /// Which of those who have it is taken. The rule is that of the servers (`rivals`), so that all agree; of redundant ones,
    /// those that are heard go before it.
    fn chosen(&self, silent: &HashSet<Incarnation>) -> Option<usize> {
        let redundant = self.is_redundant();
        let hangs = |entry: &Entry| redundant && silent.contains(&entry.source.incarnation);
        let better = |a: &Entry, b: &Entry| match (hangs(a), hangs(b)) {
            (false, true) => true,
            (true, false) => false,
            _ => yields(&b.source.source, b.source.incarnation, &a.source),
        };
        let mut chosen = 0;
        for at in 1..self.entries.len() {
            if better(&self.entries[at], &self.entries[chosen]) {
                chosen = at;
            }
        }
        (!self.entries.is_empty()).then_some(chosen)
    }

    /// Whether two have it and have not said that they are redundant. Two lives of one source are none: the end of the first is
    /// noticed a moment after the second has come. If it goes on living, it is told itself that it lost its name.
    fn conflict(&self) -> bool {
        let same = |a: &Entry, b: &Entry| a.source.source.as_str().eq_ignore_ascii_case(b.source.source.as_str());
        let others = self.entries.windows(2).any(|pair| !same(&pair[0], &pair[1]));
        others && !self.is_redundant()
    }

    /// Whether several have it, and all say so.
    fn is_redundant(&self) -> bool {
        self.entries.len() > 1 && self.entries.iter().all(|entry| entry.redundant)
    }

    /// The feeds that bring an attribute of a life, and by which others they are told of who is bound to it.
    fn feeds_of(&self, incarnation: Incarnation, attribute: u32) -> HashSet<(FeedKey, Option<FeedKey>)> {
        let ties = self.bonds.iter().filter_map(|bond| bond.bound.as_ref());
        ties.filter(|tie| tie.is(incarnation, attribute)).map(|tie| (tie.feed.clone(), tie.by.clone())).collect()
    }

    fn release(&mut self, incarnation: Incarnation, attribute: u32) {
        for bond in &mut self.bonds {
            if bond.bound.as_ref().is_some_and(|tie| tie.is(incarnation, attribute)) {
                bond.untie();
            }
        }
    }
}

impl Book {
    /// Closes a feed nobody needs; says whether it may go.
    pub fn close(&mut self, key: &FeedKey) -> bool {
        // What it is to hand on to another is an order like others, and given under the book's lock.
        let idle = self.feeds.get(key).is_none_or(|inlet| inlet.bindings.load(Ordering::Relaxed) == 0 && inlet.has_no_orders());
        let bonded = |page: &Page| page.bonds.iter().any(|bond| bond.bound.as_ref().is_some_and(|tie| tie.feed == *key));
        if idle && !self.touched.contains(key) && !self.pages.values().any(bonded) {
            self.feeds.remove(key);
            return true;
        }
        false
    }
}
