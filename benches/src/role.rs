//! Writer and reader of the bus bench, for every system that carries the messages.
//!
//! A writer sends probes until the bench reports that every reader got one. Then it sends numbers from 0 for the given
//! time, and then one marked as the last. A reader reports when it has the last one, or when the writer is done and no
//! message has arrived for a while.

use std::{
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use crate::{
    clock::monotonic,
    payload::Message,
    process::{Audit, RoleCommand, RoleMessage, orders, say},
    tally::{Report, Tally},
};

/// Time for which a reader waits after the writer is done, before it counts the missing messages as lost.
const PATIENCE: Duration = Duration::from_secs(2);
const BETWEEN_PROBES: Duration = Duration::from_millis(10);
/// Pause between the single samples whose latency is measured.
const PACE: Duration = Duration::from_millis(1);
/// Number of small messages between two readings of the clock by the writer.
const LOOK_EVERY: u64 = 64;

/// Speed of a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speed {
    /// As fast as possible.
    Full,
    /// About a thousand a second, each with the time of sending.
    Paced,
}

/// A method of publishing.
pub trait Outgoing {
    /// Publishes one message.
    fn publish(&mut self, message: &Message) -> Result<(), String>;

    /// Sends the messages that this side holds back to join them with later ones.
    fn push(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Ends the run after the last message. Returns a remark for the result, if any.
    fn finish(&mut self) -> Result<Option<String>, String> {
        self.push().map(|()| None)
    }

    /// Counts the stored messages at the end of the run, for a system without readers.
    fn audit(&mut self) -> Result<Audit, String> {
        Ok(Audit::default())
    }

    /// Returns the bytes that this side has written to its socket, if it counts them.
    fn wire(&self) -> Option<u64> {
        None
    }
}

/// Runs the writer until the bench is over.
pub fn write(mut out: impl Outgoing, size: usize, speed: Speed) -> Result<(), String> {
    let orders = orders();
    let nanoseconds = loop {
        out.publish(&Message::probe(size))?;
        out.push()?;
        if let Ok(RoleCommand::Go { nanoseconds }) = orders.recv_timeout(BETWEEN_PROBES) {
            break nanoseconds;
        }
    };
    let begun = monotonic();
    let count = match speed {
        Speed::Full => write_full(&mut out, size, begun + nanoseconds)?,
        Speed::Paced => write_paced(&mut out, size, begun + nanoseconds)?,
    };
    let note = out.finish()?;
    let ended = monotonic();
    let wire = out.wire();
    let audit = out.audit()?;
    say(&RoleMessage::Wrote { count, begun, ended, note, audit, wire });
    // No other orders follow; at the end of the bench the pipe closes and this process ends.
    while orders.recv().is_ok() {}
    Ok(())
}

fn write_full(out: &mut impl Outgoing, size: usize, until: u64) -> Result<u64, String> {
    let look_every = if size <= 16 * 1024 { LOOK_EVERY } else { 1 };
    let mut number = 0;
    loop {
        out.publish(&Message::new(number, 0, size))?;
        number += 1;
        if number % look_every == 0 && monotonic() >= until {
            break;
        }
    }
    out.publish(&Message::last(number, size))?;
    Ok(number + 1)
}

fn write_paced(out: &mut impl Outgoing, size: usize, until: u64) -> Result<u64, String> {
    let mut number = 0;
    let mut due = monotonic();
    while due < until {
        out.publish(&Message::new(number, monotonic(), size))?;
        out.push()?;
        number += 1;
        due += PACE.as_nanos() as u64;
        thread::sleep(Duration::from_nanos(due.saturating_sub(monotonic())));
    }
    out.publish(&Message::last(number, size))?;
    Ok(number + 1)
}

/// Collects a reader's messages, from any worker thread.
#[derive(Debug)]
pub struct Inbox {
    tally: Mutex<Tally>,
    news: Condvar,
    /// Bytes that were read from the socket, if they are counted.
    wire: AtomicU64,
}

impl Inbox {
    /// Creates an inbox for payloads of this size.
    pub fn new(size: usize) -> Inbox {
        Inbox { tally: Mutex::new(Tally::new(size)), news: Condvar::new(), wire: AtomicU64::new(0) }
    }

    /// Checks and counts one message.
    #[inline]
    pub fn take(&self, payload: &[u8]) {
        self.with(|tally| {
            tally.take(payload);
        });
    }

    /// Checks and counts several messages under one lock.
    #[inline]
    pub fn with(&self, work: impl FnOnce(&mut Tally)) {
        let mut tally = self.lock();
        let before = tally.connected;
        work(&mut tally);
        if tally.connected != before || tally.over() {
            self.news.notify_all();
        }
    }

    /// Counts bytes that were read from the socket.
    #[inline]
    pub fn came(&self, bytes: usize) {
        self.wire.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Ends the reader with an error.
    pub fn fail(&self, why: String) {
        self.with(|tally| tally.failed(why));
    }

    fn lock(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the reader while others fill the inbox, until the bench is over.
pub fn read(inbox: &Inbox) -> Result<(), String> {
    let orders = orders();
    let mut tally = inbox.lock();
    while !tally.connected && !tally.over() {
        tally = inbox.news.wait(tally).unwrap_or_else(PoisonError::into_inner);
    }
    drop(tally);
    say(&RoleMessage::Connected);
    let mut writer_done = false;
    loop {
        let tally = inbox.lock();
        let before = tally.received();
        let wait = if writer_done { PATIENCE } else { Duration::from_millis(200) };
        let waiting = inbox.news.wait_timeout_while(tally, wait, |tally| !tally.over());
        let (tally, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        if tally.over() || (writer_done && tally.received() == before) {
            let wire = inbox.wire.load(Ordering::Relaxed);
            let report = Report { wire: (wire > 0).then_some(wire), ..tally.report() };
            drop(tally);
            say(&RoleMessage::Got(report));
            break;
        }
        drop(tally);
        writer_done |= orders.try_recv() == Ok(RoleCommand::WriterDone);
    }
    while orders.recv().is_ok() {}
    Ok(())
}
