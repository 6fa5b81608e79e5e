//! Names of books: another name, a deletion, a return, a purge.

use serde_json::json;
use tampu_logbook::{
    book::EntryAttribute,
    entry::{Content, Draft, Encoding, EntryRef},
    people::access,
    search::{Search, Stop},
    store::{
        Store, StoreError,
        naming::{current_name, deleted_books},
    },
    template::Template,
};
use tampu_types::Time;

use crate::support::{entry, shift_book};

fn found(store: &dyn Store, books: &[&str]) -> usize {
    let books = books.iter().map(|&name| name.to_owned()).collect();
    store.search(&Search { books, ..Search::default() }, &Stop::default()).unwrap().hits.len()
}

fn faults(store: &dyn Store) -> Vec<String> {
    store.check(&mut |_, _| true).unwrap()
}

pub fn books_get_other_names(store: &dyn Store) {
    store.put_book(&shift_book("Shift")).unwrap();
    store.put_book(&shift_book("Other")).unwrap();
    let at = store.post(entry("Shift", "Zoe", "about", "a fuse"), vec![], "zoe").unwrap();
    let content = Content::default();
    let draft = |book: &str| Draft {
        number: 0,
        owner: "max".to_owned(),
        book: book.to_owned(),
        edits: None,
        parent: None,
        saved: Time(1),
        content: content.clone(),
    };
    store.save_draft(&draft("shift")).unwrap();
    store.save_draft(&draft("Other")).unwrap();
    store.save_search("max", "fuses", "book:Shift fuse").unwrap();
    let attributes = vec![EntryAttribute::new("Author", "x")];
    store.save_template("Shift", "Quiet", &Template { attributes, encoding: Encoding::Plain, text: "quiet".to_owned() }).unwrap();
    store.put_record(access::KIND, "shift", &json!({ "grants": [], "mark": 1 }), None).unwrap();
    store.put_record("notify", "max", &json!({ "rules": [{ "book": "Shift" }, { "book": "Other" }] }), None).unwrap();

    assert!(matches!(store.rename_book("Shift", "other", "root"), Err(StoreError::BookExists(name)) if name == "Other"));
    assert!(store.rename_book("Shift", "a/b", "root").is_err());
    assert_eq!(store.rename_book("shift", "Night log", "root").unwrap().name, "Night log");
    assert!(matches!(store.book("Shift"), Err(StoreError::NoBook(_))), "no right of the former name gives an entry");
    assert!(matches!(store.entry(&at), Err(StoreError::NoBook(_))));
    let at = EntryRef::new("night LOG", 1);
    assert_eq!(store.entry(&at).unwrap().at, EntryRef::new("Night log", 1));
    assert_eq!((found(store, &["Night log"]), found(store, &[])), (1, 1));
    assert_eq!(current_name(store, "SHIFT").unwrap().as_deref(), Some("Night log"));
    assert_eq!(current_name(store, "Other").unwrap(), None);
    let drafts: Vec<String> = store.drafts("max").unwrap().into_iter().map(|draft| draft.book).collect();
    assert!(drafts.contains(&"Night log".to_owned()) && drafts.contains(&"Other".to_owned()), "{drafts:?}");
    assert_eq!(store.saved_searches("max").unwrap()[0].1, "book:\"Night log\" fuse");
    assert_eq!(store.templates("Night log").unwrap(), ["quiet"]);
    assert!(store.record(access::KIND, "shift").unwrap().is_none());
    assert_eq!(store.record(access::KIND, "night log").unwrap().unwrap().value["mark"], 1);
    let rules = store.record("notify", "max").unwrap().unwrap().value;
    assert_eq!((&rules["rules"][0]["book"], &rules["rules"][1]["book"]), (&json!("Night log"), &json!("Other")));
    let changes = store.book_changes("Night log", None, 10).unwrap();
    assert_eq!((&*changes[0].what, &*changes[0].by), ("renamed from Shift", "root"));

    // A second name, the first one again, and a new book with a former name.
    store.rename_book("Night log", "Day", "root").unwrap();
    assert_eq!(current_name(store, "Shift").unwrap().as_deref(), Some("Day"));
    store.rename_book("Day", "Shift", "root").unwrap();
    assert_eq!((current_name(store, "Shift").unwrap(), current_name(store, "Day").unwrap().as_deref()), (None, Some("Shift")));
    store.rename_book("Shift", "SHIFT", "root").unwrap();
    store.put_book(&shift_book("Day")).unwrap();
    assert_eq!((found(store, &["Day"]), found(store, &["Shift"])), (0, 1));
    assert_eq!(faults(store), Vec::<String>::new());
}

pub fn deleted_books_come_back(store: &dyn Store) {
    store.put_book(&shift_book("Shift")).unwrap();
    store.put_record(access::KIND, "shift", &json!({ "grants": [], "mark": 1 }), None).unwrap();
    let file = store.upload(&mut &b"bytes"[..], 100).unwrap();
    let mut new = entry("Shift", "Zoe", "about", "the word is hunter2secret");
    new.content.attachments.push(file.attachment("scan.txt", Time(5)));
    store.post(new, vec![file], "zoe").unwrap();
    let reply = store.post(entry("Shift", "Zoe", "about", "another"), vec![], "zoe").unwrap();
    store.delete(&reply, "zoe", false).unwrap();

    let deleted = store.delete_book("shift", "root").unwrap();
    assert_eq!((&*deleted.name, deleted.entries, &*deleted.by), ("Shift", 1, "root"));
    for name in ["Shift".to_owned(), format!("/deleted/{}", deleted.number)] {
        assert!(matches!(store.book(&name), Err(StoreError::NoBook(_))), "{name}");
        assert!(matches!(store.entry(&EntryRef::new(&name, 1)), Err(StoreError::NoBook(_))), "{name}");
        assert!(matches!(store.locked(&EntryRef::new(&name, 1)), Err(StoreError::NoBook(_))), "{name}");
        assert!(matches!(store.delete_book(&name, "root"), Err(StoreError::NoBook(_))), "{name}");
    }
    assert_eq!((found(store, &[]), store.books().unwrap().len()), (0, 0));
    assert_eq!(faults(store), Vec::<String>::new());

    // A new book of the name has neither the entries nor the rights of the deleted one.
    store.put_book(&shift_book("Shift")).unwrap();
    assert!(store.record(access::KIND, "shift").unwrap().is_none());
    assert!(matches!(store.undelete_book(deleted.number, None, "root"), Err(StoreError::BookExists(_))));
    assert!(matches!(store.undelete_book(99, None, "root"), Err(StoreError::NoDeletedBook(99))));
    assert_eq!(store.undelete_book(deleted.number, Some("Old shift"), "root").unwrap().name, "Old shift");
    assert_eq!(store.record(access::KIND, "old shift").unwrap().unwrap().value["mark"], 1);
    assert!(store.entry(&EntryRef::new("Old shift", 1)).unwrap().content.text.contains("hunter2secret"));
    assert!(deleted_books(store).unwrap().is_empty());
    assert!(matches!(store.purge_book(deleted.number, "a test", "root"), Err(StoreError::NoDeletedBook(_))), "it is not deleted");

    let deleted = store.delete_book("Old shift", "root").unwrap();
    assert!(store.purge_book(deleted.number, "", "root").is_err(), "a purge has a reason");
    let purged = store.purge_book(deleted.number, "a test", "root").unwrap();
    assert_eq!(purged.purged.as_deref(), Some("root: a test"));
    assert!(store.undelete_book(deleted.number, None, "root").unwrap_err().to_string().contains("was purged (root: a test)"));
    assert_eq!(store.used_space().unwrap().iter().map(|used| used.files).sum::<u64>(), 0);
    assert_eq!(deleted_books(store).unwrap(), [purged]);
    assert_eq!(faults(store), Vec::<String>::new());
}
