//! The host's node is killed while events flow, and started again.

use std::{collections::BTreeMap, process::Command, time::Duration};

use super::{Chance, account::Totals, part::Place, source::published, subscriber::Subscriber};

/// Result of the scene.
#[derive(Debug)]
pub struct NodeKilled {
    pub kills: u64,
    pub totals: Totals,
    /// Notices with the number of each.
    pub word: BTreeMap<String, usize>,
}

impl std::fmt::Display for NodeKilled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Vec<String> = self.word.iter().map(|(word, count)| format!("{count} x {word}")).collect();
        write!(f, "node killed: kills={} {} words: {}", self.kills, self.totals, words.join(", "))
    }
}

/// Kills it so often, at moments that follow from the seed.
pub fn kill(kills: u64, seed: u64, program: Command) -> NodeKilled {
    let place = Place::new(program);
    let mut node = place.node();
    let mut chance = Chance(seed);
    let subscriber = Subscriber::start(&place.config(), "panel", 0);
    let mut source = place.start("source name=source life=1 elements=16 rate=2000");
    subscriber.wait_until("events", |account| account.last(1) > 100);
    for _ in 0..kills {
        std::thread::sleep(Duration::from_millis(chance.below(200)));
        node.kill();
        std::thread::sleep(Duration::from_millis(chance.below(300)));
        node = place.node();
        let before = published(&place.mark("source", 1));
        subscriber.wait_until("events after the kill", |account| account.last(1) > before);
    }
    let said = source.ask("stop", "stopped ");
    let number: u64 = said.split(' ').next().unwrap().parse().unwrap();
    subscriber.wait_until("the last event", |account| account.last(1) >= number);
    let account = subscriber.account();
    let mut word = BTreeMap::new();
    account.word.iter().for_each(|(said, _)| *word.entry(said.clone()).or_default() += 1);
    NodeKilled { kills, totals: Totals::of(&account, &BTreeMap::from([(1, number)])), word }
}
