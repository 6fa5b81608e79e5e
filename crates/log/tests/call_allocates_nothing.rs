//! A log call allocates nothing once its packet's buffers and its origin are known; counted, not timed.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    time::Duration,
};

use tampu_bus::{Participant, QosTable, engine::memory::MemoryNet};
use tampu_log::{LogSettings, Logger, debug, info, trace};
use tampu_types::{Domain, SourceName};

/// Counts what the calling thread allocates.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
}

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

fn logger(change: impl FnOnce(&mut LogSettings)) -> Logger {
    let net = MemoryNet::new(1);
    let (domain, source) = (Domain::new("test").unwrap(), SourceName::new("CONTROL/DV01").unwrap());
    let participant = Participant::on(net.engine("host"), domain.clone(), source.clone(), QosTable::default()).unwrap();
    let mut settings = LogSettings::isolated(domain, source);
    change(&mut settings);
    Logger::on(participant, settings).unwrap()
}

#[test]
fn a_call_into_a_packet_allocates_nothing() {
    // One packet takes all records, so that only the calls themselves are counted.
    let logger = logger(|settings| {
        settings.packet_records = 100_000;
        settings.packet_bytes = 100 << 20;
        settings.flush_period = Duration::from_secs(3600);
        settings.close_wait = Duration::from_millis(1);
    });
    let mount = logger.named("mount").for_object("CONTROL/DV01/Mount").for_audiences(["Operator"]);
    let call = |number: u64| info!(mount, "az {:.3} el {number}", number as f64 / 7.0; axis = "az", number = number);
    // The packet's memory grows during the first fill; the second fill reuses it.
    (0..1000).for_each(call);
    assert!(!logger.flush(Duration::from_millis(1)), "nobody reads, so nobody confirms");
    assert_eq!(allocations(|| (0..1000).for_each(call)), 0);
    assert_eq!(allocations(|| trace!(logger, "{}", "disabled".to_owned())), 0);
}

#[test]
fn full_packets_cost_a_few_allocations_at_most() {
    let logger = logger(|settings| {
        settings.full_wait = Duration::from_secs(20);
        settings.close_wait = Duration::from_millis(1);
    });
    let call = |number: u64| debug!(logger, "az {number} of a longer text as real ones are"; number = number);
    (0..20_000).for_each(call);
    let packets = 20_000 / 100;
    let counted = allocations(|| (0..20_000).for_each(call));
    // If the backend has not yet returned a buffer, a packet takes a new one.
    assert!(counted <= 2 * packets, "{counted} allocations for {packets} packets");
    assert_eq!(logger.stats().dropped, 0);
}
