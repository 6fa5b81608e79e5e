//! From Tampu to Tango: a device server has Tampu's attributes, in devices of their own names, for Tango's clients to read and to follow.
//!
//! | Tampu says | Tango's clients get |
//! |-|-|
//! | an event | events of its kinds, and the value when they read |
//! | periodic | nothing: Tango makes these itself, of what it polls |
//! | a reading that failed | its errors as an exception |
//! | the source died, hung, left | an exception that says so, until it is back |
//! | a gap | an event `API_MissedEvents`; the value stays |
//! | another configuration | the same; labels and types need another device server, which begins by itself |
//!
//! What came from Tango is not served: sources of bridges are known by their names. Attributes are read only: nobody here could say what
//! becomes of a write.
//!
//! Tango knows a server's devices when it begins. So attributes are gathered first, and a device that comes later has the server begin anew, on
//! the same port and not too often; an attribute that comes to a device is added while it runs.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex, atomic::Ordering},
    time::{Duration, Instant},
};

use tampu_event::{
    Client,
    client::{Event, Subscription, Wish},
};
use tampu_types::event::{AttributeConfig, EventKind, Failure, Kinds, Missed, Quality, Reason, ValueView, Writable};

use super::{
    ask::{Ask, Asks, Device, Push, Serve},
    life::Part,
    line::{Dropped, Line, Said, Told, Unconvertible},
    process::Handle,
    pushes::{self, Pushes},
    settings::{Database, Tango},
    value::LineValue,
};
use crate::tango::{Direction, News, SOURCE, Shared, lock};

/// How long nothing new must have come before a device server begins with what there is.
const QUIET: Duration = Duration::from_millis(700);
/// How long a device server stays at least before new devices have it begin anew.
const STAY: Duration = Duration::from_secs(20);
/// Ids of requests whose answers are waited for.
const SERVE: u64 = 1;
/// Kinds that Tango lets code push, and those that are told as all of them.
pub(super) const PUSHABLE: [EventKind; 4] = [EventKind::Change, EventKind::Alarm, EventKind::Archive, EventKind::User];
const FOLLOWED: Kinds = Kinds(Kinds::VALUES.0 | 1 << EventKind::DataReady as u8);

/// The attributes there are to serve, as this process has heard of them.
#[derive(Default)]
struct Book {
    /// By name in lower case.
    attributes: BTreeMap<String, Arc<AttributeConfig>>,
    /// When something new was heard of last.
    heard: Option<Instant>,
    /// The present device server cannot take in what was heard.
    anew: bool,
    /// What the present device server has.
    served: HashMap<String, Arc<AttributeConfig>>,
    devices: HashSet<String>,
    /// When it began; none while there is none.
    since: Option<Instant>,
}

pub(super) struct Outward {
    shared: Arc<Shared>,
    client: Client,
    book: Arc<Mutex<Book>>,
    /// Hears of attributes.
    _scout: Subscription,
    /// Hears of their events, for the present device server.
    events: Option<Subscription>,
    /// Where it listens: the same place in every life, so that clients find it again.
    place: Option<SocketAddr>,
}

/// Whether an event is of something a bridge published.
fn from_tango(event: &Event<'_>) -> bool {
    event.source.source.as_str().starts_with(SOURCE)
}

impl Outward {
    pub fn new(shared: Arc<Shared>, client: Client) -> Outward {
        let book = Arc::new(Mutex::new(Book::default()));
        let (heard, settings) = (book.clone(), shared.settings.clone());
        // No kind: of each attribute the first word, and then of its configuration and its source.
        let wish = Wish::of(settings.serve.iter().cloned()).kinds(Kinds::NONE);
        let scout = client.subscribe(wish, move |event| {
            if !from_tango(event) {
                lock(&heard).hear(&event.attribute.config, &settings);
            }
        });
        Outward { shared, client, book, _scout: scout, events: None, place: None }
    }

    /// Where the device server is to listen.
    fn listen(&mut self) -> SocketAddr {
        let wanted = self.shared.settings.listen;
        *self.place.get_or_insert_with(|| match wanted.port() {
            // Somebody else may take it before the server does; then that ends, and another one is tried.
            0 => TcpListener::bind(wanted).and_then(|free| free.local_addr()).unwrap_or(wanted),
            _ => wanted,
        })
    }

    fn serving(&mut self, handle: &Handle) {
        let (shared, book) = (self.shared.clone(), self.book.clone());
        let mut pushes = Pushes::new(handle.asks.clone(), shared.clone());
        let wish = Wish::of(shared.settings.serve.iter().cloned()).kinds(FOLLOWED);
        // The current values come first, so that every device server begins with them.
        self.events = Some(self.client.subscribe(wish, move |event| {
            if !from_tango(event) && is_served(&book, event, &pushes.asks, &shared) {
                push(event, &mut pushes);
            }
        }));
    }
}

/// An attribute as Tango is to have it.
fn served(config: &AttributeConfig, settings: &Tango) -> AttributeConfig {
    let mut served = config.clone();
    served.writable = Writable::Read;
    served.polled_ms = config.polled_ms.or((settings.poll_ms > 0).then_some(settings.poll_ms));
    served
}

/// Whether Tango's server can go on with an attribute that has become another.
fn goes_on(before: &AttributeConfig, now: &AttributeConfig) -> bool {
    (before.data_type, before.format, before.max_x, before.max_y, &before.labels)
        == (now.data_type, now.format, now.max_x, now.max_y, &now.labels)
}

impl Book {
    fn hear(&mut self, config: &AttributeConfig, settings: &Tango) {
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

    /// Whether a device server can begin: there is something to serve, and no more seems to come.
    fn is_complete(&self) -> bool {
        self.heard.is_some_and(|heard| heard.elapsed() >= QUIET)
    }

    /// Whether the present one is to begin anew.
    fn is_outdated(&self) -> bool {
        self.anew && self.is_complete() && self.since.is_some_and(|since| since.elapsed() >= STAY)
    }
}

/// Whether Tango's server has an event's attribute; one that has come to a device it has is added.
fn is_served(book: &Mutex<Book>, event: &Event<'_>, asks: &Asks, shared: &Shared) -> bool {
    let config = &event.attribute.config;
    let mut book = lock(book);
    let now = match book.served.get(config.name.folded()) {
        Some(_) if event.reason != Reason::ConfigChanged => return true,
        before => {
            let now = served(config, &shared.settings);
            match before {
                Some(before) if goes_on(before, &now) => asks.ask(None, &Ask::Configure(&now)),
                Some(_) => return false,
                None if !book.devices.contains(&config.name.device().to_lowercase()) => return false,
                None => asks.ask(None, &Ask::Add(&now)),
            }
            now
        }
    };
    book.served.insert(config.name.folded().to_owned(), Arc::new(now));
    shared.counts.to_tango_attributes.store(book.served.len() as u64, Ordering::Relaxed);
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
        Reason::SourceHung => failed("Tampu_SourceHung", format!("nothing is heard of {source}, which has {}", config.name)),
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
    // What may be missing is said before what comes after it.
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
    // What a subscription begins with is news to Tango's clients too: they may have been told that there is nothing.
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

impl Part for Outward {
    fn direction(&self) -> Direction {
        Direction::ToTango
    }

    fn wanted(&mut self, shared: &Shared) -> bool {
        {
            let mut book = lock(&self.book);
            (book.served, book.devices, book.since, book.anew) = (HashMap::new(), HashSet::new(), None, false);
        }
        self.events = None;
        shared.counts.to_tango_attributes.store(0, Ordering::Relaxed);
        while !shared.stopped() {
            if lock(&self.book).is_complete() {
                return true;
            }
            shared.wait(QUIET / 7);
        }
        false
    }

    fn begin(&mut self, handle: &Handle) {
        let place = self.listen();
        let mut book = lock(&self.book);
        let mut devices: BTreeMap<String, Device<'_>> = BTreeMap::new();
        let all: Vec<Arc<AttributeConfig>> = book.attributes.values().cloned().collect();
        for config in &all {
            let device = config.name.device();
            let of = devices.entry(device.to_lowercase()).or_insert_with(|| Device { device, attributes: Vec::new() });
            of.attributes.push(config);
        }
        book.served = book.attributes.clone().into_iter().collect();
        book.devices = devices.keys().cloned().collect();
        book.since = Some(Instant::now());
        drop(book);
        let with_database = self.shared.database != Database::None;
        let instance = self.shared.settings.instance();
        let serve = Serve {
            devices: devices.into_values().collect(),
            host: (!with_database).then(|| place.ip().to_string()),
            port: (!with_database).then(|| place.port()),
            database: with_database,
            instance: &instance,
        };
        handle.asks.ask(Some(SERVE), &Ask::Serve(serve));
    }

    fn take(&mut self, line: Line, handle: &Handle) {
        match line.said {
            Said::Serving(serving) => {
                self.shared.counts.to_tango_attributes.store(serving.attributes.len() as u64, Ordering::Relaxed);
                self.serving(handle);
                self.shared.tell(News::Serving(serving));
            }
            Said::Error(Told { failure, .. }) if line.id == Some(SERVE) => {
                // It cannot listen there, or the database refuses: it is tried again, later each time.
                self.place = None;
                handle.give_up(format!("there is no device server: {}", failure.description));
            }
            Said::Error(Told { failure, attribute: Some(attribute) }) => {
                self.shared.counts.refused.fetch_add(1, Ordering::Relaxed);
                self.shared.tell(News::Refused { attribute, why: failure.description });
            }
            Said::Error(Told { failure, attribute }) => {
                // A push that came before the attribute did, or after it went.
                self.shared.counts.not_carried(Direction::ToTango, 1);
                self.shared.tell(News::Remark { attribute, what: failure.description });
            }
            Said::Dropped(Dropped { attribute, count, .. }) => {
                self.shared.counts.lost(Direction::ToTango, count);
                self.shared.tell(News::Lost { direction: Direction::ToTango, attribute, count });
            }
            Said::Unconvertible(Unconvertible { attribute, failure, count, .. }) => {
                self.shared.counts.not_carried(Direction::ToTango, count.div_ceil(2));
                let why = failure.description;
                self.shared.tell(News::NotCarried { direction: Direction::ToTango, attribute, why });
            }
            Said::Hello(_) | Said::Event(_) | Said::Config { .. } | Said::Listed(_) | Said::Counts | Said::Else => {}
        }
    }

    fn broken(&mut self, _: &str) {
        self.events = None;
    }

    fn ticker(&mut self) -> Box<dyn FnMut(&Handle) + Send> {
        let (book, shared) = (self.book.clone(), self.shared.clone());
        Box::new(move |handle| {
            if lock(&book).is_outdated() {
                shared.tell(News::Anew);
                handle.end();
            }
        })
    }
}
