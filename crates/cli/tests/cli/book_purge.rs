//! `tampu book purge`: beside the data, and through a hub by its administrators.

use std::{fs, path::Path};

use tampu_logbook::{
    entry::{Content, Draft, EntryRef},
    mail::{message::Written, queue::Queue},
    store::{Drafts, sqlite::SqliteStore},
};
use tampu_types::Time;

use crate::site::{Said, Site};

const SECRET: &str = "quetzalcoatl";

fn book(site: &Site, arguments: &[&str]) -> Said {
    site.tampu(&[&["book"], arguments].concat())
}

/// Returns true if a file below a directory has the secret.
fn is_in(dir: &Path) -> bool {
    let holds = |bytes: Vec<u8>| bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
    fs::read_dir(dir).unwrap().flatten().any(|file| {
        let path = file.path();
        if path.is_dir() { is_in(&path) } else { holds(fs::read(&path).unwrap_or_default()) }
    })
}

#[test]
fn a_revision_an_attachment_and_an_entry_are_purged_beside_the_data() {
    let site = Site::new();
    book(&site, &["make", "Shift", "-a", "Author"]).ok();
    let file = site.file("key.txt", SECRET);
    book(&site, &["post", "Shift", "-a", "Author=Zoe", "-t", SECRET, "--attachment", &file]).ok();
    book(&site, &["edit", "Shift/1", "-t", "harmless"]).ok();
    fs::remove_file(&file).unwrap();
    let data = site.path("data");
    assert!(is_in(&data));
    // Without a terminal and without --yes nothing happens.
    let said = book(&site, &["purge", "Shift/1", "--all-but-last", "--reason", "a password"]);
    assert!(said.code == 2 && said.err.contains("--yes"), "{said:?}");
    let said = book(&site, &["purge", "Shift/1", "--revision", "1", "--reason", "a password", "--yes"]);
    assert!(said.code == 1 && said.err.contains("current text"), "{said:?}");
    assert!(book(&site, &["purge", "Shift/1", "--yes"]).code == 2, "a reason is needed");
    let purge = ["purge", "Shift/1", "--revision", "0", "--reason", "a password", "--author", "root", "--yes"];
    assert!(book(&site, &purge).ok().out.contains("Shift/1: 1 content, 0 files"));
    let purge = ["purge", "Shift/1", "--attachment", "key.txt", "--reason", "a key", "--yes", "--json"];
    assert_eq!(book(&site, &purge).ok().json()[0]["files"], 1);
    assert!(!is_in(&data));
    let history = book(&site, &["show", "Shift/1", "--revisions"]).ok().out;
    for part in
        ["(purged)", "Purged by root", "(purged revision 0: a password)", "(purged attachment 'key.txt': a key)", "harmless"]
    {
        assert!(history.contains(part), "{part}: {history}");
    }
    book(&site, &["purge", "Shift/1", "--reason", "all of it", "--yes"]).ok();
    assert!(book(&site, &["show", "Shift/1"]).err.contains("was deleted"));
    assert_eq!(book(&site, &["check"]).ok().out, "everything is as it should be\n");
}

#[test]
fn through_a_hub_a_purge_is_for_administrators_and_stands_in_the_log() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let of_hub = |arguments: &[&str]| site.tampu_without("TAMPU_DATA_DIR", b"", &[&["book"], arguments].concat());
    of_hub(&["make", "Shift", "-a", "Author"]).ok();
    of_hub(&["post", "Shift", "-a", "Author=Zoe", "-t", SECRET]).ok();
    of_hub(&["edit", "Shift/1", "-t", "harmless"]).ok();
    let user = ["book", "users", "add", "zoe"];
    site.tampu_without("TAMPU_DATA_DIR", b"correct horse\n", &user).ok();
    of_hub(&["users", "role", "Shift", "user:zoe", "read", "write", "edit-any"]).ok();
    let token = of_hub(&["users", "token", "make", "zoe"]).ok().out;
    let purge = ["purge", "Shift/1", "--revision", "0", "--reason", "a password", "--yes"];
    let said = of_hub(&[&purge[..], &["--token", token.trim()]].concat());
    assert!(said.code == 1 && said.err.contains("the right 'admin' is missing"), "{said:?}");
    assert!(is_in(&site.path("data/local/book")));
    of_hub(&["users", "role", "Shift", "user:zoe", "read", "write", "admin"]).ok();
    of_hub(&[&purge[..], &["--token", token.trim()]].concat()).ok();
    assert!(!is_in(&site.path("data/local/book")));
    let records = site.find(1, &["--logger", "audit", "purged"]);
    let message = records[0]["message"].as_str().unwrap();
    assert!(message.contains("zoe from 127.0.0.1: entry Shift/1: purged revision 0: a password"), "{message}");
}

#[test]
fn a_purge_reaches_mails_that_wait() {
    let site = Site::new();
    book(&site, &["make", "Shift", "-a", "Author"]).ok();
    let put_into_queue = |entry: u32| {
        let (mut queue, _) = Queue::open(&site.path("data/local/book/mail")).unwrap();
        let written = Written {
            from: "log@example.org".to_owned(),
            to: vec!["zoe@example.org".to_owned()],
            subject: "HV".to_owned(),
            id: "1@example.org".to_owned(),
            bytes: SECRET.as_bytes().to_vec(),
            about: vec![EntryRef::new("Shift", entry)],
        };
        queue.add(&written, Time::from_unix(1_800_000_000, 0)).unwrap();
    };
    let post = || book(&site, &["post", "Shift", "-a", "Author=Zoe", "-t", SECRET]).ok();
    post();
    put_into_queue(1);
    let said = book(&site, &["purge", "Shift/1", "--reason", "a password", "--yes"]).ok();
    assert!(said.err.contains("1 mail with a purged text"), "{said:?}");
    assert!(!is_in(&site.path("data")));

    post();
    put_into_queue(2);
    // No mail server is there.
    let mail = "[mail]\nhost = \"127.0.0.1\"\nport = 1\ntls = \"none\"\nfrom = \"log@example.org\"\n";
    let config = site.file("tampu.toml", mail);
    let _hub = site.hub(&["--config", &config]);
    let of_hub = |arguments: &[&str]| site.tampu_without("TAMPU_DATA_DIR", b"", arguments);
    assert_eq!(of_hub(&["mail", "queue", "list", "--json"]).ok().json()[0]["mails"].as_array().unwrap().len(), 1);
    of_hub(&["book", "purge", "Shift/2", "--reason", "a password", "--yes"]).ok();
    assert!(!is_in(&site.path("data/local/book")));
    site.find(1, &["--logger", "audit", "--contains", "removed from the queue: 1"]);
}

#[test]
fn after_a_purge_no_file_below_the_data_has_the_text() {
    let site = Site::new();
    book(&site, &["make", "Shift", "-a", "Author"]).ok();
    let file = site.file("key.txt", SECRET);
    book(&site, &["post", "Shift", "-a", "Author=Zoe", "-t", SECRET, "--attachment", &file]).ok();
    book(&site, &["edit", "Shift/1", "-t", &format!("{SECRET} again")]).ok();
    fs::remove_file(&file).unwrap();
    let draft = Draft {
        number: 0,
        owner: "ann".to_owned(),
        book: "Shift".to_owned(),
        edits: None,
        parent: Some(1),
        saved: Time(7),
        content: Content { text: SECRET.to_owned(), ..Content::default() },
    };
    SqliteStore::open(&site.path("data/local/book")).unwrap().save_draft(&draft).unwrap();
    let data = site.path("data");
    let hub = site.hub(&[]);
    let of_hub = |arguments: &[&str]| site.tampu_without("TAMPU_DATA_DIR", b"", &[&["book"], arguments].concat()).ok().out;
    // Reading it fills the caches, the index of words is asked, and the log has a record of each request.
    for reading in [&["show", "Shift/1"][..], &["show", "Shift/1", "--revisions"], &["search", "author:Zoe"]] {
        assert!(of_hub(reading).contains(SECRET), "{reading:?}");
    }
    assert!(is_in(&data));
    of_hub(&["purge", "Shift/1", "--reason", "a password", "--yes"]);
    assert!(!is_in(&data));
    // Nothing writes it when the hub ends, or when the logbook is opened again.
    drop(hub);
    assert!(!is_in(&data));
    assert_eq!(book(&site, &["check"]).ok().out, "everything is as it should be\n");
    assert!(!is_in(&data));
}

#[test]
fn the_space_of_files_is_shown_by_logbook_and_user() {
    let site = Site::new();
    book(&site, &["make", "Shift", "-a", "Author"]).ok();
    let file = site.file("plot.bin", vec![7; 2_500_000]);
    book(&site, &["post", "Shift", "-t", "x", "--attachment", &file, "--author", "zoe"]).ok();
    let out = book(&site, &["stat"]).ok().out;
    for part in ["2.5 MB        1 file  Shift of zoe", "2.5 MB        1 file  all of zoe", "2.5 MB        1 file  in all"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let json = book(&site, &["stat", "--json"]).ok().json();
    assert_eq!((json.len(), &json[0]["book"], &json[0]["bytes"]), (1, &"Shift".into(), &2_500_000.into()));
    let _hub = site.hub(&[]);
    let out = site.tampu_without("TAMPU_DATA_DIR", b"", &["book", "stat"]).ok().out;
    assert!(out.contains("Shift of zoe") && out.contains("quotas: no limit in all"), "{out}");
}
