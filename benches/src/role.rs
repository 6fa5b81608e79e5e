//! What every writer and every reader of the bus bench does, whatever carries the messages.
//!
//! A writer sends probes until the bench says that every reader got one, then numbers from 0 for the time it was given, then
//! one marked as the last. A reader reports when it has the last one, or when the writer is done and nothing came for a while.

use std::{
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::{
    payload::Message,
    process::{Order, Say, monotonic, orders, say},
    tally::{Report, Tally},
};

/// How long a reader waits for more after the writer is done, before it counts the rest as lost.
const PATIENCE: Duration = Duration::from_secs(2);
const BETWEEN_PROBES: Duration = Duration::from_millis(10);
/// Between the single samples whose latency is measured.
const PACE: Duration = Duration::from_millis(1);
/// A writer of small messages looks at the clock once in so many.
const LOOK_EVERY: u64 = 64;

/// How a writer writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speed {
    /// As fast as it may.
    Full,
    /// About a thousand a second, each with the time it was sent.
    Paced,
}

/// A way to publish.
pub trait Outgoing {
    /// Publishes one message.
    fn publish(&mut self, message: &Message) -> Result<(), String>;

    /// Sends what this side itself holds back to join it with later messages.
    fn push(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Does what has to be done after the last message, and tells what is worth telling.
    fn finish(&mut self) -> Result<Option<String>, String> {
        self.push().map(|()| None)
    }

    /// Looks, when the time is over, at what became of the messages where no reader does.
    fn audit(&mut self) -> Result<Audit, String> {
        Ok(Audit::default())
    }

    /// Bytes this side has put into its socket, where it counts them.
    fn wire(&self) -> Option<u64> {
        None
    }
}

/// What was found where messages are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Audit {
    /// Messages that are there, in order; nothing where they are not kept.
    pub kept: Option<u64>,
    /// Such as nobody wrote, or that are there twice.
    pub wrong: u64,
}

/// Lives a writer's life; returns when the bench is over.
pub fn write(mut out: impl Outgoing, size: usize, speed: Speed) -> Result<(), String> {
    let orders = orders();
    let nanoseconds = loop {
        out.publish(&Message::probe(size))?;
        out.push()?;
        if let Ok(Order::Go { nanoseconds }) = orders.recv_timeout(BETWEEN_PROBES) {
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
    say(&Say::Wrote { count, begun, ended, note, audit, wire });
    // Other orders do not come; when the bench is over its end of the line closes and this process ends.
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

/// Where a reader's messages are taken to, from whichever worker they come on.
#[derive(Debug)]
pub struct Desk {
    tally: Mutex<Tally>,
    news: Condvar,
    /// Bytes taken from the socket, where they are counted.
    wire: AtomicU64,
}

impl Desk {
    /// For payloads of this size.
    pub fn new(size: usize) -> Desk {
        Desk { tally: Mutex::new(Tally::new(size)), news: Condvar::new(), wire: AtomicU64::new(0) }
    }

    /// Takes one message.
    #[inline]
    pub fn take(&self, payload: &[u8]) {
        self.with(|tally| {
            tally.take(payload);
        });
    }

    /// Takes several under one lock.
    #[inline]
    pub fn with(&self, work: impl FnOnce(&mut Tally)) {
        let mut tally = self.lock();
        let before = tally.connected;
        work(&mut tally);
        if tally.connected != before || tally.over() {
            self.news.notify_all();
        }
    }

    /// So many bytes came out of the socket.
    #[inline]
    pub fn came(&self, bytes: usize) {
        self.wire.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Ends the reading with a reason.
    pub fn fail(&self, why: String) {
        self.with(|tally| tally.failed(why));
    }

    fn lock(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lives a reader's life while others fill the desk; returns when the bench is over.
pub fn read(desk: &Desk) -> Result<(), String> {
    let orders = orders();
    let mut tally = desk.lock();
    while !tally.connected && !tally.over() {
        tally = desk.news.wait(tally).unwrap_or_else(PoisonError::into_inner);
    }
    drop(tally);
    say(&Say::Connected);
    let mut writer_done = false;
    loop {
        let tally = desk.lock();
        let before = tally.received();
        let wait = if writer_done { PATIENCE } else { Duration::from_millis(200) };
        let waiting = desk.news.wait_timeout_while(tally, wait, |tally| !tally.over());
        let (tally, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        if tally.over() || (writer_done && tally.received() == before) {
            let wire = desk.wire.load(Ordering::Relaxed);
            let report = Report { wire: (wire > 0).then_some(wire), ..tally.report() };
            drop(tally);
            say(&Say::Got(report));
            break;
        }
        drop(tally);
        writer_done |= orders.try_recv() == Ok(Order::WriterDone);
    }
    while orders.recv().is_ok() {}
    Ok(())
}
