//! Signatures: who may not sign twice, what they lock, how they follow an entry, and their verification.

use tampu_logbook::{
    entry::{Content, EntryRef},
    search::Search,
    signature::{
        NewSignature, RecordKind, Signature,
        verify::{Verification, verify},
    },
    store::{MAX_ATTACHMENT, PagePart, Store, StoreError, purge::Purge, sqlite::SqliteStore},
};
use tampu_types::Time;

use crate::support::{entry, found, shift_book};

pub fn sign(store: &dyn Store, at: &EntryRef, by: &str, meaning: &str, locks: bool) -> Result<Signature, StoreError> {
    let revision = store.entry(at)?.revision;
    let [by, name, meaning] = [by, &format!("{by} Quartz"), meaning].map(str::to_owned);
    store.sign(&NewSignature { at: at.clone(), revision, by, name, meaning, method: "password".to_owned(), locks })
}

pub fn verified(store: &dyn Store) -> Verification {
    verify(store, None, &[], &mut |_, _| true).unwrap()
}

fn edit(store: &dyn Store, at: &EntryRef, text: &str) -> Result<u32, StoreError> {
    let content = Content { text: text.to_owned(), ..store.entry(at)?.content };
    store.edit(at, content, vec![], "zoe", None)
}

pub fn signatures(store: &dyn Store) {
    let beside = tempfile::tempdir().unwrap();
    // A database has no directory of its own.
    store.signing_keys().keep_beside(beside.path());
    store.put_book(&shift_book("A")).unwrap();
    store.put_book(&shift_book("B")).unwrap();
    assert_eq!(verified(store).signatures, 0);
    let post = |text: &str| store.post(entry("A", "Zoe", "about", text), vec![], "zoe").unwrap();

    // A signature is of a revision, and each person gives a meaning once.
    let at = post("one");
    let first = sign(store, &at, "zoe", "author", false).unwrap();
    assert_eq!((first.number, first.revision, &*first.name, &*first.changed_by), (1, 0, "zoe Quartz", "zoe"));
    assert!(matches!(sign(store, &at, "zoe", "author", false), Err(StoreError::SignedAlready { .. })));
    sign(store, &at, "max", "reviewed", false).unwrap();
    let old = NewSignature {
        at: at.clone(),
        revision: 7,
        by: "zoe".to_owned(),
        name: String::new(),
        meaning: "approved".to_owned(),
        method: "password".to_owned(),
        locks: false,
    };
    assert!(matches!(store.sign(&old), Err(StoreError::Changed { expected: 7, is: 0, .. })));
    assert!(matches!(store.sign(&NewSignature { at: EntryRef::new("A", 99), ..old.clone() }), Err(StoreError::NoEntry(_))));

    // It stands at the entry wherever the entry is read, and stays when the entry changes.
    assert_eq!(edit(store, &at, "two").unwrap(), 1);
    let third = sign(store, &at, "zoe", "author", false).unwrap();
    assert_eq!((third.number, third.revision), (3, 1));
    assert_eq!(third.previous, store.signatures(&at).unwrap()[1].hash());
    let shown: Vec<u32> = store.entry(&at).unwrap().signatures.iter().map(|signature| signature.revision).collect();
    assert_eq!(shown, [0, 0, 1]);
    assert_eq!(found(store, "two").hits[0].entry.signatures.len(), 3);
    assert_eq!(store.thread_page(&at, PagePart::default(), false).unwrap().entries[0].signatures.len(), 3);
    let search = Search { query: "two".to_owned(), ..Search::default() };
    assert!(store.search(&search, &Default::default()).unwrap().hits[0].entry.signatures[2] == third);

    // A copy has none, and a moved entry keeps them.
    let copy = store.copy(&at, "B", "zoe", false).unwrap();
    assert!(store.entry(&copy).unwrap().signatures.is_empty());
    let moved = store.move_to(&at, "B", "zoe", false).unwrap();
    assert_eq!(store.entry(&moved).unwrap().signatures.len(), 3);
    sign(store, &moved, "max", "approved", false).unwrap();
    let deleted = post("gone");
    sign(store, &deleted, "zoe", "author", false).unwrap();
    store.delete(&deleted, "zoe", false).unwrap();
    assert_eq!(store.signatures(&deleted).unwrap().len(), 1);
    let sound = verified(store);
    assert_eq!((sound.signatures, &sound.faults[..]), (5, &[][..]), "{:?}", sound.faults);
    assert_eq!(sound.keys, std::slice::from_ref(&first.key));

    // A lock: replies and copies only.
    let upload = store.upload(&mut "bytes".as_bytes(), MAX_ATTACHMENT).unwrap();
    let mut new = entry("A", "Zoe", "about", "locked");
    new.content.attachments = vec![upload.attachment("plot.txt", Time(5))];
    let locked = store.post(new, vec![upload], "zoe").unwrap();
    sign(store, &locked, "zoe", "approved", true).unwrap();
    assert!(matches!(edit(store, &locked, "other"), Err(StoreError::Signed(_))));
    assert!(matches!(store.delete(&locked, "zoe", true), Err(StoreError::Signed(_))));
    assert!(matches!(store.move_to(&locked, "B", "zoe", true), Err(StoreError::Signed(_))));
    let reply =
        store.post(tampu_logbook::entry::NewEntry { parent: Some(locked.id), ..entry("A", "Max", "re", "reply") }, vec![], "max");
    assert_eq!(store.entry(&reply.unwrap()).unwrap().thread, locked.id);
    sign(store, &locked, "max", "reviewed", true).unwrap();
    store.copy(&locked, "B", "zoe", false).unwrap();
    assert_eq!(verified(store).faults, []);

    // A purge is a record of its own, also for a moved entry.
    let purge = |at: &EntryRef, part: Purge| store.purge(at, &Purge { reason: "a password".to_owned(), ..part }, "root").unwrap();
    purge(&moved, Purge { all_but_last: true, ..Purge::default() });
    purge(&locked, Purge { attachment: Some("plot.txt".to_owned()), ..Purge::default() });
    let records = store.entry(&locked).unwrap().signatures;
    let kinds: Vec<RecordKind> = records.iter().map(|record| record.kind).collect();
    assert_eq!(kinds, [RecordKind::Signature, RecordKind::Signature, RecordKind::Purge]);
    assert!(records[2].meaning.contains("a password") && records[2].by == "root");
    assert!(matches!(edit(store, &locked, "other"), Err(StoreError::Signed(_))), "a purge does not unlock");
    let after = verified(store);
    assert_eq!((after.faults.len(), after.signatures), (0, 7), "{:?}", after.faults);
    assert!(after.purged >= 2);
    purge(&locked, Purge::default());
    assert_eq!(verified(store).faults, []);

    // A new name of the logbook changes nothing.
    store.rename_book("A", "C", "root").unwrap();
    assert_eq!(verified(store).faults, []);
    store.rename_book("C", "A", "root").unwrap();

    // A copy of the store can be verified with the public key, and has no secret.
    let to = tempfile::tempdir().unwrap();
    store.backup(to.path(), &mut |_, _| true).unwrap();
    assert!(!to.path().join("signing/key").exists());
    let copy = SqliteStore::open(to.path()).unwrap();
    let again = verified(&copy);
    assert_eq!((again.signatures, &again.faults[..]), (7, &[][..]), "{:?}", again.faults);
    let other = sign(&copy, &moved, "kim", "approved", false).unwrap();
    assert_ne!(other.key, first.key, "a restored copy has a key of its own");
    assert_eq!(verified(&copy).faults, []);
}
