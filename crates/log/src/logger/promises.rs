//! Callers that want to know later what has become of their records.
//!
//! The backend notes what was published by then, and compares it with what the collectors say: when it is woken by them,
//! and between passes over the rings. Later callers want at least what earlier ones of the same grade want, so only the
//! oldest promise of each grade is compared.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use tampu_bus::{Grade, Wake};

use crate::logger::{outcome::Outcome, packet_sink::PacketSink, stream::StreamKey};

/// Call of an application that gets the answer.
pub(crate) type Tell = Box<dyn FnOnce(Outcome) + Send>;

/// Promises of a grade that may be open. A further caller is told at once that nothing is known of its records.
const OPEN: usize = 16384;

struct Promise {
    until: Instant,
    /// `None` while its records are being sent.
    wanted: Option<Arc<Wanted>>,
    tell: Tell,
}

/// Packets that promises wait for which were begun together.
struct Wanted {
    /// Streams, and the number after the last packet of each.
    streams: Vec<(StreamKey, u64)>,
    /// Packets that collectors had lost before.
    lost: u64,
}

impl Wanted {
    fn is_reached(&self, sink: &dyn PacketSink, grade: Grade) -> bool {
        self.streams.iter().all(|(stream, next)| sink.has_reached(stream, *next, grade))
    }
}

/// Answers that are due.
#[derive(Default)]
pub(crate) struct Promises {
    received: VecDeque<Promise>,
    kept: VecDeque<Promise>,
    /// No promise ends before this time.
    none_before: Option<Instant>,
}

impl Promises {
    fn of(&mut self, grade: Grade) -> &mut VecDeque<Promise> {
        if grade == Grade::Kept { &mut self.kept } else { &mut self.received }
    }

    /// Promises an answer until then about what is being sent now.
    pub fn begin(&mut self, grade: Grade, until: Instant, tell: Tell) {
        let open = self.of(grade);
        if open.len() >= OPEN {
            return answer(tell, Outcome::Unconfirmed);
        }
        open.push_back(Promise { until, wanted: None, tell });
        self.none_before = Some(self.none_before.map_or(until, |earliest| earliest.min(until)));
    }

    /// Notes what the promises are about that were begun since the last call of this: everything published so far. If records
    /// were refused, nobody can keep them, which is the answer. Returns false if all were answered before.
    pub fn sent(&mut self, sink: &mut dyn PacketSink, refused: bool) -> bool {
        let is_begun = |promise: &mut Promise| promise.wanted.is_none();
        let mut wanted = None;
        let mut any = false;
        for grade in [Grade::Received, Grade::Kept] {
            let mut begun = Vec::new();
            while let Some(promise) = self.of(grade).pop_back_if(is_begun) {
                begun.push(promise);
            }
            any |= !begun.is_empty();
            for promise in begun.into_iter().rev() {
                if refused {
                    answer(promise.tell, Outcome::Refused);
                    continue;
                }
                let wanted = wanted.get_or_insert_with(|| Arc::new(Wanted { streams: sink.published(), lost: sink.lost() }));
                self.of(grade).push_back(Promise { wanted: Some(wanted.clone()), ..promise });
            }
        }
        any
    }

    /// Returns whether somebody waits for an answer.
    pub fn are_open(&self) -> bool {
        !self.received.is_empty() || !self.kept.is_empty()
    }

    /// Returns the words that change when the oldest promises may be answered. They may be none.
    pub fn wakes(&self, sink: &dyn PacketSink) -> Vec<Wake> {
        let oldest = [(Grade::Received, self.received.front()), (Grade::Kept, self.kept.front())];
        let wanted = oldest.into_iter().filter_map(|(grade, promise)| Some((grade, promise?.wanted.as_ref()?)));
        wanted.flat_map(|(grade, wanted)| sink.wakes(&wanted.streams, grade)).collect()
    }

    /// Gives the answers that are known at this time; at the end, all of them.
    pub fn look(&mut self, sink: &dyn PacketSink, now: Instant, at_last: bool) {
        for grade in [Grade::Received, Grade::Kept] {
            while let Some(oldest) = self.of(grade).front()
                && let Some(wanted) = &oldest.wanted
                && wanted.is_reached(sink, grade)
            {
                let outcome = if sink.lost() > wanted.lost { Outcome::Lost } else { Outcome::of(grade) };
                if let Some(promise) = self.of(grade).pop_front() {
                    answer(promise.tell, outcome);
                }
            }
        }
        if !at_last && self.none_before.is_none_or(|earliest| now < earliest) {
            return;
        }
        let is_late = |promise: &Promise| at_last || now >= promise.until;
        for grade in [Grade::Received, Grade::Kept] {
            let (late, open) = std::mem::take(self.of(grade)).into_iter().partition::<VecDeque<_>, _>(is_late);
            *self.of(grade) = open;
            late.into_iter().for_each(|promise| answer(promise.tell, Outcome::Unconfirmed));
        }
        self.none_before = self.received.iter().chain(&self.kept).map(|promise| promise.until).min();
    }
}

/// Calls the application. Its panic must not end the logging of the process.
pub(crate) fn answer(tell: Tell, outcome: Outcome) {
    if catch_unwind(AssertUnwindSafe(|| tell(outcome))).is_err() {
        eprintln!("tampu-log: a function that was told about records has panicked; logging goes on");
    }
}
