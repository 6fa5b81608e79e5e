//! Frames on their way to the client: numbered, and kept until it has acknowledged them.
//!
//! ```text
//! subscriptions, publishers, answers -> send -> kept frames -> next -> the writer of the connection
//!                                                   '-- dropped by acknowledge; sent again after attach
//! ```
//! Decision: the frames that a resumed session needs are also the queue of the connection's writer. A frame stands in
//! memory once, and the window bounds both. Rejected: a queue beside the kept frames, which would need a bound and a
//! rule of its own.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use tampu_types::gateway::{Kind, put_frame};

use super::limits::{ALL_WINDOWS, SMALL_WINDOW, WINDOW};

/// Frames that the writer of a connection gets at once, in bytes.
const AT_ONCE: usize = 256 << 10;

#[derive(Default)]
struct State {
    kept: VecDeque<Bytes>,
    kept_bytes: usize,
    /// Number of the first kept frame, or of the next one if none is kept.
    first: u64,
    /// Number of the next frame that the connection's writer gets.
    unsent: u64,
    /// Frames without a number, which the present connection gets first.
    uncounted: VecDeque<Bytes>,
    /// Number of the present connection; those of earlier ones end.
    connection: u64,
    /// True once nothing more is queued.
    is_closed: bool,
    /// The last frame.
    bye: Option<Bytes>,
    sent_bytes: u64,
}

/// Frames of a session for its client.
pub(crate) struct Outgoing {
    /// Bytes that all sessions keep.
    of_all: Arc<AtomicUsize>,
    state: Mutex<State>,
    /// Notified when the connection's writer has work, or has to end.
    ready: Condvar,
    /// Notified when frames were acknowledged.
    room: Condvar,
}

/// Work of a connection's writer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Frames to write, in this order.
    Frames(Vec<Bytes>),
    /// Nothing within the time.
    Nothing,
    /// Another connection has taken over, or the session has ended.
    Over,
}

/// The session has ended, or the client acknowledges nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed;

impl Outgoing {
    /// Makes an empty one. `of_all` counts the bytes of all sessions.
    pub fn new(of_all: Arc<AtomicUsize>) -> Outgoing {
        let state = State { first: 1, unsent: 1, ..State::default() };
        Outgoing { of_all, state: Mutex::new(state), ready: Condvar::new(), room: Condvar::new() }
    }

    /// Numbers and queues a frame, without waiting for room.
    pub fn send(&self, kind: Kind, flags: u8, id: u32, body: &[u8]) -> Result<(), Closed> {
        self.put(&mut self.state.lock(), kind, flags, id, body)
    }

    /// Waits for room in the window, as long as `wanted`; then numbers and queues a frame.
    pub fn send_in_window(&self, kind: Kind, flags: u8, id: u32, body: &[u8], wanted: impl Fn() -> bool) -> Result<(), Closed> {
        let mut state = self.state.lock();
        while self.is_full(&state) && !state.is_closed && wanted() {
            self.room.wait_for(&mut state, Duration::from_secs(1));
        }
        if !wanted() {
            return Err(Closed);
        }
        self.put(&mut state, kind, flags, id, body)
    }

    fn put(&self, state: &mut State, kind: Kind, flags: u8, id: u32, body: &[u8]) -> Result<(), Closed> {
        // Answers to requests do not wait, so a client that acknowledges nothing is stopped here.
        if state.is_closed || state.kept_bytes >= 4 * WINDOW {
            return Err(Closed);
        }
        let mut frame = Vec::new();
        let number = state.first + state.kept.len() as u64;
        put_frame(&mut frame, kind, flags, id, number, body);
        state.kept_bytes += frame.len();
        self.of_all.fetch_add(frame.len(), Ordering::Relaxed);
        state.kept.push_back(frame.into());
        self.ready.notify_one();
        Ok(())
    }

    /// Returns true if a client that acknowledges would get a frame at once.
    pub fn has_room(&self) -> bool {
        !self.is_full(&self.state.lock())
    }

    fn is_full(&self, state: &State) -> bool {
        let window = if self.of_all.load(Ordering::Relaxed) >= ALL_WINDOWS { SMALL_WINDOW } else { WINDOW };
        state.kept_bytes >= window
    }

    fn drop_until(&self, state: &mut State, number: u64) {
        while state.first <= number {
            let Some(frame) = state.kept.pop_front() else { break };
            state.kept_bytes -= frame.len();
            self.of_all.fetch_sub(frame.len(), Ordering::Relaxed);
            state.first += 1;
        }
    }

    /// Queues a frame without a number for this connection.
    pub fn send_uncounted(&self, connection: u64, kind: Kind, body: &[u8]) {
        let mut state = self.state.lock();
        if state.connection != connection {
            return;
        }
        let mut frame = Vec::new();
        put_frame(&mut frame, kind, 0, 0, 0, body);
        state.uncounted.push_back(frame.into());
        self.ready.notify_one();
    }

    /// Drops frames up to this number. Returns false if the client has not got such a frame.
    pub fn acknowledge(&self, number: u64) -> bool {
        let mut state = self.state.lock();
        if number >= state.unsent {
            return false;
        }
        self.drop_until(&mut state, number);
        self.room.notify_all();
        true
    }

    /// Begins a connection, whose client has received the frames up to this number. Returns the connection's number;
    /// none if the client names a frame that was never made, or one that was dropped.
    pub fn attach(&self, received: u64) -> Option<u64> {
        let mut state = self.state.lock();
        let next = state.first + state.kept.len() as u64;
        if received + 1 < state.first || received >= next || state.is_closed {
            return None;
        }
        self.drop_until(&mut state, received);
        state.unsent = received + 1;
        state.uncounted.clear();
        state.connection += 1;
        self.ready.notify_all();
        self.room.notify_all();
        Some(state.connection)
    }

    /// Returns true if this connection is the present one.
    pub fn is_present(&self, connection: u64) -> bool {
        let state = self.state.lock();
        state.connection == connection && !state.is_closed
    }

    /// Returns the work of a connection's writer, and waits for it until a moment.
    pub fn next(&self, connection: u64, until: Instant) -> Work {
        let mut state = self.state.lock();
        loop {
            if state.connection != connection {
                return Work::Over;
            }
            let mut frames: Vec<Bytes> = state.uncounted.drain(..).collect();
            let (mut bytes, mut taken) = (0, 0);
            let at = (state.unsent - state.first) as usize;
            for frame in state.kept.iter().skip(at) {
                if bytes >= AT_ONCE {
                    break;
                }
                bytes += frame.len();
                taken += 1;
                frames.push(frame.clone());
            }
            state.unsent += taken;
            state.sent_bytes += bytes as u64;
            if !frames.is_empty() {
                return Work::Frames(frames);
            }
            if state.is_closed {
                return state.bye.take().map_or(Work::Over, |bye| Work::Frames(vec![bye]));
            }
            if self.ready.wait_until(&mut state, until).timed_out() {
                return Work::Nothing;
            }
        }
    }

    /// Ends the session: what is queued is still written, and BYE after it, if a connection is there.
    pub fn close(&self, bye: Option<&[u8]>) {
        let mut state = self.state.lock();
        if !state.is_closed {
            state.is_closed = true;
            state.bye = bye.map(|body| {
                let mut frame = Vec::new();
                put_frame(&mut frame, Kind::Bye, 0, 0, 0, body);
                frame.into()
            });
        }
        drop(state);
        self.ready.notify_all();
        self.room.notify_all();
    }

    /// Wakes those that wait for room, so that they see whether they are still wanted.
    pub fn wake(&self) {
        self.room.notify_all();
    }

    /// Returns the bytes of kept frames.
    pub fn kept_bytes(&self) -> usize {
        self.state.lock().kept_bytes
    }

    /// Returns the bytes of numbered frames that were passed to connections.
    pub fn sent_bytes(&self) -> u64 {
        self.state.lock().sent_bytes
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.of_all.fetch_sub(self.state.get_mut().kept_bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(work: Work) -> Vec<u64> {
        let Work::Frames(frames) = work else { panic!("{work:?}") };
        frames.iter().map(|frame| u64::from_le_bytes(frame[16..24].try_into().unwrap())).collect()
    }

    fn now() -> Instant {
        Instant::now()
    }

    #[test]
    fn a_resumed_connection_gets_what_the_client_has_not_received() {
        let outgoing = Outgoing::new(Arc::default());
        let one = outgoing.attach(0).unwrap();
        for _ in 0..5 {
            outgoing.send(Kind::Opened, 0, 1, b"{}").unwrap();
        }
        assert_eq!(numbers(outgoing.next(one, now())), [1, 2, 3, 4, 5]);
        assert_eq!(outgoing.next(one, now()), Work::Nothing);
        assert!(outgoing.acknowledge(2));
        assert!(!outgoing.acknowledge(6), "it was never sent");
        let two = outgoing.attach(3).unwrap();
        assert_eq!(outgoing.next(one, now()), Work::Over);
        outgoing.send_uncounted(one, Kind::Ack, &[0; 8]);
        outgoing.send_uncounted(two, Kind::Welcome, b"{}");
        outgoing.send(Kind::Opened, 0, 1, b"{}").unwrap();
        assert_eq!(numbers(outgoing.next(two, now())), [0, 4, 5, 6]);
        assert_eq!(outgoing.attach(1), None, "frame 2 is gone");
        assert_eq!(outgoing.attach(7), None, "frame 7 was never made");
        assert!(outgoing.acknowledge(6));
        assert_eq!(outgoing.kept_bytes(), 0);
    }

    #[test]
    fn the_window_holds_data_and_a_client_that_never_acknowledges_is_stopped() {
        let outgoing = Outgoing::new(Arc::default());
        outgoing.attach(0).unwrap();
        let body = vec![0; WINDOW];
        outgoing.send_in_window(Kind::Data, 0, 1, &body, || true).unwrap();
        assert!(!outgoing.has_room());
        assert_eq!(outgoing.send_in_window(Kind::Data, 0, 1, b"", || false), Err(Closed));
        for _ in 0..3 {
            outgoing.send(Kind::Ended, 0, 1, &body).unwrap();
        }
        assert_eq!(outgoing.send(Kind::Ended, 0, 1, b""), Err(Closed));
    }

    #[test]
    fn frames_come_in_portions_and_the_last_ones_after_the_end() {
        let outgoing = Outgoing::new(Arc::default());
        let one = outgoing.attach(0).unwrap();
        let body = vec![0; AT_ONCE / 2];
        for _ in 0..5 {
            outgoing.send(Kind::Data, 0, 1, &body).unwrap();
        }
        outgoing.close(Some(b"{}"));
        assert_eq!(numbers(outgoing.next(one, now())), [1, 2]);
        assert_eq!(numbers(outgoing.next(one, now())), [3, 4]);
        assert_eq!(numbers(outgoing.next(one, now())), [5]);
        assert_eq!(numbers(outgoing.next(one, now())), [0], "BYE is the last");
        assert_eq!(outgoing.next(one, now()), Work::Over);
    }
}
