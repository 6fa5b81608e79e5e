//! Answers that come while somebody decides about a whole thread.

use tampu_logbook::{
    book::Book,
    entry::{EntryRef, NewEntry},
    store::{Entries, StoreError, Transactions, pages::thread_entries, sqlite::SqliteStore},
};

#[test]
fn an_answer_that_nobody_has_seen_is_neither_deleted_nor_moved() {
    let directory = tempfile::Builder::new().prefix("tampu-").tempdir_in("/tmp").unwrap();
    let store = SqliteStore::open(directory.path()).unwrap();
    for name in ["Shift", "Archive"] {
        store.put_book(&Book { name: name.to_owned(), ..Book::default() }).unwrap();
    }
    let post = |parent| store.post(NewEntry { book: "Shift".to_owned(), parent, ..NewEntry::default() }, vec![], "zoe").unwrap();
    let at = |id| EntryRef::new("Shift", id);
    for nested in [false, true] {
        let first = post(None);
        let second = post(Some(first.id));
        let seen = [first.id, second.id];
        let third = post(Some(if nested { second.id } else { first.id }));
        let refused =
            [store.delete_seen(&first, "max", &seen).map(|_| ()), store.move_seen(&first, "Archive", "max", &seen).map(|_| ())];
        for refused in refused {
            assert!(matches!(refused, Err(StoreError::Answered(of)) if of == first));
        }
        assert!([&first, &second, &third].iter().all(|at| store.entry(at).is_ok()), "nothing was changed");
        // A caller who has seen every reply can.
        let all = [first.id, second.id, third.id];
        if nested {
            assert_eq!(store.delete_seen(&first, "max", &all).unwrap(), 3);
        } else {
            assert_eq!(thread_entries(&store, &store.move_seen(&first, "Archive", "max", &all).unwrap(), true).count(), 3);
        }
        assert!(all.iter().all(|id| matches!(store.entry(&at(*id)), Err(StoreError::Gone(_)))));
    }
}
