//! Read callbacks of a client: the hub asks it for a reading of an attribute that it publishes.
//!
//! ```text
//! event/get, or a poll that is due -> QUESTION -> client -> PUBLISH the reading, ANSWER
//! ```
//! One question of a callback is under way at a time. Those who ask meanwhile share its reading.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tampu_event::{Attribute, server::PendingRead};
use tampu_types::{
    event::Failure,
    gateway::{
        Kind,
        frame::{FLAG_LAST, FLAG_REFUSED},
        question::{Answer, Passed},
    },
};
use tampu_workers::RunningGuard;

use super::{
    limits::ALL_PASSED,
    outgoing::Outgoing,
    publisher::Publisher,
    service::refusal_of,
    shared::{GatewayShared, count},
};

/// A read callback of a client.
pub(super) struct ReadCallback {
    pub asking: Arc<Asking>,
    pub is_poll: bool,
}

/// The way to the client, and the question that is under way.
pub(super) struct Asking {
    pub id: u32,
    pub time: Duration,
    pub publisher: Weak<Publisher>,
    pub outgoing: Arc<Outgoing>,
    /// Returns true while the client has no connection.
    pub is_detached: Box<dyn Fn() -> bool + Send + Sync>,
    pub gateway: Arc<GatewayShared>,
    pub next: AtomicU64,
    pub under_way: Mutex<Option<UnderWay>>,
}

pub(super) struct UnderWay {
    number: u64,
    until: Instant,
    /// The read of those who have asked; none for a poll.
    read: Option<PendingRead>,
    _place: RunningGuard,
}

impl ReadCallback {
    /// Ends the read that the client has answered.
    pub fn answer(&self, flags: u8, answer: &Answer<'_>) {
        if flags & (FLAG_LAST | FLAG_REFUSED) == 0 {
            return;
        }
        let Some(under_way) = self.asking.take(|under_way| under_way.number == answer.number) else { return };
        match flags & FLAG_REFUSED {
            0 => under_way.read.into_iter().for_each(PendingRead::done),
            _ => self.failed(under_way, Failure::new("Tampu_ReadFailed", refusal_of(answer.content))),
        }
    }

    /// Ends a read that the client has not answered in time.
    pub fn expire(&self, now: Instant) {
        let Some(late) = self.asking.take(|under_way| under_way.until <= now) else { return };
        count(&self.asking.gateway.counters.expired);
        let (number, seconds) = (late.number, self.asking.time.as_secs_f64());
        let why = format!("its program has not read it within {seconds} s");
        self.failed(late, Failure::new("Tampu_ReadTimedOut", why));
        // A closed session has nobody to hear it.
        let _ = self.asking.outgoing.send(Kind::Cancel, 0, self.asking.id, &number.to_le_bytes());
    }

    /// Returns the number of questions that wait for their answer.
    pub fn waiting(&self) -> usize {
        usize::from(self.asking.under_way.lock().is_some())
    }

    /// Ends the callback, and fails the read that waits.
    pub fn stop(&self) {
        if let Some(attribute) = self.asking.publisher.upgrade().as_ref().and_then(|publisher| publisher.attribute()) {
            match self.is_poll {
                true => attribute.end_polls(),
                false => attribute.end_reads(),
            }
        }
        drop(self.asking.take(|_| true));
    }

    /// Reports a failure to those who asked. A poll that failed is a reading that failed.
    fn failed(&self, under_way: UnderWay, failure: Failure) {
        match under_way.read {
            Some(read) => read.fail(failure),
            None => {
                let publisher = self.asking.publisher.upgrade();
                let attribute: Option<&Attribute> = publisher.as_ref().and_then(|publisher| publisher.attribute());
                // An attribute that another process owns has no readings here.
                let _ = attribute.map(|attribute| attribute.fail(&[failure]));
            }
        }
    }
}

impl Asking {
    pub fn is_of(&self, publisher: &Arc<Publisher>) -> bool {
        self.publisher.as_ptr() == Arc::as_ptr(publisher)
    }

    fn take(&self, which: impl FnOnce(&UnderWay) -> bool) -> Option<UnderWay> {
        let mut under_way = self.under_way.lock();
        match &*under_way {
            Some(one) if which(one) => under_way.take(),
            _ => None,
        }
    }

    /// Sends a question to the client, unless one is under way. It must not wait.
    pub fn ask(&self, read: Option<PendingRead>) {
        let refused = |read: Option<PendingRead>, why: String| {
            read.into_iter().for_each(|read| read.fail(Failure::new("Tampu_NotRead", why.clone())));
        };
        if (self.is_detached)() {
            return refused(read, "its program has lost its connection with the hub".to_owned());
        }
        let Some(place) = self.gateway.passed.try_enter(ALL_PASSED) else {
            return refused(read, format!("the hub passes {ALL_PASSED} questions on already; try again"));
        };
        let number = {
            let mut under_way = self.under_way.lock();
            if under_way.is_some() {
                // A poll is late. A read of those who ask is under way once only; its callback has no other question.
                return;
            }
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            *under_way = Some(UnderWay { number, until: Instant::now() + self.time, read, _place: place });
            number
        };
        let mut body = Vec::new();
        let timeout_ms = u32::try_from(self.time.as_millis()).unwrap_or(u32::MAX);
        Passed { number, timeout_ms, asker: "", question: b"{}" }.encode(&mut body);
        if self.outgoing.send(Kind::Question, 0, self.id, &body).is_err()
            && let Some(under_way) = self.take(|under_way| under_way.number == number)
        {
            return refused(under_way.read, "its program is ending, or takes nothing from the hub".to_owned());
        }
        count(&self.gateway.counters.passed);
    }
}
