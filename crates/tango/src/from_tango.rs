//! From Tango to Tampu: attributes of Tango's devices are declared under their own names, and their events are
//! published with their kinds.
//!
//! | in Tango | in Tampu |
//! |-|-|
//! | a value, as a kind of event | an event of that kind, with Tango's value, quality, time and set point |
//! | the value at the beginning of a subscription | an event of all kinds, if there is no value yet or an error |
//! | an error of the device | the attribute has no reading; the device's stack of errors gives the reason |
//! | a silent source | the same, with `Tango_SourceDied` as outermost error |
//! | missed events | an event with `Tango_Missed`; the value stays |
//! | another configuration | the same here, with an epoch of its own |
//! | an attribute added or removed | it is declared or withdrawn, with an interface event |
//!
//! While there is no Python side, the attributes have no reading either, because their values are unknown.

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
    line::{Dropped, EventCause, FailureMessage, Line, Listed, Message, TangoEvent, Unconvertible},
    process::ProcessHandle,
    request::Request,
    settings::Address,
    supervisor::BridgeSide,
    value::{BadLineValue, LineValue},
};
use crate::{
    bridge_state::BridgeState,
    notice::{BridgeNotice, Direction},
};

/// Reasons by which Tango refuses events of one kind: the attribute does not send them.
const NOT_SENT: [&str; 5] = [
    "API_AttributePollingNotStarted",
    "API_EventPropertiesNotSet",
    "API_AttributeNotDataReadyEnabled",
    "API_EventSupported",
    "API_NotSupportedFeature",
];

/// Attributes without change events that are reported one by one; further ones are only counted.
const REPORTED_ONE_BY_ONE: u64 = 20;

/// An attribute of Tango.
struct Entry {
    address: Address,
    /// The pattern under which it fell, where it was not named.
    under: Option<String>,
    /// Ours, once its configuration is known.
    attribute: Option<Attribute>,
    /// The latest event that arrived before the configuration.
    held: Option<Box<TangoEvent>>,
    /// True if it has a valid reading.
    has_reading: bool,
    /// Errors published last. The same errors again are not published.
    failing: Vec<Failure>,
    /// True if the source is silent.
    silent: bool,
    /// Kinds it does not send.
    not_sent: Kinds,
    /// True if it cannot be declared here.
    refused: bool,
    /// Events of it that could not be carried.
    not_carried: u64,
}

/// Reasons for which an event is not published.
enum PublishError {
    /// The attribute belongs to another source on the bus.
    Taken(String),
    /// The event cannot be one of the attribute.
    Wrong(String),
}

impl From<PushError> for PublishError {
    fn from(error: PushError) -> PublishError {
        match error {
            PushError::Taken { by, .. } => PublishError::Taken(belongs_to(&by)),
            other => PublishError::Wrong(other.to_string()),
        }
    }
}

impl From<BadLineValue> for PublishError {
    fn from(error: BadLineValue) -> PublishError {
        PublishError::Wrong(error.to_string())
    }
}

fn belongs_to(by: &str) -> String {
    format!("it belongs to {by} on the bus: two sources of one name, or a circle of bridges")
}

/// Devices with a followed interface, each by the address of one of its attributes.
#[derive(Default)]
struct InterfaceFollowers(HashMap<String, String>);

impl InterfaceFollowers {
    /// Returns whether this attribute is the one that follows the interface of its device.
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

pub(super) struct FromTango {
    shared: Arc<BridgeState>,
    server: Server,
    entries: HashMap<String, Entry>,
    followed: InterfaceFollowers,
    /// Devices that are silent.
    silent: HashSet<String>,
}

impl FromTango {
    pub fn new(shared: Arc<BridgeState>, server: Server) -> FromTango {
        FromTango { shared, server, entries: HashMap::new(), followed: InterfaceFollowers::default(), silent: HashSet::new() }
    }

    /// Follows an attribute.
    fn follow(&mut self, text: &str, under: Option<&str>, handle: &ProcessHandle) {
        let address = match Address::parse(text) {
            Ok(address) => address,
            Err(why) => return self.shared.notify(BridgeNotice::Refused { attribute: text.to_owned(), why }),
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
        // One report of a device's interface is enough.
        let kinds: Vec<EventKind> =
            self.shared.settings.kinds.iter().copied().filter(|&kind| first || kind != EventKind::Interface).collect();
        handle.requests.send(None, &Request::Subscribe { attribute: text, kinds: &kinds });
        self.count();
    }

    fn forget(&mut self, text: &str, handle: &ProcessHandle) {
        handle.requests.send(None, &Request::Unsubscribe { attribute: text });
        // Dropping its last handle withdraws the attribute.
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

    /// Handles the attributes that match a pattern. Attributes that a device has removed are dropped; a device that
    /// does not answer keeps its attributes.
    fn listed(&mut self, listed: &Listed, handle: &ProcessHandle) {
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
            self.shared.notify(BridgeNotice::Nothing(listed.pattern.clone()));
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
        if event.reason == EventCause::Error && event.failures.iter().any(|failure| NOT_SENT.contains(&failure.reason.as_str())) {
            let first = !entry.not_sent.contains(event.kind);
            entry.not_sent |= event.kind.into();
            if first && event.kind == EventKind::Change {
                self.not_sending(&event);
            }
            return;
        }
        let was_silent = entry.silent;
        match event.reason {
            EventCause::Error => entry.silent = event.lost,
            EventCause::Gap => {}
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
                    if event.reason == EventCause::Gap {
                        self.shared.counts.gaps.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Err(PublishError::Taken(why)) => refuse(entry, &self.shared, why),
                Err(PublishError::Wrong(why)) => {
                    entry.not_carried += 1;
                    let often = entry.not_carried;
                    self.not_carried(&event.attribute, 1, often, why);
                }
            }
        }
        self.heard(&text, was_silent, silent, why);
    }

    /// Counts an attribute that sends no changes; reports only the first ones.
    fn not_sending(&self, event: &TangoEvent) {
        let before = self.shared.counts.not_sending.fetch_add(1, Ordering::Relaxed);
        if before < REPORTED_ONE_BY_ONE {
            let why = event.failures.first().map(|failure| failure.description.as_str()).unwrap_or_default();
            let more = if before + 1 == REPORTED_ONE_BY_ONE { "; further ones are only counted" } else { "" };
            let what = format!("sends no change events: {why}{more}");
            self.shared.notify(BridgeNotice::Remark { attribute: Some(event.attribute.clone()), what });
        }
    }

    /// Reports a device that falls silent or is heard again, once for all its attributes.
    fn heard(&mut self, text: &str, was_silent: bool, silent: bool, why: Option<String>) {
        if was_silent == silent {
            return;
        }
        let device = device_of(text).to_owned();
        if silent {
            if self.silent.insert(device.clone()) {
                self.shared.notify(BridgeNotice::Silent { device, why: why.unwrap_or_default() });
            }
        } else if self.silent.remove(&device) {
            self.shared.notify(BridgeNotice::Heard { device });
        }
        self.count();
    }

    /// Counts events that cannot be carried, and reports the first, second, fourth, eighth... of an attribute.
    fn not_carried(&self, attribute: &str, count: u64, often: u64, why: String) {
        self.shared.counts.not_carried(Direction::FromTango, count);
        if often.is_power_of_two() {
            self.shared.notify(BridgeNotice::NotCarried {
                direction: Direction::FromTango,
                attribute: attribute.to_owned(),
                why,
            });
        }
    }

    /// Reports lost events to the subscribers of an attribute.
    fn dropped(&mut self, dropped: &Dropped) {
        self.shared.counts.lost(Direction::FromTango, dropped.count);
        let attribute = self.entries.get(&dropped.attribute).and_then(|entry| entry.attribute.as_ref());
        if let Some(attribute) = attribute {
            let what = format!("{} events arrived faster than the bridge could carry them", dropped.count);
            // If the remark cannot be published, the count still has it.
            let _ = attribute.remark(self.shared.settings.kinds(), &[Failure::new("Tango_Missed", what)]);
        }
        let Dropped { attribute, count, .. } = dropped.clone();
        self.shared.notify(BridgeNotice::Lost { direction: Direction::FromTango, attribute, count });
    }
}

impl BridgeSide for FromTango {
    fn direction(&self) -> Direction {
        Direction::FromTango
    }

    fn wanted(&mut self, shared: &BridgeState) -> bool {
        !shared.stopped()
    }

    fn begin(&mut self, handle: &ProcessHandle) {
        self.followed = InterfaceFollowers::default();
        self.silent.clear();
        // The known attributes come first, so that they come back even while the database does not answer.
        let known: Vec<(String, Option<String>)> =
            self.entries.iter().map(|(text, entry)| (text.clone(), entry.under.clone())).collect();
        for (text, under) in known {
            self.follow(&text, under.as_deref(), handle);
        }
        for text in self.shared.clone().settings.subscribe.iter() {
            match Address::parse(text) {
                Ok(address) if address.is_pattern => handle.requests.send(None, &Request::List(text)),
                _ if self.entries.contains_key(text) => {}
                _ => self.follow(text, None, handle),
            }
        }
    }

    fn take(&mut self, line: Line, handle: &ProcessHandle) {
        match line.message {
            Message::Event(event) if event.kind == EventKind::Interface && event.reason != EventCause::Error => {
                if event.reason != EventCause::First {
                    // The attributes that match the patterns may have changed.
                    patterns(&self.shared).for_each(|text| handle.requests.send(None, &Request::List(text)));
                }
                let attribute = self.entries.get(&event.attribute).and_then(|entry| entry.attribute.clone());
                if let Some(attribute) = attribute.filter(|_| event.reason != EventCause::First) {
                    let published = attribute.interface_changed(&event.attributes);
                    self.shared.counts.from_tango.fetch_add(u64::from(published.is_ok()), Ordering::Relaxed);
                }
            }
            Message::Event(event) => self.event(event),
            Message::Config { attribute, config } => self.configured(&attribute, config),
            Message::Listed(listed) => self.listed(&listed, handle),
            Message::Dropped(dropped) => self.dropped(&dropped),
            Message::Unconvertible(Unconvertible { attribute, failure, count, .. }) => {
                // The bridge reports powers of two, so the rest since the last report is added.
                self.not_carried(&attribute, count.div_ceil(2), count, failure.description);
            }
            Message::Error(FailureMessage { failure, attribute }) => {
                self.shared.notify(BridgeNotice::Remark { attribute, what: failure.description });
            }
            Message::Hello(_) | Message::Serving(_) | Message::Counts | Message::Other => {}
        }
    }

    fn broken(&mut self, why: &str) {
        let text = "the bridge to Tango restarts; Tango's events are missed until then";
        let failures = [Failure::new("Tango_BridgeEnded", why), Failure::new("Tango_Missed", text)];
        for entry in self.entries.values_mut() {
            entry.held = None;
            entry.silent = false;
            if let Some(attribute) = &entry.attribute
                && !same_reasons(&entry.failing, &failures)
            {
                // If this cannot be published, another process owns the attribute.
                let _ = attribute.push_as(value_kinds(self.shared.settings.kinds()), &Reading::failed(&failures), None);
                (entry.failing, entry.has_reading) = (failures.to_vec(), false);
            }
        }
        self.count();
    }

    fn periodic_task(&mut self) -> Box<dyn FnMut(&ProcessHandle) + Send> {
        let (shared, mut looked) = (self.shared.clone(), Instant::now());
        let every = Duration::from_secs(shared.settings.rescan_s);
        Box::new(move |handle| {
            if looked.elapsed() >= every {
                looked = Instant::now();
                patterns(&shared).for_each(|text| handle.requests.send(None, &Request::List(text)));
            }
        })
    }
}

/// Returns the subscribed patterns.
fn patterns(shared: &BridgeState) -> impl Iterator<Item = &str> {
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

/// Returns whether two error stacks have the same reasons, in any wording.
fn same_reasons(one: &[Failure], other: &[Failure]) -> bool {
    one.iter().map(|failure| &failure.reason).eq(other.iter().map(|failure| &failure.reason))
}

/// Says once that an attribute is not bridged.
fn refuse(entry: &mut Entry, shared: &BridgeState, why: String) {
    if !std::mem::replace(&mut entry.refused, true) {
        shared.counts.refused.fetch_add(1, Ordering::Relaxed);
        shared.notify(BridgeNotice::Refused { attribute: entry.address.text.clone(), why });
    }
}

/// Declares an attribute, or gives it its present configuration.
fn declare(server: &Server, entry: &mut Entry, config: AttributeConfig) -> Result<(), String> {
    if let Some(attribute) = &entry.attribute {
        let now = attribute.config();
        if (now.data_type, now.format) == (config.data_type, config.format) {
            attribute.reconfigure(|ours| *ours = config);
            return Ok(());
        }
        // Type and format of an attribute are fixed: this is another attribute of the same name.
        entry.attribute = None;
        (entry.has_reading, entry.failing) = (false, Vec::new());
    }
    entry.attribute = Some(server.declare(config).map_err(|error| match error {
        DeclareError::Taken { by, .. } => belongs_to(&by),
        other => other.to_string(),
    })?);
    Ok(())
}

/// Publishes an event; returns the number of published events.
fn publish(entry: &mut Entry, attribute: &Attribute, event: &TangoEvent, kinds: Kinds) -> Result<u64, PublishError> {
    match event.reason {
        EventCause::Gap => {
            let mut failures = event.failures.clone();
            failures.push(Failure::new("Tango_Missed", "an unknown number of events was lost between Tango and the bridge"));
            attribute.remark(event.kind.into(), &failures)?;
            return Ok(1);
        }
        EventCause::Error => {
            let mut failures = event.failures.clone();
            if event.lost {
                let device = attribute.name().device();
                failures.push(Failure::new(
                    "Tango_SourceDied",
                    format!("Tango gets nothing from {device}; its events are missed until it returns"),
                ));
            }
            // Tango repeats every 10 s and for each kind that a source is silent, and reports a device error for each kind.
            if entry.failing == failures || event.lost && same_reasons(&entry.failing, &failures) {
                return Ok(0);
            }
            attribute.push_as(value_kinds(kinds), &Reading::failed(&failures), None)?;
            (entry.failing, entry.has_reading) = (failures, false);
            return Ok(1);
        }
        EventCause::First | EventCause::Resumed | EventCause::Update => {}
    }
    if event.kind == EventKind::DataReady {
        attribute.data_ready(event.counter)?;
        return Ok(1);
    }
    // Each kind begins with a first value; subscribers already have any value that came since an error.
    let begins = !entry.has_reading;
    if !begins && event.reason != EventCause::Update {
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
        let mut interfaces = InterfaceFollowers::default();
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
