//! The way of an attribute's events into the stream of another host.

use std::sync::{Arc, atomic::Ordering};

use tampu_bus::{ReaderStatus, WriteError, clock::Clock};
use tampu_types::{
    Incarnation,
    event::{EventKind, EventSample, EventView, Failure, Kinds, Quality, Reason, sample::append_counts},
};

use super::host_stream::HostStream;
use crate::{
    ask::Wanted,
    filter::{Filter, FilterState, Verdict},
};

/// A worker of a process that reads the stream: the process, and the worker's token.
pub(super) type HostReader = (Incarnation, u64);

/// Most workers of one process whose wishes for an attribute are kept. A process has one or two that read an attribute.
pub(super) const WISHES: usize = 128;

/// A reader's wish for the events of attributes, which share its filter.
pub(super) struct Wish {
    kinds: Kinds,
    filter: Arc<Filter>,
}

impl Wish {
    pub fn of(wanted: &Wanted) -> Wish {
        Wish { kinds: Kinds(wanted.kinds), filter: Arc::new(wanted.filter.at_source()) }
    }
}

/// Events that one reader wants.
struct Want {
    reader: HostReader,
    kinds: Kinds,
    /// The reader's filter in the state that it has at the reader; `None` if all readings pass.
    filter: Option<Box<FilterState>>,
}

impl Want {
    /// Decides whether the reader wants an event. It judges each event once, as its filter remembers what has passed.
    fn judge(&mut self, kinds: Kinds, reading: Option<&EventView<'_>>) -> Verdict {
        // Kinds of a later release are counted by the reader.
        if !kinds.intersects(self.kinds) && !kinds.known().is_empty() {
            return Verdict::Rejected;
        }
        match (&mut self.filter, reading) {
            (Some(filter), Some(view)) => filter.judge(Reason::Update, view),
            _ => Verdict::Passes,
        }
    }
}

/// Part of one attribute in the stream of a host.
pub(super) struct HostRoute {
    pub stream: Arc<HostStream>,
    wants: Vec<Want>,
    /// Number of the attribute's last event in the stream, or of the last one before the first.
    sent: u64,
    /// The newest reading that came too soon for all readers.
    held: Option<HeldEvent>,
}

struct HeldEvent {
    number: u64,
    kinds: Kinds,
    bytes: Vec<u8>,
}

/// Result of forwarding an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Forwarded {
    /// Number of processes that read the stream, if the event is in it.
    pub readers: usize,
    /// Time at which the route begins to hold events, to be judged again, monotonic ns.
    pub held: Option<u64>,
}

impl HostRoute {
    /// Makes the route of an attribute with this last event, which nobody wants yet.
    pub fn new(stream: Arc<HostStream>, number: u64) -> HostRoute {
        stream.attributes.fetch_add(1, Ordering::Relaxed);
        HostRoute { stream, wants: Vec::new(), sent: number, held: None }
    }

    /// Sets what a reader wants. Its filter begins with the current value, which it is sent. Returns false if its process has
    /// [`WISHES`] others already.
    pub fn want(&mut self, reader: HostReader, wish: &Wish, current: Option<&EventView<'_>>, clock: &Arc<dyn Clock>) -> bool {
        self.wants.retain(|want| want.reader != reader);
        if self.wants.iter().filter(|want| want.reader.0 == reader.0).count() >= WISHES {
            return false;
        }
        let mut filter = FilterState::shared(&wish.filter, clock);
        if let (Some(filter), Some(current)) = (&mut filter, current) {
            filter.judge(Reason::First, current);
        }
        self.wants.push(Want { reader, kinds: wish.kinds, filter });
        true
    }

    /// Ends the wishes of these readers. Returns whether no other reader wants the attribute.
    pub fn release(&mut self, is_over: impl Fn(HostReader) -> bool) -> bool {
        self.wants.retain(|want| !is_over(want.reader));
        self.wants.is_empty()
    }

    /// Writes an event if a reader wants it. `is_reading` is true for readings, which filters judge.
    pub fn forward(&mut self, event: &[u8], number: u64, kinds: Kinds, is_reading: bool) -> Forwarded {
        let is_judged = is_reading && self.wants.iter().any(|want| want.filter.is_some());
        let view = is_judged.then(|| EventView::parse(event).ok()).flatten();
        match self.judge(kinds, view.as_ref()) {
            Verdict::Passes => {
                let readers = self.write(event, number);
                if kinds.contains(EventKind::Alarm) {
                    self.stream.writer.send_now();
                }
                Forwarded { readers, held: None }
            }
            Verdict::Rejected => Forwarded::default(),
            Verdict::Held(due) => {
                let begins = self.held.replace(HeldEvent { number, kinds, bytes: event.to_vec() }).is_none();
                Forwarded { readers: 0, held: begins.then_some(due) }
            }
        }
    }

    /// Judges the held event again. Returns the next time for it if it is still held.
    pub fn forward_held(&mut self) -> Option<u64> {
        let held = self.held.take()?;
        let view = EventView::parse(&held.bytes).ok();
        match self.judge(held.kinds, view.as_ref()) {
            Verdict::Passes => {
                self.write(&held.bytes, held.number);
                None
            }
            Verdict::Rejected => None,
            Verdict::Held(due) => {
                self.held = Some(held);
                Some(due)
            }
        }
    }

    /// Judges an event for all readers. It passes if one of them takes it. Every one judges it, also after one that does.
    fn judge(&mut self, kinds: Kinds, reading: Option<&EventView<'_>>) -> Verdict {
        self.wants.iter_mut().fold(Verdict::Rejected, |all, want| match (all, want.judge(kinds, reading)) {
            (Verdict::Passes, _) | (_, Verdict::Passes) => Verdict::Passes,
            (Verdict::Held(one), Verdict::Held(other)) => Verdict::Held(one.min(other)),
            (Verdict::Held(due), _) | (_, Verdict::Held(due)) => Verdict::Held(due),
            (Verdict::Rejected, Verdict::Rejected) => Verdict::Rejected,
        })
    }

    /// Writes an event, with the number of those that were left out before it.
    pub fn write(&mut self, event: &[u8], number: u64) -> usize {
        let left_out = number.saturating_sub(self.sent + 1);
        self.sent = number;
        self.held = None;
        let put = |event: &[u8]| {
            if left_out == 0 {
                return self.stream.writer.write(event);
            }
            let mut event = event.to_vec();
            append_counts(&mut event, left_out, 0);
            self.stream.writer.write(&event)
        };
        // An event that cannot be sent is reported in its place. If that fails too, its number is missing like a lost one's.
        let written = put(event).or_else(|why| put(&not_sent(event, &why)));
        written.map_or(0, |written| written.matched)
    }

    /// Returns the number of events that were left out since the last one in the stream.
    pub fn left_out(&self, number: u64) -> u64 {
        number.saturating_sub(self.sent)
    }

    /// Returns the readers of the stream that want the attribute, and the number of samples in the stream.
    pub fn readers(&self) -> (Vec<ReaderStatus>, u64) {
        let mut readers = self.stream.writer.readers();
        readers.retain(|reader| self.wants.iter().any(|want| want.reader.0 == reader.incarnation));
        (readers, self.stream.writer.stats().samples)
    }
}

/// Returns an event that says why this one could not be sent.
fn not_sent(event: &[u8], why: &WriteError) -> Vec<u8> {
    let mut out = Vec::new();
    if let Ok(view) = EventView::parse(event) {
        let errors = [Failure::new("Tampu_NotSent", why.to_string())];
        let event = EventSample {
            epoch: view.epoch,
            time: view.time,
            number: view.number,
            kinds: view.kinds,
            quality: Quality::Invalid,
            flags: view.flags,
            errors: &errors,
            name: view.name,
            ..EventSample::without_value(view.attribute)
        };
        // Texts of this release are short.
        let _ = event.encode(&mut out);
    }
    out
}

impl Drop for HostRoute {
    fn drop(&mut self) {
        self.stream.attributes.fetch_sub(1, Ordering::Relaxed);
    }
}
