//! Rate and repeat limits: they keep repeated records, and records beyond a process's share of a second, out of the
//! log. Both are counted here and reported in records of their own, which no limit holds back.

use std::{
    hash::{BuildHasher, RandomState},
    num::NonZeroU64,
};

use tampu_text::{Piece, Site};
use tampu_types::{Datum, Level, LogRecord, Time};

use crate::logger::{
    identity::LoggerIdentity,
    repeat::{RepeatGuard, Runs, Told, Verdict},
    stream::Reach,
    throttle::{Excess, Throttle},
};

/// Name of the value with the number of suppressed repetitions before a record; one of ACS's reserved names.
pub(crate) const REPEAT_COUNT: &str = "repeatCount";

/// Key that distinguishes statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    identity: u32,
    site: u32,
    /// Hash of the text, for statements without a text of their own; else 0.
    text: u64,
}

/// Author of suppressed records.
pub(crate) enum Suppressed {
    /// A statement in the code.
    Call { identity: LoggerIdentity, site: Box<Site>, text: Box<str> },
    /// A whole record, without its text and values, and its audience.
    Record { record: Box<LogRecord>, text: Box<str>, reach: Reach },
}

/// A record of the logging itself, and its reach.
pub(crate) struct Notice {
    pub record: LogRecord,
    pub reach: Reach,
}

pub(crate) struct RateLimits {
    throttle: Option<Throttle>,
    runs: Runs<Key, Suppressed>,
    notices: Vec<Notice>,
    suppressed: u64,
    seed: RandomState,
}

impl RateLimits {
    pub fn new(max_per_s: Option<NonZeroU64>) -> RateLimits {
        let throttle = max_per_s.map(Throttle::new);
        RateLimits { throttle, runs: Runs::new(), notices: Vec::new(), suppressed: 0, seed: RandomState::new() }
    }

    /// Goes by another limit from now on.
    pub fn set_limit(&mut self, max_per_s: Option<NonZeroU64>, now: Time) {
        if let Some(excess) = self.throttle.as_mut().and_then(|throttle| throttle.take_last(now)) {
            self.notices.push(excess_told(&excess));
        }
        self.throttle = max_per_s.map(Throttle::new);
    }

    /// Returns whether a record of a logger with this guard needs a decision at all.
    #[inline]
    pub fn concerns(&self, guard: RepeatGuard) -> bool {
        guard.is_on() || self.throttle.is_some()
    }

    pub fn key(&self, identity: u32, site: u32, text: &str) -> Key {
        Key { identity, site, text: if text.is_empty() { 0 } else { self.seed.hash_one(text) } }
    }

    /// Decides whether a record passes; returns the number of repetitions that it then reports.
    pub fn judge(
        &mut self,
        guard: RepeatGuard,
        key: Key,
        (level, time): (Level, Time),
        suppressed: impl FnOnce() -> Suppressed,
    ) -> Option<u64> {
        let verdict = if guard.is_on() { self.runs.judge(guard, &key, time, suppressed) } else { Verdict::Pass(0) };
        let Verdict::Pass(repeats) = verdict else {
            self.suppressed += 1;
            return None;
        };
        let Some(throttle) = &mut self.throttle else { return Some(repeats) };
        if let Some(excess) = throttle.turn(time) {
            self.notices.push(excess_told(&excess));
        }
        if throttle.admit(level) {
            return Some(repeats);
        }
        self.suppressed += 1;
        self.runs.take_back(&key, repeats);
        None
    }

    /// Decides about a whole record; adds the number of its repetitions if it passes.
    pub fn admit_whole(&mut self, guard: RepeatGuard, record: &mut LogRecord, reach: Reach) -> bool {
        if !self.concerns(guard) {
            return true;
        }
        let LogRecord { logger, source_object, file, line, message, .. } = &*record;
        let key = self.key(0, 0, &format!("{logger}\0{source_object}\0{file}\0{line:?}\0{message}"));
        let suppressed = || Suppressed::Record {
            record: Box::new(LogRecord { message: String::new(), data: Vec::new(), ..record.clone() }),
            text: record.message.as_str().into(),
            reach,
        };
        let Some(repeats) = self.judge(guard, key, (record.level, record.time), suppressed) else { return false };
        if repeats > 0 {
            record.data.push(Datum::new(REPEAT_COUNT, repeats.to_string()));
        }
        true
    }

    /// A record that passed did not become one after all.
    pub fn take_back(&mut self, key: Key, repeats: u64) {
        self.runs.take_back(&key, repeats);
    }

    /// Advances the time; with `at_last` reports everything.
    pub fn tick(&mut self, now: Time, at_last: bool) {
        let excess = self
            .throttle
            .as_mut()
            .and_then(|throttle| throttle.turn(now).or_else(|| at_last.then(|| throttle.take_last(now))?));
        self.notices.extend(excess.map(|excess| excess_told(&excess)));
        self.notices.extend(self.runs.take_over(now, at_last).into_iter().map(run_told));
    }

    /// Removes and returns the notices to report.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Returns the number of records suppressed since the last call.
    pub fn take_suppressed(&mut self) -> u64 {
        std::mem::take(&mut self.suppressed)
    }
}

/// Returns whether the statement alone distinguishes its records.
pub(crate) fn speaks_for_itself(site: &Site) -> bool {
    site.pieces.iter().any(|piece| matches!(piece, Piece::Text(text) if text.chars().any(char::is_alphanumeric)))
}

/// A statement's text with its arguments left open.
pub(crate) fn pattern(site: &Site) -> Box<str> {
    site.pieces.iter().map(|piece| if let Piece::Text(text) = piece { text } else { "{}" }).collect::<String>().into()
}

fn excess_told(excess: &Excess) -> Notice {
    let Excess { limit, time, counts } = excess;
    let total: u64 = counts.iter().sum();
    let text = format!("{total} records suppressed here: more than {limit} a second; raise max_per_s, or find their source");
    let mut record = LogRecord::new(Level::Warning, text);
    record.time = *time;
    record.data.push(Datum::new("suppressed", total.to_string()));
    let by_level = Level::ALL.into_iter().zip(counts).filter(|(_, count)| **count > 0);
    record.data.extend(by_level.map(|(level, count)| Datum::new(level.name(), count.to_string())));
    Notice { record, reach: Reach::Central }
}

fn run_told(told: Told<Suppressed>) -> Notice {
    let Told { what, suppressed, time } = told;
    let (mut record, text, reach) = match what {
        Suppressed::Record { record, text, reach } => (*record, text, reach),
        Suppressed::Call { identity, site, text } => {
            let mut record = LogRecord::new(Level::from_number(site.level).unwrap_or(Level::Info), "");
            identity.fields.lend(&mut record);
            record.line = site.known_line();
            record.file = site.file.into_owned();
            record.routine = site.routine.into_owned();
            let reach = identity.reach(record.level);
            (record, text, reach)
        }
    };
    let word = if suppressed == 1 { "repetition" } else { "repetitions" };
    record.message = format!("{suppressed} {word} suppressed of: {text}");
    record.data = vec![Datum::new(REPEAT_COUNT, suppressed.to_string())];
    (record.time, record.id) = (time, None);
    Notice { record, reach }
}
