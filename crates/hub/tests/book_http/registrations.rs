//! Registrations of new users: made on a page, approved by the API.

use serde_json::{Value, json};

use crate::site::{PASSWORD, Site};

#[test]
fn a_registration_waits_for_an_administrator() {
    let site = Site::new();
    let attributes = json!([{ "name": "Author", "kind": "text" }]);
    let book = json!({ "name": "Asked", "attributes": attributes, "elog": [["Self register", "3"]] });
    site.owner().put("/books/Asked", book).is(201);
    let zoe = site.user(json!({ "login": "zoe" }));
    let root = site.user(json!({ "login": "root", "admin": true }));
    let register = |login: &str| site.register("Asked", login);
    let text = register("max");
    assert!(text.contains("after an administrator has approved it"), "{text}");
    register("eve");
    site.anybody().post("/login", json!({ "login": "max", "password": PASSWORD })).is(401);
    zoe.get("/registrations").is(403);
    let waiting = root.get("/registrations").is(200).json();
    assert!(!waiting.to_string().contains("argon2"), "{waiting}");
    let ids: Vec<String> = waiting.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!((waiting[0]["login"].as_str(), ids.len()), (Some("max"), 2));
    zoe.post(&format!("/registrations/{}/approve", ids[0]), json!({})).is(403);
    root.post(&format!("/registrations/{}/approve", ids[0]), json!({})).is(201);
    root.with_json("DELETE", &format!("/registrations/{}", ids[1]), json!({})).is(204);
    root.with_json("DELETE", &format!("/registrations/{}", ids[1]), json!({})).is(404);
    site.anybody().post("/login", json!({ "login": "max", "password": PASSWORD })).is(200);
    site.anybody().post("/login", json!({ "login": "eve", "password": PASSWORD })).is(401);
}

#[test]
fn only_an_administrator_of_the_site_changes_who_may_register() {
    let site = Site::new();
    let book = |elog: Value, comment: &str| json!({ "name": "Shift", "attributes": [{ "name": "Author", "kind": "text" }], "comment": comment, "elog": elog });
    let root = site.user(json!({ "login": "root", "admin": true }));
    let keeper = site.user(json!({ "login": "keeper" }));
    let closed = json!([["Allow password change", "0"], ["Welcome title", "x"]]);
    root.put("/books/Shift", book(closed.clone(), "")).is(201);
    let grants = json!([{ "to": "user:keeper", "may": ["read", "admin"] }]);
    root.put("/books/Shift/access", json!({ "grants": grants })).is(200);
    let put = |elog: Value, comment: &str| keeper.put("/books/Shift", book(elog, comment));
    for (elog, named) in [
        (json!([["Self register", "1"], ["Allow password change", "0"]]), "Self register"),
        (json!([["self  REGISTER", "1"], ["Allow password change", "0"]]), "Self register"),
        (json!([["{a}Self register", "1"], ["Allow password change", "0"]]), "Self register"),
        (json!([["Allow password change", "1"]]), "Allow password change"),
        (json!([]), "Allow password change"),
    ] {
        let problem = put(elog, "taken").is(403).json();
        assert!(problem["detail"].as_str().unwrap().contains(named), "{problem}");
    }
    let page = ureq::get(format!("{}/elog/Shift/?cmd=New+user", site.url.trim_end_matches('/'))).call();
    assert!(matches!(page, Err(ureq::Error::StatusCode(403))), "{page:?}");
    put(json!([["Welcome title", "y"], ["Allow password change", "0"]]), "his own matters").is(200);
    root.put("/books/Shift", book(json!([["Self register", "1"]]), "")).is(200);
    put(json!([["Self register", "1"], ["Welcome title", "z"]]), "").is(200);
}

#[test]
fn a_login_that_entries_or_rights_have_is_not_for_strangers() {
    let site = Site::new();
    let owner = site.owner();
    let book = |name: &str, elog: Value| {
        let attributes = json!([{ "name": "Author", "kind": "text" }]);
        owner.put(&format!("/books/{name}"), json!({ "name": name, "attributes": attributes, "elog": elog })).is(201);
    };
    book("Open", json!([["Self register", "1"]]));
    book("Asked", json!([["Self register", "3"]]));
    book("Priv", json!([]));
    book("Gone", json!([]));
    book("Listed", json!([["Login user", "lisa"]]));
    let grants = json!({ "grants": [
        { "to": "user:zoe", "may": ["read", "write", "edit-own", "admin"] }, { "to": "user:ghost", "may": ["read"] },
    ] });
    for book in ["Priv", "Gone"] {
        owner.put(&format!("/books/{book}/access"), grants.clone()).is(200);
    }
    site.user(json!({ "login": "root", "admin": true }));
    let zoe = site.user(json!({ "login": "zoe" }));
    zoe.post("/books/Priv/entries", json!({ "attributes": { "Author": "x" }, "text": "first" })).is(201);
    zoe.post("/drafts", json!({ "book": "Priv", "text": "secretdraft" })).is(201);
    zoe.put("/searches/mine", json!({ "q": "secretsearch" })).is(200);
    let deleted = owner.delete("/books/Gone").is(200).json()["number"].to_string();
    owner.delete("/users/zoe").is(204);
    owner.post(&format!("/deleted-books/{deleted}/restore"), json!({})).is(200);
    for book in ["Priv", "Gone"] {
        let left = owner.get(&format!("/books/{book}/access")).is(200).json();
        assert!(!left.to_string().contains("user:zoe") && left.to_string().contains("user:ghost"), "{book}: {left}");
    }
    // The login stays the entries', and a login can have rights before its user is there.
    for login in ["zoe", "ZOE", "ghost", "lisa"] {
        let page = site.register("Open", login);
        assert!(page.contains("ask an administrator of the logbook for this name"), "{login}: {page}");
        owner.get(&format!("/users/{login}")).is(404);
    }
    // An administrator who is asked sees it.
    site.register("Asked", "ghost");
    let waiting = owner.get("/registrations").is(200).json();
    assert_eq!((&waiting[0]["login"], &waiting[0]["author"]), (&json!("ghost"), &json!(true)), "{waiting}");
    // Nor does a new user of this login, whom an administrator makes, get what the former one left.
    let zoe = site.user(json!({ "login": "zoe" }));
    zoe.get("/books/Priv/entries/1").is(404);
    assert_eq!((zoe.get("/drafts").json(), zoe.get("/searches").json()), (json!([]), json!([])));
}
