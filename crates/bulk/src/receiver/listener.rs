//! Accepts connections, and ends flows whose senders stay away.
//!
//! Callers that have not identified themselves wait in a separate bounded set, so strangers take no sender's place. The
//! listener itself calls no handler, so a slow handler delays no other connection.

use std::{
    io,
    net::TcpListener,
    sync::{Arc, atomic::Ordering},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tampu_bus::{engine::Fate, host};

use super::{
    connection,
    slot::{ReceiverState, Slot},
};
use crate::{message::Cause, open::spawn};

/// The longest wait of closing for running callbacks.
const CLOSE_WAIT: Duration = Duration::from_secs(2);
/// The time between two checks of the flows.
const TURN: Duration = Duration::from_millis(50);

/// Accepts connections until the receiver closes, and monitors flows whose senders are away.
pub(super) fn listen(shared: &Arc<ReceiverState>, listener: &TcpListener) {
    let mut workers: Vec<JoinHandle<()>> = Vec::new();
    while !shared.closing.load(Ordering::Acquire) {
        if crate::poll::readable(listener, TURN) {
            accept(shared, listener, &mut workers);
        }
        workers.retain(|worker| !worker.is_finished());
        look_after_all(shared, false, &mut workers);
    }
    look_after_all(shared, true, &mut workers);
    // A callback that does not return is not awaited: its worker delivers the stop when it returns.
    let until = Instant::now() + CLOSE_WAIT;
    while workers.iter().any(|worker| !worker.is_finished()) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn accept(shared: &Arc<ReceiverState>, listener: &TcpListener, workers: &mut Vec<JoinHandle<()>>) {
    let (stream, from) = match listener.accept() {
        Ok(came) => came,
        Err(error) => {
            // The caller has left, or no file number is free. The latter passes; the pause avoids a busy loop.
            if error.kind() != io::ErrorKind::WouldBlock {
                std::thread::sleep(Duration::from_millis(5));
            }
            return;
        }
    };
    let of = shared.clone();
    let worker = shared.callers.add(&stream).ok().and_then(|number| {
        spawn("bulk-receive", move || connection::serve(&of, stream, from, number))
            .inspect_err(|_| shared.callers.remove(number))
            .ok()
    });
    match worker {
        Some(worker) => workers.push(worker),
        None => _ = shared.refused.fetch_add(1, Ordering::Relaxed),
    }
}

fn look_after_all(shared: &Arc<ReceiverState>, closing: bool, workers: &mut Vec<JoinHandle<()>>) {
    for (index, slot) in shared.slots.iter().enumerate() {
        let Some((since, last, cause)) = slot.is_given_up(shared.settings.resume, closing) else { continue };
        let of = shared.clone();
        match spawn("bulk-end", move || of.slots[index].end(last, cause)) {
            Ok(worker) => workers.push(worker),
            // The next round tries again, unless another connection has the flow by then.
            Err(_) => {
                let mut tenancy = slot.tenancy.lock();
                if tenancy.last_connection == last {
                    tenancy.broken_since = Some(since);
                }
            }
        }
    }
}

impl Slot {
    /// Decides if the receiver stops waiting for a sender. Returns the start of its absence, its last connection, and
    /// the cause.
    fn is_given_up(&self, resume: Duration, closing: bool) -> Option<(Instant, u64, Cause)> {
        let mut tenancy = self.tenancy.lock();
        let since = tenancy.broken_since?;
        let dead = tenancy.sender.as_ref().is_some_and(|sender| host::fate(sender.incarnation) == Fate::Dead);
        if !dead && !closing && since.elapsed() < resume {
            return None;
        }
        tenancy.broken_since = None;
        Some((since, tenancy.last_connection, if dead { Cause::SenderGone } else { Cause::Away }))
    }

    /// Ends the transfer that this connection has left, unless the flow belongs to another sender meanwhile.
    fn end(&self, last: u64, cause: Cause) {
        let mut flow = self.flow.lock();
        if self.tenancy.lock().last_connection == last {
            flow.give_up(cause);
        }
    }
}
