//! Memory of loans that the writer uses again while readers look at it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tampu_shm::{LOANS_AT, LoanRing, LoanRoom, RingView};

/// Length of a value, of which four fill the span of a ring with several readers.
const LENGTH: usize = 1 << 20;
const READERS: usize = 3;
const ROUNDS: u64 = 3000;

/// Newest value: its number and its place. The number is 0 while they change.
#[derive(Default)]
struct Latest {
    number: AtomicU64,
    position: AtomicU64,
    offset: AtomicU64,
}

impl Latest {
    fn put(&self, number: u64, position: u64, offset: usize) {
        self.number.store(0, Ordering::SeqCst);
        self.position.store(position, Ordering::SeqCst);
        self.offset.store(offset as u64, Ordering::SeqCst);
        self.number.store(number, Ordering::SeqCst);
    }

    fn get(&self) -> Option<(u64, u64, usize)> {
        let number = self.number.load(Ordering::SeqCst);
        let place = (self.position.load(Ordering::SeqCst), self.offset.load(Ordering::SeqCst));
        (number > 0 && self.number.load(Ordering::SeqCst) == number).then_some((number, place.0, place.1 as usize))
    }
}

/// Numbers of values that were read whole, that the ring reported as overwritten, and that were torn without a report.
#[derive(Debug, Default)]
struct Counts {
    whole: AtomicU64,
    overwritten: AtomicU64,
    torn: AtomicU64,
}

fn read(view: &RingView, latest: &Latest, counts: &Counts, over: &AtomicBool) {
    let mut copy = Vec::with_capacity(LENGTH);
    while !over.load(Ordering::Acquire) {
        let Some((number, position, offset)) = latest.get() else { continue };
        copy.clear();
        let count = match view.with(position, offset, LENGTH, |bytes| copy.extend_from_slice(bytes)) {
            Ok(()) if copy == vec![number as u8; LENGTH] => &counts.whole,
            Ok(()) => &counts.torn,
            Err(_) => &counts.overwritten,
        };
        count.fetch_add(1, Ordering::AcqRel);
    }
}

#[test]
fn a_value_that_the_writer_overwrites_meanwhile_is_reported_and_never_torn() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ring");
    let mut ring = LoanRing::create(path.clone(), 4 * LENGTH).unwrap();
    ring.read_by(READERS);
    let (latest, counts, over) = (Latest::default(), Counts::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            let view = RingView::open(&path, LOANS_AT).unwrap();
            let (latest, counts, over) = (&latest, &counts, &over);
            scope.spawn(move || read(&view, latest, counts, over));
        }
        let mut number = 0;
        // On a busy machine the readers may not have run before the last round.
        while number < ROUNDS || counts.whole.load(Ordering::Acquire) == 0 {
            number += 1;
            let begin = loop {
                match ring.room(LENGTH) {
                    LoanRoom::Free(begin) => break begin,
                    // No reader holds the writer.
                    LoanRoom::After(_) => ring.take_back(ring.lent_to()),
                    LoanRoom::Never => unreachable!("four values fit"),
                }
            };
            let mut lease = ring.lend(begin, LENGTH);
            lease.bytes().fill(number as u8);
            latest.put(number, lease.position, lease.offset);
            ring.settle(lease.position);
            if number > ROUNDS {
                std::thread::yield_now();
            }
        }
        over.store(true, Ordering::Release);
    });
    println!("{counts:?}");
    assert_eq!(counts.torn.load(Ordering::Acquire), 0, "{counts:?}");
}
