//! Writing: entries and their history, threads, files, locks, drafts.

use std::{io::Read, time::Duration};

use tampu_logbook::{
    attachment::Attachment,
    book::EntryAttribute,
    entry::{Change, Content, Draft, EntryRef, NewEntry, Revision},
    store::{
        MAX_ATTACHMENT, PAGE_BYTES, PagePart, Store, StoreError,
        pages::{family, revisions, thread_entries},
    },
};
use tampu_types::Time;

use crate::support::{entry, ids, shift_book};

/// The whole history of an entry.
fn history(store: &dyn Store, at: &EntryRef) -> Vec<Revision> {
    revisions(store, at).collect::<Result<Vec<_>, _>>().unwrap()
}

pub fn threads_and_histories_have_pages(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    let text = |n: u32| format!("{n} {}", "... ".repeat(PAGE_BYTES * 3 / 32));
    let post =
        |parent: Option<u32>, n| store.post(NewEntry { parent, ..entry("A", "Zoe", "s", &text(n)) }, vec![], "zoe").unwrap();
    let first = post(None, 0);
    (1..5).for_each(|n| drop(post(Some(n), n)));
    // A page of three eighths each is full with the third; a text is not read where it is not wanted.
    let page = |after, limit, text| store.thread_page(&first, PagePart { after, limit }, text).unwrap();
    let texts = |page: &tampu_logbook::store::ThreadPage| {
        page.entries.iter().map(|entry| (entry.at.id, entry.content.text.len() > PAGE_BYTES / 4)).collect::<Vec<_>>()
    };
    let begin = page(None, 1000, true);
    assert_eq!(texts(&begin), [(1, true), (2, true), (3, true)]);
    let end = page(begin.next, 1000, true);
    assert_eq!((texts(&end), end.next), (vec![(4, true), (5, true)], None));
    let plain = page(None, 1000, false);
    assert_eq!((texts(&plain), plain.next), ([1, 2, 3, 4, 5].map(|id| (id, false)).to_vec(), None));
    let (two, last) = (page(None, 2, false), page(page(None, 4, false).next, 4, false));
    assert_eq!((two.entries.len(), two.next.is_some(), last.entries.len(), last.next), (2, true, 1, None));
    assert_eq!(thread_entries(store, &first, true).count(), 5);
    assert_eq!(family(store, &EntryRef::new("A", 3)).unwrap(), [3, 4, 5]);

    for n in 0..4 {
        let mut content = store.entry(&first).unwrap().content;
        content.text = text(n + 10);
        store.edit(&first, content, vec![], "max", None).unwrap();
    }
    let page = |after, limit| store.history_page(&first, PagePart { after, limit }).unwrap();
    let told = |page: &tampu_logbook::store::HistoryPage| {
        page.revisions.iter().map(|one| (one.number, one.content.text.split(' ').next().unwrap().to_owned())).collect::<Vec<_>>()
    };
    let begin = page(None, 1000);
    assert_eq!(told(&begin), [(0, "0".to_owned()), (1, "10".to_owned()), (2, "11".to_owned())]);
    let end = page(begin.next, 1000);
    assert_eq!((told(&end), end.next), (vec![(3, "12".to_owned()), (4, "13".to_owned())], None));
    assert_eq!((page(None, 1).revisions.len(), page(None, 1).next), (1, Some(0)));
    assert_eq!(store.first_revision(&first).unwrap(), Some(begin.revisions[0].at));
    assert_eq!(history(store, &first).len(), 5);
    assert!(store.first_revision(&EntryRef::new("A", 99)).unwrap().is_none());
}

pub fn attachments_are_found_by_name(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    store.put_book(&shift_book("B")).unwrap();
    let added = Time::from_unix(1_221_000_000, 0);
    let post = |name: &str| {
        let upload = store.upload(&mut name.as_bytes(), 100).unwrap();
        let mut new = entry("A", "Zoe", "s", "with a file");
        new.content.attachments = vec![upload.attachment(name, added)];
        store.post(new, vec![upload], "zoe").unwrap()
    };
    let (first, second) = (post("a plot.png"), post("-"));
    let named = |book: &str, name: &str| store.attachment_named(book, name).unwrap().map(|file| file.name);
    assert_eq!(named("A", "080909_224000_a_plot.png").as_deref(), Some("a plot.png"));
    assert_eq!(named("a", "080909_224000_-").as_deref(), Some("-"));
    for (book, name) in [("A", "080909_224001_-"), ("A", "-"), ("A", ""), ("A", "\0"), ("B", "080909_224000_-")] {
        assert_eq!(named(book, name), None, "{book} {name:?}");
    }
    // A name goes with its attachment, and with its entry.
    let mut content = store.entry(&first).unwrap().content;
    content.attachments.clear();
    store.edit(&first, content, vec![], "zoe", None).unwrap();
    assert_eq!(named("A", "080909_224000_a_plot.png"), None);
    store.move_to(&second, "B", "zoe", false).unwrap();
    assert_eq!((named("A", "080909_224000_-"), named("B", "080909_224000_-").as_deref()), (None, Some("-")));
    assert!(matches!(store.attachment_named("C", "x"), Err(StoreError::NoBook(_))));
}

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
    // An identical edit is no change; an edit of an old revision is rejected.
    assert_eq!(store.edit(&at, content.clone(), vec![], "max", None).unwrap(), 1);
    let late = Content { text: "mine".to_owned(), ..content };
    let refused = store.edit(&at, late, vec![], "zoe", Some(0)).unwrap_err();
    assert!(matches!(refused, StoreError::Changed { expected: 0, is: 1, .. }), "{refused}");
    assert_eq!((ids(store, "\"channel 8\""), ids(store, "\"channel 7\"")), (vec![1], vec![]));
    let history = history(store, &at);
    let told: Vec<_> = history.iter().map(|r| (r.number, r.by.as_str(), r.what, r.content.text.as_str())).collect();
    assert_eq!(told, [(0, "zoe", Change::Posted, "Channel 7 tripped."), (1, "max", Change::Edited, "Channel 8 tripped, not 7.")]);

    // An invalid post is rejected and leaves nothing behind, not even an id.
    let mut bad = entry("Shift", "Zoe", "x", "never seen");
    bad.content.attributes.push(EntryAttribute::new("Type", "Party"));
    assert!(matches!(store.post(bad, vec![], "zoe"), Err(StoreError::Invalid(_))));
    assert!(matches!(store.post(entry("None", "Zoe", "x", ""), vec![], "zoe"), Err(StoreError::NoBook(_))));
    let orphan = NewEntry { parent: Some(99), ..entry("Shift", "Zoe", "x", "never seen") };
    assert!(matches!(store.post(orphan, vec![], "zoe"), Err(StoreError::NoEntry(_))));
    assert!(ids(store, "\"never seen\"").is_empty());
    let zone = NewEntry { zone: 1441, ..entry("Shift", "Zoe", "x", "never seen") };
    assert!(matches!(store.post(zone, vec![], "zoe"), Err(StoreError::Invalid(_))));
    // A new value of an extendable attribute becomes one of its options.
    let mut new = entry("Shift", "Max", "y", "second");
    new.content.attributes.push(EntryAttribute { name: "system".to_owned(), values: vec!["RICH1".into(), "Magnet".into()] });
    assert_eq!(store.post(new, vec![], "max").unwrap().id, 2);
    assert_eq!(store.book("shift").unwrap().attribute("System").unwrap().options, ["RICH1", "HLT", "Magnet"]);
    assert_eq!(ids(store, "system:magnet"), [2]);
    let books = store.books().unwrap();
    assert_eq!((books[0].entries, books[0].newest), (2, Some(Time(1_221_000_000_000_000_000))));
    // The book's definition changes: the values of its entries stay valid until somebody changes them.
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
        let entries = thread_entries(store, &EntryRef::new(book, id), true).collect::<Result<Vec<_>, _>>().unwrap();
        entries.iter().map(|entry| (entry.at.id, entry.parent)).collect::<Vec<_>>()
    };
    let whole = [(root, None), (child, Some(root)), (grandchild, Some(child)), (other, Some(root))];
    assert_eq!(thread("A", grandchild), whole);
    assert_eq!(ids(store, &format!("thread:{root} is:reply")), [other, grandchild, child]);

    // A copy has its own ids and history; the replies are copied, too, with their parents.
    let copy = store.copy(&EntryRef::new("A", child), "B", "max", true).unwrap();
    assert_eq!(thread("B", copy.id), [(1, None), (2, Some(1))]);
    assert_eq!(history(store, &copy)[0].what, Change::Copied);

    // A reply that loses its parent begins a thread.
    assert_eq!(store.delete(&EntryRef::new("A", child), "max", false).unwrap(), 1);
    assert_eq!(thread("A", root), [(root, None), (other, Some(root))]);
    assert_eq!(thread("A", grandchild), [(grandchild, None)]);
    assert_eq!(ids(store, &format!("thread:{grandchild}")), [grandchild]);
    let gone = store.entry(&EntryRef::new("A", child)).unwrap_err();
    assert!(matches!(&gone, StoreError::Gone(t) if t.by == "max" && t.moved_to.is_none()), "{gone}");
    let history = history(store, &EntryRef::new("A", child));
    assert_eq!((history[0].content.text.as_str(), history[1].what), ("child", Change::Deleted));

    // A move includes the history and leaves a pointer.
    let moved = store.move_to(&EntryRef::new("A", root), "B", "max", true).unwrap();
    assert_eq!(thread("B", moved.id), [(moved.id, None), (moved.id + 1, Some(moved.id))]);
    let gone = store.entry(&EntryRef::new("A", root)).unwrap_err();
    assert!(matches!(&gone, StoreError::Gone(t) if t.moved_to == Some(moved.clone())), "{gone}");
    let told: Vec<_> = self::history(store, &moved).into_iter().map(|revision| revision.what).collect();
    assert_eq!(told, [Change::Posted, Change::Moved]);

    // An entry that does not exist cannot be moved, not even to its own book.
    for (id, to) in [(99, "A"), (99, "B"), (root, "A")] {
        assert!(store.move_to(&EntryRef::new("A", id), to, "max", false).is_err(), "{id} to {to}");
    }

    // The id of a deleted last entry is not reused.
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
    // Bytes of an existing attachment need not be sent again; the bytes of a failed post are removed.
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
    // A lock expires.
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
    // Another user's draft is neither changed nor deleted.
    assert_ne!(store.save_draft(&Draft { owner: "max".into(), ..later }).unwrap(), number);
    assert!(!store.drop_draft("max", number).unwrap() && store.drop_draft("zoe", number).unwrap());
    assert!(store.drafts("zoe").unwrap().is_empty());

    store.save_search("zoe", "trips", "trip*").unwrap();
    store.save_search("zoe", "trips", "trip* last:7d").unwrap();
    assert_eq!(store.saved_searches("zoe").unwrap(), [("trips".to_owned(), "trip* last:7d".to_owned())]);
    assert!(store.saved_searches("max").unwrap().is_empty());
    assert!(store.drop_search("zoe", "trips").unwrap() && !store.drop_search("zoe", "trips").unwrap());
}

pub fn copies_keep_their_ids_where_the_configuration_asks_for_it(store: &dyn Store) {
    let mut from = shift_book("A");
    from.elog = vec![("Preserve IDs".to_owned(), "1".to_owned())];
    store.put_book(&from).unwrap();
    store.put_book(&shift_book("B")).unwrap();
    let post = |book: &str, parent| store.post(NewEntry { parent, ..entry(book, "Zoe", "s", "text") }, vec![], "zoe").unwrap();
    let id = |n: u32| EntryRef::new("A", n);
    for _ in 1..5 {
        post("A", None);
    }
    let fifth = post("A", None);
    post("A", Some(5));
    assert_eq!(fifth.id, 5);
    post("B", None);
    // The replies keep theirs as well, and new entries come after them.
    assert_eq!(store.copy(&id(5), "B", "zoe", true).unwrap().id, 5);
    assert_eq!(store.entry(&EntryRef::new("B", 6)).unwrap().parent, Some(5));
    assert_eq!(post("B", None).id, 7);
    // A gap is filled; an id that is given, or was, is not given again.
    assert_eq!(store.move_to(&id(3), "B", "zoe", true).unwrap().id, 3);
    assert_eq!(store.copy(&id(5), "B", "zoe", false).unwrap().id, 8);
    store.delete(&EntryRef::new("B", 3), "zoe", false).unwrap();
    store.move_to(&EntryRef::new("B", 1), "A", "zoe", false).unwrap();
    assert_eq!(store.copy(&id(1), "B", "zoe", false).unwrap().id, 9);
    // Without the option a copy gets the next id.
    assert_eq!(store.copy(&EntryRef::new("B", 7), "A", "zoe", false).unwrap().id, 8);
}
