//! Demands on the bus's decoders for any bytes: they return, values they accepted survive being written and read again,
//! and samples of a body follow one another without overlapping.
//!
//! The decoders are taken as they stand in `crates/bus`, file by file, because the crate would bring the engine along.
//! They are pure: bytes in, values out. Malformed input is tested beside each of them too.

#![allow(dead_code, missing_docs)]

#[path = "../../crates/bus/src/wire/announced.rs"]
mod announced;
#[path = "../../crates/bus/src/wire/batch.rs"]
mod batch;
#[path = "../../crates/bus/src/wire/control.rs"]
mod control;
#[path = "../../crates/bus/src/wire/cursor.rs"]
mod cursor;
#[path = "../../crates/bus/src/wire/refetch.rs"]
mod refetch;

use announced::{AnnouncedKeys, AskForKeys};
use batch::{Piece, framed_len, put_loaned, put_sample, sample_at};
use control::Control;
use refetch::{Refetch, Shelf};

/// A heartbeat or an acknowledgement.
pub fn control(bytes: &[u8]) {
    let Ok(control) = Control::decode(bytes) else { return };
    let again = match &control {
        Control::Heartbeat(heartbeat) => {
            assert!(heartbeat.offers.iter().all(|offer| offer.lowest <= offer.next && offer.start <= offer.next));
            heartbeat.encode()
        }
        Control::Acknowledgement(acknowledgement) => acknowledgement.encode(),
    };
    assert!(again.len() <= bytes.len());
    assert_eq!(Control::decode(&again), Ok(control));
}

/// A node's news of announced keys, or a question for them.
pub fn announced(bytes: &[u8]) {
    if let Ok(news) = AnnouncedKeys::decode(bytes) {
        assert!(news.until() >= news.from);
        let again = news.encode();
        assert!(again.len() <= bytes.len());
        assert_eq!(AnnouncedKeys::decode(&again), Ok(news));
    }
    if let Ok(asked) = AskForKeys::decode(bytes) {
        assert_eq!(AskForKeys::decode(&asked.encode()), Ok(asked));
    }
}

/// A request for samples, or what begins the answer.
pub fn refetch(bytes: &[u8]) {
    if let Ok(refetch) = Refetch::decode(bytes) {
        assert!(refetch.from <= refetch.to);
        assert_eq!(Refetch::decode(&refetch.encode()), Ok(refetch));
        assert_eq!(Shelf::decode(bytes), None, "never both");
    }
    if let Some(shelf) = Shelf::decode(bytes) {
        assert!(shelf.lowest <= shelf.next);
        assert_eq!(Shelf::decode(&shelf.encode()), Some(shelf));
    }
}

/// The samples of a batch.
pub fn body(bytes: &[u8]) {
    let (mut at, mut told, mut again) = (0, 0, bytes::BytesMut::new());
    let mut pieces = Vec::new();
    while at < bytes.len() {
        let Ok((piece, next)) = sample_at(bytes, at) else { break };
        assert!(next > at && next.is_multiple_of(4));
        match piece {
            Piece::Bytes(sample) => {
                told += sample.len();
                put_sample(&mut again, sample);
                assert_eq!(next, at + framed_len(sample.len()));
            }
            Piece::Loaned(loaned) => put_loaned(&mut again, loaned),
        }
        pieces.push(piece);
        at = next;
    }
    assert!(told <= bytes.len(), "no byte is told twice");
    assert!(sample_at(bytes, at).is_err());
    let mut at = 0;
    for piece in pieces {
        let (found, next) = sample_at(&again, at).expect("just written");
        assert_eq!(found, piece);
        at = next;
    }
    assert_eq!(at, again.len());
}
