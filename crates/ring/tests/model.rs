//! A ring against a model of it: what was taken comes out once, in order, with numbers that have no holes, and what was
//! not taken is reported at the place where it is missing.

mod support;

use proptest::prelude::*;
use support::{NO_WAIT, settings};
use tampu_ring::{EntryContent, Kind, LEVELS, Refused, Rings};

#[derive(Debug, Clone)]
enum Step {
    /// A record of this level and length.
    Log(u8, usize),
    /// A slot that is claimed and dropped.
    GiveUp(usize),
    /// At most so many entries are walked over.
    Walk(usize),
    /// Commits the entries walked over.
    Commit,
    /// Goes back to the last commit.
    Rewind,
    /// Another drainer takes over.
    Replace,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0u8..14, 0usize..200).prop_map(|(level, length)| Step::Log(level, length)),
        1 => (0u8..12, 800usize..1100).prop_map(|(level, length)| Step::Log(level, length)),
        1 => (0usize..300).prop_map(Step::GiveUp),
        4 => (1usize..20).prop_map(Step::Walk),
        3 => Just(Step::Commit),
        1 => Just(Step::Rewind),
        1 => Just(Step::Replace),
    ]
}

/// Entry that has to come out next.
#[derive(Debug, Clone, PartialEq)]
enum Expected {
    Record(Vec<u8>),
    Lost([u64; LEVELS]),
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn what_goes_in_comes_out_once_and_in_order(steps in proptest::collection::vec(step(), 1..300)) {
        let rings = Rings::open(settings(None)).unwrap();
        let site = rings.define(Kind::Site, b"site").unwrap();
        let mut drainer = rings.drainer().unwrap();
        let (mut expected, mut lost): (Vec<Expected>, [u64; LEVELS]) = (Vec::new(), [0; LEVELS]);
        // The number of entries read, and of those committed.
        let (mut walked, mut committed) = (0, 0);
        for (index, step) in steps.into_iter().enumerate() {
            match step {
                Step::Log(level, length) => {
                    let bytes: Vec<u8> = (0..length).map(|at| (index + at) as u8).collect();
                    if index % 2 == 0 && support::write_now(&rings, &bytes, site, 9) {
                        // Only the slow path reports losses, and it is the only path after them.
                        prop_assert_eq!(lost, [0; LEVELS]);
                        expected.push(Expected::Record(bytes));
                        continue;
                    }
                    match rings.claim(length, level, NO_WAIT) {
                        Ok(mut slot) => {
                            prop_assert_eq!(slot.put(&bytes), length);
                            prop_assert_eq!(slot.put(b"more than was claimed"), 0);
                            slot.commit(site, 9);
                            if lost != [0; LEVELS] {
                                expected.push(Expected::Lost(std::mem::take(&mut lost)));
                            }
                            expected.push(Expected::Record(bytes));
                        }
                        // The caller may have another path for the record.
                        Err(Refused::Long) => {}
                        Err(_) => lost[usize::from(level).min(LEVELS - 1)] += 1,
                    }
                }
                Step::GiveUp(length) => {
                    // Making room for the claim may report losses, although the claim is dropped.
                    match rings.claim(length, 1, NO_WAIT) {
                        Ok(mut slot) => {
                            slot.put(b"never there");
                            if lost != [0; LEVELS] {
                                expected.push(Expected::Lost(std::mem::take(&mut lost)));
                            }
                        }
                        Err(Refused::Long) => {}
                        Err(_) => lost[1] += 1,
                    }
                }
                Step::Walk(most) => {
                    drainer.find_rings().unwrap();
                    let Some(ring) = drainer.rings().first_mut() else { continue };
                    for _ in 0..most {
                        let peeked = ring.peek();
                        let Some(entry) = ring.next_entry() else { break };
                        let entry = entry.unwrap();
                        prop_assert!(peeked.is_some_and(|ticks| ticks <= entry.ticks));
                        prop_assert_eq!(entry.number, walked as u64);
                        prop_assert_eq!(entry.thread.id() as i32, rustix::thread::gettid().as_raw_nonzero().get());
                        let found = match entry.what {
                            EntryContent::Record { site: found, voice: 9, payload } => {
                                prop_assert_eq!(found, site);
                                Expected::Record(payload.to_vec())
                            }
                            EntryContent::Record { voice, .. } | EntryContent::Long { voice, .. } => panic!("voice {voice}"),
                            EntryContent::Lost(lost) => {
                                prop_assert!(lost.first <= lost.last && lost.last <= entry.ticks);
                                Expected::Lost(lost.counts)
                            }
                        };
                        prop_assert_eq!(Some(&found), expected.get(walked));
                        walked += 1;
                    }
                }
                Step::Commit => {
                    if let Some(ring) = drainer.rings().first_mut() {
                        let mark = ring.mark();
                        ring.commit(&mark);
                        committed = walked;
                    }
                }
                Step::Rewind => {
                    if let Some(ring) = drainer.rings().first_mut() {
                        ring.rewind();
                        walked = committed;
                    }
                }
                Step::Replace => {
                    prop_assert!(rings.drainer().is_err(), "one drainer at a time");
                    drop(drainer);
                    drainer = rings.drainer().unwrap();
                    walked = committed;
                }
            }
            if let Some(stats) = rings.stats().first() {
                prop_assert_eq!(stats.records, committed as u64);
                let reported: u64 = expected.iter().map(|one| if let Expected::Lost(counts) = one { counts.iter().sum() } else { 0 }).sum();
                prop_assert_eq!(stats.dropped.iter().sum::<u64>(), reported + lost.iter().sum::<u64>());
                prop_assert!(stats.waiting <= 4096 && stats.high_water <= 4096);
            }
        }
    }
}
