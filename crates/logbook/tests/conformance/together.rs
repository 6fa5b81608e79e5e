//! Operations that happen in one transaction, or not at all.

use std::time::Duration;

use tampu_logbook::{
    book::{AttributeDef, AttributeKind, Book, EntryAttribute, Invalid},
    entry::{Change, Content, EntryRef, NewEntry},
    store::{EntryEdit, MAX_ATTACHMENT, PagePart, Store, StoreError},
};
use tampu_types::Time;

use super::support::{entry, ids, shift_book};

pub fn several_changes_are_one(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    let posted: Vec<EntryRef> =
        ["one", "two"].map(|text| store.post(entry("A", "Zoe", "s", text), vec![], "zoe").unwrap()).to_vec();
    let changed = |expected: [u32; 2]| -> Vec<EntryEdit> {
        let edit = |(at, expected): (&EntryRef, u32)| {
            let mut content = store.entry(at).unwrap().content;
            content.text += " changed";
            EntryEdit { at: at.clone(), expected, content }
        };
        posted.iter().zip(expected).map(edit).collect()
    };
    assert_eq!(store.edit_all(changed([0, 0]), "max").unwrap(), [1, 1]);
    // One that was changed meanwhile rejects the whole batch.
    let late = store.edit_all(changed([1, 0]), "max").unwrap_err();
    assert!(matches!(late, StoreError::Changed { ref at, expected: 0, is: 1 } if *at == posted[1]), "{late}");
    let texts: Vec<String> = posted.iter().map(|at| store.entry(at).unwrap().content.text).collect();
    assert_eq!(texts, ["one changed", "two changed"]);
    assert_eq!(ids(store, "changed"), [posted[1].id, posted[0].id]);
    assert_eq!(store.edit_all(vec![], "max").unwrap(), Vec::<u32>::new());
}

pub fn tags_lines_and_computed_values(store: &dyn Store) {
    let computed = AttributeDef { computed: "= $U * $I".to_owned(), ..AttributeDef::new("P", AttributeKind::Numeric) };
    let remark = AttributeDef { multi_line: true, ..AttributeDef::new("Remark", AttributeKind::Text) };
    let tag = AttributeDef::new("Tag", AttributeKind::Tags);
    let numbers = ["U", "I"].map(|name| AttributeDef::new(name, AttributeKind::Numeric));
    store.put_book(&Book::new("T", [numbers.to_vec(), vec![computed, remark, tag]].concat())).unwrap();
    let new = |said: &[(&str, &[&str])]| {
        let one = |(name, values): &(&str, &[&str])| EntryAttribute {
            name: (*name).to_owned(),
            values: values.iter().map(|&value| value.to_owned()).collect(),
        };
        let content = Content { attributes: said.iter().map(one).collect(), ..Content::default() };
        NewEntry { book: "T".to_owned(), content, ..NewEntry::default() }
    };
    let said =
        [("U", &["4"][..]), ("I", &["2.5"]), ("P", &["forged"]), ("Remark", &["two\nlines"]), ("Tag", &["hv", "night shift"])];
    let at = store.post(new(&said), vec![], "zoe").unwrap();
    let mut content = store.entry(&at).unwrap().content;
    let value = |content: &Content, name: &str| content.attribute(name).unwrap().joined();
    assert_eq!((value(&content, "P"), value(&content, "Remark")), ("10".to_owned(), "two\nlines".to_owned()));
    // The book remembers tags, to offer them again.
    assert_eq!(store.book("T").unwrap().attribute("Tag").unwrap().options, ["hv", "night shift"]);
    for query in ["tag:hv", "tag:\"night shift\"", "p:10", "remark:lines", "tag:=hv"] {
        assert_eq!(ids(store, query), [at.id], "{query}");
    }
    assert!(ids(store, "tag:gas").is_empty());
    content.attributes.iter_mut().find(|said| said.name == "U").unwrap().values = vec!["8".to_owned()];
    store.edit(&at, content, vec![], "zoe", None).unwrap();
    assert_eq!(value(&store.entry(&at).unwrap().content, "P"), "20");
    // Others have one line, and values of attributes that the book does not have, too.
    for said in [("Tag", &["a\nb"][..]), ("Other", &["a\nb"])] {
        assert!(matches!(store.post(new(&[said]), vec![], "zoe"), Err(StoreError::Invalid(Invalid::Line(_)))), "{said:?}");
    }
    let wrong = AttributeDef { computed: "= $None".to_owned(), ..AttributeDef::new("P", AttributeKind::Numeric) };
    let refused = store.put_book(&Book::new("W", vec![wrong])).unwrap_err().to_string();
    assert!(refused.contains("computed attribute 'P'") && refused.contains("'None'"), "{refused}");
}

pub fn several_posts_are_one(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    let first = store.post(entry("A", "Zoe", "s", "before"), vec![], "zoe").unwrap();
    let one = |text: &str| entry("A", "Zoe", "s", text);
    let new = vec![
        (one("one"), None),
        (one("two"), Some(0)),
        (NewEntry { parent: Some(first.id), ..one("three") }, None),
        (one("four"), Some(1)),
    ];
    let posted: Vec<u32> = store.post_all(new, "max").unwrap().into_iter().map(|at| at.id).collect();
    assert_eq!(posted, [2, 3, 4, 5]);
    let of = |id: u32| {
        let entry = store.entry(&EntryRef::new("A", id)).unwrap();
        (entry.parent, entry.thread, entry.by)
    };
    let max = || "max".to_owned();
    let expected = [(None, 2, max()), (Some(2), 2, max()), (Some(1), 1, max()), (Some(3), 2, max())];
    assert_eq!(posted.iter().map(|id| of(*id)).collect::<Vec<_>>(), expected);
    assert_eq!(store.history_page(&EntryRef::new("A", 5), PagePart::default()).unwrap().revisions[0].what, Change::Posted);
    let mut answers = store.answers("A", &[1, 2, 3, 5, 99]).unwrap();
    answers.sort_unstable();
    assert_eq!(answers, [(1, 4), (2, 3), (3, 5)]);
    // One invalid entry rejects the whole batch.
    let bad = vec![(one("lost"), None), (NewEntry { zone: i16::MAX, ..one("lost") }, None)];
    assert!(matches!(store.post_all(bad, "max"), Err(StoreError::Invalid(_))));
    assert_eq!((ids(store, "lost"), store.books().unwrap()[0].entries), (vec![], 5));
    assert_eq!(store.post_all(vec![], "max").unwrap(), []);
    assert_eq!(store.post(one("next"), vec![], "zoe").unwrap().id, 6);
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
}

pub fn a_lock_is_handed_on(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    let at = store.post(entry("A", "Zoe", "s", "text"), vec![], "zoe").unwrap();
    let hour = Duration::from_secs(3600);
    assert!(!store.hand_lock(&at, "zoe", ("max", "pc8"), hour).unwrap(), "nobody has it");
    store.lock(&at, "zoe", "pc7", hour).unwrap();
    assert!(!store.hand_lock(&at, "kim", ("max", "pc8"), hour).unwrap(), "it is not kim's");
    assert!(store.hand_lock(&at, "zoe", ("max", "pc8"), hour).unwrap());
    let lock = store.locked(&at).unwrap().unwrap();
    assert_eq!((lock.by.as_str(), lock.host.as_str()), ("max", "pc8"));
    assert!(matches!(store.lock(&at, "zoe", "pc7", hour), Err(StoreError::Locked { .. })));
    assert!(store.hand_lock(&at, "max", ("zoe", "pc7"), Duration::ZERO).unwrap());
    assert!(!store.hand_lock(&at, "zoe", ("max", "pc8"), hour).unwrap(), "its time is over");
}

pub fn files_of_one_name_and_second_have_addresses_of_their_own(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    let added = Time(1_221_000_000_500_000_000);
    let post = |names: &[&str]| {
        let mut new = entry("A", "Zoe", "s", "text");
        let upload = |nth: usize| store.upload(&mut &[nth as u8, names.len() as u8][..], MAX_ATTACHMENT).unwrap();
        let uploads: Vec<_> = (0..names.len()).map(upload).collect();
        new.content.attachments = uploads.iter().zip(names).map(|(upload, name)| upload.attachment(name, added)).collect();
        store.post(new, uploads, "zoe").unwrap()
    };
    let elog = |at: &EntryRef| -> Vec<Option<String>> {
        store.entry(at).unwrap().content.attachments.into_iter().map(|file| file.elog).collect()
    };
    let named = |name: &str| Some(format!("080909_224000_{name}"));
    let first = post(&["image.png", "image.png", "b.tar.gz", "image.png"]);
    assert_eq!(elog(&first), [None, named("image_1.png"), None, named("image_1_1.png")]);
    assert_eq!(elog(&post(&["image.png"])), [named("image_1_1_1.png")]);
    assert_eq!(elog(&post(&["b.tar.gz", "c.png"])), [named("b_1.tar.gz"), None]);
    // Existing attachments keep their names; a new one gets a name that is free.
    let before = store.entry(&first).unwrap();
    let mut content = before.content.clone();
    let upload = store.upload(&mut &b"later"[..], MAX_ATTACHMENT).unwrap();
    content.attachments.remove(0);
    content.attachments.push(upload.attachment("c.png", added));
    store.edit(&first, content, vec![upload], "zoe", None).unwrap();
    assert_eq!(elog(&first), [named("image_1.png"), None, named("image_1_1.png"), named("c_1.png")]);
}
