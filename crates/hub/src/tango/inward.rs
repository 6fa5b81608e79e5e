//! From Tango to Tampu: attributes of Tango's devices are declared here under their own names, and every event of them is published as what
//! it is.
//!
//! | Tango says | here |
//! |-|-|
//! | a value, as a kind of event | an event of that kind, with Tango's value, quality, time and set point |
//! | the value at the beginning of a subscription | an event of all kinds, if nothing stands there yet, or an error does |
//! | an error of the device | the attribute has no reading; the device's stack of errors says why |
//! | the source is not heard | the same, with `Tango_SourceDied` as outermost error |
//! | events were missed | an event with `Tango_Missed`; the value stays |
//! | another configuration | the same here, with an epoch of its own |
//! | an attribute came or went | it is declared or withdrawn, and an interface event tells |
//!
//! While there is no Python side, the attributes have no reading either: nobody knows their values.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use tampu_event::{Attribute, Server, criteria::Reading, server::DeclareError, server::PushError};
use tampu_types::{
    Time,
    event::{AttributeConfig, EventKind, Failure, Kinds, Quality},
};

use super::{
    ask::Ask,
    life::Part,
    line::{Dropped, Line, Listed, Said, TangoEvent, Told, Unconvertible, Why},
    process::Handle,
    settings::Address,
    value::{BadLineValue, LineValue},
};
use crate::tango::{Direction, News, Shared};

/// Reasons by which Tango refuses events of one kind: the attribute does not send them.
const NOT_SENT: [&str; 5] = [
    "API_AttributePollingNotStarted",
    "API_EventPropertiesNotSet",
    "API_AttributeNotDataReadyEnabled",
    "API_EventSupported",
    "API_NotSupportedFeature",
];

/// How many attributes that send no changes are named.
const TOLD_ONE_BY_ONE: u64 = 20;

/// An attribute of Tango.
struct Entry {
    address: Address,
    /// The pattern under which it fell, where it was not named.
    under: Option<String>,
    /// Ours, once its configuration is known.
    attribute: Option<Attribute>,
    /// What came before the configuration did.
    held: Option<Box<TangoEvent>>,
    /// It has a reading that holds.
    has_reading: bool,
    /// Why it has none: the same again is no news.
    failing: Vec<Failure>,
    /// The source is not heard.
    silent: bool,
    /// Kinds it does not send.
    not_sent: Kinds,
    /// It cannot be ours.
    refused: bool,
    /// Events of it that could not be carried.
    not_carried: u64,
}

/// Why an event is not published.
enum Trouble {
    /// The attribute belongs to another source on the bus.
    Taken(String),
    /// The event cannot be one of the attribute.
    Wrong(String),
}

impl From<PushError> for Trouble {
    fn from(error: PushError) -> Trouble {
        match error {
            PushError::Taken { by, .. } => Trouble::Taken(belongs_to(&by)),
            other => Trouble::Wrong(other.to_string()),
        }
    }
}

impl From<BadLineValue> for Trouble {
    fn from(error: BadLineValue) -> Trouble {
        Trouble::Wrong(error.to_string())
    }
}

fn belongs_to(by: &str) -> String {
    format!("it belongs to {by} on the bus: two sources of one name, or a circle of bridges")
}

/// Devices whose interface is followed, each by the address of one of its attributes.
#[derive(Default)]
struct Interfaces(HashMap<String, String>);

impl Interfaces {
    /// Whether an attribute that is followed now is the one that follows the interface of its device.
    fn follow(&mut self, text: &str) -> bool {
        self.0.entry(device_of(text).to_owned()).or_insert_with(|| text.to_owned()) == text
    }

    /// An attribute is followed no more; which of the others has to follow the interface instead.
    fn forget<'a>(&mut self, text: &str, mut others: impl Iterator<Item = &'a String>) -> Option<String> {
        let device = device_of(text);
        self.0.get(device).filter(|follower| *follower == text)?;
        self.0.remove(device);
        others.find(|other| device_of(other) == device).cloned()
    }
}

pub(super) struct Inward {
    shared: Arc<Shared>,
    server: Server,
    entries: HashMap<String, Entry>,
    followed: Interfaces,
    /// Devices that are not heard.
    silent: HashSet<String>,
}

impl Inward {
    pub fn new(shared: Arc<Shared>, server: Server) -> Inward {
        Inward { shared, server, entries: HashMap::new(), followed: Interfaces::default(), silent: HashSet::new() }
    }

    /// Follows an attribute.
    fn follow(&mut self, text: &str, under: Option<&str>, handle: &Handle) {
        let address = match Address::parse(text) {
            Ok(address) => address,
            Err(why) => return self.shared.tell(News::Refused { attribute: text.to_owned(), why }),
        };
        let entry = self.entries.entry(text.to_owned()).or_insert_with(|| Entry {
            address,
            under: under.map(str::to_owned),
            attribute: None,
            held: None,
            has_reading: false,
            failing: Vec::new(),
            silent: false,
            not_sent: Kinds::NONE,
            refused: false,
            not_carried: 0,
        });
        entry.refused = false;
        let first = self.followed.follow(text);
        // Of a device's interface one word is enough.
        let kinds: Vec<EventKind> =
            self.shared.settings.kinds.iter().copied().filter(|&kind| first || kind != EventKind::Interface).collect();
        handle.asks.ask(None, &Ask::Subscribe { attribute: text, kinds: &kinds });
        self.count();
    }

    fn forget(&mut self, text: &str, handle: &Handle) {
        handle.asks.ask(None, &Ask::Unsubscribe { attribute: text });
        // Its last handle withdraws the attribute.
        self.entries.remove(text);
        if let Some(next) = self.followed.forget(text, self.entries.keys()) {
            self.follow(&next, None, handle);
        }
        self.count();
    }

    fn count(&self) {
        let there = self.entries.values().filter(|entry| entry.attribute.is_some() && !entry.silent).count();
        let counts = &self.shared.counts;
        counts.from_tango_attributes.store(self.entries.len() as u64, Ordering::Relaxed);
        counts.silent_attributes.store((self.entries.len() - there) as u64, Ordering::Relaxed);
    }

    /// What falls under a pattern now. What a device no longer has goes; a device that does not answer keeps what it had.
    fn listed(&mut self, listed: &Listed, handle: &Handle) {
        let answered: HashSet<&str> = listed.attributes.iter().map(|text| device_of(text)).collect();
        let there: HashSet<&str> = listed.attributes.iter().map(String::as_str).collect();
        let gone: Vec<String> = self
            .entries
            .iter()
            .filter(|(text, entry)| {
                entry.under.as_deref() == Some(&listed.pattern)
                    && !there.contains(text.as_str())
                    && answered.contains(device_of(text))
            })
            .map(|(text, _)| text.clone())
            .collect();
        gone.iter().for_each(|text| self.forget(text, handle));
        for text in &listed.attributes {
            if !self.entries.contains_key(text) {
                self.follow(text, Some(&listed.pattern), handle);
            }
        }
        if listed.attributes.is_empty() && listed.silent.is_empty() {
            self.shared.tell(News::Nothing(listed.pattern.clone()));
        }
    }

    fn configured(&mut self, text: &str, config: Result<Box<AttributeConfig>, String>) {
        let Some(entry) = self.entries.get_mut(text) else { return };
        let declared = match config {
            Ok(config) => declare(&self.server, entry, *config),
            Err(why) => Err(why),
        };
        if let Err(why) = declared {
            return refuse(entry, &self.shared, why);
        }
        entry.refused = false;
        let held = entry.held.take();
        self.count();
        if let Some(event) = held {
            self.event(event);
        }
    }

    fn event(&mut self, event: Box<TangoEvent>) {
        let Some(entry) = self.entries.get_mut(&event.attribute) else { return };
        if event.reason == Why::Error && event.failures.iter().any(|failure| NOT_SENT.contains(&failure.reason.as_str())) {
            let first = !entry.not_sent.contains(event.kind);
            entry.not_sent |= event.kind.into();
            if first && event.kind == EventKind::Change {
                self.not_sending(&event);
            }
            return;
        }
        let was_silent = entry.silent;
        match event.reason {
            Why::Error => entry.silent = event.lost,
            Why::Gap => {}
            _ => entry.silent = false,
        }
        let (silent, text) = (entry.silent, entry.address.text.clone());
        if entry.attribute.is_none() {
            if entry.refused {
                return;
            }
            let why = event.failures.first().map(|failure| failure.description.clone());
            entry.held = Some(event);
            self.heard(&text, was_silent, silent, why);
            return;
        }
        let why = event.failures.last().map(|failure| failure.description.clone());
        if let Some(attribute) = &entry.attribute.clone() {
            match publish(entry, attribute, &event, self.shared.settings.kinds()) {
                Ok(published) => {
                    entry.refused = false;
                    self.shared.counts.from_tango.fetch_add(published, Ordering::Relaxed);
                    if event.reason == Why::Gap {
                        self.shared.counts.gaps.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Err(Trouble::Taken(why)) => refuse(entry, &self.shared, why),
                Err(Trouble::Wrong(why)) => {
                    entry.not_carried += 1;
                    let often = entry.not_carried;
                    self.not_carried(&event.attribute, 1, often, why);
                }
            }
        }
        self.heard(&text, was_silent, silent, why);
    }

    /// An attribute sends no changes: with many of them, the first ones are told and all are counted.
    fn not_sending(&self, event: &TangoEvent) {
        let before = self.shared.counts.not_sending.fetch_add(1, Ordering::Relaxed);
        if before < TOLD_ONE_BY_ONE {
            let why = event.failures.first().map(|failure| failure.description.as_str()).unwrap_or_default();
            let more = if before + 1 == TOLD_ONE_BY_ONE { "; further ones are only counted" } else { "" };
            let what = format!("sends no change events: {why}{more}");
            self.shared.tell(News::Remark { attribute: Some(event.attribute.clone()), what });
        }
    }

    /// Tells of a device that falls silent or is heard again, once for all its attributes.
    fn heard(&mut self, text: &str, was_silent: bool, silent: bool, why: Option<String>) {
        if was_silent == silent {
            return;
        }
        let device = device_of(text).to_owned();
        if silent {
            if self.silent.insert(device.clone()) {
                self.shared.tell(News::Silent { device, why: why.unwrap_or_default() });
            }
        } else if self.silent.remove(&device) {
            self.shared.tell(News::Heard { device });
        }
        self.count();
    }

    /// Counts events that cannot be carried, and tells of the first, second, fourth, eighth... of an attribute.
    fn not_carried(&self, attribute: &str, count: u64, often: u64, why: String) {
        self.shared.counts.not_carried(Direction::FromTango, count);
        if often.is_power_of_two() {
            self.shared.tell(News::NotCarried { direction: Direction::FromTango, attribute: attribute.to_owned(), why });
        }
    }

    /// Tells an attribute's subscribers that events of it were lost on the way.
    fn dropped(&mut self, dropped: &Dropped) {
        self.shared.counts.lost(Direction::FromTango, dropped.count);
        let attribute = self.entries.get(&dropped.attribute).and_then(|entry| entry.attribute.as_ref());
        if let Some(attribute) = attribute {
            let what = format!("{} events came faster than the bridge could carry them", dropped.count);
            // If that cannot be published, the count has it.
            let _ = attribute.remark(self.shared.settings.kinds(), &[Failure::new("Tango_Missed", what)]);
        }
        let Dropped { attribute, count, .. } = dropped.clone();
        self.shared.tell(News::Lost { direction: Direction::FromTango, attribute, count });
    }
}

impl Part for Inward {
    fn direction(&self) -> Direction {
        Direction::FromTango
    }

    fn wanted(&mut self, shared: &Shared) -> bool {
        !shared.stopped()
    }

    fn begin(&mut self, handle: &Handle) {
        self.followed = Interfaces::default();
        self.silent.clear();
        // Those that were found before, first: they come back also while the database does not.
        let known: Vec<(String, Option<String>)> =
            self.entries.iter().map(|(text, entry)| (text.clone(), entry.under.clone())).collect();
        for (text, under) in known {
            self.follow(&text, under.as_deref(), handle);
        }
        for text in self.shared.clone().settings.subscribe.iter() {
            match Address::parse(text) {
                Ok(address) if address.is_pattern => handle.asks.ask(None, &Ask::List(text)),
                _ if self.entries.contains_key(text) => {}
                _ => self.follow(text, None, handle),
            }
        }
    }

    fn take(&mut self, line: Line, handle: &Handle) {
        match line.said {
            Said::Event(event) if event.kind == EventKind::Interface && event.reason != Why::Error => {
                if event.reason != Why::First {
                    // What falls under the patterns may be more now, or less.
                    patterns(&self.shared).for_each(|text| handle.asks.ask(None, &Ask::List(text)));
                }
                let attribute = self.entries.get(&event.attribute).and_then(|entry| entry.attribute.clone());
                if let Some(attribute) = attribute.filter(|_| event.reason != Why::First) {
                    let published = attribute.interface_changed(&event.attributes);
                    self.shared.counts.from_tango.fetch_add(u64::from(published.is_ok()), Ordering::Relaxed);
                }
            }
            Said::Event(event) => self.event(event),
            Said::Config { attribute, config } => self.configured(&attribute, config),
            Said::Listed(listed) => self.listed(&listed, handle),
            Said::Dropped(dropped) => self.dropped(&dropped),
            Said::Unconvertible(Unconvertible { attribute, failure, count, .. }) => {
                // It is told for powers of two: what came since the last time.
                self.not_carried(&attribute, count.div_ceil(2), count, failure.description);
            }
            Said::Error(Told { failure, attribute }) => {
                self.shared.tell(News::Remark { attribute, what: failure.description });
            }
            Said::Hello(_) | Said::Serving(_) | Said::Counts | Said::Else => {}
        }
    }

    fn broken(&mut self, why: &str) {
        let text = "the bridge to Tango has to begin anew; what Tango sends meanwhile is missed";
        let failures = [Failure::new("Tango_BridgeEnded", why), Failure::new("Tango_Missed", text)];
        for entry in self.entries.values_mut() {
            entry.held = None;
            entry.silent = false;
            if let Some(attribute) = &entry.attribute
                && !same_reasons(&entry.failing, &failures)
            {
                // If that cannot be published, another process has the attribute.
                let _ = attribute.push_as(value_kinds(self.shared.settings.kinds()), &Reading::failed(&failures), None);
                (entry.failing, entry.has_reading) = (failures.to_vec(), false);
            }
        }
        self.count();
    }

    fn ticker(&mut self) -> Box<dyn FnMut(&Handle) + Send> {
        let (shared, mut looked) = (self.shared.clone(), Instant::now());
        let every = Duration::from_secs(shared.settings.rescan_s);
        Box::new(move |handle| {
            if looked.elapsed() >= every {
                looked = Instant::now();
                patterns(&shared).for_each(|text| handle.asks.ask(None, &Ask::List(text)));
            }
        })
    }
}

/// What is subscribed to by pattern.
fn patterns(shared: &Shared) -> impl Iterator<Item = &str> {
    let is_pattern = |text: &&String| Address::parse(text).is_ok_and(|address| address.is_pattern);
    shared.settings.subscribe.iter().filter(is_pattern).map(String::as_str)
}

/// The device of an attribute's address, as people write it.
fn device_of(text: &str) -> &str {
    text.split('#').next().and_then(|path| path.rsplit_once('/')).map_or(text, |(device, _)| device)
}

/// Those of the kinds that carry values.
fn value_kinds(kinds: Kinds) -> Kinds {
    Kinds(kinds.0 & Kinds::VALUES.0)
}

/// Whether two stacks are the same trouble, in whatever words.
fn same_reasons(one: &[Failure], other: &[Failure]) -> bool {
    one.iter().map(|failure| &failure.reason).eq(other.iter().map(|failure| &failure.reason))
}

/// Says once that an attribute is not bridged.
fn refuse(entry: &mut Entry, shared: &Shared, why: String) {
    if !std::mem::replace(&mut entry.refused, true) {
        shared.counts.refused.fetch_add(1, Ordering::Relaxed);
        shared.tell(News::Refused { attribute: entry.address.text.clone(), why });
    }
}

/// Makes an attribute ours, or gives it the configuration it has now.
fn declare(server: &Server, entry: &mut Entry, config: AttributeConfig) -> Result<(), String> {
    if let Some(attribute) = &entry.attribute {
        let now = attribute.config();
        if (now.data_type, now.format) == (config.data_type, config.format) {
            attribute.reconfigure(|ours| *ours = config);
            return Ok(());
        }
        // What an attribute is cannot change: this is another one of the same name.
        entry.attribute = None;
        (entry.has_reading, entry.failing) = (false, Vec::new());
    }
    entry.attribute = Some(server.declare(config).map_err(|error| match error {
        DeclareError::Taken { by, .. } => belongs_to(&by),
        other => other.to_string(),
    })?);
    Ok(())
}

/// Publishes an event; says how many that were.
fn publish(entry: &mut Entry, attribute: &Attribute, event: &TangoEvent, kinds: Kinds) -> Result<u64, Trouble> {
    match event.reason {
        Why::Gap => {
            let mut failures = event.failures.clone();
            failures.push(Failure::new("Tango_Missed", "events were lost between Tango and the bridge; nobody knows how many"));
            attribute.remark(event.kind.into(), &failures)?;
            return Ok(1);
        }
        Why::Error => {
            let mut failures = event.failures.clone();
            if event.lost {
                let device = attribute.name().device();
                failures.push(Failure::new(
                    "Tango_SourceDied",
                    format!("Tango does not hear {device}; what it sends meanwhile is missed"),
                ));
            }
            // Tango repeats that it does not hear a source every 10 s, for each kind; and each kind tells an error of the device.
            if entry.failing == failures || event.lost && same_reasons(&entry.failing, &failures) {
                return Ok(0);
            }
            attribute.push_as(value_kinds(kinds), &Reading::failed(&failures), None)?;
            (entry.failing, entry.has_reading) = (failures, false);
            return Ok(1);
        }
        Why::First | Why::Resumed | Why::Update => {}
    }
    if event.kind == EventKind::DataReady {
        attribute.data_ready(event.counter)?;
        return Ok(1);
    }
    // Each kind has a first value of its own; what has come since an error is what subscribers have.
    let begins = !entry.has_reading;
    if !begins && event.reason != Why::Update {
        return Ok(0);
    }
    let read = |value: &Option<LineValue>| value.as_ref().map(LineValue::read).transpose();
    let value = read(&event.value)?;
    let set_point = read(&event.set_point)?;
    let reading = Reading {
        value: value.as_ref().map(|value| value.as_value()),
        set_point: set_point.as_ref().map(|value| value.as_data()),
        quality: if value.is_some() { event.quality } else { Quality::Invalid },
        errors: &[],
    };
    let kinds = if begins { value_kinds(kinds) | event.kind.into() } else { event.kind.into() };
    attribute.push_as(kinds, &reading, event.time_ns.map(Time))?;
    (entry.has_reading, entry.failing) = (true, Vec::new());
    Ok(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_followed_as_long_as_any_attribute_of_the_device_is() {
        let mut interfaces = Interfaces::default();
        let (a, b, other) = ("lab/x/1/a".to_owned(), "lab/x/1/b".to_owned(), "lab/x/2/a".to_owned());
        assert!(interfaces.follow(&a) && interfaces.follow(&other));
        assert!(!interfaces.follow(&b));
        assert!(interfaces.follow(&a), "asked for again");
        assert_eq!(interfaces.forget(&b, [&a, &other].into_iter()), None);
        assert_eq!(interfaces.forget(&a, [&other, &b].into_iter()), Some(b.clone()));
        assert!(interfaces.follow(&b));
        assert_eq!(interfaces.forget(&b, [&other].into_iter()), None);
        assert!(interfaces.follow(&a), "the device has come back");
    }
}
