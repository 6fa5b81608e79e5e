//! Reading an application's log: what it was given of each stream, and whether that keeps the promise.

use std::collections::BTreeMap;

use super::command::{Seen, StreamId};

/// Events that an application got so far.
#[derive(Debug, Clone, Default)]
pub struct Log(pub Vec<Seen>);

/// One stream as an application was given it: in order, without repetition, every hole told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// The first sample it was given or told of.
    pub from: u64,
    /// The one after the last.
    pub to: u64,
    /// Number of samples that it got.
    pub got: u64,
    /// Ranges that were reported lost.
    pub lost: Vec<(u64, u64)>,
    /// Reasons, one for each loss.
    pub why: Vec<String>,
    /// It was told that the end is not known.
    pub open_end: bool,
    pub lent: u64,
    pub torn: u64,
}

impl Account {
    pub fn lost_total(&self) -> u64 {
        self.lost.iter().map(|(from, to)| to - from).sum()
    }

    /// Given or told of everything up to there.
    pub fn is_settled(&self, to: u64) -> bool {
        self.to >= to
    }
}

impl Log {
    /// Every stream's account; panics where a stream is out of order, repeats, has an untold hole or damaged samples.
    #[track_caller]
    pub fn accounts(&self) -> BTreeMap<StreamId, Account> {
        let mut accounts: BTreeMap<StreamId, Account> = BTreeMap::new();
        for seen in &self.0 {
            let (stream, from) = match seen {
                Seen::Samples { stream, from, .. } | Seen::Gap { stream, from, .. } => (stream, *from),
                Seen::Source { .. } => continue,
            };
            let known = accounts.contains_key(stream);
            let account = accounts.entry(stream.clone()).or_default();
            if !known {
                (account.from, account.to) = (from, from);
            }
            assert_eq!(account.to, from, "{stream:?}: {seen:?} does not follow what was given before, {account:?}");
            assert!(!account.open_end, "{stream:?}: {seen:?} follows the end");
            match seen {
                Seen::Samples { to, damaged, lent, torn, .. } => {
                    assert_eq!(*damaged, 0, "{stream:?}: samples are not what was written: {seen:?}");
                    account.got += to - from;
                    account.lent += lent;
                    account.torn += torn;
                    account.to = *to;
                }
                Seen::Gap { to: Some(to), why, .. } => {
                    assert!(*to > from, "{stream:?}: an empty gap {seen:?}");
                    account.lost.push((from, *to));
                    account.why.push(why.clone());
                    account.to = *to;
                }
                Seen::Gap { to: None, .. } => account.open_end = true,
                Seen::Source { .. } => {}
            }
        }
        accounts
    }

    /// The account of the only stream of a topic; empty if there is none yet.
    #[track_caller]
    pub fn topic(&self, topic: &str) -> Account {
        let accounts = self.accounts();
        let mut of_topic = accounts.into_iter().filter(|(stream, _)| stream.topic == topic);
        let account = of_topic.next().map(|(_, account)| account).unwrap_or_default();
        if let Some((other, _)) = of_topic.next() {
            panic!("more than one stream of {topic}: {other:?}");
        }
        account
    }

    /// Reported states of a source, with the times.
    pub fn states(&self, source: &str) -> Vec<(String, i64)> {
        let of_source = |seen: &Seen| match seen {
            Seen::Source { source: name, state, at, .. } if name == source => Some((state.clone(), *at)),
            _ => None,
        };
        self.0.iter().filter_map(of_source).collect()
    }

    /// Time at which this state of a source was last reported.
    pub fn told_at(&self, source: &str, state: &str) -> Option<i64> {
        self.states(source).into_iter().rev().find(|(told, _)| told == state).map(|(_, at)| at)
    }
}
