//! Many at once, imports, records, changes, backups: and that all of it is as it should be.

use std::time::Duration;

use tampu_logbook::{
    book::Book,
    entry::{Change, Content, EntryRef, NewEntry},
    search::Count,
    store::{Entries, ImportOutcome, Imported, MAX_ATTACHMENT, Maintenance, PagePart, Store, StoreError, sqlite::SqliteStore},
};
use tampu_types::Time;

use crate::support::{entry, found, ids, shift_book};

pub fn many_at_once(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            scope.spawn(move || {
                for n in 0..15 {
                    let text = format!("writer{writer} number{n}");
                    let at = store.post(entry("A", "Zoe", "s", &text), vec![], "zoe").unwrap();
                    // A posted entry is found at once.
                    assert_eq!(ids(store, &format!("\"{text}\"")), [at.id]);
                }
            });
        }
        // More threads than connections.
        for _ in 0..12 {
            scope.spawn(|| {
                let mut last = 0;
                while last < 60 {
                    let Some(Count::Exactly(count)) = found(store, "number*").count else { panic!("it is counted") };
                    assert!(count >= last, "{count} after {last}");
                    last = count;
                }
            });
        }
    });
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
}

/// A check finds no faults while others post.
pub fn checking_beside_writers(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    let post = |n: u32| {
        let upload = store.upload(&mut &n.to_le_bytes()[..], MAX_ATTACHMENT).unwrap();
        let mut new = entry("A", "Zoe", "s", "with a file");
        new.content.attachments = vec![upload.attachment("a.bin", Time(5))];
        store.post(new, vec![upload], "zoe").unwrap();
    };
    post(0);
    let mut posted = 0;
    let faults = store.check(&mut |_, _| {
        posted += 1;
        post(posted);
        true
    });
    assert_eq!((faults.unwrap(), posted > 0), (vec![], true));
}

pub fn importing(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    let one = |id: u32, text: &str, digest: u8| {
        let mut imported = Imported { id, thread: id, digest: [digest; 16], ..Imported::default() };
        imported.entry = entry("A", "Zoe", "s", text);
        imported
    };
    let import = |entries: Vec<Imported>| store.import("A", entries, vec![], "import").unwrap();
    use ImportOutcome::{Changed, Conflict, Gone, New, Same};
    assert_eq!(import(vec![one(5, "five", 1), one(3, "three", 1)]), [New, New]);
    assert_eq!(import(vec![one(5, "five", 1), one(3, "tres", 2)]), [Same, Changed]);
    assert_eq!((ids(store, "tres"), ids(store, "three")), (vec![3], vec![]));
    let five = EntryRef::new("A", 5);
    let content = Content { text: "V".into(), ..store.entry(&five).unwrap().content };
    store.edit(&five, content, vec![], "zoe", None).unwrap();
    store.delete(&EntryRef::new("A", 3), "zoe", false).unwrap();
    assert_eq!(import(vec![one(5, "cinco", 3), one(3, "drei", 3)]), [Conflict, Gone]);
    assert_eq!(store.post(entry("A", "Zoe", "s", "next"), vec![], "zoe").unwrap().id, 6);
    store.imported().unwrap();
    assert_eq!(store.digests("A").unwrap(), [(5, [1; 16])]);
    // An entry that an import deleted returns with its number; a reply to a deleted entry begins a thread.
    store.delete(&EntryRef::new("A", 5), "import", false).unwrap();
    let answer = |id: u32, parent: u32| {
        let imported = one(id, "answer", 4);
        Imported { thread: 3, entry: NewEntry { parent: Some(parent), ..imported.entry }, ..imported }
    };
    assert_eq!(import(vec![one(5, "again", 9), answer(7, 3), answer(8, 7)]), [New, New, New]);
    let read = |id: u32| store.entry(&EntryRef::new("A", id)).unwrap();
    assert_eq!((read(5).revision, read(7).parent, read(7).thread, read(8).thread), (3, None, 7, 7));
    assert!(store.import("A", vec![one(u32::MAX - 1, "far too high", 1)], vec![], "import").is_err());
    let draft = Imported { draft: Some("zoe".to_owned()), ..one(9, "begun", 1) };
    assert_eq!(import(vec![draft.clone(), draft]), [New, Same]);
    assert_eq!((store.drafts("zoe").unwrap().len(), ids(store, "begun")), (1, vec![]));
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
}

pub fn records(store: &dyn Store) {
    use serde_json::json;
    assert_eq!(store.record("user", "zoe").unwrap(), None);
    assert_eq!(store.put_record("user", "zoe", &json!({ "name": "Zoë" }), Some(0)).unwrap(), 1);
    assert_eq!(store.put_record("group", "zoe", &json!([1]), None).unwrap(), 1);
    assert_eq!(store.put_record("user", "zoe", &json!({ "name": "Zoe" }), Some(1)).unwrap(), 2);
    assert_eq!(store.put_record("user", "Max", &json!(null), None).unwrap(), 1);
    // A writer with an outdated version changes nothing, nor does a writer that expects no record.
    for expected in [0, 1, 3] {
        let refused = store.put_record("user", "zoe", &json!("mine"), Some(expected)).unwrap_err();
        assert!(matches!(refused, StoreError::RecordChanged { is: 2, .. }), "{refused}");
    }
    assert!(matches!(store.put_record("user", "new", &json!(1), Some(4)), Err(StoreError::RecordChanged { is: 0, .. })));
    let all: Vec<_> =
        store.records("user").unwrap().into_iter().map(|(name, record)| (name, record.version, record.value)).collect();
    assert_eq!(all, [("Max".to_owned(), 1, json!(null)), ("zoe".to_owned(), 2, json!({ "name": "Zoe" }))]);
    assert!(store.drop_record("user", "zoe").unwrap() && !store.drop_record("user", "zoe").unwrap());
    assert_eq!(store.record("group", "zoe").unwrap().map(|record| record.value), Some(json!([1])));
    // Of many writers of the next version, one succeeds.
    let won = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                if store.put_record("group", "zoe", &json!([2]), Some(1)).is_ok() {
                    won.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(won.into_inner(), 1);
}

pub fn changes(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    store.put_book(&shift_book("B")).unwrap();
    let begin = store.last_change().unwrap();
    assert_eq!(store.wait_for_change(begin, Duration::ZERO).unwrap(), begin);
    let at = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| store.wait_for_change(begin, Duration::from_secs(60)).unwrap());
        let at = store.post(entry("A", "Zoe", "s", "one"), vec![], "zoe").unwrap();
        assert!(waiting.join().unwrap() > begin);
        at
    });
    let content = Content { text: "two".into(), ..store.entry(&at).unwrap().content };
    store.edit(&at, content, vec![], "zoe", None).unwrap();
    let to = store.move_to(&at, "B", "zoe", false).unwrap();
    store.delete(&to, "zoe", false).unwrap();
    // A rejected post is not a change.
    assert!(store.post(entry("None", "Zoe", "s", "x"), vec![], "zoe").is_err());
    let told = store.changes(begin, 100).unwrap();
    let what: Vec<_> = told.iter().map(|change| (change.at.book.as_str(), change.at.id, change.what)).collect();
    use Change::{Deleted, Edited, Moved, Posted};
    let (here, there) = (("A", 1, Moved), ("B", 1, Moved));
    assert_eq!((what[..2].to_vec(), what[4..].to_vec()), (vec![("A", 1, Posted), ("A", 1, Edited)], vec![("B", 1, Deleted)]));
    assert!(what.len() == 5 && what.contains(&here) && what.contains(&there), "{what:?}");
    assert!(told.windows(2).all(|pair| pair[0].number < pair[1].number) && told[0].number > begin);
    assert_eq!(store.changes(told[2].number, 1).unwrap(), told[3..4]);
    assert_eq!(store.last_change().unwrap(), told[4].number);
}

/// Every store's backup is a directory.
pub fn backups(store: &dyn Store) {
    let open = |dir: &std::path::Path| SqliteStore::open(dir).unwrap();
    store.put_book(&shift_book("A")).unwrap();
    let upload = store.upload(&mut &b"bytes"[..], MAX_ATTACHMENT).unwrap();
    let mut new = entry("A", "Zoe", "s", "kept");
    new.content.attachments = vec![upload.attachment("a.txt", Time(1))];
    let at = store.post(new, vec![upload], "zoe").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("copy");
    store.backup(&target, &mut |_, _| true).unwrap();
    store.post(entry("A", "Zoe", "s", "later"), vec![], "zoe").unwrap();
    let copy = open(&target);
    assert_eq!(copy.entry(&at).unwrap(), store.entry(&at).unwrap());
    assert_eq!((ids(&copy, "kept"), ids(&copy, "later")), (vec![1], vec![]));
    assert_eq!(copy.check(&mut |_, _| true).unwrap(), [""; 0]);
    drop(copy);
    // A second backup brings it up to date.
    store.backup(&target, &mut |_, _| true).unwrap();
    assert_eq!(ids(&open(&target), "later"), [2]);
    // Posts continue during the backup: the copy is of one moment.
    for _ in 0..6 {
        store.post(entry("A", "Zoe", "large", &"... ".repeat(300_000)), vec![], "zoe").unwrap();
    }
    let mut steps = 0;
    let target = dir.path().join("moment");
    let progress = &mut |_, _| {
        steps += 1;
        store.post(entry("A", "Zoe", "s", "meanwhile"), vec![], "zoe").is_ok()
    };
    store.backup(&target, progress).unwrap();
    assert!(steps > 1, "it was long enough for somebody to write meanwhile");
    let copy = open(&target);
    assert_eq!((copy.books().unwrap()[0].entries, ids(&copy, "meanwhile")), (8, vec![]));
    assert_eq!(copy.check(&mut |_, _| true).unwrap(), [""; 0]);
    drop(copy);
    // A backup does not overwrite a directory that is in use.
    let target = dir.path().join("copy");
    let other = open(&target);
    assert!(matches!(store.backup(&target, &mut |_, _| true), Err(StoreError::Directory { .. })));
    assert!(matches!(other.backup(&target, &mut |_, _| true), Err(StoreError::Directory { .. })));
    drop(other);
    assert!(store.backup(&target, &mut |_, _| false).is_err());
    assert_eq!(ids(&open(&target), "later"), [2]);
}

/// A file of a rejected entry is removed.
pub fn what_is_not_taken_leaves_nothing(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    let import = |digest: u8, text: &str, bytes: &[u8]| {
        let upload = store.upload(&mut &*bytes, MAX_ATTACHMENT).unwrap();
        let mut new = entry("A", "Zoe", "s", text);
        new.content.attachments = vec![upload.attachment("a.txt", Time(1))];
        let imported = Imported { id: 5, entry: new, thread: 5, digest: [digest; 16], draft: None, author: None };
        store.import("A", vec![imported], vec![upload], "elog").unwrap()[0]
    };
    assert_eq!(import(1, "first", b"first bytes"), ImportOutcome::New);
    let at = EntryRef::new("A", 5);
    let here = store.entry(&at).unwrap().content;
    store.edit(&at, Content { text: "changed here".to_owned(), ..here }, vec![], "max", None).unwrap();
    assert_eq!(import(2, "changed there", b"other bytes"), ImportOutcome::Conflict);
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
    // A blob of another entry stays, and a blob that is uploaded again is kept.
    assert_eq!(import(3, "changed there again", b"first bytes"), ImportOutcome::Conflict);
    assert_eq!(store.entry(&at).unwrap().content.text, "changed here");
    let upload = store.upload(&mut &b"other bytes"[..], MAX_ATTACHMENT).unwrap();
    let mut new = entry("A", "Zoe", "s", "posted");
    new.content.attachments = vec![upload.attachment("b.txt", Time(1))];
    store.post(new, vec![upload], "zoe").unwrap();
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
    // The poster of an imported entry need not be the importer. A deleted one is known still.
    let author = Some("ann".to_owned());
    let imported = Imported { id: 9, entry: entry("A", "Ann", "s", "by ann"), thread: 9, digest: [9; 16], draft: None, author };
    assert_eq!(store.import("A", vec![imported], vec![], "elog").unwrap(), [ImportOutcome::New]);
    let at = EntryRef::new("A", 9);
    assert_eq!(store.entry(&at).unwrap().by, "ann");
    assert_eq!(store.history_page(&at, PagePart { after: None, limit: 1 }).unwrap().revisions[0].by, "elog");
    store.delete(&at, "zoe", false).unwrap();
    let known = |all: Vec<(u32, [u8; 16])>| all.into_iter().map(|(id, _)| id).collect::<Vec<_>>();
    assert_eq!((known(store.digests("A").unwrap()), known(store.all_imports("A").unwrap())), (vec![5], vec![5, 9]));
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
}

pub fn configurations_have_a_history(store: &dyn Store) {
    use tampu_logbook::book::change::{BookEdit, MAX_CHANGES};
    let book = |comment: &str| Book { comment: comment.to_owned(), ..shift_book("A") };
    store.put_book(&shift_book("B")).unwrap();
    assert!(store.change_book(BookEdit::of(&book("one"), "zoe")).unwrap());
    // The same again is no change.
    assert!(!store.change_book(BookEdit::of(&book("one"), "max")).unwrap());
    let version = store.book("a").unwrap().version();
    let (new, what) = (book("two"), "restored 1");
    let edit = BookEdit { book: &new, by: "max", what, expected: Some(&version) };
    assert!(store.change_book(edit).unwrap());
    let refused = store.change_book(BookEdit { book: &book("three"), ..edit });
    assert!(matches!(refused, Err(StoreError::BookChanged(name)) if name == "A"));
    let missing = store.change_book(BookEdit { book: &shift_book("C"), ..edit });
    assert!(matches!(missing, Err(StoreError::BookChanged(_))) && store.book("C").is_err());
    let all = store.book_changes("A", None, 10).unwrap();
    let told: Vec<_> = all.iter().map(|change| (change.number, change.by.as_str(), change.what.as_str())).collect();
    assert_eq!(told, [(2, "max", "restored 1"), (1, "zoe", "made")]);
    assert_eq!((all[0].before.as_ref(), &all[0].after, &all[1].before), (Some(&book("one")), &book("two"), &None));
    assert_eq!(store.book_change("a", 1).unwrap(), all[1]);
    assert!(matches!(store.book_change("A", 3), Err(StoreError::NoBookChange { number: 3, .. })));
    assert!(matches!(store.book_changes("C", None, 1), Err(StoreError::NoBook(_))));
    assert_eq!(store.book_changes("B", None, 10).unwrap().len(), 1);
    // The oldest changes are dropped.
    for n in 0..MAX_CHANGES {
        store.change_book(BookEdit::of(&book(&n.to_string()), "zoe")).unwrap();
    }
    let numbers: Vec<u32> = store.book_changes("A", None, 1000).unwrap().iter().map(|change| change.number).collect();
    assert_eq!((numbers.len(), numbers[0], numbers.last()), (MAX_CHANGES as usize, MAX_CHANGES + 2, Some(&3)));
    assert_eq!(store.book_changes("A", Some(5), 1).unwrap()[0].number, 4);
}
