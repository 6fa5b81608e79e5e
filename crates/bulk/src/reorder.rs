//! Reorder buffer for datagrams: early ones wait for missing ones, which are requested again. A value without I/O.

use std::collections::BTreeMap;

use crate::{frame::Header, message::RANGES_LIMIT};

/// Most bytes of frames that wait for a missing one before them, including their overhead. Frames beyond it are
/// dropped, and requested again when there is room.
const HELD_LIMIT: usize = 8 << 20;
/// Overhead of a kept frame besides its payload, in bytes.
const COST: usize = 128;
/// Most frames of the connection that wait: starts, ends, and reports of skipped data. The sender does not send them
/// again, so they are never dropped.
const KEPT_LIMIT: usize = 4096;

/// Error for more waiting starts and ends than can be kept.
#[derive(Debug, thiserror::Error)]
#[error("{KEPT_LIMIT} frames of the connection wait for datagrams before them")]
pub(crate) struct TooMany;

#[derive(Debug)]
struct Held {
    header: Header,
    payload: Vec<u8>,
    /// First frame after it: the next one, or the end of a Lost.
    next: u64,
    /// True if it came on the connection.
    kept: bool,
}

impl Held {
    /// Returns true for data of a transfer that has not begun.
    fn is_of_later(&self, transfer: u64) -> bool {
        !self.kept && self.header.transfer > transfer
    }
}

/// Frames that came too early.
#[derive(Debug, Default)]
pub(crate) struct Reorder {
    held: BTreeMap<u64, Held>,
    bytes: usize,
    kept: usize,
    /// Sequence before which all frames were sent, as the sender reports.
    told: u64,
    /// Last transfer whose start this receiver will not get.
    past: u64,
}

impl Reorder {
    /// Keeps a datagram that came too early, if there is room.
    pub fn hold(&mut self, header: &Header, payload: &[u8], under_way: Option<u64>) {
        if header.transfer <= self.past && under_way != Some(header.transfer) {
            return;
        }
        let bytes = payload.len() + COST;
        // Of two claims to one place, the earlier transfer's wins: a later transfer has no place before its end.
        let taken = self.held.get(&header.sequence).is_some_and(|held| held.kept || held.header.transfer <= header.transfer);
        if self.bytes + bytes <= HELD_LIMIT && !taken {
            self.bytes += bytes;
            let next = header.sequence.saturating_add(1);
            let held = Held { header: *header, payload: payload.to_vec(), next, kept: false };
            if let Some(before) = self.held.insert(header.sequence, held) {
                self.forget(&before);
            }
        }
    }

    /// Keeps a frame of the connection that came too early; `next` is the first frame after it.
    pub fn keep(&mut self, header: &Header, payload: &[u8], next: u64) -> Result<(), TooMany> {
        if self.kept == KEPT_LIMIT {
            return Err(TooMany);
        }
        let held =
            Held { header: *header, payload: payload.to_vec(), next: next.max(header.sequence.saturating_add(1)), kept: true };
        self.kept += 1;
        if let Some(before) = self.held.insert(header.sequence, held) {
            self.forget(&before);
        }
        Ok(())
    }

    /// Notes that the sender has sent all frames before this one.
    pub fn tell(&mut self, before: u64) {
        self.told = self.told.max(before);
    }

    /// Notes that the receiver takes no part in transfers up to this one, except the running one. Their data is not
    /// kept.
    pub fn leave_out(&mut self, past: u64, under_way: Option<u64>) {
        self.past = self.past.max(past);
        let bytes = &mut self.bytes;
        self.held.retain(|_, held| {
            let goes = !held.kept && held.header.transfer <= past && under_way != Some(held.header.transfer);
            *bytes -= if goes { held.payload.len() + COST } else { 0 };
            !goes
        });
    }

    /// Returns the next frame in order of this transfer, if it is present. Duplicates are dropped.
    pub fn next(&mut self, expected: u64, transfer: u64) -> Option<(Header, Vec<u8>)> {
        while let Some(first) = self.held.first_entry().filter(|first| *first.key() <= expected) {
            let sequence = *first.key();
            let held = first.remove();
            self.forget(&held);
            if held.is_of_later(transfer) {
                continue;
            }
            // A loss report still holds for the rest if some of its frames have arrived.
            if sequence == expected || held.next > expected {
                return Some((held.header, held.payload));
            }
        }
        None
    }

    /// Returns the first frame that is present, also after missing ones. Data of a later transfer waits for its
    /// start, which always comes.
    pub fn give_up(&mut self, transfer: u64) -> Option<(Header, Vec<u8>)> {
        let first = self.held.first_entry().filter(|first| first.get().kept || first.get().header.transfer == transfer)?;
        let held = first.remove();
        self.forget(&held);
        Some((held.header, held.payload))
    }

    fn forget(&mut self, held: &Held) {
        if held.kept {
            self.kept -= 1;
        } else {
            self.bytes -= held.payload.len() + COST;
        }
    }

    /// Returns the missing ranges from this frame on, up to the last frame known as sent. Their number is limited to
    /// one request.
    pub fn missing(&self, expected: u64, transfer: u64) -> Vec<(u64, u64)> {
        let (mut at, mut missing) = (expected, Vec::new());
        for (&sequence, held) in self.held.iter().filter(|(_, held)| !held.is_of_later(transfer)) {
            if sequence > at {
                missing.push((at, sequence));
            }
            at = at.max(held.next);
            if missing.len() == RANGES_LIMIT {
                return missing;
            }
        }
        if self.told > at {
            missing.push((at, self.told));
        }
        missing
    }

    /// Drops the frames before this one, because their transfer was given up.
    pub fn clear(&mut self, before: u64) {
        while let Some(first) = self.held.first_entry().filter(|first| *first.key() < before) {
            let held = first.remove();
            self.forget(&held);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frame::Kind;

    proptest! {
        #[test]
        fn whatever_is_lost_and_repeated_comes_out_once_and_in_order_after_it_was_asked_for(
            count in 1u64..60, fates in proptest::collection::vec((0u8..4, 0usize..60), 120),
        ) {
            let frame = |sequence| Header { sequence, ..Header::of(Kind::Data) };
            let mut fates = fates.into_iter().cycle();
            let (mut reorder, mut expected, mut came) = (Reorder::default(), 1, Vec::new());
            let mut to_send: Vec<u64> = (1..=count).collect();
            reorder.tell(count + 1);
            for _ in 0..1000 {
                // Some datagrams are lost, some arrive late.
                let (fate, place) = fates.next().unwrap();
                if !to_send.is_empty() {
                    let sequence = to_send.remove(place % to_send.len().min(5));
                    if fate > 0 {
                        reorder.hold(&frame(sequence), &[0; 10], Some(0));
                    }
                    while let Some((header, _)) = reorder.next(expected, 0) {
                        came.push(header.sequence);
                        expected += 1;
                    }
                } else {
                    to_send = reorder.missing(expected, 0).into_iter().flat_map(|(from, to)| from..to).collect();
                }
            }
            prop_assert_eq!(came, (1..=count).collect::<Vec<_>>());
            prop_assert_eq!(reorder.bytes, 0);
        }
    }

    #[test]
    fn what_is_missing_is_told_in_ranges_and_what_is_held_is_bounded() {
        let mut reorder = Reorder::default();
        for sequence in [5, 6, 9] {
            reorder.hold(&Header { sequence, ..Header::of(Kind::Data) }, b"x", Some(0));
        }
        reorder.tell(12);
        assert_eq!(reorder.missing(3, 0), [(3, 5), (7, 9), (10, 12)]);
        assert_eq!(reorder.give_up(0).map(|(header, _)| header.sequence), Some(5));
        for length in [10_000, 0] {
            let mut reorder = Reorder::default();
            for sequence in 100..200_000 {
                reorder.hold(&Header { sequence, ..Header::of(Kind::Data) }, &vec![0; length], Some(0));
            }
            assert!(reorder.bytes <= HELD_LIMIT && reorder.held.len() <= HELD_LIMIT / (length + COST));
            // An end is kept even if there is no room for data.
            let stop = |sequence| Header { sequence, ..Header::of(Kind::Stop) };
            for sequence in 0..KEPT_LIMIT as u64 {
                reorder.keep(&stop(300_000 + sequence), b"", 0).unwrap();
            }
            assert!(reorder.keep(&stop(400_000), b"", 0).is_err());
            assert_eq!(
                std::iter::from_fn(|| reorder.give_up(0)).last().map(|(header, _)| header.sequence),
                Some(300_000 + KEPT_LIMIT as u64 - 1)
            );
            assert_eq!((reorder.bytes, reorder.kept), (0, 0));
        }
    }

    #[test]
    fn data_of_a_later_transfer_is_not_taken_for_the_end_of_this_one() {
        let mut reorder = Reorder::default();
        reorder.hold(&Header { sequence: 9, transfer: 2, ..Header::of(Kind::Data) }, b"x", Some(0));
        assert_eq!(reorder.give_up(1), None);
        reorder.keep(&Header { sequence: 7, transfer: 1, ..Header::of(Kind::Stop) }, b"", 0).unwrap();
        assert_eq!(reorder.give_up(1).map(|(header, _)| header.kind), Some(Kind::Stop));
        assert_eq!(reorder.missing(6, 1), [], "it tells nothing of what is before it");
        assert_eq!(reorder.give_up(2).map(|(header, _)| header.sequence), Some(9));
        // It does not take the place of the expected frame either.
        let frame = |transfer| Header { sequence: 3, transfer, ..Header::of(Kind::Data) };
        reorder.hold(&frame(9), b"x", Some(0));
        reorder.tell(4);
        assert_eq!((reorder.missing(3, 1), reorder.next(3, 1)), (vec![(3, 4)], None));
        reorder.hold(&frame(9), b"x", Some(0));
        reorder.hold(&frame(1), b"x", Some(0));
        assert_eq!((reorder.next(3, 1).map(|(header, _)| header.transfer), reorder.bytes), (Some(1), 0));
    }

    #[test]
    fn transfers_that_a_receiver_has_no_part_in_take_no_memory() {
        let frame = |sequence, transfer| Header { sequence, transfer, ..Header::of(Kind::Data) };
        let mut reorder = Reorder::default();
        for transfer in 1..=4 {
            reorder.hold(&frame(10 * transfer, transfer), b"x", Some(2));
        }
        reorder.leave_out(3, Some(2));
        assert_eq!(reorder.held.keys().copied().collect::<Vec<_>>(), [20, 40]);
        for transfer in 1..=4 {
            reorder.hold(&frame(100 * transfer, transfer), b"x", Some(2));
        }
        assert_eq!(reorder.held.keys().copied().collect::<Vec<_>>(), [20, 40, 200, 400]);
        reorder.leave_out(4, None);
        assert_eq!((reorder.held.len(), reorder.bytes), (0, 0));
    }

    #[test]
    fn word_of_what_is_left_out_waits_for_what_comes_before_it() {
        let mut reorder = Reorder::default();
        let lost = Header { sequence: 5, ..Header::of(Kind::Lost) };
        reorder.keep(&lost, b"", 9).unwrap();
        reorder.hold(&Header { sequence: 9, ..Header::of(Kind::Data) }, b"x", Some(0));
        reorder.tell(10);
        assert_eq!(reorder.missing(3, 0), [(3, 5)], "what is left out is not asked for");
        assert_eq!(reorder.next(4, 0), None);
        assert_eq!(reorder.next(5, 0).map(|(header, _)| header.kind), Some(Kind::Lost));
        assert_eq!(reorder.next(9, 0).map(|(header, _)| header.sequence), Some(9));
        reorder.keep(&lost, b"", 9).unwrap();
        assert_eq!(reorder.next(7, 0).map(|(header, _)| header.kind), Some(Kind::Lost), "some of it has come");
        reorder.keep(&lost, b"", 9).unwrap();
        assert_eq!(reorder.next(9, 0), None, "all of it has come");
    }
}
