//! Two processes with one attribute: refused, told, or declared redundant; never silent.

use std::{collections::BTreeMap, process::Command};

use rustix::process::Signal;
use tampu_types::event::Reason;

use super::{
    account::Totals,
    part::{Part, Place},
    source::published,
    subscriber::Subscriber,
    until,
};

fn say(name: &str, life: u64, more: &str) -> String {
    format!("source name={name} life={life} elements=16 rate=1000 {more}")
}

/// A source has the attribute, another one comes. What the second is told.
pub fn second(program: Command) -> String {
    let place = Place::new(program);
    let _node = place.node();
    let subscriber = Subscriber::start(&place.config(), "panel", 0);
    let first = place.start(&say("first", 1, ""));
    subscriber.wait_until("events", |account| account.last(1) > 10);
    let second = place.start(&say("second", 2, ""));
    // Refused at its declaration, or at its push if it did not know the first by then.
    let told = second.wait_for_one(&["refused ", "taken "]);
    subscriber.wait_until("events go on", {
        let before = subscriber.account().last(1);
        move |account| account.last(1) > before + 10
    });
    assert_eq!(
        (subscriber.account().lives.len(), first.heard().len()),
        (1, 1),
        "one life, which said nothing but that it is ready"
    );
    told
}

/// Both start at once. How many of them were told that the other has it; in the end one goes on.
pub fn both_at_once(program: Command) -> (usize, Totals) {
    let place = Place::new(program);
    let _node = place.node();
    let subscriber = Subscriber::start(&place.config(), "panel", 0);
    let both: Vec<Part> = [("one", 1), ("two", 2)].iter().map(|(name, life)| place.start(&say(name, *life, ""))).collect();
    let mut heard = Vec::new();
    until("one of them is told", || {
        both.iter().for_each(|part| heard.extend(part.heard()));
        heard.iter().any(|line| line.starts_with("refused ") || line.starts_with("taken "))
    });
    let begun = both_published(&place);
    until("one of them goes on", || both_published(&place).iter().zip(&begun).any(|(now, then)| *now > then + 50));
    let goes_on = both_published(&place);
    let still: Vec<u64> = goes_on.iter().zip(&begun).map(|(now, then)| now - then).collect();
    assert!(still.contains(&0), "both go on: {still:?}");
    let winner = if still[0] > 0 { 1 } else { 2 };
    subscriber.wait_until("events of the one", |account| account.last(winner) > 50);
    both.iter().for_each(|part| heard.extend(part.heard()));
    let told = heard.iter().filter(|line| line.starts_with("refused ") || line.starts_with("taken ")).count();
    let account = subscriber.account();
    let last = account.last(winner);
    (told, Totals::of(&account, &BTreeMap::from([(winner, last)])))
}

fn both_published(place: &Place) -> [u64; 2] {
    [published(&place.mark("one", 1)), published(&place.mark("two", 2))]
}

/// Both say that they are redundant; the one that is taken is killed. What the subscriber was told.
pub fn redundant(program: Command) -> (Vec<String>, Totals) {
    let place = Place::new(program);
    let _node = place.node();
    let subscriber = Subscriber::start(&place.config(), "panel", 0);
    let first = place.start(&say("one", 1, "redundant=true"));
    subscriber.wait_until("events", |account| account.last(1) > 10);
    let second = place.start(&say("two", 2, "redundant=true"));
    second.wait_for("ready");
    until("both publish", || both_published(&place)[1] > 10);
    assert_eq!(subscriber.account().lives.len(), 1, "events come from one of them");
    first.kill();
    subscriber.wait_until("events of the other", |account| account.last(2) > 10);
    let account = subscriber.account();
    let ended = account.lives[&1].ended;
    assert!(ended && account.was_told(Reason::SourceDied), "{:?}", account.word);
    let last = account.last(2);
    let totals = Totals::of(&account, &BTreeMap::from([(1, published(&place.mark("one", 1))), (2, last)]));
    (account.word.iter().map(|(word, _)| word.clone()).collect(), totals)
}

/// The same with one that hangs and goes on. What the subscriber was told, and how many events came twice or wrong.
pub fn redundant_hangs(program: Command) -> (Vec<String>, u64) {
    let place = Place::new(program);
    let _node = place.node();
    let subscriber = Subscriber::start(&place.config(), "panel", 0);
    let first = place.start(&say("one", 1, "redundant=true"));
    subscriber.wait_until("events", |account| account.last(1) > 10);
    let second = place.start(&say("two", 2, "redundant=true"));
    second.wait_for("ready");
    until("both publish", || both_published(&place)[1] > 10);
    first.signal(Signal::STOP);
    subscriber.wait_until("events of the other", |account| account.last(2) > 10);
    let before = subscriber.account().last(1);
    first.signal(Signal::CONT);
    subscriber.wait_until("events of the first again", |account| account.last(1) > before + 10);
    let account = subscriber.account();
    (account.word.iter().map(|(word, _)| word.clone()).collect(), account.doubled + account.wrong)
}

/// A second process of the same name: the later life has the attribute, and the first is told so.
pub fn same_name(program: Command) -> (String, Totals) {
    let place = Place::new(program);
    let _node = place.node();
    let subscriber = Subscriber::start(&place.config(), "panel", 0);
    let first = place.start(&say("source", 1, ""));
    subscriber.wait_until("events", |account| account.last(1) > 10);
    let second = place.start(&say("source", 2, ""));
    second.wait_for("ready");
    let told = first.wait_for("taken ");
    subscriber.wait_until("events of the later", |account| account.last(2) > 10);
    let account = subscriber.account();
    let published = BTreeMap::from([(1, published(&place.mark("source", 1))), (2, account.last(2))]);
    (told, Totals::of(&account, &published))
}
