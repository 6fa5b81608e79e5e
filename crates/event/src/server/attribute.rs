//! An attribute at its server: pushing readings.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use tampu_bus::{LoanError, ReaderState, ReaderStatus, SourceInfo, WriteError, Writer, Written};
use tampu_types::{
    Incarnation, Time,
    event::{
        AttributeConfig, AttributeName, BadValue, Criteria, Element, EventSample, Failure, Kinds, Presence, Quality, Shape,
        Value,
        config::WrongValue,
        sample::{ELEMENTS_AT, FLAG_REMARK, len_around},
    },
};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{
    AttributeOptions, Shared, lock,
    state::{Last, State, quality_within},
};
use crate::criteria::Reading;

/// Encoded events are put into lent memory from here on, bytes. From about here on the copies into the batch, onto the board and
/// out of it cost more than a look at the writer's memory does.
const LEND_FROM: usize = 2048;

pub(super) struct Out {
    pub writer: Arc<Writer>,
    pub own: bool,
}

impl Out {
    /// Writes an event. Long ones go through lent memory: who can map it does not get a copy through a socket.
    fn write(&self, event: &[u8]) -> Result<Written, WriteError> {
        if event.len() >= LEND_FROM
            && let Ok(mut loan) = self.writer.loan(event.len())
        {
            loan.copy_from_slice(event);
            return loan.publish();
        }
        self.writer.write(event)
    }
}

pub(super) struct Inner {
    pub index: u32,
    pub name: AttributeName,
    pub options: AttributeOptions,
    pub out: Out,
    pub state: Mutex<State>,
    /// Who else has the name, and is to have it.
    rival: Mutex<Option<SourceInfo>>,
}

/// Why a reading cannot be published.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// It is not of this attribute's type or shape.
    #[error(transparent)]
    Wrong(#[from] WrongValue),
    /// It cannot be encoded.
    #[error(transparent)]
    Value(#[from] BadValue),
    /// The bus does not take it.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// No memory could be lent.
    #[error(transparent)]
    Loan(#[from] LoanError),
    /// Another process has the attribute.
    #[error("{name} belongs to {by}; a second source must be declared redundant by both")]
    Taken {
        /// The attribute.
        name: AttributeName,
        /// Who has it.
        by: String,
    },
}

/// What a push did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pushed {
    /// As which kinds it was sent; none: no criterion held, and it is only the current value now.
    pub kinds: Kinds,
    /// The number of the attribute's last event.
    pub number: u64,
    /// How many processes read the stream; 0: nobody can have received it.
    pub readers: usize,
}

/// Who got an event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Receipt {
    /// The event's number.
    pub number: u64,
    /// Processes that have taken it, by name in lower case.
    pub got: Vec<String>,
    /// Processes that had not when the time was up.
    pub missing: Vec<String>,
}

/// An attribute. Clones are the same; when the last is dropped, the attribute is withdrawn.
#[derive(Clone)]
pub struct Attribute {
    handle: Arc<Handle>,
}

pub(super) struct Handle {
    inner: Arc<Inner>,
    shared: Arc<Shared>,
}

impl Handle {
    pub fn new(inner: Arc<Inner>, shared: Arc<Shared>) -> Arc<Handle> {
        Arc::new(Handle { inner, shared })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.withdraw(&self.inner);
    }
}

impl Inner {
    pub fn new(index: u32, config: AttributeConfig, options: AttributeOptions, out: Out) -> Inner {
        let name = config.name.clone();
        Inner { index, name, options, out, state: Mutex::new(State::new(config)), rival: Mutex::default() }
    }

    pub fn taken_by(&self) -> Option<String> {
        lock(&self.rival).as_ref().map(|rival| rival.source.to_string())
    }

    /// Who is to have the name instead, as all that is declared says now.
    pub fn contested(&self, by: Option<SourceInfo>) {
        *lock(&self.rival) = by;
    }

    /// Whether this process has, or had, the name instead.
    pub fn is_taken_by(&self, incarnation: Incarnation) -> bool {
        lock(&self.rival).as_ref().is_some_and(|rival| rival.incarnation == incarnation)
    }

    /// Writes the current value into its stream, for whoever asked.
    pub fn refresh(&self, token: u64) {
        let state = lock(&self.state);
        // Who asked asks again if this is lost. Under the lock, so that it stands at its place in the order.
        if let Err(why) = self.out.write(&state.refreshed(self.index, token)) {
            let why = Failure::new("Tampu_NotSent", why.to_string());
            let _ = self.out.write(&state.without_value(self.index, token, &[why]));
        }
    }
}

impl Attribute {
    pub(super) fn new(handle: Arc<Handle>) -> Attribute {
        Attribute { handle }
    }

    fn inner(&self) -> &Inner {
        &self.handle.inner
    }

    /// Its name.
    pub fn name(&self) -> &AttributeName {
        &self.inner().name
    }

    /// Its configuration as it is now.
    pub fn config(&self) -> Arc<AttributeConfig> {
        lock(&self.inner().state).config.clone()
    }

    /// How many processes read the stream it is in.
    pub fn readers(&self) -> usize {
        self.inner().out.writer.readers().iter().filter(|reader| reader.state != ReaderState::Gone).count()
    }

    /// Waits until everybody has taken what its stream has carried so far, or the time is up; says whether they have.
    pub fn flush(&self, timeout: Duration) -> bool {
        self.inner().out.writer.flush(timeout).complete()
    }

    /// Publishes a good reading, if a criterion holds; it is the current value in any case.
    pub fn push(&self, value: Value<'_>) -> Result<Pushed, PushError> {
        self.publish(&Reading::of(value), None, None, "")
    }

    /// The same for any reading, of any time; with no time, of now.
    pub fn push_reading(&self, reading: &Reading<'_>, time: Option<Time>) -> Result<Pushed, PushError> {
        self.publish(reading, time, None, "")
    }

    /// Publishes a reading as these kinds, whatever the criteria say.
    pub fn push_as(&self, kinds: Kinds, reading: &Reading<'_>, time: Option<Time>) -> Result<Pushed, PushError> {
        self.publish(reading, time, Some(kinds), "")
    }

    /// Publishes that it could not be read, if that is news.
    pub fn fail(&self, errors: &[Failure]) -> Result<Pushed, PushError> {
        self.publish(&Reading::failed(errors), None, None, "")
    }

    /// Says that data can be had; the counter is the server's.
    pub fn data_ready(&self, counter: i32) -> Result<Pushed, PushError> {
        self.signal(Kinds::DATA_READY, Some(Value::scalar(&counter)), &[], "")
    }

    /// Says that the device has other attributes now, and which: their names in it.
    pub fn interface_changed(&self, attributes: &[String]) -> Result<Pushed, PushError> {
        self.signal(Kinds::INTERFACE, Some(Value::spectrum(attributes)), &[], "")
    }

    /// Tells the subscribers of these kinds of an error, and leaves the current value as it is: events were missed on their way here, for
    /// example.
    pub fn remark(&self, kinds: Kinds, errors: &[Failure]) -> Result<Pushed, PushError> {
        self.signal(kinds, None, errors, "")
    }

    /// Publishes a generic event; its value may be of any type.
    pub fn generic(&self, name: &str, value: Option<Value<'_>>) -> Result<Pushed, PushError> {
        self.signal(Kinds::GENERIC, value, &[], name)
    }

    fn publish(&self, reading: &Reading<'_>, time: Option<Time>, kinds: Option<Kinds>, name: &str) -> Result<Pushed, PushError> {
        let (inner, shared) = (self.inner(), &self.handle.shared);
        self.mine()?;
        let mut state = lock(&inner.state);
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
            // A value of quality invalid is none.
            value: reading.value.filter(|_| quality != Quality::Invalid),
            set_point: reading.set_point,
            errors: reading.errors,
            token: None,
            name,
        };
        let now = shared.clock.monotonic();
        let decided = kinds.unwrap_or_else(|| state.detector.due(&state.config.criteria, &reading, now));
        event.kinds = decided;
        event.number += u64::from(!decided.is_empty());
        event.encode(&mut state.buffer)?;
        state.last = Last::Here;
        state.pushes += 1;
        state.pushed_at = time;
        state.quality = Some(quality);
        if decided.is_empty() {
            state.held_back += 1;
            return Ok(Pushed { kinds: decided, number: state.number, readers: 0 });
        }
        let written = inner.out.write(&state.buffer)?;
        // Only now: what could not be sent is to be sent when it is pushed again.
        state.detector.sent(decided, &reading, now);
        state.number += 1;
        Ok(Pushed { kinds: decided, number: state.number, readers: written.matched })
    }

    /// An event that is no reading of the attribute: its current value stays.
    fn signal(&self, kinds: Kinds, value: Option<Value<'_>>, errors: &[Failure], name: &str) -> Result<Pushed, PushError> {
        let (inner, shared) = (self.inner(), &self.handle.shared);
        self.mine()?;
        let mut state = lock(&inner.state);
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
        let written = inner.out.write(&bytes)?;
        state.number += 1;
        Ok(Pushed { kinds, number: state.number, readers: written.matched })
    }

    /// That nobody else has it.
    fn mine(&self) -> Result<(), PushError> {
        let inner = self.inner();
        match inner.taken_by() {
            Some(by) => Err(PushError::Taken { name: inner.name.clone(), by }),
            None => Ok(()),
        }
    }

    /// Publishes as [`Attribute::push_as`] does and waits until everybody who subscribed has taken it, or the time is up. For
    /// attributes declared [`super::Delivery::Acknowledged`]; others share their stream, and the receipt names who reads that.
    pub fn push_acknowledged(&self, kinds: Kinds, reading: &Reading<'_>, timeout: Duration) -> Result<Receipt, PushError> {
        let pushed = self.push_as(kinds, reading, None)?;
        Ok(self.receipt(pushed.number, timeout))
    }

    /// Waits until everybody has taken what was pushed, or the time is up, and says who has.
    fn receipt(&self, number: u64, timeout: Duration) -> Receipt {
        let writer = &self.inner().out.writer;
        // The stream's own count, which other attributes may have moved on since: then the receipt is for more than this.
        let last = writer.stats().samples;
        writer.flush(timeout);
        let mut receipt = Receipt { number, ..Receipt::default() };
        // Who wants the newest only does not say what it has got.
        let waited_for = |reader: &ReaderStatus| reader.state != ReaderState::Gone && reader.reliable;
        for reader in writer.readers().into_iter().filter(waited_for) {
            let into = if reader.acked >= last { &mut receipt.got } else { &mut receipt.missing };
            if !into.contains(&reader.source) {
                into.push(reader.source);
            }
        }
        receipt
    }

    /// Lends the memory of the next event, to be filled and published without a copy; for long numeric values, whose
    /// attributes have streams of their own.
    pub fn lend<T: Element + FromBytes + IntoBytes + Immutable + KnownLayout>(
        &self,
        shape: Shape,
    ) -> Result<Lent<'_, T>, PushError> {
        self.mine()?;
        let inner = self.inner();
        let config = self.config();
        let bytes = (shape.elements() as usize).saturating_mul(size_of::<T>());
        let example: [T; 0] = [];
        let data_type = T::data(&example).data_type();
        if data_type != config.data_type {
            let (expected, given) = (config.data_type, data_type);
            return Err(WrongValue::Type { name: inner.name.clone(), expected, given }.into());
        }
        let loan = inner.out.writer.loan(len_around(bytes))?;
        Ok(Lent { attribute: self, loan, shape, bytes, of: std::marker::PhantomData })
    }

    /// Sets when it sends events.
    pub fn set_criteria(&self, criteria: Criteria) {
        self.handle.shared.reconfigure(&self.handle.inner, |config| config.criteria = criteria);
    }

    /// Changes its configuration; name, type and format stay. Everybody is told of the new epoch.
    pub fn reconfigure(&self, change: impl FnOnce(&mut AttributeConfig)) {
        self.handle.shared.reconfigure(&self.handle.inner, change);
    }

    /// Has it read at this period, in ms: `read` is given the attribute, and pushes. One that takes long delays other polls of
    /// this server and nothing else. Ends with the attribute.
    pub fn poll(&self, period_ms: u32, read: impl FnMut(&Attribute) + Send + 'static) {
        let shared = &self.handle.shared;
        shared.reconfigure(&self.handle.inner, |config| config.polled_ms = Some(period_ms));
        let attribute = WeakAttribute(Arc::downgrade(&self.handle));
        shared.polls.add(self.inner().index, attribute, Box::new(read), shared.clock.monotonic());
    }
}

/// An attribute that somebody else holds.
pub(super) struct WeakAttribute(Weak<Handle>);

impl WeakAttribute {
    pub fn upgrade(&self) -> Option<Attribute> {
        self.0.upgrade().map(|handle| Attribute { handle })
    }
}

impl Shared {
    pub(super) fn reconfigure(&self, inner: &Arc<Inner>, change: impl FnOnce(&mut AttributeConfig)) {
        let mut table = lock(&self.table);
        let polled = {
            let mut state = lock(&inner.state);
            let before = state.config.clone();
            let mut config = AttributeConfig::clone(&before);
            change(&mut config);
            // What an attribute is stays: who bound to it rests on that.
            config.name.clone_from(&before.name);
            (config.data_type, config.format) = (before.data_type, before.format);
            if config == *before {
                return;
            }
            let polled = config.polled_ms != before.polled_ms;
            state.config = Arc::new(config);
            state.epoch += 1;
            polled
        };
        // A label that is too long is kept here and not told.
        let _ = self.tell(&mut table, inner, Presence::Declared);
        drop(table);
        if polled {
            self.polls.hasten(inner.index, self.clock.monotonic());
        }
    }
}

/// Memory for the elements of one event. Publish it; dropped, it is given back.
pub struct Lent<'a, T> {
    attribute: &'a Attribute,
    loan: tampu_bus::Loan<'a>,
    shape: Shape,
    bytes: usize,
    of: std::marker::PhantomData<T>,
}

impl<'a, T: Element + FromBytes + IntoBytes + Immutable + KnownLayout> Lent<'a, T> {
    /// Publishes it as these kinds. Criteria are not asked: they would have to keep a copy.
    pub fn publish(self, kinds: Kinds, quality: Quality) -> Result<Pushed, PushError> {
        self.send(kinds, quality).map(|(pushed, _)| pushed)
    }

    /// The same, and waits as [`Attribute::push_acknowledged`] does.
    pub fn publish_acknowledged(self, kinds: Kinds, quality: Quality, timeout: Duration) -> Result<Receipt, PushError> {
        let (pushed, attribute) = self.send(kinds, quality)?;
        Ok(attribute.receipt(pushed.number, timeout))
    }

    fn send(mut self, kinds: Kinds, quality: Quality) -> Result<(Pushed, &'a Attribute), PushError> {
        let (inner, shared) = (self.attribute.inner(), &self.attribute.handle.shared);
        let mut state = lock(&inner.state);
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
        let written = self.loan.publish()?;
        state.number += 1;
        state.last = Last::InStream;
        state.pushes += 1;
        state.pushed_at = time;
        state.quality = Some(quality);
        Ok((Pushed { kinds, number: state.number, readers: written.matched }, self.attribute))
    }
}

impl<T: FromBytes + IntoBytes + Immutable + KnownLayout> Deref for Lent<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // Lent memory begins at a multiple of 64, and the elements at one of 8.
        <[T]>::ref_from_bytes(&self.loan[ELEMENTS_AT..ELEMENTS_AT + self.bytes]).unwrap_or_default()
    }
}

impl<T: FromBytes + IntoBytes + Immutable + KnownLayout> DerefMut for Lent<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        <[T]>::mut_from_bytes(&mut self.loan[ELEMENTS_AT..ELEMENTS_AT + self.bytes]).unwrap_or_default()
    }
}
