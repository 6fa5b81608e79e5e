//! Events while their sources, their subscribers and the node are killed, stopped and asleep, in processes of their own; short runs of
//! what the example `event_faults` does at length.

use std::{process::Command, time::Duration};

mod faults;
use faults::{killed, node_killed, part, rivals, seed, stopped};

/// Not a test: what a process of a scene does.
#[test]
fn be_a_part() {
    part::be_a_part();
}

/// Returns whether all notices came in this order. A process that waits long for a processor may be reported as hung, and back, once more.
fn in_order(word: &[String], expected: &[&str]) -> bool {
    let mut expected = expected.iter().peekable();
    for word in word {
        let _ = expected.next_if(|expected| *expected == word);
    }
    expected.next().is_none()
}

fn program() -> Command {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "be_a_part", "--nocapture"]);
    program
}

#[test]
fn a_source_that_is_killed_twenty_times_loses_nothing_without_a_word() {
    let seed = seed();
    println!("seed {seed}");
    let killed = killed::kill(20, seed, program());
    println!("{killed}");
    assert!(killed.totals.is_whole(), "seed {seed}: {killed}");
    // Each observed life was reported as a return, and its end as a death. The first is no return, and the last leaves in order.
    assert_eq!(killed.deaths, killed.returns, "seed {seed}: {killed}");
    assert!(killed.deaths as u64 >= killed.kills - killed.early, "seed {seed}: {killed}");
    assert_eq!(killed.missed_at_start, 0, "what a new life publishes first is given: seed {seed}: {killed}");
}

#[test]
fn a_source_that_hangs_is_told_and_so_is_its_return_with_a_value() {
    let stopped = stopped::source(program());
    println!("{stopped}");
    assert!(stopped.totals.is_whole() && stopped.totals.told == 0, "{stopped}");
    assert!(in_order(&stopped.word, &["source hung", "source returned", "resumed"]), "{stopped}");
    assert!(!stopped.word.iter().any(|word| word == "source died"), "{stopped}");
}

#[test]
fn a_stopped_subscriber_costs_the_others_nothing_and_is_told_what_it_missed() {
    // At this rate no subscriber falls behind the cache merely by being slow.
    let behind = stopped::subscriber(program(), 1000, Duration::from_millis(2500));
    println!("{behind}");
    assert!(behind.others.iter().all(|totals| totals.is_whole() && totals.told == 0), "{behind}");
    assert!(behind.behind.is_whole() && behind.behind.told_by_end == 0, "{behind}");
    assert!(behind.meanwhile > behind.had, "{behind}");
}

#[test]
fn a_subscriber_that_sleeps_is_told_what_it_missed_and_the_others_go_on() {
    let behind = stopped::sleeper(program(), Duration::from_millis(1500), 2000);
    println!("{behind}");
    // At full speed on a busy machine the others may fall behind as well, and get a report.
    assert!(behind.others.iter().all(|totals| totals.is_whole() && totals.told_by_end == 0), "{behind}");
    assert!(behind.behind.is_whole() && behind.behind.told_by_end == 0, "{behind}");
    assert!(behind.meanwhile > behind.had, "{behind}");
}

#[test]
fn a_second_source_of_an_attribute_is_refused() {
    let told = rivals::second(program());
    assert!(told.contains("first"), "{told}");
}

#[test]
fn of_two_sources_that_start_at_once_one_is_told() {
    let (told, totals) = rivals::both_at_once(program());
    println!("two at once: told={told} {totals}");
    assert!(told == 1 && totals.is_whole(), "{told} {totals}");
}

#[test]
fn a_redundant_source_takes_over() {
    let (word, totals) = rivals::redundant(program());
    println!("redundant: {totals} words: {}", word.join(", "));
    assert!(totals.is_whole(), "{totals} {word:?}");
    assert!(in_order(&word, &["source died", "source returned", "resumed"]), "{word:?}");
}

#[test]
fn a_redundant_source_takes_over_from_one_that_hangs_and_gives_back() {
    let (word, bad) = rivals::redundant_hangs(program());
    println!("redundant, one hangs: words: {}", word.join(", "));
    assert_eq!(bad, 0, "{word:?}");
    let expected = ["source hung", "source returned", "resumed", "source returned", "resumed"];
    assert!(in_order(&word, &expected), "{word:?}");
    assert!(!word.iter().any(|word| word == "source died" || word == "conflict"), "{word:?}");
}

#[test]
fn a_later_life_has_the_attribute_and_the_earlier_is_told() {
    let (told, totals) = rivals::same_name(program());
    println!("one name twice: {totals}");
    assert!(told.contains("source") && totals.is_whole(), "{told} {totals}");
}

#[test]
fn a_node_that_is_killed_costs_no_event_without_a_word() {
    let seed = seed();
    println!("seed {seed}");
    let killed = node_killed::kill(3, seed, program());
    println!("{killed}");
    assert!(killed.totals.is_whole(), "seed {seed}: {killed}");
}
