//! Events as C sees them.
//!
//! Names are C strings, which Rust's are not, so they are converted once for each attribute and kept with it.

use std::{
    collections::HashMap,
    ffi::{CString, c_char},
    ptr,
    sync::Arc,
};

use tampu_event::client::{AttributeInfo, Event, Update};
use tampu_types::{
    Incarnation,
    event::{EventView, Failure as Cause, Missed, Shape},
};

use super::value::{Told, ValueOfC};
use crate::string::for_c;

/// `tampu_event_cause`: an element of a stack of errors.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub struct CauseOfC {
    pub reason: *const c_char,
    pub description: *const c_char,
    pub origin: *const c_char,
    pub severity: i32,
    pub reserved: i32,
}

/// `tampu_event`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub struct EventOfC {
    pub attribute: *const c_char,
    pub source: *const c_char,
    pub unit: *const c_char,
    pub reason: i32,
    pub quality: i32,
    pub kinds: u32,
    pub epoch: u32,
    pub number: u64,
    pub missed_from: u64,
    pub missed_to: u64,
    pub time: i64,
    pub sent: i64,
    pub received: i64,
    pub value: *const ValueOfC,
    pub set_point: *const ValueOfC,
    pub causes: *const CauseOfC,
    pub cause_count: usize,
    pub name: *const c_char,
}

/// Most attributes whose names are kept.
const KNOWN: usize = 100_000;

/// The names of an attribute and of its source, for C. `of` keeps the address, by which they are found, in use.
struct Names {
    of: Arc<AttributeInfo>,
    attribute: CString,
    unit: CString,
    incarnation: Incarnation,
    source: CString,
}

/// Memory that an event of C's points to, valid until the next event.
#[derive(Default)]
pub(super) struct Teller {
    known: Vec<Names>,
    /// Place in `known` by address.
    places: HashMap<usize, usize>,
    /// Place of the attribute of the event before: most events are of the same.
    last: usize,
    value: Told,
    set_point: Told,
    views: [Option<ValueOfC>; 2],
    texts: Vec<[CString; 3]>,
    causes: Vec<CauseOfC>,
    name: CString,
}

impl Teller {
    /// Makes C's form of an event.
    pub fn tell(&mut self, event: &Event<'_>) -> EventOfC {
        self.fill(event.attribute, event.source, event.reading).with(
            event.reason as i32,
            event.missed,
            event.kinds.0,
            event.number,
            (event.sent.0, event.received.0),
        )
    }

    /// Makes C's form of an event that waited in a queue.
    pub fn tell_update(&mut self, update: &Update) -> EventOfC {
        let reading = update.reading().filter(|_| update.size() > 0);
        self.fill(&update.attribute, &update.source, reading.as_ref()).with(
            update.reason as i32,
            update.missed,
            update.kinds.0,
            update.number,
            (update.sent.0, update.received.0),
        )
    }

    fn fill(&mut self, info: &Arc<AttributeInfo>, source: &tampu_bus::SourceInfo, reading: Option<&EventView<'_>>) -> EventOfC {
        let names = self.names(info, source);
        let (attribute, source, unit) = (names.attribute.as_ptr(), names.source.as_ptr(), names.unit.as_ptr());
        let mut told = EventOfC {
            attribute,
            source,
            unit,
            reason: 0,
            quality: 0,
            kinds: 0,
            epoch: info.epoch,
            number: 0,
            missed_from: 0,
            missed_to: 0,
            time: 0,
            sent: 0,
            received: 0,
            value: ptr::null(),
            set_point: ptr::null(),
            causes: ptr::null(),
            cause_count: 0,
            name: c"".as_ptr(),
        };
        let Some(reading) = reading else { return told };
        let value = reading.value.as_ref().map(|value| self.value.view(value, reading.shape));
        let set_point = reading.set_point.as_ref().map(|value| {
            let count = u32::try_from(value.len()).unwrap_or(u32::MAX);
            let shape = if count == 1 { Shape::SCALAR } else { Shape::spectrum(count) };
            self.set_point.view(value, shape)
        });
        self.views = [value, set_point];
        let place = |view: &Option<ValueOfC>| view.as_ref().map_or(ptr::null(), ptr::from_ref);
        (told.value, told.set_point) = (place(&self.views[0]), place(&self.views[1]));
        (told.quality, told.time, told.epoch) = (reading.quality as i32, reading.time.0, reading.epoch);
        if !reading.errors.is_empty() {
            self.blame(&reading.errors);
            (told.causes, told.cause_count) = (self.causes.as_ptr(), self.causes.len());
        }
        if !reading.name.is_empty() {
            self.name = for_c(reading.name);
            told.name = self.name.as_ptr();
        }
        told
    }

    /// Returns the names of an attribute, and of this source.
    fn names(&mut self, info: &Arc<AttributeInfo>, source: &tampu_bus::SourceInfo) -> &Names {
        if !self.known.get(self.last).is_some_and(|names| Arc::ptr_eq(&names.of, info)) {
            self.last = self.place(info, source);
        }
        let names = &mut self.known[self.last];
        if names.incarnation != source.incarnation {
            (names.incarnation, names.source) = (source.incarnation, for_c(&source.source));
        }
        names
    }

    /// Returns the place of an attribute's names, which are added if they are new.
    fn place(&mut self, info: &Arc<AttributeInfo>, source: &tampu_bus::SourceInfo) -> usize {
        if self.known.len() >= KNOWN {
            self.known.clear();
            self.places.clear();
        }
        *self.places.entry(Arc::as_ptr(info).addr()).or_insert_with(|| {
            self.known.push(Names {
                of: info.clone(),
                attribute: for_c(&info.config.name),
                unit: for_c(&info.config.unit),
                incarnation: source.incarnation,
                source: for_c(&source.source),
            });
            self.known.len() - 1
        })
    }

    fn blame(&mut self, causes: &[Cause]) {
        self.texts.clear();
        self.texts.extend(causes.iter().map(|cause| [for_c(&cause.reason), for_c(&cause.description), for_c(&cause.origin)]));
        self.causes.clear();
        self.causes.extend(self.texts.iter().zip(causes).map(|([reason, description, origin], cause)| CauseOfC {
            reason: reason.as_ptr(),
            description: description.as_ptr(),
            origin: origin.as_ptr(),
            severity: cause.severity as i32,
            reserved: 0,
        }));
    }
}

impl EventOfC {
    fn with(mut self, reason: i32, missed: Missed, kinds: u32, number: u64, (sent, received): (i64, i64)) -> EventOfC {
        (self.reason, self.kinds, self.number, self.sent, self.received) = (reason, kinds, number, sent, received);
        (self.missed_from, self.missed_to) = match missed {
            Missed::Nothing => (0, 0),
            Missed::Exactly(from, to) => (from, to),
            Missed::Unknown => (0, u64::MAX),
        };
        self
    }
}
