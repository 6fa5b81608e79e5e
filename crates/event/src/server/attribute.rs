//! An attribute at its server: pushing readings.

use std::{
    any::Any,
    collections::HashMap,
    ops::{Deref, DerefMut},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tampu_bus::{LoanError, ReaderState, ReaderStatus, WriteError};
use tampu_types::{
    Incarnation, Time,
    event::{
        AttributeConfig, AttributeName, BadValue, Criteria, Element, EventSample, Failure, Kinds, Quality, Shape, Value,
        config::WrongValue,
        sample::{ELEMENTS_AT, FLAG_REMARK, len_around},
    },
};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{
    attribute_state::{LastReading, quality_within},
    pending_read::{Ask, PendingRead},
    published::PublishedAttribute,
    server_state::ServerState,
};
use crate::criteria::Reading;

/// Errors of publishing a reading.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The reading does not have this attribute's type or shape.
    #[error(transparent)]
    Wrong(#[from] WrongValue),
    /// The value cannot be encoded.
    #[error(transparent)]
    Value(#[from] BadValue),
    /// The bus rejected the event.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The bus could not lend memory.
    #[error(transparent)]
    Loan(#[from] LoanError),
    /// Another process owns the attribute.
    #[error("{name} belongs to {by}; a second source must be declared redundant by both")]
    Taken {
        /// Name of the attribute.
        name: AttributeName,
        /// Source name of the process that owns it.
        by: String,
    },
}

/// Result of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pushed {
    /// Kinds as which it was sent. Without kinds no criterion held, and it is only the current value.
    pub kinds: Kinds,
    /// Number of the attribute's last event.
    pub number: u64,
    /// Number of processes that read the stream. With 0 no process can have received the event.
    pub readers: usize,
}

/// Receipt of an event: the processes that acknowledged it, and the others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PushReceipt {
    /// Number of the event.
    pub number: u64,
    /// Processes that acknowledged it, by name in lower case.
    pub got: Vec<String>,
    /// Processes that did not acknowledge it in time.
    pub missing: Vec<String>,
}

/// Attribute of a server. Clones are the same; when the last is dropped, the attribute is withdrawn.
#[derive(Clone)]
pub struct Attribute {
    handle: Arc<AttributeHandle>,
}

pub(super) struct AttributeHandle {
    inner: Arc<PublishedAttribute>,
    shared: Arc<ServerState>,
}

impl AttributeHandle {
    pub fn new(inner: Arc<PublishedAttribute>, shared: Arc<ServerState>) -> Arc<AttributeHandle> {
        Arc::new(AttributeHandle { inner, shared })
    }
}

impl Drop for AttributeHandle {
    fn drop(&mut self) {
        self.shared.withdraw(&self.inner);
    }
}

impl Attribute {
    pub(super) fn new(handle: Arc<AttributeHandle>) -> Attribute {
        Attribute { handle }
    }

    fn inner(&self) -> &PublishedAttribute {
        &self.handle.inner
    }

    /// Returns the attribute's name.
    pub fn name(&self) -> &AttributeName {
        &self.inner().name
    }

    /// Returns its present configuration.
    pub fn config(&self) -> Arc<AttributeConfig> {
        self.inner().state.lock().config.clone()
    }

    /// Returns the number of processes that read its stream, and of those on other hosts that want it.
    pub fn readers(&self) -> usize {
        self.inner().readers().iter().filter(|(reader, _)| reader.state != ReaderState::Gone).count()
    }

    /// Waits until all readers acknowledged the stream's samples so far, or until the timeout. Returns whether they
    /// have.
    pub fn flush(&self, timeout: Duration) -> bool {
        let inner = self.inner();
        let clock = &self.handle.shared.clock;
        let until = clock.monotonic().saturating_add(timeout.as_nanos() as u64);
        let left = || Duration::from_nanos(until.saturating_sub(clock.monotonic()));
        let here = inner.out.writer.flush(left()).complete();
        inner.host_streams().iter().fold(here, |all, stream| stream.writer.flush(left()).complete() && all)
    }

    /// Returns whether a push of this value may have to wait: for slow readers, or for a push of another thread. A program
    /// with a lock of its own, such as that of an interpreter, releases it before such a push.
    pub fn may_wait(&self, value: &Value<'_>) -> bool {
        self.inner().may_wait(value.data.size())
    }

    /// Publishes a good reading if a criterion holds. It becomes the current value in any case.
    pub fn push(&self, value: Value<'_>) -> Result<Pushed, PushError> {
        self.publish(&Reading::of(value), None, None, "")
    }

    /// Publishes any reading with this time; without one, with the present time.
    pub fn push_reading(&self, reading: &Reading<'_>, time: Option<Time>) -> Result<Pushed, PushError> {
        self.publish(reading, time, None, "")
    }

    /// Publishes a reading as these kinds, regardless of the criteria.
    pub fn push_as(&self, kinds: Kinds, reading: &Reading<'_>, time: Option<Time>) -> Result<Pushed, PushError> {
        self.publish(reading, time, Some(kinds), "")
    }

    /// Publishes a failed reading, if the failure is new.
    pub fn fail(&self, errors: &[Failure]) -> Result<Pushed, PushError> {
        self.publish(&Reading::failed(errors), None, None, "")
    }

    /// Publishes that data is ready; the server chooses the counter.
    pub fn data_ready(&self, counter: i32) -> Result<Pushed, PushError> {
        self.signal(Kinds::DATA_READY, Some(Value::scalar(&counter)), &[], "")
    }

    /// Publishes that the device has other attributes, with their names.
    pub fn interface_changed(&self, attributes: &[String]) -> Result<Pushed, PushError> {
        self.signal(Kinds::INTERFACE, Some(Value::spectrum(attributes)), &[], "")
    }

    /// Publishes an error to the subscribers of these kinds and leaves the current value unchanged. One use is the
    /// report of events that were missed on their way here.
    pub fn remark(&self, kinds: Kinds, errors: &[Failure]) -> Result<Pushed, PushError> {
        self.signal(kinds, None, errors, "")
    }

    /// Publishes a generic event; its value may be of any type.
    pub fn generic(&self, name: &str, value: Option<Value<'_>>) -> Result<Pushed, PushError> {
        self.signal(Kinds::GENERIC, value, &[], name)
    }

    fn publish(&self, reading: &Reading<'_>, time: Option<Time>, kinds: Option<Kinds>, name: &str) -> Result<Pushed, PushError> {
        let (inner, shared) = (self.inner(), &self.handle.shared);
        self.check_owner()?;
        let mut state = inner.state.lock();
        let state = &mut *state;
        if let Some(value) = &reading.value {
            state.config.check(value)?;
        }
        let quality = quality_within(&state.config.limits, reading);
        let reading = Reading { quality, ..*reading };
        let time = time.unwrap_or_else(|| shared.clock.utc());
        let mut event = EventSample {
            attribute: inner.index,
            epoch: state.epoch,
            time,
            number: state.number,
            kinds: Kinds::NONE,
            quality,
            flags: 0,
            // A value of quality invalid is not sent.
            value: reading.value.filter(|_| quality != Quality::Invalid),
            set_point: reading.set_point,
            errors: reading.errors,
            token: None,
            name,
            left_out: 0,
            age: 0,
        };
        let now = shared.clock.monotonic();
        let decided = kinds.unwrap_or_else(|| state.detector.due(&state.config.criteria, &reading, now));
        event.kinds = decided;
        event.number += u64::from(!decided.is_empty());
        // First events are kept, and those for other hosts are written again, so they are encoded here.
        let is_here_only = !decided.is_empty() && !state.early.is_kept() && state.hosts.is_empty();
        let lent = if is_here_only { inner.out.encode_lent(&event) } else { None };
        if let Some(loan) = &lent {
            let memory = loan.memory();
            // For a reader on another host, which has not had the event.
            let copy = (memory.is_none() && inner.out.for_hosts).then(|| loan.to_vec());
            state.reading_is_lent(memory, copy);
        } else {
            event.encode(&mut state.buffer)?;
            state.last = LastReading::Here;
        }
        state.pushes += 1;
        state.pushed_at = time;
        state.read_at = Some(now);
        state.quality = Some(quality);
        if decided.is_empty() {
            state.held_back += 1;
            return Ok(Pushed { kinds: decided, number: state.number, readers: 0 });
        }
        let written = match lent {
            Some(loan) => inner.out.publish_as(decided, loan)?,
            None => inner.out.write_as(decided, &state.buffer)?,
        };
        // Counted after the write: a reading that could not be sent is due again with the next push.
        state.detector.sent(decided, &reading, now);
        state.number += 1;
        state.early.keep(&state.buffer, now);
        let elsewhere = shared.forward(inner.index, &mut state.hosts, &state.buffer, state.number, (decided, true));
        Ok(Pushed { kinds: decided, number: state.number, readers: written.matched + elsewhere })
    }

    /// Publishes an event that is not a reading of the attribute. Its current value stays.
    fn signal(&self, kinds: Kinds, value: Option<Value<'_>>, errors: &[Failure], name: &str) -> Result<Pushed, PushError> {
        let (inner, shared) = (self.inner(), &self.handle.shared);
        self.check_owner()?;
        let mut state = inner.state.lock();
        let mut bytes = Vec::new();
        let event = EventSample {
            epoch: state.epoch,
            time: shared.clock.utc(),
            number: state.number + 1,
            kinds,
            quality: if errors.is_empty() { Quality::Valid } else { Quality::Invalid },
            flags: if kinds.intersects(Kinds::VALUES) { FLAG_REMARK } else { 0 },
            value,
            errors,
            name,
            ..EventSample::without_value(inner.index)
        };
        event.encode(&mut bytes)?;
        // A long event goes through the memory in which the current value may be.
        state.fetch_reading();
        let written = inner.out.write_as(kinds, &bytes)?;
        let state = &mut *state;
        state.number += 1;
        state.early.keep(&bytes, shared.clock.monotonic());
        let elsewhere = shared.forward(inner.index, &mut state.hosts, &bytes, state.number, (kinds, false));
        Ok(Pushed { kinds, number: state.number, readers: written.matched + elsewhere })
    }

    /// Checks that no other process owns the attribute.
    fn check_owner(&self) -> Result<(), PushError> {
        let inner = self.inner();
        match inner.taken_by() {
            Some(by) => Err(PushError::Taken { name: inner.name.clone(), by }),
            None => Ok(()),
        }
    }

    /// Publishes like [`Attribute::push_as`] and waits until all subscribers acknowledged it, or until the timeout. It
    /// is for attributes declared with [`super::Delivery::Acknowledged`]. Other attributes share their stream, and the
    /// receipt names all readers of that stream.
    pub fn push_acknowledged(&self, kinds: Kinds, reading: &Reading<'_>, timeout: Duration) -> Result<PushReceipt, PushError> {
        let pushed = self.push_as(kinds, reading, None)?;
        Ok(self.receipt(pushed.number, timeout))
    }

    /// Waits until all readers acknowledged the samples so far, or until the timeout.
    fn receipt(&self, number: u64, timeout: Duration) -> PushReceipt {
        let inner = self.inner();
        // The count is the stream's. If other attributes advanced it, the receipt covers more than this event.
        let last: HashMap<(Incarnation, u32), u64> =
            inner.readers().into_iter().map(|(reader, written)| ((reader.incarnation, reader.reader), written)).collect();
        self.flush(timeout);
        let mut receipt = PushReceipt { number, ..PushReceipt::default() };
        // An unreliable reader does not acknowledge.
        let waited_for = |reader: &ReaderStatus| reader.state != ReaderState::Gone && reader.reliable;
        for reader in inner.readers().into_iter().map(|(reader, _)| reader).filter(waited_for) {
            let last = last.get(&(reader.incarnation, reader.reader)).copied().unwrap_or(0);
            let into = if reader.acked >= last { &mut receipt.got } else { &mut receipt.missing };
            if !into.contains(&reader.source) {
                into.push(reader.source);
            }
        }
        receipt
    }

    /// Lends the memory of the next event, for filling and publishing without a copy. It is for long numeric values,
    /// whose attributes have separate streams.
    pub fn lend<T: Element + FromBytes + IntoBytes + Immutable + KnownLayout>(
        &self,
        shape: Shape,
    ) -> Result<EventLoan<'_, T>, PushError> {
        self.check_owner()?;
        let inner = self.inner();
        let config = self.config();
        let bytes = (shape.elements() as usize).saturating_mul(size_of::<T>());
        let example: [T; 0] = [];
        let data_type = T::data(&example).data_type();
        if data_type != config.data_type {
            let (expected, given) = (config.data_type, data_type);
            return Err(WrongValue::Type { name: inner.name.clone(), expected, given }.into());
        }
        // The loan may take the memory of the current value, and be given back unused.
        inner.state.lock().fetch_reading();
        let loan = inner.out.writer.loan(len_around(bytes))?;
        Ok(EventLoan { attribute: self, loan, shape, bytes, of: std::marker::PhantomData })
    }

    /// Sets the criteria of its events.
    pub fn set_criteria(&self, criteria: Criteria) {
        self.handle.shared.reconfigure(&self.handle.inner, |config| config.criteria = criteria);
    }

    /// Changes the configuration; name, type and format stay. All subscribers are notified of the new epoch.
    pub fn reconfigure(&self, change: impl FnOnce(&mut AttributeConfig)) {
        self.handle.shared.reconfigure(&self.handle.inner, change);
    }

    /// Polls it at this period, in ms: `read` gets the attribute, and pushes. A slow `read` delays other polls of this
    /// server and nothing else. The polls end with the attribute.
    pub fn poll(&self, period_ms: u32, read: impl FnMut(&Attribute) + Send + 'static) {
        let shared = &self.handle.shared;
        shared.reconfigure(&self.handle.inner, |config| config.polled_ms = Some(period_ms));
        let weak = Arc::downgrade(&self.handle);
        let mut read = read;
        let read_once = move || {
            let attribute = Attribute { handle: weak.upgrade()? };
            // A poll that panics fails its own attribute; the others continue.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| read(&attribute))) {
                let _ = attribute.fail(&[Failure::new("Tampu_PollPanicked", message_of(panic.as_ref()))]);
            }
            Some(u64::from(attribute.config().polled_ms.unwrap_or(1000).max(1)) * 1_000_000)
        };
        shared.polls.add(self.inner().index, Box::new(read_once), shared.clock.monotonic());
    }

    /// Ends its polls.
    pub fn end_polls(&self) {
        self.handle.shared.polls.remove(self.inner().index);
        self.handle.shared.reconfigure(&self.handle.inner, |config| config.polled_ms = None);
    }

    /// Has `read` called when somebody asks for the current value ([`crate::ask::get`]) and the last reading is older than
    /// `max_age`. `read` gets the attribute, and pushes. It runs on the thread of the server's polls. Those who ask
    /// meanwhile share the reading; they wait at most 2 s. A `read` that panics fails their questions, and is no reading.
    pub fn on_read(&self, max_age: Duration, read: impl FnMut(&Attribute) + Send + 'static) {
        let (weak, shared) = (Arc::downgrade(&self.handle), Arc::downgrade(&self.handle.shared));
        let read = Arc::new(Mutex::new(read));
        self.on_read_asked(max_age, move |pending| {
            let Some(shared) = shared.upgrade() else { return };
            let (weak, read) = (weak.clone(), read.clone());
            shared.polls.run_soon(Box::new(move || {
                let Some(handle) = weak.upgrade() else { return };
                let attribute = Attribute { handle };
                match catch_unwind(AssertUnwindSafe(|| read.lock()(&attribute))) {
                    Ok(()) => pending.done(),
                    Err(panic) => pending.fail(Failure::new("Tampu_ReadPanicked", message_of(panic.as_ref()))),
                }
            }));
        });
    }

    /// Like [`Attribute::on_read`], for a program that reads elsewhere: `ask` must not wait. It hands the read on, and
    /// whoever has pushed the reading ends it. One read of an attribute is under way at a time.
    pub fn on_read_asked(&self, max_age: Duration, ask: impl Fn(PendingRead) + Send + Sync + 'static) {
        let max_age = u64::try_from(max_age.as_nanos()).unwrap_or(u64::MAX);
        self.set_reads(Some((max_age, Arc::new(ask))));
    }

    /// Ends its read callback: questions get the last reading.
    pub fn end_reads(&self) {
        self.set_reads(None);
    }

    fn set_reads(&self, callback: Option<(u64, Arc<Ask>)>) {
        // The one before may hold a read, whose end needs the lock.
        let before = std::mem::replace(&mut self.inner().reads.lock().callback, callback);
        drop(before);
    }
}

/// Memory for the elements of one event. Publish it; dropping it returns the memory.
pub struct EventLoan<'a, T> {
    attribute: &'a Attribute,
    loan: tampu_bus::Loan<'a>,
    shape: Shape,
    bytes: usize,
    of: std::marker::PhantomData<T>,
}

impl<'a, T: Element + FromBytes + IntoBytes + Immutable + KnownLayout> EventLoan<'a, T> {
    /// Publishes it as these kinds. The criteria are not applied, because they would need a copy.
    pub fn publish(self, kinds: Kinds, quality: Quality) -> Result<Pushed, PushError> {
        self.send(kinds, quality).map(|(pushed, _)| pushed)
    }

    /// Publishes it and waits like [`Attribute::push_acknowledged`].
    pub fn publish_acknowledged(self, kinds: Kinds, quality: Quality, timeout: Duration) -> Result<PushReceipt, PushError> {
        let (pushed, attribute) = self.send(kinds, quality)?;
        Ok(attribute.receipt(pushed.number, timeout))
    }

    fn send(mut self, kinds: Kinds, quality: Quality) -> Result<(Pushed, &'a Attribute), PushError> {
        let (inner, shared) = (self.attribute.inner(), &self.attribute.handle.shared);
        let mut state = inner.state.lock();
        let time = shared.clock.utc();
        let event = EventSample {
            epoch: state.epoch,
            time,
            number: state.number + 1,
            kinds,
            quality,
            ..EventSample::without_value(inner.index)
        };
        event.encode_around(&mut self.loan, state.config.data_type, self.shape)?;
        let state = &mut *state;
        let memory = self.loan.memory();
        let wanted_elsewhere = state.early.is_kept() || !state.hosts.is_empty();
        let is_copied = wanted_elsewhere || memory.is_none() && inner.out.for_hosts;
        let copy = is_copied.then(|| self.loan.to_vec());
        let written = self.loan.publish()?;
        state.number += 1;
        let mut readers = written.matched;
        if let Some(bytes) = copy.as_ref().filter(|_| wanted_elsewhere) {
            state.early.keep(bytes, shared.clock.monotonic());
            readers += shared.forward(inner.index, &mut state.hosts, bytes, state.number, (kinds, true));
        }
        state.reading_is_lent(memory, copy);
        state.pushes += 1;
        state.pushed_at = time;
        state.read_at = Some(shared.clock.monotonic());
        state.quality = Some(quality);
        Ok((Pushed { kinds, number: state.number, readers }, self.attribute))
    }
}

impl<T: FromBytes + IntoBytes + Immutable + KnownLayout> Deref for EventLoan<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // Lent memory begins at a multiple of 64, and the elements at one of 8.
        <[T]>::ref_from_bytes(&self.loan[ELEMENTS_AT..ELEMENTS_AT + self.bytes]).unwrap_or_default()
    }
}

impl<T: FromBytes + IntoBytes + Immutable + KnownLayout> DerefMut for EventLoan<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        <[T]>::mut_from_bytes(&mut self.loan[ELEMENTS_AT..ELEMENTS_AT + self.bytes]).unwrap_or_default()
    }
}

/// Returns the message of a panic.
fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    // The limit of an error's description.
    text.unwrap_or("it panicked").chars().take(1000).collect()
}
