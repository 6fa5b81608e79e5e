//! Congestion control of datagrams: how much may be under way to a receiver on this network. A value without I/O.
//!
//! TCP slows down when a network loses packets because a queue is full. Datagrams that did not would push it aside, and
//! fill the network with data that is lost and sent again. So the window of a receiver falls when a round loses more than
//! a share of its datagrams, and grows again while nothing is lost. A round ends when what was under way at its
//! beginning has arrived. Less loss counts as the noise of the line and costs nothing: a window that fell with each
//! lost datagram, as early TCP's, would have little left at 1 % of loss.

/// Loss of one in so many datagrams of a round is no sign of a full queue.
const NOISE: u64 = 50;
/// Most datagrams of a round that count as noise, however few it has.
const FEW: u64 = 2;
/// Least window in bytes. Acknowledgements of it keep the clock of a slow line.
const LEAST: usize = 16 << 10;
/// First window in bytes. It doubles every round until something is lost.
const FIRST: usize = 64 << 10;
/// Growth of the window in bytes, each round, once something was lost.
const STEP: usize = 8 << 10;

/// Bytes that may be under way.
#[derive(Debug)]
pub(super) struct Congestion {
    window: usize,
    limit: usize,
    /// Window up to which it doubles.
    doubles_to: usize,
    /// First and last frame of the round.
    round: (u64, u64),
    /// Datagrams of the round that the receiver misses.
    lost: u64,
    /// Frame before which missing ones are counted already.
    counted: u64,
    /// True if the window has fallen in this round.
    has_fallen: bool,
    /// True if the window was used up in this round.
    was_full: bool,
    /// Bytes since the receiver was last asked for an acknowledgement.
    unasked: usize,
}

impl Congestion {
    /// Starts with a small window; it never exceeds the receiver's own limit.
    pub fn new(limit: usize) -> Congestion {
        let window = FIRST.min(limit);
        Congestion {
            window,
            limit,
            doubles_to: limit,
            round: (0, 0),
            lost: 0,
            counted: 0,
            has_fallen: false,
            was_full: false,
            unasked: 0,
        }
    }

    /// Returns the bytes that may be under way.
    pub fn window(&self) -> usize {
        self.window
    }

    /// Accounts for a datagram. Returns true if the receiver should acknowledge it at once: a receiver acknowledges on its
    /// own after a part of its own limit, which a small window does not reach.
    pub fn sent(&mut self, bytes: usize) -> bool {
        self.unasked += bytes;
        let asks = self.window < self.limit && self.unasked >= self.window / 4;
        if asks {
            self.unasked = 0;
        }
        asks
    }

    /// Notes an acknowledgement of all frames before `acked`, when the next frame to send is `next` and these bytes were
    /// under way.
    pub fn acked(&mut self, acked: u64, next: u64, under_way: usize) {
        // A sender that has nothing to send learns nothing about the network.
        self.was_full |= under_way >= self.window / 4 * 3;
        if acked < self.round.1 {
            return;
        }
        if !self.has_fallen && self.was_full {
            self.window = if self.window < self.doubles_to { 2 * self.window } else { self.window + STEP }.min(self.limit);
        }
        (self.round, self.lost) = ((acked, next.max(acked + 1)), 0);
        (self.has_fallen, self.was_full) = (false, false);
    }

    /// Notes that the receiver misses these frames, each range without its end.
    pub fn missing(&mut self, ranges: &[(u64, u64)], next: u64) {
        for &(from, to) in ranges {
            let (from, to) = (from.max(self.counted), to.min(next));
            self.lost += to.saturating_sub(from);
            self.counted = self.counted.max(to);
        }
        let sent = next.saturating_sub(self.round.0);
        if !self.has_fallen && self.lost > FEW.max(sent / NOISE) {
            self.window = (self.window / 10 * 7).max(LEAST.min(self.limit));
            self.doubles_to = self.window;
            self.has_fallen = true;
            // What was under way until now says nothing about the smaller window.
            self.round.1 = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 1 << 20;
    const FRAME: usize = 1024;

    /// A line that carries so many frames a round, and loses what is beyond.
    fn round(congestion: &mut Congestion, acked: &mut u64, capacity: u64) -> u64 {
        let frames = (congestion.window() / FRAME) as u64;
        let next = *acked + frames;
        if frames > capacity {
            congestion.missing(&[(*acked + capacity, next)], next);
        }
        *acked = next;
        congestion.acked(next, next, frames as usize * FRAME);
        frames
    }

    #[test]
    fn the_window_falls_on_a_slow_line_and_recovers_on_a_fast_one() {
        let (mut congestion, mut acked) = (Congestion::new(LIMIT), 1);
        for _ in 0..6 {
            round(&mut congestion, &mut acked, 4096);
        }
        assert_eq!(congestion.window(), LIMIT, "nothing is lost");
        let sent: u64 = (0..40).map(|_| round(&mut congestion, &mut acked, 200)).sum();
        assert!(congestion.window() < 280 * FRAME, "{}", congestion.window());
        let used: u64 = (0..40).map(|_| round(&mut congestion, &mut acked, 200).min(200)).sum();
        assert!(used > 40 * 150, "the line is in use: {used} of {}", 40 * 200);
        assert!(sent < 40 * 400, "{sent}");
        for _ in 0..150 {
            round(&mut congestion, &mut acked, 4096);
        }
        assert_eq!(congestion.window(), LIMIT, "it has recovered");
    }

    #[test]
    fn a_line_that_loses_one_percent_stays_fast() {
        let (mut congestion, mut acked) = (Congestion::new(LIMIT), 1);
        for _ in 0..100 {
            let next = acked + (congestion.window() / FRAME) as u64;
            let missing: Vec<_> = (acked..next).filter(|frame| frame % 100 == 0).map(|frame| (frame, frame + 1)).collect();
            congestion.missing(&missing, next);
            congestion.missing(&missing, next);
            acked = next;
            congestion.acked(acked, next, congestion.window());
        }
        assert_eq!(congestion.window(), LIMIT);
    }

    #[test]
    fn a_sender_without_data_does_not_widen_its_window() {
        let mut congestion = Congestion::new(LIMIT);
        for frame in 1..1000 {
            congestion.acked(frame, frame + 1, FRAME);
        }
        assert_eq!(congestion.window(), FIRST);
    }

    proptest! {
        #[test]
        fn the_window_keeps_its_bounds(
            limit in 1_usize..4_000_000,
            steps in proptest::collection::vec((0_u64..500, 0_u64..500, any::<bool>()), 1..200),
        ) {
            let (mut congestion, mut acked) = (Congestion::new(limit), 0);
            for (ahead, lost, acks) in steps {
                let next = acked + ahead;
                congestion.missing(&[(acked, acked + lost)], next);
                if acks {
                    acked = next;
                    congestion.acked(acked, next, congestion.window());
                }
                prop_assert!((LEAST.min(limit)..=limit).contains(&congestion.window()));
            }
        }
    }
}
