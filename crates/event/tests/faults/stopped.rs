//! Processes that are stopped (SIGSTOP) and go on, and one that cannot keep up.

use std::{
    collections::BTreeMap,
    process::Command,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use tampu_types::event::Reason;

use super::{
    account::{Account, Totals},
    part::{Part, Place},
    subscriber::{Subscriber, account_of},
    until,
};

/// Report of a source that has stopped.
#[derive(Debug, Clone, Copy)]
pub struct Pushed {
    /// Number of events.
    pub number: u64,
    /// The longest call.
    pub longest: Duration,
    /// Time of all calls together.
    pub calls: Duration,
}

fn stop(source: &mut Part) -> Pushed {
    let said = source.ask("stop", "stopped ");
    let mut numbers = said.split(' ').map(|number| number.parse().unwrap());
    let mut next = || numbers.next().unwrap();
    Pushed { number: next(), longest: Duration::from_micros(next()), calls: Duration::from_micros(next()) }
}

fn totals(account: &Account, number: u64) -> Totals {
    Totals::of(account, &BTreeMap::from([(1, number)]))
}

/// The source hangs, and goes on.
#[derive(Debug)]
pub struct SourceStopped {
    pub totals: Totals,
    /// Notices in order.
    pub word: Vec<String>,
    pub hung_after: Duration,
    pub returned_after: Duration,
    /// From the signal to the first value.
    pub value_after: Duration,
}

impl std::fmt::Display for SourceStopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SourceStopped { totals, word, hung_after, returned_after, value_after } = self;
        write!(
            f,
            "source stopped: stops=1 {totals} hung told after {hung_after:.0?}, return after {returned_after:.1?}, a value after {value_after:.1?}; words: {}",
            word.join(", ")
        )
    }
}

/// Stops the source until that is told, and lets it go on.
pub fn source(program: Command) -> SourceStopped {
    let place = Place::new(program);
    let _node = place.node();
    let subscriber = Subscriber::start(&place.config(), "panel", 0);
    let mut source = place.start("source name=source life=1 elements=16 rate=1000");
    subscriber.wait_until("events", |account| account.last(1) > 100);
    let told = |reason: Reason| {
        let account = subscriber.account();
        account.word_at.iter().find(|(word, _)| *word == reason).map(|(_, at)| *at).unwrap()
    };
    let stopped = Instant::now();
    source.signal(Signal::STOP);
    subscriber.wait_until("word that it hangs", |account| account.was_told(Reason::SourceHung));
    let hung_after = told(Reason::SourceHung) - stopped;
    let before = subscriber.account().last(1);
    let goes_on = Instant::now();
    source.signal(Signal::CONT);
    subscriber.wait_until("word that it is back", |account| account.was_told(Reason::SourceReturned));
    subscriber.wait_until("a value", |account| account.was_told(Reason::Resumed));
    let (returned_after, value_after) = (told(Reason::SourceReturned) - goes_on, told(Reason::Resumed) - goes_on);
    subscriber.wait_until("new events", |account| account.last(1) > before + 100);
    let pushed = stop(&mut source);
    subscriber.wait_until("the last event", |account| account.last(1) >= pushed.number);
    let account = subscriber.account();
    SourceStopped {
        totals: totals(&account, pushed.number),
        word: account.word.iter().map(|(word, _)| word.clone()).collect(),
        hung_after,
        returned_after,
        value_after,
    }
}

/// One of several subscribers cannot keep up.
#[derive(Debug)]
pub struct Behind {
    what: &'static str,
    /// Of those that kept up.
    pub others: Vec<Totals>,
    /// Of the one that did not.
    pub behind: Totals,
    /// The last number that the one had been given or told of, while others were at `meanwhile`.
    pub had: u64,
    pub meanwhile: u64,
    pub pushed: Pushed,
}

impl std::fmt::Display for Behind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Pushed { longest, calls, .. } = self.pushed;
        write!(
            f,
            "{}: longest push {longest:.1?}, all pushes {calls:.1?}; it was at {} while others were at {}",
            self.what, self.had, self.meanwhile
        )?;
        self.others.iter().try_for_each(|totals| write!(f, "\n  another: {totals}"))?;
        write!(f, "\n  the one:  {}", self.behind)
    }
}

fn three(place: &Place, source: &str, sleep_us: u64) -> (Part, Vec<Part>) {
    let source = place.start(source);
    source.wait_for("ready");
    let subscribers: Vec<Part> = ["one", "two", "three"]
        .iter()
        .map(|name| place.start(&format!("subscriber name={name} sleep_us={}", if *name == "three" { sleep_us } else { 0 })))
        .collect();
    subscribers.iter().for_each(|subscriber| drop(subscriber.wait_for("ready")));
    (source, subscribers)
}

/// One of three subscribers is stopped for this long, while values of 4 KB are published at this rate.
pub fn subscriber(program: Command, rate: u64, pause: Duration) -> Behind {
    let place = Place::new(program);
    let _node = place.node();
    let (mut source, mut subscribers) = three(&place, &format!("source name=source life=1 elements=1024 rate={rate}"), 0);
    let mut stopped = subscribers.pop().unwrap();
    let had = account_of(&mut stopped, 1, 10).last(1);
    stopped.signal(Signal::STOP);
    std::thread::sleep(pause);
    let meanwhile = account_of(&mut subscribers[0], 1, 0).last(1);
    stopped.signal(Signal::CONT);
    until("it comes up with what goes on", || account_of(&mut stopped, 1, 0).last(1) > meanwhile);
    let pushed = stop(&mut source);
    behind("one of three subscribers stopped", pushed, subscribers, stopped, had, meanwhile)
}

/// One of three subscribers sleeps this long over each event, or, to compare with, not at all, while values of 12 KB are published as fast as may be, for this long; then it
/// wakes.
pub fn sleeper(program: Command, time: Duration, sleep_us: u64) -> Behind {
    let place = Place::new(program);
    let _node = place.node();
    let (mut source, mut subscribers) = three(&place, "source name=source life=1 elements=3000 rate=0", sleep_us);
    let mut sleeper = subscribers.pop().unwrap();
    std::thread::sleep(time);
    let (had, meanwhile) = (account_of(&mut sleeper, 1, 0).last(1), account_of(&mut subscribers[0], 1, 0).last(1));
    // The source stays while the sleeper is behind: it ends only when all events are read or reported as lost.
    source.tell("stop");
    sleeper.tell("wake");
    let said = source.wait_for("stopped ");
    let mut numbers = said.split(' ').map(|number| number.parse().unwrap());
    let mut next = || numbers.next().unwrap();
    let pushed = Pushed { number: next(), longest: Duration::from_micros(next()), calls: Duration::from_micros(next()) };
    let what = if sleep_us > 0 { "one of three subscribers asleep" } else { "full speed, none of three subscribers asleep" };
    behind(what, pushed, subscribers, sleeper, had, meanwhile)
}

fn behind(what: &'static str, pushed: Pushed, mut others: Vec<Part>, mut one: Part, had: u64, meanwhile: u64) -> Behind {
    let mut of = |part: &mut Part| totals(&account_of(part, 1, pushed.number), pushed.number);
    let others = others.iter_mut().map(&mut of).collect();
    Behind { what, others, behind: of(&mut one), had, meanwhile, pushed }
}
