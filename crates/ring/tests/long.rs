//! Records longer than a ring takes: each in a file of its own.

mod support;

use std::{fs, path::Path};

use support::{NO_WAIT, WARNING, log, settings};
use tampu_ring::{BadLongPayload, Drainer, EntryContent, LONGEST_PAYLOAD, Refused, RingStorage, Rings, Settings, recover};

const LIMIT: u64 = 1 << 20;

fn rings(directory: &Path) -> (Rings, std::path::PathBuf) {
    let rings = Rings::open(Settings { ring_bytes: 4096, ..settings(Some(directory.to_owned())) }).unwrap();
    let RingStorage::Files { directory, .. } = rings.storage() else { panic!("{:?}", rings.storage()) };
    (rings, directory)
}

fn files(life: &Path) -> usize {
    let names = fs::read_dir(life).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("long-")).count()
}

fn put(rings: &Rings, length: usize) -> Result<(), Refused> {
    rings.put_long(&vec![7; length], LIMIT, (1, 2), WARNING, NO_WAIT)
}

#[test]
fn a_long_record_stands_in_the_order_of_the_others_and_its_file_goes_when_it_is_handed_off() {
    let directory = tempfile::tempdir().unwrap();
    let (rings, life) = rings(directory.path());
    assert_eq!(rings.claim(2000, WARNING, NO_WAIT).err(), Some(Refused::Long));
    assert!(log(&rings, b"before", NO_WAIT));
    put(&rings, 100_000).unwrap();
    assert!(log(&rings, b"after", NO_WAIT));
    assert_eq!(rings.stats()[0].dropped, [0; 12], "a claim that is too long is not counted");

    let mut drainer = rings.drainer().unwrap();
    let longs = drainer.longs();
    let ring = &mut drainer.rings()[0];
    let mut kinds = Vec::new();
    let mut found = None;
    while let Some(entry) = ring.next_entry() {
        let entry = entry.unwrap();
        if let EntryContent::Long { site, voice, payload } = entry.what {
            assert_eq!((site, voice, longs.read(0, &payload).unwrap()), (1, 2, vec![7; 100_000]));
            found = Some(payload);
        }
        kinds.push((entry.number, matches!(entry.what, EntryContent::Long { .. })));
    }
    assert_eq!(kinds, [(0, false), (1, true), (2, false)]);
    let mark = ring.mark();
    ring.commit(&mark);
    assert_eq!(files(&life), 1);
    longs.remove(0, found.unwrap().position);
    assert_eq!(files(&life), 0);
    assert!(matches!(longs.read(0, &found.unwrap()), Err(BadLongPayload::Place(_))));
}

#[test]
fn what_the_dead_left_is_read_and_a_changed_file_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let (alive, life) = rings(directory.path());
    put(&alive, 5000).unwrap();
    put(&alive, 6000).unwrap();
    // Its records are unread, so its directory stays as after a death.
    drop(alive);
    let mut recovery = recover(&life).unwrap();
    let ring = &mut recovery.rings[0];
    let mut next = || match ring.next_entry().unwrap().unwrap().what {
        EntryContent::Long { payload, .. } => payload,
        other => panic!("{other:?}"),
    };
    let (first, second) = (next(), next());
    assert_eq!(recovery.longs.read(0, &first).unwrap().len(), 5000);
    let file = life.join(format!("long-0-{}", second.position));
    fs::write(&file, vec![8; 6000]).unwrap();
    assert!(matches!(recovery.longs.read(0, &second), Err(BadLongPayload::Changed(_))));
    assert!(ring.next_entry().is_none());
    let mark = ring.mark();
    ring.commit(&mark).unwrap();
    assert!(recovery.remove().unwrap().is_empty());
    assert!(!life.exists());
}

#[test]
fn files_that_were_handed_off_and_left_go_with_the_next_drainer() {
    let directory = tempfile::tempdir().unwrap();
    let (rings, life) = rings(directory.path());
    put(&rings, 5000).unwrap();
    let mut drainer = Drainer::attach(&life).unwrap();
    let ring = &mut drainer.rings()[0];
    ring.next_entry().unwrap().unwrap();
    let mark = ring.mark();
    ring.commit(&mark);
    put(&rings, 5000).unwrap();
    // The drainer ends here, before it has removed the first file.
    drop(drainer);
    assert_eq!(files(&life), 2);
    let _drainer = rings.drainer().unwrap();
    assert_eq!(files(&life), 1, "the second is still to be handed off");
}

#[test]
fn what_cannot_be_taken_is_counted_and_told() {
    let directory = tempfile::tempdir().unwrap();
    let (sheltered, _life) = rings(directory.path());
    assert_eq!(put(&sheltered, LONGEST_PAYLOAD as usize + 1), Err(Refused::Full));
    put(&sheltered, LIMIT as usize + 1).expect("one alone is never too much");
    assert_eq!(put(&sheltered, 1), Err(Refused::Full), "the files are full");
    assert!(log(&sheltered, b"after", NO_WAIT));
    let mut drainer = sheltered.drainer().unwrap();
    let ring = &mut drainer.rings()[0];
    let mut lost = 0;
    while let Some(entry) = ring.next_entry() {
        if let EntryContent::Lost(reported) = entry.unwrap().what {
            lost += reported.counts[usize::from(WARNING)];
        }
    }
    assert_eq!(lost, 2);

    let memory_reason = Rings::open(settings(None)).unwrap();
    assert_eq!(put(&memory_reason, 5000), Err(Refused::Long), "there are no files");
    assert_eq!(memory_reason.stats().iter().flat_map(|ring| ring.dropped).sum::<u64>(), 0);
}
