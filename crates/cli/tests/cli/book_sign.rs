//! `tampu book sign`, `tampu book verify` and `tampu book users signing`: beside the data, and through a hub.

use std::{fs, path::PathBuf};

use crate::site::{Said, Site};

const PASSWORD: &[u8] = b"correct horse\n";

fn book(site: &Site, arguments: &[&str]) -> Said {
    site.tampu(&[&["book"], arguments].concat())
}

/// Returns the path of the database below a directory.
fn database(dir: PathBuf) -> PathBuf {
    let mut dirs = vec![dir];
    while let Some(dir) = dirs.pop() {
        for file in fs::read_dir(dir).unwrap().flatten() {
            if file.file_name() == "book.db" {
                return file.path();
            }
            if file.path().is_dir() {
                dirs.push(file.path());
            }
        }
    }
    panic!("there is no book.db");
}

#[test]
fn an_entry_is_signed_and_a_changed_database_is_found_out() {
    let site = Site::new();
    book(&site, &["make", "Shift", "-a", "Author"]).ok();
    site.tampu_reading(PASSWORD, &["book", "users", "add", "zoe", "--full-name", "Zoe Miller", "--group", "leads"]).ok();
    book(&site, &["post", "Shift", "-a", "Author=Zoe", "-t", "the beam is stable"]).ok();
    let sign = |meaning: &str, password: &[u8]| {
        site.tampu_reading(password, &["book", "sign", "Shift/1", "--meaning", meaning, "--login", "zoe"])
    };
    let said = sign("approved", PASSWORD);
    assert!(said.code == 1 && said.err.contains("tampu book users signing"), "{said:?}");
    let rules = ["users", "signing", "Shift", "--meaning", "author", "--meaning", "approved=group:leads", "--lock"];
    let shown = book(&site, &rules).ok().out;
    assert_eq!(shown, "signed as author: by everybody\nsigned as approved: by group:leads\nsigned entries are locked\n");
    assert_eq!(book(&site, &["users", "signing", "Shift"]).ok().out, shown);
    let bad = book(&site, &["users", "signing", "Shift", "--meaning", "approved=guests"]);
    assert!(bad.code == 2 && bad.err.contains("guests cannot sign"), "{bad:?}");
    let said = sign("approved", b"wrong password\n");
    assert!(said.code == 1 && said.err.contains("password is wrong"), "{said:?}");
    assert!(sign("approved", PASSWORD).ok().out.starts_with("Shift/1: signed as approved by Zoe Miller (zoe)"));
    let again = sign("approved", PASSWORD);
    assert!(again.code == 1 && again.err.contains("has this signature"), "{again:?}");
    let said = book(&site, &["edit", "Shift/1", "-t", "it is not"]);
    assert!(said.code == 1 && said.err.contains("is signed"), "{said:?}");
    assert!(book(&site, &["show", "Shift/1"]).ok().out.contains("signed as approved by Zoe Miller (zoe)"));
    let json = book(&site, &["show", "Shift/1", "--json"]).ok().json();
    assert_eq!(json[0]["signatures"][0]["meaning"], "approved");
    let pages = site.path("pages");
    book(&site, &["export", "--format", "html", "-o", pages.to_str().unwrap()]).ok();
    assert!(fs::read_to_string(pages.join("Shift/entries/1.html")).unwrap().contains("approved, Zoe Miller (zoe), "));

    assert_eq!(book(&site, &["verify"]).ok().out, "1 signature in 1 logbook: all as signed\n");
    let db = rusqlite::Connection::open(database(site.path("data"))).unwrap();
    assert_eq!(db.execute("UPDATE body SET text = 'the beam is lost'", []).unwrap(), 1);
    drop(db);
    let said = book(&site, &["verify", "Shift"]);
    assert!(said.code == 1 && said.out.starts_with("Shift/1, record 1: revision 0 is not as it was signed"), "{said:?}");
    let said = book(&site, &["verify", "--json"]);
    assert_eq!((said.code, &said.json()[0]["faults"][0]["entry"]["id"]), (1, &serde_json::json!(1)));
    let said = book(&site, &["verify", "--key", "12"]);
    assert!(said.code == 2 && said.err.contains("64 hexadecimal digits"), "{said:?}");
}

#[test]
fn through_a_hub_the_password_proves_the_person_who_signs() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let of_hub = |input: &[u8], arguments: &[&str]| site.tampu_without("TAMPU_DATA_DIR", input, &[&["book"], arguments].concat());
    of_hub(b"", &["make", "Shift", "-a", "Author"]).ok();
    of_hub(PASSWORD, &["users", "add", "zoe", "--full-name", "Zoe Miller"]).ok();
    of_hub(b"", &["users", "signing", "Shift", "--meaning", "author"]).ok();
    of_hub(b"", &["post", "Shift", "-a", "Author=Zoe", "-t", "the beam is stable"]).ok();
    let sign = ["sign", "Shift/1", "--meaning", "author", "--login", "zoe", "--json"];
    assert_eq!(of_hub(b"wrong\n", &sign).code, 1);
    assert_eq!(of_hub(PASSWORD, &sign).ok().json()[0]["by"], "zoe");
    of_hub(b"", &["edit", "Shift/1", "-t", "it was stable"]).ok();
    assert!(of_hub(b"", &["show", "Shift/1"]).ok().out.contains("of the earlier revision 0"));
    let found = of_hub(b"", &["verify", "--json"]).ok().json();
    assert_eq!((&found[0]["signatures"], &found[0]["faults"]), (&serde_json::json!(1), &serde_json::json!([])));
}
