//! From Tampu to Tango: a device server offers Tampu's attributes, in devices of their own names, to Tango's clients.
//!
//! | in Tampu | for Tango's clients |
//! |-|-|
//! | an event | events of its kinds, and the value when they read |
//! | periodic | nothing: Tango makes these itself from its polling |
//! | a reading that failed | its errors as an exception |
//! | the source died, hung, left | an exception with that reason, until it is back |
//! | a gap | an event `API_MissedEvents`; the value stays |
//! | another configuration | the same; labels and types need another device server, which starts automatically |
//!
//! Attributes from Tango are not served: their sources are recognised by the names of bridges. Attributes are read
//! only, because the bridge cannot report the result of a write.
//!
//! Tango fixes a server's devices at its start. So attributes are gathered first. A later device restarts the server,
//! on the same port and not too often; a later attribute of a known device is added while the server runs.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    net::{SocketAddr, TcpListener},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tampu_event::{
    Client,
    client::{Event, SubscribeOptions, Subscription},
};
use tampu_types::event::{AttributeConfig, EventKind, Failure, Kinds, Missed, Quality, Reason, ValueView, Writable};

use super::{
    line::{Dropped, FailureMessage, Line, Message, Unconvertible},
    process::ProcessHandle,
    pushes::{self, Pushes},
    request::{Device, PUSHABLE, Push, Request, RequestQueue, Serve},
    settings::{Database, TangoSettings},
    supervisor::BridgeSide,
    value::LineValue,
};
use crate::{
    bridge_state::{BridgeState, SOURCE},
    notice::{BridgeNotice, Direction},
};

/// Time without new attributes before a device server starts.
const QUIET: Duration = Duration::from_millis(700);
/// Shortest life of a device server before new devices restart it.
const STAY: Duration = Duration::from_secs(20);
/// Ids of requests with an expected reply.
const SERVE: u64 = 1;
const FOLLOWED: Kinds = Kinds(Kinds::VALUES.0 | 1 << EventKind::DataReady as u8);

/// The attributes to serve, as this process knows them.
#[derive(Default)]
struct ServedAttributes {
    /// Attributes by their name in lower case.
    attributes: BTreeMap<String, Arc<AttributeConfig>>,
    /// Time at which the latest new attribute was found.
    heard: Option<Instant>,
    /// True if the present device server cannot add the new attributes.
    anew: bool,
    /// Attributes of the running device server.
    served: HashMap<String, Arc<AttributeConfig>>,
    devices: HashSet<String>,
    /// Start of the device server; `None` if there is none.
    since: Option<Instant>,
}

pub(super) struct ToTango {
    shared: Arc<BridgeState>,
    client: Client,
    attributes_served: Arc<Mutex<ServedAttributes>>,
    /// Hears of attributes.
    _scout: Subscription,
    /// Hears of their events, for the present device server.
    events: Option<Subscription>,
    /// Address of the device server. It stays the same after a restart, so that clients find it again.
    place: Option<SocketAddr>,
}

/// Returns whether a bridge published the event.
fn came_from_tango(event: &Event<'_>) -> bool {
    event.source.source.as_str().starts_with(SOURCE)
}

impl ToTango {
    pub fn new(shared: Arc<BridgeState>, client: Client) -> ToTango {
        let attributes_served = Arc::new(Mutex::new(ServedAttributes::default()));
        let (heard, settings) = (attributes_served.clone(), shared.settings.clone());
        // Without kinds: the first report of each attribute, and then changes of its configuration and source.
        let wish = SubscribeOptions::of(settings.serve.iter().cloned()).kinds(Kinds::NONE);
        let scout = client.subscribe(wish, move |event| {
            if !came_from_tango(event) {
                heard.lock().hear(&event.attribute.config, &settings);
            }
        });
        ToTango { shared, client, attributes_served, _scout: scout, events: None, place: None }
    }

    /// Returns the address for the device server.
    fn listen(&mut self) -> SocketAddr {
        let wanted = self.shared.settings.listen;
        *self.place.get_or_insert_with(|| match wanted.port() {
            // If another program takes the port first, the server ends and another port is tried.
            0 => TcpListener::bind(wanted).and_then(|free| free.local_addr()).unwrap_or(wanted),
            _ => wanted,
        })
    }

    fn serving(&mut self, handle: &ProcessHandle) {
        let (shared, attributes_served) = (self.shared.clone(), self.attributes_served.clone());
        let mut pushes = Pushes::new(handle.requests.clone(), shared.clone());
        let wish = SubscribeOptions::of(shared.settings.serve.iter().cloned()).kinds(FOLLOWED);
        // The current values come first, so that every device server begins with them.
        self.events = Some(self.client.subscribe(wish, move |event| {
            if !came_from_tango(event) && is_served(&attributes_served, event, &pushes.requests, &shared) {
                push(event, &mut pushes);
            }
        }));
    }
}

/// An attribute as Tango is to have it.
fn served(config: &AttributeConfig, settings: &TangoSettings) -> AttributeConfig {
    let mut served = config.clone();
    served.writable = Writable::Read;
    served.polled_ms = config.polled_ms.or((settings.poll_ms > 0).then_some(settings.poll_ms));
    served
}

/// Returns whether the running device server can apply the new configuration.
fn goes_on(before: &AttributeConfig, now: &AttributeConfig) -> bool {
    (before.data_type, before.format, before.max_x, before.max_y, &before.labels)
        == (now.data_type, now.format, now.max_x, now.max_y, &now.labels)
}

impl ServedAttributes {
    fn hear(&mut self, config: &AttributeConfig, settings: &TangoSettings) {
        let (name, now) = (config.name.folded(), served(config, settings));
        if self.attributes.get(name).is_some_and(|before| **before == now) {
            return;
        }
        let needs_another = match self.served.get(name) {
            Some(before) => !goes_on(before, &now),
            None => !self.devices.contains(&config.name.device().to_lowercase()),
        };
        self.heard = Some(Instant::now());
        self.anew |= needs_another && self.since.is_some();
        self.attributes.insert(name.to_owned(), Arc::new(now));
    }

    /// Returns whether a device server can start: there are attributes to serve, and no new ones appear.
    fn is_complete(&self) -> bool {
        self.heard.is_some_and(|heard| heard.elapsed() >= QUIET)
    }

    /// Returns whether the running device server must restart.
    fn is_outdated(&self) -> bool {
        self.anew && self.is_complete() && self.since.is_some_and(|since| since.elapsed() >= STAY)
    }
}

/// Returns whether the device server has the event's attribute. A new attribute of a device that it has is added.
fn is_served(
    attributes_served: &Mutex<ServedAttributes>,
    event: &Event<'_>,
    requests: &RequestQueue,
    shared: &BridgeState,
) -> bool {
    let config = &event.attribute.config;
    let mut attributes_served = attributes_served.lock();
    let now = match attributes_served.served.get(config.name.folded()) {
        Some(_) if event.reason != Reason::ConfigChanged => return true,
        before => {
            let now = served(config, &shared.settings);
            match before {
                Some(before) if goes_on(before, &now) => requests.send(None, &Request::Configure(&now)),
                Some(_) => return false,
                None if !attributes_served.devices.contains(&config.name.device().to_lowercase()) => return false,
                None => requests.send(None, &Request::Add(&now)),
            }
            now
        }
    };
    attributes_served.served.insert(config.name.folded().to_owned(), Arc::new(now));
    shared.counts.to_tango_attributes.store(attributes_served.served.len() as u64, Ordering::Relaxed);
    true
}

/// An event without anything in it.
fn nothing<'a>(event: &'a Event<'_>) -> Push<'a> {
    Push {
        attribute: event.attribute.config.name.as_str(),
        kinds: &PUSHABLE,
        time_ns: event.received.0,
        quality: Quality::Valid,
        value: None,
        failures: &[],
        counter: None,
        passing: false,
    }
}

/// Gives an event to Tango.
fn push(event: &Event<'_>, pushes: &mut Pushes) {
    let config = &event.attribute.config;
    let failed = |reason: &str, what: String| Failure { origin: "tampu".to_owned(), ..Failure::new(reason, what) };
    let source = &event.source.source;
    let told = match event.reason {
        Reason::First | Reason::Update | Reason::Resumed => return push_reading(event, pushes),
        Reason::SourceDied => failed("Tampu_SourceDied", format!("{source}, which has {}, died", config.name)),
        Reason::SourceHung => failed("Tampu_SourceHung", format!("{source}, which has {}, is silent", config.name)),
        Reason::SourceLeft => failed("Tampu_SourceLeft", format!("{source} has ended, or no longer has {}", config.name)),
        Reason::Gap => {
            pushes.shared.counts.gaps.fetch_add(1, Ordering::Relaxed);
            pushes::failure(format!("missed on the way to the bridge: {}", event.missed))
        }
        Reason::SourceReturned | Reason::ConfigChanged | Reason::Conflict => return,
    };
    pushes.send(Push { failures: &[told], passing: event.reason == Reason::Gap, ..nothing(event) });
}

fn push_reading(event: &Event<'_>, pushes: &mut Pushes) {
    let Some(reading) = event.reading else { return };
    // A loss is reported before the event that follows it.
    if event.missed != Missed::Nothing {
        let missed = pushes::failure(format!("missed before this: {}", event.missed));
        pushes.send(Push { failures: &[missed], passing: true, ..nothing(event) });
    }
    if event.kinds.contains(EventKind::DataReady) {
        if let Some(ValueView::Long(counter)) = &reading.value {
            let kinds = &[EventKind::DataReady];
            pushes.send(Push { kinds, counter: counter.get(0), ..nothing(event) });
        }
        return;
    }
    if event.number == 0 && reading.value.is_none() && reading.errors.is_empty() {
        let what = format!("{} has not read it yet", event.source.source);
        let not_yet = Failure { origin: "tampu".to_owned(), ..Failure::new("Tampu_NoValueYet", what) };
        return pushes.send(Push { failures: &[not_yet], ..nothing(event) });
    }
    // The first value of a subscription is news to Tango's clients too: they may hold an error.
    let all = event.reason != Reason::Update;
    let kinds: Vec<EventKind> = PUSHABLE.into_iter().filter(|&kind| all || event.kinds.contains(kind)).collect();
    pushes.send(Push {
        kinds: &kinds,
        time_ns: reading.time.0,
        quality: reading.quality,
        value: reading.value.as_ref().map(|value| LineValue::of(value, reading.shape)),
        failures: &reading.errors,
        ..nothing(event)
    });
}

impl BridgeSide for ToTango {
    fn direction(&self) -> Direction {
        Direction::ToTango
    }

    fn wanted(&mut self, shared: &BridgeState) -> bool {
        {
            let mut attributes_served = self.attributes_served.lock();
            (attributes_served.served, attributes_served.devices, attributes_served.since, attributes_served.anew) =
                (HashMap::new(), HashSet::new(), None, false);
        }
        self.events = None;
        shared.counts.to_tango_attributes.store(0, Ordering::Relaxed);
        while !shared.stopped() {
            if self.attributes_served.lock().is_complete() {
                return true;
            }
            shared.wait(QUIET / 7);
        }
        false
    }

    fn begin(&mut self, handle: &ProcessHandle) {
        let place = self.listen();
        let mut attributes_served = self.attributes_served.lock();
        let mut devices: BTreeMap<String, Device<'_>> = BTreeMap::new();
        let all: Vec<Arc<AttributeConfig>> = attributes_served.attributes.values().cloned().collect();
        for config in &all {
            let device = config.name.device();
            let of = devices.entry(device.to_lowercase()).or_insert_with(|| Device { device, attributes: Vec::new() });
            of.attributes.push(config);
        }
        attributes_served.served = attributes_served.attributes.clone().into_iter().collect();
        attributes_served.devices = devices.keys().cloned().collect();
        attributes_served.since = Some(Instant::now());
        drop(attributes_served);
        let with_database = self.shared.database != Database::None;
        let instance = self.shared.settings.instance();
        let serve = Serve {
            devices: devices.into_values().collect(),
            host: (!with_database).then(|| place.ip().to_string()),
            port: (!with_database).then(|| place.port()),
            database: with_database,
            instance: &instance,
        };
        handle.requests.send(Some(SERVE), &Request::Serve(serve));
    }

    fn take(&mut self, line: Line, handle: &ProcessHandle) {
        match line.message {
            Message::Serving(serving) => {
                self.shared.counts.to_tango_attributes.store(serving.attributes.len() as u64, Ordering::Relaxed);
                self.serving(handle);
                self.shared.notify(BridgeNotice::Serving(serving));
            }
            Message::Error(FailureMessage { failure, .. }) if line.id == Some(SERVE) => {
                // The address or the database refused the server: the next attempt follows, each after a longer pause.
                self.place = None;
                handle.abandon(format!("there is no device server: {}", failure.description));
            }
            Message::Error(FailureMessage { failure, attribute: Some(attribute) }) => {
                self.shared.counts.refused.fetch_add(1, Ordering::Relaxed);
                self.shared.notify(BridgeNotice::Refused { attribute, why: failure.description });
            }
            Message::Error(FailureMessage { failure, attribute }) => {
                // The push came before the attribute did, or after it was removed.
                self.shared.counts.not_carried(Direction::ToTango, 1);
                self.shared.notify(BridgeNotice::Remark { attribute, what: failure.description });
            }
            Message::Dropped(Dropped { attribute, count, .. }) => {
                self.shared.counts.lost(Direction::ToTango, count);
                self.shared.notify(BridgeNotice::Lost { direction: Direction::ToTango, attribute, count });
            }
            Message::Unconvertible(Unconvertible { attribute, failure, count, .. }) => {
                self.shared.counts.not_carried(Direction::ToTango, count.div_ceil(2));
                let why = failure.description;
                self.shared.notify(BridgeNotice::NotCarried { direction: Direction::ToTango, attribute, why });
            }
            Message::Hello(_)
            | Message::Event(_)
            | Message::Config { .. }
            | Message::Listed(_)
            | Message::Counts
            | Message::Other => {}
        }
    }

    fn broken(&mut self, _: &str) {
        self.events = None;
    }

    fn periodic_task(&mut self) -> Box<dyn FnMut(&ProcessHandle) + Send> {
        let (attributes_served, shared) = (self.attributes_served.clone(), self.shared.clone());
        Box::new(move |handle| {
            if attributes_served.lock().is_outdated() {
                shared.notify(BridgeNotice::Anew);
                handle.end();
            }
        })
    }
}
