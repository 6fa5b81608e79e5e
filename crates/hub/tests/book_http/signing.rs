//! Signatures through the API and ELOG's pages: who may sign, with which proof, and what a lock refuses.

use serde_json::{Value, json};

use crate::site::{Client, PASSWORD, Site};

/// A site whose logbook has an author's and a leader's meaning; zoe is a leader, max is not.
fn site(lock: bool) -> (Site, Client, Client) {
    let site = Site::new();
    site.shift();
    let (zoe, max) = (site.user(json!({ "login": "zoe", "full_name": "Zoë Miller" })), site.user(json!({ "login": "max" })));
    let owner = site.owner();
    owner.put("/groups/leads", json!({ "members": ["zoe"] }));
    let mut access = owner.get("/books/Shift/access").json();
    access["signing"] = json!({
        "meanings": [{ "meaning": "author", "by": ["everybody"] }, { "meaning": "approved", "by": ["group:leads"] }],
        "lock": lock,
    });
    owner.put("/books/Shift/access", access).is(200);
    (site, zoe, max)
}

fn body(meaning: &str, revision: u64, password: Option<&str>) -> Value {
    let mut body = json!({ "meaning": meaning, "revision": revision });
    if let Some(password) = password {
        body["password"] = password.into();
    }
    body
}

#[test]
fn a_person_signs_with_the_password_and_a_meaning_that_the_person_has() {
    let (site, zoe, max) = site(false);
    let id = zoe.entry("the beam is stable");
    let path = format!("/books/Shift/entries/{id}/signatures");
    assert_eq!(zoe.get("/books/Shift/signing").json()["mine"], json!(["author", "approved"]));
    assert_eq!(max.get("/books/Shift/signing").json()["mine"], json!(["author"]));
    // A session or a token alone is no proof.
    for password in [None, Some("wrong password")] {
        let said = zoe.post(&path, body("approved", 0, password));
        assert!(matches!(said.status, 401 | 403), "{}", said.status);
    }
    let said = zoe.post(&path, body("approved", 0, None)).is(403).json();
    assert!(said["type"].as_str().unwrap().ends_with("unproved"), "{said}");
    let refused = max.post(&path, body("approved", 0, Some(PASSWORD))).is(403).json();
    assert!(refused["way_out"].as_str().unwrap().contains("author"), "{refused}");
    zoe.post(&path, body("praised", 0, Some(PASSWORD))).is(403);
    zoe.post(&path, body("approved", 5, Some(PASSWORD))).is(412);
    let signed = zoe.post(&path, body("approved", 0, Some(PASSWORD))).is(201).json();
    assert_eq!((&signed["by"], &signed["name"], &signed["method"]), (&json!("zoe"), &json!("Zoë Miller"), &json!("password")));
    zoe.post(&path, body("approved", 0, Some(PASSWORD))).is(409);
    // A second person signs at the same computer.
    let mut other = body("author", 0, Some(PASSWORD));
    other["login"] = "max".into();
    assert_eq!(zoe.post(&path, other).is(201).json()["by"], "max");
    let entry = zoe.get(&format!("/books/Shift/entries/{id}")).json();
    let meanings: Vec<&Value> = entry["signatures"].as_array().unwrap().iter().map(|one| &one["meaning"]).collect();
    assert_eq!(meanings, ["approved", "author"]);
    // Guests sign nothing; an unknown meaning of the rules is refused.
    site.anybody().post(&path, body("author", 0, None)).is(403);
    let mut access = site.owner().get("/books/Shift/access").json();
    access["signing"]["meanings"][0]["meaning"] = "a=b".into();
    site.owner().put("/books/Shift/access", access).is(422);
    assert_eq!(site.owner().send("POST", "/books/Shift/verify", b"").is(200).json()["faults"], json!([]));
    zoe.send("POST", "/books/Shift/verify", b"").is(403);
}

#[test]
fn who_administers_a_logbook_does_not_say_who_signs() {
    let (site, _, max) = site(true);
    let owner = site.owner();
    let mut access = owner.get("/books/Shift/access").json();
    let signing = access["signing"].clone();
    access["grants"] = json!([{ "to": "user:max", "may": ["read", "write", "admin"] }]);
    owner.put("/books/Shift/access", access).is(200);
    // Rights alone leave the rules for signatures as they are; so does the whole, sent back.
    let grants = json!([{ "to": "user:max", "may": ["read", "write", "admin"] }, { "to": "user:zoe", "may": ["read"] }]);
    max.put("/books/Shift/access", json!({ "grants": grants })).is(200);
    let mut whole = max.get("/books/Shift/access").is(200).json();
    assert_eq!(whole["signing"], signing);
    max.put("/books/Shift/access", whole.clone()).is(200);
    for other in [json!({}), json!({ "meanings": [{ "meaning": "approved", "by": ["user:max"] }] })] {
        whole["signing"] = other;
        assert_eq!(max.put("/books/Shift/access", whole.clone()).is(403).problem(), "no-right");
    }
    assert_eq!(owner.get("/books/Shift/access").json()["signing"], signing);
    whole["signing"] = json!({});
    owner.put("/books/Shift/access", whole).is(200);
    assert_eq!(owner.get("/books/Shift/access").json()["signing"], json!(null));
}

#[test]
fn a_signed_entry_that_is_locked_is_only_answered() {
    let (site, zoe, max) = site(true);
    let id = zoe.entry("the beam is stable");
    let path = format!("/books/Shift/entries/{id}");
    assert_eq!(zoe.get(&path).json()["may_edit"], true);
    zoe.post(&format!("{path}/signatures"), body("approved", 0, Some(PASSWORD))).is(201);
    assert_eq!(zoe.get(&path).json()["may_edit"], false);
    let said = zoe.with("if-match", "*").put(&path, json!({ "text": "other" })).is(409).json();
    assert!(said["type"].as_str().unwrap().ends_with("signed"), "{said}");
    site.owner().with("if-match", "*").put(&path, json!({ "text": "other" })).is(409);
    zoe.delete(&path).is(409);
    zoe.post(&format!("{path}/links"), json!({ "link": "run:1" })).is(409);
    max.post("/books/Shift/entries", json!({ "text": "it was not", "parent": id, "attributes": { "Author": "max" } })).is(201);
    // ELOG's pages show the signature and refuse the form of a change.
    let page = |path: &str| String::from_utf8(zoe.get(path).bytes).unwrap();
    let shown = page(&format!("/elog/Shift/{id}"));
    assert!(shown.contains("Signed as <b>approved</b> by <b>Zo\u{eb} Miller</b> (zoe)"), "{shown}");
    assert!(shown.contains("name=\"meaning\"") && shown.contains("<option>author</option>"), "{shown}");
    assert!(!shown.contains("<option>approved</option>"), "it has this signature");
    assert!(page(&format!("/elog/Shift/{id}?cmd=Edit")).contains("the entry is signed"));
}

#[test]
fn a_reader_of_some_attributes_gets_no_digest_of_the_others() {
    let (site, zoe, max) = site(false);
    let owner = site.owner();
    let attributes = ["Author", "Type", "Subject"].map(|name| json!({ "name": name, "kind": "text" }));
    let elog = [["Show attributes", "Author, Type"], ["List display", "ID, Date, Author"]];
    owner.put("/books/Shift", json!({ "name": "Shift", "attributes": attributes, "elog": elog })).is(200);
    let mut access = owner.get("/books/Shift/access").json();
    access["policy"] = json!({ "kind": "free" });
    access["grants"] = json!([
        { "to": "user:zoe", "may": ["read", "write", "edit-own", "edit-any"] },
        { "to": "user:max", "may": ["read"] },
    ]);
    owner.put("/books/Shift/access", access).is(200);
    let body_of = json!({ "attributes": { "Author": "zoe", "Type": "Routine", "Subject": "Salary 4711" }, "text": "x" });
    let id = zoe.post("/books/Shift/entries", body_of).is(201).json()["id"].clone();
    let path = format!("/books/Shift/entries/{id}");
    zoe.post(&format!("{path}/signatures"), body("approved", 0, Some(PASSWORD))).is(201);
    let whole = zoe.get(&path).is(200).json()["signatures"][0].clone();
    assert_eq!((whole["content"].as_str().unwrap().len(), whole.get("withheld")), (64, None), "{whole}");
    let found = |said: Value| said["hits"][0]["entry"]["signatures"][0].clone();
    let parts = [
        max.get(&path).is(200).json()["signatures"][0].clone(),
        max.get(&format!("{path}/thread")).is(200).json()["entries"][0]["signatures"][0].clone(),
        found(max.get("/search?book=Shift").is(200).json()),
    ];
    for part in parts {
        assert_eq!((&part["content"], &part["signature"]), (&json!(""), &json!("")), "{part}");
        assert_eq!((&part["withheld"], &part["by"], &part["meaning"]), (&json!(true), &json!("zoe"), &json!("approved")));
    }
    let page = |client: &Client| String::from_utf8(client.get(&format!("/elog/Shift/{id}")).is(200).bytes).unwrap();
    let shown = page(&max);
    assert!(shown.contains("Signed as <b>approved</b>") && shown.contains("not checkable for you"), "{shown}");
    assert!(!shown.contains("name=\"meaning\"") && !shown.contains("4711"), "{shown}");
    assert!(!page(&zoe).contains("not checkable"));
    // Nobody signs what they do not see.
    let refused = max.post(&format!("{path}/signatures"), body("author", 0, Some(PASSWORD))).is(403).json();
    assert!(refused["detail"].as_str().unwrap().contains("does not see all attributes"), "{refused}");
    assert_eq!(owner.send("POST", "/books/Shift/verify", b"").is(200).json()["faults"], json!([]));
}
