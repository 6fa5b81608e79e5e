//! What settings keep out of the log: repetitions and what is over a process's share of a second. Both are counted here and told in
//! records of their own, which no restraint holds back.

use std::{
    hash::{BuildHasher, RandomState},
    num::NonZeroU64,
};

use tampu_text::{Piece, Site};
use tampu_types::{Datum, Level, LogRecord, Time};

use crate::logger::{
    lane::Reach,
    repeat::{RepeatGuard, Runs, Told, Verdict},
    throttle::{Excess, Throttle},
    voice::Voice,
};

/// The datum that says how many repetitions came before a record; one of ACS's reserved names.
pub(crate) const REPEAT_COUNT: &str = "repeatCount";

/// What tells statements apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    voice: u32,
    site: u32,
    /// Of those that say nothing by themselves; else 0.
    text: u64,
}

/// Who said what is told of.
pub(crate) enum Speech {
    /// A statement.
    Call { voice: Voice, site: Box<Site>, text: Box<str> },
    /// A record made by hand, without its text and values, and how far it went.
    Made { record: Box<LogRecord>, text: Box<str>, reach: Reach },
}

/// A record that the logging itself makes, and how far it goes.
pub(crate) struct Notice {
    pub record: LogRecord,
    pub reach: Reach,
}

pub(crate) struct Restraint {
    throttle: Option<Throttle>,
    runs: Runs<Key, Speech>,
    notices: Vec<Notice>,
    suppressed: u64,
    seed: RandomState,
}

impl Restraint {
    pub fn new(max_per_s: Option<NonZeroU64>) -> Restraint {
        let throttle = max_per_s.map(Throttle::new);
        Restraint { throttle, runs: Runs::new(), notices: Vec::new(), suppressed: 0, seed: RandomState::new() }
    }

    /// Goes by another limit from now on.
    pub fn set_limit(&mut self, max_per_s: Option<NonZeroU64>, now: Time) {
        if let Some(excess) = self.throttle.as_mut().and_then(|throttle| throttle.take_last(now)) {
            self.notices.push(excess_told(&excess));
        }
        self.throttle = max_per_s.map(Throttle::new);
    }

    /// Whether a record of a logger with this guard has to be judged at all.
    #[inline]
    pub fn concerns(&self, guard: RepeatGuard) -> bool {
        guard.is_on() || self.throttle.is_some()
    }

    pub fn key(&self, voice: u32, site: u32, text: &str) -> Key {
        Key { voice, site, text: if text.is_empty() { 0 } else { self.seed.hash_one(text) } }
    }

    /// Judges a record: whether it passes, and how many repetitions it then has to tell of.
    pub fn judge(
        &mut self,
        guard: RepeatGuard,
        key: Key,
        (level, time): (Level, Time),
        speech: impl FnOnce() -> Speech,
    ) -> Option<u64> {
        let verdict = if guard.is_on() { self.runs.judge(guard, &key, time, speech) } else { Verdict::Pass(0) };
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

    /// A record that passed did not become one after all.
    pub fn take_back(&mut self, key: Key, repeats: u64) {
        self.runs.take_back(&key, repeats);
    }

    /// It is this time now; at last everything is told.
    pub fn tick(&mut self, now: Time, at_last: bool) {
        let excess = self
            .throttle
            .as_mut()
            .and_then(|throttle| throttle.turn(now).or_else(|| at_last.then(|| throttle.take_last(now))?));
        self.notices.extend(excess.map(|excess| excess_told(&excess)));
        self.notices.extend(self.runs.take_over(now, at_last).into_iter().map(run_told));
    }

    /// Takes what there is to tell.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// How many have not passed since the last call.
    pub fn take_suppressed(&mut self) -> u64 {
        std::mem::take(&mut self.suppressed)
    }
}

/// Whether a statement's records can be told apart by the statement alone.
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
    let text =
        format!("{total} records suppressed here: more than {limit} a second; raise max_per_s, or find out who logs so much");
    let mut record = LogRecord::new(Level::Warning, text);
    record.time = *time;
    record.data.push(Datum::new("suppressed", total.to_string()));
    let by_level = Level::ALL.into_iter().zip(counts).filter(|(_, count)| **count > 0);
    record.data.extend(by_level.map(|(level, count)| Datum::new(level.name(), count.to_string())));
    Notice { record, reach: Reach::Central }
}

fn run_told(told: Told<Speech>) -> Notice {
    let Told { what, suppressed, time } = told;
    let (mut record, text, reach) = match what {
        Speech::Made { record, text, reach } => (*record, text, reach),
        Speech::Call { voice, site, text } => {
            let mut record = LogRecord::new(Level::from_number(site.level).unwrap_or(Level::Info), "");
            voice.identity.lend(&mut record);
            record.line = site.known_line();
            record.file = site.file.into_owned();
            record.routine = site.routine.into_owned();
            let reach = voice.reach(record.level);
            (record, text, reach)
        }
    };
    let word = if suppressed == 1 { "repetition" } else { "repetitions" };
    record.message = format!("{suppressed} {word} suppressed of: {text}");
    record.data = vec![Datum::new(REPEAT_COUNT, suppressed.to_string())];
    (record.time, record.id) = (time, None);
    Notice { record, reach }
}
