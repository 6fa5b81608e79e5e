//! The size and the timeout of a reader's requests for missing samples. A value without I/O.
//!
//! The rest of an answer that comes after its timeout still occupies the link, and is dropped. So a request is for as much
//! as arrived lately in a part of the timeout. Rejected: a long timeout for large answers. Heartbeats wait behind an answer,
//! and a reader would learn late that its writer has gone.

/// Limit of the first answer in bytes. A link of 10 Mbit/s carries it within the timeout.
const FIRST: u32 = 512 << 10;
/// Least and greatest limit of an answer in bytes. A writer sends at least one batch.
const LIMITS: [u32; 2] = [16 << 10, 4 << 20];
/// Time in which an answer should arrive, in ns.
const AIM: u64 = 300_000_000;
/// Shortest and longest time that an answer may take, in ns. The longest is for single batches on slow links.
const TIMEOUT: [u64; 2] = [900_000_000, 14_400_000_000];

/// Size and timeout of the requests for one stream.
#[derive(Debug)]
pub struct RequestSize {
    limit: u32,
    timeout: u64,
    asked_at: u64,
    /// Requests in succession that brought nothing.
    in_vain: u32,
}

impl Default for RequestSize {
    fn default() -> RequestSize {
        RequestSize { limit: FIRST, timeout: TIMEOUT[0], asked_at: 0, in_vain: 0 }
    }
}

impl RequestSize {
    /// Notes a request.
    pub fn ask(&mut self, now: u64) {
        self.asked_at = now;
    }

    /// Returns the limit of the answer in bytes.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Returns the time that the answer may take, in ns.
    pub fn timeout(&self) -> u64 {
        self.timeout
    }

    /// Notes a whole answer of so many bytes.
    pub fn answered(&mut self, bytes: u64, now: u64) {
        (self.timeout, self.in_vain) = (TIMEOUT[0], 0);
        let took = now.saturating_sub(self.asked_at).max(1);
        let carried = u128::from(bytes) * u128::from(AIM) / u128::from(took);
        let carried = u32::try_from(carried).unwrap_or(u32::MAX);
        if took > AIM {
            self.limit = carried.clamp(LIMITS[0], self.limit);
        } else if bytes * 2 > u64::from(self.limit) {
            // A shorter answer was all that was missing, and says little about the link.
            self.limit = carried.min(self.limit * 2).clamp(self.limit, LIMITS[1]);
        }
    }

    /// Notes that an answer ended before its end, after so many bytes, or did not come in time.
    pub fn unanswered(&mut self, bytes: u64, now: u64) {
        if now < self.asked_at + self.timeout {
            return;
        }
        if bytes > 0 {
            (self.timeout, self.in_vain) = (TIMEOUT[0], 0);
        } else {
            self.in_vain += 1;
            // The first request may have been lost. After several, a single batch takes longer than the timeout.
            if self.limit == LIMITS[0] && self.in_vain > 1 {
                self.timeout = (self.timeout * 2).min(TIMEOUT[1]);
            }
        }
        self.limit = (self.limit / 4).max(LIMITS[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks until a link of this rate has carried so much; returns the bytes of answers that came too late.
    fn fetch(size: &mut RequestSize, rate: u64, missing: u64, batch: u64) -> u64 {
        let (mut now, mut fetched, mut wasted) = (0, 0, 0);
        let mut free_at = 0;
        while fetched < missing {
            size.ask(now);
            let bytes = (u64::from(size.limit()) / batch).max(1) * batch;
            free_at = now.max(free_at) + bytes * 1_000_000_000 / rate;
            if free_at <= now + size.timeout() {
                now = free_at;
                fetched += bytes;
                size.answered(bytes, now);
            } else {
                now += size.timeout();
                wasted += bytes;
                size.unanswered(0, now);
                now += 200_000_000;
            }
            assert!(now < 600_000_000_000, "{size:?}");
        }
        wasted
    }

    #[test]
    fn answers_arrive_in_time_on_every_link() {
        for (rate, least, most, wasted) in [
            (100_000_000, LIMITS[1], LIMITS[1], 0),
            (1_250_000, 300 << 10, 420 << 10, 0),
            // The first answer is too long for a link of 2 Mbit/s.
            (250_000, 60 << 10, 140 << 10, 1 << 20),
        ] {
            let mut size = RequestSize::default();
            let late = fetch(&mut size, rate, 20 << 20, 4096);
            assert!((least..=most).contains(&size.limit()), "{rate}: {size:?}");
            assert!(late <= wasted, "{rate}: {late} bytes came too late");
        }
    }

    #[test]
    fn a_long_sample_arrives_on_a_slow_link() {
        let mut size = RequestSize::default();
        fetch(&mut size, 1_250_000, 4 << 20, 4 << 20);
        assert_eq!(size.timeout(), TIMEOUT[0]);
    }

    #[test]
    fn lost_requests_are_repeated_soon() {
        let mut size = RequestSize::default();
        for (round, bytes) in [(0, 0), (1, 900), (2, 0), (3, 900), (4, 0)] {
            size.ask(round * 2 * TIMEOUT[0]);
            size.unanswered(bytes, (round * 2 + 1) * TIMEOUT[0]);
        }
        assert_eq!((size.limit(), size.timeout()), (LIMITS[0], TIMEOUT[0]));
    }

    #[test]
    fn short_answers_and_quick_refusals_leave_the_size() {
        let mut size = RequestSize::default();
        size.ask(0);
        size.answered(10, 1_000_000);
        size.ask(0);
        size.unanswered(0, 1_000_000);
        assert_eq!((size.limit(), size.timeout()), (FIRST, TIMEOUT[0]));
    }
}
