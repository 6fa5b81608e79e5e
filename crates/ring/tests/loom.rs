//! The protocol on the shared header, in every order that the memory model allows: `RUSTFLAGS="--cfg loom" cargo test
//! -p tampu-ring --test loom --release`. Without that flag there is nothing here.

#![cfg(loom)]

use loom::{cell::UnsafeCell, sync::Arc, thread};
use tampu_ring::{Cursor, RingHeader};

/// A ring of two records; the cells fail if a write and a read of one are not ordered.
struct Small {
    header: RingHeader,
    data: [UnsafeCell<u64>; 2],
}

// SAFETY: this test checks that the protocol orders all accesses to the cells.
unsafe impl Sync for Small {}
// SAFETY: as above.
unsafe impl Send for Small {}

const RECORD: u64 = 32;

impl Small {
    fn new() -> Arc<Small> {
        Arc::new(Small { header: RingHeader::new(), data: [UnsafeCell::new(u64::MAX), UnsafeCell::new(u64::MAX)] })
    }

    fn cell(&self, position: u64) -> &UnsafeCell<u64> {
        &self.data[(position / RECORD) as usize % 2]
    }

    /// Writes a record if there is room.
    fn write(&self, head: u64, value: u64) -> bool {
        if head - self.header.released() + RECORD > 2 * RECORD {
            return false;
        }
        // SAFETY: the drainer has released the cell.
        self.cell(head).with_mut(|cell| unsafe { *cell = value });
        self.header.publish(head + RECORD);
        true
    }

    /// Reads all there is and hands it off.
    fn drain(&self, cursor: &mut Cursor, seen: &mut Vec<u64>) {
        let head = self.header.published();
        while cursor.position < head {
            // SAFETY: the cell is published and not yet released.
            seen.push(self.cell(cursor.position).with(|cell| unsafe { *cell }));
            cursor.position += RECORD;
            cursor.number += 1;
        }
        self.header.move_cursor(cursor);
    }
}

#[test]
fn records_are_whole_and_room_is_not_taken_early() {
    loom::model(|| {
        let ring = Small::new();
        let writer = thread::spawn({
            let ring = ring.clone();
            move || {
                let mut head = 0;
                for value in 0..3 {
                    if ring.write(head, value) {
                        head += RECORD;
                    }
                }
                head
            }
        });
        let (mut cursor, mut seen) = (Cursor::START, Vec::new());
        ring.drain(&mut cursor, &mut seen);
        let head = writer.join().unwrap();
        ring.drain(&mut cursor, &mut seen);
        assert_eq!(cursor.position, head);
        assert!(seen.is_sorted() && seen.len() as u64 * RECORD == head && seen[..2] == [0, 1], "{seen:?}");
    });
}

#[test]
fn a_cursor_that_is_read_meanwhile_is_one_that_was_there() {
    loom::model(|| {
        let ring = Small::new();
        let reader = thread::spawn({
            let ring = ring.clone();
            move || {
                if let Some(cursor) = ring.header.cursor() {
                    assert_eq!(cursor.position, cursor.number * RECORD);
                }
            }
        });
        for number in 1..3 {
            ring.header.move_cursor(&Cursor { position: number * RECORD, number, ..Cursor::START });
        }
        reader.join().unwrap();
    });
}
