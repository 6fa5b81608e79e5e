//! A flow whose data is pulled: a bounded queue between the connection and whoever takes from it, also with `await`.
//!
//! A full queue holds the connection's worker, so the sender waits, as it would for a slow callback. Bytes are copied once more than
//! by a handler, because they outlive the call.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Condvar, Mutex},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::Bytes;

use super::lock;
use crate::{
    handler::{CallbackError, Connection, Data, End, Handler, Peer, Start},
    message::Fault,
    receiving::LostRange,
    time::until,
};

/// What comes out, in order.
#[derive(Debug, Clone)]
pub enum Item {
    /// A transfer begins.
    Start {
        /// Its number.
        transfer: u64,
        /// Who sends it.
        sender: Peer,
        /// What the sender says about it.
        parameter: Bytes,
    },
    /// A frame.
    Data {
        /// The bytes.
        bytes: Bytes,
        /// Where they lie.
        offset: u64,
        /// Whether a block ends here.
        end_of_block: bool,
    },
    /// Data that will not come.
    Lost(LostRange),
    /// It has ended.
    Stop(End),
    /// The sender has given it up.
    Reset(End),
    /// Something is wrong.
    Fault(Fault),
    /// A sender came or went.
    Connection(Connection),
}

#[derive(Default)]
struct Inner {
    items: VecDeque<Item>,
    bytes: usize,
    waker: Option<Waker>,
    /// Nobody takes any more, or nobody puts.
    closed: bool,
}

struct Queue {
    inner: Mutex<Inner>,
    changed: Condvar,
    limit: usize,
}

/// Items that wait besides data; beyond it they wait for room too.
const ITEMS_LIMIT: usize = 65_536;

impl Queue {
    fn put(&self, item: Item, length: usize) -> Result<(), CallbackError> {
        let mut inner = lock(&self.inner);
        // One frame alone always fits, however long it is.
        while !inner.closed && !inner.items.is_empty() && (inner.bytes + length > self.limit || inner.items.len() >= ITEMS_LIMIT)
        {
            inner = self.changed.wait(inner).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        if inner.closed {
            return Err(CallbackError::give_up("nobody takes the data any more"));
        }
        inner.bytes += length;
        inner.items.push_back(item);
        let waker = inner.waker.take();
        drop(inner);
        self.changed.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }

    fn take(&self, inner: &mut Inner) -> Option<Item> {
        let item = inner.items.pop_front()?;
        if let Item::Data { bytes, .. } = &item {
            inner.bytes -= bytes.len();
        }
        self.changed.notify_all();
        Some(item)
    }

    fn close(&self) {
        let mut inner = lock(&self.inner);
        inner.closed = true;
        let waker = inner.waker.take();
        drop(inner);
        self.changed.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The handler that fills the queue.
pub struct Filler(Arc<Queue>);

/// Where the data is taken from. Dropping it has the receiver give up what is under way.
pub struct FlowStream(Arc<Queue>);

/// A queue of at most so many bytes of data (one frame always fits): its handler, and where to take from.
pub fn queue(limit: usize) -> (Filler, FlowStream) {
    let queue = Arc::new(Queue { inner: Mutex::default(), changed: Condvar::new(), limit });
    (Filler(queue.clone()), FlowStream(queue))
}

impl FlowStream {
    /// The next item within this time; `None` also when the receiver has closed and nothing is left.
    pub fn next(&self, timeout: Duration) -> Option<Item> {
        let until = until(timeout);
        let mut inner = lock(&self.0.inner);
        loop {
            if let Some(item) = self.0.take(&mut inner) {
                return Some(item);
            }
            let left = until.saturating_duration_since(Instant::now());
            if inner.closed || left.is_zero() {
                return None;
            }
            inner = self.0.changed.wait_timeout(inner, left).unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }

    /// The next item, as a runtime asks for it; `None`: the receiver has closed, and nothing is left.
    pub fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<Item>> {
        let mut inner = lock(&self.0.inner);
        match self.0.take(&mut inner) {
            Some(item) => Poll::Ready(Some(item)),
            None if inner.closed => Poll::Ready(None),
            None => {
                inner.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The next item, for `await`; needs no runtime of a certain make.
    pub async fn recv(&self) -> Option<Item> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// Bytes that wait to be taken.
    pub fn waiting(&self) -> usize {
        lock(&self.0.inner).bytes
    }
}

impl Drop for FlowStream {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Handler for Filler {
    fn start(&mut self, start: &Start<'_>) -> Result<u64, CallbackError> {
        let parameter = Bytes::copy_from_slice(start.parameter);
        self.0.put(Item::Start { transfer: start.transfer, sender: start.sender.clone(), parameter }, 0)?;
        Ok(0)
    }

    fn data(&mut self, data: &Data<'_>) -> Result<(), CallbackError> {
        let bytes = Bytes::copy_from_slice(data.bytes);
        self.0.put(Item::Data { bytes, offset: data.offset, end_of_block: data.end_of_block }, data.bytes.len())
    }

    fn stop(&mut self, end: &End) -> Result<(), CallbackError> {
        self.0.put(Item::Stop(end.clone()), 0)
    }

    fn reset(&mut self, end: &End) -> Result<(), CallbackError> {
        self.0.put(Item::Reset(end.clone()), 0)
    }

    // Whoever is no longer there need not be told.
    fn lost(&mut self, lost: &LostRange) {
        let _ = self.0.put(Item::Lost(*lost), 0);
    }

    fn fault(&mut self, fault: &Fault) {
        let _ = self.0.put(Item::Fault(fault.clone()), 0);
    }

    fn connection(&mut self, change: &Connection) {
        let _ = self.0.put(Item::Connection(change.clone()), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_holds_its_filler_and_a_gone_taker_ends_it() {
        let (mut filler, stream) = queue(10);
        let data = |bytes: &'static [u8]| Data { transfer: 1, bytes, offset: 0, end_of_block: true };
        filler.data(&data(b"more than ten bytes")).unwrap();
        let worker = std::thread::spawn(move || {
            let second = filler.data(&data(b"abc"));
            let third = filler.data(&data(b"0123456789"));
            (second, third)
        });
        assert!(matches!(stream.next(Duration::from_secs(60)), Some(Item::Data { bytes, .. }) if bytes.len() == 19));
        assert!(matches!(stream.next(Duration::from_secs(60)), Some(Item::Data { bytes, .. }) if &bytes[..] == b"abc"));
        drop(stream);
        let (second, third) = worker.join().unwrap();
        assert_eq!(second, Ok(()));
        assert!(third.is_ok() || third.unwrap_err().give_up);
    }

    #[test]
    fn what_is_left_is_taken_after_the_filler_is_gone() {
        let (mut filler, stream) = queue(10);
        filler.data(&Data { transfer: 1, bytes: b"x", offset: 7, end_of_block: false }).unwrap();
        drop(filler);
        let mut context = Context::from_waker(Waker::noop());
        assert!(matches!(stream.poll_next(&mut context), Poll::Ready(Some(Item::Data { offset: 7, .. }))));
        assert!(matches!(stream.poll_next(&mut context), Poll::Ready(None)));
        assert!(stream.next(Duration::from_secs(60)).is_none());
    }
}
