//! Tests of a process that dies after any store: after each store, the ring's file is read as recovery would find it.

use std::{
    cell::{Cell, RefCell},
    path::{Path, PathBuf},
    rc::Rc,
    time::Duration,
};

use tampu_types::{Domain, Incarnation, SourceName};

use crate::{
    Drainer, Entry, EntryContent, Kind, RingSnapshot, Rings, Settings, Source,
    header::{Counts, LEVELS},
    step::hook,
};

fn rings(directory: &Path) -> Rings {
    let source = Source {
        domain: Domain::new("crash").unwrap(),
        name: SourceName::new("one").unwrap(),
        process: "test".to_owned(),
        host: "here".to_owned(),
        incarnation: Incarnation { boot: 7, pid: std::process::id(), start: 1 },
    };
    let settings = Settings { ring_bytes: 4096, ..Settings::new(Some(directory.to_owned()), source) };
    Rings::open(settings).unwrap()
}

fn payload(number: u64) -> Vec<u8> {
    number.to_ne_bytes().repeat(1 + number as usize % 9)
}

/// Key of an entry: true if it is an early report, and its number.
type Name = (bool, u64);

fn name(entry: &Entry<'_>) -> Name {
    (matches!(entry.what, EntryContent::Lost(lost) if lost.early), entry.number)
}

/// State that is known outside of the ring.
#[derive(Default)]
struct Known {
    /// Calls that returned with the record taken.
    completed: Cell<u64>,
    /// True while another call is under way.
    calling: Cell<bool>,
    /// Calls that returned without.
    refused: Cell<u64>,
    /// Entries handed off: records and losses, as (name, record or how many lost).
    handed_off: RefCell<Vec<(Name, Result<u64, u64>)>>,
    looks: Cell<u64>,
    early: Cell<u64>,
}

/// Checks that recovery finds, together with the records handed off, everything once.
fn look(file: &Path, known: &Known) {
    known.looks.set(known.looks.get() + 1);
    let mut snapshot = RingSnapshot::parse(&std::fs::read(file).unwrap()).unwrap();
    let mut found = known.handed_off.borrow().clone();
    let mut names: Vec<Name> = found.iter().map(|(name, _)| *name).collect();
    while let Some(entry) = snapshot.next_entry() {
        let entry = entry.unwrap();
        // A record handed off but not yet committed appears again with its number, which identifies it.
        let what = match entry.what {
            EntryContent::Record { payload: bytes, .. } => {
                let number = u64::from_ne_bytes(*bytes.first_chunk().unwrap());
                assert_eq!(bytes, payload(number), "whole");
                Ok(number)
            }
            EntryContent::Long { .. } => unreachable!("none is made"),
            EntryContent::Lost(lost) => Err(lost.total()),
        };
        let name = name(&entry);
        match found.iter().find(|(before, _)| *before == name) {
            Some((_, before)) => assert_eq!(*before, what, "the same record under the same number"),
            None => {
                names.push(name);
                found.push((name, what));
            }
        }
    }
    let numbers: Vec<u64> = names.iter().filter(|(early, _)| !early).map(|(_, number)| *number).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "numbers have no holes");
    let records: Vec<u64> = found.iter().filter_map(|(_, what)| what.ok()).collect();
    let (completed, under_way) = (known.completed.get(), u64::from(known.calling.get()));
    assert!((completed..=completed + under_way).contains(&(records.len() as u64)), "{} of {completed}", records.len());
    assert!(records.is_sorted() && records.windows(2).all(|pair| pair[0] < pair[1]), "in order and once");
    let lost: u64 = found.iter().filter_map(|(_, what)| what.err()).sum();
    assert!((known.refused.get()..=known.refused.get() + under_way).contains(&lost), "{lost} of {}", known.refused.get());
}

fn drain(drainer: &mut Drainer, known: &Known, most: usize, commit: bool) {
    for ring in drainer.rings() {
        for _ in 0..most {
            let Some(entry) = ring.next_entry() else { break };
            let entry = entry.unwrap();
            let what = match entry.what {
                EntryContent::Record { payload, .. } => Ok(u64::from_ne_bytes(*payload.first_chunk().unwrap())),
                EntryContent::Long { .. } => unreachable!("none is made"),
                EntryContent::Lost(lost) => Err(lost.total()),
            };
            known.handed_off.borrow_mut().push((name(&entry), what));
        }
        if let Some(entry) = ring.unreported()
            && let EntryContent::Lost(lost) = entry.what
        {
            known.early.set(known.early.get() + 1);
            known.handed_off.borrow_mut().push((name(&entry), Err(lost.total())));
        }
        if commit {
            let mark = ring.mark();
            ring.commit(&mark);
        }
    }
}

#[test]
fn nothing_is_lost_or_doubled_whichever_store_was_the_last() {
    let directory = tempfile::tempdir().unwrap();
    let rings = rings(directory.path());
    let site = rings.define(Kind::Site, b"site").unwrap();
    let life = directory.path().join(rings.incarnation().to_string());
    let known = Rc::new(Known::default());
    let mut drainer = rings.drainer().unwrap();
    let mut file: Option<PathBuf> = None;
    let mut fast = 0;
    for number in 0..1000 {
        let bytes = payload(number);
        known.calling.set(true);
        // Every other call takes the fast path, if it has room.
        // SAFETY: the rings live; exactly the available bytes are copied.
        let room = if number % 2 == 0 { unsafe { rings.pool().room(bytes.len()) } } else { None };
        let written = room.is_some();
        if let Some(room) = room {
            // SAFETY: as above.
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), room.place(), bytes.len());
                room.commit(site, 1);
            }
        }
        let taken = written || {
            let claimed = rings.claim(bytes.len(), (number % LEVELS as u64) as u8, Duration::ZERO);
            claimed.is_ok_and(|mut slot| {
                slot.put(&bytes);
                slot.commit(site, 1);
                true
            })
        };
        fast += u64::from(written);
        let count = if taken { &known.completed } else { &known.refused };
        count.set(count.get() + 1);
        known.calling.set(false);
        if file.is_none() {
            // From the second call on: the ring exists by then.
            let path = life.join("ring-0");
            let (known, path_looked_at) = (known.clone(), path.clone());
            hook::set(Some(Box::new(move || look(&path_looked_at, &known))));
            file = Some(path);
            drainer.find_rings().unwrap();
        }
        // Slow enough that the ring is sometimes full.
        match number % 80 {
            60 => drain(&mut drainer, &known, 7, true),
            // All entries up to some losses. These are reported early, and not yet committed when the ring has more.
            78 => drain(&mut drainer, &known, 1000, number % 160 < 80),
            79 => drain(&mut drainer, &known, 1000, true),
            _ => {}
        }
    }
    hook::set(None);
    look(&file.unwrap(), &known);
    let dropped: Counts = rings.stats()[0].dropped;
    assert!(known.refused.get() > 20 && known.refused.get() == dropped.iter().sum::<u64>());
    assert!(known.early.get() > 2, "{} reported early", known.early.get());
    assert!(known.looks.get() > 2000, "{} looks", known.looks.get());
    assert!(fast > 100, "{fast} the fast way");
}
