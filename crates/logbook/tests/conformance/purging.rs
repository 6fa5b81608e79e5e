//! Purges: what they remove, what stays, and what the history says.

use tampu_logbook::{
    entry::{Change, Content, Draft, EntryRef, Revision},
    store::{
        MAX_ATTACHMENT, Store, StoreError,
        pages::revisions,
        purge::{Purge, Purged},
    },
};
use tampu_types::Time;

use crate::support::{entry, ids, shift_book};

fn history(store: &dyn Store, at: &EntryRef) -> Vec<Revision> {
    revisions(store, at).collect::<Result<_, _>>().unwrap()
}

fn purge(store: &dyn Store, at: &EntryRef, part: Purge) -> Result<Purged, StoreError> {
    store.purge(at, &Purge { reason: "a password".to_owned(), ..part }, "root")
}

fn edit(store: &dyn Store, at: &EntryRef, text: &str) {
    let content = Content { text: text.to_owned(), ..store.entry(at).unwrap().content };
    store.edit(at, content, vec![], "zoe", None).unwrap();
}

pub fn purges(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    store.put_book(&shift_book("B")).unwrap();
    let post = |text: &str| store.post(entry("A", "Zoe", "about", text), vec![], "zoe").unwrap();

    // A former revision.
    let at = post("the word is hunter2secret");
    edit(store, &at, "the word is elsewhere");
    edit(store, &at, "the word is elsewhere, ask Zoe");
    let current = purge(store, &at, Purge { revision: Some(2), ..Purge::default() });
    assert!(current.unwrap_err().to_string().contains("current text"));
    let done = purge(store, &at, Purge { revision: Some(0), ..Purge::default() }).unwrap();
    assert_eq!((done.revision, done.contents), (3, 1));
    let lines = history(store, &at);
    let texts: Vec<&str> = lines.iter().map(|line| line.content.text.as_str()).collect();
    assert_eq!(texts, ["", "the word is elsewhere", "the word is elsewhere, ask Zoe", "the word is elsewhere, ask Zoe"]);
    assert_eq!((lines[0].note.as_deref(), &*lines[0].by, lines[1].note.as_deref()), (Some("purged"), "zoe", None));
    let last = &lines[3];
    assert_eq!((last.what, &*last.by, last.note.as_deref()), (Change::Purged, "root", Some("purged revision 0: a password")));
    assert_eq!(store.entry(&at).unwrap().revision, 3);
    assert_eq!(store.changes(0, 1000).unwrap().last().map(|change| change.what), Some(Change::Purged));

    // All of them, with the drafts; the word of the purge stays.
    edit(store, &at, "nothing");
    let draft = |edits, parent, text: &str| Draft {
        number: 0,
        owner: "max".to_owned(),
        book: "a".to_owned(),
        edits,
        parent,
        saved: Time(1),
        content: Content { text: text.to_owned(), ..Content::default() },
    };
    for (edits, parent) in [(Some(at.id), None), (None, Some(at.id)), (None, Some(at.id * 10)), (None, None)] {
        store.save_draft(&draft(edits, parent, "> elsewhere")).unwrap();
    }
    let done = purge(store, &at, Purge { all_but_last: true, ..Purge::default() }).unwrap();
    assert_eq!((done.revision, done.contents, done.drafts, store.drafts("max").unwrap().len()), (5, 3, 2, 2));
    let lines = history(store, &at);
    assert!(lines[..5].iter().all(|line| line.content == Content::default() || line.number == 4), "{lines:?}");
    assert_eq!(lines[3].note.as_deref(), Some("purged revision 0: a password; purged"));
    assert_eq!((ids(store, "nothing"), ids(store, "els*"), ids(store, "~unter")), (vec![at.id], vec![], vec![]));

    // A file, which another entry has as well, in a book that the entry was moved to.
    let with_files = |names: &[&str]| {
        let uploads: Vec<_> = names.iter().map(|name| store.upload(&mut name.as_bytes(), MAX_ATTACHMENT).unwrap()).collect();
        let mut new = entry("A", "Zoe", "files", "with files");
        new.content.attachments = uploads.iter().zip(names).map(|(upload, name)| upload.attachment(name, Time(5))).collect();
        store.post(new, uploads, "zoe").unwrap()
    };
    let (one, other) = (with_files(&["shared.txt", "own.txt"]), with_files(&["shared.txt"]));
    let shas: Vec<_> = store.entry(&one).unwrap().content.attachments.into_iter().filter_map(|file| file.sha).collect();
    edit(store, &one, "still with files");
    let moved = store.move_to(&one, "B", "zoe", false).unwrap();
    assert!(matches!(purge(store, &one, Purge::default()), Err(StoreError::Gone(_))));
    let file = |name: &str| Purge { attachment: Some(name.to_owned()), ..Purge::default() };
    assert!(purge(store, &moved, file("none.txt")).unwrap_err().to_string().contains("no attachment 'none.txt'"));
    let done = purge(store, &moved, file("own.txt")).unwrap();
    assert_eq!((done.files, done.contents), (1, 3));
    assert!(store.attachment(&shas[1]).is_err() && store.attachment(&shas[0]).is_ok());
    let lines = history(store, &moved);
    assert!(lines.iter().all(|line| line.content.attachments.iter().all(|file| file.name == "shared.txt")));
    assert_eq!(store.entry(&moved).unwrap().content.text, "still with files");
    assert_eq!(purge(store, &moved, file("shared.txt")).unwrap().files, 0);
    assert!(store.attachment(&shas[0]).is_ok());
    assert_eq!(purge(store, &other, Purge::default()).unwrap().files, 1);
    assert!(store.attachment(&shas[0]).is_err());
    // The bytes can come again.
    with_files(&["shared.txt"]);
    assert!(store.attachment(&shas[0]).is_ok());

    // A whole entry, present or deleted; its replies stay, its number is never used again.
    let parent = post("the whole entry about quetzalcoatl");
    let mut reply = entry("A", "Max", "Re", "a reply");
    reply.parent = Some(parent.id);
    let reply = store.post(reply, vec![], "max").unwrap();
    store.lock(&parent, "max", "there", std::time::Duration::from_secs(60)).unwrap();
    purge(store, &parent, Purge::default()).unwrap();
    assert!(matches!(store.entry(&parent), Err(StoreError::Gone(_))));
    assert_eq!(store.entry(&reply).unwrap().thread, reply.id);
    let lines = history(store, &parent);
    assert!(lines.iter().all(|line| line.content == Content::default()));
    assert_eq!(lines.last().and_then(|line| line.note.as_deref()), Some("purged the entry: a password"));
    let deleted = post("xochipilli");
    store.delete(&deleted, "zoe", false).unwrap();
    assert_eq!(purge(store, &deleted, Purge::default()).unwrap().contents, 1);
    assert!(history(store, &deleted).iter().all(|line| line.content.text.is_empty()));
    assert!(post("next").id > deleted.id);
    assert!(ids(store, "~uetzal OR xochi*").is_empty());
    // A word that was purged is learned again.
    let again = post("quetzalcoatl and hunter2secret");
    assert_eq!((ids(store, "~uetzal"), ids(store, "~unter2")), (vec![again.id], vec![again.id]));

    let nothing = EntryRef::new("A", 999);
    assert!(matches!(purge(store, &nothing, Purge::default()), Err(StoreError::NoEntry(_))));
    let several = Purge { revision: Some(1), all_but_last: true, ..Purge::default() };
    assert!(purge(store, &again, several).unwrap_err().to_string().contains("several parts"));
    assert!(store.purge(&again, &Purge::default(), "root").unwrap_err().to_string().contains("reason"));
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
}
