//! Congestion control of datagrams: the bytes in flight fall when the network loses them and rise again afterwards, as
//! those of TCP do. A value without I/O.
//!
//! It follows CUBIC (RFC 9438), which the TCP of Linux uses, so that both share a link. Losses are known from the
//! receiver's requests. One reduction answers all losses among the frames that were in flight together. Rejected: a
//! control by delay (Vegas, LEDBAT), which gives way to the kernel's TCP until little is left; BBR, whose model needs
//! pacing for each datagram.

use std::time::{Duration, Instant};

/// Part of the window that is left after a loss.
const KEPT: f64 = 0.7;
/// Growth of the cubic curve, in datagrams a second to the third power.
const GROWTH: f64 = 0.4;
/// Datagrams of the first window on a network (RFC 6928), and of the smallest one.
const FIRST: f64 = 10.0;
const LEAST: f64 = 2.0;
/// Bytes of an Ethernet datagram: longer ones count as several, as TCP would count them.
const SEGMENT: f64 = 1400.0;
/// Time after which losses of frames that were sent before a reduction show that the repaired frames were lost too.
const AGAIN: Duration = Duration::from_millis(200);

/// Bytes that may be in flight to a receiver.
#[derive(Debug)]
pub(super) struct Congestion {
    /// Bytes in flight at most, in segments.
    window: f64,
    least: f64,
    most: f64,
    /// Below this, the window doubles in each round trip.
    threshold: f64,
    /// The frame after those that were in flight at the last reduction, and the time of the reduction.
    recovered: u64,
    reduced: Option<Instant>,
    /// Window before the last reduction, and the time and window at which the curve begins.
    before: f64,
    curve: Option<(Instant, f64)>,
    /// Window of a Reno TCP since then.
    reno: f64,
    room: usize,
}

impl Congestion {
    /// Makes a window of at most `room` bytes. On one host there is no network to share, and it begins in full.
    pub fn new(room: usize, one_host: bool) -> Congestion {
        let most = room as f64 / SEGMENT;
        let window = if one_host { most } else { FIRST.min(most) };
        Congestion {
            window,
            least: LEAST,
            most,
            threshold: f64::INFINITY,
            recovered: 0,
            reduced: None,
            before: 0.0,
            curve: None,
            reno: 0.0,
            room,
        }
    }

    /// Returns the bytes that may be in flight.
    pub fn window(&self) -> usize {
        if self.window >= self.most { self.room } else { (self.window * SEGMENT) as usize }
    }

    /// Returns true if the network allows less than the receiver's room.
    pub fn is_narrow(&self) -> bool {
        self.window < self.most
    }

    /// Notes that so many bytes were acknowledged while `in_flight` were sent.
    pub fn acknowledged(&mut self, bytes: usize, in_flight: usize, now: Instant) {
        // A sender that does not use its window learns nothing about a larger one.
        if ((in_flight + bytes) as f64) < self.window * SEGMENT / 2.0 {
            self.curve = None;
            return;
        }
        let count = bytes as f64 / SEGMENT;
        if self.window < self.threshold {
            self.window = (self.window + count).min(self.most);
            return;
        }
        let Some((begin, from)) = self.curve else {
            self.curve = Some((now, self.window));
            self.reno = self.window;
            self.before = self.before.max(self.window);
            return;
        };
        // The curve returns to the window before the loss at `flat`, and rises faster the farther it is from there.
        let flat = ((self.before - from).max(0.0) / GROWTH).cbrt();
        let time = now.saturating_duration_since(begin).as_secs_f64();
        let cubic = self.before + GROWTH * (time - flat).powi(3);
        self.reno += 3.0 * (1.0 - KEPT) / (1.0 + KEPT) * count / self.window;
        // At most half more in a round trip.
        let target = cubic.max(self.reno).min(self.window + count / 2.0);
        self.window = self.window.max(target).min(self.most);
    }

    /// Notes a request for lost frames from this one on; `next` is the frame that is sent next.
    pub fn lost(&mut self, first: u64, next: u64, now: Instant) {
        let known = first < self.recovered && self.reduced.is_some_and(|reduced| now < reduced + AGAIN);
        if known {
            return;
        }
        // A window that falls again before it was reached leaves room for others sooner.
        let shrinks = self.before > self.window && self.threshold.is_finite();
        self.before = if shrinks { self.window * (1.0 + KEPT) / 2.0 } else { self.window };
        self.window = (self.window * KEPT).max(self.least);
        self.threshold = self.window;
        self.recovered = next;
        self.reduced = Some(now);
        self.curve = None;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Time of a step of the simulation.
    const STEP: Duration = Duration::from_micros(500);
    /// One way without a queue.
    const DELAY: Duration = Duration::from_millis(5);

    /// A sender of datagrams of one segment over the link, which learns of a loss by the next datagram that arrives.
    struct Sending {
        control: Congestion,
        next: u64,
        in_flight: usize,
        delivered: u64,
        on: bool,
    }

    /// A link of so many datagrams a step with a queue that drops what does not fit.
    struct Link {
        senders: Vec<Sending>,
        queue: VecDeque<usize>,
        limit: usize,
        a_step: f64,
        credit: f64,
        /// Answers under way: when they arrive, whose, and whether the datagram was lost.
        answers: VecDeque<(Instant, usize, u64, bool)>,
        now: Instant,
    }

    impl Link {
        fn new(senders: usize) -> Link {
            let one = || Sending { control: Congestion::new(1 << 20, false), next: 1, in_flight: 0, delivered: 0, on: true };
            let senders = (0..senders).map(|_| one()).collect();
            // 100 Mbit/s: 8.9 datagrams a millisecond; the queue has 10 ms of them.
            Link {
                senders,
                queue: VecDeque::new(),
                limit: 89,
                a_step: 4.45,
                credit: 0.0,
                answers: VecDeque::new(),
                now: Instant::now(),
            }
        }

        fn step(&mut self) {
            self.now += STEP;
            while let Some((_, who, sequence, lost)) = self.answers.pop_front_if(|(at, ..)| *at <= self.now) {
                let one = &mut self.senders[who];
                one.in_flight -= 1;
                if lost {
                    one.control.lost(sequence, one.next, self.now);
                } else {
                    one.delivered += 1;
                    one.control.acknowledged(1400, one.in_flight * 1400, self.now);
                }
            }
            // Turns, as two hosts would have them.
            let mut sends = true;
            while sends {
                sends = false;
                for who in 0..self.senders.len() {
                    let one = &mut self.senders[who];
                    if one.on && (one.in_flight + 1) * 1400 <= one.control.window() {
                        (one.in_flight, one.next, sends) = (one.in_flight + 1, one.next + 1, true);
                        if self.queue.len() < self.limit {
                            self.queue.push_back(who);
                        } else {
                            self.answers.push_back((self.now + 2 * DELAY, who, self.senders[who].next - 1, true));
                        }
                    }
                }
            }
            self.credit = (self.credit + self.a_step).min(self.queue.len() as f64 + 1.0);
            while self.credit >= 1.0
                && let Some(who) = self.queue.pop_front()
            {
                self.credit -= 1.0;
                self.answers.push_back((self.now + 2 * DELAY, who, self.senders[who].next, false));
            }
        }

        /// Returns the part of the link that each sender has for so long.
        fn run(&mut self, seconds: u64) -> Vec<f64> {
            let before: Vec<u64> = self.senders.iter().map(|one| one.delivered).collect();
            let steps = Duration::from_secs(seconds).as_nanos() / STEP.as_nanos();
            (0..steps).for_each(|_| self.step());
            let all = steps as f64 * self.a_step;
            self.senders.iter().zip(before).map(|(one, before)| (one.delivered - before) as f64 / all).collect()
        }
    }

    #[test]
    fn a_lone_sender_uses_the_link() {
        let mut link = Link::new(1);
        link.run(5);
        let part = link.run(20)[0];
        assert!(part > 0.8, "{part}");
    }

    #[test]
    fn it_gives_way_to_another_and_comes_back() {
        let mut link = Link::new(2);
        link.senders[1].on = false;
        link.run(10);
        link.senders[1].on = true;
        link.run(20);
        let shared = link.run(60);
        assert!(shared.iter().all(|part| *part > 0.2) && shared.iter().sum::<f64>() > 0.8, "{shared:?}");
        link.senders[1].on = false;
        link.run(10);
        let part = link.run(10)[0];
        assert!(part > 0.8, "{part}");
    }

    #[test]
    fn losses_of_one_window_count_once_and_losses_of_repairs_again() {
        let mut control = Congestion::new(1 << 20, true);
        let (full, now) = (control.window(), Instant::now());
        assert_eq!(full, 1 << 20, "no network is between");
        control.lost(5, 100, now);
        control.lost(7, 110, now + Duration::from_millis(1));
        assert!((control.window() as f64 - full as f64 * KEPT).abs() < 2.0, "{}", control.window());
        control.lost(100, 200, now + Duration::from_millis(2));
        control.lost(5, 200, now + Duration::from_secs(1));
        let expected = full as f64 * KEPT.powi(3);
        assert!((control.window() as f64 - expected).abs() < 2.0, "{} {expected}", control.window());
        (0..100u64).for_each(|number| control.lost(1000 * (number + 1), 1000 * (number + 2), now));
        assert_eq!(control.window(), (LEAST * SEGMENT) as usize, "some always go");
    }

    #[test]
    fn a_sender_without_data_does_not_grow() {
        let mut control = Congestion::new(1 << 20, false);
        let before = control.window();
        (0..100).for_each(|_| control.acknowledged(100, 0, Instant::now()));
        assert_eq!(control.window(), before);
    }
}
