//! What is written: entries and their history, threads, files, locks, drafts.

use std::{io::Read, time::Duration};

use tampu_logbook::{
    attachment::Attachment,
    book::EntryAttribute,
    entry::{Change, Content, Draft, EntryRef, NewEntry},
    store::{MAX_ATTACHMENT, Store, StoreError},
};
use tampu_types::Time;

use crate::support::{entry, ids, shift_book};

pub fn posting_and_editing(store: &dyn Store) {
    store.put_book(&shift_book("Shift")).unwrap();
    let at = store.post(entry("shift", "Zoe", "HV trip", "Channel 7 tripped."), vec![], "zoe").unwrap();
    assert_eq!(at, EntryRef::new("Shift", 1));
    let first = store.entry(&at).unwrap();
    assert_eq!((first.by.as_str(), first.revision, first.thread, first.parent), ("zoe", 0, 1, None));
    assert_eq!(ids(store, "tripped"), [1]);

    let mut content = first.content.clone();
    content.text = "Channel 8 tripped, not 7.".to_owned();
    assert_eq!(store.edit(&at, content.clone(), vec![], "max", Some(0)).unwrap(), 1);
    // The same again is no change; an edit of what was read before is refused.
    assert_eq!(store.edit(&at, content.clone(), vec![], "max", None).unwrap(), 1);
    let late = Content { text: "mine".to_owned(), ..content };
    let refused = store.edit(&at, late, vec![], "zoe", Some(0)).unwrap_err();
    assert!(matches!(refused, StoreError::Changed { expected: 0, is: 1, .. }), "{refused}");
    assert_eq!((ids(store, "\"channel 8\""), ids(store, "\"channel 7\"")), (vec![1], vec![]));
    let history = store.history(&at).unwrap();
    let told: Vec<_> = history.iter().map(|r| (r.number, r.by.as_str(), r.what, r.content.text.as_str())).collect();
    assert_eq!(told, [(0, "zoe", Change::Posted, "Channel 7 tripped."), (1, "max", Change::Edited, "Channel 8 tripped, not 7.")]);

    // What is wrong is refused and leaves nothing behind, not even an id.
    let mut bad = entry("Shift", "Zoe", "x", "never seen");
    bad.content.attributes.push(EntryAttribute::new("Type", "Party"));
    assert!(matches!(store.post(bad, vec![], "zoe"), Err(StoreError::Invalid(_))));
    assert!(matches!(store.post(entry("None", "Zoe", "x", ""), vec![], "zoe"), Err(StoreError::NoBook(_))));
    let orphan = NewEntry { parent: Some(99), ..entry("Shift", "Zoe", "x", "never seen") };
    assert!(matches!(store.post(orphan, vec![], "zoe"), Err(StoreError::NoEntry(_))));
    assert!(ids(store, "\"never seen\"").is_empty());
    let zone = NewEntry { zone: 1441, ..entry("Shift", "Zoe", "x", "never seen") };
    assert!(matches!(store.post(zone, vec![], "zoe"), Err(StoreError::Invalid(_))));
    // A new option of an extendable attribute is an option from then on.
    let mut new = entry("Shift", "Max", "y", "second");
    new.content.attributes.push(EntryAttribute { name: "system".to_owned(), values: vec!["RICH1".into(), "Magnet".into()] });
    assert_eq!(store.post(new, vec![], "max").unwrap().id, 2);
    assert_eq!(store.book("shift").unwrap().attribute("System").unwrap().options, ["RICH1", "HLT", "Magnet"]);
    assert_eq!(ids(store, "system:magnet"), [2]);
    let books = store.books().unwrap();
    assert_eq!((books[0].entries, books[0].newest), (2, Some(Time(1_221_000_000_000_000_000))));
    // The book becomes another: what its entries said stays good until somebody changes it.
    let mut book = store.book("Shift").unwrap();
    (book.attributes[2].options, book.attributes[2].extendable) = (vec!["Other".to_owned()], false);
    book.attributes[3].required = true;
    store.put_book(&book).unwrap();
    let second = EntryRef::new("Shift", 2);
    let mut content = store.entry(&second).unwrap().content;
    content.text = "corrected".to_owned();
    store.edit(&second, content.clone(), vec![], "max", None).unwrap();
    content.attributes.iter_mut().find(|said| said.name == "System").unwrap().values = vec!["HLT".to_owned()];
    assert!(matches!(store.edit(&second, content, vec![], "max", None), Err(StoreError::Invalid(_))));
}

pub fn threads_deletion_and_moving(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    store.put_book(&shift_book("B")).unwrap();
    let post = |parent: Option<u32>, text: &str| {
        store.post(NewEntry { parent, ..entry("A", "Zoe", "s", text) }, vec![], "zoe").unwrap().id
    };
    let root = post(None, "root");
    let child = post(Some(root), "child");
    let grandchild = post(Some(child), "grandchild");
    let other = post(Some(root), "other");
    let thread = |book: &str, id: u32| {
        let entries = store.thread(&EntryRef::new(book, id)).unwrap();
        entries.iter().map(|entry| (entry.at.id, entry.parent)).collect::<Vec<_>>()
    };
    let whole = [(root, None), (child, Some(root)), (grandchild, Some(child)), (other, Some(root))];
    assert_eq!(thread("A", grandchild), whole);
    assert_eq!(ids(store, &format!("thread:{root} is:reply")), [other, grandchild, child]);

    // A copy has ids and a history of its own; the answers go along, with their parents.
    let copy = store.copy(&EntryRef::new("A", child), "B", "max", true).unwrap();
    assert_eq!(thread("B", copy.id), [(1, None), (2, Some(1))]);
    assert_eq!(store.history(&copy).unwrap()[0].what, Change::Copied);

    // What loses its parent begins a thread.
    assert_eq!(store.delete(&EntryRef::new("A", child), "max", false).unwrap(), 1);
    assert_eq!(thread("A", root), [(root, None), (other, Some(root))]);
    assert_eq!(thread("A", grandchild), [(grandchild, None)]);
    assert_eq!(ids(store, &format!("thread:{grandchild}")), [grandchild]);
    let gone = store.entry(&EntryRef::new("A", child)).unwrap_err();
    assert!(matches!(&gone, StoreError::Gone(t) if t.by == "max" && t.moved_to.is_none()), "{gone}");
    let history = store.history(&EntryRef::new("A", child)).unwrap();
    assert_eq!((history[0].content.text.as_str(), history[1].what), ("child", Change::Deleted));

    // Moving takes the history along and leaves a pointer.
    let moved = store.move_to(&EntryRef::new("A", root), "B", "max", true).unwrap();
    assert_eq!(thread("B", moved.id), [(moved.id, None), (moved.id + 1, Some(moved.id))]);
    let gone = store.entry(&EntryRef::new("A", root)).unwrap_err();
    assert!(matches!(&gone, StoreError::Gone(t) if t.moved_to == Some(moved.clone())), "{gone}");
    let told: Vec<_> = store.history(&moved).unwrap().into_iter().map(|revision| revision.what).collect();
    assert_eq!(told, [Change::Posted, Change::Moved]);

    // What is not there cannot go anywhere, not even where it would be.
    for (id, to) in [(99, "A"), (99, "B"), (root, "A")] {
        assert!(store.move_to(&EntryRef::new("A", id), to, "max", false).is_err(), "{id} to {to}");
    }

    // The id of the last entry is not given again, though it was deleted.
    assert_eq!(store.delete(&EntryRef::new("A", grandchild), "max", true).unwrap(), 1);
    assert_eq!(post(None, "new"), other + 1);
    let counts: Vec<u64> = store.books().unwrap().iter().map(|book| book.entries).collect();
    assert_eq!(counts, [1, 4]);
}

pub fn attachments(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    let bytes: Vec<u8> = (0..300_000u32).map(|n| (n % 251) as u8).collect();
    let upload = store.upload(&mut &bytes[..], MAX_ATTACHMENT).unwrap();
    let sha = upload.sha().clone();
    let mut new = entry("A", "Zoe", "plot", "see the plot");
    new.content.attachments = vec![upload.attachment("../trend plot.png", Time(5))];
    let missing = store.post(new.clone(), vec![], "zoe").unwrap_err();
    assert!(matches!(missing, StoreError::NoBlob(_)), "{missing}");
    let at = store.post(new.clone(), vec![upload], "zoe").unwrap();
    let mut read = Vec::new();
    store.attachment(&sha).unwrap().read_to_end(&mut read).unwrap();
    assert!(read == bytes);
    assert_eq!(store.entry(&at).unwrap().content.attachments[0].name, "trend plot.png");
    assert_eq!((ids(store, "has:attachment"), ids(store, "attachment:trend")), (vec![1], vec![1]));
    // Bytes that some entry has need not be sent again; those of a post that failed go.
    store.post(new, vec![], "zoe").unwrap();
    let upload = store.upload(&mut &b"lost"[..], MAX_ATTACHMENT).unwrap();
    let (lost, mut bad) = (upload.sha().clone(), entry("A", "Zoe", "bad", "x"));
    bad.content.attachments =
        vec![upload.attachment("x", Time(5)), Attachment { sha: Some(sha), ..upload.attachment("y", Time(5)) }];
    bad.content.attributes.push(EntryAttribute::new("Energy", "none"));
    assert!(store.post(bad, vec![upload], "zoe").is_err());
    assert!(store.attachment(&lost).is_err());
    assert!(store.upload(&mut &bytes[..], 1000).is_err());
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
}

pub fn two_people_and_one_entry(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    let at = store.post(entry("A", "Zoe", "s", "text"), vec![], "zoe").unwrap();
    let hour = Duration::from_secs(3600);
    let lock = store.lock(&at, "zoe", "pc7", hour).unwrap();
    assert_eq!(store.lock(&at, "zoe", "pc7", hour).unwrap().since, lock.since);
    assert!(matches!(store.lock(&at, "max", "pc8", hour), Err(StoreError::Locked { .. })));
    let content = Content { text: "mine".to_owned(), ..store.entry(&at).unwrap().content };
    assert!(matches!(store.edit(&at, content.clone(), vec![], "max", None), Err(StoreError::Locked { .. })));
    assert!(matches!(store.delete(&at, "max", false), Err(StoreError::Locked { .. })));
    store.unlock(&at, "max").unwrap();
    assert_eq!(store.locked(&at).unwrap().unwrap().by, "zoe");
    store.edit(&at, content.clone(), vec![], "zoe", Some(0)).unwrap();
    store.unlock(&at, "zoe").unwrap();
    assert!(store.locked(&at).unwrap().is_none());
    // A lock ends by itself.
    store.lock(&at, "zoe", "pc7", Duration::ZERO).unwrap();
    store.edit(&at, Content { text: "yours".to_owned(), ..content }, vec![], "max", Some(1)).unwrap();
}

pub fn drafts_and_saved_searches(store: &dyn Store) {
    let content = Content { text: "begun".to_owned(), ..Content::default() };
    let draft = Draft { number: 0, owner: "zoe".into(), book: "A".into(), edits: None, parent: Some(3), saved: Time(5), content };
    let number = store.save_draft(&draft).unwrap();
    let later = Draft { number, saved: Time(9), content: Content { text: "more".into(), ..Content::default() }, ..draft };
    assert_eq!(store.save_draft(&later).unwrap(), number);
    assert_eq!(store.drafts("zoe").unwrap(), std::slice::from_ref(&later));
    // Somebody else's draft is neither changed nor thrown away.
    assert_ne!(store.save_draft(&Draft { owner: "max".into(), ..later }).unwrap(), number);
    assert!(!store.drop_draft("max", number).unwrap() && store.drop_draft("zoe", number).unwrap());
    assert!(store.drafts("zoe").unwrap().is_empty());

    store.save_search("zoe", "trips", "trip*").unwrap();
    store.save_search("zoe", "trips", "trip* last:7d").unwrap();
    assert_eq!(store.saved_searches("zoe").unwrap(), [("trips".to_owned(), "trip* last:7d".to_owned())]);
    assert!(store.saved_searches("max").unwrap().is_empty());
    assert!(store.drop_search("zoe", "trips").unwrap() && !store.drop_search("zoe", "trips").unwrap());
}
