//! Attribute of a server: its name, its options, its stream and its state.

use std::sync::Arc;

use parking_lot::Mutex;
use tampu_bus::{Loan, ReaderStatus, SourceInfo, WriteError, Writer, Written, clock::Clock};
use tampu_types::{
    Incarnation,
    event::{
        AttributeConfig, AttributeName, EventKind, EventSample, EventView, Failure, Kinds,
        sample::{ELEMENTS_AT, append_counts, len_around},
    },
};

use super::{
    attribute_state::AttributeState,
    early_events::EarlyEvents,
    host_route::{HostReader, HostRoute, Wish},
    host_stream::HostStream,
    options::AttributeOptions,
    pending_read::AttributeReads,
};

/// Length in bytes from which encoded events are put into lent memory. From about here on, the copies into the batch
/// and through the announced ring cost more than a look at the writer's memory.
const LEND_FROM: usize = 2048;
/// Most bytes of an event beside its elements, unless it has errors or a set point.
const AROUND: usize = 512;
/// Bytes of elements from which they are encoded in lent memory, and not copied there.
const ENCODE_LENT_FROM: usize = 32 << 10;

pub(super) struct EventWriter {
    pub writer: Arc<Writer>,
    pub own: bool,
    /// True if readers on other hosts may have its events in their hosts' streams.
    pub for_hosts: bool,
}

impl EventWriter {
    /// Writes an event. Long ones go through lent memory, so a reader that can map it needs no copy through a socket.
    pub fn write(&self, event: &[u8]) -> Result<Written, WriteError> {
        if event.len() >= LEND_FROM
            && let Ok(mut loan) = self.writer.loan(event.len())
        {
            loan.copy_from_slice(event);
            return loan.publish();
        }
        self.writer.write(event)
    }

    /// Encodes an event with nothing but a long value of numbers in lent memory; `None` for other events. The stream is the
    /// attribute's own: other attributes would use the memory again.
    pub fn encode_lent(&self, event: &EventSample<'_>) -> Option<Loan<'_>> {
        let value = event.value.filter(|_| self.own)?;
        let bytes = value.data.number_bytes().filter(|bytes| bytes.len() >= ENCODE_LENT_FROM)?;
        let has_nothing_behind = event.set_point.is_none() && event.errors.is_empty() && event.name.is_empty();
        if !has_nothing_behind || event.token.is_some() || (event.left_out, event.age) != (0, 0) {
            return None;
        }
        let mut loan = self.writer.loan(len_around(bytes.len())).ok()?;
        event.encode_around(&mut loan, value.data.data_type(), value.shape).ok()?;
        loan[ELEMENTS_AT..ELEMENTS_AT + bytes.len()].copy_from_slice(bytes);
        Some(loan)
    }

    /// Publishes a loan with an event of these kinds, as [`EventWriter::write_as`] does.
    pub fn publish_as(&self, kinds: Kinds, loan: Loan<'_>) -> Result<Written, WriteError> {
        self.hurry(kinds, loan.publish()?)
    }

    /// Writes an event of these kinds. An alarm does not wait for its batch to fill; what was written before goes with it.
    pub fn write_as(&self, kinds: Kinds, event: &[u8]) -> Result<Written, WriteError> {
        self.hurry(kinds, self.write(event)?)
    }

    fn hurry(&self, kinds: Kinds, written: Written) -> Result<Written, WriteError> {
        if kinds.contains(EventKind::Alarm) {
            self.writer.send_now();
        }
        Ok(written)
    }
}

pub(super) struct PublishedAttribute {
    pub index: u32,
    pub name: AttributeName,
    pub options: AttributeOptions,
    pub out: EventWriter,
    pub state: Mutex<AttributeState>,
    pub reads: Arc<Mutex<AttributeReads>>,
    /// Time of its declaration, monotonic ns.
    declared_at: u64,
    /// The other source that owns the name by the rule of precedence.
    other_owner: Mutex<Option<SourceInfo>>,
}

impl PublishedAttribute {
    pub fn new(
        index: u32,
        config: AttributeConfig,
        options: AttributeOptions,
        out: EventWriter,
        early: EarlyEvents,
        now: u64,
    ) -> PublishedAttribute {
        let name = config.name.clone();
        PublishedAttribute {
            index,
            name,
            options,
            out,
            state: Mutex::new(AttributeState::new(config, early)),
            reads: Arc::default(),
            declared_at: now,
            other_owner: Mutex::default(),
        }
    }

    pub fn taken_by(&self) -> Option<String> {
        self.other_owner.lock().as_ref().map(|other_owner| other_owner.source.to_string())
    }

    /// Sets the other source that owns the name, if any.
    pub fn set_other_owner(&self, by: Option<SourceInfo>) {
        *self.other_owner.lock() = by;
    }

    /// Returns whether this incarnation is the recorded owner of the name.
    pub fn is_taken_by(&self, incarnation: Incarnation) -> bool {
        self.other_owner.lock().as_ref().is_some_and(|other_owner| other_owner.incarnation == incarnation)
    }

    /// Writes the current value into its stream, as an answer to `token`.
    pub fn refresh(&self, token: u64, now: u64) {
        let mut state = self.state.lock();
        // The asker repeats its question if this is lost. Written under the lock, so that it stands at its place in the
        // order.
        if let Err(why) = self.out.write(&self.aged(state.refreshed(self.index, token), 0, now)) {
            let _ = self.out.write(&self.aged(state.without_value(self.index, token, &[not_sent(&why)]), 0, now));
        }
    }

    /// Completes an answer: the events left out before it, and the attribute's age.
    fn aged(&self, mut answer: Vec<u8>, left_out: u64, now: u64) -> Vec<u8> {
        append_counts(&mut answer, left_out, now.saturating_sub(self.declared_at).max(1));
        answer
    }

    /// Writes the current value into the stream of another host, and from now on the events that the reader wants. With
    /// `from_start`, the first events come first if they are still kept. Returns false if its process has too many wishes.
    pub fn refresh_for(
        &self,
        stream: &Arc<HostStream>,
        reader: HostReader,
        wish: &Wish,
        from_start: bool,
        clock: &Arc<dyn Clock>,
    ) -> bool {
        let mut state = self.state.lock();
        let state = &mut *state;
        let (token, number) = (reader.1, state.number);
        let answer = state.refreshed(self.index, token);
        let at = state.hosts.iter().position(|route| route.stream.boot == stream.boot).unwrap_or_else(|| {
            let early = if from_start { state.early.all() } else { &[] };
            let has_all = early.len() as u64 == number;
            let mut route = HostRoute::new(stream.clone(), if has_all { 0 } else { number });
            if has_all {
                early.iter().zip(1..).for_each(|(event, number)| _ = route.write(event, number));
            }
            state.hosts.push(route);
            state.hosts.len() - 1
        });
        let route = &mut state.hosts[at];
        if !route.want(reader, wish, EventView::parse(&answer).ok().as_ref(), clock) {
            return false;
        }
        let (left_out, now) = (route.left_out(number), clock.monotonic());
        let route = &state.hosts[at];
        if let Err(why) = route.stream.writer.write(&self.aged(answer, left_out, now)) {
            let without = state.without_value(self.index, token, &[not_sent(&why)]);
            let _ = route.stream.writer.write(&self.aged(without, left_out, now));
        }
        true
    }

    /// Judges the readings again that other hosts' readers get seldom. Returns the next time for those that are still held.
    pub fn forward_held(&self) -> Option<u64> {
        self.state.lock().hosts.iter_mut().filter_map(HostRoute::forward_held).min()
    }

    /// Ends the wishes of these readers on other hosts.
    pub fn release(&self, is_over: impl Fn(HostReader) -> bool) {
        let mut state = self.state.lock();
        state.hosts.retain_mut(|route| !route.release(&is_over));
    }

    /// Returns the readers of its events: those of its stream, and those on other hosts that want it. Each comes with the
    /// number of samples in the stream that it reads.
    pub fn readers(&self) -> Vec<(ReaderStatus, u64)> {
        let written = self.out.writer.stats().samples;
        let mut all: Vec<_> = self.out.writer.readers().into_iter().map(|reader| (reader, written)).collect();
        for route in &self.state.lock().hosts {
            let (readers, written) = route.readers();
            all.extend(readers.into_iter().map(|reader| (reader, written)));
        }
        all
    }

    /// Returns whether an event with so many bytes of elements may have to wait, for readers or for another push.
    pub fn may_wait(&self, elements: usize) -> bool {
        let Some(state) = self.state.try_lock() else { return true };
        let length = elements + AROUND;
        self.out.writer.may_wait(length) || state.hosts.iter().any(|route| route.stream.writer.may_wait(length))
    }

    /// Returns the streams for other hosts that have it.
    pub fn host_streams(&self) -> Vec<Arc<HostStream>> {
        self.state.lock().hosts.iter().map(|route| route.stream.clone()).collect()
    }
}

fn not_sent(why: &WriteError) -> Failure {
    Failure::new("Tampu_NotSent", why.to_string())
}
