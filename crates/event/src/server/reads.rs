//! Readings on demand: read callbacks, and questions for current values that wait for them.
//!
//! ```text
//! event/get -> is the last reading young enough? yes -> answer
//!                                                no  -> the callback, once for all who wait -> push -> the keeper answers
//! ```
//! Decision: a callback is asked and answers later, because the program of an attribute may be behind a gateway. So no thread
//! waits for a slow read. Rejected: a read by the keeper itself, which would delay the questions of all other attributes.

use std::sync::Arc;

use tampu_bus::service::Request;

use super::{pending_read::PendingRead, published::PublishedAttribute, server_state::ServerState, waiting_get::WaitingGet};

/// Longest time for which a question waits for a reading, ns. It is shorter than the time of those who ask.
const PATIENCE: u64 = 2_000_000_000;

/// Answers a question for the current values of these attributes, at once or after their reads.
pub(super) fn answer(server: &Arc<ServerState>, request: Request, found: Vec<Arc<PublishedAttribute>>) {
    let begun = |inner: Arc<PublishedAttribute>| {
        let wanted = begin(server, &inner);
        (inner, wanted)
    };
    let found = found.into_iter().map(begun).collect();
    let until = server.clock.monotonic().saturating_add(PATIENCE);
    let waiting = WaitingGet { request, found, until };
    match waiting.is_ready() {
        true => waiting.answer(),
        false => server.waiting_gets.lock().push(waiting),
    }
}

/// Answers the questions whose reads have ended, and those whose time is over.
pub(super) fn answer_ready(server: &ServerState) {
    let ready: Vec<WaitingGet> = {
        let mut waiting = server.waiting_gets.lock();
        if waiting.is_empty() {
            return;
        }
        let now = server.clock.monotonic();
        waiting.extract_if(.., |get| get.until <= now || get.is_ready()).collect()
    };
    ready.iter().for_each(WaitingGet::answer);
}

/// Asks for a reading if there is a callback and the last reading is too old. Returns the number of ended reads to wait for.
fn begin(server: &Arc<ServerState>, inner: &Arc<PublishedAttribute>) -> Option<u64> {
    let read_at = inner.state.lock().read_at;
    let mut reads = inner.reads.lock();
    let (max_age, ask) = reads.callback.clone()?;
    if read_at.is_some_and(|at| server.clock.monotonic().saturating_sub(at) < max_age) {
        return None;
    }
    let wanted = reads.ended + 1;
    if !std::mem::replace(&mut reads.is_under_way, true) {
        drop(reads);
        let server = Arc::downgrade(server);
        let wake = move || {
            if let Some(server) = server.upgrade() {
                server.keeper.open();
            }
        };
        ask(PendingRead::new(inner.reads.clone(), Box::new(wake)));
    }
    Some(wanted)
}
