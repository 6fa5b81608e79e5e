//! Signatures against changes of the database and the files that go around the logbook: each is found, and names its
//! entry.

#[path = "support/server.rs"]
mod server;
mod support;

use std::{fs, path::Path};

use tampu_logbook::{
    attachment::Sha,
    entry::{Content, EntryRef},
    signature::{NewSignature, Signature, content_bytes, content_digest, keys::is_signed, verify::verify},
    store::{MAX_ATTACHMENT, Signatures, Store, postgres::PostgresStore, sqlite::SqliteStore},
};
use tampu_types::Time;

use support::{entry, shift_book};

fn sign(store: &dyn Store, id: u32, by: &str, meaning: &str, locks: bool) {
    let at = EntryRef::new("Shift", id);
    let revision = store.entry(&at).unwrap().revision;
    let [by, name, meaning] = [by, "Zoe Quartz", meaning].map(str::to_owned);
    store.sign(&NewSignature { at, revision, by, name, meaning, method: "password".to_owned(), locks }).unwrap();
}

/// Five entries: 1 with a file, 2 signed and changed later, 3 locked, 4 not signed, 5 signed last.
fn write(store: &dyn Store) -> Sha {
    store.put_book(&shift_book("Shift")).unwrap();
    let upload = store.upload(&mut "bytes of a plot".as_bytes(), MAX_ATTACHMENT).unwrap();
    let file = upload.attachment("plot.txt", Time(5));
    let sha = file.sha.clone().unwrap();
    let mut new = entry("Shift", "Zoe", "quench", "MAG-01 tripped");
    new.content.attachments = vec![file];
    store.post(new, vec![upload], "zoe").unwrap();
    for text in ["second", "third", "fourth", "fifth"] {
        store.post(entry("Shift", "Zoe", "about", text), vec![], "zoe").unwrap();
    }
    sign(store, 1, "zoe", "author", false);
    sign(store, 2, "zoe", "author", false);
    let at = EntryRef::new("Shift", 2);
    let content = Content { text: "second, changed".to_owned(), ..store.entry(&at).unwrap().content };
    store.edit(&at, content, vec![], "zoe", None).unwrap();
    sign(store, 3, "max", "approved", true);
    sign(store, 5, "zoe", "author", false);
    sha
}

/// A change of the database, and the parts that a fault has.
type Change = (&'static str, &'static str, &'static [&'static str]);

/// Changes that both databases understand.
const CHANGES: [Change; 14] = [
    (
        "attributes",
        "UPDATE entry SET attributes = replace(attributes, 'Zoe', 'Kim') WHERE id = 1",
        &["Shift/1", "revision 0 is not as it was signed"],
    ),
    (
        "the name of a file",
        "UPDATE entry SET attachments = replace(attachments, 'plot.txt', 'plut.txt') WHERE id = 1",
        &["Shift/1", "not as it was signed"],
    ),
    (
        "the digest of a file",
        "UPDATE entry SET attachments = replace(attachments, '\"sha\":\"', '\"sha\":\"0') WHERE id = 1",
        &["Shift/1"],
    ),
    (
        "links",
        "UPDATE entry SET links = '[{\"kind\":\"run\",\"target\":\"7\"}]' WHERE id = 1",
        &["Shift/1", "not as it was signed"],
    ),
    ("the poster", "UPDATE entry SET posted_by = 'kim' WHERE id = 1", &["Shift/1", "poster or date"]),
    ("the date", "UPDATE entry SET date = date + 1 WHERE id = 1", &["Shift/1", "poster or date"]),
    (
        "a former revision",
        "UPDATE revision SET content = replace(content, 'second', 'zweite') WHERE id = 2 AND number = 0",
        &["Shift/2", "revision 0 is not as it was signed"],
    ),
    ("the author of a revision", "UPDATE revision SET by = 'kim' WHERE id = 1 AND number = 0", &["Shift/1", "author or time"]),
    ("a missing revision", "DELETE FROM revision WHERE id = 2 AND number = 0", &["Shift/2", "revision 0 is missing"]),
    (
        "a meaning",
        "UPDATE signature SET record = replace(record, 'approved', 'reviewed') WHERE number = 3",
        &["Shift/3", "signature of the record is wrong"],
    ),
    ("a signature in the middle", "DELETE FROM signature WHERE number = 2", &["record 2 of the chain is missing"]),
    (
        "the last signature",
        "DELETE FROM signature WHERE number = 4; UPDATE entry SET signed = 0 WHERE id = 5",
        &["chain ends with record 3"],
    ),
    ("a signature of an entry that says so", "DELETE FROM signature WHERE number = 4", &["Shift/5", "had 1 records"]),
    ("a signature at another entry", "UPDATE signature SET id = 4 WHERE number = 1", &["Shift/1", "stands with entry Shift/4"]),
];

/// A text of a signed entry, and the locked one with a history that looks right.
const OF_SQLITE: [Change; 3] = [
    ("a text", "UPDATE body SET text = 'forged' WHERE row = (SELECT row FROM entry WHERE id = 1)", &["Shift/1", "revision 0 is not as it was signed"]),
    (
        "a change of a locked entry",
        "UPDATE revision SET content = json_object('attributes', json((SELECT attributes FROM entry WHERE id = 3)), 'encoding', 'markdown', \
         'text', (SELECT text FROM body JOIN entry USING (row) WHERE id = 3), 'attachments', json('[]'), 'links', json('[]')) WHERE id = 3;
         INSERT INTO revision(book, id, number, at, by, what) SELECT book, id, 1, at, by, '\"edited\"' FROM revision WHERE id = 3;
         UPDATE entry SET revision = 1 WHERE id = 3;
         UPDATE body SET text = 'forged' WHERE row = (SELECT row FROM entry WHERE id = 3)",
        &["Shift/3", "changed although its signature locks it"],
    ),
    ("an entry that is gone", "DELETE FROM body WHERE row = (SELECT row FROM entry WHERE id = 5); DELETE FROM entry WHERE id = 5", &["Shift/5", "cannot be read"]),
];

/// Returns the faults as lines.
fn faults(store: &dyn Store) -> Vec<String> {
    verify(store, Some("shift"), &[], &mut |_, _| true).unwrap().faults.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn is_found(store: &dyn Store, what: &str, parts: &[&str]) {
    let faults = faults(store);
    assert!(faults.iter().any(|fault| parts.iter().all(|part| fault.contains(part))), "{what}: {faults:#?}");
}

fn copy_of(dir: &Path, to: &Path) {
    for file in fs::read_dir(dir).unwrap().flatten() {
        let target = to.join(file.file_name());
        if file.path().is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy_of(&file.path(), &target);
        } else {
            fs::copy(file.path(), target).unwrap();
        }
    }
}

#[test]
fn a_change_of_a_directory_is_found_and_names_its_entry() {
    let original = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(original.path()).unwrap();
    let sha = write(&store);
    assert_eq!(faults(&store), [""; 0]);
    drop(store);
    let begin = || {
        let dir = tempfile::tempdir().unwrap();
        copy_of(original.path(), dir.path());
        dir
    };
    for (what, sql, parts) in CHANGES.iter().chain(&OF_SQLITE) {
        let dir = begin();
        let db = rusqlite::Connection::open(dir.path().join("book.db")).unwrap();
        let before = db.query_row("SELECT total_changes()", [], |row| row.get::<_, i64>(0)).unwrap();
        db.execute_batch(sql).unwrap();
        let after = db.query_row("SELECT total_changes()", [], |row| row.get::<_, i64>(0)).unwrap();
        assert!(after > before, "{what}: nothing was changed");
        drop(db);
        is_found(&SqliteStore::open(dir.path()).unwrap(), what, parts);
    }
    // The bytes of a file, with the same length.
    let dir = begin();
    let (first, rest) = sha.as_str().split_at(2);
    let file = dir.path().join("attachments").join(first).join(rest);
    let mut permissions = fs::metadata(&file).unwrap().permissions();
    #[allow(clippy::permissions_set_readonly_false, reason = "a file of this test")]
    permissions.set_readonly(false);
    fs::set_permissions(&file, permissions).unwrap();
    fs::write(&file, "bytes of a plut").unwrap();
    is_found(&SqliteStore::open(dir.path()).unwrap(), "a file", &["Shift/1", "bytes of 'plot.txt'"]);
    // Another key, as of somebody who signs a changed record anew.
    let dir = begin();
    fs::remove_file(dir.path().join("signing/key")).unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    is_found(&store, "no key", &["Shift/1", "does not know"]);
    let key = store.signatures(&EntryRef::new("Shift", 1)).unwrap()[0].key.clone();
    assert_eq!(verify(&store, None, &[key], &mut |_, _| true).unwrap().faults, []);
    // A key that others can read is refused.
    use std::os::unix::fs::PermissionsExt;
    let dir = begin();
    let key = dir.path().join("signing/key");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let error = verify(&store, None, &[], &mut |_, _| true).unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
}

#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn a_change_of_a_database_is_found_and_names_its_entry() {
    let server = server::server();
    for (what, sql, parts) in
        CHANGES.iter().chain(&[("a text", "UPDATE entry SET text = 'forged' WHERE id = 1", &["Shift/1"][..])])
    {
        let domain = server.domain();
        let store = PostgresStore::open(&server.address(), &domain).unwrap();
        let beside = tempfile::tempdir().unwrap();
        store.signing_keys().keep_beside(beside.path());
        write(&store);
        assert_eq!(faults(&store), [""; 0]);
        let mut client = postgres::Client::connect(&server.address(), postgres::NoTls).unwrap();
        client.batch_execute(&format!("SET search_path TO tampu_book_{domain}; {sql}")).unwrap();
        is_found(&store, what, parts);
    }
}

/// The vectors of `spec/book-signature.md`.
#[test]
fn the_signed_bytes_are_those_of_the_specification() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/book-signature.json")).unwrap();
    let vectors: serde_json::Value = serde_json::from_str(&text).unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let contents = vectors["contents"].as_array().unwrap();
    assert!(contents.len() >= 2);
    for vector in contents {
        let content: Content = serde_json::from_value(vector["content"].clone()).unwrap();
        assert_eq!(hex(&content_bytes(&content)), vector["bytes"], "{vector}");
        assert_eq!(content_digest(&content), vector["digest"], "{vector}");
    }
    let records = vectors["records"].as_array().unwrap();
    assert!(records.len() >= 2);
    for vector in records {
        let record: Signature = serde_json::from_value(vector["record"].clone()).unwrap();
        assert_eq!(hex(&record.statement()), vector["statement"], "{vector}");
        assert_eq!(record.hash(), vector["hash"], "{vector}");
        assert!(is_signed(&record), "{vector}");
        let changed = Signature { meaning: format!("{}!", record.meaning), ..record };
        assert!(!is_signed(&changed), "{vector}");
    }
}
