//! Traces of former users, and logins that are not for strangers.

use std::sync::Arc;

use tampu_logbook::{
    book::{AttributeDef, AttributeKind, Book, EntryAttribute},
    entry::{Content, Draft, NewEntry},
    people::{
        People, PeopleError, Right,
        access::EVERY_BOOK,
        outside::{LoginMethod, MethodKind, OutsideUser},
        registry::Settings,
        user::User,
    },
    store::{Drafts, Entries, Records, sqlite::SqliteStore},
};
use tempfile::TempDir;

fn site() -> (TempDir, Arc<SqliteStore>, People) {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(dir.path()).unwrap());
    let attributes = vec![AttributeDef::new("Author", AttributeKind::Text)];
    store.put_book(&Book::new("Shift", attributes)).unwrap();
    let people = People::new(store.clone(), Settings::default()).unwrap();
    people.add_user(User::new("zoe")).unwrap();
    (dir, store, people)
}

/// Posts an entry with an author.
fn post(store: &SqliteStore, author: &str, by: &str) {
    let content = Content { attributes: vec![EntryAttribute::new("Author", author)], ..Content::default() };
    store.post(NewEntry { book: "Shift".into(), content, ..NewEntry::default() }, vec![], by).unwrap();
}

#[test]
fn a_dropped_user_leaves_nothing_that_another_would_inherit() {
    let (_dir, store, people) = site();
    let kinds = ["notify", "notify-due"];
    for kind in kinds {
        store.put_record(kind, "zoe", &serde_json::json!({}), Some(0)).unwrap();
    }
    let (owner, book, content) = ("zoe".to_owned(), "Shift".to_owned(), Content::default());
    store
        .save_draft(&Draft {
            number: 0,
            owner,
            book,
            edits: None,
            parent: None,
            saved: tampu_types::Time::from_unix(1000, 0),
            content,
        })
        .unwrap();
    store.save_search("zoe", "mine", "x").unwrap();
    let mut access = people.access("Shift").unwrap().0;
    access.give("user:zoe".parse().unwrap(), vec![Right::Admin]);
    access.give("user:max".parse().unwrap(), vec![Right::Read]);
    people.set_access("Shift", &access).unwrap();
    people.set_access(EVERY_BOOK, &access).unwrap();
    people.drop_user("zoe").unwrap();
    for kind in kinds {
        assert!(store.record(kind, "zoe").unwrap().is_none(), "{kind}");
    }
    assert!(store.drafts("zoe").unwrap().is_empty() && store.saved_searches("zoe").unwrap().is_empty());
    access.give("user:zoe".parse().unwrap(), vec![]);
    assert_eq!((people.access("Shift").unwrap().0, people.access(EVERY_BOOK).unwrap().0), (access.clone(), access));
}

#[test]
fn a_login_method_makes_nobody_the_owner_of_entries_and_rights() {
    let (_dir, store, people) = site();
    let lab = LoginMethod { name: "lab".into(), kind: MethodKind::Proxy, register: true, groups: vec![], passwords: None };
    let people = people.with(lab);
    let person = |subject: &str, login: &str, full_name: &str| OutsideUser {
        subject: subject.into(),
        login: login.into(),
        full_name: full_name.into(),
        email: String::new(),
        groups: vec![],
    };
    post(&store, "x", "former");
    post(&store, "Ada Stone", "import-elog");
    let mut access = people.access("Shift").unwrap().0;
    access.give("user:ghost".parse().unwrap(), vec![Right::Admin]);
    people.set_access("Shift", &access).unwrap();
    for (login, name) in [("former", "Max"), ("Ghost", "Max"), ("owner", "Max"), ("max", "Ada Stone"), ("Ada Stone", "Max")] {
        let error = people.by_method("lab", &person("7", login, name)).unwrap_err();
        assert!(matches!(&error, PeopleError::NameInUse { .. }), "{login} {name}: {error}");
    }
    // A longer name of a poster is another one.
    post(&store, "x", "max quartz");
    people.by_method("lab", &person("7", "max", "Max Quartz")).unwrap();
    // Later the person does not take the name of an author either, but any other.
    assert_eq!(people.by_method("lab", &person("7", "max", "Ada Stone")).unwrap().full_name, "Max Quartz");
    assert_eq!(people.by_method("lab", &person("7", "max", "Max Granite")).unwrap().full_name, "Max Granite");
    // A user whom an administrator makes and binds has it.
    people.add_user(User::new("ada")).unwrap();
    people.bind_user("ada", "lab", "").unwrap();
    assert_eq!(people.by_method("lab", &person("8", "ada", "Ada Stone")).unwrap().full_name, "Ada Stone");
}
