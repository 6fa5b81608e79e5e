//! A record that is printed costs no allocation, in whatever thread; counted, not timed.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tampu_bus::{Participant, QosTable, engine::memory::MemoryNet};
use tampu_log::{LogSettings, Logger, Threshold, info};
use tampu_types::{Domain, Level, SourceName};

/// Counts what all threads allocate.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const RECORDS: u64 = 50_000;

#[test]
fn a_printed_record_allocates_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let net = MemoryNet::new(1);
    let (domain, source) = (Domain::new("test").unwrap(), SourceName::new("CONTROL/DV01").unwrap());
    let participant = Participant::on(net.engine("host"), domain.clone(), source.clone(), QosTable::default()).unwrap();
    let mut settings = LogSettings::isolated(domain, source);
    (settings.central, settings.local) = (Threshold::Off, Threshold::From(Level::Trace));
    settings.output = path.to_str().unwrap().parse().unwrap();
    settings.full_wait = Duration::from_secs(60);
    let logger = Logger::on(participant, settings).unwrap();
    let log = || {
        for number in 0..RECORDS {
            info!(logger, "antenna {} at {} is {}", number, number % 360, "tracking"; band = 4);
        }
        assert!(logger.flush(Duration::from_secs(60)));
    };
    // Buffers that are reused between records exist after the first one.
    log();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    log();
    let counted = ALLOCATIONS.load(Ordering::Relaxed) - before;
    // A pass over the rings may allocate, and other threads allocate for themselves.
    assert!(counted < RECORDS / 20, "{counted} allocations for {RECORDS} records");
    assert_eq!(std::fs::read_to_string(path).unwrap().lines().count() as u64, 2 * RECORDS);
}
