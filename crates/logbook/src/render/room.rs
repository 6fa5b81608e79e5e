//! Room for long texts: a bound of the memory of all answers that are being made from one.
//!
//! A text of 16 MB of quotation marks becomes 96 MB of HTML, and 128 MB of JSON with both. So a thread that makes an answer
//! takes room for each long text first, and waits if there is none. With [`collected`] the room is held until the answer is
//! made, else until the text is rendered. Whoever sends the answer bounds what is sent.

use std::{cell::RefCell, sync::Arc, time::Duration};

use parking_lot::{Condvar, Mutex};
use tampu_workers::Stop;

use super::{MAX_MARKUP, Unfinished};

/// Bytes of memory for all long texts.
pub const ROOM: usize = 160 << 20;
/// Bytes of memory for each byte of a text: the text, HTML of six times its length, and JSON of both.
const FACTOR: usize = 15;
/// The longest wait for room.
const WAIT: Duration = Duration::from_secs(10);
/// Time between two looks at the signal to stop.
const LOOK: Duration = Duration::from_millis(50);

thread_local! {
    /// The answer that this thread makes.
    static MAKING: RefCell<Option<Making>> = const { RefCell::new(None) };
}

/// An answer that is being made.
#[derive(Default)]
struct Making {
    held: Held,
    /// True once a wait was in vain. The other long texts of the answer do not wait again.
    gave_up: bool,
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
        let (goes_on, gave_up) = MAKING
            .with_borrow(|making| making.as_ref().map_or((false, false), |making| (!making.held.0.is_empty(), making.gave_up)));
        let stop = stop.within(WAIT);
        let mut taken = self.taken.lock();
        while !goes_on && *taken > 0 && taken.saturating_add(bytes) > ROOM {
            if gave_up || stop.is_stopped() {
                MAKING.with_borrow_mut(|making| making.iter_mut().for_each(|making| making.gave_up = true));
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
    MAKING.with_borrow_mut(|making| making.iter_mut().for_each(|making| making.held.0.append(&mut held.0)));
}

/// Makes an answer, and holds the room for its texts until then.
pub fn collected<T>(work: impl FnOnce() -> T) -> T {
    /// Also after a panic, the thread makes no answer any more.
    struct Before(Option<Making>);
    impl Drop for Before {
        fn drop(&mut self) {
            drop(MAKING.replace(self.0.take()));
        }
    }
    let _before = Before(MAKING.replace(Some(Making::default())));
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: usize = ROOM / FACTOR / 2;

    fn take_until(room: &Arc<TextRoom>, stop: &Stop) -> Result<(), Unfinished> {
        room.take(LONG, stop).map(leave)
    }

    fn take(room: &Arc<TextRoom>) -> Result<(), Unfinished> {
        take_until(room, &Stop::after(Duration::ZERO))
    }

    /// Does something beside two answers that hold all room.
    fn beside<T: Send>(room: &Arc<TextRoom>, act: impl FnOnce() -> T + Send) -> T {
        let _held = [room.take(LONG, &Stop::default()), room.take(LONG, &Stop::default())];
        std::thread::scope(|scope| scope.spawn(act).join().unwrap())
    }

    #[test]
    fn room_is_held_until_an_answer_is_made() {
        let room = Arc::<TextRoom>::default();
        collected(|| {
            assert_eq!(take(&room), Ok(()));
            assert_eq!(*room.taken.lock(), LONG * FACTOR);
        });
        assert_eq!(*room.taken.lock(), 0);
        assert_eq!(beside(&room, || collected(|| take(&room))), Err(Unfinished));
        let short = beside(&room, || room.take(MAX_MARKUP, &Stop::after(Duration::ZERO)).map(leave));
        assert_eq!(short, Ok(()), "a short text needs none");
    }

    #[test]
    fn an_answer_does_not_wait_for_itself() {
        let room = Arc::<TextRoom>::default();
        collected(|| {
            assert!((0..3).all(|_| take(&room).is_ok()) && *room.taken.lock() > ROOM);
        });
        assert_eq!(*room.taken.lock(), 0);
        let whole = room.take(ROOM, &Stop::after(Duration::ZERO));
        assert!(whole.is_ok(), "one text that needs more than all room gets it alone");
    }

    #[test]
    fn an_answer_waits_in_vain_once() {
        let room = Arc::<TextRoom>::default();
        // Without end, a second wait would be 10 s long.
        let both = || collected(|| [take(&room), take_until(&room, &Stop::default())]);
        assert_eq!(beside(&room, both), [Err(Unfinished), Err(Unfinished)]);
        assert_eq!(collected(|| take(&room)), Ok(()), "the next answer may wait again");
    }

    #[test]
    fn nothing_stays_after_a_panic_or_without_an_answer() {
        let room = Arc::<TextRoom>::default();
        assert_eq!(take(&room), Ok(()));
        assert_eq!(*room.taken.lock(), 0);
        let panics = std::panic::AssertUnwindSafe(|| {
            collected(|| {
                take(&room).unwrap();
                panic!("the work fails");
            })
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(*room.taken.lock(), 0);
        assert!(MAKING.with_borrow(Option::is_none));
    }

    #[test]
    fn who_waits_goes_on_once_there_is_room() {
        let room = Arc::<TextRoom>::default();
        let held = [room.take(LONG, &Stop::default()), room.take(LONG, &Stop::default())];
        let waits = room.clone();
        let waiting = std::thread::spawn(move || waits.take(LONG, &Stop::default()).map(leave));
        drop(held);
        assert_eq!(waiting.join().unwrap(), Ok(()));
    }
}
