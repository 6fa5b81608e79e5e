//! Wrong passwords do not make the process grow: the memory of a hash is used again; counted, not timed.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tampu_logbook::{
    people::{PeopleError, hashing::HASHING, registry::Settings},
    store::sqlite::SqliteStore,
};

/// Counts large allocations of all threads.
struct Counting;

/// Bytes that only the memory of a hash has here.
const LARGE: usize = 16 << 20;
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LARGE {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn wrong_logins_of_many_addresses_use_the_same_memory() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(dir.path()).unwrap());
    let people = tampu_logbook::people::People::new(store, Settings::default()).unwrap();
    std::thread::scope(|scope| {
        for n in 0..20 {
            let people = &people;
            scope.spawn(move || {
                let wrong = people.by_password(&format!("nobody{n}"), "battery staple", IpAddr::from([192, 0, 2, n]));
                assert!(matches!(wrong, Err(PeopleError::Wrong | PeopleError::Busy)), "{wrong:?}");
            });
        }
    });
    for n in 20..40 {
        let wrong = people.by_password(&format!("nobody{n}"), "battery staple", IpAddr::from([192, 0, 2, n]));
        assert!(matches!(wrong, Err(PeopleError::Wrong)), "{wrong:?}");
    }
    let made = ALLOCATIONS.load(Ordering::Relaxed);
    assert!((1..=HASHING).contains(&made), "{made} blocks for at most {HASHING} hashes at a time");
}
