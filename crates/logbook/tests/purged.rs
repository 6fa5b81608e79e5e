//! A purged text is in no file of a store: not in free pages, in the index, or in the write-ahead log.

#[path = "support/server.rs"]
mod server;
mod support;

use std::{fs, path::Path};

use tampu_logbook::{
    entry::{Content, Draft, EntryRef},
    store::{MAX_ATTACHMENT, Store, purge::Purge, sqlite::SqliteStore},
};
use tampu_types::Time;

use support::{entry, shift_book};

/// Words that stand in nothing else.
const SECRETS: [&str; 6] =
    ["quetzalcoatl", "xochipilli", "tlahuizcalpan", "mictlantecuhtli", "huitzilopochtli", "chalchiuhtlicue"];

/// Returns the secrets that a file below a directory has.
fn secrets_in(dir: &Path, found: &mut Vec<String>) {
    for file in fs::read_dir(dir).unwrap().flatten() {
        let path = file.path();
        if file.file_type().is_ok_and(|kind| kind.is_dir()) {
            secrets_in(&path, found);
            continue;
        }
        let bytes = fs::read(&path).unwrap_or_default();
        for secret in SECRETS {
            // The index shares the beginnings of neighbouring words, so it may have only the rest of one.
            if bytes.windows(secret.len() - 3).any(|window| window == &secret.as_bytes()[3..]) {
                found.push(format!("{secret} in {}", path.display()));
            }
        }
    }
}

/// Writes the secrets into an entry, its history, a file and a draft, and purges them.
fn write_and_purge(store: &dyn Store, before: impl Fn()) {
    store.put_book(&shift_book("A")).unwrap();
    for n in 0..50 {
        store.post(entry("A", "Zoe", "s", &format!("other text {n}")), vec![], "zoe").unwrap();
    }
    let upload = store.upload(&mut SECRETS[0].as_bytes(), MAX_ATTACHMENT).unwrap();
    let mut new = entry("A", "Zoe", SECRETS[1], SECRETS[2]);
    new.content.attachments = vec![upload.attachment(&format!("{}.txt", SECRETS[3]), Time(5))];
    let at = store.post(new, vec![upload], "zoe").unwrap();
    let current = store.entry(&at).unwrap().content;
    for n in 0..20 {
        store.edit(&at, Content { text: format!("{} {n}", SECRETS[4]), ..current.clone() }, vec![], "zoe", None).unwrap();
    }
    store.edit(&at, Content { text: String::new(), ..current }, vec![], "zoe", None).unwrap();
    let content = Content { text: SECRETS[5].to_owned(), ..Content::default() };
    let (owner, book) = ("ann".to_owned(), "A".to_owned());
    store.save_draft(&Draft { number: 0, owner, book, edits: None, parent: Some(at.id), saved: Time(7), content }).unwrap();
    before();
    let purged = store.purge(&at, &Purge { reason: "a test".to_owned(), ..Purge::default() }, "root").unwrap();
    assert_eq!((purged.files, purged.contents, purged.drafts), (1, 22, 1));
    assert!(store.entry(&EntryRef::new("A", 3)).is_ok());
}

#[test]
fn a_purged_text_is_in_no_file_of_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let find = || {
        let mut found = Vec::new();
        secrets_in(dir.path(), &mut found);
        found
    };
    write_and_purge(&store, || assert!(find().len() > SECRETS.len(), "{:?}", find()));
    assert_eq!(find(), [""; 0]);
}

#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn a_purged_text_is_in_no_table_of_a_database() {
    let server = server::server();
    let store = server.store();
    let find = || {
        let mut client = postgres::Client::connect(&server.address(), postgres::NoTls).unwrap();
        client.batch_execute("CHECKPOINT").unwrap();
        let mut found = Vec::new();
        secrets_in(&server.tables(), &mut found);
        // The pieces of attachments are freed, and not overwritten.
        found.retain(|line| !line.starts_with(SECRETS[0]));
        found
    };
    write_and_purge(&store, || assert!(find().len() >= SECRETS.len() - 1, "{:?}", find()));
    assert_eq!(find(), [""; 0]);
}
