//! Rings and the threads that have them: reuse, attribution, the overflow ring, logging at a thread's end.

mod support;

use std::{cell::RefCell, collections::BTreeMap, sync::Arc, thread};

use support::{LONG, NO_WAIT, log, payload, settings};
use tampu_ring::{Drainer, EntryContent, Refused, Rings};

/// Everything there is, as (thread's name, payload), ring by ring.
fn drain(drainer: &mut Drainer) -> Vec<(String, Vec<u8>)> {
    drainer.find_rings().unwrap();
    let mut all = Vec::new();
    for ring in drainer.rings() {
        while let Some(entry) = ring.next_entry() {
            let entry = entry.unwrap();
            all.push((entry.thread.name().to_owned(), payload(&entry)));
        }
        let mark = ring.mark();
        ring.commit(&mark);
    }
    all
}

fn named<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    thread::Builder::new().name(name.to_owned()).spawn(work).unwrap().join().unwrap()
}

#[test]
fn short_lived_threads_share_a_ring_and_keep_their_names() {
    let rings = Arc::new(Rings::open(settings(None)).unwrap());
    let mut drainer = rings.drainer().unwrap();
    for number in 0..1000 {
        let logging = rings.clone();
        named(&format!("worker {number}"), move || assert!(log(&logging, &[1, 2, 3], NO_WAIT)));
        assert_eq!(drain(&mut drainer), [(format!("worker {number}"), vec![1, 2, 3])]);
    }
    assert_eq!(rings.stats().len(), 1);
    assert_eq!(rings.stats()[0].records, 1000, "thread notes have no number");
}

#[test]
fn more_threads_than_rings_share_one_and_none_is_mixed_up() {
    let rings = Arc::new(Rings::open(settings(None)).unwrap());
    let mut drainer = rings.drainer().unwrap();
    let threads: Vec<_> = (0..12u8)
        .map(|thread| {
            let rings = rings.clone();
            let work = move || (0..200u8).for_each(|number| assert!(log(&rings, &[thread, number], LONG)));
            thread::Builder::new().name(format!("t{thread}")).spawn(work).unwrap()
        })
        .collect();
    let mut seen: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    let mut all = 0;
    while all < 12 * 200 {
        for (name, payload) in drain(&mut drainer) {
            seen.entry(name).or_default().push(payload);
            all += 1;
        }
        thread::yield_now();
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(seen.len(), 12);
    for (name, payloads) in seen {
        let thread: u8 = name[1..].parse().unwrap();
        // A thread that found no ring at first may get one later: each part is in order.
        let mut numbers: Vec<u8> = payloads.iter().map(|payload| payload[1]).collect();
        numbers.sort_unstable();
        assert!(payloads.iter().all(|payload| payload[0] == thread));
        assert_eq!(numbers, (0..200).collect::<Vec<_>>());
    }
    assert!(rings.stats().len() <= 5, "four and the overflow ring");
}

struct LogsAtTheEnd(Arc<Rings>);

impl Drop for LogsAtTheEnd {
    fn drop(&mut self) {
        assert!(log(&self.0, b"last words", NO_WAIT));
    }
}

thread_local! {
    static EARLY: RefCell<Option<LogsAtTheEnd>> = const { RefCell::new(None) };
}

#[test]
fn destructors_of_thread_local_variables_can_log() {
    let rings = Arc::new(Rings::open(settings(None)).unwrap());
    let mut drainer = rings.drainer().unwrap();
    for log_first in [true, false] {
        let logging = rings.clone();
        named("leaving", move || {
            // The order in which the ring and the variable are destroyed depends on the order of their first use.
            if log_first {
                assert!(log(&logging, b"hello", NO_WAIT));
            }
            EARLY.with(|early| *early.borrow_mut() = Some(LogsAtTheEnd(logging.clone())));
            if !log_first {
                assert!(log(&logging, b"hello", NO_WAIT));
            }
        });
        let mut found = drain(&mut drainer);
        found.sort();
        let expected = [b"hello".to_vec(), b"last words".to_vec()].map(|payload| ("leaving".to_owned(), payload));
        assert_eq!(found, expected);
    }
}

#[test]
fn a_record_made_inside_another_goes_beside_it() {
    let rings = Rings::open(settings(None)).unwrap();
    let mut drainer = rings.drainer().unwrap();
    let mut outer = rings.claim(5, 4, NO_WAIT).unwrap();
    outer.put(b"ou");
    let mut inner = rings.claim(5, 4, NO_WAIT).unwrap();
    inner.put(b"in");
    assert_eq!(rings.claim(5, 4, NO_WAIT).err(), Some(Refused::Nested));
    inner.put(b"ner");
    inner.commit(1, 1);
    outer.put(b"ter");
    outer.commit(1, 1);
    assert!(log(&rings, b"after", NO_WAIT));
    let found: Vec<_> = drain_all(&mut drainer);
    assert_eq!(found, ["outer", "after", "inner", "lost 1"]);
}

fn drain_all(drainer: &mut Drainer) -> Vec<String> {
    drainer.find_rings().unwrap();
    let (mut all, mut lost) = (Vec::new(), 0);
    for ring in drainer.rings() {
        while let Some(entry) = ring.next_entry() {
            match entry.unwrap().what {
                EntryContent::Record { payload, .. } => all.push(String::from_utf8_lossy(payload).into_owned()),
                EntryContent::Long { .. } => panic!("none was made"),
                EntryContent::Lost(found) => lost += found.total(),
            }
        }
        lost += ring.stats().dropped.iter().sum::<u64>();
    }
    all.push(format!("lost {lost}"));
    all
}

#[test]
fn one_thread_can_log_into_several_pools_and_outlive_them() {
    let (one, two) = (Rings::open(settings(None)).unwrap(), Rings::open(settings(None)).unwrap());
    for _ in 0..3 {
        assert!(log(&one, b"one", NO_WAIT) && log(&two, b"two", NO_WAIT));
    }
    let found = drain(&mut two.drainer().unwrap());
    assert_eq!(found.iter().map(|(_, payload)| &payload[..]).collect::<Vec<_>>(), [b"two", b"two", b"two"]);
    drop(two);
    assert!(log(&one, b"one", NO_WAIT));
    assert_eq!(drain(&mut one.drainer().unwrap()).len(), 4);
}

#[test]
fn a_full_ring_waits_as_long_as_it_takes_if_told_so() {
    let rings = Arc::new(Rings::open(settings(None)).unwrap());
    let mut drainer = rings.drainer().unwrap();
    let writer = thread::spawn({
        let rings = rings.clone();
        move || (0..2000u32).for_each(|number| assert!(log(&rings, &number.to_ne_bytes(), LONG)))
    });
    let mut found = Vec::new();
    while found.len() < 2000 {
        found.extend(drain(&mut drainer).into_iter().map(|(_, payload)| payload));
        thread::yield_now();
    }
    writer.join().unwrap();
    assert_eq!(found, (0..2000u32).map(|number| number.to_ne_bytes().to_vec()).collect::<Vec<_>>());
    assert!(rings.stats()[0].waited > 0, "the ring holds fewer than 2000 records");
    assert_eq!(rings.stats()[0].dropped, [0; 12]);
}
