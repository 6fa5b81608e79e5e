//! Looks at entries, and the numbers about a store.

use tampu_logbook::{
    book::Book,
    entry::{EntryRef, NewEntry},
    store::{
        EntryLooks, LookCount, LooksOnDay, Store,
        report::{ConnectionReport, StoreSizes},
    },
};

fn look(book: &str, id: u32, day: u32, looks: u64) -> LookCount {
    LookCount { at: EntryRef::new(book, id), day, looks }
}

/// Looks add up by entry and day, go along with an entry, and are no change of it.
pub fn looks_are_counted_by_day(store: &dyn Store) {
    for book in ["Shift", "Other"] {
        store.put_book(&Book::new(book, vec![])).unwrap();
    }
    for _ in 0..2 {
        store.post(NewEntry { book: "Shift".to_owned(), ..NewEntry::default() }, vec![], "zoe").unwrap();
    }
    let last = store.last_change().unwrap();
    store.add_looks(&[look("shift", 1, 20_000, 2), look("Shift", 1, 20_001, 1), look("Shift", 2, 20_001, 5)]).unwrap();
    store.add_looks(&[look("SHIFT", 1, 20_001, 3), look("Shift", 7, 20_001, 1), look("None", 1, 20_001, 1)]).unwrap();
    store.add_looks(&[]).unwrap();
    let at = EntryRef::new("Shift", 1);
    let days = vec![LooksOnDay { day: 20_001, looks: 4 }, LooksOnDay { day: 20_000, looks: 2 }];
    assert_eq!(store.looks(&at).unwrap(), EntryLooks { looks: 6, days: days.clone() });
    assert_eq!(store.look_count(&EntryRef::new("Shift", 2)).unwrap(), 5);
    assert_eq!(store.looks(&EntryRef::new("Shift", 7)).unwrap(), EntryLooks::default());
    assert_eq!(store.last_change().unwrap(), last, "nobody is notified of a look");
    let moved = store.move_to(&at, "Other", "zoe", false).unwrap();
    assert_eq!(store.looks(&moved).unwrap(), EntryLooks { looks: 6, days });
    assert_eq!(store.look_count(&at).unwrap(), 0);
}

/// The numbers follow what is done.
pub fn the_report_has_its_numbers(store: &dyn Store) {
    let before = store.report();
    store.put_book(&Book::new("Shift", vec![])).unwrap();
    let new = NewEntry { book: "Shift".to_owned(), ..NewEntry::default() };
    store.post(new.clone(), vec![], "zoe").unwrap();
    assert!(store.post(NewEntry { book: "None".to_owned(), ..new }, vec![], "zoe").is_err());
    let after = store.report();
    assert_eq!((after.committed - before.committed, after.failed - before.failed), (2, 1));
    let uses: Vec<&str> = after.connections.iter().map(|one| one.used_to).collect();
    assert_eq!(uses, ["write", "read", "search"]);
    let busy = |one: &ConnectionReport| one.busy > one.open || one.waiting > 0;
    assert!(!after.connections.iter().any(busy), "{after:?}");
    let StoreSizes { bytes, .. } = after.sizes.unwrap();
    assert!(bytes > 0, "{after:?}");
}
