//! The source is killed again and again while it publishes, and started again.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
    time::{Duration, Instant},
};

use tampu_types::event::Reason;

use super::{Chance, account::Totals, part::Place, source::published, subscriber::Subscriber, until};

/// Result of the scene.
#[derive(Debug)]
pub struct Killed {
    /// Number of kills.
    pub kills: u64,
    /// Kills before the incarnation had delivered an event to the subscriber.
    pub early: u64,
    /// Totals of the account.
    pub totals: Totals,
    /// Events that a restarted source had published before the subscriber found it, and that it was not given. Sources at full speed
    /// do not count: they publish more in that time than a subscriber keeps.
    pub missed_at_start: u64,
    /// Deaths that were reported before the return.
    pub deaths: usize,
    /// Returns that were reported.
    pub returns: usize,
    /// From the kill to the word of it, sorted.
    pub told_after: Vec<Duration>,
    /// From the start of the process to its first event, sorted.
    pub back_after: Vec<Duration>,
}

impl std::fmt::Display for Killed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = |times: &[Duration], part: f64| {
            times.get((times.len().saturating_sub(1) as f64 * part) as usize).copied().unwrap_or_default()
        };
        let [told, back] = [&self.told_after, &self.back_after];
        write!(
            f,
            "source killed: kills={} (early {}) {} missed_at_start={} death told after p50 {:.1?} p99 {:.1?} longest {:.1?}; new process to first event p50 {:.1?} longest {:.1?}",
            self.kills,
            self.early,
            self.totals,
            self.missed_at_start,
            at(told, 0.5),
            at(told, 0.99),
            at(told, 1.0),
            at(back, 0.5),
            at(back, 1.0)
        )
    }
}

/// Kills so often, at moments that follow from the seed.
pub fn kill(kills: u64, seed: u64, program: Command) -> Killed {
    let place = Place::new(program);
    let _node = place.node();
    let mut chance = Chance(seed);
    let subscriber = Subscriber::start(&place.config(), "panel", 0);
    let (mut early, mut told_after, mut back_after) = (0, Vec::new(), Vec::new());
    let mut paced = BTreeSet::new();
    for life in 1..=kills {
        // A quarter of the runs push at full speed, the others at a rate.
        let rate = if chance.below(4) == 0 { 0 } else { 1000 + chance.below(20_000) };
        if rate > 0 {
            paced.insert(life);
        }
        let begun = Instant::now();
        let source = place.start(&format!("source name=source life={life} elements=16 rate={rate}"));
        let is_early = life > 1 && chance.below(10) == 0;
        if is_early {
            source.wait_for("ready");
            std::thread::sleep(Duration::from_micros(chance.below(3000)));
        } else {
            subscriber.wait_until("an event of the new life", |account| account.lives.contains_key(&life));
            back_after.push(begun.elapsed());
            std::thread::sleep(Duration::from_micros(chance.below(20_000)));
        }
        let at = Instant::now();
        source.kill();
        let found = subscriber.account().lives.contains_key(&life);
        early += u64::from(!found);
        // Half of the runs restart before the death is noticed.
        if found && chance.below(2) == 0 {
            subscriber.wait_until("word of the death", |account| account.lives.get(&life).is_some_and(|life| life.ended));
            let died =
                subscriber.account().word_at.iter().rev().find(|(reason, _)| *reason == Reason::SourceDied).map(|(_, at)| *at);
            told_after.extend(died.map(|died| died.saturating_duration_since(at)));
        }
    }
    let last = kills + 1;
    paced.insert(last);
    let mut source = place.start(&format!("source name=source life={last} elements=16 rate=5000"));
    subscriber.wait_until("the last life", |account| account.last(last) >= 100);
    let said = source.ask("stop", "stopped ");
    let number: u64 = said.split(' ').next().unwrap().parse().unwrap();
    subscriber.wait_until("the last event", |account| account.last(last) >= number);
    source.end();
    subscriber.wait_until("word that it left", |account| account.was_told(Reason::SourceLeft));

    let published: BTreeMap<u64, u64> = (1..=last).map(|life| (life, published(&place.mark("source", life)))).collect();
    until("the last number is written", || published[&last] == number);
    told_after.sort();
    back_after.sort();
    let account = subscriber.account();
    let count = |reason: Reason| account.word.iter().filter(|(word, _)| word == reason.name()).count();
    let paced_again = account.lives.iter().filter(|(life, _)| **life > 1 && paced.contains(life));
    Killed {
        kills,
        early,
        totals: Totals::of(&account, &published),
        missed_at_start: paced_again.map(|(_, life)| life.begun_with - 1).sum(),
        deaths: count(Reason::SourceDied),
        returns: count(Reason::SourceReturned),
        told_after,
        back_after,
    }
}
