//! Callers that want to be told later whether their records are kept.
//!
//! A caller that cannot wait asks with [`crate::Logger::when_kept`]. The backend notes what was published by then, and looks
//! from time to time whether a collector has committed it. Later callers want at least what earlier ones want, so only the
//! oldest promise is compared with the collector's word.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Instant,
};

use crate::logger::{packet_sink::PacketSink, stream::StreamKey};

/// Call of an application that gets the answer.
pub(crate) type Tell = Box<dyn FnOnce(bool) + Send>;

/// Promises that may be open. A further caller is told at once that its records are not known to be kept.
const OPEN: usize = 1024;

struct Promise {
    until: Instant,
    /// Streams, and the number after the last packet of each that has to be kept; `None` while they are being sent.
    wanted: Option<Vec<(StreamKey, u64)>>,
    tell: Tell,
}

/// Answers that are due.
#[derive(Default)]
pub(crate) struct Promises(VecDeque<Promise>);

impl Promises {
    /// Promises an answer until then about what is being sent now.
    pub fn begin(&mut self, until: Instant, tell: Tell) {
        if self.0.len() >= OPEN {
            return answer(tell, false);
        }
        self.0.push_back(Promise { until, wanted: None, tell });
    }

    /// Notes what the promise that was begun last is about: everything published so far. If records were refused, nobody can
    /// keep them, and the answer is no. Returns false if it was answered before.
    pub fn sent(&mut self, sink: &dyn PacketSink, refused: bool) -> bool {
        let Some(mut promise) = self.0.pop_back_if(|promise| promise.wanted.is_none()) else { return false };
        if refused {
            answer(promise.tell, false);
        } else {
            promise.wanted = Some(sink.published());
            self.0.push_back(promise);
        }
        true
    }

    /// Returns whether somebody waits for an answer.
    pub fn are_open(&self) -> bool {
        !self.0.is_empty()
    }

    /// Gives the answers that are known at this time; at the end, all of them.
    pub fn look(&mut self, sink: &dyn PacketSink, now: Instant, at_last: bool) {
        while let Some(oldest) = self.0.front()
            && oldest.wanted.as_ref().is_some_and(|wanted| wanted.iter().all(|(stream, next)| sink.is_kept(stream, *next)))
            && let Some(promise) = self.0.pop_front()
        {
            answer(promise.tell, true);
        }
        let (late, open) = std::mem::take(&mut self.0).into_iter().partition(|promise| at_last || now >= promise.until);
        self.0 = open;
        let late: VecDeque<Promise> = late;
        late.into_iter().for_each(|promise| answer(promise.tell, false));
    }
}

/// Calls the application. Its panic must not end the logging of the process.
pub(crate) fn answer(tell: Tell, is_kept: bool) {
    if catch_unwind(AssertUnwindSafe(|| tell(is_kept))).is_err() {
        eprintln!("tampu-log: a function given to 'when_kept' has panicked; logging goes on");
    }
}
