//! Callers that want to be told later whether their records are kept.
//!
//! A caller that cannot wait asks with [`crate::Logger::when_kept`]. The backend notes what was published by then, and looks
//! from time to time whether a collector has committed it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Instant,
};

use crate::logger::{packet_sink::PacketSink, stream::StreamKey};

/// Call of an application that gets the answer.
pub(crate) type Tell = Box<dyn FnOnce(bool) + Send>;

struct Promise {
    until: Instant,
    /// Streams, and the number after the last packet of each that has to be kept.
    wanted: Vec<(StreamKey, u64)>,
    tell: Tell,
}

/// Answers that are due.
#[derive(Default)]
pub(crate) struct Promises(Vec<Promise>);

impl Promises {
    /// Promises to tell whether everything published so far is kept until then.
    pub fn add(&mut self, until: Instant, sink: &dyn PacketSink, tell: Tell) {
        self.0.push(Promise { until, wanted: sink.published(), tell });
    }

    /// Returns whether somebody waits for an answer.
    pub fn are_open(&self) -> bool {
        !self.0.is_empty()
    }

    /// Gives the answers that are known at this time; at the end, all of them.
    pub fn look(&mut self, sink: &dyn PacketSink, now: Instant, at_last: bool) {
        let mut index = 0;
        while let Some(promise) = self.0.get_mut(index) {
            // What is kept once is not looked at again.
            promise.wanted.retain(|(stream, next)| !sink.is_kept(stream, *next));
            let is_kept = promise.wanted.is_empty();
            if is_kept || now >= promise.until || at_last {
                answer(self.0.remove(index).tell, is_kept);
            } else {
                index += 1;
            }
        }
    }
}

/// Calls the application. Its panic must not end the logging of the process.
fn answer(tell: Tell, is_kept: bool) {
    if catch_unwind(AssertUnwindSafe(|| tell(is_kept))).is_err() {
        eprintln!("tampu-log: a function given to 'when_kept' has panicked; logging goes on");
    }
}
