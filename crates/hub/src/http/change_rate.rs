//! A limit for changes by one user: a bucket that each change empties a little and that time fills.
//!
//! A program in a loop must not fill the logbook or keep its writer busy for everybody. People and ordinary programs stay
//! far below the limit. The owner of the installation, with whose token the commands import and restore, has none.

use std::{collections::HashMap, time::Instant};

use parking_lot::{Mutex, RwLock};

/// Maximum number of users that are counted at a time. With a further one, users whose buckets are full are forgotten.
pub const COUNTED: usize = 4096;

/// The limit for changes, and the users who have made some.
#[derive(Debug)]
pub struct ChangeRate {
    rate: RwLock<Rate>,
    users: Mutex<HashMap<String, Bucket>>,
}

#[derive(Debug, Clone, Copy)]
struct Rate {
    /// Changes a second; 0 for no limit.
    per_second: f64,
    burst: f64,
}

impl Rate {
    fn new(per_minute: u32, burst: u32) -> Rate {
        Rate { per_second: f64::from(per_minute) / 60.0, burst: f64::from(burst.max(1)) }
    }
}

/// The changes that a user may still make at a time.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl ChangeRate {
    /// Lets each user make `per_minute` changes, and `burst` at once; 0 for no limit.
    pub fn new(per_minute: u32, burst: u32) -> ChangeRate {
        ChangeRate { rate: RwLock::new(Rate::new(per_minute, burst)), users: Mutex::default() }
    }

    /// Changes the limits. What users have left stays, up to the new burst.
    pub fn set(&self, per_minute: u32, burst: u32) {
        *self.rate.write() = Rate::new(per_minute, burst);
    }

    /// Takes one change of a user, or returns the number of seconds until the next one.
    pub fn take(&self, user: &str, now: Instant) -> Result<(), u32> {
        let Rate { per_second, burst } = *self.rate.read();
        if per_second <= 0.0 {
            return Ok(());
        }
        let mut users = self.users.lock();
        let filled = |bucket: &Bucket| {
            let more = now.saturating_duration_since(bucket.at).as_secs_f64() * per_second;
            (bucket.left + more).min(burst)
        };
        if users.len() >= COUNTED && !users.contains_key(user) {
            users.retain(|_, bucket| filled(bucket) < burst);
            // Nobody is kept out by others who are busy.
            if users.len() >= COUNTED {
                users.clear();
            }
        }
        let bucket = users.entry(user.to_owned()).or_insert(Bucket { left: burst, at: now });
        let left = filled(bucket);
        if left < 1.0 {
            *bucket = Bucket { left, at: now };
            return Err(((1.0 - left) / per_second).ceil().max(1.0) as u32);
        }
        *bucket = Bucket { left: left - 1.0, at: now };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_user_makes_a_burst_and_then_a_steady_number_of_changes() {
        let (rate, now) = (ChangeRate::new(60, 3), Instant::now());
        let took = |user: &str, ms: u64| rate.take(user, now + Duration::from_millis(ms));
        assert_eq!([took("zoe", 0), took("zoe", 0), took("zoe", 0), took("zoe", 0)], [Ok(()), Ok(()), Ok(()), Err(1)]);
        assert_eq!(took("max", 0), Ok(()), "others are free");
        assert_eq!([took("zoe", 500), took("zoe", 1000), took("zoe", 1000)], [Err(1), Ok(()), Err(1)]);
        assert_eq!((0..5).map(|_| took("zoe", 3_600_000)).filter(Result::is_ok).count(), 3, "no more than a burst is saved");
        assert_eq!(ChangeRate::new(1, 1).take("zoe", now), Ok(()));
        let slow = ChangeRate::new(1, 1);
        assert_eq!([slow.take("zoe", now), slow.take("zoe", now)], [Ok(()), Err(60)]);
        slow.set(60, 3);
        assert_eq!(slow.take("zoe", now + Duration::from_secs(1)), Ok(()), "a changed limit holds for known users");
        let none = ChangeRate::new(0, 1);
        assert!((0..1000).all(|_| none.take("zoe", now).is_ok()));
        for user in 0..2 * COUNTED {
            rate.take(&user.to_string(), now + Duration::from_secs(7200)).unwrap();
        }
        assert!(rate.users.lock().len() <= COUNTED);
    }
}
