//! A flow for pulling data: a bounded queue between the connection and its consumer, also with `await`.
//!
//! A full queue blocks the connection's worker, so the sender waits, as it would for a slow callback. A queue copies
//! the bytes once more than a handler, because they outlive the call.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};

use crate::{
    handler::{CallbackError, Connection, Data, End, Handler, Peer, Start},
    message::Fault,
    receiving::LostRange,
    time::until,
};

/// An item of the stream, in order.
#[derive(Debug, Clone)]
pub enum Item {
    /// Start of a transfer.
    Start {
        /// The number of the transfer.
        transfer: u64,
        /// The sender of the transfer.
        sender: Peer,
        /// The sender's parameter.
        parameter: Bytes,
    },
    /// Data of a frame.
    Data {
        /// The bytes of the frame.
        bytes: Bytes,
        /// The offset of the bytes.
        offset: u64,
        /// True if a block ends here.
        end_of_block: bool,
    },
    /// Data that is lost.
    Lost(LostRange),
    /// End of a transfer.
    Stop(End),
    /// Transfer that the sender has given up.
    Reset(End),
    /// Fault of the transfer.
    Fault(Fault),
    /// Change of a sender's connection.
    Connection(Connection),
}

#[derive(Default)]
struct Inner {
    items: VecDeque<Item>,
    bytes: usize,
    waker: Option<Waker>,
    /// True if the stream or the filler has been dropped.
    closed: bool,
}

struct Queue {
    inner: Mutex<Inner>,
    changed: Condvar,
    limit: usize,
}

/// Most items without data that wait. Beyond it they wait for room too.
const ITEMS_LIMIT: usize = 65_536;

impl Queue {
    fn put(&self, item: Item, length: usize) -> Result<(), CallbackError> {
        let mut inner = self.inner.lock();
        // A single frame of any length always fits.
        while !inner.closed && !inner.items.is_empty() && (inner.bytes + length > self.limit || inner.items.len() >= ITEMS_LIMIT)
        {
            self.changed.wait(&mut inner);
        }
        if inner.closed {
            return Err(CallbackError::give_up("the receiver has stopped reading"));
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
        let mut inner = self.inner.lock();
        inner.closed = true;
        let waker = inner.waker.take();
        drop(inner);
        self.changed.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Handler that fills the queue.
pub struct Filler(Arc<Queue>);

/// Stream of a flow's items. Dropping it makes the receiver give up the running transfer.
pub struct FlowStream(Arc<Queue>);

/// Makes a queue of at most so many bytes of data (one frame always fits): its handler and its stream.
pub fn queue(limit: usize) -> (Filler, FlowStream) {
    let queue = Arc::new(Queue { inner: Mutex::default(), changed: Condvar::new(), limit });
    (Filler(queue.clone()), FlowStream(queue))
}

impl FlowStream {
    /// Returns the next item within this time; `None` also when the receiver has closed and the queue is empty.
    pub fn next(&self, timeout: Duration) -> Option<Item> {
        let until = until(timeout);
        let mut inner = self.0.inner.lock();
        loop {
            if let Some(item) = self.0.take(&mut inner) {
                return Some(item);
            }
            let left = until.saturating_duration_since(Instant::now());
            if inner.closed || left.is_zero() {
                return None;
            }
            self.0.changed.wait_for(&mut inner, left);
        }
    }

    /// Polls for the next item. `None` means that the receiver has closed and the queue is empty.
    pub fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<Item>> {
        let mut inner = self.0.inner.lock();
        match self.0.take(&mut inner) {
            Some(item) => Poll::Ready(Some(item)),
            None if inner.closed => Poll::Ready(None),
            None => {
                inner.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Waits for the next item with `await`, in any runtime.
    pub async fn recv(&self) -> Option<Item> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// Returns the number of waiting bytes.
    pub fn waiting(&self) -> usize {
        self.0.inner.lock().bytes
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

    // A reader that has gone needs no report.
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
        let data = |bytes: &'static [u8]| Data { transfer: 1, bytes, offset: 0, end_of_block: true, more: false };
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
        filler.data(&Data { transfer: 1, bytes: b"x", offset: 7, end_of_block: false, more: false }).unwrap();
        drop(filler);
        let mut context = Context::from_waker(Waker::noop());
        assert!(matches!(stream.poll_next(&mut context), Poll::Ready(Some(Item::Data { offset: 7, .. }))));
        assert!(matches!(stream.poll_next(&mut context), Poll::Ready(None)));
        assert!(stream.next(Duration::from_secs(60)).is_none());
    }
}
