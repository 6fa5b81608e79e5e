//! Taking connections: callers that have not said who they are wait in a bounded room of their own, so strangers take no sender's
//! place; flows whose senders stay away are ended.
//!
//! The listener itself calls no handler: one that is slow keeps nobody else from connecting.

use std::{
    collections::VecDeque,
    io,
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tampu_bus::{engine::Fate, host};

use super::{Shared, Slot, connection, lock, spawn};
use crate::message::Cause;

/// Callers that have not said who they are; beyond it the one that has been silent longest goes.
const UNPROVEN: usize = 64;
/// How long closing waits for callbacks that run.
const CLOSE_WAIT: Duration = Duration::from_secs(2);
/// How often flows are looked after.
const TURN: Duration = Duration::from_millis(50);

/// Who has come to the listener.
#[derive(Default)]
pub(super) struct Door {
    unproven: Mutex<VecDeque<(u64, TcpStream)>>,
    next: AtomicU64,
    inside: AtomicUsize,
}

/// A sender that was let in, while it is here.
pub(super) struct Inside<'a>(&'a Door);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Door {
    /// A caller has come. Says its number.
    fn came(&self, stream: &TcpStream) -> io::Result<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let to_shut = stream.try_clone()?;
        let mut unproven = lock(&self.unproven);
        if unproven.len() >= UNPROVEN
            && let Some((_, oldest)) = unproven.pop_front()
        {
            let _ = oldest.shutdown(Shutdown::Both);
        }
        unproven.push_back((number, to_shut));
        Ok(number)
    }

    /// It has said who it is, or is gone.
    pub fn heard(&self, number: u64) {
        lock(&self.unproven).retain(|(one, _)| *one != number);
    }

    /// It is a sender; `None`: as many as may be are here.
    pub fn enter(&self, limit: usize) -> Option<Inside<'_>> {
        let one_more = |inside| (inside < limit).then_some(inside + 1);
        self.inside.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok().map(|_| Inside(self))
    }
}

/// Takes connections until the receiver closes, and looks after flows whose senders are away.
pub(super) fn listen(shared: &Arc<Shared>, listener: &TcpListener) {
    let mut workers: Vec<JoinHandle<()>> = Vec::new();
    while !shared.closing.load(Ordering::Acquire) {
        if crate::poll::readable(listener, TURN) {
            accept(shared, listener, &mut workers);
        }
        workers.retain(|worker| !worker.is_finished());
        look_after_all(shared, false, &mut workers);
    }
    look_after_all(shared, true, &mut workers);
    // A callback that does not return is not waited for: its worker delivers the stop when it does.
    let until = Instant::now() + CLOSE_WAIT;
    while workers.iter().any(|worker| !worker.is_finished()) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn accept(shared: &Arc<Shared>, listener: &TcpListener, workers: &mut Vec<JoinHandle<()>>) {
    let (stream, from) = match listener.accept() {
        Ok(came) => came,
        Err(error) => {
            // It has gone again; or there are no file numbers, which passes, and is no reason to turn round and round.
            if error.kind() != io::ErrorKind::WouldBlock {
                std::thread::sleep(Duration::from_millis(5));
            }
            return;
        }
    };
    let of = shared.clone();
    let worker = shared.door.came(&stream).ok().and_then(|number| {
        spawn("bulk-receive", move || connection::serve(&of, stream, from, number))
            .inspect_err(|_| shared.door.heard(number))
            .ok()
    });
    match worker {
        Some(worker) => workers.push(worker),
        None => _ = shared.refused.fetch_add(1, Ordering::Relaxed),
    }
}

fn look_after_all(shared: &Arc<Shared>, closing: bool, workers: &mut Vec<JoinHandle<()>>) {
    for (index, slot) in shared.slots.iter().enumerate() {
        let Some((since, last, cause)) = slot.is_given_up(shared.settings.resume, closing) else { continue };
        let of = shared.clone();
        match spawn("bulk-end", move || of.slots[index].end(last, cause)) {
            Ok(worker) => workers.push(worker),
            // Tried again with the next turn, unless somebody has the flow by then.
            Err(_) => {
                let mut tenancy = lock(&slot.tenancy);
                if tenancy.last_connection == last {
                    tenancy.broken_since = Some(since);
                }
            }
        }
    }
}

impl Slot {
    /// Whether its sender is not waited for any more, and it is free: since when it was away, its last connection, why it does not come.
    fn is_given_up(&self, resume: Duration, closing: bool) -> Option<(Instant, u64, Cause)> {
        let mut tenancy = lock(&self.tenancy);
        let since = tenancy.broken_since?;
        let dead = tenancy.sender.as_ref().is_some_and(|sender| host::fate(sender.incarnation) == Fate::Dead);
        if !dead && !closing && since.elapsed() < resume {
            return None;
        }
        tenancy.broken_since = None;
        Some((since, tenancy.last_connection, if dead { Cause::SenderGone } else { Cause::Away }))
    }

    /// Ends the transfer that this connection has left, unless the flow belongs to another by now.
    fn end(&self, last: u64, cause: Cause) {
        let mut flow = lock(&self.flow);
        if lock(&self.tenancy).last_connection == last {
            flow.give_up(cause);
        }
    }
}
