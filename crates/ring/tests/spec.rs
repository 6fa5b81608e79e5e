//! The vectors of `spec/log-ring.md`, held against the code.

#[path = "../../types/tests/support/page.rs"]
mod page;

use std::{path::Path, time::Duration};

use page::{hex_dump, table};
use tampu_ring::{Conversion, Cursor, Definitions, EntryContent, Kind, RingFile, RingSnapshot, Rings, Settings, Source, Thread};
use tampu_types::{Domain, Incarnation, SourceName};

const PAGE: &str = "log-ring.md";
/// The page's dumps, in order.
const FIXED: usize = 0;
const CURSOR: usize = 1;
const DATA: usize = 2;
const DICTIONARY: usize = 3;
const CLOCK: usize = 4;

fn incarnation() -> Incarnation {
    Incarnation { boot: 0x1a2b_3c4d, pid: 4711, start: 1_795_248_000_123_456_789 }
}

fn source() -> Source {
    Source {
        domain: Domain::new("alma").unwrap(),
        name: SourceName::new("CONTROL/DV01").unwrap(),
        process: "mountContainer".to_owned(),
        host: "gw01".to_owned(),
        incarnation: incarnation(),
    }
}

fn same(written: &[u8], dump: &[u8]) {
    let print = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    assert_eq!(print(written), print(dump), "left: written now; right: the page's");
}

/// A ring file with the page's data.
fn ring() -> Vec<u8> {
    let (fixed, data) = (hex_dump(PAGE, FIXED), hex_dump(PAGE, DATA));
    let mut file = vec![0; 8192];
    file[..fixed.len()].copy_from_slice(&fixed);
    file[128..136].copy_from_slice(&(data.len() as u64).to_ne_bytes());
    file[4096..4096 + data.len()].copy_from_slice(&data);
    file
}

#[test]
fn the_fixed_header() {
    let file = RingFile { header: 4096, number: 0, size: 4096, incarnation: incarnation() };
    same(&file.encode(), &hex_dump(PAGE, FIXED));
    assert_eq!(RingFile::decode(&hex_dump(PAGE, FIXED), 8192), Ok(file));
}

#[test]
fn records_are_read_and_leave_the_cursor_where_the_page_has_it() {
    let mut snapshot = RingSnapshot::parse(&ring()).unwrap();
    let thread = Thread::new(4713, "mount");
    let entry = snapshot.next_entry().unwrap().unwrap();
    assert_eq!((entry.number, entry.ticks, entry.thread), (0, 1500, &thread));
    assert_eq!(
        entry.what,
        EntryContent::Record { site: 1, voice: 2, payload: &[&269.9f64.to_ne_bytes()[..], b"DV01!"].concat() }
    );
    let entry = snapshot.next_entry().unwrap().unwrap();
    let EntryContent::Lost(lost) = entry.what else { panic!("{entry:?}") };
    assert_eq!((entry.number, entry.ticks, lost.first, lost.last), (1, 1900, 1600, 1700));
    assert_eq!(lost.counts, [0, 0, 0, 0, 7, 0, 1, 0, 0, 0, 0, 0]);
    assert!(snapshot.next_entry().is_none());
    let expected = Cursor { position: 216, number: 2, thread, reported: lost.counts };
    assert_eq!(snapshot.mark(), expected);

    for turn in [0u64, 1] {
        let mut file = ring();
        file[392..400].copy_from_slice(&turn.to_ne_bytes());
        let (place, cursor) = (512 + 256 * turn as usize, hex_dump(PAGE, CURSOR));
        file[place..place + cursor.len()].copy_from_slice(&cursor);
        file[288..384].copy_from_slice(&cursor[88..]);
        let mut snapshot = RingSnapshot::parse(&file).unwrap();
        assert_eq!(snapshot.mark(), expected);
        assert!(snapshot.next_entry().is_none(), "everything has been reported");
        // One more of level 4, which the process did not report before its death.
        file[288 + 32] += 1;
        let mut snapshot = RingSnapshot::parse(&file).unwrap();
        let entry = snapshot.next_entry().unwrap().unwrap();
        assert!(matches!(entry.what, EntryContent::Lost(lost) if entry.number == 2 && lost.counts[4] == 1 && lost.total() == 1));
    }
}

fn read(directory: &Path, name: &str) -> Vec<u8> {
    std::fs::read(directory.join(incarnation().to_string()).join(name)).unwrap()
}

#[test]
fn a_process_writes_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings { ring_bytes: 4096, ..Settings::new(Some(directory.path().to_owned()), source()) };
    let rings = Rings::open(settings).unwrap();
    assert_eq!(rings.define(Kind::Site, b"Mount.cpp:52").unwrap(), 1);
    assert_eq!(rings.define(Kind::Voice, b"mount").unwrap(), 2);
    std::thread::scope(|scope| {
        let work = || {
            let mut slot = rings.claim(13, 4, Duration::ZERO).unwrap();
            slot.put_array(269.9f64.to_ne_bytes());
            slot.put(b"DV01!");
            slot.commit(1, 2);
            // Seven records without room, then room for the note that reports them.
            (0..7).for_each(|_| rings.count_lost(4));
            rings.count_lost(6);
            drop(rings.claim(1, 4, Duration::ZERO).unwrap());
        };
        std::thread::Builder::new().name("mount".to_owned()).spawn_scoped(scope, work).unwrap();
    });
    same(&read(directory.path(), "dictionary"), &hex_dump(PAGE, DICTIONARY));
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/log-ring.md")).unwrap();
    let (text, _) = page.split_once("```source\n").unwrap().1.split_once("```").unwrap();
    assert_eq!(String::from_utf8(read(directory.path(), "source")).unwrap(), text);
    assert_eq!(Source::parse(text.as_bytes()), Ok(source()));

    // The time and the thread differ in each run, so they are taken from the page.
    let dump = hex_dump(PAGE, DATA);
    let (fixed, mut file) = (hex_dump(PAGE, FIXED), read(directory.path(), "ring-0"));
    let header = file.len() - 4096;
    assert_eq!(header, u32::from_ne_bytes(file[16..20].try_into().unwrap()) as usize);
    if header == 4096 {
        same(&file[..fixed.len()], &fixed);
    }
    let data = &mut file[header..header + dump.len()];
    for (place, length) in [(0, 8), (24, 4), (40, 8), (80, 8), (104, 16)] {
        data[place..place + length].copy_from_slice(&dump[place..place + length]);
    }
    // The bytes behind a name and a payload are undefined; in a new ring they are zeros.
    same(data, &dump);
}

#[test]
fn the_dictionary() {
    let (definitions, cut) = Definitions::parse(&hex_dump(PAGE, DICTIONARY)).unwrap();
    assert!(cut.is_none() && definitions.len() == 2);
    let one = definitions.get(2).unwrap();
    assert_eq!((one.kind, &one.bytes[..]), (Kind::Voice, &b"mount"[..]));
}

#[test]
fn the_clock_page() {
    let mut page = hex_dump(PAGE, CLOCK);
    page.resize(4096, 0);
    let conversion = Conversion::parse(&page).unwrap();
    assert_eq!(conversion.steps().collect::<Vec<_>>(), [(3_001_000, 1_000_000_000)]);
    for row in table(PAGE, "ticks") {
        assert_eq!(conversion.utc(row[0].parse().unwrap()), row[1].parse::<i64>().unwrap(), "{row:?}");
    }
}
