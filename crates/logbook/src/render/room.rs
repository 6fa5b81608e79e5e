//! Room for long texts: a bound of the memory of all answers that show one, from the first byte that is rendered to the
//! last one that is sent.
//!
//! An answer with a text of 12 MB takes six times that while it is made: the text, HTML of twice its length, and an answer
//! of three times. A permit of a worker bounds how many are made at a time, but an answer lives until its reader has
//! taken it. So a thread that makes answers collects the room that it took with [`collected`], and whoever sends the answer
//! keeps the room until then. Without a collection, room is given back once the text is rendered.

use std::{cell::RefCell, sync::Arc, time::Duration};

use parking_lot::{Condvar, Mutex};
use tampu_workers::Stop;

use super::{MAX_MARKUP, Unfinished};

/// Bytes of memory for all long texts.
pub const ROOM: usize = 160 << 20;
/// Bytes of memory for each byte of a text.
const FACTOR: usize = 6;
/// The longest wait for room.
const WAIT: Duration = Duration::from_secs(10);
/// Time between two looks at the signal to stop.
const LOOK: Duration = Duration::from_millis(50);

thread_local! {
    /// The room of the answer that this thread makes.
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// The room of one program.
#[derive(Debug, Default)]
pub struct TextRoom {
    taken: Mutex<usize>,
    freed: Condvar,
}

/// Room that is given back when this is dropped.
#[derive(Debug, Default)]
pub struct Held(Vec<(Arc<TextRoom>, usize)>);

impl Held {
    /// Returns true if it holds no room.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for (room, bytes) in self.0.drain(..) {
            *room.taken.lock() -= bytes;
            room.freed.notify_all();
        }
    }
}

impl TextRoom {
    /// Takes room for a text of this many bytes, once there is some. A short text needs none. A text for which all room is
    /// too little waits for all of it. An answer that holds room gets more at once: it would wait for itself.
    pub(super) fn take(self: &Arc<Self>, text: usize, stop: &Stop) -> Result<Held, Unfinished> {
        if text <= MAX_MARKUP {
            return Ok(Held::default());
        }
        let bytes = text.saturating_mul(FACTOR);
        let goes_on = HELD.with_borrow(|held| held.as_ref().is_some_and(|held| !held.is_empty()));
        let stop = stop.within(WAIT);
        let mut taken = self.taken.lock();
        while !goes_on && *taken > 0 && taken.saturating_add(bytes) > ROOM {
            if stop.is_stopped() {
                return Err(Unfinished);
            }
            self.freed.wait_for(&mut taken, LOOK);
        }
        *taken += bytes;
        Ok(Held(vec![(self.clone(), bytes)]))
    }
}

/// Leaves room to the answer that this thread makes, or gives it back if it makes none.
pub(super) fn leave(mut held: Held) {
    HELD.with_borrow_mut(|all| all.iter_mut().for_each(|all| all.0.append(&mut held.0)));
}

/// Makes an answer, and returns the room that it took.
pub fn collected<T>(work: impl FnOnce() -> T) -> (T, Held) {
    HELD.set(Some(Held::default()));
    let done = work();
    (done, HELD.take().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: usize = ROOM / FACTOR / 2;

    fn take(room: &Arc<TextRoom>) -> Result<(), Unfinished> {
        room.take(LONG, &Stop::after(Duration::ZERO)).map(leave)
    }

    #[test]
    fn room_is_held_until_an_answer_is_sent() {
        let room = Arc::<TextRoom>::default();
        let (first, held) = collected(|| take(&room));
        assert_eq!(first, Ok(()));
        let (second, _) = collected(|| take(&room));
        assert_eq!(second, Ok(()), "room that is dropped is free again");
        let (_, _held_too) = collected(|| take(&room));
        assert_eq!(collected(|| take(&room)).0, Err(Unfinished));
        assert_eq!(room.take(MAX_MARKUP, &Stop::after(Duration::ZERO)).map(leave), Ok(()), "a short text needs none");
        drop(held);
        assert_eq!(collected(|| take(&room)).0, Ok(()));
    }

    #[test]
    fn an_answer_does_not_wait_for_itself() {
        let room = Arc::<TextRoom>::default();
        let (all, held) = collected(|| (0..3).map(|_| take(&room)).collect::<Result<Vec<()>, Unfinished>>());
        assert!(all.is_ok() && *room.taken.lock() > ROOM);
        drop(held);
        assert_eq!(*room.taken.lock(), 0);
        let whole = room.take(ROOM, &Stop::after(Duration::ZERO));
        assert!(whole.is_ok(), "one text that needs more than all room gets it alone");
    }

    #[test]
    fn a_thread_without_a_collection_keeps_nothing() {
        let room = Arc::<TextRoom>::default();
        assert_eq!(take(&room), Ok(()));
        assert_eq!(*room.taken.lock(), 0);
    }

    #[test]
    fn who_waits_goes_on_once_there_is_room() {
        let room = Arc::<TextRoom>::default();
        let (_, held) = collected(|| [take(&room), take(&room)]);
        let waits = room.clone();
        let waiting = std::thread::spawn(move || waits.take(LONG, &Stop::default()).map(leave));
        drop(held);
        assert_eq!(waiting.join().unwrap(), Ok(()));
    }
}
