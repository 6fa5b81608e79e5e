//! Quotas: what counts, for whom, and what is refused.

use tampu_logbook::{
    entry::{Content, EntryRef},
    store::{
        MAX_ATTACHMENT, Store, StoreError,
        purge::Purge,
        quota::{Quota, QuotaOf},
    },
};
use tampu_types::Time;

use crate::support::{entry, shift_book};

pub fn quotas(store: &dyn Store) {
    for book in ["A", "B"] {
        store.put_book(&shift_book(book)).unwrap();
    }
    let file = |name: &str, size: usize| {
        let bytes = name.repeat(size);
        let upload = store.upload(&mut &bytes.as_bytes()[..size], MAX_ATTACHMENT).unwrap();
        (upload.attachment(name, Time(5)), upload)
    };
    let post = |book: &str, by: &str, name: &str, size: usize| {
        let (attachment, upload) = file(name, size);
        let mut new = entry(book, "Zoe", "s", "text");
        new.content.attachments = vec![attachment];
        store.post(new, vec![upload], by)
    };
    let used = || {
        let rows = store.used_space().unwrap().into_iter();
        rows.map(|row| (row.book, row.by, row.files, row.bytes)).collect::<Vec<_>>()
    };
    let row = |book: &str, by: &str, files: u64, bytes: u64| (book.to_owned(), by.to_owned(), files, bytes);
    let of = |refused: Result<EntryRef, StoreError>| match refused {
        Err(StoreError::OverQuota(over)) => Some((over.of.clone(), over.used, over.more)),
        _ => None,
    };

    let one = post("A", "zoe", "a", 100).unwrap();
    // The same file again, in another entry, and of a user who changes an entry of somebody else.
    let two = post("A", "max", "a", 100).unwrap();
    let (attachment, upload) = file("b", 50);
    let mut content = store.entry(&one).unwrap().content;
    content.attachments.push(attachment);
    store.edit(&one, content, vec![upload], "max", None).unwrap();
    assert_eq!(used(), [row("A", "max", 2, 150), row("A", "zoe", 1, 100)]);
    // A deleted entry keeps its files in its history; a purge frees them. A moved one takes them along, a copy adds them.
    store.delete(&two, "max", false).unwrap();
    assert_eq!(used()[0], row("A", "max", 2, 150));
    store.purge(&two, &Purge { reason: "space".to_owned(), ..Purge::default() }, "root").unwrap();
    assert_eq!(used(), [row("A", "max", 1, 50), row("A", "zoe", 1, 100)]);
    let moved = store.move_to(&one, "B", "zoe", false).unwrap();
    assert_eq!(used(), [row("B", "max", 1, 50), row("B", "zoe", 1, 100)]);
    let copied = store.copy(&moved, "A", "ann", false).unwrap();
    assert_eq!(used(), [row("A", "ann", 2, 150), row("B", "max", 1, 50), row("B", "zoe", 1, 100)]);

    store.set_quota(Quota { site: 400, book: 200, user: 160 });
    assert_eq!(of(post("B", "zoe", "c", 61)), Some((QuotaOf::User("zoe".to_owned()), 100, 61)));
    assert_eq!(of(post("B", "kim", "c", 51)), Some((QuotaOf::Book("B".to_owned()), 150, 51)));
    // A refused post leaves nothing: no file, no sum, no entry.
    assert_eq!((used().len(), store.check(&mut |_, _| true).unwrap()), (3, vec![]));
    post("B", "zoe", "c", 50).unwrap();
    post("A", "kim", "d", 50).unwrap();
    assert_eq!(of(store.copy(&copied, "A", "kim", false)), Some((QuotaOf::User("kim".to_owned()), 50, 150)));
    store.set_quota(Quota { site: 400, book: 0, user: 0 });
    assert_eq!(of(post("A", "ben", "e", 1)), Some((QuotaOf::Site, 400, 1)));
    // Texts have no quota, and an entry can be changed without a new file.
    store.post(entry("A", "Zoe", "s", "text"), vec![], "ben").unwrap();
    let content = Content { text: "changed".to_owned(), ..store.entry(&copied).unwrap().content };
    store.edit(&copied, content, vec![], "ann", None).unwrap();
    store.set_quota(Quota::default());
    post("A", "ben", "e", 1).unwrap();
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
}
