use super::{super::frame::tests::packet, *};

fn domain() -> Domain {
    Domain::new("test").unwrap()
}

fn open(dir: &Path, options: &SpoolOptions) -> Store {
    Store::open(dir, &domain(), options.clone()).unwrap()
}

/// The numbers of the packets that would be replayed, and the damage met on the way.
fn replayed(store: &mut Store) -> Vec<u64> {
    let (mut numbers, mut number) = (Vec::new(), 0);
    while let Some((found, path, end)) = store.after(number) {
        number = found;
        let mut bytes = fs::read(path).unwrap();
        bytes.truncate(end as usize);
        for found in file::walk(&bytes, file::FILES.check_header(&bytes, &domain()).unwrap()) {
            if let Found::Frame(_, Frame::Packet(packet)) = found {
                numbers.push(packet.header.first);
            }
        }
    }
    numbers
}

fn fill(store: &mut Store, source: &str, numbers: Range<u64>) -> Vec<Room> {
    let rooms = numbers.map(|number| store.take(&packet(source, number, 2, &[7; 100]))).collect();
    store.commit(Time(1)).unwrap();
    rooms
}

#[test]
fn what_is_committed_is_there_after_a_restart_and_goes_by_files() {
    let dir = tempfile::tempdir().unwrap();
    let options = SpoolOptions { file: 500, ..SpoolOptions::default() };
    let mut store = open(dir.path(), &options);
    assert!(matches!(Store::open(dir.path(), &domain(), options.clone()), Err(SpoolError::InUse(_))));
    for number in 0..10 {
        assert_eq!(fill(&mut store, "CORR", number..number + 1), [Room::Free]);
    }
    // Written, and not committed when the node dies.
    store.take(&packet("CORR", 10, 2, b"x"));
    drop(store);
    let mut store = open(dir.path(), &options);
    assert_eq!(replayed(&mut store), (0..10).collect::<Vec<_>>());
    let account = store.accounts()["CORR"];
    assert_eq!((account.records, account.bytes), (20, store.bytes()));
    assert_eq!(store.ledger().taken(Incarnation { boot: 1, pid: 2, start: 3 }, 4), [(0, 10)]);
    // New packets are written to a new file, behind the others.
    fill(&mut store, "CORR", 20..21);
    let first = store.after(0).unwrap().0;
    store.remove(first).unwrap();
    let left = replayed(&mut store);
    assert!(left.len() < 11 && left.last() == Some(&20), "{left:?}");
    assert_eq!(store.accounts()["CORR"].records, 2 * left.len() as u64);
    while let Some((number, ..)) = store.after(0) {
        store.remove(number).unwrap();
    }
    assert!(store.is_empty() && store.bytes() == 0 && store.accounts().is_empty());
    drop(store);
    let mut store = open(dir.path(), &options);
    assert!(store.is_empty() && store.faults.is_empty());
    fill(&mut store, "CORR", 30..31);
    assert_eq!(replayed(&mut store), [30]);
}

#[test]
fn beyond_a_bound_the_newest_is_refused_and_counted_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let options = SpoolOptions { per_source: 1200, total: 2500, ..SpoolOptions::default() };
    let mut store = open(dir.path(), &options);
    let rooms = fill(&mut store, "loop", 0..20);
    let kept = rooms.iter().take_while(|room| **room == Room::Free).count();
    assert!((3..8).contains(&kept) && rooms[kept..].iter().all(|room| *room == Room::SourceFull), "{rooms:?}");
    // Its neighbour has a share of its own, until the sources together fill the spool.
    assert!(fill(&mut store, "else", 0..kept as u64).iter().all(|room| *room == Room::Free));
    assert!(fill(&mut store, "third", 0..5).contains(&Room::Full));
    drop(store);
    let store = open(dir.path(), &options);
    let lost = store.ledger().lost()["loop"];
    assert_eq!((lost.records, lost.bytes), (2 * (20 - kept as u64), 100 * (20 - kept as u64)));
    assert!(store.bytes() <= 2500);
}

#[test]
fn a_torn_file_is_cut_a_damaged_one_set_aside_and_the_rest_served() {
    let dir = tempfile::tempdir().unwrap();
    let options = SpoolOptions { file: 1, ..SpoolOptions::default() };
    let mut store = open(dir.path(), &options);
    for file in 0..4 {
        fill(&mut store, "CORR", file * 3..file * 3 + 3);
    }
    drop(store);
    let path = |number: u64| dir.path().join(file::FILES.file_name(number));
    let change = |number: u64, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = fs::read(path(number)).unwrap();
        change(&mut bytes);
        fs::write(path(number), bytes).unwrap();
    };
    // Changes in the middle, in the header and at the end.
    change(1, &|bytes| bytes[48 + 248 + 100] ^= 1);
    change(2, &|bytes| bytes[0] = b'X');
    change(4, &|bytes| bytes.truncate(bytes.len() - 10));
    let mut store = open(dir.path(), &options);
    let told: Vec<String> =
        store.faults.iter().map(|fault| format!("{} {}", fault.file.file_name().unwrap().display(), fault.what)).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].starts_with("spool-00000001.wal damaged (the frame's checksum is wrong)"), "{told:?}");
    assert!(told[1].starts_with("spool-00000002.wal set aside, as .damaged, and not read: it does not begin"), "{told:?}");
    assert!(told[2].starts_with("spool-00000004.wal the last write was interrupted"), "{told:?}");
    assert_eq!(replayed(&mut store), [0, 2, 6, 7, 8, 9, 10]);
    while let Some((number, ..)) = store.after(0) {
        store.remove(number).unwrap();
    }
    let mut left: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    left.sort();
    assert_eq!(left, ["ledger.json", "spool-00000001.wal.damaged", "spool-00000002.wal.damaged", "spool.lock"]);
    // A number is not used again: files that were set aside stay.
    fill(&mut store, "CORR", 50..51);
    assert_eq!(store.after(0).unwrap().0, 5);
}
